"""The frame: the coordinate in which thresholds are placed."""
