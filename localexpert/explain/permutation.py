"""`permutation_importance`: how much worse forecasts get if a feature is shuffled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibration import brier_score
from calibration._validation import (
    check_choice,
    check_integer,
    check_same_length,
    check_vector,
    check_verbose,
    check_weights,
    make_rng,
    refuse,
)
from calibration.typing import Float64Array, Int64Array
from localexpert._validation import check_levels
from localexpert.data.unseen import unseen_once
from localexpert.distribution.predictors import check_predicts, predict_dist
from localexpert.explain.shapley import MixedRows, read_table
from localexpert.metrics import crps_score, pinball_loss
from localexpert.partial.outcomes import is_partial, read_ends, read_right
from localexpert.progress import show_progress


@dataclass(frozen=True, eq=False, repr=False)
class PermutationImportance:
    """Increases of losses when a feature is permuted: means over repeats, and errors.

    The order of losses is: the CRPS, the pinball loss of every level, and for every
    threshold v the Brier score of the event "y is at most v".

    Parameters
    ----------
    feature_names : tuple of str
        P features, or groups of them.
    levels : ndarray of shape (q,)
    thresholds : ndarray of shape (k,)
    baseline : ndarray of shape (1 + q + k,)
        Losses with every feature in its place.
    increases : ndarray of shape (P, 1 + q + k)
        Mean increases of the losses.
    standard_errors : ndarray of shape (P, 1 + q + k)
        Of these means over the draws of permutations.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PermutationImportance
    >>> importance = PermutationImportance(
    ...     ("age", "dose"),
    ...     levels=np.array([0.5]),
    ...     thresholds=np.array([2.0]),
    ...     baseline=np.array([1.0, 0.5, 0.25]),
    ...     increases=np.array([[0.1, 0.0, 0.0], [0.5, 0.3, 0.1]]),
    ...     standard_errors=np.full((2, 3), 0.02),
    ... )
    >>> print(importance)
    increase of the CRPS (1 with every feature in its place)
      dose       +0.5   (se 0.02)
      age        +0.1   (se 0.02)
    >>> importance.to_frame("pinball")
    level of the quantile  0.5
    age                    0.0
    dose                   0.3
    """

    feature_names: tuple[str, ...]
    levels: Float64Array
    thresholds: Float64Array
    baseline: Float64Array
    increases: Float64Array
    standard_errors: Float64Array

    def __repr__(self) -> str:
        crps = f"increase of the CRPS ({self.baseline[0]:.4g}"
        lines = [f"{crps} with every feature in its place)"]
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
        return self.increases[:, 1 : 1 + len(self.levels)]

    @property
    def events(self) -> Float64Array:
        """Increases of the Brier score of events per threshold, shape (P, k)."""
        return self.increases[:, 1 + len(self.levels) :]

    def to_frame(self, loss: Literal["crps", "pinball", "events"] = "events") -> Any:
        """Return a table with a line per feature, for a heat map; needs pandas.

        Parameters
        ----------
        loss : {"crps", "pinball", "events"}
            The columns: one, the levels, or the thresholds.

        Returns
        -------
        pandas.DataFrame of shape (P, 1), (P, q) or (P, k)
            The index of the columns has a name. A heat map writes it below the columns.
        """
        import pandas as pd

        check_choice(loss, "loss", ("crps", "pinball", "events"))
        columns = {
            "crps": pd.Index(["crps"], name="loss"),
            "pinball": pd.Index(self.levels, name="level of the quantile"),
            "events": pd.Index(self.thresholds, name="threshold"),
        }[loss]
        table = getattr(self, loss).reshape(len(self.feature_names), len(columns))
        return pd.DataFrame(table, index=list(self.feature_names), columns=columns)


@unseen_once()
def permutation_importance(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    levels: ArrayLike = (0.05, 0.25, 0.5, 0.75, 0.95),
    thresholds: ArrayLike | None = None,
    n_repeats: int = 5,
    groups: Mapping[str, Sequence[Any]] | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | None = None,
    verbose: bool | int = 0,
) -> PermutationImportance:
    """Return how much worse forecasts get when a feature's values change rows.

    It is measured for whole distributions (CRPS), for every quantile (pinball loss) and
    for every event "y is at most v" (Brier score). Each permutation needs one forecast.

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
        It forecasts once, and then once for every feature and repeat.
    X : array or data frame of shape (n, p)
        Rows to score. Rows that the model was not fitted on are best.
    y : array-like of shape (n,) or (n, 2)
        Of two columns: lower and upper ends of targets, known or right-censored. The
        CRPS is then the only loss: there are no levels and no thresholds.
    levels : array-like of shape (q,)
        In (0, 1).
    thresholds : array-like of shape (k,), optional
        Values v of the events; default the quantiles of `y` at `levels`.
    n_repeats : int
        Permutations, at least 2; each is the same for all features.
    groups : dict of str to list, optional
        Features that are permuted together; see `explain_forecast`.
    sample_weight : array-like of shape (n,), optional
        Each row counts as so many rows, in the losses and as donor of values.
    random_state : int, optional
    verbose : int or bool
        0: silent; 1: a progress bar on stderr.

    Returns
    -------
    PermutationImportance

    Notes
    -----
    Every row gets the feature's value from another row, its donor. Without weights
    donors are a permutation of the rows. With weights a row is donor about n w / sum(w)
    times (systematic sampling, shuffled).

    If other features can replace a feature, it seems unimportant; permute such features
    as a group. If you need only one score of single features, use
    ``permutation_importance`` of `sklearn.inspection` with `crps_scorer`.

    References
    ----------
    Breiman (2001), Random forests. Fisher, Rudin & Dominici (2019), All models are
    wrong, but many are useful.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert import permutation_importance
    >>> class Coin:
    ...     def predict_dist(self, X):
    ...         p = 0.1 + 0.8 * X[:, 0]
    ...         p = np.column_stack([1 - p, p])
    ...         return PredictiveDistribution.from_arrays(atoms=[0, 1], masses=p)
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> found = permutation_importance(Coin(), X, X[:, 0], levels=[0.5], random_state=0)
    >>> bool(found.crps[0] > 0.1), float(found.crps[1])
    (True, 0.0)
    """
    check_predicts(model)
    check_integer(n_repeats, "n_repeats", 2)
    verbose = check_verbose(verbose)
    table, target = read_rows(X, y)
    n, partial = len(target), target.ndim == 2
    weight = check_weights(sample_weight, n)
    asked = check_levels(levels, "levels", inner=True)
    if partial:
        read_right(target)
        if thresholds is not None:
            refuse("thresholds", "be None where `y` has two ends", f"{thresholds!r}")
        asked = values = np.empty(0)
    elif thresholds is None:
        values = np.quantile(target, asked, weights=weight, method="inverted_cdf")
    else:
        values = check_vector(np.atleast_1d(np.asarray(thresholds)), "thresholds")
    mixed = MixedRows.of(table, groups)
    rng, size = make_rng(random_state), len(mixed.names)
    donors = [_draw_donors(weight, rng) for _ in range(n_repeats)]

    def measure(forecast: Any) -> Float64Array:
        options = {"sample_weight": weight}
        pinball = [pinball_loss(target, forecast, level=q, **options) for q in asked]
        snap = forecast.law.snap
        below = [(snap(target) <= snap(v), forecast.cdf(v)) for v in values]
        events = [brier_score(*both, **options) for both in below]
        return np.array([crps_score(target, forecast, **options), *pinball, *events])

    baseline = measure(predict_dist(model, table))
    increases = np.empty((size, n_repeats, len(baseline)))
    with show_progress(verbose, "permutation importance") as progress:
        for j in progress.track(range(size), size):
            for repeat, rows in enumerate(donors):
                places = np.repeat(np.arange(n)[:, None], size, axis=1)
                places[:, j] = rows
                forecast = predict_dist(model, mixed.mix(places))
                increases[j, repeat] = measure(forecast) - baseline
    mean, spread = increases.mean(axis=1), increases.std(axis=1, ddof=1)
    errors = spread / np.sqrt(n_repeats)
    return PermutationImportance(mixed.names, asked, values, baseline, mean, errors)


def read_rows(
    X: Any, y: ArrayLike, X_name: str = "X", y_name: str = "y"
) -> tuple[Any, Float64Array]:
    """Return a table that is not empty, and a target, or two ends, for each row."""
    table = read_table(X, X_name)
    if is_partial(y):
        target = np.column_stack(read_ends(y, y_name))
    else:
        target = check_vector(y, y_name)
    check_same_length(len(table), f"`{X_name}`", len(target), y_name)
    return table, target


def _draw_donors(weight: Float64Array, rng: np.random.Generator) -> Int64Array:
    """Return n rows in random order, each about in proportion to its weight.

    Equally spaced marks on the cumulated weights: a permutation if all are equal.
    """
    n = len(weight)
    share = weight * (n / weight.sum())
    # Systematic resampling: rows are drawn as often as their weight says, up to 1.
    marks = np.arange(n) + rng.random()
    drawn = np.searchsorted(np.cumsum(share), marks, side="right")
    last = np.flatnonzero(weight)[-1]
    return rng.permutation(np.minimum(drawn, last)).astype(np.int64)
