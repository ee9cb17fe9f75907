"""Calibration by Bayes' rule: a density of the scores for each class."""
