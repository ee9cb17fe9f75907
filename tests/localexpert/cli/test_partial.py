"""Targets known only in part, through the whole shell: by an event, or by two ends."""

import json

import numpy as np
import pandas as pd
import pytest

import localexpert
from localexpert.cli.main import main
from tests.localexpert.reporting.conftest import Page

QUIET = ["--effort", "quick", "--quiet"]


def draw_trial(n, seed):
    """A trial of n people: two words for the event, the same in ends, and intervals."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(size=n).round(3)
    lives, seen_for = rng.exponential([9.0 * (0.2 + age), np.full(n, 9.0)])
    months, died = np.minimum(lives, seen_for).round(3), lives <= seen_for
    frame = pd.DataFrame({"age": age, "months": months})
    frame["died"], frame["dead"] = np.where(died, "yes", "no"), 1 * died
    frame["lo"], frame["hi"] = months, np.where(died, months, np.nan)
    year = np.floor(months / 12.0)
    frame["from"], frame["to"] = 12.0 * year, 12.0 * (year + 1.0)
    frame.loc[::3, "from"] = frame.loc[::3, "to"] = months[::3]
    frame.loc[::7, "from"] = np.nan
    return frame


WAYS = {
    "event": ("age months died", "--target months --event died"),
    "ends": ("age lo hi", "--lower lo --upper hi"),
    "intervals": ("age from to", "--lower from --upper to"),
}


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """Return a folder with a model, its training table and new rows for every way."""
    folder = tmp_path_factory.mktemp("trial")
    for way, (columns, options) in WAYS.items():
        for name, n in (("train", 60), ("new", 40)):
            frame = draw_trial(n, n)[columns.split()]
            frame.to_csv(folder / f"{way}_{name}.csv", index=False)
        words = ["fit", folder / f"{way}_train.csv", *options.split(), *QUIET]
        words += ["--out", folder / f"{way}.zip"]
        assert main([str(word) for word in words]) == 0
    return folder


def test_ends_are_what_an_event_says(trial, ok):
    told = {}
    for way in ("event", "ends"):
        path, new = trial / f"{way}.zip", trial / f"{way}_new.csv"
        saved = localexpert.load(path)
        assert saved.reader.feature_names_ == ["age"]
        assert saved.model.check_.n == 60
        known = (draw_trial(60, 60)["died"] == "yes").mean()
        assert saved.model.report_.choices["outcomes"]["known"] == known
        scored = ok("evaluate", path, new)[0].partition("\n")[2]
        told[way] = ok("predict", path, new)[0], scored
    assert told["event"] == told["ends"]
    for way, option in (("event", "--event died"), ("ends", "--lower lo --upper hi")):
        text = ok("inspect", trial / f"{way}.zip")[0]
        assert f"\nknown in part: {option}\n" in text
    assert "\nlo   lower\nhi   upper\nage  numbers\n" in text


def test_scores_are_those_of_the_metrics(trial, ok):
    words = ["evaluate", trial / "event.zip", trial / "event_new.csv"]
    told = json.loads(ok(*words, "--json")[0])
    frame = draw_trial(40, 40)
    y = localexpert.censored(frame["months"], frame["dead"])
    dist = localexpert.load(words[1]).predict_dist(frame)
    assert list(told).index("model") < list(told).index("climatology")
    assert told["rows"] == 40
    assert told["known_in_part"] == 40 - frame["dead"].sum() > 10
    for name in ("quantile_loss", "rmse", "mae"):
        assert told["model"].pop(name) is None
    assert told["model"] == pytest.approx(
        {
            "crps": localexpert.crps_score(y, dist),
            "log_score": localexpert.log_score(y, dist),
            "coverage_90": localexpert.interval_coverage(y, dist, coverage=0.9),
            "width": np.diff(dist.interval(0.9)).mean(),
            "concordance": localexpert.concordance_index(y, dist),
            "pit_test": localexpert.pit_test(y, dist)[1],
            "d_calibration": localexpert.d_calibration_test(y, dist)[1],
        }
    )
    assert told["climatology"]["concordance"] == 0.5
    text = ok(*words)[0]
    assert f", {told['known_in_part']} with a target known in part\n" in text
    for name in ("CRPS", "concordance", "p of PIT test", "p of D-calibration"):
        assert f"\n{name} " in text
    for name in ("RMSE", "MAE", "expected"):
        assert name not in text


def test_intervals_have_no_crps(trial, ok):
    words = ["evaluate", trial / "intervals.zip", trial / "intervals_new.csv"]
    told = json.loads(ok(*words, "--json")[0])
    frame = draw_trial(40, 40)
    y = np.stack([frame["from"].fillna(-np.inf), frame["to"]], axis=1)
    dist = localexpert.load(words[1]).predict_dist(frame)
    assert told["model"]["crps"] is told["model"]["concordance"] is None
    assert told["model"]["log_score"] == pytest.approx(localexpert.log_score(y, dist))
    text = ok(*words)[0]
    assert "CRPS" not in text
    assert "\nlog score " in text


@pytest.mark.parametrize("way", WAYS)
def test_training_rows_are_known_again(way, trial, ok, write):
    old, new = (pd.read_csv(trial / f"{way}_{name}.csv") for name in ("train", "new"))
    mixed = write(pd.concat([old[:25], new]))
    path = trial / f"{way}.zip"
    text, _ = ok("evaluate", path, mixed)
    assert text.startswith(f"40 new rows of {mixed}, ")
    assert "The model has learned from 25 of the 65 rows." in text
    alone = ok("evaluate", path, trial / f"{way}_new.csv", "--json")[0]
    mixed = ok("evaluate", path, mixed, "--json")[0]
    assert json.loads(mixed)["model"] == pytest.approx(json.loads(alone)["model"])
    text, lines = ok("evaluate", path, trial / f"{way}_train.csv")
    assert text.startswith("60 rows of ")
    assert lines[-1].endswith("Scores are too good: new rows tell the truth")


@pytest.fixture
def undrawn(monkeypatch):
    """Leave pictures empty: drawing takes most of the time."""
    monkeypatch.setattr("localexpert.reporting.pictures.picture", lambda *_: "data:,")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("way", ["event", "intervals"])
def test_a_page(way, trial, ok, tmp_path):
    words = [trial / f"{way}.zip", trial / f"{way}_new.csv"]
    words += ["--out", tmp_path / "r.html"]
    told = json.loads(ok("evaluate", *words[:2], "--json")[0])
    _, _lines = ok("report", *words)
    page = Page(tmp_path / "r.html")
    head = (
        f"40 rows of {way}_new.csv, {told['known_in_part']} with outcomes known in part"
    )
    assert head in page.text
    scores = page.column("Means over the rows; less is better", "Model")
    names = {"Log score": "log_score", "Coverage of 90\u00a0%": "coverage_90"}
    if way == "event":
        names |= {"CRPS": "crps", "Concordance (more is better)": "concordance"}
    assert scores.pop("Width of 90\u00a0%") > 0.0
    assert scores == pytest.approx({k: told["model"][v] for k, v in names.items()})
    alts = [one["alt"] for one in page.of("img")]
    censored_only = way == "event"
    assert ("Survival function of forecasts and of outcomes." in alts) is censored_only
    assert any("Increase of the CRPS" in name for name in page.tables) is censored_only
    assert ("There is no CRPS and no concordance" in page.text) is not censored_only
    assert not any("Absolute errors" in alt for alt in alts)
    for sentence in (
        "There are no errors of single numbers",
        "There is no back-test: it takes outcomes that are known.",
        "were not compared with training: that takes outcomes that are known",
        "Draws stood for targets known in part",
        "(60 rows, with draws of targets known in part)",
        " or more" if censored_only else " or less",
    ):
        assert sentence in page.text
    assert "Features distributed otherwise" not in page.text


@pytest.mark.parametrize("way", ["event", "ends"])
def test_what_takes_known_targets_says_what_to_do(way, trial, refused, tmp_path):
    words = [trial / f"{way}.zip", trial / f"{way}_new.csv"]
    option = WAYS[way][1].removeprefix("--target months ")
    for command in (
        ["recalibrate", *words, "--out", tmp_path / "m.zip"],
        ["monitor", *words, "--state", tmp_path / "state.json"],
    ):
        line = refused(*command)
        assert f"targets of {words[0]} are known in part ({option})" in line
        assert "`localexpert evaluate` scores new rows, `localexpert fit` lea" in line
    line = refused("report", *words, "--train", words[1], "--out", tmp_path / "r.html")
    assert line.startswith("--train is for a boosted baseline, which learns from known")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("way", "changed", "message"),
    [
        ("ends", {"hi": -1.0}, "lower 'lo' must not be above upper 'hi', got"),
        ("ends", {"hi": None}, "has no upper 'hi'"),
        ("event", {"died": "maybe"}, "true or false, or 1 or 0, got 'maybe'"),
        ("event", {"died": None}, "has no event 'died'"),
    ],
)
def test_bad_rows_to_score(way, changed, message, trial, refused, write):
    frame = pd.read_csv(trial / f"{way}_new.csv").assign(**changed)
    lacking = [name for name, value in changed.items() if value is None]
    table = write(frame.drop(columns=lacking))
    assert message in refused("evaluate", trial / f"{way}.zip", table)


def test_rows_without_ends_are_left_out(trial, refused, ok, write):
    frame, model = pd.read_csv(trial / "ends_new.csv"), trial / "ends.zip"
    frame.loc[[2, 5], ["lo", "hi"]] = np.nan
    table = write(frame)
    text, lines = ok("evaluate", model, table)
    assert text.startswith("38 rows ")
    assert lines[-1].endswith("left out 2 rows without a target 'lo to hi'")
    line = refused("evaluate", model, table, "--target", "lo")
    assert line.startswith("--target says nothing: ")


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("n", [1, 5])
def test_a_few_rows_of_which_none_is_known(n, trial, ok, write, tmp_path):
    frame = pd.read_csv(trial / "event_new.csv")
    table = write(frame[frame["died"] == "no"][:n])
    text, _lines = ok("evaluate", trial / "event.zip", table)
    assert "\nCRPS " in text
    assert "concordance" not in text
    words = [trial / "event.zip", table, "--out", tmp_path / "r.html"]
    ok("report", *words)
    text = Page(tmp_path / "r.html").text
    assert "Sure, row" in text
    assert "Best, row" not in text
