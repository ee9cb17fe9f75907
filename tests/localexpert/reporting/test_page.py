"""The page as a whole: sound HTML, nothing from outside, numbers that are true."""

import base64
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import binomtest

from localexpert import (
    crps_score,
    interval_coverage,
    log_score,
    pinball_loss,
)
from localexpert.risk import value_at_risk

SCORES = "Means over the rows; less is better"
DASH = "\u2013"
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


class TestForm:
    def test_is_a_page_for_phones_and_readers_aloud(self, page):
        assert page.source.startswith('<!DOCTYPE html>\n<html lang="en">')
        assert {"charset": "utf-8"} in page.of("meta")
        named = {meta.get("name"): meta.get("content") for meta in page.of("meta")}
        assert named["viewport"] == "width=device-width, initial-scale=1"
        assert len(page.of("h1")) == 1
        assert all(
            head["scope"] in ("col", "row", "rowgroup") for head in page.of("th")
        )
        assert len(page.of("caption")) == len(page.of("table")) == 7

    def test_every_picture_says_what_it_shows(self, page):
        assert len(page.of("img")) == len(page.of("figure")) > 10
        assert all(len(image["alt"]) > 20 for image in page.of("img"))

    def test_asks_nothing_of_the_network(self, page):
        assert not page.of("script") + page.of("link") + page.of("iframe")
        addresses = [
            value
            for _, attributes in page.tags
            for name, value in attributes.items()
            if name in ("src", "href", "srcset", "style", "data", "action")
        ]
        pictures = [a for a in addresses if not a.startswith("#")]
        assert len(pictures) == len(page.of("img"))
        assert all(a.startswith("data:image/svg+xml;base64,") for a in pictures)
        assert not re.search(r"@import|url\(", page.source)

    def test_pictures_are_sound_and_draw_nothing_from_outside(self, page):
        for image in page.of("img"):
            root = ElementTree.fromstring(base64.b64decode(image["src"].split(",")[1]))
            assert root.tag.endswith("svg")
            links = [v for e in root.iter() for k, v in e.items() if "href" in k]
            assert all(link.startswith(("#", "data:")) for link in links)

    def test_names_are_text_and_never_html(self, page):
        assert not [tag for tag, _ in page.tags if tag in ("script", "b>town")]
        assert "<b>town</b>" in page.text
        assert "<script>alert(1)</script>" in page.text

    def test_contents_lead_to_every_section(self, page):
        links = [link["href"] for link in page.of("a")]
        anchors = [f"#{one['id']}" for one in page.of("section")]
        assert links == anchors
        assert len(set(anchors)) == len(anchors) == 10

    def test_nothing_is_open_that_is_long(self, page):
        assert page.of("details") == [{}]

    def test_is_small(self, page):
        assert len(page.source.encode()) < 1_000_000


@pytest.mark.filterwarnings("ignore:`X` holds categories not met in `fit`")
class TestNumbers:
    def test_scores_are_those_of_the_metrics(self, page, houses):
        dist, y = houses.model.predict_dist(houses.X), houses.y
        told = page.column(SCORES, "Model")
        assert told["CRPS"] == crps_score(y, dist)
        assert told["Log score"] == log_score(y, dist)
        losses = [pinball_loss(y, dist, level=level) for level in LEVELS]
        assert told["Quantile loss"] == pytest.approx(np.mean(losses))
        error = y - dist.mean()
        assert told["RMSE of the mean"] == pytest.approx(math.sqrt(np.mean(error**2)))
        assert told["MAE of the median"] == pytest.approx(
            np.mean(np.abs(y - dist.median()))
        )
        assert told["Coverage of 90 %"] == interval_coverage(y, dist, coverage=0.9)
        low, high = dist.interval(0.9).T
        assert told["Width of 90 %"] == pytest.approx(np.mean(high - low))

    def test_expected_losses_stand_beside_those_that_came(self, page, houses):
        dist, y = houses.model.predict_dist(houses.X), houses.y
        caption = "Losses as expected and as realised"
        expected = page.column(caption, "Expected")
        realised = page.column(caption, "Realised")
        assert expected["All, CRPS"] == pytest.approx(dist.expected_crps().mean())
        assert realised["All, CRPS"] == pytest.approx(crps_score(y, dist))
        name = "All, Absolute error of the median"
        assert expected[name] == pytest.approx(dist.expected_abs_error().mean())
        assert realised[name] == pytest.approx(np.mean(np.abs(y - dist.median())))
        assert len(page.tables[caption]) > 8

    def test_climatology_is_the_training_targets_own_distribution(self, page, houses):
        # Of a sample, the CRPS is E|Y - y| - E|Y - Y'| / 2; the smooth law is near it.
        y, old = houses.y, houses.y_train
        sample = np.abs(old[:, None] - y).mean(axis=0)
        sample -= 0.5 * np.abs(old[:, None] - old).mean()
        told = page.column(SCORES, "Climatology")
        assert told["CRPS"] == pytest.approx(sample.mean(), rel=0.01)
        assert told["MAE of the median"] == pytest.approx(
            np.mean(np.abs(y - np.median(old))), rel=0.02
        )

    def test_skill_is_the_share_saved(self, page):
        heads, *rows = page.tables[SCORES]
        assert heads == ["", "Model", "Climatology", "Skill", "Boosting", "Skill"]
        scores = {row[0]: row[1:] for row in rows}
        for name in ("CRPS", "Quantile loss", "RMSE of the mean"):
            ours, theirs, skill = scores[name][:3]
            assert skill == pytest.approx(1.0 - ours / theirs)
        ours, theirs, skill = scores["Log score"][:3]
        assert skill == pytest.approx(theirs - ours)
        ours, _, _, boosting, skill = scores["Quantile loss"]
        assert skill == pytest.approx(1.0 - ours / boosting)
        assert scores["CRPS"][3:] == [DASH, DASH]

    def test_coverage_of_groups_is_counted(self, page, houses):
        low, high = houses.model.predict_interval(houses.X).T
        inside = (low <= houses.y) & (houses.y <= high)
        told = page.column("Coverage by group", "Covered")
        rows = page.column("Coverage by group", "Rows")
        for town in ("Cc", "Aa & Bb"):
            chosen = (houses.X["<b>town</b>"] == town).to_numpy()
            assert told[town] == pytest.approx(inside[chosen].mean())
            assert rows[town] == str(chosen.sum())

    def test_risks_are_those_of_the_forecasts(self, page, houses):
        told = page.column("Risk by the forecasts", "VaR 95%")
        assert len(told) == 5
        dist = houses.model.predict_dist(houses.X)
        for label, value in told.items():
            (row,) = np.flatnonzero(houses.X.index == int(label))
            assert value == pytest.approx(value_at_risk(dist[row], 0.95)[0])

    def test_the_verdict_is_that_of_the_test(self, page, houses):
        low, high = houses.model.predict_interval(houses.X).T
        hits = int(((low <= houses.y) & (houses.y <= high)).sum())
        p = binomtest(hits, len(houses.y), 0.9).pvalue
        assert p < 0.01
        assert hits > 0.9 * len(houses.y)
        assert "than should: the intervals are too wide (binomial test," in page.text


class TestWarnings:
    def test_of_a_town_that_training_has_not_met(self, page):
        assert "<b>town</b>: 'Neu' (1 row)" in page.text

    def test_of_gaps(self, page):
        assert "Values are missing in noise (" in page.text
