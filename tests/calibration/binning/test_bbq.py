"""BBQ against a plain rewrite, and on the data that its authors published."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.io import loadmat
from scipy.special import betaln, expit
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


class Binnings:
    """Some binnings of cells, by the formulas, cell by cell."""

    def __init__(self, summary, score, scale="probability"):
        self.x, self.w0, self.w1 = summary.scores, summary.weight0, summary.weight1
        self.m, self.n = len(self.x), summary.n
        self.edges = (self.x[1:] + self.x[:-1]) / 2
        inner = expit(self.edges) if scale == "logit" else self.edges
        self.rates = np.concatenate([[0], inner, [1]])
        self.fixed = self.w1.sum() / self.n if scale == "real" else None
        self.fixed = 0.5 if score == "k2" else self.fixed

    def laws(self, starts):
        """Weights of both classes in every bin, and its prior."""
        for i, j in zip(starts, (*starts[1:], self.m), strict=True):
            p = self.fixed
            if p is None:
                p = np.clip((self.rates[i] + self.rates[j]) / 2, 0.005, 0.995)
            yield self.w1[i:j].sum(), self.w0[i:j].sum(), 2 * p, 2 - 2 * p

    def log_evidence(self, starts):
        laws = self.laws(starts)
        return sum(betaln(n1 + a, n0 + b) - betaln(a, b) for n1, n0, a, b in laws)

    def cell_laws(self, starts):
        """Shape parameters of the posterior in every cell."""
        laws = [(n1 + a, n0 + b) for n1, n0, a, b in self.laws(starts)]
        return np.repeat(laws, np.diff((*starts, self.m)), axis=0).T

    def moments(self):
        """Mean and variance of the event rate in every cell."""
        mean, square = np.zeros(self.m), np.zeros(self.m)
        for share, starts in zip(self.shares, self.models, strict=True):
            a, b = self.cell_laws(starts)
            mean += share * a / (a + b)
            square += share * a * (a + 1) / ((a + b) * (a + b + 1))
        return mean, square - mean**2


class SlowBBQ(Binnings):
    """Section 3.2.2 of the thesis."""

    def __init__(
        self, summary, score, scale="probability", criterion="evidence", spread=10
    ):
        super().__init__(summary, score, scale)
        root = np.cbrt(self.n)
        most = max(1, min(int(np.ceil(self.n / 5)), int(np.ceil(spread * root))))
        binnings = {}
        for n_bins in range(max(1, int(root / spread)), most + 1):
            binnings.setdefault(self.starts(n_bins), n_bins)
        logs = np.array([self.log_score(starts, criterion) for starts in binnings])
        relative = np.exp(logs - logs.max())
        kept = keep(relative)
        self.models = [list(binnings)[k] for k in kept]
        self.n_bins = [binnings[starts] for starts in self.models]
        self.shares = relative[kept] / relative[kept].sum()

    def starts(self, n_bins):
        weight = self.w0 + self.w1
        centres = np.cumsum(weight) - weight / 2
        bins = np.minimum(centres // (self.n // n_bins), n_bins - 1)
        return (0, *(np.flatnonzero(np.diff(bins)) + 1).tolist())

    def log_score(self, starts, criterion):
        if criterion == "evidence":
            return self.log_evidence(starts)
        # The likelihood at the rates of the bins, and a charge.
        rows = [(n1, n0) for n1, n0, *_ in self.laws(starts)]
        fit = sum(k * np.log(k / sum(one)) for one in rows for k in one if k > 0)
        bins, n = len(rows), self.n
        if criterion == "bic":
            return fit - bins * np.log(n) / 2
        return fit - bins - bins * (bins + 1) / (n - bins - 1)


def keep(relative, elbow=0.001):
    """Places of the best scores up to the elbow."""
    order = np.argsort(-relative, kind="stable")
    ranked = relative[order]
    k = 1
    while k < len(ranked) and ranked[k - 1] == ranked[k]:
        k += 1
    while k < len(ranked) and ranked[k - 1] - ranked[k] > elbow * np.var(relative):
        k += 1
    return order[:k]


def random_rows(rng, n, kind):
    x = rng.beta(0.3, 0.3, n)  # bins at the ends are narrow
    y = rng.uniform(size=n) < 0.1 + 0.8 * x**2
    y[:2] = [0, 1]
    if kind == "rows":
        return x, y, None
    if kind == "ties":
        return np.round(x, 1 if n < 200 else 2), y, None
    return x, y, rng.uniform(0.2, 3.0, n)


@pytest.mark.parametrize(
    ("criterion", "spread"), [("evidence", 10), ("bic", 10), ("aicc", 10), ("bic", 2)]
)
@SCORES
@pytest.mark.parametrize("kind", ["rows", "ties", "real"])
@pytest.mark.parametrize("n", [4, 11, 90, 700])
def test_equals_a_plain_rewrite(rng, score, kind, n, criterion, spread):
    rows = random_rows(rng, n, kind)
    summary = ScoreSummary.from_scores(*rows)
    slow = SlowBBQ(summary, score, criterion=criterion, spread=spread)
    fitted = BBQCalibrator(score, criterion=criterion, spread=spread).fit(*rows)
    assert fitted.n_bins_.tolist() == slow.n_bins
    assert_allclose(fitted.weights_, slow.shares, rtol=1e-9)
    mean, variance = slow.moments()
    assert_allclose(fitted.predict(summary.scores), mean, atol=1e-12)
    assert_allclose(fitted.variance_(summary.scores), variance, atol=1e-12)
    assert set(fitted.map_.knots[1:]) <= set(slow.edges)


def test_no_elbow_is_large_enough_for_two(rng):
    rows = random_rows(rng, 400, "rows")
    every = BBQCalibrator(elbow=0.0).fit(*rows)
    best = BBQCalibrator(elbow=np.inf).fit(*rows)
    assert len(every.n_bins_) > 1
    assert best.n_bins_.tolist() == [every.n_bins_[0]]
    assert len(best.map_) == best.n_bins_[0]
    tiny = BBQCalibrator(criterion="aicc").fit([0.2, 0.7], [0, 1])
    assert tiny.n_bins_.tolist() == [1]


@pytest.mark.parametrize("elbow", [0.0, 0.001, 1.0, 2.2, 9.0])
def test_the_elbow_is_the_first_small_drop_after_the_ties_with_the_best(elbow):
    """Least k with S_k - S_(k+1) <= alpha var(S)."""
    for scores in ([0.1, 1, 0.12, 0.7], [1], [1, 1, 1], [1, 0.5, 1], [0.5, 0, 1, 1]):
        found = select_by_elbow(np.array(scores, dtype=float), elbow)
        assert found.tolist() == keep(np.array(scores), elbow).tolist(), scores
    assert select_by_elbow(np.array([0.1, 1.0, 0.12, 0.7]), 2.2).tolist() == [1]


def test_a_binning_counts_once():
    """Five scores: hundreds of numbers of bins, a handful of binnings."""
    scores = np.repeat([0.1, 0.3, 0.5, 0.7, 0.9], 2000)
    y = np.arange(10_000) % 10 < 10 * scores
    fitted = BBQCalibrator(elbow=0.0).fit(scores, y)
    assert len(fitted.n_bins_) < 16
    assert len(fitted.map_) == 5
    assert_allclose(fitted.predict([0.1, 0.5, 0.9]), [0.1, 0.5, 0.9], atol=1e-3)


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
