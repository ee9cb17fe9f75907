"""Ensembles end to end, and pools of distributions at hand, against formulas."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor

from localexpert import LocalExpertRegressor, PredictiveDistribution, crps_score
from localexpert.ensemble import DistributionEnsemble, pool, pool_weights
from localexpert.experts import JointForest
from tests.forecasts import of_values


def quick(**parameters):
    """A regressor that fits in a tenth of a second."""
    options = {"strategy": JointForest(20, random_state=0), "n_thresholds": 7, "cv": 3}
    options |= {"center": LinearRegression(), **parameters}
    return LocalExpertRegressor(**options)


def members():
    return [
        ("center", quick(frame="center")),
        ("standardize", quick(frame="standardize")),
        ("tree", quick(center=DecisionTreeRegressor(max_depth=4, random_state=0))),
    ]


def make_data(n=300):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 2))
    return X, 3.0 * X[:, 0] + (0.2 + X[:, 1]) * (rng.gamma(4.0, size=n) / 2.0 - 2.0)


class TestFitted:
    def test_weights_and_losses(self):
        model = DistributionEnsemble(members(), random_state=0).fit(*make_data())
        names, losses = [name for name, _ in members()], model.losses_
        assert list(model.weights_) == names
        assert sum(model.weights_.values()) == pytest.approx(1.0)
        assert min(model.weights_.values()) >= 0.0
        assert list(losses) == [*names, "linear", "probit"]
        assert losses[model.pool_] == min(losses["linear"], losses["probit"])
        assert losses[model.pool_] < 1.005 * min(losses[name] for name in names)

    @pytest.mark.filterwarnings("ignore:.*is far from all its other values")
    def test_losses_are_of_targets_as_they_are(self):
        X, y = make_data(90)
        y[3] = 1e4
        model = DistributionEnsemble(members()[:2], random_state=0).fit(X, y)
        parts = {name: m.oof_distribution_ for name, m in model.members_.items()}
        parts[model.pool_] = model.oof_distribution_
        for name, dist in parts.items():
            assert model.losses_[name] == pytest.approx(crps_score(y, dist))

    def test_a_linear_pool_is_the_mixture(self):
        X, y = make_data()
        model = DistributionEnsemble(members(), pool="linear", recalibrate=None)
        parts = [m.predict_dist(X).cdf(y) for m in model.fit(X, y).members_.values()]
        want = np.array([*model.weights_.values()]) @ parts
        assert_allclose(model.predict_dist(X).cdf(y), want, atol=1e-3)
        assert model.recalibration_ is None

    def test_one_member_is_itself(self):
        X, y = make_data(150)
        own = quick(random_state=3)
        model = DistributionEnsemble([("only", own)], recalibrate=None).fit(X, y)
        want = own.fit(X, y).predict_dist(X)
        assert_array_equal(model.predict_dist(X).cdf(y), want.cdf(y))
        assert model.weights_ == {"only": 1.0}


class TestTargets:
    def test_mixed(self, rng):
        X, y = make_data(250)
        y = np.where(rng.uniform(size=250) < 0.3, 0.0, y)
        model = DistributionEnsemble(members(), random_state=0).fit(X, y)
        assert model.pool_ == "linear"
        dist = model.predict_dist(X)
        assert dist.pmf(0.0).mean() == pytest.approx(0.3, abs=0.1)
        with pytest.raises(ValueError, match='`pool` must be "linear" or "auto"'):
            model.set_params(pool="probit").fit(X, y)

    @pytest.mark.filterwarnings("ignore::calibration.exceptions.CalibrationWarning")
    def test_constant(self, rng):
        X = rng.uniform(size=(20, 2))
        model = DistributionEnsemble(members()).fit(X, np.full(20, 2.0))
        assert_array_equal(model.predict(X), 2.0)


class Recall(RegressorMixin, BaseEstimator):
    """Forecasts the training targets it was fitted on, whatever the row."""

    def fit(self, X, y):
        self.rows_ = len(X)
        self.y_ = np.sort(np.asarray(y))
        return self

    def predict(self, X):
        return self.predict_dist(X).mean()

    def predict_dist(self, X):
        values = np.unique(self.y_)
        return of_values(values, np.full((len(X), len(values)), 1.0 / len(values)))


class TestMembersThatKeepNoForecasts:
    def test_a_pipeline_is_pooled_with_a_regressor(self, rng, reload):
        X = pd.DataFrame({"town": rng.choice(["a", "b"], 60), "x": rng.normal(size=60)})
        X.loc[7, "town"] = "rare"
        y = X["x"].to_numpy() + (X["town"] == "a") + 0.5 * rng.normal(size=60)
        towns = (OneHotEncoder(handle_unknown="ignore"), ["town"])
        encoder = make_column_transformer(towns, remainder="passthrough")
        piped = make_pipeline(encoder, quick())
        members = [("piped", piped), ("plain", quick(frame=None))]
        model = DistributionEnsemble(members, random_state=0).fit(X, y)
        assert set(model.weights_) == {"piped", "plain"}
        assert len(model.oof_distribution_) == 60
        assert_array_equal(reload(model).predict(X), model.predict(X))

    @pytest.mark.parametrize("n_copies", [1, 4])
    def test_their_forecasts_have_seen_no_row_and_no_copy_of_it(self, n_copies):
        X, y = (np.repeat(part, n_copies, axis=0) for part in make_data(60))
        rows = np.arange(60 * n_copies)
        model = DistributionEnsemble([("m", Recall())], recalibrate=None)
        dist = model.fit(X, y).oof_distribution_
        assert_array_equal(model.fitted_rows_, rows)
        assert (dist.masses[rows, np.searchsorted(dist.atoms, y)] == 0.0).all()
        assert model.members_["m"].estimator_.rows_ == len(rows)

    def test_steps_are_seeded(self):
        piped = make_pipeline(quick())
        seeded = piped.set_params(localexpertregressor__random_state=5)
        members = [("a", make_pipeline(quick())), ("b", make_pipeline(quick()))]
        model = DistributionEnsemble([*members, ("kept", seeded)], random_state=0)
        model.fit(*make_data(60))
        seeds = [m.estimator_[-1].random_state for m in model.members_.values()]
        assert len(set(seeds)) == 3
        assert None not in seeds
        assert seeds[2] == 5
        assert members[0][1][-1].random_state is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"members": [("a", quick())] * 2}, "`members` must have names of their own"),
        ({"members": [("linear", quick())]}, "`members` must have names"),
        ({"members": [("a", Ridge())]}, "must have a method predict_dist, got Ridge"),
        ({"members": [("r", Recall())]}, "whose `fit` takes no weights, got some for"),
        ({"recalibrate": "conformal"}, "`recalibrate` must hold no rows"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = make_data(30)
    given = {"members": [("a", quick())], **parameters}
    with pytest.raises((TypeError, ValueError), match=message):
        DistributionEnsemble(**given).fit(X, y, np.ones(30))


@pytest.mark.parametrize(("n_common", "n_held"), [(0, 0), (1, 1), (6, 1), (6, 0)])
def test_members_that_forecast_no_two_rows_in_common(n_common, n_held):
    X, y = make_data(60)
    rows, weight = np.arange(60), np.ones(60)
    weight[30 + n_held : 30 + n_common] = 0.0
    folds = [(rows[:30], rows[30:]), (rows[30 + n_common :], rows[: 30 + n_common])]
    members = [(str(k), quick(frame=None, cv=[one])) for k, one in enumerate(folds)]
    with pytest.raises(ValueError, match=f"two rows with a weight .* got {n_held}: "):
        DistributionEnsemble(members).fit(X, y, weight)


from_scipy = PredictiveDistribution.from_scipy


@pytest.fixture
def dists(rng):
    center = rng.normal(size=300)
    normal = from_scipy(stats.norm(center, 1.0))
    levels = np.arange(1, 10) / 10
    rows = stats.norm(center + 0.5, 2.0).ppf(levels[:, None]).T
    return [normal, PredictiveDistribution.from_quantiles(rows, levels)], center


def test_linear_pools_are_mixtures(dists, rng):
    (a, b), _ = dists
    y = rng.normal(size=300)
    assert_allclose(pool([a, b]).cdf(y), 0.5 * a.cdf(y) + 0.5 * b.cdf(y), atol=1e-5)
    w = rng.uniform(size=300)
    own = pool([a, b], np.column_stack([w, 1.0 - w]))
    assert_allclose(own.pdf(y), w * a.pdf(y) + (1.0 - w) * b.pdf(y), rtol=5e-3)


def test_pools_keep_the_labels_of_the_first():
    total = from_scipy(stats.norm(0.0, 1.0), 4).total(groups=["u", "u", "v", "v"])
    assert_array_equal(pool([total, total[::-1]]).labels, ["u", "v"])


def test_probit_pools_of_normal_laws_are_normal(dists, rng):
    (a, b), center = dists
    y = rng.normal(size=300)
    # z = (y - c) / 2 + (y - c - .5) / 4, so its spread is 4 / 3.
    want = stats.norm(center + 1.0 / 6.0, 4.0 / 3.0)
    got = pool([a, b], kind="probit")
    assert_allclose(got.cdf(y), want.cdf(y), rtol=1e-6)
    assert_allclose(got.crps(y), from_scipy(want).crps(y), rtol=1e-4)


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_weights_are_those_of_least_crps(dists, kind, rng):
    pair, center = dists
    y = rng.normal(center, 1.5)
    weights = pool_weights(pair, y, kind=kind)
    assert weights.sum() == pytest.approx(1.0)
    grid = np.linspace(0.0, 1.0, 21)
    losses = [crps_score(y, pool(pair, [w, 1.0 - w], kind=kind)) for w in grid]
    assert crps_score(y, pool(pair, weights, kind=kind)) < min(losses) * 1.002
    groups, weight = np.repeat(np.arange(30), 10), np.repeat([1.0, 0.0], 150)
    held = pool_weights([d[:150] for d in pair], y[:150], kind=kind)
    some = pool_weights(pair, y, kind=kind, sample_weight=weight, groups=groups)
    assert_allclose(some, held, atol=0.1)


@pytest.mark.parametrize("kind", ["linear", "probit"])
def test_some_of_many_rows_say_as_much(kind, rng):
    y = rng.normal(size=6000)
    pair = [from_scipy(stats.norm(0.0, s), 6000) for s in (0.4, 2.0)]
    groups = np.arange(6000) // 3
    found = pool_weights(pair, y, kind=kind, groups=groups)
    few = pool_weights([d[:2000] for d in pair], y[:2000], kind=kind)
    assert_allclose(found, few, atol=0.1)


def test_what_is_refused(dists):
    (a, b), _ = dists
    zero = of_values([0.0, 1.0], np.tile([0.7, 0.3], (300, 1)))
    for given, weights, kind, message in (
        (a, None, "linear", "`dists` must be a list of distributions"),
        ([a, b[:10]], None, "linear", "`dists` must be as long as the first of"),
        ([a, b], [0.2, 0.8, 0.0], "linear", "for each distribution, got shape"),
        ([a, b], [0.6, 0.6], "linear", r"must sum to 1 in every row, got 1.2"),
        ([a, b], [-0.5, 1.5], "linear", "`weights` must lie in"),
        ([a, zero], None, "probit", '`kind` must be "linear" for laws with values'),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            pool(given, weights, kind=kind)
    with pytest.raises(ValueError, match="`y` must have at least two rows, got 1"):
        pool_weights([a[:1], b[:1]], [0.0])
