"""A regressor that is fitted in a moment, for tests of what is done with one."""

from sklearn.linear_model import LinearRegression

from localexpert import LocalExpertRegressor, SharedBoosting


def fast(**parameters):
    """Return a regressor that fits in less than a second."""
    shared = SharedBoosting(max_rounds=40, random_state=0)
    usual = {"center": LinearRegression(), "strategy": shared, "n_thresholds": 9}
    usual |= {"cv": 3, "random_state": 0}
    return LocalExpertRegressor(**{**usual, **parameters})
