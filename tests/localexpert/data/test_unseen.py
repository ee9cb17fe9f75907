"""Categories that training never saw: told once, where they are read."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from calibration import CalibrationWarning
from localexpert import (
    DistributionEnsemble,
    LocalExpertRegressor,
    explain_forecast,
    permutation_importance,
    report,
)
from localexpert.data.table import Table
from localexpert.data.unseen import Unseen, unseen_once, unseen_silently, warn_of_unseen

QUICK = {"strategy": "joint", "frame": None, "n_thresholds": 3, "random_state": 0}
WORDS = (
    r"categories not met in `fit`, taken as missing: 'town' \(2 rows, such as 'Rome'"
)


@pytest.fixture(scope="module")
def towns():
    """A fitted model, rows with two of a new town, and their target."""
    rng = np.random.default_rng(0)
    names = rng.choice(["Bonn", "Oslo"], 60)
    X = pd.DataFrame({"town": names, "x": rng.normal(size=60)})
    y = X["x"].to_numpy() + rng.normal(size=60)
    model = LocalExpertRegressor(center=LinearRegression(), cv=2, **QUICK)
    new = X.head(8).copy()
    new.loc[[2, 5], "town"] = "Rome"
    return model.fit(X[["x", "town"]], y), new[["x", "town"]], y[:8]


def tell(call, *arguments):
    """Return what a call warns of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call(*arguments)
    return [one for one in told if "not met" in str(one.message)]


@pytest.mark.parametrize(
    "method",
    ["predict", "predict_dist", "predict_interval", "transform", "expert_points"],
)
def test_a_forecast_tells_once_at_the_users_line(towns, method):
    model, new, _ = towns
    with pytest.warns(CalibrationWarning, match=WORDS) as told:
        getattr(model, method)(new)
    assert len(told) == 1
    assert told[0].filename == __file__
    with pytest.warns(CalibrationWarning, match="'Rome'"):
        model.predict(pl.from_pandas(new))


@pytest.mark.parametrize("gap", [None, np.nan, pd.NA], ids=["None", "nan", "NA"])
@pytest.mark.parametrize("kind", [object, "category", "string"])
def test_missing_values_are_no_news(towns, gap, kind):
    model, new, _ = towns
    new = new.copy()
    new.loc[[2, 5], "town"] = gap
    assert tell(model.predict, new.astype({"town": kind})) == []
    frame = pl.DataFrame({"x": new["x"].to_numpy(), "town": [None, "Oslo"] * 4})
    assert tell(model.predict, frame) == []


def test_what_reads_many_tables_tells_once(towns):
    model, new, y = towns
    for call in (
        lambda: permutation_importance(model, new, y, n_repeats=2, random_state=0),
        lambda: explain_forecast(model, new, new.head(2), n_permutations=4),
    ):
        told = tell(call)
        assert len(told) == 1
        assert told[0].filename == __file__
    second = clone(model).set_params(n_thresholds=5)
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"town": ["a", "b"] * 20, "x": rng.normal(size=40)})
    pool = DistributionEnsemble([("one", model), ("two", second)], random_state=0)
    pool.fit(X, X["x"] + rng.normal(size=40))
    assert len(tell(pool.predict_dist, X.assign(town="c"))) == 1


def test_a_report_tells_on_its_page(towns, tmp_path):
    model, new, y = towns
    page = tmp_path / "page.html"
    assert tell(report, model, new, y, page) == []
    assert "Categories that training has not met: town" in page.read_text("utf-8")


def test_columns_are_counted():
    train = pd.DataFrame({name: ["a", "b"] for name in "pqrstuv"})
    reader = Table.of(train).reader
    new = pd.DataFrame({name: ["a", "z"] for name in "pqrstuv"})
    with pytest.warns(CalibrationWarning, match=r"'t' \(1 row, .* and 2 columns more"):
        codes = reader.read(new, warns=True).codes
    np.testing.assert_array_equal(np.isnan(codes), [[False] * 7, [True] * 7])
    # A column of categories that training had no value of.
    empty = Table.of(train.assign(p=pd.Series([None, None], dtype="string"))).reader
    with pytest.warns(CalibrationWarning, match=r"'p' \(2 rows, such as 'a'\)"):
        assert np.isnan(empty.read(train, warns=True).codes[:, 0]).all()


@pytest.mark.parametrize("ordered", [False, True])
def test_a_value_that_only_an_unordered_type_lists_is_unseen(ordered):
    towns = pd.Categorical(["a", "c"], categories=["c", "b", "a"], ordered=ordered)
    reader = Table.of(pd.DataFrame({"town": towns})).reader
    new = pd.DataFrame({"town": ["c", "b", "a"]})
    codes = reader.read(new).codes[:, 0]
    np.testing.assert_array_equal(codes, [0.0, 1.0, 2.0] if ordered else [0, np.nan, 1])


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["a", "b", "z"])])
def test_rows_of_polars_are_counted_to_the_last(kind):
    reader = Table.of(pl.DataFrame({"town": ["a", "b"]})).reader
    column = pl.Series(["z", None, "a", "z", "z"], dtype=kind)
    with pytest.warns(CalibrationWarning, match=r"'town' \(3 rows, such as 'z'\)"):
        _ = reader.read(pl.DataFrame({"town": column}), warns=True).codes
    # A gap is no value that training has not met, whatever the last row holds.
    with pytest.warns(CalibrationWarning, match=r"'town' \(3 rows, such as 'z'\)"):
        _ = reader.read(pd.DataFrame({"town": column.to_list()}), warns=True).codes


def test_contexts_end_as_they_began():
    found = [Unseen("a", 1200, 7)]
    with unseen_once():
        with unseen_silently():
            assert tell(warn_of_unseen, found) == []
        with unseen_once(), pytest.warns(CalibrationWarning, match="1,200 rows"):
            warn_of_unseen(found)
        assert tell(warn_of_unseen, found) == []
        assert len(tell(warn_of_unseen, [Unseen("b", 1, 7)])) == 1
    with unseen_silently(), unseen_once():
        assert tell(warn_of_unseen, found) == []
    assert len(tell(warn_of_unseen, found)) == 1
