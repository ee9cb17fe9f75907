"""Figures of a report: of new rows alone, true, and verdicts that follow from tests."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest, chi2, norm
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import localexpert
from localexpert.data.training_rows import ColumnSummary
from localexpert.reporting import scores
from localexpert.reporting.evidence import measure_feature
from localexpert.reporting.groups import (
    Column,
    Grouping,
    count,
    show,
    show_feature,
    show_p,
    show_percent,
)
from tests.forecasts import Coin, normal
from tests.localexpert.reporting.conftest import Wrong
from tests.regressors import fast


def figures(model, X, y, **options):
    return localexpert.report_figures(model, X, y, **{"importance_rows": 0, **options})


def facts(found, what):
    """Return the kind and the facts of what was found, None if nothing was."""
    told = {one.what: (one.kind, one.facts) for one in found.findings}
    return told.get(what)


@pytest.fixture(scope="module")
def case():
    """A model, and rows of which it has seen the first 400."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(700, 3))
    y = X[:, 0] + 0.5 * rng.normal(size=700)
    return fast().fit(X[:400], y[:400]), X, y


def test_figures_are_of_the_new_rows(case):
    model, X, y = case
    groups = {"half": np.arange(700) // 350}
    found = figures(model, X, y, groups=groups, row_names=range(700))
    alone = figures(model, X[400:], y[400:])
    assert str(found.seen) == "The model has learned from 400 of the 700 rows."
    assert len(found) == 300
    assert found.labels[0] == "400"
    assert [group.label for group in found.groups] == ["1"]
    assert found.scores == alone.scores
    assert found.calibration.test == alone.calibration.test


class TestNumbers:
    def test_are_those_of_the_forecasts(self, case):
        model, X, y = case
        X, y = X[400:], y[400:]
        found = figures(model, X, y, var_levels=[0.9, 0.99])
        dist = model.predict_dist(X)
        covered = localexpert.interval_coverage(y, dist, coverage=0.9)
        assert found.calibration.test.share == pytest.approx(covered)
        assert found.check is model.check_
        for back, level in zip(found.back_tests, (0.9, 0.99), strict=True):
            assert back.passed == (y > dist.value_at_risk(level)).sum()
            assert back.chance == pytest.approx(1.0 - level, abs=1e-9)
        for group in found.groups:
            assert len(group.back_tests) == 2
        # Groups of one grouping hold all rows between them.
        name = found.groups[0].name
        sizes = [group.coverage.n for group in found.groups if group.name == name]
        assert sum(sizes) == 300

    @pytest.mark.parametrize("coverage", [0.4, 0.5, 0.8])
    def test_of_narrow_intervals_are_at_their_own_levels(self, coverage, rng):
        y = rng.normal(size=50)
        found = figures(Wrong(), np.ones((50, 1)), y, coverage=coverage)
        tail = 0.5 - 0.5 * coverage
        inner = [0.25, 0.5, 0.75] if coverage > 0.5 else [0.5]
        levels = np.array([tail, *inner, 1.0 - tail])
        miss = y[:, None] - norm.ppf(levels)
        loss = np.where(miss > 0.0, levels, levels - 1.0) * miss
        model = found.scores["Model"]
        assert model.quantile_loss == pytest.approx(loss.mean(), rel=1e-5)
        assert model.width == pytest.approx(-2.0 * norm.ppf(tail), rel=1e-5)

    def test_of_repeated_values_are_judged_by_shares_of_them(self):
        y = np.arange(300.0) % 2
        found = figures(Coin(), np.ones((300, 1)), y)
        # Of a fair coin P(Y > 1) is 0: none is promised to pass, and none did.
        (back,) = found.back_tests
        assert (back.passed, back.chance, back.kupiec) == (0, 0.0, 1.0)
        assert figures(Coin(), np.ones((300, 1)), y, var_levels=[]).back_tests == []
        # The 90 % interval is [0, 1], and takes .9 of either side.
        test = found.calibration.test
        assert (test.hits, test.inside) == (pytest.approx(270.0), 300)
        assert test.verdict == "right"


class TestKnownInPart:
    def test_known_ends_are_like_numbers(self):
        y = np.random.default_rng(0).normal(size=60)
        given = {"y_train": y[::2], "groups": {"third": np.arange(60) % 3}}
        X, ends = np.ones((60, 1)), np.column_stack([y, y])
        one, two = (figures(Wrong(), X, each, **given) for each in (y, ends))
        for name in ("Model", "Climatology"):
            held, want = two.scores[name], one.scores[name]
            for loss in ("crps", "log_score", "coverage", "width"):
                assert getattr(held, loss) == pytest.approx(getattr(want, loss))
            assert held.quantile_loss is held.rmse is held.mae is None
        assert two.gain_p == pytest.approx(one.gain_p)
        assert two.calibration.test == one.calibration.test
        assert_array_equal(two.pit, one.pit)
        covered = [[group.coverage for group in found.groups] for found in (one, two)]
        assert covered[0] == covered[1]
        assert two.examples == one.examples
        assert (two.back_tests, two.overall.promises) == ([], {})

    def test_what_is_not_known_is_between_bounds(self):
        inf = np.inf
        ends = [[0, 0], [-1, 1], [0, inf], [-inf, 0], [-3, 3], [2, inf], [-3, -2]]
        found = figures(Wrong(), np.ones((7, 1)), np.array(ends, dtype=float))
        test = found.calibration.test
        assert (test.inside, test.unsure) == (2, 3)
        assert test.literal == 2 / 7
        # The share of the levels beyond 0 that 90 % takes is .9, too.
        assert found.covered[:4] == pytest.approx([1.0, 1.0, 0.9, 0.9])
        assert found.scores["Model"].crps is found.importance is None

    def test_a_gain_is_tested_by_the_scores_that_there_are(self):
        y = np.random.default_rng(0).normal(size=200)
        right = np.column_stack([np.minimum(y, 0.5), np.where(y > 0.5, np.inf, y)])
        between = np.column_stack([np.floor(y), np.ceil(y)])
        for ends in (right, between):
            found = figures(Wrong(), np.ones((200, 1)), ends, y_train=y + 1.0)
            assert found.gain_p < 1e-4
        # Of what never occurred in training the log score is infinite: no test.
        coins = np.column_stack([y > 0.0, y > 0.0]) + [-0.5, 0.5]
        found = figures(Coin(), np.ones((200, 1)), coins, y_train=np.zeros(200))
        assert found.scores["Climatology"].log_score == np.inf
        assert found.gain_p is None

    def test_a_long_tail_is_told(self):
        y = np.linspace(-2.0, 2.0, 50)
        ends = np.column_stack([np.minimum(y, 0.0), np.where(y > 0.0, np.inf, y)])
        found = figures(Wrong(), np.ones((50, 1)), ends, y_train=y)
        kind, told = facts(found, "beyond")
        assert (kind, told["rows"], told["high"]) == ("note", 50, y[y <= 0.0].max())
        assert told["mean"] == pytest.approx(norm.sf(told["high"]))


class TestDrift:
    def test_is_seen_where_there_is_one(self, case):
        model, X, y = case
        found = figures(model, X[400:], y[400:])
        assert facts(found, "forecasts")[0] == "fine"
        assert facts(found, "features")[0] == "fine"
        assert facts(found, "target") is None
        # But that of the target given the features is.
        found = figures(model, X[400:], y[400:] + 1.0)
        kind, told = facts(found, "forecasts")
        assert kind == "warning"
        assert told["here"] > told["there"]
        assert told["pit"] < scores.SIGNIFICANT
        assert facts(found, "target")[0] == "note"

    def test_is_not_seen_where_weights_say_what_new_rows_are_like(self, rng):
        def draw(odd):
            X = odd + rng.uniform(size=400)
            return X[:, None], rng.normal(10.0 * odd, 1.0 + 2.0 * odd)

        odd = np.arange(400) % 2
        X, y = draw(odd)
        weight = 9.0 - 8.0 * odd
        model = fast().fit(X, y, sample_weight=weight)
        found = figures(model, *draw(rng.uniform(size=400) < 0.1))
        kind, told = facts(found, "forecasts")
        loss = model.oof_distribution_.crps(y)
        assert kind == "fine"
        assert told["there"] == pytest.approx(np.average(loss, weights=weight))
        assert facts(found, "features")[0] == "fine"
        assert facts(found, "target") is None

    @pytest.mark.parametrize("given", [True, False])
    def test_of_a_feature(self, given, case):
        model, X, y = case
        moved = X[400:] + np.array([0.0, 0.0, 1.0])
        train = {"X_train": X[:400], "y_train": y[:400]}
        found = figures(Coin() if given else model, moved, y[400:], **train)
        kind, told = facts(found, "features")
        assert kind == "warning"
        assert [name for *_, name in told["moved"]] == ["x2"]
        assert told["moved"][0][0] > 0.3
        assert facts(figures(Coin(), X, y), "features") == ("note", {"tests": 0})
        beyond = facts(figures(model, 9.0 + X[400:], y[400:]), "range")[1]["features"]
        assert beyond[0] == ("x0", 1.0)

    @pytest.mark.parametrize("law", ["smooth", "rounded", "gaps", "rare names"])
    def test_of_a_summary_is_not_seen_by_chance(self, law):
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

        for _ in range(60):
            kept = ColumnSummary.of(draw(5000), np.ones(5000), names and len(names))
            before = Column(kept.sample(), names)
            now = Column(kept.place(draw(60)), names)
            rejected += measure_feature(before, now)[1] < scores.SIGNIFICANT
        # At a level of .01 more have a probability below .0004.
        assert rejected <= 4

    def test_of_gaps(self, case):
        _, X, y = case
        train = {"X_train": X[:400], "y_train": y[:400]}
        gaps = X[400:].copy()
        gaps[::2, 1] = np.nan
        found = figures(Coin(), gaps, y[400:], **train)
        assert facts(found, "features")[1]["moved"][0][2] == "x1"
        assert facts(found, "missing") == ("note", {"features": [("x1", 0.5)]})
        gaps[:, 1] = np.nan
        assert facts(figures(Coin(), gaps, y[400:]), "missing")[0] == "warning"

    @pytest.mark.parametrize("given", [True, False])
    def test_of_names(self, given, houses):
        model = Coin() if given else houses.model
        one = houses.X.assign(**{"<b>town</b>": "Cc"})
        found = figures(model, one, houses.y, **houses.train)
        assert facts(found, "features")[1]["moved"][0][2] == "<b>town</b>"
        assert facts(found, "unseen") is None
        new = houses.X.assign(**{"<b>town</b>": "Elsewhere"})
        found = figures(model, new, houses.y, **houses.train)
        want = ("<b>town</b>", ["Elsewhere"], len(new))
        assert facts(found, "unseen")[1]["features"] == [want]


class TestLimits:
    def test_few_rows(self):
        def few(n):
            return facts(figures(Coin(), np.ones((n, 1)), np.ones(n)), "few")

        # 1.96 sqrt(.9 .1 / 20) = .131
        assert few(20) == ("warning", {"half": pytest.approx(0.1315, abs=1e-4)})
        assert few(100)[0] == "note"
        assert few(200) is None

    def test_outcomes_and_forecasts_beyond_training(self):
        train = {"y_train": np.linspace(0.0, 1.0, 99)}
        # Expected: 2 * 300 / 100; three standard errors above it are 13.35.
        for above, kind in ((13, "note"), (14, "warning")):
            y = np.where(np.arange(300) < above, 7.0, 0.5)
            found = figures(Coin(), np.ones((300, 1)), y, **train)
            told = {"below": 0, "above": above, "expected": pytest.approx(6.0)}
            assert facts(found, "outcomes") == (kind, told)
        train = {"y_train": np.linspace(-1.0, 0.5, 50)}
        found = figures(Coin(), np.ones((300, 1)), np.zeros(300), **train)
        told = facts(found, "beyond")[1]
        assert (told["rows"], told["mean"], told["most"]) == (300, 0.5, 0.5)

    def test_forecasts_below_zero_of_what_never_is(self):
        y = np.abs(np.random.default_rng(0).normal(size=50))
        X = np.zeros((50, 1))
        kind, told = facts(figures(Wrong(), X, y), "below zero")
        assert (kind, told["mass"]) == ("warning", pytest.approx(0.5))
        assert facts(figures(Wrong(), X, -y), "below zero") is None
        assert facts(figures(Wrong(), X, y, y_train=-y), "below zero") is None
        assert facts(figures(Coin(), X, y), "below zero") is None


GAPPY = [("a", object), ("a", "string"), ("a", "category"), (True, "boolean")]
GAPPY += [("2020-01-01", "datetime64[ns]")]


class TestGroupings:
    def test_few_numbers_are_groups_and_many_are_binned(self):
        few = Grouping.of("k", Column(np.array([2.0, 1.0, np.nan, 2.0]), None))
        assert few.labels == ["1", "2", "missing"]
        assert few.group.tolist() == [1, 0, 2, 1]
        many = Grouping.of("k", Column(np.arange(100.0), None))
        assert many.labels[0] == "0 to <20"
        assert many.labels[-1] == "80 to 99"
        assert np.bincount(many.group).tolist() == [20] * 5
        assert Grouping.of("k", Column(np.full(4, np.nan), None)).labels == ["missing"]

    def test_ends_of_bins_are_values_that_are_told_apart(self):
        years = Grouping.of("k", Column(np.arange(1980.0, 1996.0), None))
        assert years.labels[0] == "1980 to <1983"
        assert np.bincount(years.group)[0] == 3
        for n, want in ((30, "1.000000006e9 to <1.000000012e9"), (4, "1.000000001e9")):
            great = Grouping.of("k", Column(1e9 + np.arange(n), None))
            assert great.labels[1] == want
        ends = Column(np.append(np.arange(20.0), [np.inf] * 9), None)
        assert Grouping.of("k", ends).labels[-2:] == ["17 to <\u221e", "\u221e"]

    @pytest.mark.parametrize("place", [0, 30, 60])
    def test_a_number_that_fills_a_bin_is_a_group(self, place):
        values = np.insert(np.arange(60.0), place, np.full(40, place - 0.5))
        made = Grouping.of("k", Column(values, None))
        (own,) = (j for j, name in enumerate(made.labels) if " " not in name)
        assert_array_equal(made.group == own, values == place - 0.5)
        assert (np.bincount(made.group)[np.arange(len(made.labels)) != own] <= 20).all()
        assert len(made.labels) in (4, 5)

    @pytest.mark.parametrize("place", [0.0, 1e6])
    def test_widths_that_differ_by_rounding_are_no_groups(self, place, rng):
        X = place + rng.normal(size=(60, 1))
        model = SimpleNamespace(predict_dist=lambda X: normal(X[:, 0], 1.0))
        found = figures(model, X, X[:, 0])
        assert {group.name for group in found.groups} == {"x0"}

    @pytest.mark.parametrize(("value", "dtype"), GAPPY)
    def test_gaps_are_missing_whatever_they_look_like(self, value, dtype):
        values = pd.Series([value, None, np.nan, value], dtype=dtype)
        for given in (values, values.to_numpy(), values.tolist()):
            found = figures(Coin(), np.ones((4, 1)), np.ones(4), groups={"k": given})
            sizes = {group.label: group.coverage.n for group in found.groups}
            assert (len(sizes), sizes["missing"]) == (2, 2)

    def test_each_has_a_name_of_its_own(self, rng):
        names = ["width of the interval", "town", "town"]
        X = pd.DataFrame(rng.integers(3, size=(60, 3)), columns=names)
        model = SimpleNamespace(
            predict_dist=lambda X: normal(np.zeros(len(X)), 1.0 + X.iloc[:, 0])
        )
        found = figures(model, X, X.iloc[:, 0].to_numpy())
        want = [names[0], f"{names[0]} (2)", "town", "town (2)"]
        assert list(dict.fromkeys(group.name for group in found.groups)) == want
        assert {f"group {name}" for name in want} <= set(found.pictures)
        for groups in (["town"] * 2, {2024: X["town"], "2024": X["town"]}):
            with pytest.raises(ValueError, match=r"`groups` must have names that"):
                figures(model, X, X.iloc[:, 0], groups=groups)

    @pytest.mark.parametrize(
        "names",
        [[0, 1], ["a", None], [1, "1"], pd.MultiIndex.from_product([["a"], [1, 2]])],
    )
    def test_columns_may_be_called_by_anything(self, names, rng):
        X = pd.DataFrame(rng.integers(3, size=(60, 2)) * [1, 10], columns=names)
        for name, column in zip(X.columns, (0, 1), strict=True):
            found = figures(Wrong(), X, X.iloc[:, 0].to_numpy(), groups=[name])
            want = [str(value) for value in np.unique(X.iloc[:, column])]
            assert [group.label for group in found.groups] == want
            assert {group.name for group in found.groups} == {str(tuple(X)[column])}

    def test_rare_names_are_one_group(self):
        names = [f"n{j:02}" for j in range(14)]
        values = np.repeat(np.arange(14.0), [1, *[3] * 9, 1, 1, 1, 1])
        made = Grouping.of("k", Column(values, names))
        assert made.labels == [*names[1:10], "all others"]
        assert np.bincount(made.group).tolist() == [*[3] * 9, 5]


def test_wrappers_are_looked_into(rng):
    X = rng.normal(size=(160, 2))
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=160))
    inner = fast(frame=None).fit(X, y)
    piped = FrozenEstimator(make_pipeline(FunctionTransformer(), inner))
    found = figures(piped, X, y)
    assert_array_equal(found.training.y, scores.recall_training(inner).y)
    assert found.climatology is not None
    assert found.seen.share == 1.0
    # What the regressor inside was given are no targets.
    logs = TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp)
    found = figures(logs.fit(X, y), X, y)
    assert found.training is None
    assert found.dist.law.support[0] == 0.0


@pytest.mark.parametrize("kind", ["smooth", "discrete", "mixed"])
def test_climatology_is_the_targets_own_law_in_the_cells_of_the_model(kind, rng):
    X, weight = rng.normal(size=(400, 1)), rng.integers(3, size=400).astype(float)
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=400))
    y = np.floor(np.minimum(y, 3.0)) if kind == "discrete" else y
    y = np.where(X[:, 0] > 0.8, 0.0, y) if kind == "mixed" else y
    model = fast().fit(X, y, sample_weight=weight)
    climate = scores.climatology_of(model)
    held = np.repeat(y, weight.astype(int))
    losses = np.abs(held[:, None] - y).mean(axis=0)
    losses -= 0.5 * np.abs(held[:, None] - held).mean()
    exact = kind == "discrete"
    assert climate.crps(y).mean() == pytest.approx(losses.mean(), rel=1e-2)
    assert climate.law.is_discrete == exact
    if kind != "smooth":
        share, cell = (held == 0.0).mean(), 1.0
        if not exact:
            cell = model.forecaster_.oof_law_.widths[0]
        assert np.exp(climate.logpdf(0.0)) == pytest.approx(share / cell, rel=1e-2)


def test_coverage_is_tested_by_the_binomial_law():
    test = scores.CoverageTest(100, 78, 78.0, 0.9)
    assert test.p_value == binomtest(78, 100, 0.9).pvalue
    assert (test.share, test.verdict) == (0.78, "narrow")
    assert scores.CoverageTest(100, 99, 99.0, 0.9).verdict == "wide"
    assert scores.CoverageTest(100, 93, 93.0, 0.9).verdict == "right"
    # Literal, and corrected for jumps, by which it is judged.
    test = scores.CoverageTest(1000, 950, 899.75, 0.9)
    assert test.p_value == binomtest(900, 1000, 0.9).pvalue
    assert (test.literal, test.share, test.verdict) == (0.95, 0.89975, "right")


def calibration_of(pit, hits=0.9):
    n = len(pit)
    test = scores.CoverageTest(n, round(hits * n), hits * n, 0.9)
    return scores.Calibration(test, pit)


SHAPES = [
    (lambda u: u, []),
    (lambda u: u**1.5, ["too high"]),
    (lambda u: u**0.7, ["too low"]),
    (lambda u: 0.5 + 0.7 * (u - 0.5), ["too wide"]),
    (lambda u: 0.5 - 0.5 * np.cos(np.pi * u), ["too narrow"]),
]


@pytest.mark.parametrize(("shape", "words"), SHAPES)
def test_shapes_of_pit_values_have_names_and_normal_p_values(shape, words):
    found = calibration_of(shape((np.arange(2000) + 0.5) / 2000.0)).faults
    assert found[: len(words)] == words
    assert bool(found) == bool(words)
    u = shape((np.arange(200) + 0.5) / 200.0) + 0.01
    lean = (u.mean() - 0.5) / np.sqrt(1 / (12 * 200))
    spread = (((u - 0.5) ** 2).mean() - 1 / 12) / np.sqrt(1 / (180 * 200))
    told = [p for _, p in calibration_of(u).moments]
    assert_allclose(told, 2.0 * norm.sf(np.abs([lean, spread])), rtol=1e-9)


def test_true_forecasts_are_seldom_blamed_and_wrong_ones_are(rng):
    def share_blamed(change, n):
        verdicts = []
        for _ in range(100):
            u = change(rng.uniform(size=n))
            hits = ((u > 0.05) & (u < 0.95)).mean()
            found = calibration_of(u, hits)
            verdicts.append(found.test.verdict != "right" or bool(found.faults))
        return np.mean(verdicts)

    assert share_blamed(lambda u: u, 20) < 0.08
    assert share_blamed(lambda u: u, 300) < 0.08
    assert share_blamed(lambda u: u**1.5, 300) == 1.0
    assert share_blamed(lambda u: 0.5 + 0.6 * (u - 0.5), 300) == 1.0


def test_a_spread_that_denies_the_intervals_is_placed():
    # Nearly all values in the middle, and a tenth too many at the ends.
    middle = np.linspace(0.42, 0.58, 380)
    pit = np.concatenate([middle, np.full(40, 0.001), np.full(40, 0.999)])
    found = calibration_of(pit, 380 / 460)
    assert found.test.verdict == "narrow"
    assert found.faults == ["too wide around their medians"]


def likelihood_ratio(came, null, free):
    """Twice the gain of log-likelihood, summed over rows."""
    at, best = (np.where(came, p, 1.0 - p) for p in (null, free))
    return 2.0 * np.log(best / at).sum()


@pytest.mark.parametrize("share", [0.02, 0.05, 0.2])
def test_back_tests_equal_an_independent_computation(share, rng):
    passed = rng.uniform(size=400) < share
    passed[1:] |= passed[:-1] & (rng.uniform(size=399) < 0.3)
    found = scores.BackTest.of(passed, 0.95, 0.05)
    often = likelihood_ratio(passed, 0.05, passed.mean())
    before, now = passed[:-1], passed[1:]
    given = np.where(before, now[before].mean(), now[~before].mean())
    runs = likelihood_ratio(now, now.mean(), given)
    want = chi2.sf([often, runs, often + runs], [1, 1, 2])
    got = found.kupiec, found.independence, found.conditional
    assert_allclose(got, want, atol=1e-9)


def test_back_tests_of_nothing_and_of_all_have_an_answer():
    none, every = (
        scores.BackTest.of(np.full(100, one), 0.95, 0.05) for one in (False, True)
    )
    # (1 - .05)^100 against 1.
    assert none.kupiec == pytest.approx(chi2.sf(-200 * np.log(0.95), 1))
    assert (none.independence, every.independence) == (1.0, 1.0)
    assert every.kupiec < 1e-9
    assert scores.BackTest.of(np.array([True]), 0.95, 0.05).independence == 1.0
    certain = scores.BackTest.of(np.array([False, True]), 0.95, 0.0)
    assert certain.kupiec == 0.0


@pytest.mark.parametrize("sd", [1.0, 0.7, 1.4])
def test_losses_are_as_promised_or_not(sd, rng):
    found = figures(Wrong(spread=sd), np.ones((2000, 1)), rng.normal(size=2000))
    kept = found.overall.promises["crps"]
    assert kept.expected.mean == pytest.approx(sd / np.sqrt(np.pi), rel=1e-9)
    assert kept.realised == pytest.approx(found.scores["Model"].crps)
    inside = kept.expected.low <= kept.realised <= kept.expected.high
    assert inside == (kept.p_value >= 0.05) == (sd == 1.0)


def test_numbers_are_written_as_people_write_them():
    values = (0.0, -1234.5678, 0.00012345, 1e-7, 2.5e12, np.inf, np.nan, 100.0)
    assert [show(value) for value in values] == [
        *("0", "\u22121,235", "0.0001234", "1e-7".replace("-", "\u2212"), "2.5e12"),
        *("\u221e", "missing", "100"),
    ]
    assert [show_p(p) for p in (1e-9, 0.012345)] == ["p < 0.0001", "p = 0.012"]
    assert show_percent(-0.1234) == "\u221212.3\u00a0%"
    assert [count(n, "row") for n in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    # Years have no marks and long numbers do.
    shown = [show_feature(value) for value in (1987.0, 12345.0, -2000.0)]
    assert shown == ["1987", "12,345", "\u22122000"]
