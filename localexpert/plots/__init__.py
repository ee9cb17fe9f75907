"""Pictures of forecasts and of fitted regressors; matplotlib is imported when used."""

from localexpert.plots.calibration import plot_pit, plot_quantile_reliability
from localexpert.plots.coverage import plot_coverage
from localexpert.plots.experts import plot_expert_report
from localexpert.plots.fan import plot_fan
from localexpert.plots.forecast import plot_forecast
from localexpert.plots.importance import plot_importance
from localexpert.plots.ridge import plot_forecasts
from localexpert.plots.sharpness import plot_sharpness
from localexpert.plots.thresholds import plot_threshold_reliability

__all__ = [
    "plot_coverage",
    "plot_expert_report",
    "plot_fan",
    "plot_forecast",
    "plot_forecasts",
    "plot_importance",
    "plot_pit",
    "plot_quantile_reliability",
    "plot_sharpness",
    "plot_threshold_reliability",
]
