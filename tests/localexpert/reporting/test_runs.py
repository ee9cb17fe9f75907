"""Reports on targets and models of every kind, and the same one twice."""

import re
import sys

import numpy as np
import pandas as pd
import pytest

from localexpert import crps_score
from localexpert.data.table import TableReader
from localexpert.reporting import pictures, report
from tests.forecasts import of_values

SCORES = "Means over the rows; less is better"
DASH = "\u2013"


@pytest.fixture
def quick(monkeypatch):
    """Draw pictures, but do not write them out, which takes most of the time."""
    monkeypatch.setattr(pictures, "_to_address", lambda _: "data:image/png;base64,")


def test_the_same_seed_gives_the_same_page(houses, page, tmp_path):
    X, y, path = houses.X.copy(), houses.y.copy(), tmp_path / "again.html"
    train = {"X_train": houses.X_train, "y_train": houses.y_train}
    assert report(houses.model, X, y, path, importance_rows=60, **train) == path
    assert path.read_text(encoding="utf-8") == page.source
    pd.testing.assert_frame_equal(X, houses.X)
    np.testing.assert_array_equal(y, houses.y)


@pytest.mark.usefixtures("quick")
def test_tables_are_read_once(houses, tmp_path, monkeypatch):
    class Always:
        def predict_dist(self, X):
            return of_values([0.0, 1.0], np.tile([0.5, 0.5], (len(X), 1)))

    read, encode = [], TableReader.encode
    monkeypatch.setattr(
        TableReader, "encode", lambda self, X: read.append(len(X)) or encode(self, X)
    )
    train = {"X_train": houses.X_train, "y_train": houses.y_train}
    report(Always(), houses.X, houses.y, tmp_path / "r.html", **train)
    # The new rows twice: with categories of their own, and with those of training.
    assert sorted(read) == [220, 220, 300]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", ["discrete", "mixed", "constant"])
def test_targets_of_every_kind(kind, fast, read_page, rng, tmp_path):
    X = rng.normal(size=(240, 2))
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=240))
    y = {
        "discrete": np.floor(np.minimum(y, 3.0)),
        "mixed": np.where(X[:, 1] > 0.8, 0.0, y),
        "constant": np.ones(240),
    }[kind]
    if kind == "constant":
        with pytest.warns(UserWarning, match="every forecast is that value"):
            model = fast().fit(X[:160], y[:160])
    else:
        model = fast().fit(X[:160], y[:160])
    path = tmp_path / "r.html"
    train = {"X_train": X[:160], "y_train": y[:160]}
    report(model, X[160:], y[160:], path, importance_rows=20, **train)
    page = read_page(path)
    dist = model.predict_dist(X[160:])
    assert page.column(SCORES, "Model")["CRPS"] == crps_score(y[160:], dist)
    theirs = page.column(SCORES, "Climatology")["CRPS"]
    sample = np.abs(y[:160, None] - y[160:]).mean(axis=0)
    sample -= 0.5 * np.abs(y[:160, None] - y[:160]).mean()
    assert theirs == pytest.approx(sample.mean(), rel=0.02, abs=1e-12)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_rows(n, houses, read_page, tmp_path):
    path = tmp_path / "r.html"
    report(houses.model, houses.X[:n], houses.y[:n], path)
    told = "There is only 1 row" if n == 1 else f"There are only {n} rows"
    page = read_page(path)
    assert f"Warning: {told}" in page.text
    assert not re.search(r"\b1 (rows|outcomes|forecasts|groups|features)\b", page.text)
    assert "as it should be" not in page.text


@pytest.mark.usefixtures("quick")
def test_a_model_of_the_users_without_training_rows(read_page, tmp_path):
    class Coin:
        def predict_dist(self, X):
            p = 0.2 + 0.6 * X[:, 0]
            return of_values([0.0, 1.0], np.column_stack([1 - p, p]))

    X = np.tile([[0.0, 5.0], [1.0, 5.0]], (30, 1))
    path = tmp_path / "r.html"
    report(Coin(), X, X[:, 0], path)
    page = read_page(path)
    assert page.column(SCORES, "Climatology")["CRPS"] == DASH
    assert "none were given (y_train)" in page.text
    assert "Coin keeps no record of choices" in page.text
    report(Coin(), X, X[:, 0], path, y_train=[0.0, 0.0, 0.0, 1.0])
    # CRPS of probability 1/4 for 1: 1/16 where 0 came, 9/16 where 1 came.
    told = read_page(path).column(SCORES, "Climatology")
    assert told["CRPS"] == pytest.approx(5.0 / 16.0)


@pytest.mark.usefixtures("quick")
def test_a_stacker_and_a_recalibration(fast, read_page, rng, tmp_path):
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + 0.5 * rng.normal(size=300)
    model = fast(stacker="auto", recalibrate="conformal").fit(X[:200], y[:200])
    path = tmp_path / "r.html"
    report(model, X[200:], y[200:], path, importance_rows=20)
    page = read_page(path)
    assert "training rows out of fold (mean CRPS" in page.text
    assert f"training ({len(model.fitted_rows_)} rows, kept by the model)" in page.text


@pytest.mark.usefixtures("quick")
def test_many_features_are_measured_on_fewer_rows(read_page, rng, tmp_path):
    class First:
        def predict_dist(self, X):
            p = np.clip(X[:, 0], 0.1, 0.9)
            return of_values([0.0, 1.0], np.column_stack([1 - p, p]))

    X = rng.uniform(size=(200, 250))
    path = tmp_path / "r.html"
    report(First(), X, (X[:, 0] > 0.5).astype(float), path, importance_rows=200)
    page = read_page(path)
    assert "120 of the 200 rows" in page.text  # 60 000 / (250 * 2)
    caption = "Increase of the CRPS, the first 15 of 250 features"
    told = page.column(caption, "Increase")
    assert next(iter(told)) == "x0"
    assert told["x0"] > 0.01
    assert all(told[name] == 0.0 for name in list(told)[1:])


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("container", ["polars", "pandas with repeated labels"])
def test_tables_of_other_kinds(container, houses, read_page, tmp_path):
    X, y = houses.X[:60], houses.y[:60]
    if container == "polars":
        polars = pytest.importorskip("polars", reason="a data frame of polars")
        X = polars.from_dict({name: X[name].to_list() for name in X.columns})
    else:
        X = X.set_axis([f"<i>{k % 7}</i>" for k in range(60)], axis=0)
    path = tmp_path / "r.html"
    report(houses.model, X, y, path, importance_rows=20, groups=["<b>town</b>"])
    page = read_page(path)
    dist = houses.model.predict_dist(houses.X[:60])
    assert page.column(SCORES, "Model")["CRPS"] == pytest.approx(crps_score(y, dist))
    assert list(page.column("Coverage by group", "Rows")) == [
        "<script>alert(1)</script>",
        "Aa & Bb",
        "Cc",
    ]


@pytest.mark.usefixtures("quick")
def test_importance_can_be_left_out(houses, read_page, tmp_path):
    path = tmp_path / "r.html"
    report(houses.model, houses.X, houses.y, path, importance_rows=0)
    page = read_page(path)
    assert "It was not measured" in page.text
    assert page.tables["Coverage by group"][7] == ["area"]


@pytest.mark.usefixtures("quick")
def test_without_pandas_the_risk_table_is_left_out(read_page, tmp_path, monkeypatch):
    class Always:
        def predict_dist(self, X):
            return of_values([0.0, 1.0], np.tile([0.5, 0.5], (len(X), 1)))

    path = tmp_path / "r.html"
    monkeypatch.setitem(sys.modules, "pandas", None)
    report(Always(), np.ones((30, 1)), np.ones(30), path)
    page = read_page(path)
    assert "There is no table: `risk_table` needs pandas" in page.text
    assert "Risk by the forecasts" not in page.tables
