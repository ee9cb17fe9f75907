"""Means of the target in place of categories: honest in training, shrunk, weighted."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import TargetEncoder

from localexpert.coordinate.boosting import TargetCodes
from localexpert.coordinate.centre import CentreStack
from localexpert.data.folds import Sample, make_folds
from localexpert.data.table import Table


def test_means_are_near_those_of_scikit_learn(rng):
    codes = rng.integers(0, 8, size=(400, 1)).astype(float)
    y = 2.0 * rng.normal(size=8)[codes[:, 0].astype(int)] + rng.normal(size=400)
    ours = TargetCodes({0: 8}, 0).fit(codes, y, np.ones(400)).transform(codes)
    theirs = TargetEncoder(target_type="continuous").fit(codes, y).transform(codes)
    np.testing.assert_allclose(ours, theirs, atol=0.05)


def test_weights_are_repetitions_and_gaps_are_a_category(rng):
    codes = np.where(
        rng.uniform(size=(60, 1)) < 0.2, np.nan, rng.integers(0, 4, (60, 1))
    )
    y, weight = rng.normal(size=60), rng.integers(0, 4, 60)
    new = np.array([[0.0], [3.0], [4.0], [np.nan]])
    told, copied = (
        TargetCodes({0: 5}, 0).fit(X, target, w.astype(float)).transform(new)
        for X, target, w in (
            (codes, y, weight),
            (
                np.repeat(codes, weight, axis=0),
                np.repeat(y, weight),
                np.ones(weight.sum()),
            ),
        )
    )
    np.testing.assert_allclose(told, copied, rtol=1e-9)
    # A value without rows is told as the mean of all.
    assert told[2, 0] == pytest.approx(np.average(y, weights=weight))


def test_rows_of_training_do_not_know_themselves(rng):
    # A value for every two rows: the mean of both would tell half of y.
    codes, y = np.repeat(np.arange(200.0), 2)[:, None], rng.normal(size=400)
    told = TargetCodes({0: 200}, 0).fit_transform(codes, y, np.ones(400))
    assert abs(np.corrcoef(told[:, 0], y)[0, 1]) < 0.15
    np.testing.assert_array_equal(codes, np.repeat(np.arange(200.0), 2)[:, None])


@pytest.fixture
def towns(rng):
    """Return rows of forty towns in no order, of which each has a level of its own."""
    town, x = rng.integers(0, 40, 240), rng.normal(size=240)
    frame = pd.DataFrame({"x": x, "town": [f"t{k}" for k in town]})
    return frame, 3.0 * rng.normal(size=40)[town] + x + 0.3 * rng.normal(size=240)


def test_the_centre_takes_them_where_they_help(towns):
    frame, y = towns
    folds = make_folds(240, 3, random_state=0)
    sample = Sample(Table.of(frame), y, np.ones(240), folds)
    stack = CentreStack(n_jobs=None, random_state=0).fit(sample)
    assert stack.report_["boosting of means"] < stack.report_["boosting"]
    assert stack.weights_["boosting of means"] > 0.1
    plain = Sample(Table.of(frame[["x"]]), y, np.ones(240), folds)
    assert (
        "boosting of means"
        not in CentreStack(n_jobs=None, random_state=0).fit(plain).report_
    )
