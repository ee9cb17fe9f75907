"""Pictures of calibration; matplotlib is imported when used."""

from calibration.plots.calibration_map import plot_calibration_map
from calibration.plots.monitor import plot_monitor
from calibration.plots.ranks import plot_ranks
from calibration.plots.reliability import plot_class_reliability, plot_reliability
from calibration.plots.roc import plot_roc
from calibration.plots.simplex import plot_simplex, plot_simplex_field

__all__ = [
    "plot_calibration_map",
    "plot_class_reliability",
    "plot_monitor",
    "plot_ranks",
    "plot_reliability",
    "plot_roc",
    "plot_simplex",
    "plot_simplex_field",
]
