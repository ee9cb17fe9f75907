"""Similarity binning averaging (SBA): the event rate of a row's own neighbours."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.neighbors import NearestNeighbors

from calibration._validation import (
    as_numbers,
    check_integer,
    check_labels,
    check_number,
    check_same_length,
    check_weights,
    is_auto,
    refuse,
    show,
    warn_of_light,
)
from calibration.base.calibrators import Scale, forget_fit
from calibration.neighbours.side_information import SideInformationCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# Distances this close, as a share, are equal but for rounding.
_TIE = 1e-9
# Distances held at a time.
_CHUNK = 2**21


class SBACalibrator(SideInformationCalibrator):
    r"""Similarity binning averaging: the event rate of the nearest neighbours.

    It needs the features beside the score: neighbours are the calibration rows that
    are near in features and score together.

    Parameters
    ----------
    n_neighbors : int or "auto"
        Number k of neighbours; "auto" takes sqrt(n) rounded.
    score_weight : float
        Weight of the score's distance against that of one feature; each feature and
        the score are divided by their standard deviation first.
    smoothing : float
        Rows at the base rate that are added to the neighbours. 0 gives plain event
        rates, which may be 0 or 1.
    scale : {"probability", "logit", "real"}
        What a score is. Distances are measured on it.

    Attributes
    ----------
    n_neighbors_ : int
        The k in use.
    units_ : ndarray of shape (n_features + 1,)
        What features and score are multiplied by; 0 if one is constant.
    weight0_, weight1_ : ndarrays of shape (n_points,)
        Weight of each class in the distinct rows.
    search_ : NearestNeighbors
        Finds neighbours among them.
    reach_ : int
        Neighbours asked for at first.
    base_rate_ : float
        Share of class 1.
    constant_ : float or None
        The answer where there was nothing to learn.
    n_features_in_ : int

    Notes
    -----
    Equal rows are one point with the weight of each class. The answer is the mean
    label of the nearest points that hold a weight of k; points at the distance where
    k is reached share what is left to k in proportion to their weights, so neither
    the order of rows nor whether they are repeated or weighted matters.

    References
    ----------
    Bella, Ferri, Hernandez-Orallo & Ramirez-Quintana (2009), Similarity-binning
    averaging: a generalisation of binning calibration.

    Examples
    --------
    >>> from calibration.neighbours.sba import SBACalibrator
    >>> X = [[0.0], [0.0], [5.0], [5.0]]
    >>> sba = SBACalibrator(2).fit(X, [0.4, 0.6, 0.4, 0.6], [0, 0, 1, 0])
    >>> sba.predict([[0.0], [5.0]], [0.5, 0.5])
    array([0. , 0.5])
    """

    n_neighbors_: int
    units_: Float64Array
    weight0_: Float64Array
    weight1_: Float64Array
    search_: NearestNeighbors
    reach_: int
    n_features_in_: int

    def __init__(
        self,
        n_neighbors: int | Literal["auto"] = "auto",
        *,
        score_weight: float = 1.0,
        smoothing: float = 0.0,
        scale: Scale = "probability",
    ):
        self.n_neighbors = n_neighbors
        self.score_weight = score_weight
        self.smoothing = smoothing
        self.scale = scale

    def fit(
        self,
        X: ArrayLike,
        scores: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Remember the calibration rows.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Features, numbers all.
        scores : array-like of shape (n,) or (n, 1)
            Scores on the scale that `scale` names.
        y : array-like of shape (n,)
            Labels coded 0 and 1.
        sample_weight : array-like of shape (n,), optional
            Non-negative numbers of repetitions.

        Returns
        -------
        self
        """
        self._check_parameters()
        values = self._check_scores(scores)
        table = _check_table(X, len(values))
        summary = ScoreSummary.from_scores(values, y, sample_weight)
        if sample_weight is not None:
            warn_of_light(as_numbers(sample_weight, "sample_weight"))
        k = self._choose_k(summary.n)
        forget_fit(self)
        self._settle(summary, stacklevel=3)
        self.n_neighbors_, self.n_features_in_ = k, table.shape[1]
        if self.constant_ is None:
            ones = check_labels(y).astype(np.float64)
            weight = check_weights(sample_weight, len(values))
            rows = np.column_stack([table, values])
            self._remember(rows, weight * (1.0 - ones), weight * ones)
        return self

    def predict(self, X: ArrayLike, scores: ArrayLike) -> Float64Array:
        """Return the calibrated probability of class 1.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        scores : array-like of shape (n,) or (n, 1)

        Returns
        -------
        ndarray of shape (n,)
        """
        values = self._read_scores(scores)
        table = _check_table(X, len(values))
        if table.shape[1] != self.n_features_in_:
            rule = f"have {self.n_features_in_} features as in `fit`"
            refuse("X", rule, table.shape[1])
        if self.constant_ is not None:
            return np.full(len(values), self.constant_)
        points = np.column_stack([table, values]) * self.units_
        return self._average(points, self.reach_)

    def llr(self, X: ArrayLike, scores: ArrayLike) -> Float64Array:
        """Return log-likelihood ratios: evidence that is free of the training prior.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        scores : array-like of shape (n,) or (n, 1)

        Returns
        -------
        ndarray of shape (n,)
            As logit(`predict`) - logit(`base_rate_`): -inf and +inf where `predict`
            says 0 and 1, which takes a `smoothing` of 0.
        """
        return self._evidence(self.predict(X, scores))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_auto(self.n_neighbors):
            check_integer(self.n_neighbors, "n_neighbors", 1)
        check_number(self.score_weight, "score_weight", 0.0)

    def _choose_k(self, n: float) -> int:
        if self.n_neighbors == "auto":
            return max(1, round(float(np.sqrt(n))))
        if self.n_neighbors > n:
            rule = "not be greater than the number of rows (the sum of weights)"
            refuse("n_neighbors", rule, f"{self.n_neighbors} for {show(n)}")
        return int(self.n_neighbors)

    def _remember(
        self, rows: Float64Array, weight0: Float64Array, weight1: Float64Array
    ) -> None:
        """Sum equal rows to points, scale them and build the search."""
        held = weight0 + weight1 > 0.0
        # Adding zero turns -0.0 into 0.0, its equal: no row has two names.
        points, place = np.unique(rows[held] + 0.0, axis=0, return_inverse=True)
        place = place.ravel()
        self.weight0_, self.weight1_ = np.zeros((2, len(points)))
        np.add.at(self.weight0_, place, weight0[held])
        np.add.at(self.weight1_, place, weight1[held])
        # Units from weighted moments: weights are repetitions here too.
        total = self.weight0_ + self.weight1_
        spread = points - np.average(points, axis=0, weights=total)
        deviation = np.sqrt(np.average(spread**2, axis=0, weights=total))
        varies = points.max(axis=0) > points.min(axis=0)
        self.units_ = np.where(varies, 1.0 / np.where(varies, deviation, 1.0), 0.0)
        self.units_[-1] *= self.score_weight
        # So many points hold a weight of k, whichever they are; one more shows ties.
        reach = np.searchsorted(np.cumsum(np.sort(total)), self.n_neighbors_)
        self.reach_ = min(int(reach) + 2, len(points))
        self.search_ = NearestNeighbors().fit(points * self.units_)

    def _average(self, points: Float64Array, n_asked: int) -> Float64Array:
        """Return event rates around scaled points from `n_asked` neighbours or more."""
        # Chunks bound the memory for distances whatever the number of rows.
        size = max(1, _CHUNK // n_asked)
        if len(points) > size:
            chunks = np.split(points, range(size, len(points), size))
            return np.concatenate([self._average(part, n_asked) for part in chunks])
        distance, index = self.search_.kneighbors(points, n_asked)
        weight0, weight1 = self.weight0_[index], self.weight1_[index]
        filled = np.cumsum(weight0 + weight1, axis=1) >= self.n_neighbors_
        # Rounding may leave the sum of all weights just short of k = n.
        last = np.where(filled.any(axis=1), filled.argmax(axis=1), n_asked - 1)
        radius = distance[np.arange(len(points)), last][:, None]
        inner = distance < radius * (1.0 - _TIE)
        shell = ~inner & (distance <= radius * (1.0 + _TIE))
        inner0, inner1 = (weight0 * inner).sum(axis=1), (weight1 * inner).sum(axis=1)
        shell0, shell1 = (weight0 * shell).sum(axis=1), (weight1 * shell).sum(axis=1)
        # What is left to k, as a share of what lies at the distance of the k-th.
        share = (self.n_neighbors_ - inner0 - inner1) / (shell0 + shell1)
        rate = self._rate(inner0 + share * shell0, inner1 + share * shell1)
        # The shell may go on beyond the neighbours asked for.
        cut = shell[:, -1] & (n_asked < len(self.weight0_))
        if cut.any():
            # Doubling: few rows need it, and these few rounds.
            more = min(2 * n_asked, len(self.weight0_))
            rate[cut] = self._average(points[cut], more)
        return rate


def _check_table(X: ArrayLike, n: int) -> Float64Array:
    """Return features as a finite float64 array of shape (n, n_features)."""
    table = as_numbers(X, "X")
    if table.ndim != 2:
        refuse("X", "have shape (n, n_features)", f"shape {table.shape}")
    check_same_length(n, "`scores`", len(table), "X")
    if not np.isfinite(table).all():
        row = int(np.argmin(np.isfinite(table).all(axis=1)))
        refuse("X", "be finite", f"{table[row].tolist()} in row {row}")
    return table
