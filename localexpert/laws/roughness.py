"""`Roughness`: whether panels are fine enough for Gauss-Legendre sums over them."""

from __future__ import annotations

import numpy as np

from calibration.typing import Float64Array

# A step between two panels' nodes makes an error of about a fourth of what a bend of
# its size within a panel does.
_OF_STEPS = 0.25


class Roughness:
    """How far values at the nodes of panels are from one smooth function.

    Within a panel that is a difference of the values which is 0 for polynomials of one
    degree less than they determine. What happens between the last node of a panel and
    the first of the next no difference within them sees: there the polynomials of both
    must meet at the border that they share.

    Parameters
    ----------
    nodes : ndarray of shape (k,)
        Those of a panel from 0 to 1.
    """

    def __init__(self, nodes: Float64Array) -> None:
        others = [nodes[nodes != node] for node in nodes]
        scale = np.array(
            [np.prod(x - rest) for x, rest in zip(nodes, others, strict=True)]
        )
        self._bend = 1.0 / scale
        self._bend /= np.abs(self._bend).sum()
        # The polynomials through the nodes at 0 and at 1 (Lagrange).
        self._ends = [
            np.array([np.prod(end - rest) for rest in others]) / scale
            for end in (0.0, 1.0)
        ]

    def of(self, values: Float64Array) -> Float64Array:
        """Return how far values bend in each panel, or step beside it.

        Parameters
        ----------
        values : ndarray of shape (n, p, k)

        Returns
        -------
        ndarray of shape (n, p)
        """
        first, last = (values @ end for end in self._ends)
        steps = np.pad(np.abs(first[:, 1:] - last[:, :-1]), ((0, 0), (1, 1)))
        steps = np.maximum(steps[:, :-1], steps[:, 1:])
        return np.asarray(np.maximum(np.abs(values @ self._bend), _OF_STEPS * steps))
