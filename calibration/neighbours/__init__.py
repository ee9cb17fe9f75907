"""Calibration by the nearest rows, with more than a score to go by."""
