"""Calibration by bins: one, some or all ways to cut the scores.

One way: `histogram` has bins of equal frequency or width. Some ways: `bbq` averages
binnings into quantiles. All ways: `all_binnings` selects among them or averages them.
"""
