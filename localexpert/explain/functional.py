"""`Functional`: the one number of a forecast that is explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Literal, TypeAlias

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import check_choice, check_level, check_number
from localexpert.distribution.predictive import PredictiveDistribution

Evaluate: TypeAlias = Callable[[PredictiveDistribution], Float64Array]
Name: TypeAlias = Literal["mean", "median", "std", "quantile", "exceedance"]
Target: TypeAlias = Name | Evaluate
_NAMES = ("mean", "median", "std", "quantile", "exceedance")


@dataclass(frozen=True)
class Functional:
    """A map from n distributions to n numbers, with a name.

    Parameters
    ----------
    label : str
    evaluate : callable
    """

    label: str
    evaluate: Evaluate

    @classmethod
    def of(cls, of: Target, at: Any) -> Functional:
        """Read the two arguments of `explain_forecast`."""
        if not callable(of):
            check_choice(of, "of", _NAMES)
        if of in ("quantile", "exceedance") and at is None:
            what = "the level, in (0, 1)" if of == "quantile" else "the value"
            msg = f'`at` must be {what}, where `of` is "{of}", got None.'
            raise ValueError(msg)
        if of == "quantile":
            level = check_level(at, "at")
            return cls(f"quantile {level:g}", lambda dist: dist.ppf(level))
        if of == "exceedance":
            most = np.finfo(float).max
            value = check_number(at, "at", -most, most)
            return cls(f"P(y > {value:g})", lambda dist: dist.sf(value))
        if at is not None:
            msg = (
                '`at` must be None unless `of` is "quantile" or "exceedance", '
                f"got {at!r}."
            )
            raise ValueError(msg)
        if callable(of):
            return cls(getattr(of, "__name__", type(of).__name__), of)
        return cls(of, methodcaller(of))

    def __call__(self, dist: PredictiveDistribution, n: int) -> Float64Array:
        """Return the numbers of n distributions, finite and as many."""
        values = np.asarray(self.evaluate(dist), dtype=np.float64)
        if values.shape != (n,):
            msg = (
                f"`of` must return one number per row, shape ({n},), "
                f"got shape {values.shape}."
            )
            raise ValueError(msg)
        if not np.isfinite(values).all():
            got = values[~np.isfinite(values)][0]
            msg = f"`of` must return finite numbers, got {got} of {self.label}."
            raise ValueError(msg)
        return values
