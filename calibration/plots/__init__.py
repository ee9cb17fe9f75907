"""Pictures of calibration. They import matplotlib only when they are drawn."""

from calibration.plots.evidence import plot_monitor, plot_ranks
from calibration.plots.maps import (
    plot_calibration_map,
    plot_simplex,
    plot_simplex_field,
)
from calibration.plots.reliability import (
    plot_class_reliability,
    plot_reliability,
    plot_roc,
)

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
