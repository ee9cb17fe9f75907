"""Contributions: brute force over all orders, honest errors, tables of all types."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from localexpert import explain_forecast
from tests.forecasts import Witness, explained, normal


def crossed():
    """Return a model of mean x0 x1 + sin(x2) and spread exp(x1 / 2)."""

    def center(X):
        return X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + X[:, 3:].sum(axis=1) ** 2 / 10.0

    return Witness(center, lambda X: 0.5 + np.exp(X[:, 1] / 2))


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


TARGETS = {
    "mean": ({"of": "mean"}, lambda d: d.mean()),
    "q90": ({"of": "quantile", "at": 0.9}, lambda d: d.ppf(0.9)),
    "median": ({"of": "median"}, lambda d: d.ppf(0.5)),
    "std": ({"of": "std"}, lambda d: np.sqrt(d.var())),
    "p": ({"of": "exceedance", "at": 1.0}, lambda d: d.sf(1.0)),
    "callable": ({"of": lambda d: np.log(d.std())}, lambda d: np.log(d.std())),
    "groups": ({"groups": {"last": [3, "x1"], "first": [0]}}, lambda d: d.mean()),
}
GROUPED = {"first": (0,), "last": (1, 3), "x2": (2,)}


@pytest.mark.parametrize("name", TARGETS)
def test_enumeration_is_brute_force_over_all_orders(rng, name):
    arguments, number = TARGETS[name]
    model, X = crossed(), rng.normal(size=(2, 4))
    background = rng.normal(size=(3, 4))
    told = explain_forecast(model, X, background, **arguments)
    assert (told.standard_errors == 0.0).all()
    parts = GROUPED if name == "groups" else {f"x{j}": (j,) for j in range(4)}
    assert told.feature_names == tuple(parts)

    def ask(row):
        return number(model.predict_dist(row[None]))[0]

    for i, x in enumerate(X):
        truth = brute_force(ask, x, background, [*parts.values()])
        assert_allclose(told.values[i], truth, atol=1e-12)
    assert_allclose(told.total, number(model.predict_dist(X)))
    base = number(model.predict_dist(background)).mean()
    assert told.base == pytest.approx(base, rel=1e-12)


@pytest.mark.parametrize("method", ["enumerate", "sample"])
@pytest.mark.parametrize("p", [1, 3, 7])
def test_contributions_add_up_whatever_the_batch(rng, method, p, monkeypatch):
    X, background = rng.normal(size=(4, p)), rng.normal(size=(5, p))
    model = Witness(lambda X: np.prod(X, axis=1) + X[:, 0])
    given = {"of": "quantile", "at": 0.8, "method": method, "random_state": 1}
    told = explain_forecast(model, X, background, **given)
    assert_allclose(told.base + told.values.sum(axis=1), told.total, atol=1e-12)
    assert_allclose(told.total, model.predict_dist(X).ppf(0.8))
    base = model.predict_dist(background).ppf(0.8).mean()
    assert told.base == pytest.approx(base, rel=1e-12)
    # Neither batches nor other rows change an answer.
    monkeypatch.setattr("localexpert.explain.shapley._BATCH", 7)
    alone = explain_forecast(model, X[1:2], background, **given)
    assert_allclose(alone.values[0], told.values[1], atol=1e-13)
    assert_allclose(alone.standard_errors[0], told.standard_errors[1], atol=1e-13)
    again = explain_forecast(model, X, background, **given)
    assert_allclose(again.values, told.values, atol=1e-13)
    other = explain_forecast(model, X, background, **{**given, "random_state": 2})
    differs = np.abs(other.values - told.values).max() > 1e-9
    assert differs == (method == "sample" and p > 1)


def test_sampling_is_unbiased_and_its_errors_are_honest(rng):
    model, X, background = crossed(), rng.normal(size=(2, 4)), rng.normal(size=(4, 4))
    number = {"of": "exceedance", "at": 1.0, "n_permutations": 4}
    exact = explain_forecast(model, X, background, method="enumerate", **number).values
    sampled = {**number, "method": "sample"}
    told = [
        explain_forecast(model, X, background, random_state=seed, **sampled)
        for seed in range(300)
    ]
    values = np.array([one.values for one in told])
    spread = values.std(axis=0, ddof=1)
    stated = np.sqrt(np.mean([one.standard_errors**2 for one in told], axis=0))
    assert_allclose(stated, spread, rtol=0.15)
    miss = np.abs(values.mean(axis=0) - exact)
    assert (miss < 4.0 * spread / np.sqrt(len(told))).all()


def test_pairs_of_orders_are_exact_where_two_features_act_together(rng):
    X, background = rng.uniform(size=(2, 5)), rng.uniform(size=(6, 5))

    def explain(center, method):
        model = Witness(center)
        return explain_forecast(model, X, background, method=method, random_state=0)

    def by_twos(X):
        return X[:, 0] * X[:, 1] + np.maximum(X[:, 2], X[:, 3]) - X[:, 1] * X[:, 4]

    told, exact = explain(by_twos, "sample"), explain(by_twos, "enumerate")
    assert_allclose(told.values, exact.values, atol=1e-9)
    assert (told.standard_errors == 0.0).all()
    by_threes = explain(lambda X: X[:, 0] * X[:, 1] * X[:, 2], "sample")
    assert by_threes.standard_errors[:, :3].min() > 1e-4


@pytest.mark.parametrize(("p", "n_permutations"), [(5, 8), (6, 8), (6, 14)])
def test_auto_enumerates_where_that_costs_no_more(rng, p, n_permutations):
    model, X, background = crossed(), rng.normal(size=(1, p)), rng.normal(size=(2, p))
    explain_forecast(model, X, background, n_permutations=n_permutations)
    counts = [3, 2 * min(2**p - 2, n_permutations * (p - 1))]
    assert [len(rows) for rows in model.calls] == counts


def test_a_larger_background_is_drawn_from():
    background = np.arange(20.0)[:, None] / 10.0
    model, few = Witness(lambda X: X[:, 0]), {"n_background": 5, "random_state": 0}
    told = explain_forecast(model, [[0.0]], background, **few)
    used = model.calls[0][1:, 0]
    assert len(np.unique(used)) == 5
    assert np.isin(used, background).all()
    assert told.base == pytest.approx(used.mean(), abs=1e-6)


WORTH = {"ant": 1.0, "bee": 2.0, "cat": -1.0}


class Town:
    """The mean is a number per town, times others; refuses columns of other types."""

    def __init__(self, types):
        self.types = types

    def predict_dist(self, X):
        assert list(X.dtypes) == self.types
        assert list(X.columns) == ["rooms", "town", "open"]
        worth = np.array([WORTH[town] for town in X["town"].to_list()])
        return normal((X["rooms"].to_numpy() + X["open"].to_numpy()) * worth, [1])


def table(rows, town, opened):
    kind = pd.Categorical(town, categories=[*WORTH])
    columns = {"rooms": np.array(rows), "town": kind, "open": np.array(opened)}
    return pd.DataFrame(columns, index=np.arange(len(rows)) + 7)


@pytest.mark.parametrize("polars", [False, True])
def test_types_are_kept_and_the_answer_is_that_of_numbers(polars):
    X = table([3, 1], ["bee", "cat"], [True, False])
    background = table([1, 2, 2], ["ant", "ant", "cat"], [False, True, True])
    pair = (
        [pl.from_pandas(one) for one in (X, background)] if polars else (X, background)
    )
    told = explain_forecast(Town(list(pair[0].dtypes)), *pair)
    numbers = [one.assign(town=one["town"].map(WORTH)) for one in (X, background)]
    truth = explain_forecast(
        Witness(lambda X: (X[:, 0] + X[:, 2]) * X[:, 1]),
        *(one.to_numpy(float) for one in numbers),
    )
    assert_allclose(told.values, truth.values, atol=1e-12)
    assert told.feature_names == ("rooms", "town", "open")
    if not polars:
        assert told.inputs[0].tolist() == ["3", "bee", "True"]
        groups = {"house": ["open", "rooms"]}
        both = explain_forecast(Town(list(X.dtypes)), X, background, groups=groups)
        assert both.feature_names == ("house", "town")
        assert both.inputs[0].tolist() == ["3, True", "bee"]


@pytest.mark.parametrize("library", [pd, pl])
def test_whole_numbers_and_others_are_joined(library):
    rows, background = [[3, 1]], [[0.5, 1.5], [2.5, 0.5]]
    frames = [library.DataFrame(np.array(one)) for one in (rows, background)]
    model = Witness(lambda X: np.asarray(X) @ [2.0, 1.0])
    want = explain_forecast(model, rows, background)
    assert_allclose(explain_forecast(model, *frames).values, want.values)


def test_text_lists_the_largest_first_and_sums_the_others():
    told = explained()
    assert str(told).splitlines() == [
        "mean of row 0: 7.5 = 5 (base) + contributions",
        "  dose = 2.5          +3",  # exact: no error
        "  age = 61            -1   (se 0.1)",
        "  town = ant        +0.5   (se 0.2)",
        "mean of row 1: 3.25 = 5 (base) + contributions",
        "  town = bee          -4   (se 0.4)",
        "  age = 20            +2   (se 0.3)",
        "  dose = 0         +0.25   (se 0.1)",
    ]
    with pytest.raises(ValueError, match="`row` must be less than the 2 rows forecast"):
        told.describe(2)
    line = told.describe(1, 1).splitlines()[2]
    assert line.split() == ["2", "others", "+2.25", "(se", "0.4)"]
    names = ("values", "standard_errors", "inputs", "total")
    several = replace(told, **{name: getattr(told, name)[[0] * 5] for name in names})
    assert str(several).splitlines()[-1] == "and 2 more rows"
    frame = told.to_frame()
    wide = frame.pivot(index="row", columns="feature", values="contribution")
    assert_array_equal(wide[["age", "dose", "town"]], told.values)
    assert list(frame.loc[4].to_dict().values()) == [1, "dose", "0", 0.25, 0.1]


TABLE, WIDE = table([3], ["bee"], [True]), np.ones((1, 13))
FEWER = TABLE.assign(town=TABLE["town"].cat.remove_unused_categories())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"of": "quantile"}, "`at` must be a level or .*, got None"),
        ({"of": "quantile", "at": 1.0}, r"`at` must lie in \(0, 1\)"),
        ({"of": lambda d: d.mean()[:, None]}, r"one number per row, .*shape \(4, 1\)"),
        ({"of": lambda d: d.mean() * np.nan}, "finite numbers, got nan of <lambda>"),
        ({"groups": {"g": ["x3"]}}, "`groups` must hold features of"),
        ({"groups": {"g": [0], "h": ["x0"]}}, "`groups` must hold a feature once"),
        ({"groups": {"g": []}}, "at least one feature, got none"),
        ({"groups": {"g": "x1"}}, "must be a list of features"),
        ({"groups": {"x2": [0]}}, "named as a feature is, got 'x2'"),
        ({"n_permutations": 5}, "`n_permutations` must be even, got 5"),
        ({"background": np.ones((0, 3))}, r"`background` must be .*shape \(0, 3\)"),
        ({"background": np.ones((4, 2))}, "columns of `X`, 3, got 2"),
        ({"background": TABLE}, "type of `X`, ndarray, got DataFrame"),
        ({"X": TABLE, "background": TABLE.set_axis([*"abc"], axis=1)}, r"\('a', 'b'"),
        ({"X": TABLE, "background": TABLE.astype({"town": str})}, "column 'town'"),
        ({"X": TABLE, "background": TABLE.astype({"rooms": bool})}, "column 'rooms'"),
        ({"X": TABLE, "background": FEWER}, r"got .*\['bee'\].* and .*\['ant', 'bee'"),
        ({"X": WIDE, "background": WIDE, "method": "enumerate"}, "than 12 features"),
    ],
)
def test_refusals(arguments, message):
    given = {"model": Witness(lambda X: np.zeros(len(X))), **arguments}
    given = {"X": np.eye(3)[:1], "background": np.eye(3), **given}
    with pytest.raises((TypeError, ValueError), match=message):
        explain_forecast(**given)
