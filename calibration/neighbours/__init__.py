"""Calibration by the nearest rows, for rows with more information than a score.

`acp` needs an interval for each prediction. `logistic_intervals` makes it for a
logistic regression. `sba` needs the features. `side_information` is their base.
"""
