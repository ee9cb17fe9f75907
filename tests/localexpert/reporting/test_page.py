"""The page: sound HTML, nothing from outside, true numbers, one voice."""

import base64
import datetime
import re
from contextlib import nullcontext
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t

import localexpert
from localexpert import PredictiveDistribution, report_figures
from localexpert.reporting import pictures, report
from tests.forecasts import Coin
from tests.localexpert.reporting.conftest import Page, Wrong
from tests.regressors import fast

SCORES = "Means over the rows; less is better"
DASH = "\u2013"
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
DAY = datetime.date(2026, 11, 3)


def test_pictures_of_near_outcomes_in_a_unit_that_looks_like_a_formula():
    y = np.random.default_rng(0).normal(1.7e9, 600.0, size=60)
    options = {"unit": "$_$", "importance_rows": 0}
    found = report_figures(Wrong(1.7e9, 600.0), np.zeros((60, 1)), y, **options)
    drawn = {}
    for name in ("sharpness", "example sure"):
        code = base64.b64decode(found.pictures[name].partition("base64,")[2])
        root = ElementTree.fromstring(code)
        drawn[name] = [e.text for e in root.iter() if e.tag.endswith("}text")]
    assert "Absolute error of the median ($_$)" in drawn["sharpness"]
    axis = drawn["example sure"]
    ticks = axis[: axis.index("Target ($_$)")]
    assert len(set(ticks)) == len(ticks) > 2


X = np.tile([[0.0], [1.0]], (10, 1))
Y = X[:, 0]


@pytest.fixture
def draw(tmp_path, monkeypatch):
    """Write a report, by default on a coin, and read it; pictures are not saved."""
    monkeypatch.setattr(pictures, "_to_address", lambda _: "data:image/png;base64,")

    def made(model=None, rows=X, y=Y, **options):
        path = tmp_path / "r.html"
        options = {"importance_rows": 0, **options}
        return Page(report(model or Coin(), rows, y, path, **options))

    return made


@pytest.fixture
def write(draw, monkeypatch):
    """Write a report whose pictures are not even drawn."""
    monkeypatch.setattr(pictures, "picture", lambda *_: "data:image/png;base64,")
    return draw


class TestForm:
    def test_is_a_page_for_phones_and_readers_aloud(self, page):
        assert page.source.startswith('<!DOCTYPE html>\n<html lang="en">')
        assert {"charset": "utf-8"} in page.of("meta")
        named = {meta.get("name"): meta.get("content") for meta in page.of("meta")}
        assert named["viewport"] == "width=device-width, initial-scale=1"
        assert len(page.of("h1")) == 1
        scopes = {head["scope"] for head in page.of("th")}
        assert scopes <= {"col", "row", "rowgroup"}
        assert len(page.of("caption")) == len(page.of("table")) == 8

    def test_every_picture_says_what_it_shows(self, page):
        assert len(page.of("img")) == len(page.of("figure")) > 10
        assert all(len(image["alt"]) > 20 for image in page.of("img"))

    def test_asks_nothing_of_the_network(self, page):
        assert not page.of("script") + page.of("link") + page.of("iframe")
        addresses = [
            value
            for element in page.root.iter()
            for name, value in element.attrib.items()
            if name in ("src", "href", "srcset", "style", "data", "action")
        ]
        drawn = [a for a in addresses if not a.startswith("#")]
        assert len(drawn) == len(page.of("img"))
        assert all(a.startswith("data:image/svg+xml;base64,") for a in drawn)
        assert not re.search(r"@import|url\(", page.source)
        assert len(page.source.encode()) < 1_000_000

    def test_pictures_are_sound_and_draw_nothing_from_outside(self, page):
        for image in page.of("img"):
            root = ElementTree.fromstring(base64.b64decode(image["src"].split(",")[1]))
            assert root.tag.endswith("svg")
            links = [v for e in root.iter() for k, v in e.items() if "href" in k]
            assert all(link.startswith(("#", "data:")) for link in links)

    def test_contents_lead_to_every_section(self, page):
        links = [link["href"] for link in page.of("a")]
        anchors = [f"#{one['id']}" for one in page.of("section")]
        assert links == anchors
        assert len(set(anchors)) == len(anchors) == 10

    def test_statistics_have_their_names_in_a_fold_alone(self, page):
        folded = "".join(re.findall("<details.*?</details>", page.source, re.DOTALL))
        open_ = re.sub("<details.*?</details>", "", page.source, flags=re.DOTALL)
        for name in ("Kolmogorov", "Kupiec", "Christoffersen", "Diebold", "Holm"):
            assert name in folded
            assert name not in open_
        assert {tuple(one) for one in page.of("details")} == {()}

    def test_is_open_and_light_for_paper(self, write):
        page = write(pdf_friendly=True)
        assert all("open" in one for one in page.of("details"))
        last = page.source.rindex("color-scheme:")
        assert page.source[last:].startswith("color-scheme: light;")
        sheet = " ".join(page.source.split("<style>")[1].split("</style>")[0].split())
        (broken,) = re.findall(r"@media print \{ (#.*?) \{ break-before: page", sheet)
        # What begins a page of its own is there.
        assert set(broken.split(", ")) < {f"#{one['id']}" for one in page.of("section")}
        assert "{ break-before: page" not in write().source


class TestText:
    def test_names_are_text_and_never_html(self, page, draw):
        assert not page.of("script")
        assert "<b>town</b>" in page.text
        assert "<script>alert(1)</script>" in page.text
        bad = '"><script>x</script>{{ 7 * 7 }}\x00\ud800'
        odd = SimpleNamespace(column=bad, text=bad, count=2, where=bad, why=bad)
        told = {"title": bad, "target_name": bad, "unit": bad, "source": bad}
        names = {"row_names": [bad] * 20, "groups": {bad: [bad] * 20}}
        page = draw(**told, **names, odd_cells=[odd])
        assert not page.of("script")
        shown = '"><script>x</script>{{ 7 * 7 }}\ufffd\ufffd'
        assert page.text.count(shown) > 10
        page.source.encode("utf-8")

    def test_the_head_of_the_page(self, write):
        names = {"target_name": "price", "unit": "EUR", "source": "test.csv"}
        page = write(**names, date=DAY)
        assert "<title>Forecasts of price</title>" in page.source
        about = "Target: price (EUR) \u00b7 Coin, 20 rows of test.csv, 1 feature"
        assert f"{about} \u00b7 2026-11-03" in page.text
        page = write(title="Q3 & Q4", target_name="price")
        assert "<h1>Q3 &amp; Q4</h1>" in page.source
        assert "<h1>Forecasts of kWh</h1>" in write(y=pd.Series(Y, name="kWh")).source
        assert "<h1>Forecasts of 7</h1>" in write(y=pd.Series(Y, name=7)).source
        assert "<h1>Report on forecasts</h1>" in write().source

    def test_odd_cells_are_listed(self, write):
        cell = {"text": "k.A.", "count": 25, "where": "line 7 of a.csv", "why": "gap"}
        page = write(odd_cells=[SimpleNamespace(column="area", **cell)])
        (row,) = page.tables["Odd cells"][1:]
        assert row == ["area", "k.A.", "25", "line 7 of a.csv", "gap"]

    @pytest.mark.parametrize("n", [1, 2, 7])
    def test_few_rows(self, n, houses, draw):
        page = draw(houses.model, houses.X[:n], houses.y[:n])
        told = "There is only 1 row" if n == 1 else f"There are only {n} rows"
        assert f"Warning: {told}" in page.text
        plural = r"\b1 (rows|outcomes|forecasts|groups|features)\b"
        assert not re.search(plural, page.text)
        assert "as it should be" not in page.text

    @pytest.mark.parametrize("n_finite", [0, 19])
    def test_spreads_are_drawn_where_they_are_finite(self, n_finite, draw):
        powers = np.where(np.arange(20) < n_finite, 30.0, 1.8)
        dist = PredictiveDistribution.from_scipy(t(powers))
        page = draw(SimpleNamespace(predict_dist=lambda _: dist))
        assert ("Do wide forecasts err more?" in page.text) == (n_finite > 0)


class TestSeenRows:
    def test_the_verdict_is_of_the_new_rows(self, houses, page, write):
        both = pd.concat([houses.X_train, houses.X])
        y = np.concatenate([houses.y_train, houses.y])
        text = write(houses.model, both, y).text
        assert "The model has learned from 300 of the 520 rows." in text
        assert "All figures are of the other 220 rows." in text
        assert "None of the 220 rows is equal to a training row." in page.text

    def test_training_rows_alone_have_no_verdict(self, houses, write):
        page = write(houses.model, houses.X_train, houses.y_train)
        assert "Nothing yet: the model has learned from all of these rows" in page.text

    def test_no_claim_is_made_without_a_check(self, rng, write):
        # New rows of a table of few cells are equal to old ones by chance.
        cells = rng.integers(2, size=(800, 3)).astype(float)
        y = rng.poisson(1.0 + cells[:, 0]).astype(float)
        page = write(fast().fit(cells[:400], y[:400]), cells[400:], y[400:])
        assert "Whether these 400 rows are of training cannot be told." in page.text
        assert "learned from" not in page.text


@pytest.mark.filterwarnings("ignore:`X` holds categories not met in `fit`")
def test_numbers_are_those_of_the_metrics_and_counts_of_rows(page, houses):
    dist, y = houses.model.predict_dist(houses.X), houses.y
    told = page.column(SCORES, "Model")
    assert told["CRPS"] == localexpert.crps_score(y, dist)
    assert told["Log score"] == localexpert.log_score(y, dist)
    losses = [localexpert.pinball_loss(y, dist, level=level) for level in LEVELS]
    assert told["Quantile loss"] == pytest.approx(np.mean(losses))
    rmse = np.sqrt(np.mean((y - dist.mean()) ** 2))
    assert told["RMSE of the mean"] == pytest.approx(rmse)
    low, high = dist.interval(0.9).T
    assert told["Width of 90\xa0%"] == pytest.approx(np.mean(high - low))
    heads, *rows = page.tables[SCORES]
    assert heads == ["", "Model", "Climatology", "Skill", "Boosting", "Skill"]
    ours, theirs, skill, boosting, other = rows[2][1:]
    assert skill == pytest.approx(1.0 - ours / theirs)
    assert other == pytest.approx(1.0 - ours / boosting)
    assert rows[0][4:] == [DASH, DASH]
    passed = y > dist.value_at_risk(0.95)
    told = page.column("Coverage by group", "Literal")
    risks = page.column("Back-test of the value at risk", "Passed")
    assert risks["All rows"] == passed.mean()
    for town in ("Cc", "Aa & Bb"):
        chosen = (houses.X["<b>town</b>"] == town).to_numpy()
        inside = (low <= y) & (y <= high)
        assert told[town] == pytest.approx(inside[chosen].mean())
        assert risks[f"<b>town</b>: {town}"] == passed[chosen].mean()


@pytest.mark.parametrize("n", [1, 12, 400])
@pytest.mark.parametrize(
    "model", [Wrong(), Wrong(spread=0.6), Wrong(spread=1.8), Wrong(bias=0.5)], ids=str
)
def test_headline_and_body_never_contradict(model, n, write):
    for seed in range(2):
        y = np.random.default_rng([seed, n]).normal(size=n)
        page, rows = write(model, np.zeros((n, 1)), y), np.zeros((n, 1))
        figures = localexpert.report_figures(model, rows, y, importance_rows=0)
        found = figures.calibration
        wrong = found.test.verdict != "right" or bool(found.faults)
        assert ("as it should be" in page.text) == (n >= 30 and not wrong)
        assert ("Nothing seen here speaks against it." in page.text) == (
            n > 1 and not found.faults
        )
        for fault in found.faults:
            assert page.text.count(f"forecasts are {' and '.join(found.faults)}") >= 2
            assert fault in page.text
        for one, other in (("narrow", "wide"), ("wide", "narrow")):
            if found.test.verdict == one:
                assert f"the intervals are too {one}." in page.text
                assert f"the intervals are too {other}." not in page.text


def test_the_same_seed_gives_the_same_page(houses, page, tmp_path):
    rows, y, path = houses.X.copy(), houses.y.copy(), tmp_path / "again.html"
    options = {"importance_rows": 60, **houses.train}
    assert report(houses.model, rows, y, path, **options) == path
    assert path.read_text(encoding="utf-8") == page.source
    pd.testing.assert_frame_equal(rows, houses.X)
    np.testing.assert_array_equal(y, houses.y)


@pytest.mark.parametrize("kind", ["discrete", "mixed", "constant"])
def test_targets_of_every_kind(kind, rng, write):
    rows = rng.normal(size=(240, 2))
    y = np.exp(rows[:, 0] + 0.3 * rng.normal(size=240))
    y = {
        "discrete": np.floor(np.minimum(y, 3.0)),
        "mixed": np.where(rows[:, 1] > 0.8, 0.0, y),
        "constant": np.ones(240),
    }[kind]
    said = pytest.warns(UserWarning, match="every forecast is that value")
    with said if kind == "constant" else nullcontext():
        model = fast().fit(rows[:160], y[:160])
    train = {"X_train": rows[:160], "y_train": y[:160]}
    page = write(model, rows[160:], y[160:], importance_rows=20, **train)
    dist = model.predict_dist(rows[160:])
    assert page.column(SCORES, "Model")["CRPS"] == localexpert.crps_score(y[160:], dist)


def test_a_model_of_the_users_without_training_rows(write):
    page = write()
    assert page.column(SCORES, "Climatology")["CRPS"] == DASH
    assert "none were given (y_train)" in page.text
    assert "Coin keeps no record of choices" in page.text
    # CRPS of probability 1/4 for 1: 1/16 where 0 came, 9/16 where 1 came.
    told = write(y_train=[0.0, 0.0, 0.0, 1.0]).column(SCORES, "Climatology")
    assert told["CRPS"] == pytest.approx(5.0 / 16.0)


def test_a_drawn_page_of_outcomes_known_in_part(tmp_path):
    life = np.random.default_rng(0).normal(size=60)
    y = np.column_stack([np.minimum(life, 0.7), np.where(life > 0.7, np.inf, life)])
    options = {"importance_rows": 0, "groups": {}, "var_levels": []}
    path = report(Wrong(), np.zeros((60, 1)), y, tmp_path / "r.html", **options)
    page = Page(path)
    assert page.text.startswith("Report on forecasts Wrong, 60 rows, ")
    assert page.of("img")[2]["alt"].startswith("Survival function")
    for image in page.of("img"):
        drawn = base64.b64decode(image["src"].partition("base64,")[2]).decode()
        assert "<svg" in drawn
        assert ("Kaplan-Meier" in drawn) == image["alt"].startswith("Survival")
    # Examples of outcomes that are not known have none drawn.
    for kind in ("Best", "Worst"):
        told = page.column("The examples, and their most important features", kind)
        assert "or more" not in told["Outcome"]


# What is wrong by itself is swept with all public functions.
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X_train": X}, "`y_train` must be given with `X_train`, got None"),
        ({"X_train": X, "y_train": Y[:3]}, "`y_train` must be as long as X_train"),
        (
            {"X_train": np.ones((20, 2)), "y_train": Y},
            "`X_train` must have the columns of `X`, 1, got 2",
        ),
        ({"groups": ["x7"]}, r"`groups` must name columns of `X`, \['x0'\], got 'x7'"),
        ({"groups": {"a": Y[:3]}}, r"`groups\['a'\]` must be as long as X"),
        ({"var_levels": [0.5, 1.0]}, r"`var_levels` must lie in \(0, 1\), got 1.0"),
        ({"row_names": ["a"]}, "`row_names` must be as long as X, got 1 and 20"),
        ({"pdf_friendly": 1}, "`pdf_friendly` must be True or False, got 1"),
        ({"model": localexpert.LocalExpertRegressor()}, "not fitted"),
    ],
)
def test_arguments(arguments, message, tmp_path):
    given = {"model": Coin(), "X": X, "y": Y, **arguments}
    with pytest.raises((ValueError, TypeError), match=message):
        report(path=tmp_path / "r.html", **given)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_forecasts_too_few_rows(tmp_path):
    short = SimpleNamespace(predict_dist=lambda X: Coin().predict_dist(X[:3]))
    with pytest.raises(TypeError, match=r"as many rows as `X`, 20, got .*n=3"):
        report(short, X, Y, tmp_path / "r.html")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("", "it is a directory"), ("none/r.html", "there is no directory")],
)
def test_a_path_is_checked_before_the_work(name, reason, tmp_path):
    with pytest.raises(OSError, match=f"`path` must name a file .*{reason}"):
        report(None, X, Y, tmp_path / name)


@pytest.mark.parametrize("place", ["report_figures", "Path.replace"])
def test_an_error_leaves_what_was_there(tmp_path, monkeypatch, place):
    path = tmp_path / "r.html"
    path.write_text("old", encoding="utf-8")

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pictures, "picture", lambda *_: "data:image/png;base64,")
    monkeypatch.setattr(f"localexpert.reporting.page.{place}", fail)
    with pytest.raises(OSError, match="No space left"):
        report(Coin(), X, Y, path, importance_rows=0)
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    assert path.read_text(encoding="utf-8") == "old"
