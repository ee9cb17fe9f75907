"""`JointXGBoost` by its one line, and what is said where xgboost is missing."""

import sys

import numpy as np
import pytest

from localexpert import JointXGBoost, LocalExpertRegressor, crps_score


@pytest.fixture
def rows(rng):
    X = rng.uniform(size=(240, 2))
    return X, X[:, 0] + (0.1 + 0.4 * X[:, 1]) * rng.normal(size=240)


def test_vector_leaves_of_xgboost_are_a_strategy_of_one_line(rows):
    pytest.importorskip("xgboost")
    X, y = rows
    # No centre says where y lies, so that the experts have to.
    model = LocalExpertRegressor(
        strategy=JointXGBoost(), frame=None, n_thresholds=7, random_state=0
    ).fit(X, y)
    low, high = model.predict([[0.1, 0.1], [0.9, 0.1]])
    assert low + 0.4 < high
    climatology = np.abs(y[:, None] - y).mean() / 2.0  # CRPS of the targets themselves
    assert crps_score(y, model.oof_distribution_) < 0.85 * climatology


def test_without_the_package_the_message_says_how_to_get_it(rows, monkeypatch):
    X, y = rows
    monkeypatch.setitem(sys.modules, "xgboost", None)
    model = LocalExpertRegressor(strategy=JointXGBoost(), frame=None, random_state=0)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'localexpert\[xgboost"):
        model.fit(X, y)
