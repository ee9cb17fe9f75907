"""Calibration by bins: one, some or all ways to cut the scores.

One way: `histogram` (bins of equal frequency or width) and `three_values` (the regions
of a support vector machine). Some ways: `bbq` averages binnings into quantiles. All
ways: `sbb_abb` selects among them or averages them, by the law of `law_of_binnings`.
`beta_prior` is the prior of a bin's rate that the Bayesian ones share, and the base of
those that average; `theory` has the bounds on what binning can err.
"""
