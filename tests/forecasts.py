"""Forecasts for tests to ask, made by public names alone."""

from numpy.typing import ArrayLike
from scipy import stats

from localexpert import PredictiveDistribution


def of_values(values: ArrayLike, rows: ArrayLike) -> PredictiveDistribution:
    """Return forecasts of values (V,) with probabilities (n, V)."""
    return PredictiveDistribution.from_arrays(atoms=values, masses=rows)


def normal(center: ArrayLike, scale: ArrayLike = 1.0) -> PredictiveDistribution:
    """Return normal forecasts."""
    return PredictiveDistribution.from_scipy(stats.norm(center, scale))


def beside(
    smooth: PredictiveDistribution,
    atoms: ArrayLike,
    masses: ArrayLike,
    widths: ArrayLike | None = None,
) -> PredictiveDistribution:
    """Return smooth forecasts with values (A,) of probabilities (n, A) beside them."""
    arrays = smooth.to_arrays() | {"atoms": atoms, "masses": masses, "widths": widths}
    arrays["moments"] = None  # those of the smooth part alone
    return PredictiveDistribution.from_arrays(**arrays)
