"""Calibration that keeps, or nearly keeps, the order of the scores."""
