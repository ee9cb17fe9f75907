"""Calibration by formulas in log-odds."""
