"""SBB and ABB against the list of all binnings."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import betainc, betaln, expit
from scipy.stats import beta

from calibration import ABBCalibrator, SBBCalibrator, ScoreSummary
from calibration.binning.all_binnings import law_of_binnings

BOTH = pytest.mark.parametrize("cls", [SBBCalibrator, ABBCalibrator])
SCORES = pytest.mark.parametrize("score", ["k2", "bdeu"])


class Listing:
    """Every binning of some cells with its weight, by eqs. 3.6 to 3.9 and 3.12."""

    def __init__(self, x, w0, w1, score, rate, scale="probability"):
        m = len(x)
        self.x, self.w0, self.w1 = x, w0, w1
        gaps = rate * np.diff(x) / (x[-1] - x[0])
        log_cut = np.log(-np.expm1(-gaps))
        inner = (x[1:] + x[:-1]) / 2
        if scale == "logit":
            inner = expit(inner)
        self.edges = np.concatenate([[0], inner, [1]])
        self.score, self.real = score, scale == "real"
        self.starts = [
            (0, *cuts) for k in range(m) for cuts in combinations(range(1, m), k)
        ]
        log_weights = []
        for starts in self.starts:
            is_cut = np.isin(np.arange(1, m), starts)
            total = np.where(is_cut, log_cut, -gaps).sum()
            for n0, n1, a, b in self.laws(starts):
                total += betaln(n1 + a, n0 + b) - betaln(a, b)
            log_weights.append(total)
        self.log_weights = np.array(log_weights)
        self.evidence = np.logaddexp.reduce(self.log_weights)
        self.shares = np.exp(self.log_weights - self.evidence)

    def laws(self, starts):
        """Counts and prior of every bin."""
        for i, j in zip(starts, (*starts[1:], len(self.x)), strict=True):
            p = np.clip((self.edges[i] + self.edges[j]) / 2, 0.005, 0.995)
            if self.real:
                p = self.w1.sum() / (self.w0.sum() + self.w1.sum())
            p = 0.5 if self.score == "k2" else p
            yield self.w0[i:j].sum(), self.w1[i:j].sum(), 2 * p, 2 - 2 * p

    def cell_laws(self, starts):
        """Shape parameters of the posterior in every cell."""
        laws = [(n1 + a, n0 + b) for n0, n1, a, b in self.laws(starts)]
        sizes = np.diff((*starts, len(self.x)))
        return np.repeat(np.array(laws), sizes, axis=0).T

    def moments(self):
        mean, square = np.zeros(len(self.x)), np.zeros(len(self.x))
        for share, starts in zip(self.shares, self.starts, strict=True):
            a, b = self.cell_laws(starts)
            mean += share * a / (a + b)
            square += share * a * (a + 1) / ((a + b) * (a + b + 1))
        return mean, square - mean**2


def random_rows(rng, m, kind):
    """Scores, labels, weights: pure cells, ties of both classes, or real weights."""
    cells = np.sort(rng.choice(99, m, replace=False) + 1) / 100
    if kind == "pure":
        return cells, (rng.permutation(m) % 2), np.ones(m)
    scores = np.repeat(cells, 4)
    y = rng.integers(0, 2, 4 * m)
    weight = rng.integers(1, 9, 4 * m) if kind == "ties" else rng.uniform(0, 3, 4 * m)
    return scores, y, weight.astype(float)


def listing(scores, y, weight, *args, **more):
    summary = ScoreSummary.from_scores(scores, y, weight)
    return Listing(summary.scores, summary.weight0, summary.weight1, *args, **more)


@SCORES
@pytest.mark.parametrize("kind", ["pure", "ties", "real"])
@pytest.mark.parametrize("m", [2, 3, 7, 9])
def test_both_equal_the_list_of_all_binnings(rng, score, kind, m):
    for rate in (0.3, 2.0, 20.0):
        rows = random_rows(rng, m, kind)
        every = listing(*rows, score, rate)
        mean, variance = every.moments()
        abb = ABBCalibrator(score, rate).fit(*rows)
        np.testing.assert_allclose(abb.predict(every.x), mean, atol=1e-12)
        np.testing.assert_allclose(abb.variance_(every.x), variance, atol=1e-12)
        sbb = SBBCalibrator(score, rate).fit(*rows)
        edges = (every.x[1:] + every.x[:-1]) / 2
        chosen = (0, *(np.flatnonzero(np.isin(edges, sbb.map_.knots[1:])) + 1))
        assert len(chosen) == len(sbb.map_)
        found = every.log_weights[every.starts.index(chosen)]
        assert found == pytest.approx(every.log_weights.max(), abs=1e-10)
        a, b = every.cell_laws(chosen)
        np.testing.assert_allclose(sbb.predict(every.x), a / (a + b), atol=1e-12)


@SCORES
@pytest.mark.parametrize("scale", ["logit", "real"])
def test_other_scales_change_the_prior_as_documented(rng, score, scale):
    scores, y, weight = random_rows(rng, 9, "ties")
    scores = 8 * scores - 4
    every = listing(scores, y, weight, score, 2.0, scale=scale)
    abb = ABBCalibrator(score, scale=scale).fit(scores, y, weight)
    np.testing.assert_allclose(abb.predict(every.x), every.moments()[0], atol=1e-12)


@SCORES
def test_auto_weighs_the_rates_by_the_probability_of_the_labels(rng, score):
    rows = random_rows(rng, 8, "ties")
    rates = 2.0 ** np.arange(-1, 11)
    every = [listing(*rows, score, rate) for rate in rates]
    evidence = np.array([one.evidence for one in every])
    shares = np.exp(evidence - np.logaddexp.reduce(evidence))
    abb = ABBCalibrator(score, "auto").fit(*rows)
    assert abb.lambda_ == pytest.approx(shares @ rates)
    mean = shares @ np.array([one.moments()[0] for one in every])
    np.testing.assert_allclose(abb.predict(every[0].x), mean, atol=1e-12)
    sbb = SBBCalibrator(score, "auto").fit(*rows)
    assert sbb.lambda_ == rates[evidence.argmax()]


def test_interval_is_that_of_the_beta_law_with_the_posterior_moments(rng):
    rows = random_rows(rng, 8, "ties")
    every = listing(*rows, "k2", 2.0)
    mean, variance = every.moments()
    count = mean * (1 - mean) / variance - 1
    law = beta(mean * count, (1 - mean) * count)
    abb = ABBCalibrator().fit(*rows)
    for coverage in (0.5, 0.9):
        interval = abb.predict_interval(every.x, coverage)
        expected = np.column_stack(law.interval(coverage))
        np.testing.assert_allclose(interval, expected, atol=1e-9)
        # Of the exact mixture it holds about the share that it names.
        held = np.zeros(len(mean))
        for share, starts in zip(every.shares, every.starts, strict=True):
            a, b = every.cell_laws(starts)
            cdf = betainc(a[:, None], b[:, None], interval).T
            held += share * (cdf[1] - cdf[0])
        assert abs(held.mean() - coverage) < 0.03
    between = abb.predict_interval([0.4 * every.x[0] + 0.6 * every.x[1]])
    ends = abb.predict_interval(every.x[:2])
    np.testing.assert_allclose(between[0], 0.4 * ends[0] + 0.6 * ends[1], atol=1e-12)


def test_sbb_keeps_the_class_weights_of_its_bins():
    x = np.concatenate([np.linspace(0, 0.3, 20), np.linspace(0.7, 1, 20)])
    sbb = SBBCalibrator().fit(x, x > 0.5)
    weight0, weight1 = sbb.map_.block_weights()
    assert (weight0.tolist(), weight1.tolist()) == ([20.0, 0.0], [0.0, 20.0])
    low, high = sbb.predict_interval([0.1])[0]
    assert 0.0 <= low < sbb.predict([0.1])[0] < high < 0.2


DESIGNS = {
    "square": (lambda rng, n: rng.uniform(size=n), lambda x: x**2),
    "step": (lambda rng, n: rng.uniform(size=n), lambda x: 0.2 + 0.6 * (x > 0.37123)),
    "ends": (
        lambda rng, n: np.clip(rng.beta(0.05, 0.05, n), 1e-9, 1 - 1e-9),
        lambda x: x**2 / (x**2 + (1 - x) ** 1.5),
    ),
}


@pytest.mark.parametrize("design", DESIGNS)
def test_grid_converges_to_the_exact_law(rng, design):
    """Twice the cells, a smaller error; at half of the cells it cannot be seen."""
    draw, rate = DESIGNS[design]
    x = draw(rng, 3000)
    summary = ScoreSummary.from_scores(x, rng.uniform(size=3000) < rate(x))

    def estimate(grid, exact):
        law = law_of_binnings(summary, "k2", "probability", 2.0, exact=exact, grid=grid)
        mean = law.posterior(np.array([2.0]), np.ones(1))[0]
        return np.interp(summary.scores, law.cells.scores, mean), law

    exact, _ = estimate(0, 3000)
    errors = []
    for grid in (128, 256, 512, 1024, 2048):
        approximate, law = estimate(grid, grid)
        assert len(law.cells.scores) <= grid
        errors.append(np.sqrt(np.mean((approximate - exact) ** 2)))
    assert errors[0] < 0.02
    assert errors[-1] < 0.1 * errors[0]
    assert errors[-1] < 5e-4


@BOTH
def test_many_scores_are_fitted_on_a_grid(cls, rng):
    x = rng.uniform(size=20_000)
    fitted = cls().fit(x, rng.uniform(size=20_000) < 0.2 + 0.6 * (x > 0.37123))
    assert len(fitted.map_) <= 2048
    np.testing.assert_allclose(fitted.predict([0.1, 0.36, 0.38, 0.9]), 0.5, atol=0.33)
    # The second look at the grid finds the step to a few rows out of 20 000.
    near = fitted.predict([0.37123 - 0.002, 0.37123 + 0.002])
    np.testing.assert_allclose(near, [0.2, 0.8], atol=0.03)


@BOTH
@SCORES
def test_hard_scores_stay_finite(cls, score):
    cases = [
        ([-1e308, 0.0, 1e308], [0, 1, 1]),
        ([0.0, 5e-324, 1.0], [0, 1, 0]),
        ([1.0, np.nextafter(1.0, 2.0), 3.0], [0, 1, 0]),
        ([0.0, 1.0], [0, 1]),
    ]
    for scores, y in cases:
        for rate in (1e-9, 2.0, 1e6, "auto"):
            fitted = cls(score, rate, scale="real").fit(scores, y)
            p = fitted.predict(scores)
            assert ((p > 0) & (p < 1)).all()
            assert np.isfinite(fitted.predict_interval(scores)).all()


@pytest.mark.parametrize("rate", [2.0, "auto"])
def test_a_heavy_cell_on_a_grid_stands_alone(rate, rng):
    """Half of the rows at one score, the rest on thousands."""
    x = np.concatenate([np.full(9000, 0.5), rng.uniform(size=9000)])
    y = rng.uniform(size=18_000) < np.where(x == 0.5, 0.9, 0.3)
    abb = ABBCalibrator(rate=rate).fit(x, y)
    np.testing.assert_allclose(abb.predict([0.3, 0.5, 0.7]), [0.3, 0.9, 0.3], atol=0.05)
