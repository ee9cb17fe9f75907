"""Stacking: honest features, honest forecasts, and means that stay where they are."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor

from calibration import CalibrationWarning
from localexpert import LocalExpertRegressor, SharedBoosting, Stacker
from localexpert.data.folds import Sample, make_folds
from localexpert.data.table import Table
from tests.regressors import fast


def rmse(a, b):
    return float(np.sqrt(np.mean((np.asarray(a) - b) ** 2)))


def draw(n, seed=0, noise=0.3):
    """The mean bends where the centre of `fast`, a straight line, cannot follow."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, 3))
    y = 2.0 * X[:, 0] + 3.0 * X[:, 1] ** 2 + noise * rng.normal(size=n)
    return X, y


@pytest.fixture(scope="module")
def stacked():
    X, y = draw(500)
    return fast(stacker=Stacker(Ridge(), passthrough=True)).fit(X, y), X, y


class TestFeatures:
    def test_they_are_what_the_distributions_say(self):
        X, y = draw(300)
        frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(300) + 1000)
        model = fast(recalibrate=None).fit(frame, y)
        table, dist = model.oof_features(), model.oof_distribution_
        assert table.shape == (300, 3 + 7 + 9)
        assert list(table.columns) == list(model.get_feature_names_out())
        said = dist.mean(), dist.std(), dist.skew()
        np.testing.assert_array_equal(table.iloc[:, :3], np.column_stack(said))
        quantile = dist.quantiles([0.9])[:, 0]
        np.testing.assert_array_equal(table["quantile 0.9"], quantile)
        cuts = model.meta_features_.thresholds
        np.testing.assert_array_equal(table.iloc[:, 10:], dist.cdf_at(cuts))
        new = model.transform(frame[:5])
        assert new.index.tolist() == [1000, 1001, 1002, 1003, 1004]
        np.testing.assert_array_equal(new["mean"], model.predict(frame[:5]))

    @pytest.mark.parametrize(
        ("kind", "container"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)]
    )
    def test_in_the_container_that_is_asked_for(self, kind, container):
        X, y = draw(60)
        model = fast(frame=None, cv=2).fit(X, y)
        other = clone(model).set_output(transform=kind).fit(X, y)
        for table in (other.transform(X), clone(other).fit_transform(X, y)):
            assert type(table) is container
            assert list(table.columns) == list(model.get_feature_names_out())
        with config_context(transform_output=kind):
            assert type(model.transform(X)) is container

    def test_rows_held_out_by_a_recalibration_are_described_as_new_ones(self):
        X, y = draw(300)
        model = fast(recalibrate="conformal")
        table = model.fit_transform(X, y)
        rows = model.fitted_rows_
        held = np.setdiff1d(np.arange(300), rows)
        np.testing.assert_array_equal(table.iloc[rows], model.oof_features())
        np.testing.assert_array_equal(table.iloc[held], model.transform(X[held]))
        pd.testing.assert_frame_equal(model.fit_transform(X.tolist(), y), table)
        assert model.transform(X[:2].tolist()).index.tolist() == [0, 1]
        assert model.oof_features().index.tolist() == rows.tolist()


class TestForecasts:
    def test_predict_is_the_stackers_and_distributions_follow(self, stacked):
        model = stacked[0]
        new, y_new = draw(400, 1)
        forecast = model.predict(new)
        features = model.transform(new).to_numpy()
        said = model.stacker_.predict(features, model.reader_.read(new))
        np.testing.assert_array_equal(forecast, said)
        np.testing.assert_allclose(model.predict_dist(new).mean(), forecast, atol=1e-9)
        plain = model.predict_dist(new, recentre=False)
        np.testing.assert_array_equal(plain.mean(), features[:, 0])
        assert rmse(forecast, y_new) < rmse(plain.mean(), y_new) * 1.02
        oof = model.oof_distribution_.mean()
        np.testing.assert_allclose(oof, model.oof_prediction_, atol=1e-9)

    def test_out_of_fold_forecasts_come_from_the_other_folds(self, stacked):
        model, X, y = stacked
        features = model.oof_features().to_numpy()
        dense = model.reader_.read(X).dense(model.stacker_.dense_inputs_)
        inputs = np.column_stack([features, dense])
        for train, test in model.forecaster_.tasks_.folds:
            want = Ridge().fit(inputs[train], y[train]).predict(inputs[test])
            np.testing.assert_allclose(model.oof_prediction_[test], want)

    def test_auto_keeps_the_mean_where_nothing_is_left(self, rng):
        kept = []
        # By chance, one standard error is passed now and then.
        for _ in range(3):
            X = rng.normal(size=(300, 2))
            y = X[:, 0] + rng.normal(size=300)
            model, plain = fast(stacker="auto").fit(X, y), fast().fit(X, y)
            kept.append(model.stacker_.keeps_mean)
            same = np.array_equal(model.predict(X), plain.predict(X))
            same &= np.array_equal(model.oof_prediction_, plain.oof_prediction_)
            assert same == kept[-1]
        assert sum(kept) >= 2

    def test_auto_corrects_a_mean_that_is_wrong(self):
        X, y = draw(500)
        # A centre that knows nothing, and hardly any trees.
        weak = SharedBoosting(max_rounds=2, random_state=0)
        model = fast(center=DummyRegressor(), strategy=weak, stacker="auto").fit(X, y)
        assert not model.stacker_.keeps_mean
        new, y_new = draw(500, 1)
        plain = model.predict_dist(new, recentre=False).mean()
        assert rmse(model.predict(new), y_new) < 0.9 * rmse(plain, y_new)

    @pytest.mark.parametrize("unit", [1e-14, 1e40])
    def test_auto_corrects_alike_in_any_unit(self, unit):
        X, y = draw(200)
        folds = make_folds(200, 2, random_state=0)

        def stack(unit):
            sample = Sample(Table.of(X), unit * y, np.ones(200), folds)
            mean = unit * 2.0 * X[:, :1]
            stacker = Stacker().fit(mean, sample)
            assert not stacker.keeps_mean
            return [stacker.oof_ / unit, stacker.predict(mean, sample.table) / unit]

        np.testing.assert_allclose(stack(unit), stack(1.0), atol=1e-6)

    def test_auto_may_train_on_one_row(self):
        X, y = draw(2)
        model = LocalExpertRegressor(effort="quick", stacker="auto", random_state=0)
        with pytest.warns(CalibrationWarning, match="2 rows tell little"):
            assert np.isfinite(model.fit(X, y).predict(X)).all()

    @pytest.mark.parametrize("recalibrate", ["pit", "conformal"])
    @pytest.mark.parametrize("kind", ["smooth", "discrete", "mixed", "bounded"])
    def test_every_target_and_recalibration(self, kind, recalibrate):
        X, y = draw(300)
        y = {
            "smooth": y,
            "discrete": np.clip(np.round(y), 0.0, 3.0),
            "mixed": np.where(X[:, 2] > 0.3, 0.0, y),
            "bounded": np.abs(y),
        }[kind]
        bounds = (0.0, np.inf) if kind == "bounded" else None
        model = fast(stacker=Ridge(), recalibrate=recalibrate, bounds=bounds).fit(X, y)
        dist, forecast = model.predict_dist(X), model.predict(X)
        assert np.isfinite(dist.crps(y)).all()
        low, high = dist.law.support
        assert low <= forecast.min() <= forecast.max() <= high
        assert rmse(dist.mean(), forecast) < 0.3 * y.std()
        assert model.oof_features().columns.is_unique

    def test_weights_reach_the_stacker(self):
        X, y = draw(200)
        weight = np.where(X[:, 0] > 0.0, 5.0, 0.1)
        model = fast(stacker=Ridge()).fit(X, y, sample_weight=weight)
        features = model.oof_features().to_numpy()
        expected = Ridge().fit(features, y, sample_weight=weight)
        np.testing.assert_allclose(model.stacker_.estimator_.coef_, expected.coef_)
        with pytest.warns(CalibrationWarning, match=r"`stacker`: KNeighbors.*takes"):
            fast(stacker=KNeighborsRegressor()).fit(X, y, sample_weight=weight)


def test_a_stacked_forecast_of_a_target_with_zeros_is_a_law():
    """A curve whose coordinate rounds to the bound left gaps of 0."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200, 2))
    spread = (0.2 + X[:, 0]) * rng.normal(size=200)
    y = np.maximum(3.0 * X[:, 0] + spread - 1.0, 0.0)
    options = {"strategy": "joint", "frame": None, "n_thresholds": 5, "cv": 3}
    for own in ({"effort": "quick"}, options | {"recalibrate": "conformal"}):
        model = LocalExpertRegressor(stacker=Ridge(), random_state=0, **own).fit(X, y)
        assert np.isfinite(model.predict_dist(X).crps(1.0)).all()
        assert np.isfinite(model.check_.crps)
