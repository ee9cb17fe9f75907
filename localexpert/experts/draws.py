"""Thresholds as places on their grid, and rows repeated with places drawn for them.

Place k is the k-th threshold, and places between are linear; 0 and N + 1 are one
spacing beyond the ends.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import logit

from calibration.typing import Float64Array

# Draws per row: _DRAWS at _DRAWS_AT training rows, falling with n^-_DRAWS_POWER.
_DRAWS, _DRAWS_AT, _DRAWS_POWER = 9, 10_000, 0.35
_LEAST_DRAWS, _MOST_DRAWS = 2, 24
# Share of the draws that are moved to the nearest threshold; the others stay between.
_SNAPPED = 0.7


def count_draws(draws: int | Literal["auto"], n: int) -> int:
    """Return the thresholds per row, of which there are n in training."""
    if draws != "auto":
        return draws
    wanted = _DRAWS * (_DRAWS_AT / n) ** _DRAWS_POWER
    return int(np.clip(np.round(wanted), _LEAST_DRAWS, _MOST_DRAWS))


def grid_knots(thresholds: Float64Array) -> Float64Array:
    """Return the thresholds with one more, a spacing away, at either end."""
    if len(thresholds) == 1:
        knots: Float64Array = thresholds[0] + np.array([-1.0, 0.0, 1.0])
        return knots
    low = 2.0 * thresholds[0] - thresholds[1]
    high = 2.0 * thresholds[-1] - thresholds[-2]
    return np.concatenate([[low], thresholds, [high]])


def start_scores(
    r: Float64Array, weights: Float64Array, thresholds: Float64Array
) -> Float64Array:
    """Return the log-odds of the base rates at the grid's knots, shape (N + 2,).

    Boosting starts there: what trees must learn is how rows differ, not the marginal.
    The rates are smoothed, (w1 + 1/2) / (w + 1).
    """
    knots = grid_knots(thresholds)
    order = np.argsort(r, kind="stable")
    mass = np.append(0.0, np.cumsum(weights[order]))
    below = mass[np.searchsorted(r[order], knots, side="right")]
    rates: Float64Array = (below + 0.5) / (mass[-1] + 1.0)
    return logit(rates)


def draw_places(
    n: int, n_draws: int, n_thresholds: int, rng: np.random.Generator
) -> Float64Array:
    """Return positions on the grid, shape (n, n_draws), one from each stratum."""
    # One draw from each stratum spreads a row's draws over the grid: the same number of
    # independent ones would leave larger gaps and more noise.
    strata = (np.arange(n_draws) + rng.random((n, n_draws))) / n_draws
    # From half a cell before the first threshold to half a cell after the last, so
    # that snapping leaves all thresholds equally frequent.
    places = 0.5 + n_thresholds * strata
    # The thresholds themselves are asked about later, so most draws lie there; those
    # between keep the trees from cutting right beside a threshold.
    snapped = rng.random((n, n_draws)) < _SNAPPED
    return np.where(snapped, np.clip(np.rint(places), 1, n_thresholds), places)


def repeat_rows(encoded: Float64Array, places: Float64Array) -> Float64Array:
    """Return every row once per position of its own, shape (n * draws, p + 1)."""
    n, n_draws = places.shape
    repeated = np.empty((n, n_draws, encoded.shape[1] + 1))
    repeated[:, :, :-1] = encoded[:, None, :]
    repeated[:, :, -1] = places
    return repeated.reshape(n * n_draws, -1)


def all_places(n_thresholds: int) -> Float64Array:
    """Return the places of the thresholds themselves."""
    return np.arange(1.0, n_thresholds + 1.0)
