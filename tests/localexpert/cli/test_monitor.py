"""monitor and recalibrate: exit codes, a state kept whole, and what is advised."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from calibration import CalibrationMonitor, PlattCalibrator
from localexpert import PitRecalibration, crps_score, load
from localexpert.recalibration.pit import ShiftRecalibration
from tests.localexpert.cli.conftest import draw_houses

# Houses that all cost half as much again.
DEAR = draw_houses(120, 9).assign(price=lambda rows: 1.5 * rows["price"])


@pytest.fixture
def watch(run, houses, tmp_path):
    """Return a function that adds a batch to the state."""

    def add(table, *options, state="state.json"):
        words = ["monitor", houses / "model.zip", table, "--state", tmp_path / state]
        return run(*words, "--quiet", *options)

    return add


@pytest.fixture
def dearer(write):
    """Return the file of the dear houses."""
    return write(DEAR, "dearer.csv")


def test_an_alarm_has_an_exit_code_and_stays(watch, write, dearer, tmp_path):
    for seed in (5, 6):
        code, out, _ = watch(write(draw_houses(120, seed), f"{seed}.csv"))
        assert (code, out.splitlines()[0][-8:]) == (0, "no alarm")
    picture = tmp_path / "state.svg"
    code, out, _ = watch(dearer, "--picture", picture)
    assert code == 3
    assert out.startswith("360 rows in 3 batches: ALARM\n")
    assert "advice: " in out
    assert picture.stat().st_size > 1000
    code, out, _ = watch(write(draw_houses(120, 7), "7.csv"), "--json")
    facts = json.loads(out)
    assert code == 3
    rows = [facts[name] for name in ("alarm_at_row", "onset_row", "rows")]
    assert (facts["alarm"], rows) == (True, [360.0, 240.0, 480.0])


def test_a_picture_is_there_whole_or_not(watch, dearer, tmp_path, monkeypatch):
    def fill_disk(_, path, **__):
        Path(path).write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fill_disk)
    (picture := tmp_path / "state.png").write_text("old")
    code, _, lines = watch(dearer, "--picture", picture)
    assert code == 2
    assert "cannot write --picture" in lines[-1]
    assert picture.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 3  # and the table and the state


def test_a_batch_counts_once_in_any_order(watch, run, houses, write, tmp_path):
    rows = draw_houses(60, 5)
    first = watch(write(rows))
    kept = (tmp_path / "state.json").read_bytes()
    # The same rows in another file, shuffled, and written in another way.
    again = write(rows.sample(frac=1.0, random_state=0), "again.csv", sep=";")
    words = ["monitor", houses / "model.zip", again, "--state", tmp_path / "state.json"]
    code, out, lines = run(*words)
    assert (code, out) == first[:2]
    assert lines[-1].endswith("as one before it: it is not counted again.")
    assert (tmp_path / "state.json").read_bytes() == kept


@pytest.fixture
def recalibrated(run, houses, tmp_path):
    """Return a function that recalibrates by rows, and what came of it."""

    def recalibrate(table, *words, model=houses / "model.zip"):
        out = tmp_path / "new.zip"
        code, said, lines = run("recalibrate", model, table, *words, "--out", out)
        assert (code, said) == (0, ""), lines
        return load(out), lines

    return recalibrate


def test_advice_is_carried_out(watch, dearer, recalibrated, ok, houses, tmp_path):
    state = tmp_path / "state.json"
    assert watch(dearer)[0] == 3
    advice = json.loads(watch(dearer, "--json")[1])["advice"]
    new, lines = recalibrated(dearer, "--state", state)
    assert f"localexpert: the advice is: {advice}" in lines
    assert lines[-1].startswith(f"localexpert: saved {tmp_path / 'new.zip'}: ")
    old = load(houses / "model.zip")
    before, after = (
        crps_score(DEAR["price"], one.predict_dist(DEAR)) for one in (old, new)
    )
    assert after < before
    assert "120 rows of dearer.csv" in ok("inspect", tmp_path / "new.zip")[0]
    told = ok("evaluate", tmp_path / "new.zip", dearer, "--json")[0]
    assert json.loads(told)["model"]["crps"] == pytest.approx(after)
    # It is another model with another state, and a tolerance by the 120 rows.
    other = tmp_path / "other.json"
    ok("monitor", tmp_path / "new.zip", dearer, "--state", other)
    fitted = [
        json.loads(path.read_text())["monitor"]["n_fit"] for path in (state, other)
    ]
    assert fitted == [200, 120]


@pytest.mark.parametrize("action", ["shift", "shift-and-slope", "recalibrate"])
def test_actions_are_those_of_python(recalibrated, dearer, houses, action):
    words = ["--action", action, "--method", "pit", "--seed", "3"]
    new, _ = recalibrated(dearer, *words)
    dist = load(houses / "model.zip").predict_dist(DEAR)
    learned = {
        "shift": ShiftRecalibration(random_state=3),
        "shift-and-slope": ShiftRecalibration(slope=True, random_state=3),
        "recalibrate": PitRecalibration(random_state=3),
    }[action].fit(dist, DEAR["price"])
    want = learned.apply(dist).quantiles([0.1, 0.5, 0.9])
    got = new.predict_dist(DEAR).quantiles([0.1, 0.5, 0.9])
    np.testing.assert_allclose(got, want)


def test_groups_have_corrections_of_their_own(recalibrated, dearer):
    new, _ = recalibrated(dearer, "--by", "kind")
    assert len(new.model.recalibration_.recalibrations_) == 3


def test_rows_that_were_learned_from_correct_nothing(recalibrated, write):
    rows = draw_houses(60, 8)
    mixed, _ = recalibrated(write(pd.concat([rows, draw_houses(200, 0)[:29]])))
    alone, _ = recalibrated(write(rows))
    one, other = (model.predict_dist(DEAR).median() for model in (mixed, alone))
    np.testing.assert_array_equal(one, other)


# Of a calibrator: scores and labels, batch by batch


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
def watch_scores(run, calibrator, tmp_path):
    """Return a function that adds a batch to the state."""

    def add(table, *options, of=calibrator):
        words = ["--score", "s", "--label", "y", "--state", tmp_path / "state.json"]
        return run("monitor", of, table, *words, "--quiet", *options)

    return add


def test_a_calibrator_is_watched_as_in_python(
    watch_scores, write, calibrator, tmp_path
):
    same = CalibrationMonitor(n_fit=1000)
    known = load(calibrator)
    for number, shift in enumerate([0.0, 0.0, 1.0]):
        rows = draw(400, 5 + number, shift)
        same.partial_fit(known.predict(rows["s"]), rows["y"] == "sick")
        words = ["--positive", "sick"] if number == 0 else []
        table = write(rows, f"{number}.parquet" if number else "0.csv")
        code, out, _ = watch_scores(table, *words, "--json")
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
    code, out, _ = watch_scores(table, "--picture", picture)
    assert code == 3
    assert out.startswith("1200 rows in 3 batches: ALARM\n")
    assert "log-odds (95 %)" in out
    assert picture.stat().st_size > 1000


def test_a_batch_of_one_class_counts(watch_scores, write, tmp_path):
    rows = draw(200, 5)
    one = write(rows.assign(y="well"), "one.csv")
    assert watch_scores(one, "--positive", "sick")[0] in (0, 3)
    assert watch_scores(write(rows))[0] in (0, 3)
    state = json.loads((tmp_path / "state.json").read_text())
    assert state["labels"] == ["well", "sick"]


def test_a_state_tells_the_positive_label(
    watch_scores, write, calibrator, recalibrated, refused, tmp_path
):
    table = write(rows := draw(800, 7, shift=1.0))
    assert watch_scores(table, "--positive", "sick")[0] == 3
    words = ["--score", "s", "--label", "y", "--state", tmp_path / "state.json"]
    new, _ = recalibrated(table, *words, model=calibrator)
    want = PlattCalibrator().fit(rows["s"], rows["y"] == "sick")
    assert new.predict([0.3]) == want.predict([0.3])
    words = ["recalibrate", calibrator, table, *words, "--out", tmp_path / "n.zip"]
    assert "differs from that of --state" in refused(*words, "--positive", "well")


def test_rows_without_a_label_are_left_out(
    ok, write, calibrator, recalibrated, tmp_path
):
    rows = draw(200, 5).assign(y=lambda t: (t["y"] == "sick").astype(float))
    rows.loc[[3, 50], "y"] = np.nan
    words = ["--score", "s", "--label", "y", "--state", tmp_path / "state.json"]
    table, said = write(rows, "b.parquet"), "left out 2 rows without a label 'y'"
    out, lines = ok("monitor", calibrator, table, *words)
    assert f"localexpert: warning: {said}" in lines
    assert out.startswith("198 rows in 1 batch: no alarm")
    state = json.loads((tmp_path / "state.json").read_text())
    assert state["labels"] == ["0", "1"]
    new, lines = recalibrated(table, *words[:4], model=calibrator)
    assert f"localexpert: warning: {said}" in lines
    assert "by 198 rows of b.parquet" in lines[-1]
    rows = rows.dropna()
    want = PlattCalibrator().fit(rows["s"], rows["y"])
    assert new.predict([0.3]) == want.predict([0.3])
