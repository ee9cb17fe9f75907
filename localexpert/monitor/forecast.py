"""`ForecastMonitor`: whether forecasts of whole distributions still hold."""

from __future__ import annotations

from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit, ndtri
from sklearn.utils.validation import check_is_fitted

from calibration import Advice
from calibration.drift.advice import (
    as_log_odds,
    choose_action,
    delivered_share,
    held_out_gains,
)
from calibration.drift.base import DriftMonitor
from calibration.drift.binary_rows import (
    BinaryRows,
    likeliest_start,
    shift_likelihoods,
    summarise,
)
from calibration.drift.confidence import shift_interval
from calibration.drift.shift_process import ShiftProcess
from calibration.typing import Float64Array
from localexpert._validation import (
    check_integer,
    check_level,
    check_vector,
    check_weights,
    is_auto,
)
from localexpert.distribution.predictive import (
    PredictiveDistribution,
    check_outcomes,
)
from localexpert.monitor.band_bets import BandBets
from localexpert.monitor.pit_advice import gains_of_bins
from localexpert.monitor.pit_bins import (
    N_BINS,
    count_bins,
    shift_likelihoods_of_bins,
)
from localexpert.storage.saved import SavedModel

# Shifts that are looked for, in deviations of a forecast and in log-odds, and the share
# of each.
_SIZES = np.array([0.1, 0.2, 0.4, 0.8])
_SHARES = np.array([0.25, 0.4, 0.25, 0.1])
_ODDS = 1.5
# Of the e-value: by shift of the transform, by its law, by thresholds.
_OF_PIT, _OF_LAW, _OF_THRESHOLDS = 0.6, 0.15, 0.25
# Where the thresholds lie in all forecasts of the first batch.
_LEVELS = (0.25, 0.5, 0.75)
_GRID = np.arange(1, 40) / 40
# Shifts of the transform that are looked at; batches that are remembered.
_REACH, _KEPT = 6.0, 2000
# Of the random numbers drawn here.
_DRAWS = 0x6D6F6E


# Why outcomes that were learned from are of no use here.
_LEARNED = (
    "Outcomes that were learned from look better forecast than they are: a monitor "
    "needs new rows."
)


class Seen(Protocol):
    """What `localexpert.seen_rows` answers."""

    def warn(self, consequence: str) -> None:
        """Warn if some rows were learned from, and say what comes of it."""


class ForecastMonitor(SavedModel, DriftMonitor):
    r"""An alarm for forecasts that no longer hold.

    Fed with batches of distributions and outcomes as they come; after each one an
    e-value tells the evidence that they are off by more than `tolerance`. The alarm
    goes off when it reaches 1 / alpha, which it ever does with probability alpha at
    most as long as they are not, however often one looks and however long.

    Parameters
    ----------
    n_fit : int
        Rows that the model was fitted on, which set the tolerance.
    thresholds : "auto" or array-like of shape (k,)
        Values t of which P(Y <= t) is monitored by itself. "auto" takes the quartiles
        of all forecasts of the first batch.
    tolerance : "auto" or float
        Shift of all forecasts, in their standard deviations, that is no alarm. "auto"
        takes :math:`1.25 / \sqrt{n}`: .04 of 1000 rows. At a threshold it is
        divided by the root of the mean p (1 - p), to be one in log-odds.
    alpha : float
        Chance of a false alarm, ever.
    memory : float
        Rows after which a row counts half in what is learned of the transform's law.
    random_state : int
        Seed of the draws within jumps, of laws that give probability to single values.

    Attributes
    ----------
    alarm_ : bool
        Whether the e-value has ever reached 1 / alpha.
    alarm_row_ : float or None
        Rows seen when it did.
    e_value_, log_e_ : float
        Evidence so far: 1 is none. Its logarithm.
    tolerance_ : float
    thresholds_ : ndarray of shape (k,)
    n_rows_, n_batches_ : float, int
        Seen so far.
    history_ : dict of str to ndarray of shape (n_batches,)
        By batch: "row" (rows with it), "n", "log_e", "log_e_shift", "log_e_law",
        "log_e_thresholds", the "offset" (mean score of the transforms, in deviations
        of a forecast) with its standard "error", the "bias" (mean outcome less median
        forecast, in units of y), and how many outcomes lay "outside" of their support.

    See Also
    --------
    calibration.CalibrationMonitor : The same for probabilities of two classes.
    calibration.plot_monitor : Draw it.

    Notes
    -----
    The e-value is a weighted mean. .60: the transforms (PIT), in 20 bins, under shifts
    of their normal scores, by universal inference as in
    :class:`calibration.CalibrationMonitor`. .15: a betting martingale on the bins, for
    the whole CDF. .25: the thresholds, by shifts of log-odds. The first and the last
    hold their level for a shift that all rows share, the second for any law that stays
    within :math:`\Phi(\Phi^{-1}(u) \pm \tau)`.

    An outcome that a forecast held for impossible falls into its outermost bin; it is
    counted, not refused. A batch that holds the rows of one before it, in any order, is
    not counted again, unless they may be equal by chance; a warning says which.

    References
    ----------
    Wasserman, Ramdas & Balakrishnan (2020), Universal inference. Vovk, Nouretdinov,
    Gammerman (2003), Testing exchangeability on-line. Arnold, Henzi & Ziegel (2023),
    Sequentially valid tests for forecast calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from localexpert import ForecastMonitor, PredictiveDistribution
    >>> rng = np.random.default_rng(0)
    >>> monitor = ForecastMonitor(n_fit=1000)
    >>> for batch in range(20):
    ...     mean = rng.normal(size=200)
    ...     dist = PredictiveDistribution.from_scipy(norm(mean, 1.0))
    ...     drift = 0.4 if batch >= 10 else 0.0
    ...     monitor = monitor.partial_fit(dist, mean + drift + rng.normal(size=200))
    >>> monitor.alarm_, monitor.find_onset(), monitor.advise().action
    (True, 2000.0, 'shift')
    """

    thresholds_: Float64Array
    _counts_: Float64Array
    _all_counts_: Float64Array

    def __init__(
        self,
        n_fit: int = 1000,
        *,
        thresholds: ArrayLike | Literal["auto"] = "auto",
        tolerance: float | Literal["auto"] = "auto",
        alpha: float = 0.05,
        memory: float = 2000.0,
        random_state: int = 0,
    ):
        self.n_fit = n_fit
        self.thresholds = thresholds
        self.tolerance = tolerance
        self.alpha = alpha
        self.memory = memory
        self.random_state = random_state

    def fit(
        self,
        dist: PredictiveDistribution,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        seen: Seen | None = None,
    ) -> Self:
        """Begin anew with a first batch.

        Parameters
        ----------
        dist : PredictiveDistribution
            What was forecast of n rows.
        y : array-like of shape (n,)
            Outcomes.
        sample_weight : array-like of shape (n,), optional
            Numbers of repetitions.
        seen : SeenRows, optional
            What `seen_rows(model, X, y)` says of the batch: of rows that the model has
            learned from there is a warning.

        Returns
        -------
        self
        """
        return self._add(dist, y, sample_weight, seen, begins=True)

    def partial_fit(
        self,
        dist: PredictiveDistribution,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        seen: Seen | None = None,
    ) -> Self:
        """Go on by a batch.

        Parameters
        ----------
        dist : PredictiveDistribution
            What was forecast of n rows.
        y : array-like of shape (n,)
            Outcomes.
        sample_weight : array-like of shape (n,), optional
            Numbers of repetitions.
        seen : SeenRows, optional
            What `seen_rows(model, X, y)` says of the batch: of rows that the model has
            learned from there is a warning.

        Returns
        -------
        self
            As it was before, if the batch is refused.
        """
        return self._add(dist, y, sample_weight, seen, begins=self._is_new)

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return a confidence sequence for the offset, in deviations of a forecast.

        If all rows so far have one offset, it lies in all intervals that are ever
        looked at with probability `level` at least.

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
        counts = self._all_counts_
        return shift_interval(
            lambda d: shift_likelihoods_of_bins(counts, d)[0], alpha, _REACH
        )

    def advise(self) -> Advice:
        """Return what to do, and the evidence for it.

        Returns
        -------
        Advice
            "nothing" as long as there is no alarm; after it the least of the others
            that helps on the rows since the onset: a shift of all forecasts, a shift
            and another spread, a recalibration of their CDF (`PitRecalibration`), or a
            new model, if they tell the sides of the thresholds less than half as well
            as they promise. `offset` and `slope` are mean and standard deviation of
            the scores of the transforms.
        """
        check_is_fitted(self)
        first = self._onset_batch() if self.alarm_ else 0
        seen = self.n_batches_ - first
        counts = self._counts_[-seen:].sum(axis=0)
        gains, (offset, scale) = gains_of_bins(counts)
        shares = [self._delivered(rows, first) for rows in self._rows_]
        known = [share for share in shares if not np.isnan(share)]
        delivered = float(np.mean(known)) if known else float("nan")
        action = choose_action(gains, delivered, alarm=self.alarm_)
        return Advice(action, gains, float(counts.sum()), offset, scale, delivered)

    def _delivered(self, rows: BinaryRows, first: int) -> float:
        cells = as_log_odds(rows.since(first), self._surest)
        return delivered_share(cells, max(held_out_gains(cells).values()))

    def _onset_batch(self) -> int:
        leader = self._leader()
        if leader == "law":
            gains = self._counts_ @ self._law_.learned_gains()
            return self.n_batches_ - len(gains) + likeliest_start(gains)
        best = max(self._at_, key=lambda one: float(one.log_e))
        process = self._shift_ if leader == "shift" else best
        return self.n_batches_ - process.find_onset()

    def _add(
        self,
        dist: PredictiveDistribution,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        seen: Seen | None,
        *,
        begins: bool,
    ) -> Self:
        outcomes = check_outcomes(y, dist)
        weight = check_weights(sample_weight, len(outcomes))
        self._check_parameters()
        check_integer(self.random_state, "random_state", 0)
        n = float(weight.sum())
        if begins:
            self._check_first(n)
            thresholds = self._choose_thresholds(dist)
        else:
            thresholds = self.thresholds_
        p = np.clip(dist.cdf_at(thresholds), self._surest, 1.0 - self._surest)
        batch = 0 if begins else self.n_batches_
        # A stream of its own: y itself may have been drawn by the same seed.
        seed = np.random.SeedSequence(self.random_state, spawn_key=(_DRAWS, batch))
        pit = dist.pit(outcomes, random_state=np.random.default_rng(seed))
        bias = float(weight @ (outcomes - dist.median()) / n)
        if begins:
            self._start()
            self.thresholds_ = thresholds
            self._set_up(weight @ (p * (1.0 - p)) / n)
        if seen is not None:
            seen.warn(_LEARNED)
        if self._is_repeated(np.column_stack([p, dist.median(), outcomes]), weight):
            return self
        self._go_on(count_bins(pit, weight), p, outcomes, weight)
        parts = {
            "shift": (_OF_PIT, float(self._shift_.log_e)),
            "law": (_OF_LAW, float(self._law_.log_e)),
            "thresholds": (
                _OF_THRESHOLDS,
                _mean_log([float(one.log_e) for one in self._at_]),
            ),
        }
        scores = ndtri(np.clip(pit, self._surest, 1.0 - self._surest))
        facts = {
            "offset": float(weight @ scores / n),
            "error": n**-0.5,
            "bias": bias,
            "outside": float(weight @ ((pit <= 0.0) | (pit >= 1.0))),
        }
        self._record(n, parts, **facts)
        return self

    def _go_on(
        self,
        counts: Float64Array,
        p: Float64Array,
        y: Float64Array,
        weight: Float64Array,
    ) -> None:
        """Let all processes take a step: bins (20,), chances (n, k) and outcomes."""
        n = float(weight.sum())
        logs = shift_likelihoods_of_bins(counts, self._shift_.shifts)
        self._shift_.step(*logs, n)
        self._law_.step(counts)
        self._counts_ = np.vstack([self._counts_[1 - _KEPT :], counts])
        self._all_counts_ = self._all_counts_ + counts
        for k, (process, rows) in enumerate(zip(self._at_, self._rows_, strict=True)):
            below = np.where(y <= self.thresholds_[k], weight, 0.0)
            f = logit(p[:, k])
            process.step(
                *shift_likelihoods(f, weight - below, below, process.shifts), n
            )
            rows.add(summarise(p[:, k], weight - below, below))

    def _choose_thresholds(self, dist: PredictiveDistribution) -> Float64Array:
        if is_auto(self.thresholds):
            return np.unique(np.quantile(dist.quantiles(_GRID), _LEVELS))
        return np.unique(check_vector(self.thresholds, "thresholds"))

    def _set_up(self, information: Float64Array) -> None:
        """Begin the processes; the information (k,) of a row at the thresholds."""
        self._set_tolerance()
        self._shift_ = ShiftProcess.of(self.tolerance_, _SIZES, _SHARES)
        self._law_ = BandBets.of(self.tolerance_, float(self.memory))
        self._at_ = [
            ShiftProcess.of(float(bound), _ODDS * _SIZES, _SHARES)
            for bound in self.tolerance_ / np.sqrt(information)
        ]
        self._rows_ = [BinaryRows() for _ in self._at_]
        self._counts_ = np.empty((0, N_BINS))
        self._all_counts_ = np.zeros(N_BINS)


def _mean_log(logs: list[float]) -> float:
    """Return the logarithm of the mean of e-values."""
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))
