"""BBQ against a plain rewrite, and on the data that its authors published."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.io import loadmat
from scipy.special import betaln, expit
from scipy.stats import beta
from sklearn.svm import SVC

from calibration import (
    BBQCalibrator,
    ScoreSummary,
    brier_score,
    expected_calibration_error,
    maximum_calibration_error,
)
from calibration.binning.bbq import select_by_elbow

SCORES = pytest.mark.parametrize("score", ["k2", "bdeu"])


class SlowBBQ:
    """Section 3.2.2 of the thesis, cell by cell."""

    def __init__(self, summary, score, scale="probability"):
        x, self.w0, self.w1 = summary.scores, summary.weight0, summary.weight1
        self.m, self.n = len(x), self.w0.sum() + self.w1.sum()
        self.edges = (x[1:] + x[:-1]) / 2
        inner = expit(self.edges) if scale == "logit" else self.edges
        self.rates = np.concatenate([[0], inner, [1]])
        self.fixed = {"k2": 0.5}.get(score)
        if score == "bdeu" and scale == "real":
            self.fixed = self.w1.sum() / self.n
        root = np.cbrt(self.n)
        most = max(1, min(int(np.ceil(self.n / 5)), int(np.ceil(10 * root))))
        binnings = {}
        for n_bins in range(max(1, int(root / 10)), most + 1):
            binnings.setdefault(self.starts(n_bins), n_bins)
        self.models, self.n_bins = list(binnings), list(binnings.values())
        logs = np.array([self.log_score(starts) for starts in self.models])
        self.relative = np.exp(logs - logs.max())

    def starts(self, n_bins):
        weight = self.w0 + self.w1
        centres = np.cumsum(weight) - weight / 2
        bins = np.minimum(centres // (self.n // n_bins), n_bins - 1)
        return (0, *(np.flatnonzero(np.diff(bins)) + 1).tolist())

    def laws(self, starts):
        for i, j in zip(starts, (*starts[1:], self.m), strict=True):
            p = self.fixed
            if p is None:
                p = np.clip((self.rates[i] + self.rates[j]) / 2, 0.005, 0.995)
            yield self.w1[i:j].sum(), self.w0[i:j].sum(), 2 * p, 2 - 2 * p

    def log_score(self, starts):
        laws = self.laws(starts)
        return sum(betaln(n1 + a, n0 + b) - betaln(a, b) for n1, n0, a, b in laws)

    def kept(self, elbow=0.001):
        order = np.argsort(-self.relative, kind="stable")
        ranked = self.relative[order]
        k = 1
        while k < len(ranked) and ranked[k - 1] == ranked[k]:
            k += 1
        variance = np.var(self.relative)
        while k < len(ranked) and ranked[k - 1] - ranked[k] > elbow * variance:
            k += 1
        return order[:k]

    def cell_laws(self, starts):
        laws = [(n1 + a, n0 + b) for n1, n0, a, b in self.laws(starts)]
        return np.repeat(laws, np.diff((*starts, self.m)), axis=0).T

    def moments(self):
        mean, square = np.zeros(self.m), np.zeros(self.m)
        kept = self.kept()
        for k in kept:
            share = self.relative[k] / self.relative[kept].sum()
            a, b = self.cell_laws(self.models[k])
            mean += share * a / (a + b)
            square += share * a * (a + 1) / ((a + b) * (a + b + 1))
        return mean, square - mean**2


def random_rows(rng, n, kind):
    x = rng.uniform(size=n)
    y = rng.uniform(size=n) < 0.1 + 0.8 * x**2
    y[:2] = [0, 1]
    if kind == "rows":
        return x, y, None
    if kind == "ties":
        return np.round(x, 1 if n < 200 else 2), y, None
    return x, y, rng.uniform(0.2, 3.0, n)


@SCORES
@pytest.mark.parametrize("kind", ["rows", "ties", "real"])
@pytest.mark.parametrize("n", [4, 11, 90, 700])
def test_equals_a_plain_rewrite(rng, score, kind, n):
    rows = random_rows(rng, n, kind)
    summary = ScoreSummary.from_scores(*rows)
    slow = SlowBBQ(summary, score)
    fitted = BBQCalibrator(score).fit(*rows)
    kept = slow.kept()
    assert fitted.n_bins_.tolist() == [slow.n_bins[k] for k in kept]
    shares = slow.relative[kept] / slow.relative[kept].sum()
    assert_allclose(fitted.weights_, shares, rtol=1e-9)
    mean, variance = slow.moments()
    assert_allclose(fitted.predict(summary.scores), mean, atol=1e-12)
    assert_allclose(fitted.variance_(summary.scores), variance, atol=1e-12)
    assert set(fitted.map_.knots[1:]) <= set(slow.edges)


class SlowBBQByCriterion(SlowBBQ):
    """Binnings weighed by the likelihood at the rates of their bins, and a charge."""

    criterion = "bic"

    def log_score(self, starts):
        rows = [(n1, n0) for n1, n0, *_ in self.laws(starts)]
        fit = sum(k * np.log(k / sum(one)) for one in rows for k in one if k > 0)
        bins, n = len(rows), self.n
        if self.criterion == "bic":
            return fit - bins * np.log(n) / 2
        return fit - bins - bins * (bins + 1) / (n - bins - 1)


@pytest.mark.parametrize("criterion", ["bic", "aicc"])
@pytest.mark.parametrize("kind", ["ties", "real"])
def test_criteria_weigh_as_a_plain_rewrite_does(rng, criterion, kind):
    rows = random_rows(rng, 400, kind)
    summary = ScoreSummary.from_scores(*rows)
    slow_class = type("Slow", (SlowBBQByCriterion,), {"criterion": criterion})
    slow = slow_class(summary, "bdeu")
    fitted = BBQCalibrator(criterion=criterion).fit(*rows)
    kept = slow.kept()
    shares = slow.relative[kept] / slow.relative[kept].sum()
    assert_allclose(fitted.weights_, shares, rtol=1e-9)
    mean, _ = slow.moments()
    assert_allclose(fitted.predict(summary.scores), mean, atol=1e-12)


def test_no_elbow_is_large_enough_for_two(rng):
    rows = random_rows(rng, 400, "rows")
    every = BBQCalibrator(elbow=0.0).fit(*rows)
    best = BBQCalibrator(elbow=np.inf).fit(*rows)
    assert len(every.n_bins_) > 1
    assert best.n_bins_.tolist() == [every.n_bins_[0]]
    assert len(best.map_) == best.n_bins_[0]
    tiny = BBQCalibrator(criterion="aicc").fit([0.2, 0.7], [0, 1])
    assert tiny.n_bins_.tolist() == [1]


@SCORES
@pytest.mark.parametrize("scale", ["logit", "real"])
def test_other_scales_change_the_prior_as_documented(rng, score, scale):
    x, y, _ = random_rows(rng, 300, "rows")
    x = 8 * x - 4
    summary = ScoreSummary.from_scores(x, y)
    slow = SlowBBQ(summary, score, scale)
    fitted = BBQCalibrator(score, scale=scale).fit(x, y)
    assert_allclose(fitted.predict(summary.scores), slow.moments()[0], atol=1e-12)


def test_elbow_rule_by_hand():
    """Least k with S_k - S_(k+1) <= alpha var(S), which is .1482 alpha here."""
    scores = np.array([0.1, 1.0, 0.12, 0.7])
    assert np.var(scores) == pytest.approx(0.1482)
    assert select_by_elbow(scores, 1.0).tolist() == [1, 3, 2]
    assert select_by_elbow(scores, 2.2).tolist() == [1]
    assert select_by_elbow(scores, 0.01).tolist() == [1, 3, 2, 0]
    assert select_by_elbow(np.array([1.0]), 0.001).tolist() == [0]


def test_ties_with_the_best_are_kept():
    assert select_by_elbow(np.ones(3), 0.001).tolist() == [0, 1, 2]
    assert select_by_elbow(np.array([1.0, 0.5, 1.0]), 0.001).tolist() == [0, 2, 1]
    assert select_by_elbow(np.array([1.0, 0.5, 1.0]), 9.0).tolist() == [0, 2]


def test_a_binning_counts_once():
    """Five scores: hundreds of numbers of bins, a handful of binnings."""
    scores = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 2000)
    y = np.arange(10_000) % 10 < 10 * scores
    fitted = BBQCalibrator(elbow=0.0).fit(scores, y)
    assert len(fitted.n_bins_) < 16
    assert len(fitted.map_) == 5
    assert_allclose(fitted.predict([0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=1e-3)


def test_range_of_numbers_of_bins():
    """From n^(1/3) / C to C n^(1/3), rounded outwards, and at most n / 5."""
    for n, spread, expected in [
        (1000, 10.0, (1, 100)),
        (1000, 2.0, (5, 20)),
        (27_000, 2.0, (15, 60)),
        (60, 10.0, (1, 12)),
        (3, 10.0, (1, 1)),
    ]:
        numbers = BBQCalibrator(spread=spread)._numbers(n)
        assert (numbers[0], numbers[-1]) == expected


def test_interval_is_that_of_the_beta_law_with_the_posterior_moments(rng):
    rows = random_rows(rng, 400, "rows")
    summary = ScoreSummary.from_scores(*rows)
    slow = SlowBBQ(summary, "bdeu")
    mean, variance = slow.moments()
    count = mean * (1 - mean) / variance - 1
    expected = beta(mean * count, (1 - mean) * count).interval(0.9)
    interval = BBQCalibrator().fit(*rows).predict_interval(summary.scores, 0.9)
    assert_allclose(interval, np.column_stack(expected), atol=1e-9)


def published_data():
    """Training and test rows of the authors' circular example, standardised."""
    folder = os.environ.get("LOCALEXPERT_DATA")
    if folder is None:
        pytest.skip("LOCALEXPERT_DATA does not name the folder with fixtures/")
    path = Path(folder) / "fixtures" / "circular_bbq.mat"
    if not path.is_file():
        pytest.skip(f"{path} does not exist")
    data = loadmat(path)
    train, test = data["XTR"], data["XTE"]
    center, spread = train.mean(axis=0), train.std(axis=0, ddof=1)
    rows = (train - center) / spread, (test - center) / spread
    return *rows, data["YTR"].ravel(), data["YTE"].ravel()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "raw", "published"),
    [
        ({"kernel": "linear"}, 0.5135, (0.3840, 0.1522, 0.0438)),
        (
            {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0},
            0.1263,
            (0.0716, 0.0491, 0.0090),
        ),
    ],
    ids=["linear", "quadratic"],
)
def test_published_rows_are_met(kernel, raw, published):
    """Rows of the program of BBQ's authors; refitting the SVM moves them a little."""
    x_train, x_test, y_train, y_test = published_data()
    svm = SVC(C=1.0, **kernel).fit(x_train, y_train)
    train, test = (expit(svm.decision_function(x)) for x in (x_train, x_test))
    assert np.sqrt(brier_score(y_test, test)) == pytest.approx(raw, abs=5e-4)
    p = BBQCalibrator().fit(train, y_train).predict(test)
    rmse, mce, ece = published
    assert np.sqrt(brier_score(y_test, p)) == pytest.approx(rmse, abs=0.004)
    assert maximum_calibration_error(y_test, p) <= mce + 0.004
    assert expected_calibration_error(y_test, p) <= ece + 0.004
