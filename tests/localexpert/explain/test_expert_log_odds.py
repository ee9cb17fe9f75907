"""Contributions read from the trees equal enumeration of what the trees say."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from localexpert import (
    LocalExpertRegressor,
    PredictiveDistribution,
    SharedBoosting,
    make_folds,
)
from localexpert.explain import explain_boosting, explain_forecast


def make_table(rng, n=300):
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    X["town"] = pd.Categorical(rng.choice(["ant", "bee", "cat"], n))
    X.loc[rng.random(n) < 0.1, "b"] = np.nan
    y = X["a"] * (1.0 + (X["town"] == "bee")) + X["b"].fillna(2.0) ** 2 + X["c"]
    return X, y.to_numpy() + rng.normal(size=n)


def fit_experts(X, y, n_folds=3):
    cuts = np.quantile(y, [0.1, 0.3, 0.5, 0.7, 0.9])
    experts = SharedBoosting(max_rounds=40, random_state=0)
    return experts.fit(X, y, cuts, make_folds(len(y), 3, random_state=0)[:n_folds])


class LogOdds:
    """Stands for a model whose forecasts have the expert's log-odds for medians."""

    def __init__(self, experts, place):
        self.experts, self.place = experts, place

    def predict_dist(self, X):
        log_odds = logit(self.experts.predict(X)[:, self.place])
        return PredictiveDistribution.from_scipy(norm(log_odds, 1.0))


@pytest.mark.parametrize("groups", [None, {"both": ["b", "town"]}])
def test_equals_enumeration_of_the_experts_own_log_odds(rng, groups):
    X, y = make_table(rng)
    experts = fit_experts(X, y, 1)  # one model: its log-odds are the expert's
    rows, background = X[:3], X[3:18]
    threshold = float(experts.thresholds_[3])
    told = explain_boosting(
        experts, rows, background, threshold=threshold, groups=groups
    )
    truth = explain_forecast(
        LogOdds(experts, 3),
        rows,
        background,
        of="median",
        groups=groups,
        method="enumerate",
    )
    assert told.feature_names == truth.feature_names
    np.testing.assert_allclose(told.values, truth.values, atol=1e-9)
    np.testing.assert_allclose(told.total, truth.total, atol=1e-9)
    assert told.base == pytest.approx(truth.base, abs=1e-9)
    assert (told.standard_errors == 0.0).all()
    assert np.abs(told.values).max() > 0.3


def test_models_of_folds_are_averaged(rng):
    X, y = make_table(rng)
    experts = fit_experts(X, y)
    assert len(experts.trees_) == 3
    options = {"threshold": float(experts.thresholds_[2])}
    told = explain_boosting(experts, X[:4], X[4:40], **options)
    np.testing.assert_allclose(
        told.base + told.values.sum(axis=1), told.total, atol=1e-9
    )
    trees, starts = experts.trees_, experts.starts_
    values = 0.0
    for k in range(3):
        experts.trees_, experts.starts_ = trees[k : k + 1], starts[k : k + 1]
        values += explain_boosting(experts, X[:4], X[4:40], **options).values / 3
    np.testing.assert_allclose(told.values, values, atol=1e-12)


def fast(**parameters):
    shared = SharedBoosting(max_rounds=30, random_state=0)
    options = {"strategy": shared, "center": LinearRegression(), "n_thresholds": 7}
    return LocalExpertRegressor(random_state=0, **{**options, **parameters})


def test_in_a_frame_the_centre_and_the_scale_are_features_too(rng):
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + np.exp(X[:, 1]) * rng.normal(size=300)
    model = fast(frame="standardize").fit(X, y)
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    named = fast(frame="standardize").fit(frame, y)
    told = explain_boosting(model, X[:2], X[2:30], threshold=0.4)
    same = explain_boosting(named, frame[:2], frame[2:30], threshold=0.4)
    assert same.feature_names == ("u", "v", "w", "center(x)", "log scale(x)")
    assert told.feature_names == ("x0", "x1", "x2", *same.feature_names[3:])
    np.testing.assert_allclose(told.values, same.values, atol=1e-12)
    np.testing.assert_allclose(
        told.base + told.values.sum(axis=1), told.total, atol=1e-9
    )


def test_discrete_targets_have_an_expert_in_units_of_y(rng):
    X = rng.normal(size=(300, 2))
    y = np.clip(np.round(X[:, 0] + 2.0), 0.0, 4.0)
    model = fast().fit(X, y)
    told = explain_boosting(model, X[:3], X, threshold=1.5, random_state=0)
    assert told.of == "log-odds of r <= 1.5, boosted expert"
    size = np.abs(told.values)
    assert (size[:, 0] > 5.0 * size[:, 1]).all()


class TestRefusals:
    def test_models_without_a_boosted_expert(self, rng):
        X = rng.normal(size=(200, 2))
        y = X[:, 0] + rng.normal(size=200)
        model = fast(
            expert=LogisticRegression(), strategy="independent", frame=None, cv=2
        ).fit(X, y)
        with pytest.raises(
            ValueError, match=r"boosted expert .* got \['independent'\]"
        ):
            explain_boosting(model, X[:1], X, threshold=0.0)
        y[:80] = 0.0
        with pytest.raises(ValueError, match="got BesideAtoms"):
            explain_boosting(fast().fit(X, y), X[:1], X, threshold=1.0)

    def test_bad_arguments(self, rng):
        X, y = make_table(rng, 120)
        experts = fit_experts(X, y)
        with pytest.raises(NotFittedError, match="not fitted"):
            explain_boosting(SharedBoosting(), X, X, threshold=0.0)
        with pytest.raises(ValueError, match="`threshold` must lie in"):
            explain_boosting(experts, X, X, threshold=np.inf)
        with pytest.raises(ValueError, match="`X` must have 4 columns as in `fit`"):
            explain_boosting(experts, X[["a", "b"]], X[["a", "b"]], threshold=0.0)
        with pytest.raises(ValueError, match="`background` must have the columns of"):
            explain_boosting(experts, X, X[["a", "b"]], threshold=0.0)
