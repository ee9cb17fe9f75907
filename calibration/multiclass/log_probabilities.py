"""Scores of several classes as log-probabilities that are finite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration.typing import Float64Array

# What a probability that rounds to 0 is: the least float of full precision.
LEAST = float(np.finfo(np.float64).tiny)
# Logits this far below the largest keep their order and no more: squares are finite.
_DEEPEST = -1e60
# Numbers that a pass has at hand at once: about what a core's cache holds.
_BLOCK = 2**17


@dataclass(frozen=True)
class LogProbabilityScale:
    """Turns scores (n, k) into log-probabilities (k, n), a column for each row.

    A probability of exactly 0, as forests say, means "less than my least positive
    one" and not a logarithm of minus infinity: it counts as half of the least positive
    score seen, as an assay's value below its limit of detection is read.

    Parameters
    ----------
    scale : {"probability", "logit"}
    least : float
        What a probability of 0 counts as.
    """

    scale: str
    least: float = LEAST

    @classmethod
    def of(cls, scale: str, table: Float64Array, n: float) -> LogProbabilityScale:
        """Choose what a 0 counts as, from scores (m, k) that weigh n.

        Without exact zeros it is the least positive float. Scores that are all 0 and 1
        have no least one: a 0 counts as half a row in n + 1.
        """
        if scale != "probability" or table.min() > 0.0:
            return cls(scale)
        inner = table[(table > 0.0) & (table < 1.0)]
        least = 0.5 * float(inner.min()) if len(inner) else 0.5 / (n + 1.0)
        return cls(scale, max(least, LEAST))

    def __call__(self, table: Float64Array) -> Float64Array:
        """Return log-probabilities, shape (k, n)."""
        z = np.empty(table.shape[::-1])
        if self.scale == "probability":
            # Subnormal scores are positive: they count as the least normal one.
            np.maximum(table.T, LEAST, out=z)
            if self.least > LEAST:
                z[table.T == 0.0] = self.least
            np.log(z, out=z)
            return z
        z[...] = table.T
        z -= z.max(axis=0)
        np.maximum(z, _DEEPEST, out=z)
        return log_softmax(z)


def column_blocks(z: Float64Array) -> Iterator[slice]:
    """Yield the columns of z (k, n) in blocks that a core's cache holds."""
    k, n = z.shape
    size = max(_BLOCK // k, 64)
    return (slice(start, start + size) for start in range(0, n, size))


def log_softmax(z: Float64Array) -> Float64Array:
    """Subtract the logarithm of each column's sum of exponentials, in place.

    Parameters
    ----------
    z : ndarray of shape (k, n)

    Returns
    -------
    ndarray of shape (k, n)
        `z` itself.
    """
    for block in column_blocks(z):
        part = z[:, block]
        part -= part.max(axis=0)
        part -= np.log(np.exp(part).sum(axis=0))
    return z


def mix_uniform(z: Float64Array, n: float) -> Float64Array:
    r"""Mix columns of log-probabilities with the uniform law, as by Laplace, in place.

    :math:`(1 - \frac{1}{n+1}) p + \frac{1}{(n+1) k}`: of n rows, one more that may be
    of any class.

    Parameters
    ----------
    z : ndarray of shape (k, n_rows)
    n : float

    Returns
    -------
    ndarray of shape (k, n_rows)
        `z` itself.
    """
    z += np.log(n / (n + 1.0))
    np.logaddexp(z, -np.log((n + 1.0) * len(z)), out=z)
    return z


def to_probabilities(z: Float64Array) -> Float64Array:
    """Return the softmax of columns, shape (n, k); `z` is used up.

    Parameters
    ----------
    z : ndarray of shape (k, n)

    Returns
    -------
    ndarray of shape (n, k)
        Rows sum to 1.
    """
    p = np.ascontiguousarray(np.exp(log_softmax(z)).T)
    p /= p.sum(axis=1, keepdims=True)
    return p
