"""The frame: the coordinate in which thresholds are placed."""

from localexpert.coordinate.centre import CentreStack
from localexpert.coordinate.frame import Frame

__all__ = ["CentreStack", "Frame"]
