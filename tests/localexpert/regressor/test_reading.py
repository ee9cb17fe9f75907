"""How a fit reads its rows: once, and for learners of the user's not at all."""

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from localexpert import LocalExpertRegressor, Stacker
from localexpert.data.table import DenseInputs, TableReader

N = 240


@pytest.fixture
def houses(rng):
    town = rng.choice(["Bonn", "Ulm", "Trier"], N)
    size, floor = rng.uniform(size=N), rng.integers(0, 5, N)
    X = pd.DataFrame({"size": size, "town": town, "floor": floor})
    return X, X["size"].to_numpy() + (town == "Ulm") + 0.1 * rng.normal(size=N)


@pytest.fixture
def read(monkeypatch):
    """Count the rows that are encoded, and those that are put on one scale."""
    rows = Counter()
    encode, transform = TableReader.encode, DenseInputs.transform
    for cls, plain in ((TableReader, encode), (DenseInputs, transform)):

        def count(self, X, *shape, plain=plain, **options):
            rows[plain.__name__] += len(X)
            return plain(self, X, *shape, **options)

        monkeypatch.setattr(cls, plain.__name__, count)
    return rows


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"recalibrate": "conformal", "stacker": Stacker(Ridge(), passthrough=True)},
        {"frame": None, "strategy": "joint"},
    ],
)
def test_every_row_is_read_once_per_view(houses, read, parameters):
    X, y = houses
    model = LocalExpertRegressor(cv=2, n_thresholds=5, random_state=0, **parameters)
    model.fit(X, y)
    dense = 0 if parameters.get("frame", "auto") is None else N
    # Copies are looked for before any rows are set aside.
    again = N if "recalibrate" in parameters else 0
    assert read["encode"] == N + again
    # Bent for nets, and straight and by logarithms for lines.
    assert dense <= read["transform"] <= 3 * dense
    read.clear()
    model.predict(X[:7])
    assert read["encode"] == 7


def pipeline(last):
    """Return what reads texts by itself."""
    towns = (OneHotEncoder(sparse_output=False), ["town"])
    return make_pipeline(make_column_transformer(towns, remainder="passthrough"), last)


@pytest.mark.parametrize("convert", [lambda X: X, pl.from_pandas])
def test_names_and_texts_arrive_at_learners_as_they_were_given(houses, convert):
    X, y = houses
    expert, center = pipeline(LogisticRegression()), pipeline(Ridge())
    usual = {"n_thresholds": 5, "cv": 3, "random_state": 0}
    model = LocalExpertRegressor(expert, center=center, **usual).fit(convert(X), y)
    centre = model.forecaster_.frame.centre_.fitted_["Pipeline_0"].models_[0]
    assert centre.feature_names_in_.tolist() == list(X.columns)
    assert np.sqrt(np.mean((model.predict(convert(X)) - y) ** 2)) < 0.15
    for given, message in (
        ({"center": LinearRegression()}, r"`center`: LinearReg.*'town' has cat"),
        ({"expert": LogisticRegression(), "frame": None}, r"expert .*'town' has"),
    ):
        with pytest.raises(RuntimeError, match=message):
            LocalExpertRegressor(**given).fit(convert(X), y)
        fitted = LocalExpertRegressor(**given, **usual).fit(X[["size"]], y)
        gap = pd.DataFrame({"size": [0.5, np.nan]})
        with pytest.raises(RuntimeError, match=r"(?s)`: L.* failed: .*'size' has"):
            fitted.predict(gap)


def test_one_seed_is_drawn_for_all_stages(houses):
    X, y = houses
    model = LocalExpertRegressor(center=LinearRegression(), n_thresholds=5)
    model.fit(X[["size", "floor"]], y)
    road = model.forecaster_
    stages = [road.frame, road.experts.calibration, model.recalibration_]
    stages += road.experts.members.values()
    seeds = {road.laws.seed, *(stage.random_state for stage in stages)}
    assert len(seeds) == 1
    assert isinstance(seeds.pop(), int)


@pytest.mark.parametrize("given", ["known", "held out", "in part"])
def test_rows_without_weight_do_not_tell_how_columns_are_read(houses, given):
    X, y = houses
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(N) % 9, "D")
    X = X.assign(day=days, town=np.where(X["town"] == "Ulm", "Ulm", "else"))
    ghosts = X[:9].assign(town=[*"ABCDEFGHI"], day=pd.Timestamp("1999-07-01 10:30"))
    weight = np.append(np.ones(N), np.zeros(9))
    if given == "in part":
        y = np.column_stack([y, np.where(np.arange(N) % 4, y, np.inf)])
    model = LocalExpertRegressor(effort="quick", random_state=0)
    model.set_params(recalibrate="conformal" if given == "held out" else "pit")
    said, readers = [], []
    # Rows that are drawn need random numbers, so there must be as many of them.
    for more in (ghosts, X[:9] if given == "in part" else X[:0]):
        n = N + len(more)
        rows, target = pd.concat([X, more]), np.concatenate([y, y[: len(more)]])
        said.append(model.fit(rows, target, weight[:n]).predict(X))
        readers.append(model.reader_)
    assert readers[0] == readers[1]
    np.testing.assert_allclose(*said, rtol=1e-9)
