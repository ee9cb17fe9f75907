"""Stacking: honest features, honest forecasts, and means that stay where they are."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

from calibration import CalibrationWarning
from localexpert import LocalExpertRegressor, Stacker
from localexpert.experts import SharedBoosting


def fast(**parameters):
    shared = SharedBoosting(max_rounds=60, random_state=0)
    defaults = {"center": LinearRegression(), "strategy": shared, "random_state": 0}
    return LocalExpertRegressor(**{**defaults, "n_thresholds": 9, **parameters})


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
    def test_they_are_what_the_out_of_fold_distributions_say(self):
        X, y = draw(300)
        model = fast().fit(X, y)
        table, dist = model.oof_features(), model.oof_distribution_
        assert table.shape == (300, 3 + 7 + 9)
        assert list(table.columns) == list(model.get_feature_names_out())
        np.testing.assert_array_equal(table["mean"], dist.mean())
        np.testing.assert_array_equal(table["std"], dist.std())
        np.testing.assert_array_equal(table["skew"], dist.skew())
        np.testing.assert_array_equal(
            table["quantile 0.9"], dist.quantiles([0.9])[:, 0]
        )
        cuts = model.meta_features_.thresholds
        np.testing.assert_array_equal(table.iloc[:, 10:], dist.cdf_at(cuts))

    def test_of_new_rows_they_are_those_of_predict_dist(self):
        X, y = draw(300)
        frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(300) + 1000)
        model = fast().fit(frame, y)
        table = model.transform(frame[:5])
        assert table.index.tolist() == [1000, 1001, 1002, 1003, 1004]
        np.testing.assert_array_equal(table["mean"], model.predict(frame[:5]))

    def test_without_a_frame_probabilities_are_those_of_the_experts(self):
        X, y = draw(400)
        model = fast(frame=None, smoothing="pchip").fit(X, y)
        cuts = model.meta_features_.thresholds
        np.testing.assert_array_equal(cuts, model.thresholds_)
        p = model.oof_features().iloc[:, 10:].to_numpy()
        assert np.abs(p - np.sort(model.oof_probabilities_, axis=1)).mean() < 0.01

    @pytest.mark.parametrize("kind", ["discrete", "mixed", "constant"])
    def test_targets_of_every_kind(self, kind):
        X, y = draw(300)
        y = {
            "discrete": np.clip(np.round(y), 0.0, 3.0),
            "mixed": np.where(X[:, 2] > 0.3, 0.0, y),
            "constant": np.ones(300),
        }[kind]
        model = fast()
        if kind == "constant":
            with pytest.warns(UserWarning, match="every forecast is that value"):
                model.fit(X, y)
        else:
            model.fit(X, y)
        table = model.oof_features()
        assert np.isfinite(table.to_numpy()).all()
        assert list(table.columns) == list(model.transform(X[:2]).columns)
        assert table.columns.is_unique

    def test_a_pipeline_learns_from_out_of_fold_features(self):
        X, y = draw(300)
        model = fast()
        pipeline = make_pipeline(model, Ridge()).fit(X, y)
        table = clone(model).fit(X, y).oof_features()
        by_hand = Ridge().fit(table, y)
        np.testing.assert_allclose(pipeline[-1].coef_, by_hand.coef_)
        new, _ = draw(10, 1)
        expected = by_hand.predict(pipeline[0].transform(new))
        np.testing.assert_allclose(pipeline.predict(new), expected)

    def test_rows_held_out_by_a_recalibration_are_described_as_new_ones(self):
        X, y = draw(300)
        model = fast(recalibrate="conformal")
        table = model.fit_transform(X, y)
        assert len(table) == 300
        rows = model.fitted_rows_
        held = np.setdiff1d(np.arange(300), rows)
        np.testing.assert_array_equal(table.iloc[rows], model.oof_features())
        np.testing.assert_array_equal(table.iloc[held], model.transform(X[held]))
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
        np.testing.assert_allclose(
            model.oof_distribution_.mean(), model.oof_prediction_, atol=1e-9
        )

    def test_out_of_fold_forecasts_come_from_the_other_folds(self, stacked):
        model, X, y = stacked
        features = model.oof_features().to_numpy()
        dense = model.reader_.read(X).dense(model.stacker_.dense_inputs_)
        inputs = np.column_stack([features, dense])
        folds = model.forecaster_.tasks_.folds
        for train, test in folds:
            one = Ridge().fit(inputs[train], y[train])
            np.testing.assert_allclose(
                model.oof_prediction_[test], one.predict(inputs[test])
            )

    @pytest.mark.slow
    def test_out_of_fold_error_is_that_of_new_rows(self):
        """Honest: over draws the two errors differ by noise alone."""
        gaps = []
        for seed in range(8):
            X, y = draw(400, seed, noise=2.0)
            new, y_new = draw(4000, 100 + seed, noise=2.0)
            model = fast(stacker=Stacker(RidgeCV(), passthrough=True)).fit(X, y)
            gaps.append(
                np.log(rmse(model.oof_prediction_, y) / rmse(model.predict(new), y_new))
            )
        mean, error = np.mean(gaps), np.std(gaps, ddof=1) / np.sqrt(len(gaps))
        # Never optimistic. New rows get the mean of all folds' models, which is a
        # little better than one of them.
        assert -2.5 * error < mean < 0.06

    def test_auto_keeps_the_mean_where_nothing_is_left(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 2))
        y = X[:, 0] + rng.normal(size=300)
        model, plain = fast(stacker="auto").fit(X, y), fast().fit(X, y)
        assert model.stacker_.keeps_mean
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))
        np.testing.assert_array_equal(model.oof_prediction_, plain.oof_prediction_)
        np.testing.assert_array_equal(
            plain.oof_prediction_, plain.oof_distribution_.mean()
        )

    def test_auto_corrects_a_mean_that_is_wrong(self):
        X, y = draw(500)
        # A centre that knows nothing, and hardly any trees.
        weak = SharedBoosting(max_rounds=2, random_state=0)
        model = fast(center=DummyRegressor(), strategy=weak, stacker="auto").fit(X, y)
        assert not model.stacker_.keeps_mean
        new, y_new = draw(500, 1)
        plain = model.predict_dist(new, recentre=False).mean()
        assert rmse(model.predict(new), y_new) < 0.9 * rmse(plain, y_new)

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
        model = fast(
            stacker=Ridge(),
            recalibrate=recalibrate,
            bounds=(0.0, np.inf) if kind == "bounded" else None,
        ).fit(X, y)
        dist, forecast = model.predict_dist(X), model.predict(X)
        assert np.isfinite(dist.crps(y)).all()
        low, high = dist.law.support
        assert low <= forecast.min() <= forecast.max() <= high
        assert rmse(dist.mean(), forecast) < 0.3 * y.std()
        assert len(model.oof_prediction_) == len(model.fitted_rows_)

    def test_weights_reach_the_stacker_and_a_weight_is_a_repetition(self):
        X, y = draw(200)
        weight = np.where(X[:, 0] > 0.0, 5.0, 0.1)
        model = fast(stacker=Ridge()).fit(X, y, sample_weight=weight)
        features = model.oof_features().to_numpy()
        expected = Ridge().fit(features, y, sample_weight=weight)
        np.testing.assert_allclose(model.stacker_.estimator_.coef_, expected.coef_)
        with pytest.warns(
            CalibrationWarning, match=r"`stacker`: KNeighborsRegr.*takes"
        ):
            fast(stacker=KNeighborsRegressor()).fit(X, y, sample_weight=weight)

    def test_clone_pickle_and_determinism(self, stacked):
        model, X, y = stacked
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        other = clone(model).set_params(n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert clone(model).get_params()["stacker__estimator__alpha"] == 1.0

    def test_categories_and_gaps_pass_through(self):
        X, y = draw(300)
        frame = pd.DataFrame(X, columns=["a", "b", "c"])
        frame["kind"] = np.where(X[:, 0] > 0.0, "high", "low")
        frame.loc[3, "a"] = np.nan
        numbers = make_column_transformer(("passthrough", ["a", "b"]))
        center = make_pipeline(numbers, DecisionTreeRegressor(max_depth=3))
        for stacker in (Stacker(Ridge(), passthrough=True), "auto"):
            model = fast(center=center, stacker=stacker).fit(frame, y)
            assert np.isfinite(model.predict(frame)).all()


@pytest.mark.parametrize(
    ("stacker", "error", "message"),
    [
        ("best", ValueError, 'must be "auto", a regressor, a Stacker or None, got'),
        (3, TypeError, 'must be "auto", a regressor, a Stacker or None, got 3'),
        (Ridge, TypeError, "a Stacker or None, got <class"),
        (Stacker("mean"), ValueError, "a Stacker or None, got 'mean'"),
    ],
)
def test_what_is_no_stacker(stacker, error, message):
    X, y = draw(60)
    with pytest.raises(error, match=message):
        fast(stacker=stacker).fit(X, y)
