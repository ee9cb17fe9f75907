"""`permutation_importance`: what forecasts lose without the order of a feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from calibration import brier_score, log_loss
from calibration.typing import Float64Array, Int64Array
from localexpert._validation import (
    check_choice,
    check_integer,
    check_level,
    check_same_length,
    check_vector,
    check_verbose,
    check_weights,
    make_rng,
)
from localexpert.data.columns import Columns
from localexpert.data.unseen import unseen_once
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.distribution.predictors import check_predicts, predict_dist
from localexpert.explain.loss_increases import PermutationImportance
from localexpert.explain.mixing import RowMixer, read_table
from localexpert.explain.players import Players
from localexpert.metrics import crps_score, pinball_loss
from localexpert.progress import show_progress

# A forecast of 0 or 1 that fails would make the log loss infinite, and differences
# of such losses mean nothing.
_CLIP = 1e-6


@unseen_once()
def permutation_importance(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    levels: ArrayLike = (0.05, 0.25, 0.5, 0.75, 0.95),
    thresholds: ArrayLike | None = None,
    event_loss: Literal["brier", "log_loss"] = "brier",
    n_repeats: int = 5,
    groups: Mapping[str, Sequence[Any]] | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: int | None = None,
    verbose: bool | int = 0,
) -> PermutationImportance:
    """Return how much worse forecasts get when a feature's values change rows.

    Measured for whole distributions (CRPS), for every quantile (pinball loss) and
    for every event "y is at most v".

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
        Asked once, and once for every feature and repeat.
    X : array or data frame of shape (n, p)
        Rows to score, best ones that the model was not fitted on.
    y : array-like of shape (n,)
    levels : array-like of shape (q,)
        In (0, 1).
    thresholds : array-like of shape (k,), optional
        Values v of the events; default the quantiles of `y` at `levels`.
    event_loss : {"brier", "log_loss"}
        Loss of the events. In the log loss probabilities are held 1e-6 away from 0
        and 1.
    n_repeats : int
        Permutations, at least 2; each is the same for all features.
    groups : dict of str to list, optional
        Features that are permuted together; see `explain_forecast`.
    sample_weight : array-like of shape (n,), optional
        Number of rows that each stands for, in the losses and as donors of values.
    random_state : int, optional
    verbose : int or bool
        0: silent; 1: a progress bar on stderr.

    Returns
    -------
    PermutationImportance

    Notes
    -----
    Every row gets the feature's value of another, its donor. Without weights donors
    are a permutation of the rows; with weights a row is donor about n w / sum(w)
    times (systematic sampling, shuffled).

    A feature whose part others can play seems unimportant; permute such features as a
    group.

    References
    ----------
    Breiman (2001), Random forests. Fisher, Rudin & Dominici (2019), All models are
    wrong, but many are useful.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.explain import permutation_importance
    >>> class Coin:
    ...     def predict_dist(self, X):
    ...         p = 0.1 + 0.8 * X[:, 0]
    ...         p = np.column_stack([1 - p, p])
    ...         return PredictiveDistribution.from_arrays(atoms=[0, 1], masses=p)
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> told = permutation_importance(Coin(), X, X[:, 0], levels=[0.5], random_state=0)
    >>> bool(told.crps[0] > 0.1), float(told.crps[1])
    (True, 0.0)
    """
    check_predicts(model)
    check_choice(event_loss, "event_loss", ("brier", "log_loss"))
    check_integer(n_repeats, "n_repeats", 2)
    verbose = check_verbose(verbose)
    table = read_table(X, "X")
    target = check_vector(y, "y")
    check_same_length(len(table), "`X`", len(target), "y")
    n = len(target)
    weight = np.ones(n) if sample_weight is None else check_weights(sample_weight, n)
    asked = check_vector(np.atleast_1d(np.asarray(levels)), "levels")
    for level in asked:
        check_level(float(level), "levels")
    if thresholds is None:
        values = np.quantile(target, asked, weights=weight, method="inverted_cdf")
    else:
        values = check_vector(np.atleast_1d(np.asarray(thresholds)), "thresholds")
    losses = _Losses(target, weight, asked, values, event_loss)
    players = Players.of(Columns.of(table), groups)
    rng = make_rng(random_state)
    donors = [_draw_donors(weight, rng) for _ in range(n_repeats)]
    mixer, own = RowMixer(table), np.arange(n)
    baseline = losses.measure(predict_dist(model, table))
    size = len(players)
    increases = np.empty((size, n_repeats, len(baseline)))
    with show_progress(verbose, "permutation importance") as progress:
        for j in progress.track(range(size), size):
            moved = players.of_column == j
            for repeat, rows in enumerate(donors):
                places = np.where(moved, rows[:, None], own[:, None])
                forecast = predict_dist(model, mixer.mix(places))
                increases[j, repeat] = losses.measure(forecast) - baseline
    mean, spread = increases.mean(axis=1), increases.std(axis=1, ddof=1)
    errors = spread / np.sqrt(n_repeats)
    return PermutationImportance(
        players.names, asked, values, event_loss, baseline, mean, errors
    )


@dataclass(frozen=True)
class _Losses:
    """All the losses of one forecast: CRPS, pinball losses, losses of events."""

    y: Float64Array
    weight: Float64Array
    levels: Float64Array
    thresholds: Float64Array
    event_loss: str

    def measure(self, dist: PredictiveDistribution) -> Float64Array:
        """Return the losses in a row, shape (1 + q + k,)."""
        weight = self.weight
        crps = crps_score(self.y, dist, sample_weight=weight)
        pinball = [
            pinball_loss(self.y, dist, level=float(level), sample_weight=weight)
            for level in self.levels
        ]
        below = dist.cdf_at(self.thresholds)
        events = [
            self._score(self.y <= v, p)
            for v, p in zip(self.thresholds, below.T, strict=True)
        ]
        return np.array([crps, *pinball, *events])

    def _score(self, happened: Any, p: Float64Array) -> float:
        if self.event_loss == "brier":
            return brier_score(happened, p, sample_weight=self.weight)
        return log_loss(happened, p, clip=_CLIP, sample_weight=self.weight)


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
