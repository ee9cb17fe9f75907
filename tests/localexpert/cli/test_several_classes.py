"""calibrate and apply with several score columns: classes, answers, mistakes."""

import csv

import numpy as np
import pytest
from scipy.special import softmax

from calibration import (
    MulticlassAutoCalibrator,
    OneVsRestCalibrator,
    PlattCalibrator,
    ShallowNetCalibrator,
    SoftmaxCalibrator,
    load,
    log_loss,
)

NAMES = ("ox", "hen", "cat")
SCORES = ["--score", "p_ox,p_hen,p_cat"]
WORDS = [*SCORES, "--label", "y", "--method", "temperature"]


@pytest.fixture
def data(rng):
    """Probabilities that are too sharp, as a file rounds them, and their classes."""
    p = rng.dirichlet(np.ones(3), size=120)
    y = (rng.uniform(size=(120, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return (p**2 / (p**2).sum(axis=1, keepdims=True)).round(4), y


@pytest.fixture
def rows(data):
    p, y = data
    return [
        ["id", "p_ox", "p_hen", "p_cat", "y"],
        *([f"r{i}", *p[i], NAMES[y[i]]] for i in range(len(y))),
    ]


def read_answers(path, n=3):
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, np.array([row[-n:] for row in rows], dtype=float)


def whole(p):
    return p / p.sum(axis=1, keepdims=True)


def test_the_same_rows_are_calibrated_out_of_fold(run, write, rows, data, tmp_path):
    out = tmp_path / "c.csv"
    p, y = data
    code, _, lines = run("calibrate", write(rows), *WORDS, "--out", out, "--folds", 3)
    assert code == 0
    assert "classes: 'p_ox': 'ox', 'p_hen': 'hen', 'p_cat': 'cat'" in lines[0]
    assert "out of fold: each row by a calibrator fitted on the other 2" in lines[1]
    header, answers = read_answers(out)
    assert header == [*rows[0], "calibrated_ox", "calibrated_hen", "calibrated_cat"]
    np.testing.assert_allclose(answers.sum(axis=1), 1.0, atol=1e-9)
    said = next(line for line in lines if "log loss" in line).split()
    assert float(said[3]) == pytest.approx(log_loss(y, whole(p)), abs=1e-5)
    assert float(said[5]) == pytest.approx(log_loss(y, answers), abs=1e-5)
    assert float(said[5]) < float(said[3])
    # Rows are dealt to folds class by class.
    order = np.random.default_rng(0).permutation(120)
    order = order[np.argsort(y[order], kind="stable")]
    for fold in range(3):
        held = np.isin(np.arange(120), order[fold::3])
        known = SoftmaxCalibrator("temperature").fit(whole(p)[~held], y[~held])
        expected = known.predict(whole(p)[held])
        np.testing.assert_allclose(answers[held], expected, rtol=1e-12)


def test_new_rows_and_the_saved_calibrator(run, write, rows, data, tmp_path):
    out, kept = tmp_path / "c.csv", tmp_path / "c.zip"
    new = [["note", *rows[0][1:4]], ["a", 0.2, 0.3, 0.5], ["b", 1, 0, 0]]
    words = [*WORDS, "--new", write(new, "new.csv"), "--out", out, "--save", kept]
    assert run("calibrate", write(rows), *words)[0] == 0
    p, y = data
    fitted = SoftmaxCalibrator("temperature").fit(whole(p), y)
    expected = fitted.predict([[0.2, 0.3, 0.5], [1, 0, 0]])
    np.testing.assert_allclose(read_answers(out)[1], expected, rtol=1e-12)
    assert load(kept).classes_.tolist() == list(NAMES)
    np.testing.assert_array_equal(load(kept).predict([[1, 0, 0]]), expected[1:])
    again = tmp_path / "again.csv"
    code, _, lines = run("apply", kept, tmp_path / "new.csv", *SCORES, "--out", again)
    assert code == 0, lines
    assert again.read_text() == out.read_text()
    words = [*SCORES, "--label", "y", "--out", again]
    code, _, lines = run("apply", kept, tmp_path / "table.csv", *words)
    assert code == 0
    said = " ".join(lines)
    assert f"{log_loss(y, fitted.predict(whole(p))):.5f} after" in said


@pytest.mark.parametrize(
    ("columns", "labels", "classes"),
    [
        (["ox", "hen", "cat"], ["ox", "hen", "cat"], None),
        (["a%", "ba%", "c%"], ["a", "ba", "c"], None),
        (["p_a", "p_ba", "p_ca"], ["a", "ba", "ca"], None),
        (["first", "second", "third"], ["0", "1", "2"], None),
        (["p2", "p0", "p1"], ["2", "0", "1"], None),
        (["u", "v", "w"], ["x", "y y", "z,"], 'x,y y,"z,"'),
        (["u", "v", "w"], ["2", "1", "0"], "2,1,0"),
    ],
)
def test_classes_are_found_or_named(
    run, write, data, tmp_path, columns, labels, classes
):
    p, y = data
    rows = [
        [*columns, "y"],
        *([*row, labels[one]] for row, one in zip(p, y, strict=True)),
    ]
    out = tmp_path / "c.csv"
    words = ["--score", ",".join(columns), "--label", "y", "--method", "temperature"]
    named = [] if classes is None else ["--classes", classes]
    kept = ["--out", out, "--save", tmp_path / "c.zip"]
    code, _, lines = run("calibrate", write(rows), *words, *named, *kept)
    assert code == 0, lines
    header, answers = read_answers(out)
    assert header[-3:] == [f"calibrated_{label}" for label in labels]
    # The class that the scores call likely is: nothing is mixed up.
    assert (answers.argmax(axis=1) == p.argmax(axis=1)).mean() > 0.95
    told = [str(one) for one in load(tmp_path / "c.zip").classes_]
    assert told == labels


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        ("auto", MulticlassAutoCalibrator),
        ("shallow_net", ShallowNetCalibrator),
        ("matrix", SoftmaxCalibrator),
        ("platt", OneVsRestCalibrator),
    ],
)
def test_methods(run, write, rows, tmp_path, method, kind):
    kept, new = tmp_path / "c.zip", write([rows[0], *rows[1:9]], "new.csv")
    words = [*SCORES, "--label", "y", "--method", method, "--new", new, "--seed", 4]
    code, _, lines = run("calibrate", write(rows), *words, "--save", kept)
    assert code == 0, lines
    fitted = load(kept)
    assert isinstance(fitted, kind)
    if kind is OneVsRestCalibrator:
        assert isinstance(fitted.calibrator, PlattCalibrator)
    else:
        assert fitted.random_state == 4


def test_logits_in_columns(run, write, data, tmp_path):
    p, y = data
    z = (np.log(whole(p) + 1e-9) + 5.0).round(6)
    rows = [["a", "b", "c", "y"], *([*z[i], y[i]] for i in range(len(y)))]
    out = tmp_path / "c.csv"
    words = ["--score", "a,b,c", "--label", "y", "--method", "vector"]
    scale = ["--scale", "logit", "--out", out]
    code, _, lines = run("calibrate", write(rows), *words, *scale)
    assert code == 0
    said = next(line for line in lines if "log loss" in line).split()
    assert float(said[3]) == pytest.approx(log_loss(y, softmax(z, axis=1)), abs=1e-5)


def test_a_rare_class_has_fewer_rows_than_folds(run, write, rows, tmp_path):
    rare = [rows[0], *(row for row in rows[1:] if row[-1] != "cat")]
    rare.append(next(row for row in rows[1:] if row[-1] == "cat"))
    out = tmp_path / "c.csv"
    assert run("calibrate", write(rare), *WORDS, "--out", out)[0] == 0
    assert np.isfinite(read_answers(out)[1]).all()


def put(column, text):
    def change(rows):
        rows[5][column] = text

    return change


@pytest.mark.parametrize(
    ("change", "words", "complaint"),
    [
        (
            put(1, "0.9"),
            WORDS,
            "scores 'p_ox', 'p_hen', 'p_cat' must add up to 1 unless",
        ),
        (put(1, "0.9"), WORDS, "in line 6 of "),
        (put(2, "-0.2"), WORDS, "score 'p_hen' must lie in [0, 1] unless --scale says"),
        (put(3, ""), WORDS, "score 'p_cat' must not have gaps, got '' in line 6 of"),
        (put(3, "much"), WORDS, "score 'p_cat' must hold finite numbers, got 'much'"),
        (put(4, "dog"), WORDS, "name their classes by --classes, in their order"),
        (put(4, ""), WORDS, "label 'y' has a gap in line 6"),
        (
            put(4, "dog"),
            [*WORDS, "--classes", "ox,hen,cat"],
            "label 'y' must be one of 'ox', 'hen', 'cat', got 'dog' in line 6",
        ),
        (None, [*WORDS, "--classes", "ox,hen"], "--classes must name each of the 3"),
        (None, [*WORDS, "--classes", "ox,hen,ox"], "--classes must name each of the 3"),
        (None, [*WORDS[2:], "--score", "p_ox,p_dog"], "has no score 'p_dog'"),
        (None, [*WORDS[2:], "--score", "p_ox,p_ox"], "--score must name each column"),
        (None, [*WORDS[2:], "--score", ","], "--score must name a column, or one for"),
        (None, [*WORDS[2:], "--score", '"p_ox'], "--score: must be a list such as A,B"),
        (None, [*WORDS, "--positive", "ox"], "--positive says which of two labels"),
        (None, [*WORDS, "--scale", "real"], "--scale real is an order of two classes"),
        (None, [*WORDS, "--report", "r.html"], "--report is a page on two classes"),
        (None, [*WORDS, "--method", "maybe"], "--method: invalid choice: 'maybe'"),
        (
            None,
            ["--score", "p_ox", "--label", "y", "--method", "matrix"],
            "--method matrix is of several classes: --score must name a column for",
        ),
        (
            None,
            ["--score", "p_ox", "--label", "y", "--classes", "ox,hen"],
            "--classes names the labels of several score columns",
        ),
    ],
)
def test_mistakes_are_named(refused, write, rows, tmp_path, change, words, complaint):
    if change is not None:
        change(rows)
    out = tmp_path / "c.csv"
    said = refused("calibrate", write(rows), *words, "--out", out)
    assert complaint in said
    assert not out.exists()


def test_one_class_only_and_columns_in_the_way(refused, write, rows, tmp_path):
    one = [rows[0], *(row for row in rows[1:] if row[-1] == "ox")]
    out = tmp_path / "c.csv"
    said = refused("calibrate", write(one), *WORDS, "--out", out)
    assert "must hold two labels at least twice to be calibrated out of fold" in said
    clash = [[*row, "x"] for row in rows]
    clash[0][-1] = "calibrated_hen"
    said = refused("calibrate", write(clash), *WORDS, "--out", out)
    assert "has a column 'calibrated_hen' already" in said
    assert not out.exists()


def test_mistakes_with_a_saved_calibrator(refused, run, write, rows, data, tmp_path):
    table, kept = write(rows), tmp_path / "c.zip"
    words = ["--out", tmp_path / "c.csv", "--save", kept]
    assert run("calibrate", table, *WORDS, *words)[0] == 0
    for words, complaint in (
        (["--score", "p_ox"], "a column for each of 'ox', 'hen', 'cat', in that order"),
        ([*SCORES, "--positive", "ox", "--label", "y"], "--positive says which of two"),
        ([*SCORES, "--interval"], "--interval needs a calibrator that tells one"),
        (["--score", "p_ox,p_hen,id"], "score 'id' must hold finite numbers"),
        ([*SCORES, "--label", "id"], "label 'id' must be one of 'ox', 'hen', 'cat'"),
    ):
        assert complaint in refused("apply", kept, table, *words)
    p, y = data
    two = tmp_path / "two.zip"
    PlattCalibrator().fit(p[:, 0], y == 0).save(two)
    said = refused("apply", two, table, *SCORES)
    assert "--score must name one column for a calibrator of two classes" in said
    nets = tmp_path / "nets.zip"
    ShallowNetCalibrator(1).fit(whole(p), y, side=y).save(nets)
    said = refused("apply", nets, table, *SCORES)
    assert "`side` must have the 1 columns of the fit, got None" in said
