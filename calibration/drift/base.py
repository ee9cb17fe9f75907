"""`DriftMonitor`: what monitors of all kinds of forecasts share, and their `Advice`."""

from __future__ import annotations

import hashlib
import json
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import entr, gammaln, log_expit, logit, xlogy
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from calibration._kernels.logistic import LogisticProblem
from calibration._validation import check_integer, check_level, check_number, is_auto
from calibration.base.log_odds import solve_logistic
from calibration.drift.evidence import ERRORS, OnsetMixture, StepErrors, shift_interval
from calibration.exceptions import CalibrationWarning
from calibration.monotone.isotonic import IsotonicCalibrator
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

#: All actions, the smallest first.
ACTIONS = ("nothing", "shift", "shift and slope", "recalibrate", "refit")
# Information, in rows, that pulls a correction to none; and folds that judge it.
_PULL, _FOLDS = 4.0, 5
# This much information holds a slope where it is.
_FIXED = 1e12
# A larger correction must be better by this many nats.
_WORTH = 2.0
# If less than this share of the promised information is left, the scores themselves
# have aged. It takes this many rows to say so.
_LEAST_SHARE, _LEAST_ROWS = 0.5, 200.0


@dataclass(frozen=True)
class Advice:
    """What to do, and why.

    Parameters
    ----------
    action : {"nothing", "shift", "shift and slope", "recalibrate", "refit"}
        The smallest action that helps.
    evidence : dict of str to float
        How much each of the first four actions gains in log-likelihood, in nats, over
        doing nothing. It is measured on rows since the onset that the action was not
        learned from.
    n : float
        Rows since the onset.
    offset, slope : float
        The line that corrects the log-odds of these rows. For whole distributions: the
        mean and standard deviation of the normal scores of the transforms.
    delivered : float
        Information that the forecasts carry on these rows, once corrected, over the
        information that they promise. Below one half they must be fitted again. NaN if
        there are too few rows to say.

    Examples
    --------
    >>> from calibration import CalibrationMonitor
    >>> monitor = CalibrationMonitor().fit([0.2, 0.7, 0.6, 0.9] * 20, [0, 1, 0, 1] * 20)
    >>> monitor.advise().action
    'nothing'
    """

    action: str
    evidence: dict[str, float]
    n: float
    offset: float
    slope: float
    delivered: float


def choose_action(evidence: dict[str, float], delivered: float, *, alarm: bool) -> str:
    """Return the smallest action that is as good as the best, up to 2 nats."""
    if not alarm:
        return ACTIONS[0]
    if delivered < _LEAST_SHARE:
        return ACTIONS[-1]
    best = max(evidence[name] for name in ACTIONS[1:-1])
    return next(name for name in ACTIONS[1:] if evidence[name] >= best - _WORTH)


def held_out_gains(cells: ScoreSummary) -> dict[str, float]:
    """Return what each correction gains, in nats, on rows it has not learned from."""
    gains = dict.fromkeys(ACTIONS[:-1], 0.0)
    if cells.n < 2.0 * _FOLDS:
        return gains
    for fold in cells.split(_FOLDS, 0):
        try:
            rest = cells - fold
        except ValueError:  # all rows are in one fold
            return gains
        base = log_likelihood(fold, fold.scores)
        for name, moved in _correct(rest, fold.scores).items():
            gains[name] += log_likelihood(fold, moved) - base
    return gains


def _correct(rest: ScoreSummary, f: Float64Array) -> dict[str, Float64Array]:
    """Return log-odds (n,) by each correction, as learned from the rest of the rows."""
    shift, line = fit_line(rest, slope=False), fit_line(rest)
    with warnings.catch_warnings():
        # If there is only one class, its constant is an answer like any other.
        warnings.simplefilter("ignore", CalibrationWarning)
        isotonic = IsotonicCalibrator(scale="logit").fit_summary(rest)
    least = 1.0 / (rest.n + 2.0)
    return {
        "shift": f + shift[0],
        "shift and slope": line[0] + line[1] * f,
        "recalibrate": logit(np.clip(isotonic.predict(f), least, 1.0 - least)),
    }


def fit_line(cells: ScoreSummary, *, slope: bool = True) -> Float64Array:
    """Return the line (2,) of the log-odds that fits best.

    Parameters
    ----------
    cells : ScoreSummary
        Cells of log-odds.
    slope : bool
        False keeps the slope at 1.
    """
    f = cells.scores
    problem = LogisticProblem(
        np.stack([np.ones(len(f)), f]),
        cells.weight0,
        cells.weight1,
        np.array([_PULL, _PULL if slope else _FIXED]),
        np.array([0.0, 1.0]),
    )
    return solve_logistic(problem)


def log_likelihood(cells: ScoreSummary, f: Float64Array) -> float:
    """Return the log-likelihood of the rows of cells, given their log-odds f."""
    return float(cells.weight1 @ log_expit(f) + cells.weight0 @ log_expit(-f))


def delivered_share(cells: ScoreSummary, evidence: dict[str, float]) -> float:
    r"""Return the information that scores carry, over the information they promise.

    If scores were calibrated, they would promise :math:`h(\bar p) - \overline{h(p)}`
    per row, where h is the entropy of a coin. They carry :math:`h(\bar y)` less the log
    loss after the correction that gains the most.
    """
    if cells.n < _LEAST_ROWS or min(cells.n0, cells.n1) == 0.0:
        return float("nan")
    p = np.exp(log_expit(cells.scores))
    weight = cells.weight / cells.n
    promised = _coin(weight @ p) - weight @ _coin(p)
    gained = log_likelihood(cells, cells.scores) + max(evidence.values())
    loss = -gained / cells.n
    if promised <= 0.0:
        return float("nan")
    return float((_coin(np.asarray(cells.base_rate)) - loss) / promised)


def _coin(p: Float64Array) -> Float64Array:
    """Return the entropy of coins, in nats."""
    return np.asarray(entr(p) + entr(1.0 - p))


def gather(
    parts: Sequence[ScoreSummary],
    *,
    least: float | None = None,
    max_cells: int | None = None,
) -> ScoreSummary:
    """Return one summary of the rows of several.

    Parameters
    ----------
    parts : sequence of ScoreSummary
    least : float, optional
        If given, probabilities become log-odds, and none is surer than this.
    max_cells : int, optional
    """
    cells = [[one.scores, one.weight0, one.weight1] for one in parts]
    p, weight0, weight1 = np.hstack(cells)
    scores = p if least is None else logit(np.clip(p, least, 1.0 - least))
    labels = np.repeat([0.0, 1.0], len(p))
    rows = np.tile(scores, 2), labels, np.append(weight0, weight1)
    return ScoreSummary.from_scores(*rows, max_cells=max_cells)


# A tolerance can be learned from a first batch of this many rows.
_FIRST_ROWS = 50.0
# Logarithm of the largest e-value that is finite.
_MOST = 700.0
# If a batch equals an earlier one by at most this chance, it is that batch again.
_LEAST_CHANCE = 1e-9
# Greatest number of spans whose rows are kept apart, and of batches that are
# recognised.
_SPANS, _RECOGNISED = 64, 500


class DriftMonitor(BaseEstimator, metaclass=ABCMeta):
    """Base of monitors: e-values batch by batch, their record, and the alarm.

    The monitor keeps of a batch's rows only what adds up over batches: counts,
    likelihoods, summaries. Beyond 64 batches it joins neighbours, first those that are
    shortest for their age. So what it keeps is bounded, and recent changes are dated to
    the batch.
    """

    # Names of the parts that bet, and the share of each part in the e-value.
    _shares: ClassVar[dict[str, float]]
    # The search for offsets goes this far either way.
    _reach: ClassVar[float]
    # Names of the attributes that a class adds to the record.
    _parts: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        n_fit: int = 1000,
        *,
        tolerance: float | Literal["auto"] = "auto",
        alpha: float = 0.05,
        memory: float = 2000.0,
    ):
        self.n_fit = n_fit
        self.tolerance = tolerance
        self.alpha = alpha
        self.memory = memory

    @property
    def e_value_(self) -> float:
        """The e-value of all batches so far, against the null."""
        return float(np.exp(min(self.log_e_, _MOST)))

    def to_json(self) -> str:
        """Return the settings and the state as JSON, without a class or code.

        Returns
        -------
        str
            It has about 300 kB at most, and 200 bytes of `history_` for each batch.
        """
        check_is_fitted(self)
        held = {"monitor": type(self).__name__, **vars(self)}
        held.pop("_metadata_request", None)  # belongs to scikit-learn
        return json.dumps(held, allow_nan=False, default=_plain)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the monitor that `to_json` has written. It goes on where it stopped.

        Parameters
        ----------
        text : str

        Returns
        -------
        object
            A monitor of this class.
        """
        try:
            # One of two copies takes a batch and answers. The other will do so too.
            cls._read(text)._try()
            return cls._read(text)
        except Exception as error:  # a text of others may fail in any way
            msg = f"`text` must be what `to_json` has written ({error!r})."
            raise ValueError(msg) from error

    @classmethod
    def _read(cls, text: str) -> Self:
        """Return a monitor whose attributes have the right names and types."""
        monitor = cls()
        # A state is made of these and of numbers.
        kinds = ScoreSummary, StepErrors, *OnsetMixture.__subclasses__()
        parts = {one.__name__: one for one in kinds}
        held = json.loads(text, object_hook=partial(_revive, parts))
        if held.pop("monitor") != cls.__name__:
            raise KeyError(cls.__name__)
        settings = {name: held[name] for name in monitor.get_params()}
        monitor.set_params(**settings)._check(_FIRST_ROWS)
        monitor._start()
        begun = vars(monitor)
        wrong = held.keys() ^ {*begun, *cls._parts}
        wrong |= {
            name
            for name in begun.keys() - settings.keys() - wrong
            if begun[name] is not None and not isinstance(held[name], type(begun[name]))
        }
        if wrong:
            raise KeyError(*wrong)
        monitor.__dict__.update(held)
        return monitor

    def _try(self) -> None:
        """Add a batch and ask everything. A state that is not sound raises an error."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._add_any()
            for leader in self._shares:
                self._find_span(leader)
            self.advise()
            self.confidence_interval()
            self.to_json()
        lengths = {len(column) for column in self.history_.values()}
        is_dated = isinstance(self.alarm_row_, float) == self.alarm_
        if (
            lengths != {self.n_batches_}
            or not is_dated
            or np.diff(self._ends_).min() <= 0
        ):
            msg = "its batches do not fit together"
            raise ValueError(msg)

    @abstractmethod
    def advise(self) -> Advice:
        """Return what to do, and the evidence for it."""

    @abstractmethod
    def _add_any(self) -> None:
        """Add a batch of one row, with any values."""

    @abstractmethod
    def _find_span(self, leader: str) -> int:
        """Return the span with which the change began, as seen by the leading part."""

    @abstractmethod
    def _likelihood(self, shifts: Float64Array) -> Float64Array:
        """Return the log-likelihoods (m,) of shifts of all rows so far."""

    def find_onset(self) -> float | None:
        """Return after how many rows the change began, or None without an alarm.

        Returns
        -------
        float or None
            The likeliest end of a batch. It is 0 if the forecasts were never right.
        """
        check_is_fitted(self)
        if not self.alarm_:
            return None
        first = self._onset_span()
        return float(self.history_["row"][self._ends_[first - 1] - 1]) if first else 0.0

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence sequence for the offset, in units of the tolerance.

        The units are log-odds for probabilities, and standard deviations of a forecast
        for distributions. If all rows so far have one offset, then with probability
        `level` at least it lies in all intervals that anyone ever looks at.

        Parameters
        ----------
        level : float
            In (0, 1).

        Returns
        -------
        low, high : float
        """
        check_is_fitted(self)
        alpha = 1.0 - check_level(level, "level")
        return shift_interval(self._likelihood, alpha, self._reach)

    def _onset_span(self) -> int:
        """Return the span where the change began, or the first without an alarm."""
        if not self.alarm_:
            return 0
        leader = max(self._shares, key=lambda name: self.history_[f"log_e_{name}"][-1])
        return self._find_span(leader)

    def _recent(self) -> list[list[Any]]:
        """Return what is kept of the batches since the onset, for each part."""
        spans = self._spans_[self._onset_span() :]
        return [list(part) for part in zip(*spans, strict=True)]

    @property
    def _is_new(self) -> bool:
        return not hasattr(self, "n_batches_")

    def _check(self, n: float) -> None:
        """Refuse wrong parameters, and a first batch too small to learn from."""
        check_integer(self.n_fit, "n_fit", 1)
        if not is_auto(self.tolerance):
            check_number(self.tolerance, "tolerance", 0.0)
        elif self._is_new and n < _FIRST_ROWS:
            msg = (
                "`tolerance` is learned from the forecasts of the first batch, which "
                f"must have at least {_FIRST_ROWS:g} rows, got {n:g}: join batches, or "
                "say the tolerance."
            )
            raise ValueError(msg)
        check_level(self.alpha, "alpha")
        check_number(self.memory, "memory", 1.0)

    @property
    def _surest(self) -> float:
        """Least chance that a forecast is taken to have, of an event or of none."""
        return 1.0 / (self.n_fit + 2.0)

    def _start(self, information: float = 1.0) -> None:
        """Begin the record, and set the tolerance by the information in a row."""
        self.alarm_ = False
        self.alarm_row_: float | None = None
        self.n_rows_, self.n_batches_, self.log_e_ = 0.0, 0, 0.0
        self.history_: dict[str, Float64Array] = {}
        # Keep digests of batches. For each span, keep its last batch and its parts.
        self._seen_: list[str] = []
        self._ends_: list[int] = []
        self._spans_: list[list[Any]] = []
        errors = ERRORS / float(np.sqrt(self.n_fit * information))
        self.tolerance_ = errors if is_auto(self.tolerance) else float(self.tolerance)

    def _is_repeated(
        self, rows: Float64Array, weight: Float64Array, agree: float = -np.inf
    ) -> bool:
        r"""Return whether a batch came before, in any order of rows, and remember it.

        Rows drawn from any law equal the batch by a chance of at most
        :math:`\frac{n!}{\prod c_i!} \prod (c_i / n)^{c_i}`, where :math:`c_i` is the
        number of each distinct row. Forecasts of the same things come again, and only
        their outcomes are drawn. If both chances are tiny, the batch counts as a
        repeated one.

        Parameters
        ----------
        rows : ndarray of shape (n, k)
            Forecasts, and in the last column outcomes.
        weight : ndarray of shape (n,)
        agree : float
            Logarithm of the chance of these outcomes, if the forecasts are right.
        """
        # Forecasts are in single precision, because in another order of rows they may
        # differ in a bit. Outcomes are unchanged.
        with np.errstate(over="ignore"):
            rows = np.column_stack([rows[:, :-1].astype(np.float32), rows[:, -1]])
        cells, place = np.unique(rows, axis=0, return_inverse=True)
        counts = np.bincount(place.ravel(), weights=weight)
        data = cells.tobytes() + counts.astype(np.float32).tobytes()
        digest = hashlib.sha256(data).hexdigest()[:16]
        if digest not in self._seen_:
            self._seen_ = [*self._seen_[1 - _RECOGNISED :], digest]
            return False
        n = counts.sum()
        ways = gammaln(n + 1.0) - gammaln(counts + 1.0).sum()
        alike = max(ways + xlogy(counts, counts / n).sum(), agree)
        chance = len(self._seen_) * np.exp(alike)
        is_new = bool(chance > _LEAST_CHANCE)
        why = "counted, for so few different rows may be equal by chance"
        msg = f"A batch holds the same {n:g} rows as one before it: it is "
        msg += f"{why if is_new else 'not counted again'}."
        warnings.warn(msg, CalibrationWarning, stacklevel=3)
        return not is_new

    def _record(
        self, n: float, logs: list[Any], kept: list[Any], **facts: float
    ) -> None:
        """Add a batch of n rows: log e-values of the parts, what is kept, and facts."""
        self.n_rows_ += n
        self.n_batches_ += 1
        # A mean of e-processes is an e-process.
        shares = np.log(list(self._shares.values()))
        self.log_e_ = float(np.logaddexp.reduce(shares + logs))
        row = {"row": self.n_rows_, "n": n, "log_e": self.log_e_}
        names = [f"log_e_{name}" for name in self._shares]
        row |= dict(zip(names, logs, strict=True)) | facts
        for name, value in row.items():
            before = self.history_.get(name, np.empty(0))
            self.history_[name] = np.append(before, value)
        if not self.alarm_ and self.log_e_ >= -np.log(float(self.alpha)):
            self.alarm_, self.alarm_row_ = True, self.n_rows_
        self._ends_.append(self.n_batches_)
        self._spans_.append(kept)
        if len(self._ends_) > _SPANS:
            self._join_spans()

    def _join_spans(self) -> None:
        """Join the two neighbours that are shortest for their age."""
        ends = np.array([0, *self._ends_])
        k = int(np.argmin((ends[2:] - ends[:-2]) / (ends[-1] - ends[2:] + 1.0)))
        both = zip(self._spans_[k], self._spans_.pop(k + 1), strict=True)
        self._spans_[k] = [one + other for one, other in both]
        del self._ends_[k]


def _plain(value: Any) -> Any:
    """Return an array or a part as a JSON object that names its kind."""
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else float(value)
    # Columns of tables are arrays too.
    if hasattr(value, "__array__"):
        return {"array": np.asarray(value).tolist()}
    if isinstance(value, Sequence):
        return list(value)
    return {"part": type(value).__name__, **vars(value)}


def _revive(parts: dict[str, type], held: dict[str, Any]) -> Any:
    """Return what `_plain` was given, or any other object unchanged."""
    if "array" in held:
        return np.array(held["array"], dtype=np.float64)
    if "part" not in held:
        return held
    out: Any = object.__new__(parts[held.pop("part")])
    vars(out).update(held)
    getattr(out, "__post_init__", lambda: None)()
    return out
