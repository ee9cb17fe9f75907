"""Laws of draws: smooth curves through them, or the shares of their values."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from calibration.typing import Float64Array
from localexpert._validation import check_bounds, check_choice
from localexpert.law.from_quantiles import increase_rows, read_rows
from localexpert.law.hermite_curve import curve_through
from localexpert.law.law import Law

# Distinct values up to which draws are taken to be discrete, and probabilities in all.
FEW_VALUES, _MOST_CELLS = 100, 100_000_000
# Fewest draws that a smooth curve is drawn through.
_LEAST_DRAWS = 10
# Width of the window for one draw, and places that it is averaged over.
_WIDTH, _N_PLACES = 0.7, 64
# The outermost knots leave out so many draws, or this share.
_OUT, _LEAST_SHARE = 1.5, 0.005


def law_of_samples(samples: Any, kind: str, bounds: Any) -> Law:
    """Return the law of draws of equal weight.

    Parameters
    ----------
    samples : array-like of shape (n, m)
    kind : {"auto", "smooth", "discrete"}
    bounds : (float, float) or None

    Returns
    -------
    Law
    """
    check_choice(kind, "kind", ("auto", "smooth", "discrete"))
    rows = read_rows(samples, "samples", "the draws of each forecast in a row")
    if rows.shape[1] == 0:
        msg = f"`samples` must hold draws, got shape {rows.shape}."
        raise ValueError(msg)
    ends = check_bounds((None, None) if bounds is None else bounds)
    values = np.unique(rows) if kind != "smooth" else np.empty(0)
    few = 0 < len(values) <= FEW_VALUES
    if kind == "discrete" or (kind == "auto" and few):
        return _count(rows, values)
    return _smooth(rows, ends)


def _count(rows: Float64Array, values: Float64Array) -> Law:
    """Return the law of the shares of values (V,) in each row."""
    n, m = rows.shape
    if len(values) * n > _MOST_CELLS:
        msg = (
            f'`kind` must not be "discrete" for {len(values)} values in {n} rows, '
            f'which is more than {_MOST_CELLS:g} probabilities: take "smooth".'
        )
        raise ValueError(msg)
    if n == 0:
        return Law.discrete(np.zeros(1), np.empty((0, 1)))
    cell = np.arange(n)[:, None] * len(values) + np.searchsorted(values, rows)
    counts = np.bincount(cell.ravel(), minlength=n * len(values))
    return Law.discrete(values, counts.reshape(n, len(values)) / m)


def _smooth(rows: Float64Array, bounds: tuple[float, float]) -> Law:
    """Return curves through sorted draws at their normal scores, smoothed."""
    m = rows.shape[1]
    if m < _LEAST_DRAWS:
        msg = (
            f"`samples` must hold at least {_LEAST_DRAWS} draws of each forecast for a "
            f'smooth law, got {m}: take more, or `kind="discrete"`.'
        )
        raise ValueError(msg)
    window = _WIDTH * m**-0.2
    end = -float(ndtri(max(_OUT / m, _LEAST_SHARE)))
    knots = np.linspace(-end, end, 2 * int(np.ceil(end / window)) + 1)
    # Not a product of matrices, whose rounding depends on the other rows.
    values = np.einsum("ij,kj->ik", np.sort(rows, axis=1), _window(knots, window, m))
    values = np.clip(values, *bounds)
    rising = increase_rows(values, knots, bounds)
    return Law.smooth(curve_through(knots, rising, bounds))


def _window(knots: Float64Array, width: float, m: int) -> Float64Array:
    """Return the weights (K, m) of sorted draws in a smoothed curve at knots."""
    scores = ndtri((np.arange(m) + 0.5) / m)
    places = knots[:, None] + width * ndtri((np.arange(_N_PLACES) + 0.5) / _N_PLACES)
    # Straight lines between the draws, and on beyond the outermost.
    left = np.clip(np.searchsorted(scores, places, "right") - 1, 0, m - 2)
    share = (places - scores[left]) / (scores[left + 1] - scores[left])
    weights = np.zeros((len(knots), m))
    row = np.arange(len(knots))[:, None]
    np.add.at(weights, (row, left), (1.0 - share) / _N_PLACES)
    np.add.at(weights, (row, left + 1), share / _N_PLACES)
    return weights
