"""Several classes as tasks of two: a column against the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibration.multiclass.log_probabilities import LogProbabilityScale
from calibration.typing import Float64Array


def columns_against_rest(table: Float64Array, scale: str) -> Iterator[Float64Array]:
    """Yield the scores of each class as those of a task of two, on the same scale.

    Of logits that is the log-odds log(p_j / sum_(i != j) p_i), exact where p_j rounds
    to 1.

    Parameters
    ----------
    table : ndarray of shape (n, k)
    scale : {"probability", "logit"}

    Yields
    ------
    ndarray of shape (n,)
    """
    if scale == "probability":
        yield from np.ascontiguousarray(table.T)
        return
    z = LogProbabilityScale("logit")(table)
    for j in range(len(z)):
        others = np.delete(z, j, axis=0)
        top = others.max(axis=0)
        yield z[j] - (top + np.log(np.exp(others - top).sum(axis=0)))
