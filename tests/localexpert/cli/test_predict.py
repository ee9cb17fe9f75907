"""predict: what the model says, in the conventions of the input, to the last digit."""

import csv
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibration.storage import load


def read_csv(path, delimiter=","):
    frame = pd.read_csv(path, sep=delimiter, dtype=str, keep_default_na=False)
    return frame.to_dict("list")


def numbers(columns, name):
    return np.array(columns[name], dtype=float)


@pytest.fixture
def forecasts(ok, houses, tmp_path):
    """Return a function that predicts test.csv with further options."""

    def predict(*options, table=None):
        out = tmp_path / "forecasts.csv"
        table = houses / "test.csv" if table is None else table
        words = ["predict", houses / "model.zip", table, "--out", out]
        _, lines = ok(*words, *options)
        return read_csv(out), lines

    return predict


@pytest.fixture(scope="module")
def told(houses):
    """Return the table of test.csv, and what the model says of it in Python."""
    frame = pd.read_csv(houses / "test.csv", dtype=str, keep_default_na=False)
    return frame, load(houses / "model.zip").predict_dist(frame)


def test_is_what_the_model_says_of_the_raw_frame(forecasts, told):
    columns, _ = forecasts(
        *("--quantiles", ".95,.05,.5", "--interval", ".8"),
        *("--exceed", "700,-5", "--keep", "id,id"),
    )
    assert list(columns) == [
        *("id", "mean", "std", "q0.05", "q0.5", "q0.95", "low_0.8", "high_0.8"),
        *("p_above_700", "p_above_-5"),
    ]
    _, dist = told
    assert columns["id"] == [f"A{i}" for i in range(80)]
    for name, want in (
        ("mean", dist.mean()),
        ("std", dist.std()),
        ("q0.95", dist.ppf(0.95)),
        ("low_0.8", dist.interval(0.8)[:, 0]),
        ("p_above_700", dist.sf(700.0)),
    ):
        np.testing.assert_array_equal(numbers(columns, name), want)


@pytest.mark.parametrize("tail", ["upper", "lower"])
def test_risks_are_those_of_the_distribution(forecasts, told, tail):
    near = ["0.12345678901", "0.12345678902"]
    words = ["--var", ".99,.95", "--es", ".9", "--es", ",".join(near), "--tail", tail]
    columns, _ = forecasts(*words)
    names = ["var_0.95", "var_0.99", *(f"es_{level}" for level in [*near, "0.9"])]
    assert list(columns) == ["mean", "std", *names]
    _, dist = told
    for name, want in (
        ("var_0.95", dist.value_at_risk(0.95, tail)),
        ("var_0.99", dist.value_at_risk(0.99, tail)),
        ("es_0.9", dist.expected_shortfall(0.9, tail)),
    ):
        np.testing.assert_allclose(numbers(columns, name), want, rtol=1e-9)


def test_totals_are_those_of_the_distribution(forecasts, told):
    columns, lines = forecasts("--total", "kind", "--var", ".95", "--quantiles", ".5")
    frame, dist = told
    sums = dist.total(groups=frame["kind"].to_numpy())
    assert columns["kind"] == ["flat", "house", "hut"]
    counts = frame["kind"].value_counts().sort_index()
    assert columns["rows"] == counts.map(str).tolist()
    np.testing.assert_allclose(numbers(columns, "mean"), sums.mean(), rtol=1e-9)
    want = sums.value_at_risk(0.95)
    np.testing.assert_allclose(numbers(columns, "var_0.95"), want, rtol=1e-9)
    assert lines[-1].startswith("localexpert: wrote 3 forecasts to ")


def test_the_conventions_of_the_input_are_those_of_the_output(
    ok, refused, houses, tmp_path
):
    frame = pd.read_csv(houses / "test.csv")
    german, out = tmp_path / "neu.csv", tmp_path / "f.csv"
    frame.to_csv(german, sep=";", decimal=",", index=False, encoding="cp1252")
    plain = ok("predict", houses / "model.zip", houses / "test.csv")[0].splitlines()
    words = ["predict", houses / "model.zip", german, "--keep", "area", "--out", out]
    ok(*words)
    columns = read_csv(out, ";")
    want = [row.split(",")[0].replace(".", ",") for row in plain[1:]]
    assert columns["mean"] == want
    known = frame["area"].notna()
    texts = [f"{area:.1f}".replace(".", ",") for area in frame["area"][known]]
    assert np.array(columns["area"])[known].tolist() == texts
    ok(*words, "--digits", 3)
    first, number = read_csv(out, ";")["mean"][0], float(plain[1].split(",")[0])
    assert float(first.replace(",", ".")) == float(f"{number:.3g}")
    words.insert(2, houses / "test.csv")
    assert "neu.csv' differ in decimal marks: save them alike" in refused(*words)
    ok(*words[:4])


def test_marks_of_thousands_that_are_told(forecasts, told, tmp_path):
    frame, path = told[0].copy(), tmp_path / "t.csv"
    found = []
    for area in ("1050", "1,050"):
        frame.loc[3, "area"] = area
        frame.to_csv(path, index=False)
        found.append(forecasts("--thousands", "comma", table=path))
    assert found[0] == found[1]


def test_the_name_of_the_output_says_how_it_is_written(ok, houses, told, tmp_path):
    path = tmp_path / "f.parquet"
    ok("predict", houses / "model.zip", houses / "test.csv", "--out", path)
    np.testing.assert_array_equal(pd.read_parquet(path)["mean"], told[1].mean())


def test_words_that_training_never_saw_are_told(forecasts, told, write):
    kinds = ["tent", *told[0]["kind"][1:]]
    columns, lines = forecasts(table=write(told[0].assign(kind=kinds)))
    assert len(columns["mean"]) == 80
    assert any("in 'kind': 'tent' (1 row, first in line 2 of " in li for li in lines)


def test_other_process_and_standard_output_agree(forecasts, houses):
    columns, said = forecasts()
    assert list(columns) == ["mean", "std", "q0.05", "q0.5", "q0.95"]
    assert said[-1].startswith("localexpert: wrote 80 forecasts to ")
    words = ["predict", str(houses / "model.zip"), str(houses / "test.csv")]
    done = subprocess.run(
        [sys.executable, "-m", "localexpert", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    header, *rows = done.stdout.splitlines()
    assert header.split(",") == list(columns)
    assert [row.split(",")[0] for row in rows] == columns["mean"]
    assert done.stderr == ""


def test_a_reader_that_goes_away(forecasts, houses):
    # What this compiles the other process need not, and it says nothing of it.
    forecasts()
    words = f"{sys.executable} -m localexpert predict {houses}/model.zip"
    line = f"{words} {houses}/test.csv | head -n 0; exit ${{PIPESTATUS[0]}}"
    words = ["bash", "-c", line]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 141)
    assert done.stderr == ""


def test_copied_columns_are_kept_as_they_are(forecasts, told, write):
    frame = told[0].copy()
    frame["key"] = [
        *("1234567890123456789", "-9007199254740993", "007", "1e5", "inf", "NA"),
        *(f"{2**64 - 1}", "9" * 30, " a ", "", "True", "2024-01-01", "+1", "1.10"),
        *("b\rc", 'd"', "e,f", "-0", "c\r\nd", "e\nf", 'g"h,i', " j "),
        *map(str, range(58)),
    ]
    path = write(frame, quoting=csv.QUOTE_ALL)
    columns, _ = forecasts("--keep", "key", table=path)
    assert columns["key"] == frame["key"].tolist()


def test_parquet_forecasts_the_same_and_keeps_every_digit(forecasts, told, tmp_path):
    big, gaps = 1234567890123456789, [None] * 77
    kept = {
        "key": pa.array([big, 3, -big, *gaps]),
        "unsigned": pa.array([2**64 - 1, 0, 5, *gaps], pa.uint64()),
        "decimal": pa.array([Decimal("0.10"), Decimal(10**25), None, *gaps]),
        "text": pa.array(["007", "1e5", " NA ", *gaps]),
    }
    table = pa.table({**told[0].to_dict("list"), **kept})
    pq.write_table(table, path := tmp_path / "t.parquet")
    columns, _ = forecasts("--keep", ",".join(kept), table=path)
    assert columns["mean"] == forecasts()[0]["mean"]
    assert {name: columns[name][:3] for name in kept} == {
        "key": [str(big), "3", str(-big)],
        "unsigned": [str(2**64 - 1), "0", "5"],
        "decimal": ["0.10", "1" + 25 * "0" + ".00", ""],
        "text": ["007", "1e5", " NA "],
    }


def test_a_model_of_python_takes_a_file(ok, refused, houses, tmp_path):
    saved = load(houses / "model.zip")
    frame = pd.read_csv(houses / "test.csv", parse_dates=["sold"])
    frame["garden"] = frame["garden"].astype("boolean")
    features = saved.reader.transform(frame)
    saved.model.save(tmp_path / "python.zip")
    out, _ = ok("predict", tmp_path / "python.zip", houses / "test.csv")
    means = [float(line.split(",")[0]) for line in out.splitlines()[1:]]
    assert means == saved.model.predict_dist(features).mean().tolist()
    words = ["evaluate", tmp_path / "python.zip", houses / "test.csv"]
    assert refused(*words).endswith("python.zip was fitted in Python")
    ok(*words, "--target", "price")
