"""apply: probabilities by a calibrator that was saved; and the page of calibrate."""

import csv
import os

import numpy as np
import pytest

from calibration import (
    VennAbersCalibrator,
    brier_score,
    expected_calibration_error,
    log_loss,
)
from localexpert.storage import load, save


@pytest.fixture
def rows(rng):
    """Scores that are too high: y = 1 with probability s squared."""
    scores = rng.uniform(size=200).round(3)
    y = (rng.uniform(size=200) < scores**2).astype(int)
    pairs = zip(scores.tolist(), y.tolist(), strict=True)
    return [["s", "y"], *([str(s), str(label)] for s, label in pairs)]


@pytest.fixture
def calibrated(run, write, rows, tmp_path):
    """Return a function that saves a calibrator of a method, and its path."""

    def calibrate(method, *options):
        path = tmp_path / f"{method}.zip"
        words = ["--score", "s", "--label", "y", "--method", method, "--save", path]
        assert run("calibrate", write(rows), *words, *options, "--quiet")[0] == 0
        return path

    return calibrate


def read(text):
    header, *rows = csv.reader(text.splitlines())
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def test_probabilities_and_intervals_of_venn_abers(run, write, calibrated):
    path = calibrated("venn_abers")
    table = write([["id", "s"], ["a", "0.2"], ["b", "0.9"]], "new.csv")
    code, text, lines = run("apply", path, table, "--score", "s", "--interval")
    assert (code, lines) == (0, [])
    got, fitted = read(text), load(path)
    assert isinstance(fitted, VennAbersCalibrator)
    assert list(got) == ["id", "s", "calibrated", "calibrated_low", "calibrated_high"]
    low, high = fitted.predict_interval([0.2, 0.9]).T
    for name, want in (
        ("calibrated", fitted.predict([0.2, 0.9])),
        ("calibrated_low", low),
        ("calibrated_high", high),
    ):
        np.testing.assert_array_equal(np.array(got[name], dtype=float), want)


def test_scores_before_and_after_where_labels_are(run, write, rows, calibrated):
    path = calibrated("isotonic")
    words = [write(rows), "--score", "s", "--label", "y", "--positive", "1"]
    code, text, lines = run("apply", path, *words)
    assert code == 0
    s, y = (np.array([row[j] for row in rows[1:]], dtype=float) for j in (0, 1))
    p = np.array(read(text)["calibrated"], dtype=float)
    assert lines == [
        f"localexpert: {name} {loss(y, s):.5f} before, {loss(y, p):.5f} after"
        for name, loss in (
            ("log loss", log_loss),
            ("Brier score", brier_score),
            ("ECE", expected_calibration_error),
        )
    ]


def test_logits_are_probabilities_before(run, write, calibrated):
    path = calibrated("platt", "--scale", "logit")
    table = write([["s", "y"], ["0", "0"], ["0", "1"]], "new.csv")
    lines = run("apply", path, table, "--score", "s", "--label", "y")[2]
    assert any("Brier score 0.25000 before" in line for line in lines)
    path = calibrated("platt", "--scale", "real")
    lines = run("apply", path, table, "--score", "s", "--label", "y")[2]
    assert not any("before" in line for line in lines)
    assert any("Brier score" in line and "after" in line for line in lines)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--score", "p"], "has no score 'p'"),
        (["--score", "y", "--label", "z"], "has no label 'z'"),
        (["--score", "s", "--interval"], "tells one, such as venn_abers, isotonic"),
        (["--score", "s", "--positive", "1"], "--positive says which --label"),
        (["--score", "s", "--out", "t.xlsx"], "--out must end in .csv"),
        (["--score", "t"], "score 't' must lie in [0, 1] as those that the calibrator"),
    ],
)
def test_mistakes(refused, write, calibrated, options, message):
    path = calibrated("platt")
    table = write([["s", "y", "t"], ["0.5", "1", "7"]], "new.csv")
    before = sorted(os.listdir(path.parent))
    assert message in refused("apply", path, table, *options)
    assert sorted(os.listdir(path.parent)) == before


def test_what_is_no_calibrator(refused, houses, write, calibrated):
    table = write([["s", "calibrated"], ["0.5", "1"]], "new.csv")
    message = refused("apply", houses / "model.zip", table, "--score", "s")
    assert "holds a TableModel, not a calibrator of scores" in message
    message = refused("apply", calibrated("platt"), table, "--score", "s")
    assert "has a column 'calibrated' already" in message
    assert "is no sound calibrator" in refused("apply", table, table, "--score", "s")


def test_a_calibrator_that_was_saved_in_python(run, write, tmp_path):
    fitted = VennAbersCalibrator().fit([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
    save(fitted, tmp_path / "c.zip")
    table = write([["s"], ["0.5"]], "new.csv")
    text = run("apply", tmp_path / "c.zip", table, "--score", "s")[1]
    assert float(read(text)["calibrated"][0]) == fitted.predict([0.5])[0]


@pytest.mark.parametrize("scale", ["probability", "real"])
def test_the_page_of_calibrate(run, write, rows, tmp_path, scale):
    page, out = tmp_path / "page.html", tmp_path / "c.csv"
    words = ["--score", "s", "--label", "y", "--method", "platt", "--report", page]
    new = write([["s"], ["0.5"]], "new.csv")
    words += ["--scale", scale, "--new", new, "--out", out]
    code, _, lines = run("calibrate", write(rows), *words)
    assert code == 0
    assert f"localexpert: wrote {page}" in lines
    assert len(read(out.read_text())["calibrated"]) == 1
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "s of table.csv, calibrated by PlattCalibrator" in text
    (brier,) = [line.split()[-2] for line in lines if "Brier score" in line]
    assert f"{float(brier):.3f}" in text
    assert ("before" in text) == (scale == "probability")
    assert text.count("<img ") == 2
    assert page.stat().st_size < 300_000


def test_a_page_that_is_another_file(refused, write, rows, tmp_path):
    words = ["--score", "s", "--label", "y", "--out", tmp_path / "c.csv"]
    message = refused("calibrate", write(rows), *words, "--report", tmp_path / "c.csv")
    assert "--report" in message
    assert "is the same file as" in message
