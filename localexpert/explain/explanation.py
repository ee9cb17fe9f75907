"""`Explanation`: what every feature contributes to a number of each forecast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert._validation import check_integer

# Rows and features that `print` shows.
_ROWS_SHOWN, _FEATURES_SHOWN = 3, 10


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Contributions that add up to the difference of a forecast from the base.

    Parameters
    ----------
    of : str
        What is explained: "mean", "quantile 0.9", "P(y > 3)", or a function's name.
    feature_names : tuple of str
        Features, or groups of them.
    values : ndarray of shape (n, P)
        Contributions, in units of what is explained.
    standard_errors : ndarray of shape (n, P)
        Of the sampling of orders; 0 where contributions are exact.
    base : float
        Mean of what is explained over the background rows.
    total : ndarray of shape (n,)
        What is explained, of every row: `base` and the row's contributions, summed.
    inputs : ndarray of str, shape (n, P)
        The rows' values of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.explain import Explanation
    >>> names, inputs = ("age", "dose"), np.array([["61", "2.5"]])
    >>> values, errors = np.array([[-1.0, 3.0]]), np.array([[0.1, 0.1]])
    >>> print(Explanation("mean", names, values, errors, 5.0, np.array([7.0]), inputs))
    mean of row 0: 7 = 5 (base) + contributions
      dose = 2.5    +3   (se 0.1)
      age = 61      -1   (se 0.1)
    """

    of: str
    feature_names: tuple[str, ...]
    values: Float64Array
    standard_errors: Float64Array
    base: float
    total: Float64Array
    inputs: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.total)

    def __repr__(self) -> str:
        n, p = self.values.shape
        return f"Explanation(of={self.of!r}, n={n}, n_features={p})"

    def __str__(self) -> str:
        shown = [self.describe(row) for row in range(min(len(self), _ROWS_SHOWN))]
        if len(self) > _ROWS_SHOWN:
            shown.append(f"and {len(self) - _ROWS_SHOWN} more rows")
        return "\n".join(shown)

    def describe(self, row: int, max_features: int = _FEATURES_SHOWN) -> str:
        """Return a table of one row, the largest contributions first.

        Parameters
        ----------
        row : int
        max_features : int
            Features listed; the others are summed in one line.

        Returns
        -------
        str
        """
        lines = [
            f"{self.of} of row {row}: {self.total[row]:.4g} = "
            f"{self.base:.4g} (base) + contributions"
        ]
        parts = self.largest(row, max_features)
        width = max(len(label) for label, _, _ in parts)
        for label, value, error in parts:
            line = f"  {label:<{width}}  {value:>+10.4g}"
            lines.append(line + (f"   (se {error:.1g})" if error > 0.0 else ""))
        return "\n".join(lines)

    def largest(
        self, row: int, max_features: int = _FEATURES_SHOWN
    ) -> list[tuple[str, float, float]]:
        """Return the largest contributions of a row, and the sum of the others.

        Parameters
        ----------
        row : int
        max_features : int

        Returns
        -------
        list of (label, contribution, standard error)
            The standard error of the others' sum is an upper bound, the sum of theirs.
        """
        check_integer(max_features, "max_features", 1)
        values, errors = self.values[row], self.standard_errors[row]
        order = np.argsort(-np.abs(values), kind="stable")
        kept, rest = order[:max_features], order[max_features:]
        names = [f"{self.feature_names[j]} = {self.inputs[row, j]}" for j in kept]
        parts = [*zip(names, values[kept].tolist(), errors[kept].tolist(), strict=True)]
        if len(rest):
            plural = "s" if len(rest) > 1 else ""
            label = f"{len(rest)} other{plural}"
            parts.append((label, float(values[rest].sum()), float(errors[rest].sum())))
        return parts

    def to_frame(self) -> Any:
        """Return a data frame with a line per row and feature; needs pandas.

        Returns
        -------
        pandas.DataFrame
            Columns row, feature, input, contribution and standard_error.
        """
        import pandas as pd

        n, p = self.values.shape
        return pd.DataFrame(
            {
                "row": np.repeat(np.arange(n), p),
                "feature": list(self.feature_names) * n,
                "input": self.inputs.ravel(),
                "contribution": self.values.ravel(),
                "standard_error": self.standard_errors.ravel(),
            }
        )
