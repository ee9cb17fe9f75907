"""`PooledExperts`: strategies on one set of thresholds, weighted out of fold."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.base import clone

from calibration.typing import Float64Array
from localexpert.data.blend import blend_weights
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.base import Experts
from localexpert.experts.thresholds import threshold_widths
from localexpert.progress import current_progress

# Members of less weight cost more time than they gain score.
_LEAST_WEIGHT = 0.05


class PooledExperts:
    """Fit strategies and join their probabilities with non-negative weights.

    Parameters
    ----------
    members : mapping of str to Experts
        Strategies by name; cloned.

    Attributes
    ----------
    weights_ : dict of str to float
        They sum to 1; members below 5 % are left out.
    losses_ : dict of str to float
        Each member's out-of-fold integrated Brier score, which is its CRPS up to the
        pieces between thresholds.
    oof_probabilities_ : ndarray of shape (m, n_thresholds)
        Of the rows that are judged.
    """

    weights_: dict[str, float]
    losses_: dict[str, float]
    oof_probabilities_: Float64Array

    def __init__(self, members: Mapping[str, Experts]):
        self.members = members

    def fit(
        self, sample: Sample, thresholds: Float64Array, importance: Float64Array
    ) -> PooledExperts:
        """Fit every member and the weights.

        Parameters
        ----------
        sample : Sample
            Of n rows.
        thresholds : ndarray of shape (n_thresholds,)
        importance : ndarray of shape (n,)
            What a unit of y is worth in units of the score: the scale of the row.

        Returns
        -------
        self
        """
        self.fitted_: dict[str, Experts] = {}
        for name, member in self.members.items():
            with current_progress().stage(name):
                expert = clone(member)
                self.fitted_[name] = expert.fit(
                    sample.table, sample.y, thresholds, sample.folds, sample.weight
                )
        # The CRPS is the integral of the Brier score over thresholds (Hersbach 2000).
        # In units of y: `importance` carries the coordinate of the frame back.
        judged = sample.judged
        weight = sample.weight[judged]
        below = sample.y[judged, None] <= thresholds
        widths = threshold_widths(thresholds, sample.y, sample.weight)
        cost = np.outer(weight * importance[judged], widths)
        answers = {n: m.oof_probabilities_ for n, m in self.fitted_.items()}
        self.losses_ = {
            name: float((cost * (p - below) ** 2).sum() / weight.sum())
            for name, p in answers.items()
        }
        self.weights_ = blend_weights(answers, below, cost, least=_LEAST_WEIGHT)
        self.fitted_ = {name: self.fitted_[name] for name in self.weights_}
        self.oof_probabilities_ = self._join(answers)
        for member in self.fitted_.values():
            # Joined; kept twice they would be half of a large model.
            del member.oof_probabilities_
        return self

    def predict(self, table: Table) -> Float64Array:
        """Return pooled probabilities of new rows.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        ndarray of shape (n, n_thresholds)
        """
        return self._join({n: m.predict(table) for n, m in self.fitted_.items()})

    def _join(self, answers: Mapping[str, Float64Array]) -> Float64Array:
        parts = [w * answers[name] for name, w in self.weights_.items()]
        # Weights may sum to a little more than 1, and all members be sure.
        joined: Float64Array = np.minimum(np.sum(parts, axis=0), 1.0)
        return joined
