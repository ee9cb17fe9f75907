"""Roads that compete: which are tried, what they may be, what their pool is worth."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from localexpert import (
    CellRoad,
    DiscreteRoad,
    FrameRoad,
    GridRoad,
    JointForest,
    LocalExpertRegressor,
    Transformed,
    explain_boosting,
)
from localexpert.law.transform import ExpLess, LogOf

FOREST = JointForest(30, random_state=0)
QUICK = FrameRoad(strategy=FOREST, n_thresholds=9)
GRID = GridRoad(20, strategy=FOREST)


def make(roads="auto", **parameters):
    parameters = {"center": LinearRegression(), "cv": 3, **parameters}
    return LocalExpertRegressor(roads=roads, random_state=0, **parameters)


def draw(rng, n=150):
    X = rng.uniform(size=(n, 3))
    return X, 3.0 * X[:, 0] + np.sin(5.0 * X[:, 1])


def tried(model):
    """Return the losses of the roads that a fit tried."""
    losses = model.report_.choices["roads"]["losses"]
    return {name: loss for name, loss in losses.items() if name not in KINDS}


KINDS = ("linear", "probit", "residuals", "climatology")


class TestWhichCompete:
    def test_smooth_targets(self, rng):
        X, mean = draw(rng)
        assert set(tried(make().fit(X, mean + rng.normal(size=150)))) == {
            "frame",
            "grid",
        }

    def test_skewed_positive_targets(self, rng):
        X, mean = draw(rng)
        model = make().fit(X, np.exp(mean + rng.normal(size=150)))
        assert set(tried(model)) == {"frame", "grid", "log"}

    def test_discrete_targets(self, rng):
        X, mean = draw(rng)
        assert set(tried(make().fit(X, np.round(2.0 * mean)))) == {"discrete", "cells"}
        counts = rng.poisson(np.exp(1.4 + 0.4 * mean))
        assert set(tried(make().fit(X, counts))) == {"cells"}
        heaped = np.where(rng.uniform(size=150) < 0.5, 5 * (counts // 5), counts)
        assert set(tried(make().fit(X, heaped))) == {"discrete", "cells"}

    def test_the_rest_beside_atoms(self, rng):
        X, mean = draw(rng)
        y = np.where(rng.uniform(size=150) < 0.3, 0.0, np.exp(mean))
        model = make().fit(X, y)
        assert model.report_.target == "mixed"
        assert set(tried(model)) == {"mixed", "smooth"}
        within = model.report_.choices["roads"]["within"]
        assert {"frame", "log"} <= set(within["losses"])
        assert (model.predict_dist(X).cdf(-1e-9) == 0.0).all()

    @pytest.mark.parametrize(
        "named",
        [
            {"frame": "center"},
            {"strategy": FOREST},
            {"n_thresholds": 9},
            {"thresholds": [0.5, 1.5]},
        ],
    )
    def test_named_parts_are_one_road(self, named, rng):
        X, mean = draw(rng)
        model = make(**named).fit(X, mean)
        assert "roads" not in model.report_.choices

    def test_nothing_to_learn(self, rng):
        """Roads without experts are pooled in where they are as good as others."""
        X, new = rng.normal(size=(500, 20)), rng.normal(size=(2000, 20))
        y = rng.gamma(2.0, size=500)
        model = make(center="stack").fit(X, y)
        assert {"residuals", "climatology"} <= set(
            model.report_.choices["roads"]["losses"]
        )
        own = np.sort(y)
        came = rng.gamma(2.0, size=2000)
        climatology = np.abs(came[:, None] - own).mean(axis=1) - (
            np.abs(own[:, None] - own).mean() / 2.0
        )
        assert model.predict_dist(new).crps(came).mean() < 1.01 * climatology.mean()

    def test_those_of_a_list(self, rng):
        X, mean = draw(rng)
        model = make([QUICK, GRID, GridRoad(10, strategy=FOREST)]).fit(X, mean)
        assert list(tried(model)) == ["frame", "grid", "grid 2"]


class TestForecasts:
    def test_values_never_met_get_little(self, rng):
        """They are many: a row of weight each would put a tail far out."""
        X, mean = draw(rng)
        y = np.clip(np.round(3.0 * mean), 2.0, 9.0)
        y[y.argmax()] = 12.0
        dist = make(CellRoad(QUICK)).fit(X, y).oof_distribution_
        unmet = ~np.isin(dist.atoms, y)
        assert unmet.sum() > 5
        assert dist.masses[:, dist.atoms > 13.0].sum(axis=1).max() < 0.01
        assert dist.masses.min() > 0.0

    def test_cells_beat_questions_where_y_is_nearly_known(self, rng):
        X = rng.uniform(size=(600, 2))
        y = np.round(20.0 * X[:, 0] + 10.0 * X[:, 1]) / 20.0
        roads = [DiscreteRoad(FOREST), CellRoad(QUICK)]
        model = make(roads).fit(X, y)
        losses = tried(model)
        assert losses["cells"] < 0.5 * losses["discrete"]
        assert model.report_.choices["roads"]["weights"]["cells"] > 0.8

    def test_a_pool_is_no_worse_than_its_roads(self, rng):
        X, mean = draw(rng, 400)
        y = mean + (0.1 + X[:, 2]) * rng.normal(size=400)
        model = make([QUICK, GRID]).fit(X[:300], y[:300])
        alone = [make(road).fit(X[:300], y[:300]) for road in (QUICK, GRID)]
        ours, *others = (
            one.predict_dist(X[300:]).crps(y[300:]).mean() for one in (model, *alone)
        )
        assert ours < 1.02 * min(others)

    def test_one_road_is_what_its_parts_are(self, rng):
        X, mean = draw(rng)
        y = mean + rng.normal(size=150)
        one = make(QUICK).fit(X, y)
        same = make(strategy=FOREST, n_thresholds=9).fit(X, y)
        np.testing.assert_array_equal(one.predict(X), same.predict(X))

    def test_weights_sum_to_one_and_name_the_heaviest(self, rng):
        X, mean = draw(rng)
        model = make([QUICK, GRID]).fit(X, mean + rng.normal(size=150))
        weights = model.report_.choices["roads"]["weights"]
        assert sum(weights.values()) == pytest.approx(1.0)
        heaviest = max(weights, key=weights.get)
        n_asked = {"frame": 9, "grid": 20}[heaviest]
        assert model.expert_points(X)[0].shape == (150, n_asked)
        assert model.thresholds_.shape == (n_asked,)
        assert model.oof_probabilities_.shape == (150, n_asked)

    def test_roads_without_weight_are_forgotten(self, rng):
        X, mean = draw(rng)
        pool = make([QUICK, GRID]).fit(X, mean + rng.normal(size=150)).forecaster_
        assert set(pool.losses_) >= {"frame", "grid"}
        assert pool.roads.keys() == pool.fitted_.keys() == pool.weights_.keys()

    def test_bounds_hold_for_every_road(self, rng):
        X, _ = draw(rng, 400)
        y = np.exp(1.5 * rng.normal(size=400))
        for road in (QUICK, GRID, Transformed(QUICK)):
            model = make(road).fit(X, y)
            assert model.bounds_ == (0.0, np.inf)
            assert (model.predict_dist(X).cdf(0.0) == 0.0).all()
        assert (make(QUICK, bounds=None).fit(X, y).predict_dist(X).cdf(0.0) > 0.0).any()

    def test_moments_of_a_logarithm_are_finite(self, rng):
        X, mean = draw(rng)
        y = np.exp(mean + rng.standard_t(2.0, size=150))
        dist = make(Transformed(QUICK)).fit(X, y).predict_dist(X)
        assert np.isfinite(dist.kurtosis()).all()

    def test_the_logarithm_makes_nothing_of_what_was_never_seen(self, rng):
        """Its normal tails may be as wide as they are: the mean must not be theirs."""
        X, _ = draw(rng)
        y = np.exp(7.0 + 2.0 * X[:, 0] + (0.05 + 2.0 * X[:, 1]) * rng.normal(size=150))
        log, exp = LogOf(0.0, y.max()), ExpLess(0.0, y.max())
        model = make(Transformed(QUICK, log, exp)).fit(X, y)
        dist = model.predict_dist(rng.uniform(size=(300, 3)))
        assert dist.mean().max() < y.max()
        assert dist.quantiles(1.0 - 1e-6).max() < 20.0 * y.max()

    def test_a_function_of_the_users(self, rng):
        X, mean = draw(rng)
        y = (mean + 2.0) ** 2
        model = make(Transformed(QUICK, np.sqrt, np.square)).fit(X, y)
        assert model.predict_dist(X).crps(y).mean() < 0.2 * y.std()
        thresholds, _ = model.expert_points(X)
        assert (np.diff(thresholds, axis=1) > 0.0).all()
        assert y.min() < np.median(thresholds) < y.max()


class TestObjects:
    def test_experts_of_the_heaviest_are_explained(self, rng):
        X, mean = draw(rng)
        model = make([FrameRoad(strategy="shared", n_thresholds=5)]).fit(X, mean)
        told = explain_boosting(model, X[:2], X, threshold=0.0)
        assert told.values.shape[0] == 2


class TestRefusals:
    @pytest.mark.parametrize(
        ("roads", "message"),
        [
            ("frame", "must be \"auto\", a Road or a list of them, got 'frame'"),
            ([], "must hold at least one road, got none"),
            ([3], "must hold roads such as FrameRoad"),
            (DiscreteRoad(), "must fit the target, got a road to few values"),
            (CellRoad(), "must fit the target, got a road to few values"),
            (Transformed(), "`func` must be finite on y, got nan at -"),
            (
                Transformed(func=np.negative, inverse=np.negative),
                "`func` must increase on y",
            ),
            (
                Transformed(func=np.cbrt, inverse=np.exp),
                "`inverse` must undo `func`",
            ),
        ],
    )
    def test_before_anything_is_fitted(self, roads, message, rng):
        X, mean = draw(rng)
        model = make(roads, center=Refusing())
        with pytest.raises((TypeError, ValueError), match=message):
            model.fit(X, mean - mean.mean())

    @pytest.mark.parametrize(
        ("road", "wrong", "message"),
        [
            (FrameRoad, "sideways", r"`frame` must be .* got 'sideways'"),
            (GridRoad, 0, "`n_thresholds` must be at least 1, got 0"),
            (DiscreteRoad, "tree", "`strategy` must be .* got 'tree'"),
        ],
    )
    def test_parts_when_the_record_is_made(self, road, wrong, message):
        with pytest.raises(ValueError, match=message):
            road(wrong)

    @pytest.mark.parametrize("around", [CellRoad, Transformed])
    def test_steps_that_do_not_fit_the_laws_they_read(self, around):
        for wrong in (DiscreteRoad(), CellRoad(), 3):
            with pytest.raises(TypeError, match="`road` must be a road to smooth"):
                around(wrong)

    @pytest.mark.parametrize(
        "named",
        [
            {"frame": None},
            {"n_thresholds": 9},
            {"strategy": "joint"},
            {"expert": LinearRegression()},
        ],
    )
    def test_roads_beside_the_parts_of_one(self, named, rng):
        X, mean = draw(rng)
        if "expert" in named:
            from sklearn.linear_model import LogisticRegression

            named = {"expert": LogisticRegression()}
        with pytest.raises(ValueError, match='`roads` must be "auto" where'):
            make([FrameRoad()], **named).fit(X, mean)


class Refusing(LinearRegression):
    """A centre that must never be fitted."""

    def fit(self, X, y, sample_weight=None):
        """Fail."""
        del X, y, sample_weight
        raise AssertionError
