"""Effort: from one quick look to many fits, and fits that have so many seconds."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold

from localexpert import FrameRoad, LocalExpertRegressor
from localexpert.learn import pool

FURTHER = ["other folds", "ten folds", "other ten folds"]


def draw():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(240, 3))
    return X, 3.0 * X[:, 0] + (0.1 + 2.0 * X[:, 1] ** 2) * rng.normal(size=240)


X, Y = draw()


def make(effort, **parameters):
    usual = {"cv": 2, "random_state": 0}
    return LocalExpertRegressor(effort=effort, **(usual | parameters))


def fast(effort, **parameters):
    """Return a regressor of few, cheap stages."""
    few = {"center": LinearRegression(), "n_thresholds": 5, "strategy": "joint"}
    return make(effort, **(few | parameters))


def test_quick_fits_ask_no_expert():
    model = make("quick").fit(X, Y)
    summary = model.report_.summary()
    assert set(summary["frame"]["weights"]) == {"boosting"}
    assert set(summary["experts"]["weights"]) == {"marginal"}
    # Forecasts are corrected out of fold, and better than climatology.
    assert model.recalibration_ is not None
    assert model.check_.crps < 0.8 * model.check_.climatology
    spread = model.predict_dist([[0.5, 0.05, 0.5], [0.5, 0.95, 0.5]]).std()
    assert spread[1] > 1.5 * spread[0]


@pytest.mark.parametrize("kind", ["counts", "few values", "zeros", "skewed", "two"])
def test_quick_fits_suit_any_target(kind):
    rng = np.random.default_rng(1)
    smooth = np.exp(1.0 + X[:, 0] + rng.normal(size=len(X)))
    y = {
        "counts": rng.poisson(6.0 * np.exp(X[:, 0])).astype(float),
        "few values": np.clip(np.floor(2.0 * smooth / smooth.mean()), 0.0, 5.0),
        "zeros": np.where(rng.uniform(size=len(X)) < 0.3, 0.0, smooth),
        "skewed": smooth,
        "two": (X[:, 0] > rng.uniform(size=len(X))).astype(float),
    }[kind]
    dist = make("quick").fit(X, y).predict_dist(X)
    assert np.isfinite(dist.log_score(y)).all()
    assert abs(dist.mean().mean() - y.mean()) < 0.3 * y.std()
    if kind in ("counts", "few values", "two"):
        values = np.arange(-100.0, 20.0 * y.max() + 1.0)
        inside = dist.pmf(values[:, None]).sum(axis=0)
        np.testing.assert_allclose(inside, 1.0, atol=1e-3)
    if kind == "counts":
        beyond = dist.pmf(3.0 * y.max())
        assert ((beyond > 0.0) & (beyond < 1e-3)).all()


@pytest.fixture
def seen(monkeypatch):
    """Return a list that takes the folds of what is pooled from now on."""
    folds = []
    finish = pool.Pool._finish

    def note(self, sample):
        roads = [*self.roads.values()]
        finish(self, sample)
        # Those without weight as well.
        folds.extend(road.tasks_.folds for road in roads if hasattr(road, "judged_"))

    monkeypatch.setattr(pool.Pool, "_finish", note)
    return folds


def test_best_pools_fits_with_other_folds_that_keep_groups_together(seen):
    groups = np.arange(len(Y)) % 60
    model = fast("best", cv="auto").fit(X, Y, groups=groups)
    losses = model.report_.summary()["roads"]["losses"]
    assert {"default", *FURTHER} < set(losses)
    assert losses["default"] != losses["other folds"]
    tests = {tuple(test.tolist()) for folds in seen for _, test in folds}
    assert len(tests) > 10
    pairs = [pair for folds in seen for pair in folds]
    assert not any(np.isin(groups[a], groups[b]).any() for a, b in pairs)


def test_folds_of_the_users_are_those_of_all(seen):
    fast("best", cv=KFold(3)).fit(X, Y)
    tests = {tuple(test.tolist()) for folds in seen for _, test in folds}
    assert tests == {tuple(test.tolist()) for _, test in KFold(3).split(X)}


@pytest.mark.parametrize("groups", [None, np.arange(12) % 3])
@pytest.mark.parametrize("effort", ["quick", "best"])
def test_few_rows_or_groups_have_as_many_folds(effort, groups):
    n = 6 if groups is None else 12
    model = fast(effort, cv="auto").fit(X[:n], Y[:n], groups=groups)
    assert len(model.oof_distribution_) == n


@pytest.mark.parametrize("effort", ["quick", 1e-9])
def test_one_fold_alone_has_experts(effort):
    """No row has residuals that another fold could learn from."""
    cv = [(np.arange(150), np.arange(150, 240))]
    model = make(effort, cv=cv).fit(X, Y)
    assert model.check_.crps < 0.8 * model.check_.climatology
    with pytest.raises(ValueError, match='`center` must be "stack" where no fold'):
        make(effort, cv=cv, center=LinearRegression()).fit(X, Y)


def test_what_is_named_wins():
    road = FrameRoad("center", n_thresholds=4, strategy="joint")
    model = make("quick", roads=road, center=LinearRegression()).fit(X, Y)
    assert len(model.thresholds_) == 4
    assert set(model.report_.summary()["frame"]["weights"]) == {"LinearRegression_0"}
    # Also an expert, of whom it is asked which atom a row takes.
    zeros = np.where(X[:, 1] < 0.3, 0.0, np.abs(Y))
    model = make("quick", expert=LogisticRegression(), n_thresholds=4).fit(X, zeros)
    assert model.report_.target == "mixed"
    assert np.isfinite(model.predict_dist(X).log_score(zeros)).all()


def test_time_that_is_over_leaves_out_the_rest_and_says_so(monkeypatch):
    hurried, quick = make(1e-9).fit(X, Y), make("quick").fit(X, Y)
    roads = hurried.report_.summary()["roads"]
    assert roads["left out"] == ["default", *FURTHER]
    assert "no time for default, other folds" in str(hurried.report_)
    np.testing.assert_allclose(hurried.predict(X), quick.predict(X), rtol=1e-9)
    assert fast(1e6).fit(X, Y).report_.summary()["roads"]["left out"] == []
    allows = "localexpert.learn.settings.Effort.allows"
    monkeypatch.setattr(allows, lambda *_: False)
    roads = fast(1e6).fit(X, Y).report_.summary()["roads"]
    assert roads["left out"] == FURTHER
