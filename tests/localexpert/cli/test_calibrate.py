"""calibrate and apply: honest answers for the same rows, and for new ones."""

import csv

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.model_selection import StratifiedKFold

import calibration

# A column of foxes ends with "ox" as well.
NAMES = ("ox", "fox", "cat")
TWO = ["--score", "s", "--label", "y"]
COLUMNS = [f"p_{name}" for name in NAMES]
MANY = ["--score", ",".join(COLUMNS), "--label", "y", "--method", "temperature"]


@pytest.fixture
def rows(rng):
    """Scores that are too high: y = 1 with probability s squared."""
    scores = rng.uniform(size=300).round(3)
    y = (rng.uniform(size=300) < scores**2).astype(int)
    return pd.DataFrame({"id": [f"r{i}" for i in range(300)], "s": scores, "y": y})


@pytest.fixture
def data(rng):
    """Probabilities that are too sharp, as a file rounds them, and their classes."""
    p = rng.dirichlet(np.ones(3), size=120)
    y = (rng.uniform(size=(120, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return (p**2 / (p**2).sum(axis=1, keepdims=True)).round(4), y


@pytest.fixture
def animals(data):
    p, y = data
    return pd.DataFrame(p, columns=COLUMNS).assign(y=np.array(NAMES)[y])


def read_answers(text, n=1):
    header, *rows = csv.reader(text.splitlines())
    answers = np.array([row[-n:] for row in rows], dtype=float)
    return header, answers[:, 0] if n == 1 else answers


def test_the_same_rows_are_calibrated_out_of_fold(ok, write, rows):
    words = [*TWO, "--method", "isotonic", "--seed", 4, "--folds", 3]
    out, lines = ok("calibrate", write(rows), *words)
    assert "is out of fold: each row by a calibrator fitted on the other 2" in lines[1]
    header, answers = read_answers(out)
    assert header == ["id", "s", "y", "calibrated"]
    s, y = rows["s"].to_numpy(), rows["y"].to_numpy()
    for train, test in StratifiedKFold(3, shuffle=True, random_state=4).split(s, y):
        want = calibration.IsotonicCalibrator().fit(s[train], y[train]).predict(s[test])
        np.testing.assert_array_equal(answers[test], want)


@pytest.mark.parametrize(
    ("no", "yes"), [("nein", "ja"), ("n", "J"), ("no", "yes"), ("9", "10"), ("a", "b")]
)
def test_the_class_that_is_meant_is_said(ok, write, rows, no, yes):
    words = [*TWO, "--method", "platt"]
    want = read_answers(ok("calibrate", write(rows), *words)[0])[1]
    named = rows.assign(y=np.where(rows["y"], yes, no))
    out, lines = ok("calibrate", write(named), *words)
    said = f"localexpert: the probability of {yes!r} is meant (--positive says another)"
    assert lines[0] == said
    np.testing.assert_array_equal(read_answers(out)[1], want)
    lines = ok("calibrate", write(named), *words, "--positive", no)[1]
    assert "is meant" not in " ".join(lines)


def test_new_rows_and_the_saved_calibrator(ok, write, rows, tmp_path):
    kept = tmp_path / "c.zip"
    new = write({"s": [0.2, 0.9], "note": ["a", "b"]}, "new.csv")
    words = [*TWO, "--method", "platt", "--new", new, "--save", kept]
    out, lines = ok("calibrate", write(rows), *words)
    assert not any("out of fold" in line for line in lines)
    header, answers = read_answers(out)
    assert header == ["s", "note", "calibrated"]
    want = calibration.PlattCalibrator().fit(rows["s"], rows["y"]).predict([0.2, 0.9])
    np.testing.assert_array_equal(answers, want)
    assert ok("apply", kept, new, "--score", "s") == (out, [])
    assert "a saved PlattCalibrator" in ok("inspect", kept)[0]


def test_intervals_of_venn_abers(ok, write, rows, tmp_path):
    fitted = calibration.VennAbersCalibrator().fit(rows["s"], rows["y"])
    fitted.save(path := tmp_path / "c.zip")
    table = write({"id": ["a", "b"], "s": [0.2, 0.9]}, "new.csv")
    text, _ = ok("apply", path, table, "--score", "s", "--interval")
    header, got = read_answers(text, 3)
    assert header[2:] == ["calibrated", "calibrated_low", "calibrated_high"]
    np.testing.assert_array_equal(got[:, 0], fitted.predict([0.2, 0.9]))
    np.testing.assert_array_equal(got[:, 1:], fitted.predict_interval([0.2, 0.9]))


def test_scores_before_and_after_where_labels_are(ok, write, rows, tmp_path):
    s, y = rows["s"], rows["y"]
    calibration.IsotonicCalibrator().fit(s, y).save(path := tmp_path / "c.zip")
    text, lines = ok("apply", path, write(rows), *TWO, "--positive", "1")
    p = read_answers(text)[1]
    losses = {
        "log loss": calibration.log_loss,
        "Brier score": calibration.brier_score,
        "ECE": calibration.expected_calibration_error,
    }
    assert lines == [
        f"localexpert: {name} {loss(y, s):.5f} before, {loss(y, p):.5f} after"
        for name, loss in losses.items()
    ]


@pytest.mark.parametrize("scale", ["probability", "real"])
def test_the_page_of_calibrate(ok, write, rows, tmp_path, scale):
    page, out = tmp_path / "page.html", tmp_path / "c.csv"
    words = [*TWO, "--method", "platt", "--report", page, "--scale", scale]
    words += ["--new", write({"s": [0.5]}, "new.csv"), "--out", out]
    _, lines = ok("calibrate", write(rows), *words)
    assert f"localexpert: wrote {page}" in lines
    text = page.read_text(encoding="utf-8")
    assert "s of table.csv, calibrated by PlattCalibrator" in text
    assert "Brier score" in text
    assert ("before" in text) == (scale == "probability")


def test_keys_and_labels_of_many_digits(ok, tmp_path):
    big = 1234567890123456788
    labels = np.array([big, big + 1])[np.arange(40) % 2]
    scores = np.where(labels > big, 0.75, 0.25)
    frame = pd.DataFrame({"s": scores, "y": labels, "key": big + np.arange(40)})
    frame.to_csv(path := tmp_path / "t.csv", index=False)
    text, _ = ok("calibrate", path, *TWO, "--method", "histogram")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 40
    assert [int(row["key"]) for row in rows] == frame["key"].tolist()
    assert [int(row["y"]) for row in rows] == labels.tolist()
    # The greater label is the positive one, by whatever digit.
    higher = [float(row["calibrated"]) > 0.5 for row in rows]
    assert higher == (labels > big).tolist()


@pytest.mark.parametrize("scale", ["probability", "logit"])
def test_several_classes_out_of_fold(ok, write, animals, data, scale):
    p, y = data
    p = p / p.sum(axis=1, keepdims=True)
    if scale == "logit":
        animals[COLUMNS] = p = (np.log(p + 1e-9) + 5.0).round(6)
    words = [*MANY, "--folds", 3, "--scale", scale]
    out, lines = ok("calibrate", write(animals), *words)
    assert "classes: 'p_ox': 'ox', 'p_fox': 'fox', 'p_cat': 'cat'" in lines[0]
    header, answers = read_answers(out, 3)
    assert header[4:] == ["calibrated_ox", "calibrated_fox", "calibrated_cat"]
    np.testing.assert_allclose(answers.sum(axis=1), 1.0, atol=1e-9)
    said = next(line for line in lines if "log loss" in line).split()
    before = calibration.log_loss(y, softmax(p, axis=1) if scale == "logit" else p)
    assert float(said[3]) == pytest.approx(before, abs=1e-5)
    assert float(said[5]) == pytest.approx(calibration.log_loss(y, answers), abs=1e-5)
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(p, y):
        known = calibration.SoftmaxCalibrator("temperature", scale=scale)
        known.fit(p[train], y[train])
        np.testing.assert_allclose(answers[test], known.predict(p[test]))


@pytest.mark.parametrize("method", ["platt", "temperature"])
def test_two_classes_in_two_columns(ok, write, rows, method):
    table = rows.assign(s_0=1.0 - rows["s"], s_1=rows["s"])
    words = ["--score", "s_0,s_1", "--label", "y", "--method", method]
    out, _ = ok("calibrate", write(table), *words)
    np.testing.assert_allclose(read_answers(out, 2)[1].sum(axis=1), 1.0)


def test_columns_of_classes_go_by_their_names(ok, write, animals, tmp_path):
    kept = tmp_path / "c.zip"
    table = write(animals)
    words = [*MANY, "--new", table, "--save", kept]
    out, _ = ok("calibrate", table, *words)
    assert calibration.load(kept).classes_.tolist() == list(NAMES)
    # The order in which columns are named means nothing.
    for order in ("p_ox,p_fox,p_cat", "p_cat,p_ox,p_fox"):
        assert ok("apply", kept, table, "--score", order) == (out, [])
    other = write(animals.set_axis([*"uvwy"], axis=1), "other.csv")
    for columns, classes in (("u,v,w", "ox,fox,cat"), ("w,u,v", "cat,ox,fox")):
        words = ["--score", columns, "--classes", classes, "--label", "y"]
        got = ok("apply", kept, other, *words)[0]
        assert got.splitlines()[1:] == out.splitlines()[1:]


def test_labels_are_the_same_whole_numbers_beside_gaps(ok, write, data, tmp_path):
    """Some write 1.0 for 1, in labels and in the names of columns."""
    p, y = data
    kept, told = tmp_path / "c.zip", []
    for zero in ("", ".0"):
        labels = [f"{k}{zero}" for k in range(3)]
        names = [f"p_{name}" for name in labels]
        table = write(pd.DataFrame(p, columns=names).assign(y=np.array(labels)[y]))
        score = ["--score", ",".join(names), "--label", "y"]
        if not zero:
            words = [*score, "--method", "temperature", "--save", kept]
            ok("calibrate", table, *words)
        for classes in ([], ["--classes", ",".join(labels)]):
            out, lines = ok("apply", kept, table, *score, *classes)
            told.append((read_answers(out, 3)[1].tolist(), lines))
    assert told == [told[0]] * 4
