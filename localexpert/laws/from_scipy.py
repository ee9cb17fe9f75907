"""Laws of frozen distributions of `scipy.stats`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from calibration.typing import Float64Array
from localexpert._validation import as_numbers, check_integer
from localexpert.laws.discrete import DiscreteLaw
from localexpert.laws.scipy_law import ScipyLaw, parameter_names

# Probability that is left out in each tail of a discrete law, and most values in all.
_LEFT_OUT, _MOST_VALUES = 1e-12, 10_000


def law_of_frozen(frozen: Any, n: int | None) -> ScipyLaw | DiscreteLaw:
    """Return the law of a frozen distribution.

    Parameters
    ----------
    frozen : frozen distribution of scipy.stats
    n : int, optional
        Number of rows of one whose parameters are numbers.

    Returns
    -------
    ScipyLaw or DiscreteLaw
    """
    family = getattr(frozen, "dist", None)
    if not isinstance(family, stats.rv_continuous | stats.rv_discrete):
        msg = (
            "`frozen` must be a frozen distribution of scipy.stats, such as "
            f"stats.norm(loc, scale), got {type(frozen).__name__}."
        )
        raise TypeError(msg)
    rows = _read_parameters(frozen, parameter_names(family), n)
    if isinstance(family, stats.rv_continuous):
        return ScipyLaw(family, rows)
    return _discrete(family, rows)


def _read_parameters(frozen: Any, names: list[str], n: int | None) -> Float64Array:
    """Return the parameters in scipy's order, (n, P)."""
    given = {"loc": 0.0, "scale": 1.0}
    given |= dict(zip(names, frozen.args, strict=False)) | frozen.kwds
    columns = []
    for name in names:
        column = as_numbers(given[name], name)
        columns.append(column[:, 0] if column.shape[1:] == (1,) else column)
    try:
        found = np.broadcast_arrays(*columns)
    except ValueError as error:
        shapes = ", ".join(str(column.shape) for column in columns)
        msg = f"`frozen` must have parameters of one length, got shapes {shapes}."
        raise ValueError(msg) from error
    shape = found[0].shape
    if len(shape) > 1:
        msg = f"`frozen` must have parameters of shape (n,), got shape {shape}."
        raise ValueError(msg)
    if n is not None:
        count = check_integer(n, "n", 0)
        if shape not in ((), (1,), (count,)):
            msg = (
                "`n` must be left out, or be the length of the parameters, "
                f"{shape[0]}, got {n}."
            )
            raise ValueError(msg)
        found = np.broadcast_arrays(*found, np.empty(count))[:-1]
    return np.column_stack([np.atleast_1d(column) for column in found])


def _discrete(family: Any, rows: Float64Array) -> DiscreteLaw:
    """Return the law on the values that hold all but the far tails of every row."""
    parameters = rows.T[:, :, None]
    low, high = family.ppf(_LEFT_OUT, *rows.T), family.isf(_LEFT_OUT, *rows.T)
    wrong = np.flatnonzero(~np.isfinite(low) | ~np.isfinite(high))
    if len(wrong):
        i = int(wrong[0])
        msg = (
            f"`frozen` must have parameters for which `{family.name}` has a law, got "
            f"{', '.join(f'{value:g}' for value in rows[i])} in row {i}."
        )
        raise ValueError(msg)
    if len(rows) == 0:
        return DiscreteLaw(np.zeros(1), np.empty((0, 1)))
    first, last = float(low.min()), float(high.max())
    if last - first >= _MOST_VALUES:
        msg = (
            f"`frozen` must take at most {_MOST_VALUES} values in all rows together, "
            f"got those from {first:g} to {last:g}: take a continuous law."
        )
        raise ValueError(msg)
    values = np.arange(first, last + 1.0)
    shares = family.pmf(np.broadcast_to(values, (len(rows), len(values))), *parameters)
    return DiscreteLaw(values, shares / shares.sum(axis=1, keepdims=True))
