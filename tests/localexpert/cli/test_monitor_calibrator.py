"""monitor of a calibrator: scores and labels, batch by batch."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from calibration import CalibrationMonitor, PlattCalibrator, SoftmaxCalibrator
from localexpert import load
from localexpert.reading.labels import Labels


def draw(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    y = rng.uniform(size=n) < expit(z + shift)
    return pd.DataFrame({"s": expit(1.5 * z), "y": np.where(y, "sick", "well")})


@pytest.fixture(scope="module")
def calibrator(tmp_path_factory):
    """Return the file of a calibrator of 1000 rows."""
    rows = draw(1000, 0)
    path = tmp_path_factory.mktemp("calibrator") / "calibrator.zip"
    PlattCalibrator().fit(rows["s"], rows["y"] == "sick").save(path)
    return path


@pytest.fixture
def batch(tmp_path):
    """Return a function that writes rows to a file."""

    def write(rows, name="batch.csv"):
        path = tmp_path / name
        if path.suffix == ".parquet":
            rows.to_parquet(path)
        else:
            rows.to_csv(path, index=False)
        return path

    return write


@pytest.fixture
def watch(run, calibrator, tmp_path):
    """Return a function that adds a batch to the state."""

    def add(table, *options, of=calibrator):
        words = ["--score", "s", "--label", "y", "--state", tmp_path / "state.zip"]
        return run("monitor", of, table, *words, "--quiet", *options)

    return add


def test_a_calibrator_is_watched_as_in_python(watch, batch, calibrator, tmp_path):
    same = CalibrationMonitor(n_fit=1000)
    known = load(calibrator)
    for number, shift in enumerate([0.0, 0.0, 1.0]):
        rows = draw(400, 5 + number, shift)
        same.partial_fit(known.predict(rows["s"]), rows["y"] == "sick")
        words = ["--positive", "sick"] if number == 0 else []
        table = batch(rows, f"{number}.parquet" if number else "0.csv")
        code, out, _ = watch(table, *words, "--json")
        facts = json.loads(out)
        assert code == (3 if same.alarm_ else 0)
        assert facts["log_e_value"] == pytest.approx(same.log_e_, abs=1e-9)
        assert facts["rows"] == same.n_rows_
        assert facts["offset_interval"] == pytest.approx(same.confidence_interval())
    assert same.alarm_
    advice = same.advise()
    assert (facts["advice"], facts["onset_row"]) == (advice.action, 800.0)
    assert facts["slope"] == pytest.approx(advice.slope)
    # The same rows are not counted again, and the alarm stays.
    picture = tmp_path / "state.svg"
    code, out, _ = watch(table, "--picture", picture)
    assert code == 3
    assert out.startswith("1200 rows in 3 batches: ALARM\n")
    assert "log-odds (95 %)" in out
    assert picture.stat().st_size > 1000


def test_a_batch_of_one_class_counts(watch, batch, tmp_path):
    rows = draw(200, 5)
    first, one = batch(rows), batch(rows.assign(y="well"), "one.csv")
    code, _, lines = watch(one)
    assert code == 2
    assert lines[-1].endswith(
        "one.csv holds 'well' alone: say by --positive which class is meant"
    )
    assert not (tmp_path / "state.zip").exists()
    assert watch(one, "--positive", "sick")[0] in (0, 3)
    assert watch(first)[0] in (0, 3)
    assert load(tmp_path / "state.zip").labels == Labels(("well", "sick"))


def test_rows_without_a_label_are_left_out(run, batch, calibrator, tmp_path):
    rows = draw(200, 5).assign(y=lambda t: (t["y"] == "sick").astype(float))
    rows.loc[[3, 50], "y"] = np.nan
    words = ["--score", "s", "--label", "y", "--state", tmp_path / "state.zip"]
    code, out, lines = run("monitor", calibrator, batch(rows, "b.parquet"), *words)
    assert code == 0
    assert "localexpert: warning: left out 2 rows without a label 'y'" in lines
    assert out.startswith("198 rows in 1 batch: no alarm")
    assert load(tmp_path / "state.zip").labels == Labels(("0", "1"))


def test_what_does_not_fit_is_one_line_and_the_state_stays(
    watch, refused, batch, calibrator, tmp_path, houses
):
    state, rows = tmp_path / "state.zip", draw(200, 6)
    watch(batch(draw(200, 5)), "--positive", "sick")
    kept = state.read_bytes()
    sound = batch(rows, "sound.csv")
    words = ["--state", state, "--score", "s", "--label", "y"]

    def refuse(table, *more, of=calibrator, words=words):
        said = refused("monitor", of, table, *words, *more)
        assert state.read_bytes() == kept
        return said

    dead = rows.assign(y=rows["y"].where(rows.index != 4, "dead"))
    assert refuse(batch(dead, "dead.csv")).endswith(
        "dead.csv must hold 'well', 'sick' as before, got 'dead', 'sick', 'well'"
    )
    gap = batch(rows.assign(s=rows["s"].where(rows.index != 4)), "gap.csv")
    assert "score 's' must not have gaps, got '' in line 6 of" in refuse(gap)
    high = batch(rows.assign(s=2.0), "high.csv")
    assert "must lie in [0, 1] as those that the calibrator" in refuse(high)
    none = batch(rows.assign(y=""), "none.csv")
    assert refuse(none).endswith("none.csv has no row with a label 'y'")
    assert "has no label 'z'" in refuse(sound, "--label", "z")
    assert "--positive differs from that of --state, 'sick'" in refuse(
        sound, "--positive", "well"
    )
    assert "--alpha differs from that of" in refuse(sound, "--alpha", ".1")
    assert "--fitted-rows differs from that" in refuse(sound, "--fitted-rows", 7)
    assert "--score must name one column" in refuse(sound, "--score", "s,t")
    assert refuse(sound, words=words[:2]).startswith("--score must name a column: ")
    assert refuse(sound, words=words[:4]).startswith("--label must name a column: ")
    for option in ("--target", "--thresholds"):
        said = refuse(sound, option, "1")
        assert said.startswith(f"{option} is of a model, not of a calibrator, got ")
    model = houses / "model.zip"
    for option in ("--score", "--label", "--positive", "--fitted-rows"):
        said = refuse(sound, option, "1", of=model, words=words[:2])
        assert said.startswith(f"{option} is of a calibrator, not of a model, got ")
    other = tmp_path / "other.zip"
    other.write_bytes(kept)
    said = refuse(sound, of=other)
    assert "holds a MonitorState, not a model of `localexpert fit`" in said


def test_one_of_several_classes_is_refused(refused, batch, tmp_path, rng):
    scores = rng.dirichlet(np.ones(3), 60)
    path, table = tmp_path / "three.zip", batch(draw(60, 0))
    SoftmaxCalibrator().fit(scores, np.arange(60) % 3).save(path)
    words = ["--score", "s", "--label", "y", "--state", tmp_path / "s.zip"]
    said = refused("monitor", path, table, *words)
    assert said.endswith("holds a SoftmaxCalibrator, not a model of `localexpert fit`")
