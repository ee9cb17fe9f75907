"""Which road a target takes, and that a weight is a number of repetitions on it."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from localexpert import LocalExpertRegressor
from localexpert.recalibration.conformal import set_aside
from tests.localexpert.regressor.test_regressor import fast

THIRD = 0.1 + 0.2  # one float above .3


def exact(**parameters):
    """A regressor of which all stages know weights."""
    shared = {"center": LinearRegression(), "n_thresholds": 9, "random_state": 0}
    return LocalExpertRegressor(LogisticRegression(), **{**shared, **parameters})


@pytest.fixture
def targets(rng):
    X = rng.normal(size=(240, 3))
    f = X[:, 0] + 0.5 * X[:, 1]
    dry = rng.uniform(size=240) < 0.35
    return X, {
        "discrete": rng.poisson(np.exp(0.5 + 0.4 * f)).astype(float),
        "mixed": np.where(dry, 0.0, np.exp(f + rng.normal(size=240))),
        "continuous": f + rng.normal(size=240),
    }


def folds_of(part):
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(3)]


@pytest.mark.parametrize("kind", ["discrete", "mixed", "continuous"])
@pytest.mark.parametrize("frame", [None, "center"])
def test_weights_are_repetitions(rng, targets, kind, frame):
    """Rows without weight are absent, whatever their targets."""
    X, y = targets[0], targets[1][kind]
    weight, part = rng.integers(0, 5, 240), rng.integers(0, 3, 240)
    y[weight == 0] += 1e3
    rows = np.repeat(np.arange(240), weight)
    one = exact(frame=frame, cv=folds_of(part)).fit(X, y, sample_weight=weight)
    many = exact(frame=frame, cv=folds_of(part[rows])).fit(X[rows], y[rows])
    for model in (one, many):
        assert model.report_.target == kind
    np.testing.assert_allclose(one.thresholds_, many.thresholds_, rtol=1e-9, atol=1e-9)
    if kind == "mixed":
        assert one.forecaster_.atoms.tolist() == many.forecaster_.atoms.tolist() == [0]
        assert one.forecaster_.widths_ == pytest.approx(many.forecaster_.widths_)
    grid = np.quantile(y[rows], np.linspace(0.02, 0.98, 25))
    first, second = (model.predict_dist(X[rows]) for model in (one, many))
    np.testing.assert_allclose(first.cdf_at(grid), second.cdf_at(grid), atol=1e-8)
    np.testing.assert_allclose(first.logpdf(y[rows]), second.logpdf(y[rows]), atol=1e-6)
    oof = one.oof_distribution_[rows].cdf_at(grid)
    np.testing.assert_allclose(oof, many.oof_distribution_.cdf_at(grid), atol=1e-8)


def test_amounts_beside_zeros_are_mixed(rng):
    X = rng.uniform(size=(540, 3))
    y = rng.permutation(np.concatenate([np.zeros(500), rng.lognormal(7.0, 1.0, 40)]))
    model = fast().fit(X, y)
    assert model.report_.target == "mixed"
    assert np.isfinite(model.predict_dist(X[:3]).log_score(2.0 * y.max())).all()
    # Of so few there is no smooth rest; a new amount is possible all the same.
    y[np.flatnonzero(y)[8:]] = 0.0
    model = fast().fit(X, y)
    assert model.report_.target == "discrete"
    assert np.isfinite(model.predict_dist(X[:3]).log_score(1.5 * y.max())).all()


def test_a_count_may_exceed_all_that_were_met(rng):
    X = rng.uniform(size=(300, 2))
    y = rng.poisson(1.0 + 3.0 * X[:, 0]).astype(float)
    model = fast().fit(X, y)
    dist = model.predict_dist([[0.0, 0.5], [1.0, 0.5]])
    beyond = dist.sf(y.max())
    assert (beyond > 0.0).all()
    assert beyond[1] > beyond[0]  # where greater counts are expected
    assert (beyond < 0.01).all()
    assert np.isfinite(dist.log_score(y.max() + 3.0)).all()
    assert dist.law.support[0] == 0.0
    model = fast(bounds=(0, y.max())).fit(X, y)
    assert model.predict_dist(X[:3]).law.support[1] == y.max()


@pytest.mark.parametrize(
    "values",
    [
        [0.2, 0.3, THIRD],
        [*np.cumsum(np.full(10, 0.1)), *(np.arange(1, 11) / 10)],
    ],
)
def test_values_that_differ_by_rounding_are_one(rng, values):
    X = rng.uniform(size=(300, 2))
    y = rng.choice(values, 300)
    model = fast(stacker="auto").fit(X, y)
    assert model.report_.target == "discrete"
    dist = model.predict_dist(X[:5])
    np.testing.assert_allclose(dist.atoms, np.unique(np.round(values, 9)))
    np.testing.assert_allclose(dist.cdf(0.3), dist.cdf(THIRD))
    shares = [np.mean(np.isclose(y, v)) for v in dist.atoms]
    np.testing.assert_allclose(dist.masses.mean(axis=0), shares, atol=0.15)


def test_rows_that_are_all_alike_once_others_are_set_aside():
    y = np.full(110, 0.1)
    rows = LocalExpertRegressor(recalibrate="conformal", random_state=0)
    aside = set_aside(np.ones(110), rows.cv, None, 0)[1]
    y[aside[0]] = 1.0
    with pytest.raises(ValueError, match="`y` must differ in the rows that no recali"):
        rows.fit(np.arange(110.0)[:, None], y)
