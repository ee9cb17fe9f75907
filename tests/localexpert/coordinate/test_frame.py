"""The frame: honest centre and scale, screening, weights."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from localexpert.coordinate.centre import CentreStack, marginal_crps
from localexpert.coordinate.frame import Frame
from localexpert.data.blend import blend_weights, robust_weights
from tests.regressors import sample_of


@pytest.fixture
def data(rng):
    X = rng.uniform(size=(500, 2))
    y = 4.0 * X[:, 0] + (0.1 + X[:, 1]) * rng.normal(size=500)
    return sample_of(X, y)


def linear():
    return CentreStack(LinearRegression())


def test_given_regressors_are_cross_fitted(data):
    X, y, fitted = data.table.given, data.y, linear().fit(data)
    for train, test in data.folds:
        by_hand = LinearRegression().fit(X[train], y[train]).predict(X[test])
        np.testing.assert_allclose(fitted.oof_[test], by_hand)
    means = [LinearRegression().fit(X[t], y[t]).predict(X) for t, _ in data.folds]
    np.testing.assert_allclose(fitted.predict(data.table), np.mean(means, axis=0))
    assert fitted.ambiguity_ == pytest.approx(np.var(means, axis=0).mean())


def test_scale_follows_the_noise_and_has_a_floor(data):
    X, frame = data.table.codes, Frame("standardize", linear()).fit(data)
    assert np.corrcoef(frame.oof_scale_, X[:, 1])[0, 1] > 0.7
    quiet = np.where(X[:, 0] < 0.5, 0.0, data.y)
    still = Frame("standardize", linear()).fit(replace(data, y=quiet))
    spread = np.std(quiet - still.oof_center_)
    assert still.oof_scale_.min() >= 0.019 * spread
    assert np.isfinite(still.oof_coordinate_).all()


def test_scale_finds_the_noise_of_a_category_in_no_order(rng):
    kind, x = rng.integers(0, 15, 600), rng.normal(size=600)
    sd = np.exp(rng.normal(size=15))
    X = pd.DataFrame({"x": x, "kind": [f"k{j:02d}" for j in kind]})
    sample = sample_of(X, x + sd[kind] * rng.normal(size=600))
    own = make_pipeline(make_column_transformer(("passthrough", ["x"])), Ridge())
    frame = Frame("standardize", CentreStack(own)).fit(sample)
    assert np.corrcoef(np.log(frame.oof_scale_), np.log(sd[kind]))[0, 1] > 0.85


def test_new_rows_are_credited_with_the_mean_of_the_models(data):
    frame = Frame("standardize", CentreStack(KNeighborsRegressor(2))).fit(data)
    gain = frame.centre_.ambiguity_ / np.mean((data.y - frame.oof_center_) ** 2)
    assert frame.nearness_ == pytest.approx(np.sqrt(1 - gain))
    assert 0.7 < frame.nearness_ < 0.99
    noise = frame.scale_.boosters_.predict_each(data.table.codes).var(axis=0)
    assert frame.shrinkage_ == pytest.approx(frame.nearness_ * np.exp(-noise.mean()))
    assert frame.shrinkage_ < frame.nearness_


@pytest.mark.parametrize("kind", [None, "center", "standardize"])
def test_kinds(data, kind):
    frame, some = Frame(kind, linear()).fit(data), data.table.take(np.arange(5))
    center, scale = frame.locate(some)
    assert (kind is None) == (not center.any() and (scale == 1.0).all())
    assert (kind == "standardize") == (len(np.unique(scale)) > 1)
    located = frame.add_features(some, center, scale)
    shape = (5, 2) if kind is None else (5, 4)
    assert located.codes.shape == located.given.shape == shape


class TestAuto:
    def fit(self, y, X):
        return Frame("auto", linear()).fit(sample_of(X, y))

    def test_takes_the_scale_where_the_noise_varies(self, rng):
        X = rng.uniform(size=(800, 2))
        noise = (0.05 + 3.0 * X[:, 1] ** 2) * rng.normal(size=800)
        frame = self.fit(4.0 * X[:, 0] + noise, X)
        assert frame.kind_ == "standardize"
        assert min(frame.losses_, key=frame.losses_.get) == "standardize"
        assert set(frame.losses_) == {"None", "center", "standardize"}

    def test_takes_the_target_itself_where_no_centre_helps(self, rng):
        X = rng.uniform(size=(60, 20))
        assert self.fit(rng.normal(size=60), X).kind_ is None

    def test_losses_are_the_crps_of_the_marginal(self, rng):
        r, scale = np.round(rng.normal(size=40), 1), rng.uniform(0.5, 2.0, 40)
        w = rng.integers(1, 4, 40).astype(float)
        distance = np.abs(r[:, None] - r) @ w / w.sum()
        spread = w @ distance / w.sum()
        expected = np.average(scale * (distance - 0.5 * spread), weights=w)
        assert marginal_crps(r, scale, w) == pytest.approx(expected)


def test_weights_are_means_of_those_by_squares_and_of_robust_ones(rng):
    X = rng.uniform(size=(600, 2))
    y = X[:, 0] + rng.normal(size=600)
    # Good but for a few rows, and never far off.
    y[::60] += 40.0
    sample, w = sample_of(X, y), np.ones(600)
    regressors = [LinearRegression(), KNeighborsRegressor(40)]
    fitted = CentreStack(regressors).fit(sample)
    oof = {
        f"{type(r).__name__}_{j}": CentreStack(r).fit(sample).oof_
        for j, r in enumerate(regressors)
    }

    def shares(rows):
        some = {name: answers[rows] for name, answers in oof.items()}
        rules = (blend_weights, robust_weights)
        first, second = (rule(some, y[rows], w[rows], least=0.05) for rule in rules)
        assert first != second
        means = {n: (first.get(n, 0.0) + second.get(n, 0.0)) / 2.0 for n in oof}
        held = {n: x for n, x in means.items() if x >= 0.05}
        return {n: x / sum(held.values()) for n, x in held.items()}

    each = [CentreStack(r).fit(sample).predict_each(sample.table) for r in regressors]
    found = [shares(train) for train, _ in sample.folds]
    means = {n: np.mean([weights[n] for weights in found]) for n in oof}
    assert fitted.weights_ == pytest.approx(means)
    for k, (_, test) in enumerate(sample.folds):
        # A fold's weights come from the rows of the others, also for new rows.
        blend = sum(x * oof[name][test] for name, x in found[k].items())
        np.testing.assert_allclose(fitted.oof_[test], blend)
        blend = sum(x * y[k] for x, y in zip(found[k].values(), each, strict=True))
        np.testing.assert_allclose(fitted.predict_each(sample.table)[k], blend)
