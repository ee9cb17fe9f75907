"""Pictures of calibration; matplotlib is imported when used."""

from calibration.plots.calibration_map import plot_calibration_map
from calibration.plots.ranks import plot_ranks
from calibration.plots.reliability import plot_reliability

__all__ = [
    "plot_calibration_map",
    "plot_ranks",
    "plot_reliability",
]
