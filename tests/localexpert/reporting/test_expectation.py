"""Losses that forecasts expected beside those that came."""

import numpy as np
import pytest
from scipy.stats import norm

from localexpert import PredictiveDistribution
from localexpert.reporting.expectation import _say_whole
from localexpert.reporting.promise import Promise


def promised(rng, n, sd):
    """Outcomes of deviation 1 of forecasts that say `sd`."""
    dist = PredictiveDistribution.from_scipy(norm(np.zeros(n), sd))
    return Promise.of(rng.normal(size=n), dist, "crps")


@pytest.mark.parametrize(
    ("sd", "said"),
    [(1.0, "no further apart than"), (0.7, "surer than"), (1.4, "too cautious")],
)
def test_what_was_promised_is_said_to_be_kept_or_not(rng, sd, said):
    promise = promised(rng, 2000, sd)
    kept = promise.over()
    assert kept.expected.mean == pytest.approx(sd / np.sqrt(np.pi), rel=1e-9)
    assert kept.realised == promise.realised.mean()
    inside = kept.expected.low <= kept.realised <= kept.expected.high
    assert inside == (sd == 1.0)
    assert said in _say_whole(kept)


def test_groups_are_told_apart(rng):
    promise = promised(rng, 1000, 1.0)
    rows = np.arange(1000) < 100
    kept = promise.over(rows)
    assert kept.expected.n_rows == 100
    assert kept.realised == promise.realised[rows].mean()
    wide, whole = kept.expected, promise.over().expected
    assert wide.high - wide.low > 3.0 * (whole.high - whole.low)


def test_certain_forecasts_have_no_test():
    dist = PredictiveDistribution.from_samples([[1.0, 1.0], [2.0, 2.0]])
    kept = Promise.of(np.array([1.0, 2.0]), dist, "abs_error").over()
    assert kept.p_value == 1.0
