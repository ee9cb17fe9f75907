"""`CalibrationMonitor`: whether probabilities still mean what they say."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
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

#: Shifts of log-odds that are looked for.
SIZES = np.array([0.15, 0.3, 0.6, 1.2])
# Cells of a batch that are kept, and of the log-odds of all rows so far.
_CELLS, _ALL_CELLS = 50, 1000


class CalibrationMonitor(DriftMonitor):
    r"""An alarm for probabilities that no longer mean what they say.

    Fed with batches of probabilities and outcomes as they come; after each one an
    e-value tells the evidence that the log-odds are off by more than `tolerance`. The
    alarm goes off when it reaches 1 / alpha, which it ever does with probability alpha
    at most as long as they are not, however often one looks and however long.

    Parameters
    ----------
    n_fit : int
        Rows that the calibrator was fitted on. They set the tolerance, and no
        probability is taken to be surer than 1 / (n_fit + 2).
    tolerance : "auto" or float
        Shift of all log-odds that is no alarm. "auto" takes 1.25 standard errors of the
        shift of a calibrator of that size, :math:`1.25 / \sqrt{n \overline{p(1-p)}}`,
        by the probabilities of the first batch: .079 of 1000 rows at one half.
    alpha : float
        Chance of a false alarm, ever.
    memory : float
        Rows after which a row counts half in what is learned of the slope.

    Attributes
    ----------
    alarm_ : bool
        Whether the e-value has ever reached 1 / alpha.
    alarm_row_ : float or None
        Rows seen when it did.
    e_value_, log_e_ : float
        Evidence so far: 1 is none. Its logarithm.
    tolerance_ : float
        In log-odds.
    n_rows_, n_batches_ : float, int
        Seen so far.
    history_ : dict of str to ndarray of shape (n_batches,)
        By batch: "row" (rows with it), "n", "log_e", "log_e_shift", "log_e_line",
        "observed" and "expected" positives, and the "offset" of the batch's log-odds
        with its standard "error". `pandas.DataFrame(monitor.history_)` is a table.

    See Also
    --------
    calibration.plot_monitor : Draw it.

    Notes
    -----
    The e-value is .85 times that of a shift, by universal inference, plus .15 times
    that of a line learned on earlier batches.

    For the shift, the likelihood of the outcomes under a law that keeps a shift within
    the tolerance up to an unknown batch, and has another one from there on (mixed over
    shifts of .15 to 1.2 either way, and over batches), is divided by the greatest
    likelihood of a constant shift d within the tolerance. Over the likelihood of the
    true d it is a martingale of mean 1.

    For the line, a row's factor is its likelihood under the line learned before over
    that of the nearest log-odds within twice the tolerance, farther from even odds as
    many times that as the log-odds say, though never more than .8 of them. A tenth is
    bet on even odds for all rows, whatever was forecast, from the first batch on.
    Forecasts that repeat, as those of a map of steps, may be as much nearer to even
    odds as a rate is of their share of `n_fit` rows: of 14 without an event one in
    14 may still be. More than 500 different ones are no steps.

    Both have the promised level for any fixed shift in [-tolerance, tolerance] of all
    rows. A calibrator that was fitted on n rows has a shift of its own, which is beyond
    1.25 standard errors in one fit of five, and an alarm for it is true: the calibrator
    is off. Within 10 times the rows of the fit it is told in less than 5 % of fits, of
    lines and of step maps, of 20 rows as of 1000.

    Weights count rows; those of rows that are drawn or discounted void the level.
    Batches may have any size, and the level does not depend on it; changes are looked
    for at their beginnings. A batch that holds the rows of one of the last 500, in any
    order, is not counted again, unless they may be equal by chance; a warning says
    which. What is kept has a bound, but for `history_`: beyond 64 batches old
    neighbours are joined, so that old changes are dated less sharply than recent ones.

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
    _all_: ScoreSummary

    def fit(
        self, y_prob: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Begin anew with a first batch.

        Parameters
        ----------
        y_prob : array-like of shape (n,)
            Probabilities of class 1, as they were forecast.
        y : array-like of shape (n,)
            Outcomes coded 0 and 1.
        sample_weight : array-like of shape (n,), optional
            Numbers of repetitions.

        Returns
        -------
        self
        """
        fresh = self._empty().partial_fit(y_prob, y, sample_weight)
        self.__dict__ = fresh.__dict__
        return self

    def partial_fit(
        self, y_prob: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Go on by a batch.

        Parameters
        ----------
        y_prob : array-like of shape (n,)
            Probabilities of class 1, as they were forecast.
        y : array-like of shape (n,)
            Outcomes coded 0 and 1.
        sample_weight : array-like of shape (n,), optional
            Numbers of repetitions.

        Returns
        -------
        self
            As it was before, if the batch is refused.
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
        if self._is_repeated(batch, np.append(cells.weight0, cells.weight1)):
            return self
        rows = logit(p), cells.weight0, cells.weight1
        logs = self._shift_.step(*shift_likelihoods(*rows, self._shift_.shifts), n)
        self._line_.step(*rows, *self._steps_.step(rows[0], cells.weight))
        whole = gather([cells], least=self._surest, max_cells=_ALL_CELLS)
        self._all_ = self._all_ + whole if self.n_batches_ else whole
        self._record(
            n,
            [self._shift_.log_e, self._line_.log_e],
            [logs, gather([cells], max_cells=_CELLS)],
            observed=cells.n1,
            expected=float(cells.weight @ scores),
            offset=(cells.n1 - float(cells.weight @ p)) / information,
            error=information**-0.5,
        )
        return self

    def recent_rows(self) -> ScoreSummary:
        """Return the summary of the rows since the onset, or of all without an alarm.

        What a calibrator may be fitted on to follow the change (`fit_summary`): at most
        64 batches, or spans of older ones, in 50 cells each.

        Returns
        -------
        ScoreSummary
            Of probabilities.
        """
        check_is_fitted(self)
        return gather(self._recent()[1])

    def advise(self) -> Advice:
        """Return what to do, and the evidence for it.

        Returns
        -------
        Advice
            "nothing" as long as there is no alarm; after it the least of the others
            that helps on the rows since the onset.
        """
        cells = gather([self.recent_rows()], least=self._surest)
        evidence = held_out_gains(cells)
        offset, slope = map(float, fit_line(cells))
        delivered = delivered_share(cells, evidence)
        action = choose_action(evidence, delivered, alarm=self.alarm_)
        return Advice(action, evidence, cells.n, offset, slope, delivered)

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
        f = self._all_
        return shift_likelihoods(f.scores, f.weight0, f.weight1, shifts)[0]
