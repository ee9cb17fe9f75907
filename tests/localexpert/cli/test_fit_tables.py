"""`fit` of several files, folders, and of more rows than are learned from."""

import inspect
import io
import re

import numpy as np
import pandas as pd
import pytest

from localexpert import fit_large, load
from localexpert.cli.fit import _MOST_ROWS
from localexpert.cli.row_counts import count_rows
from tests.localexpert.cli.conftest import QUICK


def test_several_files_are_fitted_as_one_table(fitted, sales, sold_model):
    paths, _ = sales(3)
    one = load(sold_model)
    several, said = fitted(*paths)
    assert said[0] == (
        "3 files, about 240 rows, no more than --max-train-rows 250000: fitted "
        "together in memory"
    )
    assert several.schema == one.schema
    assert several.origin.table == "part0.csv and 2 more"
    assert several.origin.scores == one.origin.scores


def test_a_folder_of_parquet_is_one_table(fitted, sales, tmp_path):
    _, frame = sales(3, "parquet")
    frame.iloc[:0].to_parquet(tmp_path / "parquet3" / "part9.parquet")
    saved, said = fitted(tmp_path / "parquet3")
    assert said[0].startswith("warning: left out, for they have no rows: ")
    assert said[0].endswith("part9.parquet")
    assert said[1].startswith("3 files, 240 rows, no more than --max-train-rows")
    assert (saved.origin.table, saved.origin.rows) == ("parquet3", 240)


def test_more_rows_are_read_part_by_part_with_one_answer(fitted, sales, run, tmp_path):
    words = ["--group", "shop", "--weight", "many", "--max-train-rows", 150]
    paths, frame = sales(3)
    csv, said = fitted(*paths, *words)
    assert said[0] == (
        "3 files, about 240 rows, more than --max-train-rows 150: fitted to a sample, "
        "calibrated by the others, part by part"
    )
    assert "scores out of fold are of the sample" in said
    sales(2, "parquet")
    parquet, said = fitted(tmp_path / "parquet2", *words)
    assert said[0].startswith("2 files, 240 rows, more than --max-train-rows 150")
    assert csv.schema == parquet.schema
    assert csv.schema.others == ("many", "shop")
    assert csv.origin.rows == 240
    assert csv.origin.scores == parquet.origin.scores
    used = csv.model.report_.choices["large"]
    assert used["rows"] == 240
    assert used["sample"] <= 150
    assert len(csv.model.fitted_rows_) == used["sample"]
    for saved in (csv, parquet):
        assert saved.origin.scores["model"]["crps"] < 1.5
    # Other commands take it as they take any other.
    test = tmp_path / "test.csv"
    frame.to_csv(test, index=False)
    model = sorted(tmp_path.glob("model*.zip"))
    code, out, _ = run("evaluate", model[0], test)
    assert code == 0
    assert "CRPS" in out
    code, one, _ = run("predict", model[0], test)
    code, other, _ = run("predict", model[1], test)
    assert code == 0
    assert one == other
    median = pd.read_csv(io.StringIO(one))["q0.5"]
    assert np.corrcoef(median, frame["y"])[0, 1] > 0.7
    assert run("inspect", model[0])[0] == 0


def test_a_large_table_may_have_one_target(fitted, sales):
    paths, _ = sales(2, change=lambda part, _: part.assign(y=4.0))
    saved, _ = fitted(*paths, "--max-train-rows", 50)
    assert saved.origin.rows == 240
    assert saved.climatology.values.tolist() == [4.0]


def test_values_that_the_sample_lacks_are_no_categories(fitted, sales):
    def name_each(part, number):
        names = [f"p{number}_{row // 2}" for row in range(len(part))]
        return part.assign(kind=names)

    saved, said = fitted(*sales(2, change=name_each)[0], "--max-train-rows", 50)
    (rule,) = (rule for rule in saved.schema.rules if rule.name == "kind")
    place = saved.model.reader_.columns.names.index("kind")
    assert list(rule.categories) == list(saved.model.reader_.category_codes[place])
    assert 0 < len(rule.categories) < 120
    assert any("categories not in the sample" in line for line in said)


ROADS = [[], ["--max-train-rows", 100]]


def without(name):
    return lambda part, number: part.drop(columns=name) if number == 1 else part


def with_cell(name, value):
    def change(part, number):
        if number == 1:
            part = part.astype({name: object})
            part.loc[4, name] = value
        return part

    return change


BAD = {
    "no x": (
        without("x"),
        "csv",
        r"part1.csv has no column 'x', which .*part0.csv has",
    ),
    "no y": (
        without("y"),
        "csv",
        r"part1.csv has no column 'y', which .*part0.csv has",
    ),
    "no y in parquet": (
        without("y"),
        "parquet",
        r"part1.parquet has no column 'y', whi",
    ),
    "one more": (
        lambda part, number: part.assign(z=1) if number == 1 else part,
        "csv",
        r"part0.csv has no column 'z', which .*part1.csv has",
    ),
    "one more in parquet": (
        lambda part, number: part.assign(z=1) if number == 1 else part,
        "parquet",
        r"part0.parquet has no column 'z', which .*part1.parquet has",
    ),
    "a word": (
        with_cell("x", "huge"),
        "csv",
        r"column 'x' holds numbers in .*part0.csv but 'huge' in line 6 of .*part1.csv",
    ),
    "no date": (
        with_cell("day", "soon"),
        "csv",
        r"column 'day' holds dates in .*part0.csv but 'soon' in line 6 of .*part1.csv",
    ),
    "other dates": (
        lambda part, number: part.assign(day="31.12.2024") if number == 1 else part,
        "csv",
        r"column 'day' holds dates in every file, written in different ways",
    ),
    "texts": (
        lambda part, number: part.astype({"x": str}) if number == 1 else part,
        "parquet",
        r"column 'x' is .*string in .*part1.parquet and double in .*part0.parquet",
    ),
    "target": (
        with_cell("y", "much"),
        "csv",
        r"target 'y' must hold finite numbers, got 'much' in line 6 of .*part1.csv",
    ),
    "no rows": (
        lambda part, number: part.iloc[:0] if number == 1 else part,
        "csv",
        r"part1.csv has a header but no rows",
    ),
}


@pytest.mark.parametrize("road", ROADS, ids=["memory", "large"])
@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_named(refused, sales, tmp_path, name, road):
    change, suffix, message = BAD[name]
    paths, _ = sales(3, suffix, change)
    out = tmp_path / "m.zip"
    said = refused("fit", *paths, "--target", "y", *QUICK, *road, "--out", out)
    assert re.search(message, said), said
    assert not out.exists()


@pytest.mark.parametrize("road", ROADS, ids=["memory", "large"])
def test_a_file_cut_short_is_named(refused, sales, tmp_path, road):
    paths, _ = sales(3, "parquet")
    with open(paths[2], "r+b") as file:
        file.truncate(900)
    out = tmp_path / "m.zip"
    said = refused("fit", *paths, "--target", "y", *QUICK, *road, "--out", out)
    assert "part2.parquet is a damaged Parquet file" in said
    assert not out.exists()


def test_dropped_columns_may_differ(fitted, sales):
    paths, _ = sales(2, change=with_cell("many", "lots"))
    saved, _ = fitted(*paths, "--drop", "many")
    assert saved.schema.others == ("many",)
    fitted(*sales(2, change=without("many"))[0], "--drop", "many")


def test_what_only_memory_can_do_is_refused(refused, sales, tmp_path):
    paths, _ = sales(2)
    words = ["--target", "y", "--out", tmp_path / "m.zip", "--max-train-rows", 100]
    said = refused("fit", *paths, *words, "--recalibrate", "conformal")
    assert said == (
        "--recalibrate conformal needs a fit in memory, got 2 files, about 240 rows, "
        "more than --max-train-rows 100; say --recalibrate pit or a larger "
        "--max-train-rows"
    )
    said = refused("fit", *paths, "-", *words)
    assert "must be in files, which are read several times, got standard input" in said
    assert "240 rows (those of a pipe are not counted), more than" in said
    said = refused("fit", "-", *words)
    assert said == (
        "--max-train-rows needs files, whose rows are counted first, got standard input"
    )
    said = refused("fit", *paths, *words, "--weight", "x")
    assert "weight 'x' must hold numbers from 0 on, got '' in line" in said


def test_rows_are_counted_before_they_are_read(sales, write):
    assert count_rows(sales(3)[0], np.inf) == 240
    assert count_rows(sales(3, "parquet")[0], np.inf) == 240
    assert count_rows([write("a,b\r\n1,2\r\n3,4")], np.inf) == 2
    assert count_rows([write("a,b\r1,2\r3,4\r")], np.inf) == 2
    assert count_rows(["-"], np.inf) == 0


def test_the_limit_is_that_of_fit_large():
    assert (
        inspect.signature(fit_large).parameters["max_train_rows"].default == _MOST_ROWS
    )
