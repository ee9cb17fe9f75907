"""Calibration by the nearest rows, with more than a score to go by.

`acp` needs an interval for each prediction, which `logistic_intervals` makes for a
logistic regression; `sba` needs the features. `side_information` is their base.
"""
