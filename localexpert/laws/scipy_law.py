"""`ScipyLaw`: a continuous family of `scipy.stats` with parameters for each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert._validation import check_array
from localexpert.laws.law import freeze_fields
from localexpert.laws.meshed import MeshedLaw

# Families that know no more of their upper tail than 1 - F see it end about here.
_FURTHEST = 8.0
# An infinite density, as at 0 of a gamma law of shape 0.5, is taken to be exp of this.
_GREATEST_LOG = 300.0


@dataclass(frozen=True, eq=False, repr=False)
class ScipyLaw(MeshedLaw):
    """The law of `family` with the parameters of each row.

    Parameters
    ----------
    family : str or rv_continuous
        The name of a continuous distribution in `scipy.stats`, or one of one's own.
    parameters : array-like of shape (n, P)
        Its shapes, location and scale, in this order.

    Notes
    -----
    CDF, survival function, density, quantiles, moments and entropy are scipy's.
    Integrals for the CRPS and partial means are Gauss-Legendre sums between quantiles,
    right to about 1e-6 of the spread where the density is smooth, and to 1e-4 where it
    has corners. Quantiles that scipy rounds to infinity are those at 8 normal
    deviations, and a density that is infinite is taken to be exp(300).

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.laws.scipy_law import ScipyLaw
    >>> law = ScipyLaw("gamma", [[2.0, 0.0, 3.0], [9.0, 0.0, 1.0]])
    >>> law.moments()[:, :2]
    array([[ 6., 18.],
           [ 9.,  9.]])
    """

    family: Any
    parameters: Float64Array
    _ends: tuple[float, float] = field(init=False)

    def __post_init__(self) -> None:
        family = _find_family(self.family)
        names = parameter_names(family)
        rows = check_array(self.parameters, "parameters", (None, len(names)))
        freeze_fields(self, parameters=rows)
        # Found by its name wherever the law is read again.
        known = _is_known(family)
        object.__setattr__(self, "family", family.name if known else family)
        low, high = (np.ravel(end) for end in family.support(*rows.T))
        wrong = np.flatnonzero(np.isnan(low) | np.isnan(high))
        if len(wrong):
            i = int(wrong[0])
            got = ", ".join(f"{a}={b:g}" for a, b in zip(names, rows[i], strict=True))
            msg = (
                f"`parameters` must be such that `{family.name}` has a law, "
                f"got {got} in row {i}."
            )
            raise ValueError(msg)
        ends = float(low.min(initial=np.inf)), float(high.max(initial=-np.inf))
        object.__setattr__(self, "_ends", ends)

    def __len__(self) -> int:
        return len(self.parameters)

    def __reduce__(self) -> tuple[type[ScipyLaw], tuple[Any, ...]]:
        return type(self), (self.family, self.parameters)

    @property
    def support(self) -> tuple[float, float]:
        """Least and greatest end of the rows' supports."""
        return self._ends

    def is_like(self, other: object) -> bool:
        """Say whether rows of another law could be rows of this one.

        Parameters
        ----------
        other : object

        Returns
        -------
        bool
        """
        return isinstance(other, ScipyLaw) and other.family == self.family

    def take(self, rows: slice | NDArray[Any]) -> ScipyLaw:
        return ScipyLaw(self.family, self.parameters[rows])

    def _ask(self, method: str, *values: Float64Array) -> Float64Array:
        """Return what the family says, of values (n, k) if any."""
        ask = getattr(_find_family(self.family), method)
        # What overflows or is not defined is said by the answer.
        with np.errstate(all="ignore"):
            answer = ask(*values, *self.parameters.T[:, :, None])
        return np.asarray(answer, dtype=np.float64)

    def cdf(self, y: Float64Array) -> Float64Array:
        return self._ask("cdf", y)

    def sf(self, y: Float64Array) -> Float64Array:
        return self._ask("sf", y)

    def logpdf(self, y: Float64Array) -> Float64Array:
        return np.minimum(self._ask("logpdf", y), _GREATEST_LOG)

    def ppf(self, q: Float64Array) -> Float64Array:
        return self._ask("ppf", q)

    def ppf_scores(self, scores: Float64Array) -> Float64Array:
        found = self._quantiles(scores)
        lost = np.isinf(found) & np.isfinite(scores)
        if not lost.any():
            return found
        nearer = self._quantiles(np.clip(scores, -_FURTHEST, _FURTHEST))
        return np.where(lost, nearer, found)

    def _quantiles(self, scores: Float64Array) -> Float64Array:
        lower = self._ask("ppf", ndtr(np.minimum(scores, 0.0)))
        upper = self._ask("isf", ndtr(-np.maximum(scores, 0.0)))
        return np.where(scores <= 0.0, lower, upper)

    def moments(self) -> Float64Array:
        family = _find_family(self.family)
        with np.errstate(all="ignore"):
            parts = family.stats(*self.parameters.T, moments="mvsk")
            shape = (len(self),)
            m, v, s, k = (np.broadcast_to(np.asarray(p, float), shape) for p in parts)
            return np.column_stack([m, v, s * v**1.5, (k + 3.0) * v**2])

    def entropy(self) -> Float64Array:
        return np.broadcast_to(self._ask("entropy")[:, 0], (len(self),)).copy()


def parameter_names(family: Any) -> list[str]:
    """Return the names of a family's parameters, in scipy's order.

    Parameters
    ----------
    family : rv_continuous or rv_discrete

    Returns
    -------
    list of str
    """
    shapes = [] if family.shapes is None else family.shapes.split(",")
    last = ["loc", "scale"] if isinstance(family, stats.rv_continuous) else ["loc"]
    return [name.strip() for name in shapes] + last


def _is_known(family: Any) -> bool:
    """Say whether scipy.stats has the family; a frozen law holds a copy of it."""
    named: Any = getattr(stats, str(family.name), None)
    return type(named) is type(family) and (named.a, named.b) == (family.a, family.b)


def _find_family(family: Any) -> Any:
    """Return a continuous family by its name, or as it is."""
    found = getattr(stats, family, None) if isinstance(family, str) else family
    if not isinstance(found, stats.rv_continuous):
        msg = (
            "`family` must be a continuous distribution of scipy.stats or its name, "
            f"got {family!r}."
        )
        raise TypeError(msg)
    return found
