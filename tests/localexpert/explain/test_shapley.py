"""Contributions equal brute force over all orders, add up, and know their errors."""

from itertools import permutations

import numpy as np
import pytest

from localexpert.explain import explain_forecast
from tests.forecasts import of_values

GRID = np.linspace(-12.0, 12.0, 241)


def normal_like(center, scale):
    """Laws with probabilities in proportion to a normal density, on a grid."""
    z = (GRID - np.asarray(center)[:, None]) / np.asarray(scale)[:, None]
    weight = np.exp(-0.5 * z**2)
    rows = weight / weight.sum(axis=1, keepdims=True)
    return of_values(GRID, rows)


class Crossed:
    """Mean x0 x1 + sin(x2), spread exp(x1 / 2): features act together."""

    def __init__(self):
        self.calls = []

    def predict_dist(self, X):
        X = np.asarray(X, dtype=np.float64)
        self.calls.append(len(X))
        more = X[:, 3:].sum(axis=1) ** 2 / 10.0
        return normal_like(
            X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + more, 0.5 + np.exp(X[:, 1] / 2)
        )


def brute_force(number, x, background, parts):
    """The mean change over all orders of the parts and all background rows."""
    values = np.zeros(len(parts))
    orders = list(permutations(range(len(parts))))
    for b in background:
        for order in orders:
            row = b.copy()
            for j in order:
                before = number(row)
                row[list(parts[j])] = x[list(parts[j])]
                values[j] += number(row) - before
    return values / len(orders) / len(background)


TARGETS = [
    ({"of": "mean"}, lambda d: d.mean()),
    ({"of": "quantile", "at": 0.9}, lambda d: d.ppf(0.9)),
    ({"of": "median"}, lambda d: d.ppf(0.5)),
    ({"of": "std"}, lambda d: np.sqrt(d.var())),
    ({"of": "exceedance", "at": 1.0}, lambda d: d.sf(1.0)),
    ({"of": lambda d: np.log(d.std())}, lambda d: np.log(d.std())),
]


@pytest.mark.parametrize(
    "target", TARGETS, ids=["mean", "q90", "median", "std", "p", "callable"]
)
def test_enumeration_is_brute_force_over_all_orders(rng, target):
    arguments, number = target
    model, X = Crossed(), rng.normal(size=(2, 4))
    background = rng.normal(size=(3, 4))
    told = explain_forecast(model, X, background, **arguments)
    assert (told.standard_errors == 0.0).all()
    parts = [(0,), (1,), (2,), (3,)]

    def ask(row):
        return number(model.predict_dist(row[None]))[0]

    for i, x in enumerate(X):
        truth = brute_force(ask, x, background, parts)
        np.testing.assert_allclose(told.values[i], truth, atol=1e-12)
    np.testing.assert_allclose(told.total, number(model.predict_dist(X)))
    base = number(model.predict_dist(background)).mean()
    assert told.base == pytest.approx(base, rel=1e-12)


def test_groups_are_brute_force_over_orders_of_groups(rng):
    model, X = Crossed(), rng.normal(size=(1, 5))
    background = rng.normal(size=(3, 5))
    groups = {"last": ["x3", 4], "ends": [0, "x2"]}
    told = explain_forecast(model, X, background, groups=groups)
    assert told.feature_names == ("ends", "x1", "last")
    truth = brute_force(
        lambda row: model.predict_dist(row[None]).mean()[0],
        X[0],
        background,
        [(0, 2), (1,), (3, 4)],
    )
    np.testing.assert_allclose(told.values[0], truth, atol=1e-12)


@pytest.mark.parametrize("method", ["enumerate", "sample"])
@pytest.mark.parametrize("p", [3, 7])
def test_contributions_add_up(rng, method, p):
    model, X = Crossed(), rng.normal(size=(4, p))
    background = rng.normal(size=(5, p))
    told = explain_forecast(
        model, X, background, of="quantile", at=0.8, method=method, random_state=1
    )
    np.testing.assert_allclose(
        told.base + told.values.sum(axis=1), told.total, rtol=0, atol=1e-12
    )
    base = model.predict_dist(background).ppf(0.8).mean()
    assert told.base == pytest.approx(base, rel=1e-12)


def test_sampling_is_unbiased_and_its_errors_are_honest(rng):
    model, X = Crossed(), rng.normal(size=(2, 4))
    background = rng.normal(size=(4, 4))
    number = {"of": "exceedance", "at": 1.0, "n_permutations": 4}
    exact = explain_forecast(model, X, background, method="enumerate", **number).values
    told = [
        explain_forecast(
            model, X, background, method="sample", random_state=seed, **number
        )
        for seed in range(300)
    ]
    values = np.array([one.values for one in told])
    spread = values.std(axis=0, ddof=1)
    stated = np.sqrt(np.mean([one.standard_errors**2 for one in told], axis=0))
    np.testing.assert_allclose(stated, spread, rtol=0.15)
    miss = np.abs(values.mean(axis=0) - exact)
    assert (miss < 4.0 * spread / np.sqrt(len(told))).all()


class Centered:
    """The mean is any function of the features."""

    def __init__(self, center):
        self.center = center

    def predict_dist(self, X):
        return normal_like(self.center(X), np.ones(len(X)))


def test_sampling_is_exact_for_additive_numbers(rng):
    slopes = np.array([1.0, -0.5, 0.25, 0.0, 0.5])
    X, background = rng.normal(size=(2, 5)), rng.normal(size=(6, 5))
    told = explain_forecast(
        Centered(lambda X: X @ slopes),
        X,
        background,
        method="sample",
        n_permutations=4,
        random_state=0,
    )
    truth = (X - background.mean(axis=0)) * slopes
    np.testing.assert_allclose(told.values, truth, atol=1e-9)
    assert told.standard_errors.max() < 1e-9


def test_pairs_of_orders_are_exact_where_two_features_act_together(rng):
    X, background = rng.uniform(size=(2, 5)), rng.uniform(size=(6, 5))

    def explain(center, method):
        return explain_forecast(
            Centered(center), X, background, method=method, random_state=0
        )

    def by_twos(X):
        return X[:, 0] * X[:, 1] + np.maximum(X[:, 2], X[:, 3]) - X[:, 1] * X[:, 4]

    told, exact = explain(by_twos, "sample"), explain(by_twos, "enumerate")
    np.testing.assert_allclose(told.values, exact.values, atol=1e-9)
    assert told.standard_errors.max() < 1e-9
    by_threes = explain(lambda X: X[:, 0] * X[:, 1] * X[:, 2], "sample")
    assert by_threes.standard_errors[:, :3].min() > 1e-4


class TestBatches:
    @pytest.mark.parametrize("method", ["enumerate", "sample"])
    def test_answers_do_not_depend_on_batches(self, rng, method, monkeypatch):
        X, background = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
        options = {"method": method, "random_state": 0}
        whole = explain_forecast(Crossed(), X, background, **options)
        model = Crossed()
        monkeypatch.setattr("localexpert.explain.shapley._BATCH", 7)
        parts = explain_forecast(model, X, background, **options)
        assert max(model.calls) == 7
        # Sums over the grid of the laws are rounded in another order, no more.
        np.testing.assert_allclose(whole.values, parts.values, atol=1e-14)
        errors = whole.standard_errors, parts.standard_errors
        np.testing.assert_allclose(*errors, atol=1e-14)

    def test_auto_enumerates_where_that_costs_no_more(self, rng):
        for p, n_permutations in ((5, 8), (6, 8), (6, 14)):
            model = Crossed()
            X, background = rng.normal(size=(1, p)), rng.normal(size=(2, p))
            explain_forecast(model, X, background, n_permutations=n_permutations)
            cost = min(2**p - 2, n_permutations * (p - 1))
            assert model.calls == [3, 2 * cost]

    @pytest.mark.parametrize("method", ["enumerate", "sample"])
    def test_one_feature_has_all_of_the_difference(self, method):
        class One:
            def predict_dist(self, X):
                return normal_like(X[:, 0], np.ones(len(X)))

        told = explain_forecast(One(), [[2.0]], [[0.0], [1.0]], method=method)
        assert told.values[0, 0] == pytest.approx(1.5)


class TestSeeds:
    def test_one_seed_gives_one_result_and_another_another(self, rng):
        X, background = rng.normal(size=(2, 6)), rng.normal(size=(9, 6))
        options = {"n_background": 4, "method": "sample"}
        first, again, other = (
            explain_forecast(Crossed(), X, background, random_state=seed, **options)
            for seed in (3, 3, 4)
        )
        np.testing.assert_array_equal(first.values, again.values)
        assert first.base == again.base
        assert first.base != other.base

    def test_a_row_is_explained_as_it_is_alone(self, rng):
        X, background = rng.normal(size=(3, 6)), rng.normal(size=(5, 6))
        together = explain_forecast(Crossed(), X, background, random_state=0)
        alone = explain_forecast(Crossed(), X[1:2], background, random_state=0)
        np.testing.assert_allclose(together.values[1], alone.values[0], atol=1e-13)

    def test_a_larger_background_is_drawn_from(self):
        background = np.arange(40.0).reshape(20, 2) / 10.0
        seen = []

        class Recorder(Crossed):
            def predict_dist(self, X):
                seen.append(X)
                return normal_like(X[:, 0], np.ones(len(X)))

        told = explain_forecast(
            Recorder(), [[0.0, 0.0]], background, n_background=5, random_state=0
        )
        used = seen[0][1:]
        assert len(used) == 5
        assert len(np.unique(used[:, 0])) == 5
        assert np.isin(used[:, 0], background[:, 0]).all()
        assert told.base == pytest.approx(used[:, 0].mean(), abs=1e-6)
