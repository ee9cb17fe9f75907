"""Isotonic regression of the labels, plain and centred."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibration._kernels.pav import pool_adjacent_violators
from calibration._validation import check_span, show
from calibration.base.calibrators import MapCalibrator, Scale
from calibration.maps import CalibrationMap, block_starts
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array


class IsotonicCalibrator(MapCalibrator):
    r"""Isotonic regression by pool adjacent violators (PAV).

    Parameters
    ----------
    scale : {"probability", "logit", "real"}
        What a score is. The fit depends on the order of scores only.

    Attributes
    ----------
    map_ : CalibrationMap
        The steps, with class weights. A step lies midway between the last score of one
        block and the first of the next.

    Notes
    -----
    Among all increasing maps, the solution minimises every regular proper scoring rule
    of the training labels at once, at every weighting of the classes. Blocks at the
    ends may be 0 or 1. There the log loss of a new row may be infinite.

    References
    ----------
    Ayer et al. (1955), An empirical distribution function for sampling with
    incomplete information. Brummer & du Preez (2013), The PAV algorithm optimizes
    binary proper scoring rules.

    Examples
    --------
    >>> from calibration import IsotonicCalibrator
    >>> pav = IsotonicCalibrator().fit([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
    >>> pav.predict([0.1, 0.3, 0.6, 0.9])
    array([0. , 0.5, 0.5, 1. ])
    >>> pav.llr([0.1, 0.5, 0.9])
    array([-inf,   0.,  inf])
    """

    def __init__(self, *, scale: Scale = "probability"):
        self.scale = scale

    def llr_map(self) -> CalibrationMap:
        """Return `llr` as a map from scores to log-likelihood ratios (PAV-LLR).

        Returns
        -------
        CalibrationMap
            Steps of logit(map) - logit(base rate); -inf and +inf are allowed. They do
            not depend on the weights of the two classes. Among all increasing maps they
            are the best at any prior (PAV-LLR). If training saw one class only, there
            is no evidence either way: 0.
        """
        check_is_fitted(self)
        weight0, weight1 = self.map_.block_weights()
        n0, n1 = weight0.sum(), weight1.sum()
        if n0 == 0.0 or n1 == 0.0:
            return CalibrationMap.step(self.map_.knots, np.zeros(len(self.map_)))
        with np.errstate(divide="ignore"):
            # logit(n1 / n) - logit(N1 / N), without the detour by probabilities.
            ratio = np.log(weight1 / n1) - np.log(weight0 / n0)
        return CalibrationMap.step(self.map_.knots, ratio)

    def _evidence(self, values: Float64Array) -> Float64Array:
        return self.llr_map()(values)

    def _fit(self, summary: ScoreSummary) -> None:
        first, weight0, weight1 = pool_adjacent_violators(
            summary.weight0, summary.weight1
        )
        self.map_ = CalibrationMap.step(
            block_starts(summary.scores, first),
            weight1 / (weight0 + weight1),
            weight0,
            weight1,
        )


class CenteredIsotonicCalibrator(MapCalibrator):
    r"""Centred isotonic regression: strictly increasing between blocks.

    Parameters
    ----------
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        Linear between the blocks' mean scores, flat beyond the first and last.

    Notes
    -----
    Each block of the isotonic regression is shrunk to one point at the weighted
    mean of its scores.

    References
    ----------
    Oron & Flournoy (2017), Centered isotonic regression: point and interval
    estimation for dose-response studies.

    Examples
    --------
    >>> from calibration import CenteredIsotonicCalibrator
    >>> cir = CenteredIsotonicCalibrator().fit([0.1, 0.3, 0.6, 0.9], [0, 1, 0, 1])
    >>> cir.predict([0.1, 0.275, 0.45, 0.9]).round(3)
    array([0.  , 0.25, 0.5 , 1.  ])
    """

    def __init__(self, *, scale: Scale = "probability"):
        self.scale = scale

    def _fit(self, summary: ScoreSummary) -> None:
        first, weight0, weight1 = pool_adjacent_violators(
            summary.weight0, summary.weight1
        )
        # Blocks' means increase strictly and so do centres: the line between is
        # increasing.
        weight = weight0 + weight1
        # Deviations from a score of the block lose no digits to a far origin.
        origin = summary.scores[first]
        sizes = np.diff(first, append=summary.n_cells)
        with np.errstate(over="ignore", invalid="ignore"):
            spread = summary.weight * (summary.scores - np.repeat(origin, sizes))
            centers = origin + np.add.reduceat(spread, first) / weight
        if not np.isfinite(centers).all():
            low, high = summary.scores[[0, -1]]
            msg = (
                "`scores` must have means that are finite, "
                f"got them from {show(low)} to {show(high)}."
            )
            raise ValueError(msg)
        check_span(centers[0], centers[-1], "scores")
        self.map_ = CalibrationMap.linear(centers, weight1 / weight)
