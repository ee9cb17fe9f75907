"""Headline and body of a report speak with one voice."""

import html
import re
from dataclasses import dataclass

import numpy as np
import pytest

from localexpert.reporting import calibration
from localexpert.reporting.calibration import write_calibration
from localexpert.reporting.evidence import gather_evidence
from localexpert.reporting.findings import CoverageTest
from localexpert.reporting.judgement import Judgement, judge
from localexpert.reporting.limits import find_limits
from localexpert.reporting.markup import element
from localexpert.reporting.subject import read_subject
from localexpert.reporting.summary import write_summary
from tests.forecasts import normal, of_values

NAMES = ("title", "target_name", "unit", "source", "date", "row_names")


@dataclass
class Normal:
    """Forecasts N(bias, spread^2) of what is N(0, 1), as a smooth law."""

    bias: float = 0.0
    spread: float = 1.0

    def predict_dist(self, X):
        return normal(np.full(len(X), self.bias), self.spread)


@dataclass
class Count:
    """Forecasts of counts with probabilities for 0, 1 and 2."""

    p: tuple

    def predict_dist(self, X):
        return of_values([0.0, 1.0, 2.0], np.tile(self.p, (len(X), 1)))


def smooth(rng, n):
    return rng.normal(size=n)


def counts(rng, n):
    return rng.choice(3, n, p=[0.5, 0.3, 0.2]).astype(float)


CASES = {
    "right": (Normal(), smooth),
    "narrow": (Normal(spread=0.6), smooth),
    "wide": (Normal(spread=1.8), smooth),
    "high": (Normal(bias=0.5), smooth),
    "low and narrow": (Normal(bias=-0.5, spread=0.7), smooth),
    "wide, with outliers": (
        Normal(spread=1.2),
        lambda rng, n: np.where(rng.uniform(size=n) < 0.25, 5.0, 0.3) * smooth(rng, n),
    ),
    "right counts": (Count((0.5, 0.3, 0.2)), counts),
    "wrong counts": (Count((0.2, 0.3, 0.5)), counts),
    "constant": (Count((1.0, 0.0, 0.0)), lambda _, n: np.zeros(n)),
    "beside a constant": (Count((1.0, 0.0, 0.0)), lambda _, n: np.ones(n)),
}


def texts(model, y, monkeypatch):
    """The headline and the section on calibration as texts, and what was judged."""
    monkeypatch.setattr(calibration, "picture", lambda *parts: element("p", parts[-1]))
    X = np.zeros((len(y), 1))
    given = {"X_train": None, "y_train": None, "coverage": 0.9, "random_state": 0}
    evidence = gather_evidence(model, X, y, **given)
    subject = read_subject(y, len(y), **dict.fromkeys(NAMES))
    found = judge(evidence)
    head = write_summary(evidence, subject, found, None)
    body = write_calibration(evidence, subject, found)
    limits = " ".join(one.text for one in find_limits(evidence))
    plain = (html.unescape(re.sub("<[^>]*>", " ", part)) for part in (head, body))
    return *plain, limits, found


@pytest.mark.parametrize("n", [1, 2, 12, 60, 400])
@pytest.mark.parametrize("case", CASES)
def test_headline_and_body_never_contradict(case, n, monkeypatch):
    model, draw = CASES[case]
    for seed in range(2):
        y = draw(np.random.default_rng([seed, n]), n)
        head, body, limits, found = texts(model, y, monkeypatch)
        shown = f"{head}\n{body}"
        rejects = re.search(
            "Here forecasts are, on the whole|than should: the intervals are too|"
            "chance does not explain",
            body,
        ) or (n > 1 and found.flat_p < 0.01)
        assert ("as it should be" in head) == (n >= 30 and not rejects)
        if rejects:
            assert re.search("too (narrow|wide)|but see below", head)
            assert re.search("the intervals are too|As a whole, forecasts are", head)
        for one, other in (("too narrow", "too wide"), ("too wide", "too narrow")):
            if f"the intervals are {one}" in shown:
                bare = (
                    shown.split("is flat if", 1)[0]
                    + shown.rsplit("right forecasts", 1)[-1]
                )
                assert not re.search(f"{other} (?!around their medians)", bare)
        for word in found.leanings:
            assert word in head
            assert word in body
        if n == 1:
            assert "one row tells nothing" in head
            assert not re.search(r"binomial|Kolmogorov|p [=<]|as it should", shown)
        if n < 30:
            assert (n == 1) != (f"Tests of only {n} rows see gross faults only" in head)
        assert not re.search(r"\b1 (rows|outcomes|points)\b", shown + limits)


def test_what_is_right_is_seldom_blamed_and_what_is_wrong_is_seen():
    def share_blamed(change, n):
        blamed = 0
        for seed in range(60):
            u = np.sort(change(np.random.default_rng(seed).uniform(size=n)))
            hits = int(((u > 0.05) & (u < 0.95)).sum())
            verdict = Judgement(CoverageTest(n, hits, 0.9), u, 0).verdict
            blamed += verdict not in ("as it should be", "too few rows to tell")
        return blamed / 60

    assert share_blamed(lambda u: u, 20) < 0.08
    assert share_blamed(lambda u: u, 300) < 0.08
    assert share_blamed(lambda u: u**1.5, 300) == 1.0
    assert share_blamed(lambda u: 0.5 + 0.6 * (u - 0.5), 300) == 1.0


def test_points_outside_of_the_band_are_counted_as_by_hand():
    pit = np.sort(np.concatenate([np.full(30, 0.32), np.linspace(0.01, 0.99, 30)]))
    found = Judgement(CoverageTest(60, 58, 0.9), pit, 0)
    assert found.shares[5] == (pit <= 0.3).mean()
    # Levels from .35 to .6 or so have half of the outcomes too many below them.
    assert found.points_out >= 8
    assert found.points_p < 0.01
    assert "chance does not explain" in found.describe_quantiles()
    assert found.verdict == "right in number, but see below"
    assert found.faults


def test_a_spread_that_denies_the_intervals_is_placed():
    # Nearly all values in the middle, and a tenth too many at the ends.
    middle = np.linspace(0.42, 0.58, 380)
    pit = np.sort(np.concatenate([middle, np.full(40, 0.001), np.full(40, 0.999)]))
    found = Judgement(CoverageTest(460, 380, 0.9), pit, 0)
    assert found.verdict == "too narrow"
    assert "too wide around their medians" in " ".join(found.sentences())


class TestBelowZero:
    def test_is_said_with_the_cure(self):
        y = np.abs(np.random.default_rng(0).normal(size=50))
        told = self.find(Normal(), y)
        assert "Forecasts give 50.00\xa0% to values below 0 on average" in told
        assert "bounds=(0, np.inf)" in told
        assert "--bounds 0 inf" in told

    def test_is_not_said_where_targets_were_there_or_forecasts_are_not(self):
        y = np.abs(np.random.default_rng(0).normal(size=50))
        assert "below 0 on average" not in self.find(Normal(), -y)
        assert "below 0 on average" not in self.find(Normal(), y, y_train=-y)
        assert "below 0 on average" not in self.find(Count((0.5, 0.3, 0.2)), y)

    def find(self, model, y, y_train=None):
        X = np.zeros((len(y), 1))
        given = {"X_train": None, "coverage": 0.9, "random_state": 0}
        evidence = gather_evidence(model, X, y, y_train=y_train, **given)
        return " ".join(one.text for one in find_limits(evidence))
