"""`PermutationImportance`: increases of losses, by feature, quantile and threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calibration.typing import Float64Array
from localexpert._validation import check_choice


@dataclass(frozen=True, eq=False, repr=False)
class PermutationImportance:
    """What forecasts lose when a feature is permuted: means over repeats, and errors.

    Losses stand in one order: the CRPS, the pinball loss of every level, the loss of
    the event "y is at most v" of every threshold.

    Parameters
    ----------
    feature_names : tuple of str
        P features, or groups of them.
    levels : ndarray of shape (q,)
    thresholds : ndarray of shape (k,)
    event_loss : {"brier", "log_loss"}
    baseline : ndarray of shape (1 + q + k,)
        Losses with every feature in its place.
    increases : ndarray of shape (P, 1 + q + k)
        Mean increases of the losses.
    standard_errors : ndarray of shape (P, 1 + q + k)
        Of these means over the draws of permutations.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.explain import PermutationImportance
    >>> told = PermutationImportance(
    ...     ("age", "dose"),
    ...     levels=np.array([0.5]),
    ...     thresholds=np.array([2.0]),
    ...     event_loss="brier",
    ...     baseline=np.array([1.0, 0.5, 0.25]),
    ...     increases=np.array([[0.1, 0.0, 0.0], [0.5, 0.3, 0.1]]),
    ...     standard_errors=np.full((2, 3), 0.02),
    ... )
    >>> print(told)
    increase of the CRPS (1 with every feature in its place)
      dose       +0.5   (se 0.02)
      age        +0.1   (se 0.02)
    >>> told.to_frame("pinball")
    level of the quantile  0.5
    age                    0.0
    dose                   0.3
    """

    feature_names: tuple[str, ...]
    levels: Float64Array
    thresholds: Float64Array
    event_loss: Literal["brier", "log_loss"]
    baseline: Float64Array
    increases: Float64Array
    standard_errors: Float64Array

    def __repr__(self) -> str:
        sizes = f"n_features={len(self.feature_names)}, n_levels={len(self.levels)}"
        return f"PermutationImportance({sizes}, n_thresholds={len(self.thresholds)})"

    def __str__(self) -> str:
        lines = [
            f"increase of the CRPS ({self.baseline[0]:.4g} with every feature in its "
            "place)"
        ]
        width = max(map(len, self.feature_names))
        for j in np.argsort(-self.crps, kind="stable"):
            name, error = self.feature_names[j], self.standard_errors[j, 0]
            lines.append(f"  {name:<{width}} {self.crps[j]:>+10.4g}   (se {error:.1g})")
        return "\n".join(lines)

    @property
    def crps(self) -> Float64Array:
        """Increases of the CRPS, shape (P,)."""
        return self.increases[:, 0]

    @property
    def pinball(self) -> Float64Array:
        """Increases of the pinball loss per level, shape (P, q)."""
        return self.increases[:, self._part("pinball")]

    @property
    def events(self) -> Float64Array:
        """Increases of the loss of events per threshold, shape (P, k)."""
        return self.increases[:, self._part("events")]

    def to_frame(
        self,
        loss: Literal["crps", "pinball", "events"] = "events",
        *,
        values: Literal["increases", "standard_errors"] = "increases",
    ) -> Any:
        """Return a table with a line per feature, for a heat map; needs pandas.

        Parameters
        ----------
        loss : {"crps", "pinball", "events"}
            The columns: one, the levels, or the thresholds.
        values : {"increases", "standard_errors"}

        Returns
        -------
        pandas.DataFrame of shape (P, 1), (P, q) or (P, k)
            The index of the columns has a name, which a heat map writes below them.
        """
        import pandas as pd

        check_choice(loss, "loss", ("crps", "pinball", "events"))
        check_choice(values, "values", ("increases", "standard_errors"))
        held = self.increases if values == "increases" else self.standard_errors
        columns = {
            "crps": pd.Index(["crps"], name="loss"),
            "pinball": pd.Index(self.levels, name="level of the quantile"),
            "events": pd.Index(self.thresholds, name="threshold"),
        }
        return pd.DataFrame(
            held[:, self._part(loss)],
            index=list(self.feature_names),
            columns=columns[loss],
        )

    def _part(self, loss: str) -> slice:
        """Return the columns of one kind of loss."""
        q = len(self.levels)
        parts = {"crps": (0, 1), "pinball": (1, 1 + q), "events": (1 + q, None)}
        return slice(*parts[loss])
