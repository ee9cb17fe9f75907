"""Several classes as all their pairs, calibrated one by one and then joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any, cast, get_args

import numpy as np
from sklearn.base import clone

from calibration._validation import check_choice, told_of_light
from calibration.base.calibrators import ScoreCalibrator
from calibration.multiclass.base import ClassScale, MulticlassCalibrator
from calibration.multiclass.class_scores import ClassScores
from calibration.multiclass.coupling import Coupling, couple_pairs, square_pairs
from calibration.selection.names import as_calibrator
from calibration.typing import Float64Array

# Numbers that the pairs of the rows joined at once hold; bounds the memory.
_CHUNK = 1 << 24


class AllPairsCalibrator(MulticlassCalibrator):
    r"""A binary calibrator for each pair of classes, and a coupling of what they say.

    Parameters
    ----------
    calibrator : str or ScoreCalibrator, optional
        Cloned for each pair, its `scale` set to the one below; or one of the names
        that `calibrator_names` lists. Default: `LogisticCalibrator()`.
    coupling : {"least_squares", "log_loss", "pkpd"}
        How pairs are joined; see `couple_pairs`. "log_loss" weighs each pair by its
        rows.
    classes : sequence of length k, optional
        The labels that the columns stand for; default: their numbers.
    scale : {"probability", "logit"}
        What scores are.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels of the columns.
    class_weight_ : ndarray of shape (k,)
        Weight of the rows of each class.
    calibrators_ : list of ScoreCalibrator or None
        Of the pairs (0, 1), (0, 2), ..., (k - 2, k - 1); None of a pair that lacks rows
        of a class.
    constant_ : ndarray of shape (k,) or None
        The one answer to degenerate data.

    Notes
    -----
    The calibrator of classes i < j learns from the rows of these two, whose score is
    :math:`p_j / (p_i + p_j)` (1/2 where both are 0), or :math:`z_j - z_i` of logits,
    with the label 1 for j. Of a pair that lacks rows of a class the answer is
    :math:`(n_j + 1) / (n_i + n_j + 2)`. Two classes are one pair: the answer is that of
    the binary calibrator, clipped to [1e-7, 1 - 1e-7].

    It costs k (k - 1) / 2 calibrators. On scores of a classifier of all classes it has
    done worse than one softmax regression, and is at its best where pairs were learned
    as such: see `AllPairsClassifier`.

    References
    ----------
    Zadrozny & Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates. Wu, Lin & Weng (2004), Probability estimates for multi-class
    classification by pairwise coupling.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import AllPairsCalibrator, log_loss
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1.0, 1.0, 1.0], size=2000)
    >>> y = (rng.uniform(size=(2000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> sharp = p**3 / (p**3).sum(axis=1, keepdims=True)
    >>> calibrated = AllPairsCalibrator().fit(sharp, y).predict(sharp)
    >>> round(log_loss(y, sharp), 2), round(log_loss(y, calibrated), 2)
    (1.17, 0.84)
    """

    class_weight_: Float64Array
    calibrators_: list[ScoreCalibrator | None]

    def __init__(
        self,
        calibrator: str | ScoreCalibrator | None = None,
        coupling: Coupling = "least_squares",
        *,
        classes: Sequence[Any] | None = None,
        scale: ClassScale = "probability",
    ):
        self.calibrator = calibrator
        self.coupling = coupling
        self.classes = classes
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.coupling, "coupling", get_args(Coupling))
        self._make()._check_parameters()

    def _make(self) -> ScoreCalibrator:
        given = "logistic" if self.calibrator is None else self.calibrator
        one = clone(as_calibrator(given))
        return cast(ScoreCalibrator, one.set_params(scale=self.scale))

    def _fit(self, data: ClassScores) -> None:
        self.class_weight_ = data.counts
        members = [
            np.flatnonzero(data.labels == column) for column in range(len(data.counts))
        ]
        self.calibrators_ = []
        for i, j in combinations(range(len(members)), 2):
            if len(members[i]) == 0 or len(members[j]) == 0:
                self.calibrators_.append(None)
                continue
            # In the order of the rows, which a calibrator may hear of.
            pair = data.take(np.sort(np.concatenate([members[i], members[j]])))
            with told_of_light():
                self.calibrators_.append(
                    self._make().fit(
                        self._score(pair.scores, i, j), pair.labels == j, pair.weight
                    )
                )

    def _predict(self, table: Float64Array) -> Float64Array:
        k = table.shape[1]
        out = np.empty_like(table)
        rows = max(1, _CHUNK // k**2)
        for start in range(0, len(table), rows):
            some = slice(start, start + rows)
            out[some] = couple_pairs(
                square_pairs(self._predict_pairs(table[some]), k),
                self.coupling,
                pair_weight=self.class_weight_[:, None] + self.class_weight_,
            )
        return out

    def _predict_pairs(self, table: Float64Array) -> Iterator[Float64Array]:
        """Yield the calibrated probability of j against i, of each pair of classes."""
        places = combinations(range(table.shape[1]), 2)
        for calibrator, (i, j) in zip(self.calibrators_, places, strict=True):
            if calibrator is None:
                # Laplace's rule of succession, with rows of one class or of none.
                n_i, n_j = self.class_weight_[[i, j]]
                yield np.full(len(table), (n_j + 1.0) / (n_i + n_j + 2.0))
            else:
                yield calibrator.predict(self._score(table, i, j))

    def _score(self, table: Float64Array, i: int, j: int) -> Float64Array:
        """Return the score of class j against class i, on the scale of the scores."""
        first, second = table[:, i], table[:, j]
        if self.scale == "logit":
            return second - first
        both = first + second
        score = np.full(len(table), 0.5)
        np.divide(second, both, out=score, where=both > 0.0)
        return score
