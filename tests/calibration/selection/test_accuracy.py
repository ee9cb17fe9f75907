"""Maps come as close to a known truth as published figures say they should."""

import numpy as np
import pytest

from calibration import (
    BaggedIsotonicCalibrator,
    BetaCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
)

pytestmark = pytest.mark.slow

GRID = (np.arange(1000) + 0.5) / 1000


def mean_rmse(make, n, draws=50):
    """Mean over draws of the RMSE of the map to p(x) = x^2, x uniform."""
    errors = []
    for draw in range(draws):
        rng = np.random.default_rng([draw, n])
        x = rng.uniform(size=n)
        fitted = make().fit(x, rng.uniform(size=n) < x**2)
        errors.append(np.sqrt(np.mean((fitted.predict(GRID) - GRID**2) ** 2)))
    return np.mean(errors)


@pytest.mark.parametrize(
    ("make", "bars"),
    [
        (PlattCalibrator, {2_000: 0.0165, 20_000: 0.0130, 100_000: 0.0128}),
        (BetaCalibrator, {2_000: 0.0117, 20_000: 0.0047, 100_000: 0.0025}),
        (IsotonicCalibrator, {2_000: 0.0326, 20_000: 0.0160, 100_000: 0.0086}),
    ],
)
def test_square_law_is_recovered(make, bars):
    for n, bar in bars.items():
        assert mean_rmse(make, n) <= 1.1 * bar


@pytest.mark.parametrize("n", [2_000, 20_000, 100_000])
def test_bagging_takes_a_tenth_off_the_error_of_isotonic(n):
    def bagged():
        return BaggedIsotonicCalibrator(100, random_state=0)

    assert mean_rmse(bagged, n) <= 0.9 * mean_rmse(IsotonicCalibrator, n)
