"""Turnbull's estimate against a general optimiser, and Kaplan and Meier's."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from localexpert import kaplan_meier
from localexpert.partial.turnbull import turnbull

INF = np.inf


def draw_ends(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return intervals with ties: known, cut at either side or at both."""
    at = rng.integers(1, 12, n) / 4.0
    kind, width = rng.integers(4, size=n), rng.integers(0, 6, n) / 4.0
    lower = np.select([kind == 0, kind == 1], [-INF, at], at - width)
    upper = np.select([kind == 2, kind == 1], [INF, at], at + width)
    return lower, upper


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("truncated", [False, True])
def test_no_other_masses_are_more_probable(seed: int, truncated: bool) -> None:
    rng = np.random.default_rng(seed)
    lower, upper = draw_ends(rng, 12)
    weight = rng.integers(1, 4, 12).astype(float)
    entry = np.full(12, -INF)
    if truncated:
        # Rows that are always seen say how much lies below the entries.
        entry[:4] = np.where(np.isfinite(lower[:4]), lower[:4], upper[:4]) - 1.5
    low, high, mass = turnbull(lower, upper, weight, entry)
    assert (low[1:] > high[:-1]).all()
    inside = (low >= lower[:, None]) & (high <= upper[:, None])
    seen = high > entry[:, None]

    def loss(scores: np.ndarray) -> float:
        p = softmax(np.clip(scores, -15.0, 15.0))
        ratios = np.log(inside @ p) - np.log(seen @ p)
        return float(-(weight * ratios).sum())

    start = rng.normal(size=len(low))
    best = minimize(loss, start, method="Nelder-Mead", options={"maxfev": 20_000})
    assert loss(np.log(np.maximum(mass, 1e-12))) < best.fun + 1e-3


def test_right_censored_is_kaplan_and_meier() -> None:
    rng = np.random.default_rng(0)
    time, limit = rng.exponential(size=(2, 300))
    ends = np.column_stack(
        [np.minimum(time, limit), np.where(time <= limit, time, INF)]
    )
    weight = rng.integers(1, 4, 300).astype(float)
    low, high, mass = turnbull(*ends.T, weight, np.full(300, -INF))
    values, survival = kaplan_meier(ends, weight)
    events = low[low == high]
    wanted = 1.0 - survival[np.searchsorted(values, events)]
    np.testing.assert_allclose(np.cumsum(mass)[: len(events)], wanted, atol=1e-6)
