"""fit, predict, evaluate and report on sound input, from file to file."""

import csv
import gzip
import importlib
import json
import os
import re
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from localexpert.cli.read_file import read_table
from localexpert.metrics import crps_score
from localexpert.storage import load
from tests.localexpert.cli.conftest import QUICK


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return {name: [row[j] for row in rows] for j, name in enumerate(header)}


def numbers(columns, name):
    return np.array(columns[name], dtype=float)


@pytest.fixture
def forecasts(run, houses, tmp_path):
    """Return a function that predicts test.csv with further options."""

    def predict(*options, table=None):
        out = tmp_path / "forecasts.csv"
        table = houses / "test.csv" if table is None else table
        code, _, lines = run(
            "predict", houses / "model.zip", table, "--out", out, *options
        )
        assert code == 0
        assert os.listdir(tmp_path).count("forecasts.csv") == 1
        return read_csv(out), lines

    return predict


class TestFit:
    def test_says_what_it_did_with_columns(self, run, houses, tmp_path):
        words = ["--target", "price", "--fast", "--out", tmp_path / "m.zip"]
        code, out, lines = run("fit", houses / "train.csv", *words)
        assert (code, out) == (0, "")
        assert lines == [
            "localexpert: read as gaps in 1 column: 'NA'",
            "localexpert: warning: dropped (a different text in each row): 'id'",
            "localexpert: warning: dropped (holds no value): 'empty'",
            "localexpert: warning: dropped (constant): 'const'",
            "localexpert: fitting 200 rows, 7 features",
            *[line for line in lines if "'price' is never below 0" in line],
            f"localexpert: saved {tmp_path / 'm.zip'}",
            "",
            "column  read as",
            "price   target",
            "id      dropped: a different text in each row",
            "area    number, 30.8 to 199.5; 6 % missing",
            "kind    category, 3 values: flat, house, hut",
            "sold    date, 2023-01-09 to 2024-11-17",
            "garden  boolean; 32 % missing",
            "empty   dropped: holds no value",
            "const   dropped: constant",
            "",
            *lines[-7:],
        ]
        assert lines[-7].split() == ["out", "of", "fold", "model", "climatology"]
        saved = load(tmp_path / "m.zip")
        oof, y = saved.model.oof_distribution_, table_of(houses, "train.csv")
        y = np.array(y.columns["price"], dtype=float)
        assert lines[-6].split()[:2] == ["CRPS", f"{crps_score(y, oof):.5g}"]
        assert os.listdir(tmp_path) == ["m.zip"]

    def test_quiet_says_nothing_and_fits_the_same(self, run, houses, tmp_path):
        words = ["--target", "price", *QUICK, "--seed", "0", "--quiet"]
        path = tmp_path / "m.zip"
        assert run("fit", houses / "train.csv", *words, "--out", path) == (0, "", [])
        assert path.read_bytes() == (houses / "model.zip").read_bytes()

    def test_parameters_reach_the_regressor(self, run, houses, tmp_path):
        words = """--target price --thresholds-count 5 --thresholds uniform --folds 2
            --frame none --strategy joint --calibrator none --smoothing 1.5 --seed 3
            --recalibrate pit --bounds 0 inf --jobs 1 --quiet"""
        path = tmp_path / "m.zip"
        got = run("fit", houses / "train.csv", *words.split(), "--out", path)
        assert got == (0, "", [])
        model = load(path).model
        got = {name: getattr(model, name) for name in PARAMETERS}
        assert got == PARAMETERS

    def test_monotone_columns(self, run, houses, tmp_path):
        path = tmp_path / "m.zip"
        words = (
            "--target price --strategy shared --folds 2 --thresholds-count 5 --quiet"
        )
        signs = ["--monotone", "area:+1,garden:-1", "--monotone", "sold.days:1"]
        got = run("fit", houses / "train.csv", *words.split(), *signs, "--out", path)
        assert got == (0, "", [])
        model = load(path).model
        assert model.monotone == {"area": 1, "garden": -1, "sold.days": 1}
        told = run("inspect", path)[1]
        assert "area +1, garden -1, sold.days +1" in told

    def test_rows_without_target_weights_groups_and_drops(self, run, write, tmp_path):
        rng = np.random.default_rng(0)
        rows = [["x", "junk", "w", "g", "y"]]
        rows += [
            [f"{x:.3f}", f"{x * 3:.3f}", str(i % 3), f"g{i % 9}", f"{x + i % 4:.3f}"]
            for i, x in enumerate(rng.uniform(size=60))
        ]
        rows[5][-1] = rows[9][-1] = ""
        path, out = write(rows), tmp_path / "m.zip"
        words = ["--target", "y", "--weight", "w", "--group", "g", "--drop", "junk"]
        code, _, lines = run("fit", path, *words, "--fast", "--out", out)
        assert code == 0
        assert "warning: left out 2 rows without a target 'y'" in "\n".join(lines)
        saved = load(out)
        assert [rule.name for rule in saved.schema.used] == ["x"]
        assert saved.schema.others == ("w", "g", "junk")
        kept = [i for i in range(60) if i not in (4, 8)]
        assert saved.climatology.weights.sum() == sum(i % 3 for i in kept)
        parts = np.array([i % 9 for i in kept])
        for train, test in saved.model.forecaster_.tasks_.folds:
            assert not set(parts[train]) & set(parts[test])

    def test_decimal_commas_semicolons_and_gzip(self, run, tmp_path):
        lines = [f"{i};{i % 7},5;{i % 5},25" for i in range(60)]
        path = tmp_path / "t.csv.gz"
        text = "\n".join(["row;x;y", *lines])
        path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.encode()))
        words = ["--target", "y", "--decimal", ",", *QUICK, "--quiet"]
        out = tmp_path / "m.zip"
        assert run("fit", path, *words, "--out", out) == (0, "", [])
        values = load(out).climatology.values  # those that were met, and some beside
        assert {0.25, 1.25, 2.25, 3.25, 4.25} <= set(values.tolist())
        # Later files are read as the training file was.
        code, text, _ = run("evaluate", out, path, "--json")
        assert (code, json.loads(text)["rows"]) == (0, 60)
        assert run("predict", out, path, "--quiet")[0] == 0
        assert run("predict", out, path, "--quiet", "--decimal", ".")[0] == 2

    def test_a_target_that_never_changes(self, run, write, tmp_path):
        rows = [["x", "y"], *([str(i), "4"] for i in range(20))]
        path, out = write(rows), tmp_path / "m.zip"
        words = ["--target", "y", *QUICK, "--out", out]
        code, _, lines = run("fit", path, *words)
        assert code == 0
        assert any("`y` is 4 in every row" in line for line in lines)
        code, text, _ = run("evaluate", out, path, "--json")
        assert json.loads(text)["model"]["crps"] == 0.0
        assert json.loads(text)["climatology"]["crps"] == 0.0

    def test_a_target_below_zero_by_no_means(self, run, houses, tmp_path):
        words = [houses / "train.csv", "--target", "price", *QUICK, "--out"]
        usual = run("fit", *words, tmp_path / "m.zip")[2]
        told = [line for line in usual if "is never below 0" in line]
        # That no price was is no proof that none can be.
        bounded = load(tmp_path / "m.zip").model.bounds_[0] == 0.0
        assert bool(told) == bounded
        assert all(line.endswith("say --bounds none none") for line in told)
        run("fit", *words, tmp_path / "cut.zip", "--bounds", "0", "none")
        assert load(tmp_path / "cut.zip").origin.below_zero == 0.0
        free = run("fit", *words, tmp_path / "free.zip", "--bounds", "none", "none")[2]
        assert not any("is never below 0" in line for line in free)
        mass = load(tmp_path / "free.zip").origin.below_zero
        dist = load(tmp_path / "free.zip").model.oof_distribution_
        assert mass == pytest.approx(dist.cdf(0.0).mean())
        assert mass > 0.0

    def test_the_same_command_makes_the_same_file(
        self, run, houses, tmp_path, monkeypatch
    ):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
        words = [houses / "train.csv", "--target", "price", "--fast", "--quiet"]
        paths = [tmp_path / f"{name}.zip" for name in "abc"]
        for path, more in zip(paths, ([], [], ["--seed", "1"]), strict=True):
            assert run("fit", *words, *more, "--out", path) == (0, "", [])
        a, b, c = (path.read_bytes() for path in paths)
        assert a == b != c
        assert load(paths[0]).origin.fitted == "1970-01-02"

    def test_three_hundred_columns(self, run, write, tmp_path):
        rng = np.random.default_rng(0)
        names = [f"c{j}" for j in range(300)]
        table = rng.normal(size=(80, 300)).round(3)
        rows = [[*names, "y"], *([*map(str, row), str(row[0])] for row in table)]
        out = tmp_path / "m.zip"
        words = ["--target", "y", "--fast", "--out", out]
        code, _, lines = run("fit", write(rows), *words)
        # One line of them warns: 80 rows of 300 columns tell too little.
        assert (code, len(lines)) == (0, 35)
        assert any("forecasts out of fold are not good" in line for line in lines)
        assert "and 280 columns more: number 280" in lines
        assert load(out).model.n_features_in_ == 300


PARAMETERS = {
    "n_thresholds": 5,
    "thresholds": "uniform",
    "frame": None,
    "strategy": "joint",
    "calibrator": None,
    "cv": 2,
    "smoothing": 1.5,
    "recalibrate": "pit",
    "bounds": (0.0, float("inf")),
    "n_jobs": 1,
    "random_state": 3,
    "verbose": 0,
}


def table_of(houses, name="test.csv"):
    return read_table(str(houses / name))


class TestPredict:
    def test_is_what_the_model_says(self, forecasts, houses):
        columns, _ = forecasts(
            *("--quantiles", ".95,.05,.5", "--interval", ".8"),
            *("--exceed", "700", "-5", "--keep", "id"),
        )
        assert list(columns) == [
            *("id", "mean", "std", "q0.05", "q0.5", "q0.95", "low_0.8", "high_0.8"),
            *("p_above_700", "p_above_-5"),
        ]
        saved = load(houses / "model.zip")
        dist = saved.predict_dist(saved.schema.frame([table_of(houses)], "."))
        assert columns["id"] == [f"A{i}" for i in range(80)]
        for name, want in (
            ("mean", dist.mean()),
            ("std", dist.std()),
            ("q0.95", dist.ppf(0.95)),
            ("low_0.8", dist.interval(0.8)[:, 0]),
            ("p_above_700", dist.sf(700.0)),
        ):
            np.testing.assert_array_equal(numbers(columns, name), want)

    def test_defaults(self, forecasts):
        columns, lines = forecasts()
        assert list(columns) == ["mean", "std", "q0.05", "q0.5", "q0.95"]
        assert lines[-1].startswith("localexpert: wrote 80 forecasts to ")
        assert list(forecasts("--exceed", "1")[0]) == ["mean", "std", "p_above_1"]

    def test_no_two_forecasts_have_one_name(self, forecasts):
        levels = ".5,.50000000001"
        columns, _ = forecasts("--quantiles", levels, "--exceed", "7e9", "7000000000.5")
        assert list(columns)[2:] == [
            *("q0.5", "q0.50000000001", "p_above_7000000000", "p_above_7000000000.5")
        ]

    def test_rows_without_target_in_another_order(self, forecasts, write):
        rows = [["kind", "garden", "sold", "area"], ["hut", "true", "2024-01-01", "90"]]
        rows.append(["castle", "", "", ""])
        columns, lines = forecasts(table=write(rows))
        assert len(columns["mean"]) == 2
        # Told once, by the shell and not by the regressor as well.
        assert sum("not met in" in line for line in lines) == 1

    def test_other_process_and_standard_output_agree(self, forecasts, houses):
        columns, _ = forecasts()
        done = subprocess.run(
            [sys.executable, "-m", "localexpert", "predict"]
            + [str(houses / "model.zip"), str(houses / "test.csv")],
            capture_output=True,
            text=True,
            check=True,
        )
        header, *rows = done.stdout.splitlines()
        assert header.split(",") == list(columns)
        assert [row.split(",")[0] for row in rows] == columns["mean"]
        assert done.stderr == ""

    def test_a_reader_that_goes_away(self, forecasts, houses):
        # What this compiles the other process need not, and it says nothing of it.
        forecasts()
        words = f"{sys.executable} -m localexpert predict {houses}/model.zip"
        line = f"{words} {houses}/test.csv | head -n 0; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 141)
        assert done.stderr == ""

    def test_kept_columns_are_kept_as_they_are(self, forecasts, houses, write):
        frame = pd.read_csv(houses / "test.csv", dtype=str, keep_default_na=False)
        frame["key"] = [
            *("1234567890123456789", "-9007199254740993", "007", "1e5", "inf", "NA"),
            *(f"{2**64 - 1}", "9" * 30, " a ", "", "True", "2024-01-01", "+1", "1.10"),
            *("b\rc", 'd"', "e,f", "-0"),
            *map(str, range(62)),
        ]
        frame["note"] = "kept"
        path = write([list(frame), *frame.to_numpy().tolist()], "t.csv")
        columns, lines = forecasts("--keep", "key,note", table=path)
        assert columns["key"] == frame["key"].tolist()
        assert not any("ignored" in line for line in lines)


class TestEvaluate:
    def test_json_is_the_scores(self, run, houses):
        code, out, lines = run(
            "evaluate", houses / "model.zip", houses / "test.csv", "--json"
        )
        assert (code, lines) == (0, [])
        scores = json.loads(out)
        saved = load(houses / "model.zip")
        table = table_of(houses)
        y = np.array(table.columns["price"], dtype=float)
        dist = saved.predict_dist(saved.schema.frame([table], "."))
        ours, theirs = scores["model"], scores["climatology"]
        assert scores["rows"] == 80
        assert ours["crps"] == crps_score(y, dist)
        assert ours["rmse"] == pytest.approx(np.sqrt(np.mean((y - dist.mean()) ** 2)))
        assert ours["mae"] == pytest.approx(np.abs(y - dist.median()).mean())
        low, high = dist.interval(0.9).T
        assert ours["coverage_90"] == pytest.approx(np.mean((low <= y) & (y <= high)))
        train = np.array(table_of(houses, "train.csv").columns["price"], dtype=float)
        spread = np.abs(train[:, None] - train).mean() / 2
        climate = np.abs(y[:, None] - train).mean() - spread
        assert theirs["crps"] == pytest.approx(climate, rel=0.02)
        assert ours["crps"] < 0.7 * theirs["crps"]
        for name, loss in (("crps", "crps"), ("mae", "abs_error")):
            told = dist.expected_mean(loss)
            assert scores["expected"][name] == {
                "mean": told.mean,
                "low": told.low,
                "high": told.high,
            }

    def test_table_for_people(self, run, houses):
        code, out, _ = run("evaluate", houses / "model.zip", houses / "test.csv")
        assert code == 0
        names = [line[:18].strip() for line in out.splitlines()[3:]]
        assert names == [
            *("CRPS", "log score", "coverage of 50 %", "coverage of 90 %"),
            *("RMSE", "MAE", "", "expected", "CRPS", "MAE"),
        ]

    def test_another_name_of_the_target_and_gaps(self, run, houses, tmp_path):
        frame = pd.read_csv(houses / "test.csv", dtype=str, keep_default_na=False)
        frame = frame.rename(columns={"price": "paid"})
        frame.loc[[3, 7], "paid"] = ""
        path = tmp_path / "t.csv"
        frame.to_csv(path, index=False)
        words = [houses / "model.zip", path, "--target", "paid", "--json"]
        code, out, lines = run("evaluate", *words)
        assert code == 0
        assert json.loads(out)["rows"] == 78
        assert lines == [
            "localexpert: warning: left out 2 rows without a target 'paid'"
        ]

    def test_scores_that_are_infinite_are_null(self, run, write, tmp_path):
        rows = [["x", "y"], *([str(i), str(i % 2)] for i in range(40))]
        model = tmp_path / "m.zip"
        words = ["--target", "y", *QUICK, "--quiet", "--out", model]
        assert run("fit", write(rows), *words) == (0, "", [])
        table = write([["x", "y"], ["3", "17"]], "new.csv")
        code, out, _ = run("evaluate", model, table, "--json")
        assert code == 0
        assert json.loads(out)["climatology"]["log_score"] is None


class TestReport:
    @pytest.fixture
    def write_report(self, monkeypatch):
        calls = []

        def stand_in(model, X, y, path, **more):
            assert more.pop("verbose") == 0  # no terminal
            calls.append((model, X, y, more))
            Path(path).write_text("<html>")

        monkeypatch.setattr("localexpert.cli.report.report", stand_in)
        return calls

    def test_is_given_model_and_rows(self, run, houses, tmp_path, write_report):
        out = tmp_path / "r.html"
        words = [houses / "model.zip", houses / "test.csv", "--out", out]
        code, _, lines = run("report", *words)
        assert (code, lines) == (0, [f"localexpert: wrote {out}"])
        assert out.read_text() == "<html>"
        ((model, X, y, more),) = write_report
        assert X.shape == (80, model.n_features_in_)
        assert y.shape == (80,)
        assert more == {
            "coverage": 0.9,
            "title": None,
            "target_name": "price",
            "unit": None,
            "source": "test.csv",
            "pdf_friendly": False,
        }

    def test_is_given_what_the_options_say(self, run, houses, tmp_path, write_report):
        frame = pd.read_csv(houses / "test.csv", dtype=str, keep_default_na=False)
        frame["town"] = ["A", "B", "", "C"] * 20
        frame.loc[0, "price"] = ""
        table = tmp_path / "t.csv"
        frame.to_csv(table, index=False)
        words = ["--train", houses / "train.csv", "--title", "Prices", "--unit", "EUR"]
        words += ["--id", "id", "--groups", "town,area,kind", "--coverage", ".8"]
        words += ["--pdf-friendly", "--out", tmp_path / "r.html"]
        code, _, lines = run("report", houses / "model.zip", table, *words)
        assert code == 0
        assert not any("town" in line for line in lines)
        ((model, X, _, more),) = write_report
        assert (more["title"], more["unit"], more["coverage"]) == ("Prices", "EUR", 0.8)
        assert more["pdf_friendly"]
        assert list(more["row_names"]) == [f"A{i}" for i in range(1, 80)]
        assert more["X_train"].shape == (200, model.n_features_in_)
        assert more["y_train"].shape == (200,)
        groups = more["groups"]
        assert list(groups["town"][:3]) == ["B", "missing", "C"]
        np.testing.assert_array_equal(groups["area"], X["area"])
        assert set(groups["kind"]) == {"flat", "house", "hut"}

    def test_is_written_with_all_of_them(self, run, houses, tmp_path):
        out = tmp_path / "r.html"
        words = [houses / "model.zip", houses / "test.csv", "--id", "id", "--out", out]
        words += ["--groups", "kind", "--title", "My page", "--pdf-friendly"]
        assert run("report", *words)[0] == 0
        page = out.read_text(encoding="utf-8")
        assert "<title>My page</title>" in page
        assert re.search(r"\bA\d+\b", page)
        # Of the features there is a summary in the model.
        assert "Features were not compared" not in page

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--id", "key"], "has no column 'key'; its columns are"),
            (["--groups", "kind,towns"], "has no column 'towns'"),
            (["--train", "none.csv"], "cannot read 'none.csv'"),
            (["--coverage", "90"], "must lie between 0 and 1, got '90'"),
        ],
    )
    def test_mistakes(self, refused, houses, tmp_path, options, message):
        words = [houses / "model.zip", houses / "test.csv", *options]
        out = tmp_path / "r.html"
        assert message in refused("report", *words, "--out", out)
        assert os.listdir(tmp_path) == []


class TestParquet:
    def test_columns_with_types(self, run, houses, tmp_path):
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
        frame = pd.read_csv(houses / "test.csv", parse_dates=["sold"])
        frame["garden"] = frame["garden"].astype("boolean")
        frame["kind"] = frame["kind"].astype("category")
        path = tmp_path / "t.parquet"
        frame.to_parquet(path)
        outs = [
            run("predict", houses / "model.zip", table, "--quiet")[1]
            for table in (path, houses / "test.csv")
        ]
        assert outs[0] == outs[1] != ""

    def test_keys_are_kept_to_the_last_digit(self, forecasts, houses, tmp_path):
        pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
        frame = pd.read_csv(houses / "test.csv", dtype=str, keep_default_na=False)
        big, gaps = 1234567890123456789, [None] * 77
        kept = {
            "key": pyarrow.array([big, 3, -big, *gaps]),
            "unsigned": pyarrow.array([2**64 - 1, 0, 5, *gaps], pyarrow.uint64()),
            "decimal": pyarrow.array([Decimal("0.10"), Decimal(10**25), None, *gaps]),
            "text": pyarrow.array(["007", "1e5", " NA ", *gaps]),
            "number": pyarrow.array([1e22, -0.0, 3.0, *gaps]),
            "nano": pyarrow.array([big, None, 0, *gaps], pyarrow.timestamp("ns")),
            "zone": pyarrow.array(
                [big, None, 0, *gaps], pyarrow.timestamp("ns", "CET")
            ),
        }
        table = pyarrow.table({**frame.to_dict("list"), **kept})
        parquet.write_table(table, path := tmp_path / "t.parquet")
        columns, _ = forecasts("--keep", ",".join(kept), table=path)
        moments = ["2009-02-13T23:31:30.123456789", "", "1970-01-01T00:00:00.000000000"]
        assert {name: columns[name][:3] for name in kept} == {
            "key": [str(big), "3", str(-big)],
            "unsigned": [str(2**64 - 1), "0", "5"],
            "decimal": ["0.10", "1" + 25 * "0" + ".00", ""],
            "text": ["007", "1e5", " NA "],
            "number": ["1e+22", "-0", "3"],
            "nano": moments,
            "zone": [moment and f"{moment}Z" for moment in moments],
        }

    def test_groups_that_differ_in_the_last_digit(self, run, tmp_path, monkeypatch):
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
        found = []

        def keep_groups(_, frame, y, sample_weight, groups):  # noqa: ARG001
            found.append(np.asarray(groups))
            raise ValueError

        monkeypatch.setattr("localexpert.cli.fit.LocalExpertRegressor.fit", keep_groups)
        group = 2**60 + np.arange(40) // 4
        frame = pd.DataFrame({"g": group, "x": np.arange(40.0), "y": np.arange(40) % 7})
        frame.to_parquet(path := tmp_path / "t.parquet")
        words = ["--target", "y", "--group", "g", "--out", tmp_path / "m.zip"]
        assert run("fit", path, *words)[0] == 2
        assert len(np.unique(found[0])) == 10

    def test_texts_that_are_no_texts(self, refused, houses, tmp_path):
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
        path = tmp_path / "t.parquet"
        pd.DataFrame({"x": ["spam", "ham"]}).to_parquet(path, compression=None)
        path.write_bytes(path.read_bytes().replace(b"spam", b"sp\xffm"))
        message = refused("predict", houses / "model.zip", path)
        assert "is a damaged Parquet file" in message

    def test_a_table_that_says_it_has_too_many_rows(self, refused, houses, tmp_path):
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
        frame = pd.DataFrame({"x": np.zeros(10**6)})
        frame.to_parquet(path := tmp_path / "t.parquet")
        assert path.stat().st_size < 10**5
        words = ["predict", houses / "model.zip", path, "--max-unpacked"]
        assert "unpacks to more than 0.005 GiB" in refused(*words, 0.005)
        assert "lacks 4 columns" in refused(*words, 0.01)
