"""calibrate: honest answers for the same rows, and for new ones."""

import csv
import os

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import StratifiedKFold

from calibration import AutoCalibrator, IsotonicCalibrator, PlattCalibrator
from localexpert.storage import load


@pytest.fixture
def rows(rng):
    """Scores that are too high: y = 1 with probability s squared."""
    scores = rng.uniform(size=300).round(3)
    y = (rng.uniform(size=300) < scores**2).astype(int)
    return [["id", "s", "y"]] + [
        [f"r{i}", str(s), str(label)]
        for i, (s, label) in enumerate(zip(scores, y, strict=True))
    ]


def columns_of(rows):
    return np.array([row[1] for row in rows[1:]], dtype=float), np.array(
        [row[2] for row in rows[1:]], dtype=int
    )


def read_answers(path):
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header[-1] == "calibrated"
    return header[:-1], np.array([row[-1] for row in rows], dtype=float)


def test_the_same_rows_are_calibrated_out_of_fold(run, write, rows, tmp_path):
    out = tmp_path / "c.csv"
    words = ["--score", "s", "--label", "y", "--method", "isotonic", "--seed", 4]
    code, _, lines = run("calibrate", write(rows), *words, "--folds", 3, "--out", out)
    assert code == 0
    assert "is out of fold: each row by a calibrator fitted on the other 2" in lines[0]
    header, answers = read_answers(out)
    assert header == ["id", "s", "y"]
    s, y = columns_of(rows)
    folds = StratifiedKFold(3, shuffle=True, random_state=4).split(s, y)
    for train, test in folds:
        want = IsotonicCalibrator().fit(s[train], y[train]).predict(s[test])
        np.testing.assert_array_equal(answers[test], want)


def test_new_rows_and_the_saved_calibrator(run, write, rows, tmp_path):
    out, kept = tmp_path / "c.csv", tmp_path / "c.zip"
    new = write([["s", "note"], ["0.2", "a"], ["0.9", "b"]], "new.csv")
    words = ["--score", "s", "--label", "y", "--method", "platt", "--new", new]
    code, _, lines = run("calibrate", write(rows), *words, "--out", out, "--save", kept)
    assert code == 0
    assert not any("out of fold" in line for line in lines)
    header, answers = read_answers(out)
    assert header == ["s", "note"]
    want = PlattCalibrator().fit(*columns_of(rows)).predict([0.2, 0.9])
    np.testing.assert_array_equal(answers, want)
    np.testing.assert_array_equal(load(kept).predict([0.2, 0.9]), want)


def test_auto_is_the_default_and_helps(run, write, rows, tmp_path):
    out, kept = tmp_path / "c.csv", tmp_path / "c.zip"
    words = ["--score", "s", "--label", "y", "--seed", 0, "--folds", 3]
    code, _, lines = run("calibrate", write(rows), *words, "--out", out, "--save", kept)
    assert code == 0
    assert isinstance(load(kept), AutoCalibrator)
    loss = next(line for line in lines if "log loss" in line).split()
    assert float(loss[5]) < float(loss[3])


def test_labels_of_any_two_names(run, write, rows):
    named = [rows[0], *([i, s, "ok" if y == "0" else "bad"] for i, s, y in rows[1:])]
    words = ["--score", "s", "--label", "y", "--method", "platt", "--seed", 0]
    plain = run("calibrate", write(rows), *words)[1]
    bad = run("calibrate", write(named), *words, "--positive", "bad")[1]
    good = run("calibrate", write(named), *words)[1]

    def last(out):
        return [float(line.split(",")[-1]) for line in out.splitlines()[1:]]

    assert last(plain) == last(bad)
    assert np.mean(last(good)) == pytest.approx(1.0 - np.mean(last(bad)), abs=0.05)


@pytest.mark.parametrize("scale", ["logit", "real"])
def test_scales(run, write, rows, scale):
    real = [rows[0], *([i, str(4 * float(s) - 2), y] for i, s, y in rows[1:])]
    words = ["--score", "s", "--label", "y", "--scale", scale, "--method", "platt"]
    code, out, lines = run("calibrate", write(real), *words)
    assert code == 0
    assert len(out.splitlines()) == 301
    (loss,) = [line for line in lines if "log loss" in line]
    # Scores that only have an order say no probability.
    assert ("before" in loss) == (scale == "logit")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s": "1.5"}, "score 's' must lie in [0, 1] unless --scale says logit or"),
        ({"s": "high"}, "score 's' must hold finite numbers, got 'high' in line 2 of"),
        ({"s": ""}, "score 's' must not have gaps, got '' in line 2 of"),
        ({"y": ""}, "label 'y' has a gap in line 2 of"),
        ({"y": "2"}, "must hold two different values, got 3: '0', '1', '2'"),
    ],
)
def test_wrong_values(refused, write, rows, tmp_path, change, message):
    rows[1] = ["r0", change.get("s", "0.5"), change.get("y", "1")]
    words = ["--score", "s", "--label", "y", "--out", tmp_path / "c.csv"]
    assert message in refused("calibrate", write(rows), *words)
    assert os.listdir(tmp_path) == ["table.csv"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--score", "p", "--label", "y"], "has no score 'p'"),
        (["--score", "s", "--label", "z"], "has no label 'z'"),
        (["--score", "s", "--label", "id"], "must hold two different values, got 300"),
        (["--score", "s", "--label", "y", "--positive", "2"], "one of '0', '1', got"),
        (["--score", "s", "--label", "y", "--positive", ""], "one of '0', '1', got ''"),
        (["--score", "s", "--label", "y", "--method", "best"], "invalid choice"),
        (["--score", "s", "--label", "y", "--new", "none.csv"], "cannot read 'none"),
        (["--score", "s", "--label", "y", "--save", "no/c.zip"], "cannot write --save"),
    ],
)
def test_wrong_options(refused, write, rows, options, message):
    assert message in refused("calibrate", write(rows), *options)


def test_too_few_of_a_label(refused, write):
    rows = [["s", "y"], ["0.1", "0"], ["0.2", "0"], ["0.7", "1"]]
    message = refused("calibrate", write(rows), "--score", "s", "--label", "y")
    assert "must hold each label at least twice to be calibrated out of fold" in message


def test_a_column_of_that_name(refused, write):
    rows = [["s", "y", "calibrated"], ["0.1", "0", ""], ["0.2", "1", ""]]
    message = refused("calibrate", write(rows), "--score", "s", "--label", "y")
    assert "has a column 'calibrated' already" in message


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_keys_and_labels_of_many_digits(run, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    big = 1234567890123456788
    labels = np.array([big, big + 1])[np.arange(40) % 2]
    scores = np.where(labels > big, 0.75, 0.25)
    frame = pd.DataFrame({"s": scores, "y": labels, "key": big + np.arange(40)})
    path = tmp_path / f"t.{suffix}"
    frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    words = ["--score", "s", "--label", "y", "--method", "histogram"]
    code, text, _ = run("calibrate", path, *words)
    rows = list(csv.DictReader(text.splitlines()))
    assert (code, len(rows)) == (0, 40)
    assert [int(row["key"]) for row in rows] == frame["key"].tolist()
    assert [int(row["y"]) for row in rows] == labels.tolist()
    # The greater label is the positive one, by whatever digit.
    higher = [float(row["calibrated"]) > 0.5 for row in rows]
    assert higher == (labels > big).tolist()
