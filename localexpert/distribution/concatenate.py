"""`concatenate`: the rows of several forecasts, one after another."""

from __future__ import annotations

from collections.abc import Sequence

from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.join import append_laws


def concatenate(dists: Sequence[PredictiveDistribution]) -> PredictiveDistribution:
    """Return the rows of several distributions as one, in their order.

    Parameters
    ----------
    dists : sequence of PredictiveDistribution
        One or more, of any kinds of laws: of parts of a table that were forecast one
        by one, of models for groups of rows.

    Returns
    -------
    PredictiveDistribution
        Of as many rows as all have. Its law is of the parts' kind where all are of
        one. Where values have probability of their own, they and the widths of their
        cells are shared by all rows: log scores there are in units of those.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution, concatenate
    >>> coin = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=[[0.5, 0.5]])
    >>> sure = PredictiveDistribution.from_arrays(atoms=[2], masses=[[1.0]])
    >>> both = concatenate([coin, sure])
    >>> both, both.mean()
    (PredictiveDistribution(n=2, 3 values), array([0.5, 2. ]))
    """
    if not isinstance(dists, list | tuple):
        msg = (
            "`dists` must be a list of PredictiveDistribution, got "
            f"{type(dists).__name__}."
        )
        raise TypeError(msg)
    if len(dists) == 0:
        msg = "`dists` must hold at least one distribution, got none."
        raise ValueError(msg)
    for i, dist in enumerate(dists):
        if not isinstance(dist, PredictiveDistribution):
            msg = (
                "`dists` must hold PredictiveDistribution, got "
                f"{type(dist).__name__} at position {i}."
            )
            raise TypeError(msg)
    return PredictiveDistribution(append_laws([dist.law for dist in dists]))
