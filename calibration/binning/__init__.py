"""Calibration by bins: one, some or all ways to cut the scores.

One way: `histogram` has bins of equal frequency or width. Some ways: `bbq` averages
binnings into quantiles. All ways: `sbb_abb` selects among them or averages them, by the
law of `law_of_binnings`.
`beta_prior` is the prior of a bin's rate that the Bayesian ones share, and the base of
those that average; `theory` has the bounds on what binning can err.
"""
