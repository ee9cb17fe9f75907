import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, betaincc, betaln

from calibration import brier_score, log_loss, proper_score
from calibration.measures.scores import _density_losses

# All over the unit interval, and as close to its ends as floats go.
FORECASTS = np.unique(
    np.concatenate(
        [
            [0.0, 5e-324, 1e-310, 1e-300, 1e-100, 1e-20, 1e-12],
            np.linspace(0.001, 0.999, 333),
            1.0 - 10.0 ** -np.arange(4.0, 16.0),
            [1.0 - 2.0**-53, 1.0],
        ]
    )
)


def constant(_):
    return 1.0


def parabola(e):
    return 6.0 * e * (1.0 - e)


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


def test_parabola_gives_three_times_the_brier_score():
    loss0, loss1 = _density_losses(parabola, FORECASTS)
    assert_close(loss0, 3.0 * FORECASTS**2)
    assert_close(loss1, 3.0 * (1.0 - FORECASTS) ** 2)


@pytest.mark.parametrize("slope", [1.0, -0.5])
def test_linear_density(slope):
    loss0, loss1 = _density_losses(lambda e: 1.0 + slope * e, FORECASTS)
    with np.errstate(divide="ignore"):
        expected0 = -(1.0 + slope) * np.log1p(-FORECASTS) - slope * FORECASTS
        expected1 = -np.log(FORECASTS) + slope * (1.0 - FORECASTS)
    assert_close(loss0, expected0)
    assert_close(loss1, expected1)


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


@pytest.mark.parametrize("power", [0.3, 0.1])
def test_strong_singularity_at_zero(power):
    _, loss1 = _density_losses(lambda e: power * e ** (power - 1.0), FORECASTS)
    with np.errstate(divide="ignore", over="ignore"):
        expected = power / (1.0 - power) * (FORECASTS ** (power - 1.0) - 1.0)
    assert_close(loss1, expected)


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


def test_scores_of_data(rng):
    y, p = rng.integers(0, 2, size=300), np.round(rng.uniform(size=300), 2)
    p = np.clip(p, 0.01, 0.99)
    w = rng.uniform(size=300)
    expected = log_loss(y, p, sample_weight=w)
    assert proper_score(y, p, constant, sample_weight=w) == pytest.approx(expected)
    expected = 3.0 * brier_score(y, p, sample_weight=w)
    assert proper_score(y, p, parabola, sample_weight=w) == pytest.approx(expected)


@pytest.mark.parametrize(("y", "p"), [(0, 0.0), (0, 1.0), (1, 0.0), (1, 1.0)])
def test_certain_forecasts_as_the_log_loss_has_them(y, p):
    assert proper_score([y], [p], constant) == log_loss([y], [p])
    assert proper_score([y], [p], parabola) == pytest.approx(3.0 * (y - p) ** 2)


def test_only_distinct_forecasts_are_integrated():
    calls = []

    def density(e):
        calls.append(np.size(e))
        return np.ones_like(e)

    proper_score([0, 1], [0.3, 0.4], density)
    few = sum(calls)
    calls.clear()
    proper_score([0, 1] * 1000, [0.3, 0.4] * 1000, density)
    assert sum(calls) == few


def test_more_forecasts_than_one_chunk(rng):
    p = rng.uniform(size=70_000)
    y = rng.uniform(size=70_000) < p
    assert proper_score(y, p, constant) == pytest.approx(log_loss(y, p), rel=1e-10)


def test_a_density_may_write_into_its_argument():
    def density(e):
        e *= 2.0
        return e

    expected = proper_score([0, 1], [0.3, 0.4], lambda e: 2.0 * e)
    assert proper_score([0, 1], [0.3, 0.4], density) == expected


def test_point_masses_against_a_loop(rng):
    masses = {0.7: 0.2, 0.25: 0.5, 0.5: 0.3}
    y = rng.integers(0, 2, size=200)
    p = rng.choice([0.0, 0.25, 0.3, 0.5, 0.6, 0.7, 0.9, 1.0], size=200)
    total = 0.0
    for yi, pi in zip(y, p, strict=True):
        for cost, mass in masses.items():
            decision = pi >= cost
            if yi and not decision:
                total += mass / cost
            if not yi and decision:
                total += mass / (1.0 - cost)
    assert proper_score(y, p, masses) == pytest.approx(total / 200.0, rel=1e-12)


def test_a_tie_with_a_cost_decides_for_class_one():
    assert proper_score([1], [0.5], {0.5: 0.5}) == 0.0
    assert proper_score([0], [0.5], {0.5: 0.5}) == 1.0


def test_half_a_mass_at_one_half_is_the_error_rate():
    y, p = [0, 0, 1, 1, 1], [0.1, 0.6, 0.4, 0.7, 0.9]
    assert proper_score(y, p, {0.5: 0.5}) == pytest.approx(0.4)


def test_many_masses_approach_the_density():
    n = 20_000
    costs = (np.arange(n) + 0.5) / n
    masses = dict(zip(costs.tolist(), (parabola(costs) / n).tolist(), strict=True))
    y, p = [0, 1, 1, 0], [0.2, 0.3, 0.8, 0.9]
    expected = proper_score(y, p, parabola)
    assert proper_score(y, p, masses) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "weight", [constant, parabola, boosting, {0.3: 1.0}, {0.1: 0.5, 0.9: 0.5}]
)
def test_is_proper(weight):
    # The expected score of forecasts q is least at the event rate.
    forecasts = np.linspace(0.05, 0.95, 19)
    for rate in (0.15, 0.5, 0.8):
        expected = [
            proper_score([0, 1], [q, q], weight, sample_weight=[1.0 - rate, rate])
            for q in forecasts
        ]
        at_rate = proper_score(
            [0, 1], [rate, rate], weight, sample_weight=[1.0 - rate, rate]
        )
        assert at_rate <= min(expected) + 1e-12


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


def test_weight_of_another_type():
    with pytest.raises(TypeError, match=r"`weight` must be a callable .* got float"):
        proper_score([0, 1], [0.2, 0.3], 1.0)
