"""A regressor that is fitted in a moment, and samples for the stages of a fit."""

import numpy as np
from sklearn.linear_model import LinearRegression

from localexpert import LocalExpertRegressor, SharedBoosting
from localexpert.data.folds import Sample, make_folds
from localexpert.data.table import Table


def sample_of(X, y, w=None, cv=4):
    """Return rows with weights and folds."""
    w = np.ones(len(y)) if w is None else w
    return Sample(Table.of(X), y, w, make_folds(len(y), cv, random_state=0))


def fast(**parameters):
    """Return a regressor that fits in less than a second."""
    shared = SharedBoosting(max_rounds=40, random_state=0)
    usual = {"center": LinearRegression(), "strategy": shared, "n_thresholds": 9}
    usual |= {"cv": 3, "random_state": 0}
    return LocalExpertRegressor(**{**usual, **parameters})
