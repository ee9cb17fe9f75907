"""Calibration by bins: one, some or all ways to cut the scores."""
