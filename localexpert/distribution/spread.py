"""`SpreadParts`: what the variance of a forecast is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibration.typing import Float64Array
from localexpert.law.law import Law


@dataclass(frozen=True)
class SpreadParts:
    r"""Three parts of each row's variance, by the law of total variance.

    A forecast averages members: roads :math:`k` of weight :math:`w_k`, and in each the
    models of :math:`J` folds. Their mixture has the variance

    .. math::
        \sum_k \frac{w_k}{J} \sum_j V_{kj}
        + \sum_k \frac{w_k}{J} \sum_j (m_{kj} - m_k)^2
        + \sum_k w_k (m_k - m)^2

    of members with means :math:`m_{kj}` and variances :math:`V_{kj}`.

    Parameters
    ----------
    within : ndarray of shape (n,)
        Mean variance of a member: the noise that all members see.
    folds : ndarray of shape (n,)
        Variance of the folds' means in their road.
    roads : ndarray of shape (n,)
        Variance of the roads' means.

    Examples
    --------
    >>> from localexpert import SpreadParts
    >>> parts = SpreadParts(within=[3.0], folds=[0.5], roads=[0.5])
    >>> float(parts.total[0]), float(parts.disagreement[0])
    (4.0, 0.25)
    """

    within: Float64Array
    folds: Float64Array
    roads: Float64Array

    @property
    def total(self) -> Float64Array:
        """Variance of the mixture of all members, shape (n,)."""
        parts = self.within, self.folds, self.roads
        return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

    @property
    def disagreement(self) -> Float64Array:
        """Share of the variance that is disagreement, in [0, 1], shape (n,)."""
        apart = np.sum([self.folds, self.roads], axis=0)
        whole = self.total
        share = np.zeros(len(whole))
        np.divide(apart, whole, out=share, where=whole > 0.0)
        return share


def spread_parts(members: Sequence[tuple[float, Sequence[Law]]]) -> SpreadParts:
    """Return the parts of the variance of a mixture.

    Parameters
    ----------
    members : sequence of (float, sequence of laws)
        The weight of each road, with sum 1, and the laws of its folds.

    Returns
    -------
    SpreadParts
    """
    weights = np.array([weight for weight, _ in members])[:, None]
    within, folds, means = [], [], []
    for _, laws in members:
        moments = np.stack([law.moments() for law in laws])
        within.append(moments[:, :, 1].mean(axis=0))
        folds.append(moments[:, :, 0].var(axis=0))
        means.append(moments[:, :, 0].mean(axis=0))
    around = np.array(means) - (weights * means).sum(axis=0)
    parts = np.array(within), np.array(folds), around**2
    return SpreadParts(*((weights * part).sum(axis=0) for part in parts))
