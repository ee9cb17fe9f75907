"""Pictures of forecasts and of fitted regressors; matplotlib is imported when used."""

from localexpert.plots.calibration import (
    plot_coverage,
    plot_pit,
    plot_quantile_reliability,
    plot_sharpness,
)
from localexpert.plots.features import (
    plot_expert_report,
    plot_explanation,
    plot_importance,
    plot_threshold_reliability,
)
from localexpert.plots.forecast import plot_fan, plot_forecast, plot_forecasts
from localexpert.plots.survival import plot_survival

__all__ = [
    "plot_coverage",
    "plot_expert_report",
    "plot_explanation",
    "plot_fan",
    "plot_forecast",
    "plot_forecasts",
    "plot_importance",
    "plot_pit",
    "plot_quantile_reliability",
    "plot_sharpness",
    "plot_survival",
    "plot_threshold_reliability",
]
