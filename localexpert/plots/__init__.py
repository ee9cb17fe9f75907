"""Pictures of forecasts and of fitted regressors; matplotlib is imported when used."""

from localexpert.plots.experts import plot_expert_report

__all__ = ["plot_expert_report"]
