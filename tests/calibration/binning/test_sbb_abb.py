"""SBB and ABB against the list of all binnings."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import beta

from calibration import ABBCalibrator, BBQCalibrator, SBBCalibrator, ScoreSummary
from calibration.binning.all_binnings import law_of_binnings
from tests.calibration.binning.test_bbq import SCORES, Binnings, SlowBBQ

BOTH = pytest.mark.parametrize("cls", [SBBCalibrator, ABBCalibrator])


class Listing(Binnings):
    """Every binning of some cells with its weight, by eqs. 3.6 to 3.9 and 3.12."""

    def __init__(self, summary, score, scale="probability", rate=2.0):
        super().__init__(summary, score, scale)
        gaps = rate * np.diff(self.x) / (self.x[-1] - self.x[0])
        log_cut, inner = np.log(-np.expm1(-gaps)), range(1, self.m)
        self.models = [
            (0, *cuts) for k in range(self.m) for cuts in combinations(inner, k)
        ]
        log_weights = [
            np.where(np.isin(inner, starts), log_cut, -gaps).sum()
            + self.log_evidence(starts)
            for starts in self.models
        ]
        self.log_weights = np.array(log_weights)
        self.evidence = np.logaddexp.reduce(self.log_weights)
        self.shares = np.exp(self.log_weights - self.evidence)


def random_rows(rng, m, kind):
    """Scores, labels, weights: pure cells, ties of both classes, or real weights."""
    cells = np.sort(rng.choice(99, m, replace=False) + 1) / 100
    if kind == "pure":
        return cells, (rng.permutation(m) % 2), np.ones(m)
    scores = np.repeat(cells, 4)
    y = rng.integers(0, 2, 4 * m)
    weight = rng.integers(1, 9, 4 * m) if kind == "ties" else rng.uniform(0, 3, 4 * m)
    return scores, y, weight.astype(float)


@SCORES
@pytest.mark.parametrize("kind", ["pure", "ties", "real"])
@pytest.mark.parametrize("m", [2, 3, 7, 9])
def test_both_equal_the_list_of_all_binnings(rng, score, kind, m):
    for rate in (0.3, 2.0, 20.0):
        rows = random_rows(rng, m, kind)
        every = Listing(ScoreSummary.from_scores(*rows), score, rate=rate)
        mean, variance = every.moments()
        abb = ABBCalibrator(score, rate).fit(*rows)
        np.testing.assert_allclose(abb.predict(every.x), mean, atol=1e-12)
        np.testing.assert_allclose(abb.variance_(every.x), variance, atol=1e-12)
        sbb = SBBCalibrator(score, rate).fit(*rows)
        edges = (every.x[1:] + every.x[:-1]) / 2
        chosen = (0, *(np.flatnonzero(np.isin(edges, sbb.map_.knots[1:])) + 1))
        bins = np.array([law[:2] for law in every.laws(chosen)]).T
        np.testing.assert_allclose(sbb.map_.block_weights(), bins[::-1], atol=1e-12)
        found = every.log_weights[every.models.index(chosen)]
        assert found == pytest.approx(every.log_weights.max(), abs=1e-10)
        a, b = every.cell_laws(chosen)
        np.testing.assert_allclose(sbb.predict(every.x), a / (a + b), atol=1e-12)


AVERAGES = pytest.mark.parametrize(
    ("cls", "truth"), [(ABBCalibrator, Listing), (BBQCalibrator, SlowBBQ)]
)


@AVERAGES
@SCORES
@pytest.mark.parametrize("scale", ["logit", "real"])
def test_other_scales_change_the_prior_as_documented(rng, cls, truth, score, scale):
    scores, y, weight = random_rows(rng, 9, "ties")
    summary = ScoreSummary.from_scores(8 * scores - 4, y, weight)
    slow = truth(summary, score, scale)
    p = cls(score, scale=scale).fit_summary(summary).predict(slow.x)
    np.testing.assert_allclose(p, slow.moments()[0], atol=1e-12)


@SCORES
def test_auto_weighs_the_rates_by_the_probability_of_the_labels(rng, score):
    rows = random_rows(rng, 8, "ties")
    rates = 2.0 ** np.arange(-1, 11)
    summary = ScoreSummary.from_scores(*rows)
    every = [Listing(summary, score, rate=rate) for rate in rates]
    evidence = np.array([one.evidence for one in every])
    shares = np.exp(evidence - np.logaddexp.reduce(evidence))
    abb = ABBCalibrator(score, "auto").fit(*rows)
    assert abb.lambda_ == pytest.approx(shares @ rates)
    mean = shares @ np.array([one.moments()[0] for one in every])
    np.testing.assert_allclose(abb.predict(every[0].x), mean, atol=1e-12)
    sbb = SBBCalibrator(score, "auto").fit(*rows)
    assert sbb.lambda_ == rates[evidence.argmax()]


@AVERAGES
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_interval_is_that_of_the_beta_law_with_the_posterior_moments(
    rng, cls, truth, coverage
):
    summary = ScoreSummary.from_scores(*random_rows(rng, 8, "ties"))
    every = truth(summary, "k2")
    mean, variance = every.moments()
    count = mean * (1 - mean) / variance - 1
    expected = beta(mean * count, (1 - mean) * count).interval(coverage)
    fitted = cls("k2").fit_summary(summary)
    interval = fitted.predict_interval(every.x, coverage)
    np.testing.assert_allclose(interval, np.column_stack(expected), atol=1e-9)
    if cls is BBQCalibrator:
        return
    # Of the exact mixture it holds about the share that it names.
    held = np.zeros(len(mean))
    for share, starts in zip(every.shares, every.models, strict=True):
        a, b = every.cell_laws(starts)
        cdf = betainc(a[:, None], b[:, None], interval).T
        held += share * (cdf[1] - cdf[0])
    assert abs(held.mean() - coverage) < 0.03
    between = fitted.predict_interval([0.4 * every.x[0] + 0.6 * every.x[1]], coverage)
    line = 0.4 * interval[0] + 0.6 * interval[1]
    np.testing.assert_allclose(between[0], line, atol=1e-12)


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


@pytest.mark.parametrize("rate", [2.0, "auto"])
def test_a_heavy_cell_on_a_grid_stands_alone(rate, rng):
    """Half of the rows at one score, the rest on thousands."""
    x = np.concatenate([np.full(9000, 0.5), rng.uniform(size=9000)])
    y = rng.uniform(size=18_000) < np.where(x == 0.5, 0.9, 0.3)
    abb = ABBCalibrator(rate=rate).fit(x, y)
    np.testing.assert_allclose(abb.predict([0.3, 0.5, 0.7]), [0.3, 0.9, 0.3], atol=0.05)
