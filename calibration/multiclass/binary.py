"""Several classes by binary calibrators: one for each class, or for each pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibration._validation import check_choice, refuse, told_of_light
from calibration.base.calibrators import ScoreCalibrator
from calibration.base.log_odds import LogOddsCalibrator
from calibration.binning.all_binnings import ABBCalibrator
from calibration.binning.bbq import BBQCalibrator
from calibration.binning.histogram import HistogramCalibrator
from calibration.densities.nadaraya_watson import NadarayaWatsonCalibrator
from calibration.logistic.piecewise import PiecewiseLogisticCalibrator
from calibration.logistic.polynomial import (
    BetaCalibrator,
    LogisticCalibrator,
    PlattCalibrator,
    QuadraticCalibrator,
    TemperatureCalibrator,
)
from calibration.monotone.elite import ELiTECalibrator
from calibration.monotone.enir import ENIRCalibrator
from calibration.monotone.isotonic import (
    BaggedIsotonicCalibrator,
    CenteredIsotonicCalibrator,
    IsotonicCalibrator,
    VennAbersCalibrator,
)
from calibration.multiclass.base import ClassScale, MulticlassCalibrator
from calibration.multiclass.class_scores import LEAST, ClassScores, LogProbabilityScale
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

OneOfEither = TypeVar("OneOfEither", ScoreCalibrator, MulticlassCalibrator)

FAMILIES: dict[str, type[ScoreCalibrator]] = {
    "abb": ABBCalibrator,
    "bagged_isotonic": BaggedIsotonicCalibrator,
    "bbq": BBQCalibrator,
    "beta": BetaCalibrator,
    "centered_isotonic": CenteredIsotonicCalibrator,
    "elite": ELiTECalibrator,
    "enir": ENIRCalibrator,
    "histogram": HistogramCalibrator,
    "isotonic": IsotonicCalibrator,
    "logistic": LogisticCalibrator,
    "nadaraya_watson": NadarayaWatsonCalibrator,
    "piecewise": PiecewiseLogisticCalibrator,
    "platt": PlattCalibrator,
    "quadratic": QuadraticCalibrator,
    "temperature": TemperatureCalibrator,
    "venn_abers": VennAbersCalibrator,
}


def as_calibrator(calibrator: Any) -> ScoreCalibrator:
    """Return a binary calibrator that is given as it is, or by the name of its family.

    Parameters
    ----------
    calibrator : str or ScoreCalibrator

    Returns
    -------
    ScoreCalibrator
    """
    if isinstance(calibrator, str):
        check_choice(calibrator, "calibrator", FAMILIES)
        return FAMILIES[calibrator]()
    if not isinstance(calibrator, ScoreCalibrator):
        rule = (
            "be a ScoreCalibrator, for instance IsotonicCalibrator(), or the name of "
            "one"
        )
        refuse("calibrator", rule, f"{calibrator!r}", TypeError)
    return calibrator


def on_scale(calibrator: OneOfEither, scale: str) -> OneOfEither:
    """Return a clone on a scale, not fitted, whose classes are numbers.

    A method without a meaning on that scale is refused here.
    """
    one: OneOfEither = clone(calibrator).set_params(scale=scale)
    if isinstance(one, MulticlassCalibrator):
        one.set_params(classes=None)
    one._check_parameters()
    return one


class OneVsRestCalibrator(MulticlassCalibrator):
    r"""A binary calibrator for each class against the others, made to sum to one.

    Parameters
    ----------
    calibrator : str or ScoreCalibrator
        It is cloned for each class, and its `scale` is set to `scale`. It may be the
        name of a family, such as "isotonic".
    coupling : {"normalize", "least_squares"}
        How the k answers become probabilities that sum to one. "normalize" divides by
        their sum. "least_squares" takes the nearest point of the simplex, which may
        give a class almost nothing.
    classes : sequence of k names, optional
        Names of the columns. Default: their numbers, 0 to k - 1.
    scale : {"probability", "logit"}
        What a score is.

    Attributes
    ----------
    calibrators_ : list of k ScoreCalibrator
        The fitted calibrator of each class. For a class without rows it is the constant
        1 / (n + 2).

    Notes
    -----
    .. math:: P(y = j | p) = \frac{g_j(p_j)}{\sum_i g_i(p_i)} \quad\text{or}\quad
        \operatorname*{argmin}_{q \ge 0,\, \sum_i q_i = 1} \sum_i (q_i - g_i(p_i))^2,

    Here :math:`g_j` is learned from all rows, with the label 1 where y = j. The nearest
    point is :math:`q_i = \max(g_i - \tau, 0)`, and a 0 counts as the least float.
    Logits enter as the log-odds of the class against the others. Maps of steps and
    lines may say 0 and 1, but n rows cannot know this. So the answers are clipped to
    [1/(2n+2), 1 - 1/(2n+2)], and no class is ruled out.

    References
    ----------
    Zadrozny & Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates. Duchi, Shalev-Shwartz, Singer & Chandra (2008), Efficient
    projections onto the l1-ball, figure 1.

    Examples
    --------
    >>> from calibration import OneVsRestCalibrator
    >>> scores = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]] * 20
    >>> calibrator = OneVsRestCalibrator("isotonic").fit(scores, [0, 1, 2] * 20)
    >>> calibrator.predict([[0.7, 0.2, 0.1]]).argmax()
    np.int64(0)
    """

    calibrators_: list[ScoreCalibrator]

    def __init__(
        self,
        calibrator: str | ScoreCalibrator = "quadratic",
        coupling: Literal["normalize", "least_squares"] = "normalize",
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
        check_choice(self.coupling, "coupling", ("normalize", "least_squares"))
        on_scale(as_calibrator(self.calibrator), self.scale)

    def _fit_table(self, data: ClassScores) -> None:
        def summarize() -> list[ScoreSummary]:
            columns = _against_rest(data.scores, self.scale)
            return [
                ScoreSummary.from_scores(column, data.labels == j, data.weight)
                for j, column in enumerate(columns)
            ]

        tasks = data.share(("tasks", self.scale), summarize)
        self.calibrators_ = [self._fit_one(summary) for summary in tasks]

    def _fit_one(self, summary: ScoreSummary) -> ScoreCalibrator:
        """Return the calibrator of one class."""
        one: ScoreCalibrator = on_scale(as_calibrator(self.calibrator), self.scale)
        if min(summary.n0, summary.n1) > 0.0 and summary.n_cells > 1:
            return one.fit_summary(summary)
        # With hundreds of classes some may have no rows. They get their documented
        # constant, without a warning for each.
        one._fit_constant(summary, (summary.n1 + 1.0) / (summary.n + 2.0))
        one.n_fit_ = summary.n
        return one

    def _predict_table(self, table: Float64Array) -> Float64Array:
        p = np.empty(table.shape)
        columns = _against_rest(table, self.scale)
        for j, (one, column) in enumerate(zip(self.calibrators_, columns, strict=True)):
            p[:, j] = one.predict(column)
            if not isinstance(one, LogOddsCalibrator):
                # The bound is half a row in n + 1, as in other averages of maps.
                edge = 0.5 / (one.n_fit_ + 1.0)
                np.clip(p[:, j], edge, 1.0 - edge, out=p[:, j])
        if self.coupling == "least_squares":
            p = _nearest_on_simplex(p)
        # Rounding may make a formula say 0 for all classes.
        np.maximum(p, LEAST, out=p)
        p /= p.sum(axis=1, keepdims=True)
        return p


def _nearest_on_simplex(table: Float64Array) -> Float64Array:
    """Return max(v - tau, 0) of each row v, where tau makes the row sum to 1."""
    largest = -np.sort(-table, axis=1)
    numbers = np.arange(1.0, table.shape[1] + 1.0)
    # Compute tau if only this many of the largest stay positive, and whether all do.
    shifts = (np.cumsum(largest, axis=1) - 1.0) / numbers
    count = (largest > shifts).sum(axis=1, keepdims=True)
    tau = np.take_along_axis(shifts, count - 1, axis=1)
    return np.asarray(np.maximum(table - tau, 0.0))


def _against_rest(table: Float64Array, scale: str) -> Iterator[Float64Array]:
    """Yield the scores of each class against the others, on the same scale.

    For logits this is the log-odds log(p_j / sum_(i != j) p_i). It is exact where p_j
    rounds to 1.
    """
    if scale == "probability":
        yield from np.ascontiguousarray(table.T)
        return
    z = LogProbabilityScale("logit")(table)
    for j in range(len(z)):
        others = np.delete(z, j, axis=0)
        top = others.max(axis=0)
        yield z[j] - (top + np.log(np.exp(others - top).sum(axis=0)))


# Chances of pairs are clipped to [_CLIP, 1 - _CLIP], as in libsvm. So the answer is
# unique and finite, whatever they say.
_CLIP = 1e-7
# The least share of one of two classes that is still seen in 1 minus it.
_FINEST = 2.0**-53
# Matrices of rows that are solved together hold at most this many numbers, which bounds
# the memory. This many times more rows are asked together for their pairs.
_CHUNK, _MORE = 1 << 22, 16


class AllPairsCalibrator(MulticlassCalibrator):
    r"""A binary calibrator for each pair of classes, and a coupling of their answers.

    Parameters
    ----------
    calibrator : str or ScoreCalibrator, optional
        It is cloned for each pair, and its `scale` is set to the one below. It may be
        the name of a family, such as "isotonic". Default: `LogisticCalibrator()`.
    classes : sequence of length k, optional
        The labels that the columns stand for. Default: their numbers.
    scale : {"probability", "logit"}
        What scores are.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels of the columns.
    class_weight_ : ndarray of shape (k,)
        Weight of the rows of each class.
    calibrators_ : list of ScoreCalibrator or None
        One for each of the pairs (0, 1), (0, 2), ..., (k - 2, k - 1). None if a class
        of the pair has no rows.
    constant_ : ndarray of shape (k,) or None
        The constant answer to degenerate data.

    Notes
    -----
    The calibrator of classes i < j learns from the rows of these two classes. Their
    score is :math:`p_j / (p_i + p_j)` (1/2 where both are 0), or :math:`z_j - z_i` for
    logits. The label is 1 for j. If a class of the pair has no rows, the answer is
    :math:`(n_j + 1) / (n_i + n_j + 2)`. Two classes are one pair: the answer is that of
    the binary calibrator, clipped to [1e-7, 1 - 1e-7]. Pairs are joined by the second
    method of Wu, Lin & Weng.

    It needs k (k - 1) / 2 calibrators. On scores of a classifier of all classes it did
    worse than one softmax regression. It is best where pairs were learned as pairs: see
    `AllPairsClassifier`.

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
        *,
        classes: Sequence[Any] | None = None,
        scale: ClassScale = "probability",
    ):
        self.calibrator = calibrator
        self.classes = classes
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._make()

    def _make(self) -> ScoreCalibrator:
        given = "logistic" if self.calibrator is None else self.calibrator
        return on_scale(as_calibrator(given), self.scale)

    def _fit_table(self, data: ClassScores) -> None:
        self.class_weight_, self.calibrators_ = data.counts, []
        for i, j in combinations(range(len(self.class_weight_)), 2):
            one = None
            if min(self.class_weight_[[i, j]]) > 0.0:
                pair = data.take(np.isin(data.labels, (i, j)))
                scores = self._score(pair.scores, i, j)
                with told_of_light():
                    one = self._make().fit(scores, pair.labels == j, pair.weight)
            self.calibrators_.append(one)

    def _predict_table(self, table: Float64Array) -> Float64Array:
        n, k = table.shape
        chances = (self._predict_pairs(table[rows]) for rows in pieces_of_rows(n, k))
        return np.concatenate([couple_pairs(some, k) for some in chances])

    def _predict_pairs(self, table: Float64Array) -> Iterator[Float64Array]:
        """Yield the calibrated probability of j against i, for each pair of classes."""
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
        both = np.where(first + second > 0.0, first + second, 1.0)
        # Near 1 a float has few digits. Take as few near 0, so that the order of
        # columns does not matter.
        rest = np.where(first >= second, 1.0 - first / both, second / both)
        score = np.where(first == second, 0.5, rest)
        return np.clip(score, _FINEST, 1.0 - _FINEST)


def pieces_of_rows(n: int, k: int) -> list[NDArray[np.intp]]:
    """Return row numbers in pieces, so that memory holds all pairs of a piece."""
    most = max(1, _MORE * _CHUNK // k**2)
    return np.split(np.arange(n), range(most, n, most))


def couple_pairs(chances: Iterable[Float64Array], k: int) -> Float64Array:
    r"""Join the chances of all pairs of classes to probabilities (n, k).

    Parameters
    ----------
    chances : iterable of k (k - 1) / 2 ndarrays of shape (n,)
        The probability of class j, for (i, j) = (0, 1), (0, 2), ..., (k - 2, k - 1).
    k : int

    Returns
    -------
    ndarray of shape (n, k)
        Rows that sum to 1.

    Notes
    -----
    Let :math:`r_{ij}` be the probability of class i if the class is i or j, clipped to
    [1e-7, 1 - 1e-7]. The answer is the minimum of :math:`\sum_{i \ne j} (r_{ji} p_i -
    r_{ij} p_j)^2` over p that sum to 1. It is the second method of Wu, Lin & Weng, and
    that of libsvm. It is one linear system (their equation 21), solved directly. If the
    chances are consistent with some p, it returns this p.
    """
    pairs = list(chances)
    first, second = np.triu_indices(k, 1)
    places, rows = np.arange(k), max(1, _CHUNK // k**2)
    right = np.append(np.zeros(k), 1.0)[None, :, None]
    p = np.empty((len(pairs[0]), k))
    for start in range(0, len(p), rows):
        some = [chance[start : start + rows] for chance in pairs]
        part = np.clip(np.stack(some, axis=1), _CLIP, 1.0 - _CLIP)
        r = np.zeros((len(part), k, k))
        r[:, second, first], r[:, first, second] = part, 1.0 - part
        # Wu, Lin & Weng, equation 19: Q_ij = -r_ji r_ij and Q_ii = sum_s r_si^2, in the
        # system [[Q, 1], [1', 0]] [p; b] = [0; 1] of each row.
        system = np.ones((len(part), k + 1, k + 1))
        system[:, :k, :k] = -r * r.transpose(0, 2, 1)
        system[:, places, places] = (r**2).sum(axis=1)
        system[:, k, k] = 0.0
        p[start : start + rows] = np.linalg.solve(system, right)[:, :k, 0]
    # Rounding may make a probability negative.
    np.maximum(p, LEAST, out=p)
    return np.asarray(p / p.sum(axis=1, keepdims=True))
