"""Words follow from tests, and tests see what is there and no more."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest, poisson

from localexpert import PredictiveDistribution
from localexpert.data.table_summary import ColumnSummary
from localexpert.reporting.columns import Column
from localexpert.reporting.drift import (
    find_drift,
    find_unseen,
    measure_feature,
    measure_features,
)
from localexpert.reporting.evidence import gather_evidence
from localexpert.reporting.findings import (
    SIGNIFICANT,
    CoverageTest,
    Finding,
    adjust_holm,
    render_findings,
    show_p,
)
from localexpert.reporting.groups import Grouping
from localexpert.reporting.judgement import Judgement
from localexpert.reporting.limits import find_limits
from localexpert.reporting.training import Training
from tests.forecasts import of_values


class TestCoverage:
    def test_is_the_binomial_test(self):
        test = CoverageTest(100, 78, 0.9)
        assert test.p_value == binomtest(78, 100, 0.9).pvalue
        assert (test.share, test.verdict) == (0.78, "narrow")
        assert CoverageTest(100, 99, 0.9).verdict == "wide"
        assert CoverageTest(100, 93, 0.9).verdict == "right"

    def test_says_what_it_found(self):
        told = CoverageTest(1000, 820, 0.9).sentence()
        assert told == (
            "82.0\xa0% of 1,000 outcomes fell inside the 90\xa0% intervals, fewer than "
            "should: the intervals are too narrow (binomial test, p < 0.0001)."
        )

    def test_values_that_repeat_count_by_their_share(self):
        test = CoverageTest(1000, 899.75, 0.9, 950)
        assert test.verdict == "right"
        assert test.p_value == binomtest(900, 1000, 0.9).pvalue
        assert "95.0\xa0% of 1,000 outcomes lay between the ends" in test.sentence()
        assert "counted by the share of a repeated value" in test.sentence()
        assert "repeat" not in CoverageTest(1000, 900.0, 0.9, 900).sentence()


def describe_pit(pit):
    right = CoverageTest(len(pit), round(0.9 * len(pit)), 0.9)
    return Judgement(right, np.sort(pit), 0).describe_pit()


class TestPit:
    @pytest.mark.parametrize(
        ("shape", "words"),
        [
            (lambda u: u, "neither"),
            (lambda u: u**1.5, "on the whole, too high ("),
            (lambda u: u**0.7, "on the whole, too low ("),
            (lambda u: 0.5 + 0.7 * (u - 0.5), "on the whole, too wide ("),
            (lambda u: 0.5 - 0.5 * np.cos(np.pi * u), "on the whole, too narrow ("),
        ],
    )
    def test_shapes_have_their_names(self, shape, words):
        even = (np.arange(2000) + 0.5) / 2000.0
        assert words in describe_pit(shape(even))

    def test_true_forecasts_are_seldom_blamed(self, rng):
        blamed = [
            "neither" not in describe_pit(rng.uniform(size=80)) for _ in range(400)
        ]
        assert np.mean(blamed) < 0.05  # two tests of level .01


def test_holm_is_as_by_hand():
    # Sorted .01, .02, .03 times 3, 2, 1, never less than one before.
    np.testing.assert_allclose(adjust_holm([0.02, 0.01, 0.03]), [0.04, 0.03, 0.04])
    np.testing.assert_allclose(adjust_holm([0.9, 0.8]), [1.0, 1.0])
    assert len(adjust_holm([])) == 0


def test_findings_are_ranked_and_escaped():
    made = render_findings([Finding("fine", "a"), Finding("warning", "<b>")])
    assert made.index("Warning:</b> &lt;b&gt;") < made.index("Fine:</b> a")


def test_p_values_have_few_digits():
    assert [show_p(p) for p in (1e-9, 0.012345, 0.5)] == [
        "p < 0.0001",
        "p = 0.012",
        "p = 0.5",
    ]


class Coin:
    def predict_dist(self, X):
        return of_values([0.0, 1.0], np.tile([0.5, 0.5], (len(X), 1)))


def gather(model, X, y, **options):
    given = {"X_train": None, "y_train": None, "coverage": 0.9, "random_state": 0}
    return gather_evidence(model, X, y, **{**given, **options})


def words(findings, kind="warning"):
    return " ".join(finding.text for finding in findings if finding.kind == kind)


@pytest.fixture(scope="module")
def case(fast):
    """A model, and rows of which it has seen the first 400."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(700, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=700)
    return fast().fit(X[:400], y[:400]), X, y


class TestDrift:
    def test_is_not_seen_where_there_is_none(self, case):
        model, X, y = case
        train = {"X_train": X[:400], "y_train": y[:400]}
        found = find_drift(gather(model, X[400:], y[400:], **train))
        assert [finding.kind for finding in found] == ["fine", "fine"]

    def test_of_the_target_given_the_features(self, case):
        model, X, y = case
        found = find_drift(gather(model, X[400:], y[400:] + 1.0))
        told = words(found)
        assert "Outcomes fall elsewhere in their forecasts" in told
        assert "Forecasts are worse here" in told
        assert "target is distributed otherwise" in words(found, "note")

    def test_of_a_feature(self, case):
        model, X, y = case
        moved = X[400:] + np.array([0.0, 0.0, 1.0])
        train = {"X_train": X[:400], "y_train": y[:400]}
        evidence = gather(model, moved, y[400:], **train)
        told = words(find_drift(evidence))
        assert "otherwise than in training: x2 (distance" in told
        assert "x0 (" not in told
        assert measure_features(evidence)[2].distance > 0.3

    def test_of_features_needs_no_training_rows(self, case):
        model, X, y = case
        found = find_drift(gather(model, X[400:], y[400:]))
        assert "No feature is distributed notably otherwise" in words(found, "fine")
        moved = X[400:] + np.array([0.0, 0.0, 1.0])
        evidence = gather(model, moved, y[400:])
        told = words(find_drift(evidence))
        assert "x2 (distance" in told
        assert "x0 (" not in told
        train = {"X_train": X[:400], "y_train": y[:400]}
        given = measure_features(gather(model, moved, y[400:], **train))
        for one, other in zip(measure_features(evidence), given, strict=True):
            assert one.missing == other.missing
            assert other.distance - 1 / 32 <= one.distance <= other.distance
        told = words(find_limits(gather(model, 9.0 + X[400:], y[400:])))
        assert "Features beyond their range in training: x0 (100 % of rows)" in told

    def test_of_names_needs_no_training_rows(self, houses):
        X = houses.X.assign(**{"<b>town</b>": "Cc"})
        train = {"X_train": houses.X_train, "y_train": houses.y_train}
        given = measure_features(gather(houses.model, X, houses.y, **train))
        recalled = measure_features(gather(houses.model, X, houses.y))
        assert recalled[2] == given[2]

    def test_of_features_is_not_told_of_models_that_keep_nothing(self, case):
        _, X, y = case
        told = words(find_drift(gather(Coin(), X, y)), "note")
        assert "and the model keeps no summary of them" in told

    @pytest.mark.parametrize(
        ("m", "n"),
        [(5_000, 60), pytest.param(100_000, 100_000, marks=pytest.mark.slow)],
    )
    @pytest.mark.parametrize("law", ["smooth", "rounded", "gaps", "rare names"])
    def test_of_a_summary_is_not_seen_by_chance(self, law, m, n):
        rng, rejected = np.random.default_rng(0), 0
        weight = 1.0 / np.arange(1, 301)
        names = [str(k) for k in range(300)] if law == "rare names" else None

        def draw(n):
            if names is not None:
                return rng.choice(300, n, p=weight / weight.sum()).astype(float)
            values = rng.normal(size=n)
            if law == "gaps":
                values[rng.uniform(size=n) < 1e-3] = np.nan
            return values.round(1) if law == "rounded" else values

        for _ in range(times := 60):
            kept = ColumnSummary.of(draw(m), names and len(names))
            before = Column(kept.sample(), names)
            now = Column(kept.place(draw(n)), names)
            rejected += measure_feature("x", before, now).p_value < SIGNIFICANT
        # At a level of .01 more have a probability below .0004.
        assert rejected <= 4, f"{rejected} of {times}"

    def test_draws_the_samples_apart(self):
        # One and the same outcome everywhere: a PIT value is its draw.
        y = np.zeros(300)
        oof = of_values([0.0], np.ones((300, 1)))
        evidence = gather(Coin(), np.zeros((300, 1)), y)
        training = Training(y, np.ones(300), oof)
        found = find_drift(replace(evidence, dist=oof, training=training))
        assert "PIT values, p = 1)" not in words(found, "fine")
        assert "PIT values, p = " in words(found, "fine")

    def test_of_gaps(self, case):
        _, X, y = case
        train = {"X_train": X[:400], "y_train": y[:400]}
        gaps = X[400:].copy()
        gaps[::2, 1] = np.nan
        evidence = gather(Coin(), gaps, y[400:], **train)
        assert measure_features(evidence)[1].missing == (0.0, 0.5)
        assert "x1 (distance 0.5," in words(find_drift(evidence))
        assert "Values are missing in x1 (50 %)." in words(
            find_limits(evidence), "note"
        )
        gaps[:, 1] = np.nan
        told = words(find_limits(gather(Coin(), gaps, y[400:])))
        assert "Nothing at all is known of x1." in told

    def test_of_names(self, houses):
        train = {"X_train": houses.X_train, "y_train": houses.y_train}
        X = houses.X.assign(**{"<b>town</b>": "Cc"})
        told = words(find_drift(gather(houses.model, X, houses.y, **train)))
        assert "<b>town</b> (distance" in told
        assert find_unseen(gather(houses.model, X, houses.y, **train)) == []

    @pytest.mark.parametrize("given", [True, False])
    def test_of_names_unseen(self, given, houses):
        X = houses.X.assign(**{"<b>town</b>": "Elsewhere"})
        train = {"X_train": houses.X_train, "y_train": houses.y_train} if given else {}
        told = words(find_unseen(gather(houses.model, X, houses.y, **train)))
        assert f"<b>town</b>: 'Elsewhere' ({len(X)} rows)" in told


class TestLimits:
    def test_few_rows(self):
        found = find_limits(gather(Coin(), np.ones((20, 1)), np.ones(20)))
        # 1.96 sqrt(.9 .1 / 20) = .131
        assert "only 20 rows" in words(found)
        assert "miss by 13 points or less" in words(found)
        found = find_limits(gather(Coin(), np.ones((100, 1)), np.ones(100)))
        assert "only 100 rows" in words(found, "note")
        assert find_limits(gather(Coin(), np.ones((200, 1)), np.ones(200))) == []

    def test_outcomes_beyond_training(self):
        y = np.concatenate([np.linspace(0.0, 1.0, 280), np.full(20, 7.0)])
        found = find_limits(
            gather(Coin(), np.ones((300, 1)), y, y_train=np.linspace(0.0, 1.0, 99))
        )
        told = words(found)
        assert "20 of 300 outcomes lie beyond the 99 of training" in told
        assert "20 above 1" in told
        assert "about 6 would" in told  # 2 * 300 / 100

    def test_forecasts_beyond_training(self):
        rows = np.ones((300, 1))
        y = np.zeros(300)
        found = find_limits(gather(Coin(), rows, y, y_train=np.linspace(-1, 0.5, 50)))
        told = words(found, "note")
        assert "300 of 300 forecasts give more than 5 % to values beyond" in told
        assert "on average 50 %, at most 50 %" in told

    def test_features_beyond_training(self, rng):
        X_train, X = rng.uniform(size=(300, 2)), rng.uniform(0.2, 0.8, size=(300, 2))
        X[:30, 1] = 2.0
        train = {"X_train": X_train, "y_train": np.zeros(300)}
        told = words(find_limits(gather(Coin(), X, np.zeros(300), **train)))
        assert "range in training: x1 (10 % of rows)." in told
        assert "x0" not in told


class TestGroupings:
    def test_few_numbers_are_groups_and_many_are_binned(self):
        few = Grouping.of("k", Column(np.array([2.0, 1.0, np.nan, 2.0]), None))
        assert few.labels == ["1", "2", "missing"]
        assert few.group.tolist() == [1, 0, 2, 1]
        many = Grouping.of("k", Column(np.arange(100.0), None))
        assert many.labels[0] == "0 to <19.8"
        assert many.labels[-1] == "79.2 to 99"
        assert np.bincount(many.group).tolist() == [20] * 5

    def test_rare_names_are_one_group(self):
        names = [f"n{j:02}" for j in range(14)]
        values = np.repeat(np.arange(14.0), [1, *[3] * 9, 1, 1, 1, 1])
        made = Grouping.of("k", Column(values, names))
        assert made.labels == [*names[1:10], "all others"]
        assert np.bincount(made.group).tolist() == [*[3] * 9, 5]

    def test_nothing_but_gaps(self):
        made = Grouping.of("k", Column(np.full(4, np.nan), None))
        assert made.labels == ["missing"]


def test_intervals_of_repeated_values_are_judged_by_shares_of_them():
    # Of a fair coin the 90 % interval is [0, 1], which takes .9 of either side.
    evidence = gather(Coin(), np.ones((300, 1)), np.arange(300.0) % 2)
    test = evidence.test_coverage()
    assert (test.hits, test.coverage) == (pytest.approx(270.0), 0.9)
    assert test.verdict == "right"
    few = evidence.test_coverage(np.arange(300) < 7)
    assert (few.n, few.hits) == (7, pytest.approx(6.3))
    assert evidence.scores.coverage == pytest.approx(0.9)


def test_true_counts_are_seldom_blamed_and_wrong_ones_are(rng):
    class Counts:
        def __init__(self, mean):
            self.mean = mean

        def predict_dist(self, X):
            return PredictiveDistribution.from_scipy(poisson(self.mean), len(X))

    X = np.ones((400, 1))
    verdicts = {mean: [] for mean in (1.2, 0.5)}
    for _ in range(40):
        y = rng.poisson(1.2, size=400).astype(float)
        for mean, told in verdicts.items():
            told.append(gather(Counts(mean), X, y).test_coverage().verdict)
    assert verdicts[1.2].count("right") >= 39
    assert verdicts[0.5].count("narrow") == 40
