"""Calibration by bins: one, some or all ways to cut the scores.

`histogram` cuts them in one way: into bins of equal frequency or width. `bbq` averages
some ways: binnings into quantiles. `all_binnings` selects among all ways, or averages
them.
"""
