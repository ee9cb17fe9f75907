"""Calibration of more than two classes."""
