"""`CalibrationMonitor` watches whether probabilities still mean what they say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    all_or_nothing,
    check_labels,
    check_probabilities,
    check_same_length,
)
from calibration.drift.base import (
    Advice,
    DriftMonitor,
    choose_action,
    delivered_share,
    fit_line,
    gather,
    held_out_gains,
    log_likelihood,
)
from calibration.drift.evidence import (
    LineBets,
    ShiftProcess,
    StepErrors,
    likeliest_start,
    shift_likelihoods,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

#: The monitor looks for shifts of log-odds of these sizes.
SIZES = np.array([0.15, 0.3, 0.6, 1.2])
# The monitor keeps this many cells of a batch, and of the log-odds of all rows so far.
_CELLS, _ALL_CELLS = 50, 1000
# Forecasts of 0 and of 1 are taken to be this far from them.
_LEAST, _ROUNDING = 1e-100, 2.0**-53

# Log-odds, and the weights of non-events and events.
_Rows: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]


class CalibrationMonitor(DriftMonitor):
    r"""An alarm for probabilities that no longer mean what they say.

    The monitor takes batches of probabilities and outcomes as they come. After each
    batch an e-value says how strong the evidence is that the log-odds are off by more
    than `tolerance`. The alarm goes off when the e-value reaches 1 / alpha. As long as
    the log-odds are not off, the chance that it ever does so is at most alpha. This
    holds however often and however long one looks.

    Parameters
    ----------
    n_fit : int
        Number of rows that the calibrator was fitted on. It sets the tolerance, and the
        monitor takes no probability to be surer than 1 / (n_fit + 2): the truth may
        lie anywhere between the two.
    tolerance : "auto" or float
        A shift of all log-odds up to this size gives no alarm. "auto" takes 1.25
        standard errors of the shift of a calibrator fitted on n rows, :math:`1.25
        / \sqrt{n \overline{p(1-p)}}`. It uses the probabilities of the first batch.
        Example: .079 for 1000 rows at one half.
    alpha : float
        Chance that there is ever a false alarm.
    memory : float
        When the slope is learned, a row counts half after this many rows.

    Attributes
    ----------
    alarm_ : bool
        Whether the e-value has ever reached 1 / alpha.
    alarm_row_ : float or None
        Number of rows seen at that time.
    e_value_, log_e_ : float
        Evidence so far, where 1 means none, and its logarithm.
    tolerance_ : float
        The tolerance, in log-odds.
    n_rows_, n_batches_ : float, int
        Rows and batches seen so far.
    history_ : dict of str to ndarray of shape (n_batches,)
        One value per batch: "row" (rows up to its end), "n", "log_e", "log_e_shift",
        "log_e_line", "observed" and "expected" positives, and the "offset" of the
        batch's log-odds with its standard "error". `pandas.DataFrame(monitor.history_)`
        makes a table.

    See Also
    --------
    calibration.plot_monitor : Draws the monitor.

    Notes
    -----
    The e-value is a sum: .85 times the e-value of a shift, by universal inference, plus
    .15 times the e-value of a line that is learned on earlier batches.

    The e-value of the shift is a ratio of two likelihoods of the outcomes. The
    numerator comes from a law that keeps a shift within the tolerance up to an unknown
    batch, and has another shift from there on. It is mixed over shifts of .15 to 1.2
    either way, and over batches. The denominator is the greatest likelihood of a
    constant shift d within the tolerance. The numerator over the likelihood of the true
    d is a martingale of mean 1.

    For the line, the factor of a row is a ratio too. The numerator is its likelihood
    under the line learned before. The denominator is its likelihood under the nearest
    log-odds that the null allows. The null allows log-odds within twice the tolerance.
    Far from even odds it allows more: as many times that as the log-odds say, but never
    more than .8 of them. A tenth is bet on even odds for all rows, whatever was
    forecast, from the first batch on. Some forecasts repeat, as those of a map of steps
    do. They may be nearer to even odds by as much as a rate is that comes from their
    share of the `n_fit` rows: if 14 rows had no event, one in 14 may still be true.
    More than 500 different forecasts do not count as steps.

    Both have the promised level for any fixed shift of all rows in [-tolerance,
    tolerance]. A calibrator that was fitted on n rows has its own shift. In one fit of
    five this shift is beyond 1.25 standard errors. Then an alarm is true: the
    calibrator is off. Within 10 times the rows of the fit, such an alarm comes in less
    than 5 % of fits. This was so for lines and for step maps, and for 20 rows as for
    1000.

    Weights count rows. If rows are drawn or discounted, weights void the level. Batches
    may have any size, and the level does not depend on it. The monitor looks for
    changes at the beginnings of batches. If a batch holds the rows of one of the last
    500 batches, in any order, it is not counted again, unless the two may be equal by
    chance. A warning says which. What the monitor keeps is bounded, except `history_`:
    beyond 64 batches it joins old neighbours, so that old changes are dated less
    exactly than recent ones.

    References
    ----------
    Wasserman, Ramdas & Balakrishnan (2020), Universal inference. Ramdas, Grünwald,
    Vovk & Shafer (2023), Game-theoretic statistics and safe anytime-valid inference.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import CalibrationMonitor
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, size=(20, 500))
    >>> true = p.copy()
    >>> true[10:] = 1 / (1 + np.exp(-0.5) * (1 - p[10:]) / p[10:])  # log-odds + .5
    >>> y = (rng.uniform(size=p.shape) < true).astype(int)
    >>> monitor = CalibrationMonitor(n_fit=1000)
    >>> for batch in range(20):
    ...     monitor = monitor.partial_fit(p[batch], y[batch])
    >>> monitor.alarm_, monitor.alarm_row_, monitor.find_onset()
    (True, 6000.0, 5000.0)
    >>> monitor.advise().action
    'shift'
    """

    _shares: ClassVar = {"shift": 0.85, "line": 0.15}
    _reach = 30.0
    _parts = ("_shift_", "_line_", "_steps_", "_all_")
    # The rows so far, for shifts up and down.
    _all_: list[ScoreSummary]

    def fit(
        self, y_prob: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Start again with a first batch.

        Parameters
        ----------
        y_prob : array-like of shape (n,)
            Probabilities of class 1, as they were forecast.
        y : array-like of shape (n,)
            Outcomes coded 0 and 1.
        sample_weight : array-like of shape (n,), optional
            How often each row counts.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            return self.partial_fit(y_prob, y, sample_weight)

    def partial_fit(
        self, y_prob: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Add a batch.

        Parameters
        ----------
        y_prob : array-like of shape (n,)
            Probabilities of class 1, as they were forecast.
        y : array-like of shape (n,)
            Outcomes coded 0 and 1.
        sample_weight : array-like of shape (n,), optional
            How often each row counts.

        Returns
        -------
        self
            If the batch is refused, the monitor stays as it was.
        """
        forecasts = check_probabilities(y_prob)
        labels = check_labels(y)
        check_same_length(len(forecasts), "`y_prob`", len(labels), "y")
        cells = ScoreSummary.from_scores(forecasts, labels, sample_weight)
        n, scores = cells.n, cells.scores
        self._check(n)
        p = np.clip(scores, self._surest, 1.0 - self._surest)
        information = float(cells.weight @ (p * (1.0 - p)))
        if self._is_new:
            self._start(information / n)
            self._shift_ = ShiftProcess(self.tolerance_, SIZES)
            self._line_ = LineBets(self.tolerance_, float(self.memory))
            self._steps_ = StepErrors(self.tolerance_)
        outcomes = np.repeat([0.0, 1.0], cells.n_cells)
        batch = np.column_stack([np.tile(scores, 2), outcomes])
        agree = float(cells.weight1 @ np.log(p) + cells.weight0 @ np.log1p(-p))
        weight = np.append(cells.weight0, cells.weight1)
        if self._is_repeated(batch, weight, agree):
            return self
        thin0, thin1 = _thin(cells, p)
        f, weight0, weight1 = logit(p), cells.weight0, cells.weight1
        sides = (f, weight0, thin1), (f, thin0, weight1)
        ratios, slopes = _likelihoods(sides, self._shift_.shifts)
        logs = self._shift_.step(ratios, slopes, n)
        steps = self._steps_.step(f, cells.weight)
        self._line_.step(f, weight0, weight1, *steps, (thin0, thin1))
        # Events beyond the number that was forecast: at least, and at most.
        least, most = (float(one.sum() - (zero + one) @ p) for _, zero, one in sides)
        whole = [
            gather([ScoreSummary(p, *rows)], least=self._surest, max_cells=_ALL_CELLS)
            for rows in ((weight0, thin1), (thin0, weight1))
        ]
        before: list[Any] = self._all_ if self.n_batches_ else [0, 0]
        self._all_ = [a + b for a, b in zip(before, whole, strict=True)]
        self._record(
            n,
            [self._shift_.log_e, self._line_.log_e],
            [logs, gather([cells], max_cells=_CELLS)],
            observed=cells.n1,
            expected=float(cells.weight @ scores),
            offset=(max(least, 0.0) + min(most, 0.0)) / information,
            error=information**-0.5,
        )
        return self

    def recent_rows(self) -> ScoreSummary:
        """Return the summary of the rows since the onset, or of all without an alarm.

        A calibrator may be fitted on these rows to follow the change (`fit_summary`).
        They are at most 64 batches, or spans of older ones, in 50 cells each.

        Returns
        -------
        ScoreSummary
            Summary of probabilities.
        """
        check_is_fitted(self)
        return gather(self._recent()[1])

    def advise(self) -> Advice:
        """Return what to do, and the evidence for it.

        Returns
        -------
        Advice
            "nothing" as long as there is no alarm. After an alarm, the smallest of the
            other actions that helps on the rows since the onset.
        """
        cells = gather([self.recent_rows()], least=self._surest)
        evidence = held_out_gains(cells)
        offset, slope = map(float, fit_line(cells))
        delivered = delivered_share(cells, evidence)
        action = choose_action(evidence, delivered, alarm=self.alarm_)
        return Advice(action, evidence, cells.n, offset, slope, delivered)

    def _add_any(self) -> None:
        self.partial_fit([0.5], [1])

    def _find_span(self, leader: str) -> int:
        logs, cells = zip(*self._spans_, strict=True)
        if leader == "shift":
            return self._shift_.find_onset(np.array(logs))
        (offset, slope), gains = self._line_.line, []
        for one in cells:
            f = gather([one], least=self._surest)
            moved = log_likelihood(f, offset + slope * f.scores)
            gains.append(moved - log_likelihood(f, f.scores))
        return likeliest_start(gains)

    def _likelihood(self, shifts: Float64Array) -> Float64Array:
        sides = [(one.scores, one.weight0, one.weight1) for one in self._all_]
        return _likelihoods(sides, shifts)[0]


def _thin(cells: ScoreSummary, p: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return weights of non-events and events for forecasts that are moved to p.

    A forecast that is too sure is moved towards even odds. The outcomes that it was
    sure of then get the ratio of the odds as their weight. Thus what is counted has the
    odds of p if the forecast is right, and after any shift too.
    """
    moved = logit(p) - logit(np.clip(cells.scores, _LEAST, 1.0 - _ROUNDING))
    weight0 = np.exp(-np.maximum(moved, 0.0)) * cells.weight0
    return weight0, np.exp(np.minimum(moved, 0.0)) * cells.weight1


def _likelihoods(
    sides: Sequence[_Rows], shifts: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Return log-likelihood ratios of shifts up and down, and slopes (m,).

    The truth may lie between a sure forecast and what it was moved to. So outcomes that
    it was sure of count in full against a shift towards even odds, and thinned for a
    shift away from them.
    """
    found = np.empty((2, len(shifts)))
    for side, here in zip(sides, (shifts >= 0.0, shifts < 0.0), strict=True):
        if here.any():
            found[:, here] = shift_likelihoods(*side, shifts[here])
    return found[0], found[1]
