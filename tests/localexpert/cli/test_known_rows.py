"""`evaluate` and `report` of several files: what one table gives, and what is wrong."""

import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from localexpert import crps_score, load, log_score
from localexpert.cli import evaluate, read_file, scores
from localexpert.cli.known_rows import KnownRows, draw_rows
from localexpert.cli.out_column import OutColumn
from localexpert.cli.scores import ExpectedSums, ScoreSums
from tests.localexpert.cli.conftest import write_parts


@pytest.fixture
def new_rows(sold):
    """Return rows of the table in another order, some without a target."""
    rows = sold.sample(frac=1.0, random_state=0).reset_index(drop=True)
    rows.loc[[0, 17, 100, 239], "y"] = np.nan
    return rows


@pytest.fixture
def told(run, sold_model):
    """Return a function that evaluates files, as figures."""

    def evaluate_files(*paths):
        code, out, _ = run("evaluate", sold_model, *paths, "--json")
        assert code == 0
        return json.loads(out)

    return evaluate_files


def flat(tree, name=""):
    if not isinstance(tree, dict):
        return {name: tree}
    parts = (flat(value, f"{name} {key}") for key, value in tree.items())
    return {key: value for part in parts for key, value in part.items()}


def assert_alike(one, other):
    one, other = flat(one), flat(other)
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert value == pytest.approx(other[name], rel=1e-9, abs=1e-12), name


def test_parts_score_as_one_table(told, new_rows, tmp_path, monkeypatch):
    (whole,) = write_parts(tmp_path / "one", new_rows, 1)
    csv = write_parts(tmp_path / "csv", new_rows, 3)
    parquet = write_parts(tmp_path / "parquet", new_rows, 4, "parquet")
    new_rows.iloc[:0].to_parquet(tmp_path / "parquet" / "part9.parquet")
    one = told(whole)
    assert one["rows"] == 236
    assert_alike(told(*csv), one)
    assert_alike(told(tmp_path / "parquet"), one)
    # In parts, batches and chunks that do not end together.
    monkeypatch.setattr(read_file, "_PART", 70)
    monkeypatch.setattr(evaluate, "_BATCH", 37)
    monkeypatch.setattr(scores, "_CHUNK", 16)
    assert_alike(told(*csv), one)
    assert_alike(told(*parquet[::-1]), one)


def test_sums_are_the_means_of_all_rows(sold, sold_model, monkeypatch):
    monkeypatch.setattr(scores, "_CHUNK", 37)
    saved = load(sold_model)
    dist, climate = saved.model.oof_distribution_, saved.climatology.dist(240)
    y = sold["y"].to_numpy()
    sums, expected = ScoreSums(saved.climatology), ExpectedSums()
    for start in range(0, 240, 100):
        part = slice(start, start + 100)
        sums.add(y[part], dist[part])
        expected.add(dist[part])
    assert sums.n_rows == expected.n_rows == 240
    for who, held in {"model": dist, "climatology": climate}.items():
        found = sums.means()[who]
        assert found["crps"] == pytest.approx(crps_score(y, held), rel=1e-12)
        assert found["log_score"] == pytest.approx(log_score(y, held), rel=1e-12)
        rmse = np.sqrt(np.mean((y - held.mean()) ** 2))
        assert found["rmse"] == pytest.approx(rmse, rel=1e-12)
        mae = np.abs(y - held.median()).mean()
        assert found["mae"] == pytest.approx(mae, rel=1e-12)
        covered = held.covered(y, 0.9).mean()
        assert found["coverage_90"] == pytest.approx(covered, rel=1e-12)
    for name, loss in {"crps": "crps", "mae": "abs_error"}.items():
        whole = dist.expected_mean(loss)
        found = expected.means()[name]
        assert found["mean"] == pytest.approx(whole.mean, rel=1e-12)
        assert found["low"] == pytest.approx(whole.low, rel=1e-12)
        assert found["high"] == pytest.approx(whole.high, rel=1e-12)


def test_the_title_names_the_tables(run, sold_model, sales):
    paths, _ = sales(3)
    assert run("evaluate", sold_model, paths[0])[1].startswith(f"80 rows of {paths[0]}")
    said = run("evaluate", sold_model, *paths)[1]
    assert said.startswith("240 rows of part0.csv and 2 more\n")


def with_words(name, rows):
    def change(part, number):
        if number == 1:
            part = part.astype({name: object})
            part.loc[rows, name] = "much"
        return part

    return change


def without(name):
    return lambda part, number: part.drop(columns=name) if number == 1 else part


BAD = {
    "no x": (without("x"), "csv", r"part1.csv lacks 1 column .* trained on: 'x'"),
    "no x in parquet": (
        without("x"),
        "parquet",
        r"part1.parquet has no column 'x', which .*part0.parquet has",
    ),
    "no y": (without("y"), "csv", r"part1.csv has no target 'y'; its columns are"),
    "no y in parquet": (
        without("y"),
        "parquet",
        r"part1.parquet has no column 'y', which .*part0.parquet has",
    ),
    "words": (
        with_words("x", slice(None)),
        "csv",
        r"column 'x' must hold numbers as in training, got 'much' in line 2 of .*part1",
    ),
    "a target": (
        with_words("y", 4),
        "csv",
        r"target 'y' must hold finite numbers, got 'much' in line 6 of .*part1.csv",
    ),
    "texts": (
        lambda part, number: part.astype({"x": str}) if number == 1 else part,
        "parquet",
        r"column 'x' is .*string in .*part1.parquet and double in .*part0.parquet",
    ),
    "no rows": (
        lambda part, number: part.iloc[:0] if number == 1 else part,
        "csv",
        r"part1.csv has a header but no rows",
    ),
    "no targets": (
        lambda part, _: part.assign(y=np.nan),
        "csv",
        r"part0.csv, .*part1.csv, .*part2.csv has no row with a target 'y'",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named(refused, sold_model, sales, tmp_path, name):
    change, suffix, message = BAD[name]
    paths, _ = sales(3, suffix, change)
    said = refused("evaluate", sold_model, *paths)
    assert re.search(message, said), said
    page = tmp_path / "page.html"
    page.write_text("before", encoding="utf-8")
    assert refused("report", sold_model, *paths, "--out", page) == said
    assert page.read_text(encoding="utf-8") == "before"


def test_a_file_cut_short_is_named(refused, sold_model, sales):
    paths, _ = sales(3, "parquet")
    with open(paths[2], "r+b") as file:
        file.truncate(900)
    said = refused("evaluate", sold_model, *paths)
    assert "part2.parquet is a damaged Parquet file" in said


def known(frame):
    """Return a frame as parts of rows with a column beside them."""
    names = OutColumn(frame["name"].to_numpy(dtype=object), copied=True)
    return KnownRows(frame[["x"]], frame["y"].to_numpy(), {"name": names})


@pytest.mark.parametrize("sizes", [[1000], [1, 999], [300, 400, 300], [10] * 100])
def test_the_same_rows_are_drawn_of_any_parts(sizes, rng):
    x = rng.normal(size=1000)
    names = [f"r{k}" for k in range(1000)]
    frame = pd.DataFrame({"x": x, "y": -x, "name": names})
    ends = np.cumsum([0, *sizes])
    parts = [known(frame.iloc[a:b]) for a, b in pairwise(ends)]
    drawn, n = draw_rows(iter(parts), 80)
    assert (len(drawn), n) == (80, 1000)
    rows = drawn.frame.index.to_numpy()
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(drawn.frame["x"], x[rows])
    np.testing.assert_array_equal(drawn.y, -x[rows])
    assert list(drawn.kept["name"].texts()) == [names[row] for row in rows]
    whole, _ = draw_rows([known(frame)], 80)
    np.testing.assert_array_equal(whole.frame.index, rows)
    # More are the same and others; all are all.
    more, _ = draw_rows(parts, 81)
    assert set(rows) < set(more.frame.index)
    every, _ = draw_rows(parts, 1000)
    pd.testing.assert_frame_equal(every.frame, frame[["x"]])


def test_rows_are_drawn_evenly():
    frame = pd.DataFrame({"x": np.zeros(20_000), "y": 0.0, "name": ""})
    rows = draw_rows([known(frame)], 4000)[0].frame.index.to_numpy()
    counts = np.bincount(rows // 1000, minlength=20)
    # 200 of each thousand, with a standard deviation of 13.
    assert np.abs(counts - 200).max() < 50


def test_a_page_of_parts_is_that_of_one_table(run, sold_model, sales, tmp_path):
    (whole,) = write_parts(tmp_path / "one", sales(1)[1], 1)
    sales(3, "parquet")
    pages = []
    for table in (whole, tmp_path / "parquet3"):
        page = tmp_path / "page.html"
        words = ["--max-rows", 40, "--id", "shop", "--groups", "kind", "--out", page]
        code, _, lines = run("report", sold_model, table, *words)
        assert code == 0
        pages.append(page.read_text(encoding="utf-8"))
    assert "localexpert: drew 40 (--max-rows) of 240 rows of 3 files" in lines
    name = "40 rows of parquet3 (drawn from 240)"
    assert name in pages[1]
    assert pages[0].replace("part0.csv", "parquet3") == pages[1]


def test_a_page_is_no_file_of_the_tables(refused, sold_model, sales, tmp_path):
    paths, _ = sales(2, "parquet")
    words = ["--out", paths[0]]
    said = refused("report", sold_model, tmp_path / "parquet2", *words)
    assert "is the same file as" in said
    said = refused("report", sold_model, paths[1], "--train", tmp_path, *words)
    assert "is the same file as" in said
    said = refused("report", sold_model, "-", "--train", "-", "--out", tmp_path / "p")
    assert said == "standard input can be one table only: give a file after --train"


def test_a_file_without_any_target_is_named(run, sold_model, sales, fitted):
    paths, _ = sales(3, change=lambda p, k: p.assign(y=np.nan) if k == 1 else p)
    lines = run("evaluate", sold_model, *paths)[2]
    said = f"warning: there is no target 'y' in any row of {paths[1]}"
    assert f"localexpert: {said}" in lines
    for road in ([], ["--max-train-rows", 100]):
        assert said in fitted(*paths, *road)[1]


def test_a_file_that_is_named_twice_is_told(run, sold_model, sales, tmp_path):
    paths, _ = sales(2, "parquet")
    lines = run("evaluate", sold_model, tmp_path / "parquet2", paths[1])[2]
    said = f"warning: named more than once, and read as often: {paths[1]}"
    assert f"localexpert: {said}" in lines


def test_a_folder_of_csv_is_told_from_an_empty_one(refused, sold_model, sales):
    folder = Path(sales(2)[0][0]).parent
    said = refused("evaluate", sold_model, folder)
    assert said == (
        f"{folder} is a folder without a file *.parquet; name CSV files themselves, as "
        f"in {folder / '*.csv'}"
    )
