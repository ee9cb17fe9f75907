"""DistributionEnsemble end to end: identities, honesty, given and fitted members."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.tree import DecisionTreeRegressor

from localexpert import LocalExpertRegressor
from localexpert.ensemble import DistributionEnsemble
from localexpert.ensemble.members import named_members
from localexpert.experts import JointForest


def quick(**parameters):
    """A regressor that fits in a tenth of a second."""
    options = {
        "center": LinearRegression(),
        "strategy": JointForest(20, random_state=0),
        "n_thresholds": 7,
        "cv": 3,
    }
    return LocalExpertRegressor(**{**options, **parameters})


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


@pytest.fixture(scope="module")
def fitted():
    X, y = make_data(450)
    model = DistributionEnsemble(members(), random_state=0).fit(X[:300], y[:300])
    return model, X, y


class TestFitted:
    def test_weights_and_losses(self, fitted):
        model, _, y = fitted
        names = [name for name, _ in members()]
        assert list(model.weights_) == names
        assert sum(model.weights_.values()) == pytest.approx(1.0)
        assert min(model.weights_.values()) >= 0.0
        assert list(model.losses_) == [*names, "linear", "probit"]
        for name, member in model.members_.items():
            own = member.oof_distribution_.crps(y[:300]).mean()
            assert model.losses_[name] == pytest.approx(own)
        pooled = model.oof_distribution_.crps(y[:300]).mean()
        assert model.losses_[model.pool_] == pytest.approx(pooled)
        assert model.losses_[model.pool_] == min(
            model.losses_["linear"], model.losses_["probit"]
        )

    def test_no_worse_than_its_best_member_out_of_fold(self, fitted):
        model, _, _ = fitted
        best = min(model.losses_[name] for name, _ in members())
        assert model.losses_[model.pool_] < 1.005 * best

    def test_out_of_fold_scores_like_new_rows(self, fitted):
        model, X, y = fitted
        oof = model.oof_distribution_.crps(y[:300])
        new = model.predict_dist(X[300:]).crps(y[300:])
        noise = np.sqrt(oof.var() / 300 + new.var() / 150)
        assert abs(oof.mean() - new.mean()) < 3.0 * noise

    def test_methods_agree_with_the_distribution(self, fitted):
        model, X, y = fitted
        dist = model.predict_dist(X[300:])
        assert_array_equal(model.predict(X[300:]), dist.mean())
        levels = [0.1, 0.9]
        assert_array_equal(
            model.predict_quantiles(X[300:], levels), dist.quantiles(levels)
        )
        assert_array_equal(model.predict_interval(X[300:], 0.5), dist.interval(0.5))
        assert model.score(X[300:], y[300:]) > 0.3

    def test_pickle(self, fitted):
        model, X, _ = fitted
        copy = pickle.loads(pickle.dumps(model))
        assert_array_equal(copy.predict(X), model.predict(X))

    def test_clone_seed_and_jobs(self, fitted):
        model, X, y = fitted
        again = clone(model).set_params(n_jobs=2).fit(X[:300], y[:300])
        assert_array_equal(again.predict(X), model.predict(X))
        assert again.weights_ == model.weights_

    @pytest.mark.parametrize("pool", ["linear", "probit"])
    def test_pool_is_what_its_kind_says(self, fitted, pool):
        model, X, y = fitted
        own = DistributionEnsemble.of_fitted(
            model.members_, y[:300], pool=pool, recalibrate=None, random_state=0
        )
        at = y[300:]
        cdfs = np.stack(
            [m.predict_dist(X[300:]).cdf(at) for m in own.members_.values()]
        )
        w = np.array(list(own.weights_.values()))
        got = own.predict_dist(X[300:]).cdf(at)
        if pool == "linear":
            assert_allclose(got, w @ cdfs, rtol=0.0, atol=1e-3)
        else:
            inner = (cdfs > 1e-9).all(axis=0) & (cdfs < 1.0 - 1e-9).all(axis=0)
            spread = cdfs.max(axis=0) - cdfs.min(axis=0) + 1e-9
            assert (np.abs(got - w @ cdfs) <= spread)[inner].all()
        assert own.recalibration_ is None


class TestIdentities:
    def test_one_member_is_itself(self):
        X, y = make_data(150)
        own = quick(random_state=3)
        model = DistributionEnsemble([("only", own)], recalibrate=None).fit(X, y)
        want = own.fit(X, y).predict_dist(X)
        assert_array_equal(model.predict_dist(X).cdf(y), want.cdf(y))
        assert model.weights_ == {"only": 1.0}

    def test_identical_members_are_one_of_them(self):
        X, y = make_data(150)
        pair = [(name, quick(random_state=3)) for name in "ab"]
        model = DistributionEnsemble(pair, recalibrate=None, random_state=0).fit(X, y)
        want = quick(random_state=3).fit(X, y).predict_dist(X)
        assert_allclose(model.predict_dist(X).cdf(y), want.cdf(y), rtol=1e-9)
        assert_allclose(list(model.weights_.values()), 0.5, atol=1e-6)

    def test_members_without_a_seed_get_different_ones(self):
        X, y = make_data(150)
        pair = [(name, quick()) for name in "ab"]
        model = DistributionEnsemble(pair, random_state=0).fit(X, y)
        seeds = {member.random_state for member in model.members_.values()}
        assert len(seeds) == 2
        assert pair[0][1].random_state is None

    def test_standard_members_differ(self):
        parameters = [m.get_params() for _, m in named_members(None)]
        assert len({name for name, _ in named_members(None)}) == len(parameters) == 6
        assert all(p["random_state"] is None for p in parameters)


class TestTargets:
    def test_discrete(self, rng):
        X = rng.uniform(size=(200, 2))
        y = (3.0 * X[:, 0] + rng.uniform(size=200)).round()
        model = DistributionEnsemble(members(), random_state=0).fit(X, y)
        dist = model.predict_dist(X)
        assert_array_equal(dist.atoms[:5], np.unique(y))
        assert dist.masses[:, 5:].max() < 0.05  # of values never met
        assert_allclose(dist.masses.sum(axis=1), 1.0)

    def test_mixed(self, rng):
        X, y = make_data(250)
        y = np.where(rng.uniform(size=250) < 0.3, 0.0, y)
        model = DistributionEnsemble(members(), random_state=0).fit(X, y)
        assert model.pool_ == "linear"
        dist = model.predict_dist(X)
        assert dist.pmf(0.0).mean() == pytest.approx(0.3, abs=0.1)
        with pytest.raises(ValueError, match='`pool` must be "linear" or "auto"'):
            DistributionEnsemble.of_fitted(model.members_, y, pool="probit")

    @pytest.mark.filterwarnings("ignore::calibration.exceptions.CalibrationWarning")
    def test_constant(self, rng):
        X = rng.uniform(size=(20, 2))
        model = DistributionEnsemble(members()).fit(X, np.full(20, 2.0))
        assert_array_equal(model.predict(X), 2.0)

    def test_weights_groups_and_frames(self):
        X, y = make_data(200)
        table = pd.DataFrame(X, columns=["a", "b"])
        weight = np.where(np.arange(200) < 100, 1.0, 2.0)
        groups = np.arange(200) // 4
        model = DistributionEnsemble(members()[:2], random_state=0)
        model.fit(table, y, weight, groups)
        assert list(model.feature_names_in_) == ["a", "b"]
        member = model.members_["center"]
        own = np.average(member.oof_distribution_.crps(y), weights=weight)
        assert model.losses_["center"] == pytest.approx(own)


@pytest.fixture(scope="module")
def pair():
    X, y = make_data(150)
    return {name: quick(random_state=k).fit(X, y) for k, name in enumerate("ab")}


class TestOfFitted:
    def test_is_what_fit_makes(self, pair):
        X, y = make_data(150)
        given = [(name, quick(random_state=k)) for k, name in enumerate("ab")]
        want = DistributionEnsemble(given, random_state=1).fit(X, y)
        got = DistributionEnsemble.of_fitted(pair, y, random_state=1)
        assert got.weights_ == want.weights_
        assert_array_equal(got.predict(X), want.predict(X))

    def test_other_rows(self, pair):
        X, y = make_data(150)
        less = quick().fit(X[:140], y[:140])
        with pytest.raises(
            ValueError, match="`members` must be fitted on the same row"
        ):
            DistributionEnsemble.of_fitted({**pair, "less": less}, y)
        with pytest.raises(
            ValueError, match="`y` must be what the members were fitted"
        ):
            DistributionEnsemble.of_fitted(pair, y[:140])

    def test_other_features(self, pair):
        X, y = make_data(150)
        one = quick().fit(X[:, :1], y)
        with pytest.raises(
            ValueError, match="`members` must be fitted on the same fea"
        ):
            DistributionEnsemble.of_fitted({**pair, "one": one}, y)

    def test_unfitted(self, pair):
        _, y = make_data(150)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            DistributionEnsemble.of_fitted({**pair, "new": quick()}, y)


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"members": []}, ValueError, "`members` must hold at least one regressor"),
        (
            {"members": [("a", quick()), ("a", quick())]},
            ValueError,
            "`members` must have names of their own",
        ),
        ({"members": [("linear", quick())]}, ValueError, "`members` must have names"),
        (
            {"members": [("a", Ridge())]},
            TypeError,
            "`members` must have a method predict_dist, got Ridge",
        ),
        ({"recalibrate": "conformal"}, ValueError, "`recalibrate` must hold no rows"),
        ({"recalibrate": "platt"}, ValueError, "`recalibrate` must be None"),
    ],
)
def test_bad_parameters(parameters, error, message):
    X, y = make_data(30)
    with pytest.raises(error, match=message):
        DistributionEnsemble(**parameters).fit(X, y)


def test_unfitted_ensemble():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        DistributionEnsemble().predict([[0.0, 1.0]])
