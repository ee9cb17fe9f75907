"""evaluate, report, inspect: scores of new rows, and what is known of a model."""

import json
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from calibration import __version__
from calibration.storage import load
from localexpert.cli import table_model
from localexpert.metrics import crps_score, log_score
from localexpert.reporting import pictures
from tests.localexpert.cli.conftest import QUICK, draw_houses, save_frame, write_parts


@pytest.fixture
def new_rows():
    """Return the training rows with other targets, some without."""
    rows = draw_houses(200, 0).sample(frac=1.0, random_state=0, ignore_index=True)
    rows["price"] += 0.01
    rows.loc[[0, 17, 100, 199], "price"] = np.nan
    return rows


@pytest.fixture
def told(ok, houses):
    """Return a function that evaluates files, as figures."""

    def evaluate_files(*paths):
        out, _ = ok("evaluate", houses / "model.zip", *paths, "--json")
        return json.loads(out)

    return evaluate_files


def assert_alike(*scores):
    one, other = map(pd.json_normalize, scores)
    pd.testing.assert_frame_equal(one, other, rtol=1e-6, check_like=True)


def test_json_is_the_scores(ok, houses):
    words = ["evaluate", houses / "model.zip", houses / "test.csv"]
    out, _ = ok(*words, "--json")
    scores = json.loads(out)
    frame = pd.read_csv(houses / "test.csv", dtype=str, keep_default_na=False)
    y = frame["price"].to_numpy(dtype=float)
    dist = load(houses / "model.zip").predict_dist(frame)
    ours, theirs = scores["model"], scores["climatology"]
    assert scores["rows"] == 80
    assert "None of the 80 rows" in scores["training_rows"]
    assert ours["crps"] == pytest.approx(crps_score(y, dist), rel=1e-12)
    assert ours["log_score"] == pytest.approx(log_score(y, dist), rel=1e-12)
    assert ours["rmse"] == pytest.approx(np.sqrt(np.mean((y - dist.mean()) ** 2)))
    assert ours["mae"] == pytest.approx(np.abs(y - dist.median()).mean())
    assert ours["coverage_90"] == pytest.approx(dist.covered(y, 0.9).mean())
    train = pd.read_csv(houses / "train.csv")["price"].to_numpy()
    spread = np.abs(train[:, None] - train).mean() / 2
    climate = np.abs(y[:, None] - train).mean() - spread
    assert theirs["crps"] == pytest.approx(climate, rel=0.02)
    for name, loss in (("crps", "crps"), ("mae", "abs_error")):
        want = dist.expected_mean(loss)
        held = [scores["expected"][name][key] for key in ("mean", "low", "high")]
        assert held == pytest.approx([want.mean, want.low, want.high])
    text = ok(*words)[0]
    for name in ("CRPS", "log score", "coverage of 50 %", "RMSE", "expected mae"):
        assert f"\n{name} " in text


def test_parts_score_as_one_table(told, new_rows, tmp_path, monkeypatch):
    (whole,) = write_parts(tmp_path / "one", new_rows, 1)
    csv = write_parts(tmp_path / "csv", new_rows, 3)
    parquet = write_parts(tmp_path / "parquet", new_rows, 4, "parquet")
    new_rows.iloc[:0].to_parquet(tmp_path / "parquet" / "part9.parquet")
    one = told(whole)
    assert one["rows"] == 196
    # In parts that do not end where files do.
    monkeypatch.setattr(table_model, "BATCH", 37)
    for tables in ([tmp_path / "parquet"], csv, parquet[::-1]):
        assert_alike(told(*tables), one)


def test_rows_that_were_learned_from_are_told(ok, houses, told, write, tmp_path):
    mixed = pd.concat([draw_houses(200, 0)[:30], draw_houses(80, 1)])
    path = write(mixed.sample(frac=1.0, random_state=0))
    model = houses / "model.zip"
    out, _ = ok("evaluate", model, path)
    assert out.startswith(f"80 new rows of {path}\nThe model has learned from 30 of")
    mixed = json.loads(ok("evaluate", model, path, "--json")[0])
    alone = json.loads(ok("evaluate", model, houses / "test.csv", "--json")[0])
    assert mixed["model"] == pytest.approx(alone["model"])
    # Of nothing but training rows there are scores, and no illusion.
    out, lines = ok("evaluate", model, houses / "train.csv")
    assert out.startswith("200 rows of ")
    assert lines[-1].endswith("Scores are too good: new rows tell the truth")
    parts = write_parts(tmp_path / "csv", draw_houses(200, 0), 3)
    assert "learned from 200 of the 200" in told(*parts)["training_rows"]


def test_a_few_training_rows_in_each_part_are_told(told, new_rows, tmp_path):
    rows = pd.concat([new_rows[1:55], draw_houses(200, 0)[:6]])
    rows = rows.iloc[np.arange(60).reshape(10, 6).T.ravel()]
    (whole,) = write_parts(tmp_path / "one", rows, 1)
    one = told(whole)
    assert "learned from 6 of the 59" in one["training_rows"]
    assert_alike(told(*write_parts(tmp_path / "six", rows, 6)), one)


def test_scores_that_are_infinite_are_null(ok, write, tmp_path):
    rows, model = {"x": np.arange(40), "y": np.arange(40) % 2}, tmp_path / "m.zip"
    words = ["--target", "y", *QUICK, "--quiet", "--out", model]
    assert ok("fit", write(rows), *words) == ("", [])
    table = write({"x": [3], "y": [17]}, "new.csv")
    out, _ = ok("evaluate", model, table, "--json")
    assert json.loads(out)["climatology"]["log_score"] is None


def test_a_page_is_given_what_the_options_say(ok, houses, tmp_path, monkeypatch):
    write = Mock(side_effect=lambda *given, **_: Path(given[3]).write_text("<html>"))
    monkeypatch.setattr("localexpert.cli.forecasts.write_report", write)
    frame = draw_houses(80, 1).rename(columns={"price": "paid"})
    frame["town"] = ["A", "B", "k.A.", "C"] * 20
    frame.loc[0, "paid"] = np.nan
    save_frame(frame, table := tmp_path / "t.csv")
    words = ["--train", houses / "train.csv", "--title", "Prices", "--unit", "EUR"]
    words += ["--id", "id", "--groups", "town,area,kind", "--coverage", ".8"]
    words += ["--pdf-friendly", "--var", ".99,.95", "--out", tmp_path / "r.html"]
    _, lines = ok("report", houses / "model.zip", table, *words, "--target", "paid")
    assert "localexpert: warning: left out 1 row without a target 'paid'" in lines
    assert f"localexpert: wrote {tmp_path / 'r.html'}" in lines
    ((model, X, y, _), more) = write.call_args
    assert more["verbose"] == 0  # no terminal
    assert X.shape == (79, model.n_features_in_)
    assert y.shape == (79,)
    assert (more["title"], more["unit"], more["coverage"]) == ("Prices", "EUR", 0.8)
    assert (more["target_name"], more["source"]) == ("price", "t.csv")
    assert more["pdf_friendly"]
    assert more["var_levels"] == [0.95, 0.99]
    assert [cell.text for cell in more["odd_cells"]] == ["NA"]
    assert list(more["row_names"]) == [f"A{i}" for i in range(1, 80)]
    assert more["X_train"].shape == (200, model.n_features_in_)
    assert more["y_train"].shape == (200,)
    groups = more["groups"]
    assert list(groups["town"][:3]) == ["B", "missing", "C"]
    np.testing.assert_array_equal(groups["area"], X["area"])
    assert set(groups["kind"]) == {"flat", "house", "hut"}


def test_a_page_of_parts_is_that_of_one_table(
    ok, houses, new_rows, tmp_path, monkeypatch
):
    # Equal words and numbers have equal pictures, which take most of the time.
    monkeypatch.setattr(pictures, "picture", lambda *_: "data:image/png;base64,")
    (whole,) = write_parts(tmp_path / "one", new_rows, 1)
    write_parts(tmp_path / "parts", new_rows, 3, "parquet")
    pages = []
    for table in (whole, tmp_path / "parts"):
        page = tmp_path / "page.html"
        words = ["--max-rows", 40, "--id", "id", "--groups", "kind", "--out", page]
        _, lines = ok("report", houses / "model.zip", table, *words)
        pages.append(page.read_text(encoding="utf-8"))
    assert any("drew 40 (--max-rows) of 196 rows of" in line for line in lines)
    assert "parts (drawn from 196)" in pages[1]
    assert pages[0].replace("part0.csv", "parts") == pages[1]


# inspect


def test_a_model_of_fit(ok, houses):
    text, lines = ok("inspect", houses / "model.zip")
    assert lines == []
    saved = load(houses / "model.zip")
    day = f"fitted: {saved.origin['fitted']}"
    for line in ("table: train.csv", "rows: 200", day, f"version: {__version__}"):
        assert line in text.splitlines()
    assert "kind    3 words: flat, house, hut" in text
    assert "cv=2, frame=None, n_thresholds=3, random_state=0, strategy='shared'" in text
    assert "chosen on the way\ntarget       continuous" in text
