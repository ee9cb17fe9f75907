"""Losses, proper scores and the area under the ROC, against loops and formulas."""

import math
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, betaincc, betaln

from calibration import auc_score, brier_score, log_loss, proper_score, spherical_score
from calibration.measures.scores import _density_losses

NEAR = [[1.0, 1e-9, 0.0]]
ENDS = [[0.0, 1.0, 0.0], [0.2, 0.3, 0.5]]


@pytest.mark.parametrize(
    ("measure", "y", "p", "options", "expected"),
    [
        # The impossible, unless it weighs nothing.
        (log_loss, [1, 1, 0], [0.0, 0.5, 0.5], {}, math.inf),
        (log_loss, [0, 1, 0], [1.0, 0.5, 0.5], {}, math.inf),
        (log_loss, [1, 1], [0.0, 0.5], {"sample_weight": [0, 1]}, math.log(2.0)),
        (log_loss, [0, 2], ENDS, {}, math.inf),
        (log_loss, [0, 2], ENDS, {"sample_weight": [0, 1]}, math.log(2.0)),
        (log_loss, [0], ENDS[:1], {"clip": 1e-12}, -math.log(1e-12)),
        (log_loss, [1], ENDS[:1], {"clip": 0.1}, -math.log(0.9)),
        (log_loss, [1], [0.0], {"clip": 1e-17}, -math.log(1e-17)),
        (log_loss, [0], [0.0], {"clip": 0.5}, math.log(2.0)),
        # Certain and right.
        (log_loss, [0, 1], [0.0, 1.0], {}, 0.0),
        (log_loss, [1], ENDS[:1], {}, 0.0),
        # Good forecasts keep their digits: spherical score is (p / (1 - p))^2 / 2.
        (log_loss, [0], [1e-20], {}, 1e-20),
        (log_loss, [1], [1e-300], {}, -math.log(1e-300)),
        (spherical_score, [0], [1e-9], {}, 0.5e-18),
        (spherical_score, [0], NEAR, {}, 0.5e-18),
        (brier_score, [0], NEAR, {}, 1e-18),
    ],
)
def test_ends_are_exact(measure, y, p, options, expected):
    loss = measure(y, p, **options)
    assert loss == pytest.approx(expected, rel=3e-9, abs=0.0)
    assert math.copysign(1.0, loss) == 1.0


LOSSES = {
    brier_score: lambda y, p: sum((p[c] - (c == y)) ** 2 for c in range(len(p))),
    log_loss: lambda y, p: -math.log(p[y]),
    partial(log_loss, clip=0.25): lambda y, p: -math.log(min(max(p[y], 0.25), 0.75)),
    spherical_score: lambda y, p: 1.0 - p[y] / math.hypot(*p),
}


@pytest.mark.parametrize("measure", LOSSES)
@pytest.mark.parametrize("k", [2, 3, 6])
def test_is_the_weighted_mean_of_the_formula(measure, k, rng):
    y = rng.integers(0, k, size=50)
    p = rng.dirichlet(np.ones(k), size=50)
    w = rng.uniform(size=50)
    losses = [LOSSES[measure](*row) for row in zip(y, p, strict=True)]
    expected = pytest.approx(np.average(losses, weights=w), rel=1e-12)
    assert measure(y, p, sample_weight=w) == expected
    if k == 2:
        # Of the chance of one class Brier's score is half of the sum over both.
        times = 2.0 if measure is brier_score else 1.0
        assert times * measure(y, p[:, 1], sample_weight=w) == expected


def count_wins(y, p, w, i, j):
    """A(i | j) over all pairs of rows."""
    ours, theirs = p[y == i, i][:, None], p[y == j, i]
    wins = (ours > theirs) + 0.5 * (ours == theirs)
    return np.average(wins, weights=np.outer(w[y == i], w[y == j]))


def draw(rng, n=60, k=4):
    p = rng.multinomial(10, rng.dirichlet(np.ones(k), size=n)) / 10.0
    return rng.integers(0, k, size=n), p


def test_is_the_mean_over_pairs_of_classes_and_rows(rng):
    y, p = draw(rng)
    w = rng.uniform(size=len(y))
    means = [
        0.5 * (count_wins(y, p, w, i, j) + count_wins(y, p, w, j, i))
        for i, j in combinations(range(4), 2)
    ]
    assert auc_score(y, p, sample_weight=w) == pytest.approx(np.mean(means), rel=1e-12)


@pytest.mark.parametrize("unit", [2.0**-540, 2.0**-1000, 2.0**40])
def test_knows_no_unit_of_weights(rng, unit):
    """Products of weights, which pairs have, underflow."""
    y, p = draw(rng)
    w = rng.uniform(size=len(y))
    expected = auc_score(y, p, sample_weight=w)
    assert auc_score(y, p, sample_weight=unit * w) == expected
    # Nor of the rows of one class: A(i | j) is a mean over pairs.
    w = np.where(y == 2, unit, 1.0) * w
    assert auc_score(y, p, sample_weight=w) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("y", "p", "w"),
    [
        ([1, 1], [0.2, 0.4], None),
        ([1, 0], [0.2, 0.4], [1, 0]),
        ([1], [[0.2, 0.4, 0.4]], None),
    ],
)
def test_one_class_has_no_order(y, p, w):
    with pytest.raises(ValueError, match="`y_true` must hold two classes or more, got"):
        auc_score(y, p, sample_weight=w)


# All over the unit interval, and as close to its ends as floats go.
SMALL = [0.0, 5e-324, 1e-310, 1e-300, 1e-100, 1e-20, 1e-12]
LARGE = [*(1.0 - 10.0 ** -np.arange(4.0, 16.0)), 1.0 - 2.0**-53, 1.0]
FORECASTS = np.array([*SMALL, *np.linspace(0.001, 0.999, 333), *LARGE])


def constant(_):
    return 1.0


def boosting(e):
    return 1.0 / (np.pi * np.sqrt(e * (1.0 - e)))


def beta_density(a, b):
    norm = betaln(a, b)
    return lambda e: np.exp((a - 1.0) * np.log(e) + (b - 1.0) * np.log1p(-e) - norm)


def assert_close(actual, expected, tolerance=1e-9):
    """Refuse errors above the tolerance, relative above 1, and a wrong infinity."""
    np.testing.assert_array_equal(np.isinf(actual), np.isinf(expected))
    finite = np.isfinite(expected)
    scale = np.maximum(1.0, expected[finite])
    assert np.max(np.abs(actual[finite] - expected[finite]) / scale) < tolerance


def test_constant_density_gives_the_log_loss():
    loss0, loss1 = _density_losses(constant, FORECASTS)
    with np.errstate(divide="ignore"):
        assert_close(loss0, -np.log1p(-FORECASTS))
        assert_close(loss1, -np.log(FORECASTS))


def test_density_that_grows_without_bound():
    # Boosting: L1 = 2/pi sqrt((1 - q) / q), finite mass but infinite at the ends.
    loss0, loss1 = _density_losses(boosting, FORECASTS)
    with np.errstate(divide="ignore"):
        root0, root1 = np.sqrt(FORECASTS), np.sqrt(1.0 - FORECASTS)
        # Nodes are rounded near 1, which a density without bound there feels.
        assert_close(loss0, 2.0 / np.pi * root0 / root1, 1e-8)
        assert_close(loss1, 2.0 / np.pi * root1 / root0)


@pytest.mark.parametrize(
    ("a", "b"), [(2.0, 2.0), (1.2, 5.0), (30.0, 2.0), (1000.0, 1000.0)]
)
def test_beta_densities(a, b):
    loss0, loss1 = _density_losses(beta_density(a, b), FORECASTS)
    lower = np.exp(betaln(a, b - 1.0) - betaln(a, b))
    upper = np.exp(betaln(a - 1.0, b) - betaln(a, b))
    assert_close(loss0, lower * betainc(a, b - 1.0, FORECASTS))
    assert_close(loss1, upper * betaincc(a - 1.0, b, FORECASTS))


def test_density_without_finite_mass_makes_every_loss_of_that_class_infinite():
    loss0, loss1 = _density_losses(lambda e: 1.0 / (1.0 - e), np.array([0.2, 0.9]))
    assert np.isinf(loss1).all()
    np.testing.assert_allclose(loss0, 1.0 / (1.0 - np.array([0.2, 0.9])) - 1.0)


def test_density_that_vanishes_at_the_ends():
    def bump(e):
        return np.where((e > 0.2) & (e < 0.6), (e - 0.2) ** 2 * (0.6 - e) ** 2, 0.0)

    loss0, loss1 = _density_losses(bump, np.array([0.0, 0.1, 0.4, 0.7, 1.0]))
    inner = quad(lambda e: bump(e) / e, 0.4, 0.6)[0]
    whole = quad(lambda e: bump(e) / e, 0.2, 0.6)[0]
    np.testing.assert_allclose(loss1, [whole, whole, inner, 0.0, 0.0], atol=1e-9)
    assert loss0[0] == loss0[1] == 0.0


def test_more_forecasts_than_one_chunk(rng):
    p = rng.uniform(size=70_000)
    y = rng.uniform(size=70_000) < p
    assert proper_score(y, p, constant) == pytest.approx(log_loss(y, p), rel=1e-10)


def test_point_masses_are_costs_of_decisions(rng):
    masses = {0.7: 0.2, 0.25: 0.5, 0.5: 0.3}
    y = rng.integers(0, 2, size=200)
    p = rng.choice([0.0, 0.25, 0.3, 0.5, 0.6, 0.7, 0.9, 1.0], size=200)
    losses = sum(
        mass * np.where(y, (p < cost) / cost, (p >= cost) / (1.0 - cost))
        for cost, mass in masses.items()
    )
    assert proper_score(y, p, masses) == pytest.approx(losses.mean(), rel=1e-12)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ({}, "`weight` must hold at least one cost, got an empty mapping"),
        ({0.0: 1.0}, r"`weight` costs` must lie in \(0, 1\), got 0.0"),
        ({1.5: 1.0}, r"must lie in \(0, 1\), got 1.5"),
        ({0.5: -1.0}, r"must lie in \[0, inf\), got -1.0"),
        (lambda e: e - 0.5, "`weight` must be finite and not negative on .* got -0.5"),
        (lambda e: e * math.nan, "`weight` must be finite and not negative .* got nan"),
        (lambda _: np.ones(3), r"`weight` must return one value per cost .* shape \(3"),
    ],
)
def test_bad_weights_are_named(weight, message):
    with pytest.raises(ValueError, match=message):
        proper_score([0, 1], [0.2, 0.3], weight)
