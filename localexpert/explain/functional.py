"""`Functional`: the one number of a forecast that is explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import check_choice, check_level, check_number
from localexpert.distribution.predictive import PredictiveDistribution

Evaluate: TypeAlias = Callable[[PredictiveDistribution], Float64Array]
Target: TypeAlias = Literal["mean", "quantile", "exceedance"] | Evaluate


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
            check_choice(of, "of", ("mean", "quantile", "exceedance"))
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
        return cls("mean", lambda dist: dist.mean())

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
