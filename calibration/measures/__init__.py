"""Losses, calibration errors, decompositions and comparisons; reliability curves."""
