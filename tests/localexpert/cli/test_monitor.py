"""monitor: exit codes, a state that is kept whole, batches that come twice."""

import json
import os

import pytest

from tests.localexpert.cli.conftest import QUICK, house_rows


@pytest.fixture
def watch(run, houses, tmp_path):
    """Return a function that adds a batch to the state."""

    def add(table, *options, state="state.zip"):
        words = ["monitor", houses / "model.zip", table, "--state", tmp_path / state]
        return run(*words, "--quiet", *options)

    return add


@pytest.fixture
def dearer(write):
    """Return a file of houses that all cost half as much again."""
    header, *rows = house_rows(120, 9)
    rows = [[*row[:-1], f"{1.5 * float(row[-1]):.2f}"] for row in rows]
    return write([header, *rows], "dearer.csv")


def test_an_alarm_has_an_exit_code_and_stays(watch, write, dearer, tmp_path):
    for seed in (5, 6):
        code, out, _ = watch(write(house_rows(120, seed), f"{seed}.csv"))
        assert (code, out.splitlines()[0][-8:]) == (0, "no alarm")
    picture = tmp_path / "state.svg"
    code, out, _ = watch(dearer, "--picture", picture)
    assert code == 3
    assert out.startswith("360 rows in 3 batches: ALARM\n")
    assert "advice: " in out
    assert picture.stat().st_size > 1000
    code, out, _ = watch(write(house_rows(120, 7), "7.csv"), "--json")
    facts = json.loads(out)
    assert code == 3
    assert (facts["alarm"], facts["alarm_at_row"], facts["onset_row"]) == (
        True,
        360.0,
        240.0,
    )
    assert facts["rows"] == 480.0


def test_a_batch_counts_once(watch, run, houses, write, tmp_path):
    rows = house_rows(60, 5)
    first = watch(write(rows))
    kept = (tmp_path / "state.zip").read_bytes()
    # The same rows in another file, written in another way.
    again = write(rows, "again.csv", delimiter=";")
    words = ["monitor", houses / "model.zip", again, "--state", tmp_path / "state.zip"]
    code, out, lines = run(*words)
    assert (code, out) == first[:2]
    assert lines[-1].endswith("again.csv is in the state already: not counted again")
    assert (tmp_path / "state.zip").read_bytes() == kept


def test_what_does_not_fit_is_one_line_and_the_state_stays(
    watch, write, refused, houses, tmp_path
):
    watch(write(house_rows(60, 5)))
    kept = (tmp_path / "state.zip").read_bytes()
    header, *rows = house_rows(60, 6)
    model, state = houses / "model.zip", tmp_path / "state.zip"

    def refuse(table, *options):
        return refused("monitor", model, table, "--state", state, *options)

    lacking = write([row[:1] + row[2:] for row in [header, *rows]], "lacking.csv")
    assert "lacks 1 column that the model was trained on: 'area'" in refuse(lacking)
    words = write([header, *([*row[:-1], "dear"] for row in rows)], "words.csv")
    assert "price" in refuse(words)
    sound = write([header, *rows], "sound.csv")
    assert "--alpha differs from that of --state" in refuse(sound, "--alpha", ".1")
    assert "--thresholds differs" in refuse(sound, "--thresholds", "5")
    assert "--picture must end in .png" in refuse(sound, "--picture", tmp_path / "p.x")
    assert (tmp_path / "state.zip").read_bytes() == kept


def test_a_state_belongs_to_its_model(watch, write, refused, run, houses, tmp_path):
    table = write(house_rows(60, 5))
    watch(table)
    other = tmp_path / "other.zip"
    words = ["--target", "price", *QUICK, "--seed", "1", "--out", other, "--quiet"]
    assert run("fit", houses / "train.csv", *words)[0] == 0
    state = tmp_path / "state.zip"
    said = refused("monitor", other, table, "--state", state)
    assert "is that of another model than" in said
    said = refused("monitor", other, table, "--state", houses / "model.zip")
    assert "holds a TableModel, not a state of `localexpert monitor`" in said
    said = refused("monitor", other, table, "--state", other)
    assert "is the same file as" in said
    assert "--state must be a file" in refused("monitor", other, table, "--state", "-")


def test_a_first_batch_that_is_too_small_makes_no_state(watch, write, tmp_path):
    table = write(house_rows(20, 5))
    code, _, _ = watch(table)
    assert code == 2
    assert not os.path.exists(tmp_path / "state.zip")
    assert watch(table, "--tolerance", "0.1")[0] == 0
