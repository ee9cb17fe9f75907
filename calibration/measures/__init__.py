"""Losses, calibration errors, decompositions, comparisons, and reliability curves."""
