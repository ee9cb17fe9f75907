"""What bandwidths of two kernel densities are worth: log loss, leaving one out."""

from __future__ import annotations

import numpy as np

from calibration.densities.kernel_density import KernelDensity
from calibration.typing import Float64Array


class LeaveOneOut:
    """Log loss of Bayes' rule on kernel densities, every row left out in turn.

    A row of class c that is left out takes its own term from the sum of its class,
    and itself from n and n_c. A cell of weight w holds w rows (one, if w < 1).

    Parameters
    ----------
    place : ndarray of shape (n_cells,)
    weights : ndarray of shape (2, n_cells)
        Weight of each class in each cell.
    prior_weight : float
        Rows of the base rate added at every score.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.densities.kernel_density import KernelDensity
    >>> place, weights = np.array([0.0, 1.0]), np.array([[2.0, 0.0], [0.0, 2.0]])
    >>> judge = LeaveOneOut(place, weights, 0.5)
    >>> narrow, wide = (
    ...     [KernelDensity.from_rows(place, w, "gaussian", h) for w in weights]
    ...     for h in (0.1, 10.0)
    ... )
    >>> bool(judge.loss(*map(judge.heights, narrow, (0, 1))) < 0.3)
    True
    >>> bool(judge.loss(*map(judge.heights, wide, (0, 1))) > 0.7)
    True
    """

    def __init__(self, place: Float64Array, weights: Float64Array, prior_weight: float):
        self._place = place
        self._weights = weights
        self._prior_weight = prior_weight
        self._rows = np.minimum(weights, 1.0)
        self._totals = weights.sum(axis=1)

    def heights(
        self, density: KernelDensity, k: int
    ) -> tuple[float, Float64Array, Float64Array]:
        """Return what `loss` needs of one bandwidth of class k.

        Parameters
        ----------
        density : KernelDensity
            Of the rows of class k.
        k : {0, 1}

        Returns
        -------
        bandwidth : float
        whole, without : ndarrays of shape (n_cells,)
            Kernel sums over the bandwidth: of all rows of the class, and without one
            row of the cell.
        """
        h = density.bandwidth
        whole = density.sums(self._place)
        without = whole - self._rows[k] * density.own(self._place)
        # Of a row on its own rounding may leave less than nothing.
        return h, whole / h, np.maximum(without, 0.0) / h

    def loss(
        self,
        heights0: tuple[float, Float64Array, Float64Array],
        heights1: tuple[float, Float64Array, Float64Array],
    ) -> float:
        """Return the mean log loss, by weight, of rows left out.

        Parameters
        ----------
        heights0, heights1 : tuples
            What `heights` returns for class 0 and for class 1.

        Returns
        -------
        float
        """
        # In the unit of the heights: rows per bandwidth, the geometric mean of the two.
        peak = self._prior_weight / np.sqrt(heights0[0] * heights1[0])
        total = 0.0
        for c, (own, other) in enumerate(((heights0, heights1), (heights1, heights0))):
            held = self._weights[c] > 0.0
            row = self._rows[c][held]
            n = self._totals.sum() - row
            # A left-out row must not count in the prior by which it is judged, either.
            rate = (self._totals[c] - row + 1.0) / (n + 2.0)
            right = own[2][held] + peak * rate
            wrong = other[1][held] + peak * (1.0 - rate)
            # -log P(own class) = log(1 + wrong / right).
            total += float(self._weights[c][held] @ np.log1p(wrong / right))
        return total / float(self._totals.sum())
