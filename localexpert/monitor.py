"""`ForecastMonitor`: whether forecasts of whole distributions still hold.

It looks at bins of the probability integral transform: bets on them, and advice.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logit, ndtr, ndtri
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from calibration import Advice, ScoreSummary
from calibration._validation import (
    all_or_nothing,
    check_vector,
    check_weights,
    is_auto,
    refuse,
)
from calibration.drift.base import (
    DriftMonitor,
    choose_action,
    delivered_share,
    gather,
    held_out_gains,
)
from calibration.drift.evidence import (
    OnsetMixture,
    ShiftProcess,
    likeliest_start,
    shift_likelihoods,
)
from calibration.typing import Float64Array
from localexpert.data.training_rows import SeenRows
from localexpert.distribution.predictive import PredictiveDistribution, check_outcomes

#: Bins of equal probability for a true forecast.
N_BINS = 20
#: Their inner edges as scores of the normal law.
EDGES: Float64Array = ndtri(np.arange(1, N_BINS) / N_BINS)
# Bounds of the shift and the log scale that forecasts are corrected by.
_REACH = [(-3.0, 3.0), (-1.5, 1.5)]
# So that no bin is ever impossible.
_LEAST = 1e-300
# Levels so close have one score.
_NARROW = 1e-6
# Spreads of the scores that are bet on, each as much; the rest is on what is learned.
_SCALES = (0.75, 0.87, 1.15, 1.33)
_SHARE_LEARNED = 0.5
# Rows' worth of uniform counts that learning begins with.
_PRIOR = 200.0


def count_bins(
    below: Float64Array, upto: Float64Array, weight: Float64Array
) -> Float64Array:
    """Return the weight in each of the bins, shape (20,).

    Parameters
    ----------
    below, upto : ndarrays of shape (n,)
        P(Y < y) and P(Y <= y). Weight is spread evenly over what lies between: what
        draws from there bet on average is a fair bet, too.
    weight : ndarray of shape (n,)
    """
    width = np.maximum(upto - below, _LEAST)
    edges = np.arange(1, N_BINS) / N_BINS
    left = [weight @ np.clip((edge - below) / width, 0.0, 1.0) for edge in edges]
    return np.diff(left, prepend=0.0, append=weight.sum())


def mean_scores(below: Float64Array, upto: Float64Array) -> Float64Array:
    """Return the mean normal scores (n,) of the levels between."""
    height = np.exp(-0.5 * ndtri([below, upto]) ** 2) / np.sqrt(2.0 * np.pi)
    mean = (height[0] - height[1]) / np.maximum(upto - below, _LEAST)
    return np.where(upto - below > _NARROW, mean, ndtri(0.5 * (below + upto)))


def normal_bins(
    shift: float | Float64Array, scale: float | Float64Array = 1.0
) -> Float64Array:
    """Return the probabilities (20,) of the bins if scores are normal.

    Of shifts or scales (m, 1) they are (m, 20).
    """
    edges = (EDGES - shift) / scale
    below = np.diff(ndtr(edges), prepend=0.0, append=1.0)
    above = -np.diff(ndtr(-edges), prepend=1.0, append=0.0)
    # Differences of small numbers, not of numbers close to 1.
    is_high = np.append(np.zeros_like(edges[..., :1]), edges, axis=-1) > 0.0
    return np.maximum(np.where(is_high, above, below), _LEAST)


def shift_likelihoods_of_bins(
    counts: Float64Array, shifts: Float64Array
) -> tuple[Float64Array, Float64Array]:
    r"""Return log-likelihood ratios (..., m) of shifts of the scores, and derivatives.

    Under the shift d the scores :math:`\Phi^{-1}(U)` are normal with mean d, and the
    chance of a bin between edges is :math:`\Phi(z_k - d) - \Phi(z_{k-1} - d)`, which is
    log-concave in d.

    Parameters
    ----------
    counts : ndarray of shape (..., 20)
    shifts : ndarray of shape (m,)
    """
    apart = EDGES - shifts[:, None]
    density = np.exp(-0.5 * apart**2) / np.sqrt(2.0 * np.pi)
    chance = normal_bins(shifts[:, None])
    # Of the outer edges the density is 0.
    change = -np.diff(density, prepend=0.0, append=0.0, axis=1)
    return counts @ np.log(N_BINS * chance).T, counts @ (change / chance).T


class BandBets(OnsetMixture):
    r"""A betting martingale on the probability integral transform.

    The null is a band, whatever the law within it: given all before, each transform U
    has :math:`\Phi(\Phi^{-1}(u) - \tau) \le P(U \le u) \le \Phi(\Phi^{-1}(u) + \tau)`.
    A bet is the chance of the bin that U falls into, under another law, over that
    under the law of the band that is nearest (its CDF clipped), over the
    greatest mean that this may have in the band. Laws are normal scores that are spread
    too little or too much, and the histogram of earlier batches, older ones counting
    less.

    Parameters
    ----------
    tolerance, memory : float
    """

    def __init__(self, tolerance: float, memory: float):
        shares = np.full(len(_SCALES), (1.0 - _SHARE_LEARNED) / len(_SCALES))
        super().__init__(np.append(shares, _SHARE_LEARNED))
        self.tolerance, self.memory = tolerance, memory
        # Logarithms of the bets that are not learned, and what is learned from.
        laws = normal_bins(0.0, np.array(_SCALES)[:, None])
        self.fixed, self.counts = make_bet(laws, tolerance), np.zeros(N_BINS)

    def step(self, counts: Float64Array) -> None:
        """Bet on the counts (..., 20) of a batch, then learn from them."""
        law = self._learned()
        bet = np.sum(make_bet(law, self.tolerance) * counts, axis=-1, keepdims=True)
        n = float(counts.sum() / max(counts[..., 0].size, 1))
        self.bet(np.concatenate([counts @ self.fixed.T, bet], axis=-1), n)
        self.counts = 0.5 ** (n / self.memory) * self.counts + counts

    def _learned(self) -> Float64Array:
        learned = self.counts + _PRIOR / N_BINS
        return np.asarray(learned / learned.sum(axis=-1, keepdims=True))

    def learned_gains(self) -> Float64Array:
        """Return what the learned law gains over the uniform one in each bin."""
        return np.log(N_BINS * self._learned())


def make_bet(law: Float64Array, tolerance: float) -> Float64Array:
    """Return the logarithm of what a bin (..., 20) pays if one bets on a law (..., 20).

    Its mean is at most 1 under every law of the band.
    """
    low, high = ndtr(EDGES - tolerance), ndtr(EDGES + tolerance)
    nearest = np.clip(np.cumsum(law, axis=-1)[..., :-1], low, high)
    pays = law / np.diff(nearest, prepend=0.0, append=1.0)
    most = greatest_mean(pays, low, high)
    return np.asarray(np.log(pays / most[..., None]))


def greatest_mean(
    pays: Float64Array, low: Float64Array, high: Float64Array
) -> Float64Array:
    r"""Return the greatest mean (...) that pays of bins can have under a law of a band.

    The mean is linear in the CDF at the inner edges, which increases and lies between
    `low` and `high`. In a vertex of such CDFs each value is one of these bounds, of
    this edge or another, so that the greatest of all is found edge by edge.

    Parameters
    ----------
    pays : ndarray of shape (..., k)
    low, high : ndarrays of shape (k - 1,)
    """
    values = np.unique(np.concatenate([low, high]))
    best = np.zeros((*pays.shape[:-1], len(values)))
    for k in range(len(low)):
        inside = (values >= low[k]) & (values <= high[k])
        drop = (pays[..., k] - pays[..., k + 1])[..., None]
        reached = drop * values + np.maximum.accumulate(best, axis=-1)
        best = np.where(inside, reached, -np.inf)
    return np.asarray(pays[..., -1] + best.max(axis=-1))


def gains_of_bins(counts: Float64Array) -> tuple[dict[str, float], tuple[float, float]]:
    """Return what corrections gain in log-likelihood, and the line of the best scores.

    Gains are of rows that were not learned from: a parameter costs one nat (Akaike),
    and of the histogram each row is left out in turn.

    Parameters
    ----------
    counts : ndarray of shape (20,)

    Returns
    -------
    gains : dict of str to float
    line : (shift, scale)
        Of normal scores.
    """

    def loss(line: Float64Array) -> float:
        law = normal_bins(float(line[0]), float(np.exp(line[1])))
        return -float(counts @ np.log(N_BINS * law))

    shift = minimize_scalar(lambda d: loss(np.array([d, 0.0])), bounds=_REACH[0])
    how: dict[str, Any] = {"options": {"xatol": 1e-6, "fatol": 1e-6}}
    line = minimize(loss, [shift.x, 0.0], method="Nelder-Mead", bounds=_REACH, **how)
    # Each row's bin by the others, with one row more in each bin.
    n = counts.sum()
    left_out = np.log(N_BINS * np.maximum(counts, 1.0) / max(n - 1.0 + N_BINS, 1.0))
    gains = {
        "nothing": 0.0,
        "shift": -float(shift.fun) - 1.0,
        "shift and slope": -float(line.fun) - 2.0,
        "recalibrate": float(counts @ left_out),
    }
    return gains, (float(line.x[0]), float(np.exp(line.x[1])))


# Shifts that are looked for, in deviations of a forecast, and times these in log-odds.
_SIZES = np.array([0.1, 0.2, 0.4, 0.8])
_ODDS = 1.5
# Where the thresholds lie in all forecasts of the first batch.
_LEVELS = (0.25, 0.5, 0.75)
_GRID = np.arange(1, 40) / 40
# Cells of a batch that are kept of each threshold.
_CELLS = 32
# Why outcomes that were learned from are of no use here.
_LEARNED = (
    "Outcomes that were learned from look better forecast than they are: a monitor "
    "needs new rows."
)


class ForecastMonitor(DriftMonitor):
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

    If an outcome has probability of its own, it counts in all bins that the jump of the
    CDF covers, by the share of each. An outcome that a forecast held for impossible
    falls into its outermost bin; it is counted, not refused. A batch that holds the
    rows of one of the last 500, in any order, is not counted again, unless they may be
    equal by chance; a warning says which. What is kept has a bound, but for `history_`:
    beyond 64 batches old neighbours are joined, so that old changes are dated less
    sharply than recent ones.

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

    # By shift of the transform, by its law, by thresholds.
    _shares: ClassVar = {"shift": 0.6, "law": 0.15, "thresholds": 0.25}
    _reach = 6.0
    _parts = ("_shift_", "_law_", "_at_", "thresholds_")
    thresholds_: Float64Array

    def __init__(
        self,
        n_fit: int = 1000,
        *,
        thresholds: ArrayLike | Literal["auto"] = "auto",
        tolerance: float | Literal["auto"] = "auto",
        alpha: float = 0.05,
        memory: float = 2000.0,
    ):
        super().__init__(n_fit, tolerance=tolerance, alpha=alpha, memory=memory)
        self.thresholds = thresholds

    def fit(
        self,
        dist: PredictiveDistribution,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        seen: SeenRows | None = None,
    ) -> Self:
        """Begin anew with a first batch.

        Parameters
        ----------
        dist : PredictiveDistribution
            What was forecast of n rows.
        y : array-like of shape (n,)
            Outcomes.
        sample_weight : array-like of shape (n,), optional
            How often each row counts.
        seen : SeenRows, optional
            What `seen_rows(model, X, y)` says of the batch: of rows that the model has
            learned from there is a warning.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            return self.partial_fit(dist, y, sample_weight, seen=seen)

    def partial_fit(
        self,
        dist: PredictiveDistribution,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        seen: SeenRows | None = None,
    ) -> Self:
        """Go on by a batch.

        Parameters
        ----------
        dist : PredictiveDistribution
            What was forecast of n rows.
        y : array-like of shape (n,)
            Outcomes.
        sample_weight : array-like of shape (n,), optional
            How often each row counts.
        seen : SeenRows, optional
            What `seen_rows(model, X, y)` says of the batch: of rows that the model has
            learned from there is a warning.

        Returns
        -------
        self
            As it was before, if the batch is refused.
        """
        outcomes = check_outcomes(y, dist)
        weight = check_weights(sample_weight, len(outcomes))
        n = float(weight.sum())
        self._check(n)
        new = self._is_new
        thresholds = self._choose_thresholds(dist, weight) if new else self.thresholds_
        p = np.clip(dist.cdf_at(thresholds), self._surest, 1.0 - self._surest)
        pit, upto, median = dist.pit(outcomes), dist.cdf(outcomes), dist.median()
        # The transform is the middle of a jump.
        below = np.maximum(2.0 * pit - upto, 0.0)
        if seen is not None:
            if not isinstance(seen, SeenRows):
                refuse("seen", "be SeenRows or None", f"{seen!r}", TypeError)
            seen.warn(_LEARNED)
        if new:
            self._set_up(weight @ (p * (1.0 - p)) / n)
            self.thresholds_ = thresholds
        # Rows of weight 0 are none.
        held = weight > 0.0
        batch = np.column_stack([p, median, outcomes])
        if self._is_repeated(batch[held], weight[held]):
            return self
        counts, logs, cells = count_bins(below, upto, weight), [], []
        self._shift_.step(*shift_likelihoods_of_bins(counts, self._shift_.shifts), n)
        self._law_.step(counts)
        for t, process, said in zip(thresholds, self._at_, p.T, strict=True):
            upto_t = outcomes <= dist.law.snap(t)
            one = ScoreSummary.from_scores(said, upto_t, weight)
            rows = logit(one.scores), one.weight0, one.weight1
            logs.append(process.step(*shift_likelihoods(*rows, process.shifts), n))
            cells.append(gather([one], max_cells=_CELLS))
        at = np.logaddexp.reduce([one.log_e for one in self._at_]) - np.log(len(logs))
        most = ndtri(1.0 - self._surest)
        scores = np.clip(mean_scores(below, upto), -most, most)
        self._record(
            n,
            [self._shift_.log_e, self._law_.log_e, at],
            [counts, np.array(logs), *cells],
            offset=float(weight @ scores / n),
            error=n**-0.5,
            bias=float(weight @ (outcomes - median) / n),
            outside=float(weight @ ((pit <= 0.0) | (pit >= 1.0))),
        )
        return self

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
        binned, _, *cells = self._recent()
        counts = np.sum(binned, axis=0)
        gains, (offset, scale) = gains_of_bins(counts)
        shares = []
        for parts in cells:
            f = gather(parts, least=self._surest)
            shares.append(delivered_share(f, held_out_gains(f)))
        known = np.array(shares)[~np.isnan(shares)]
        delivered = float(known.mean()) if len(known) else float("nan")
        action = choose_action(gains, delivered, alarm=self.alarm_)
        return Advice(action, gains, float(counts.sum()), offset, scale, delivered)

    def _add_any(self) -> None:
        self.partial_fit(PredictiveDistribution.from_scipy(norm([0.0], 1.0)), [0.0])

    def _find_span(self, leader: str) -> int:
        binned, logs = (np.array([span[k] for span in self._spans_]) for k in (0, 1))
        if leader == "law":
            return likeliest_start(binned @ self._law_.learned_gains())
        if leader == "shift":
            shifts = self._shift_.shifts
            likelihoods = shift_likelihoods_of_bins(binned, shifts)[0]
            return self._shift_.find_onset(likelihoods)
        best = int(np.argmax([one.log_e for one in self._at_]))
        return self._at_[best].find_onset(logs[:, best])

    def _likelihood(self, shifts: Float64Array) -> Float64Array:
        counts = np.sum([span[0] for span in self._spans_], axis=0)
        return shift_likelihoods_of_bins(counts, shifts)[0]

    def _choose_thresholds(
        self, dist: PredictiveDistribution, weight: Float64Array
    ) -> Float64Array:
        if is_auto(self.thresholds):
            said, rows = dist.quantiles(_GRID).ravel(), np.repeat(weight, len(_GRID))
            return np.unique(
                np.quantile(said, _LEVELS, weights=rows, method="inverted_cdf")
            )
        return np.unique(check_vector(self.thresholds, "thresholds"))

    def _set_up(self, information: Float64Array) -> None:
        """Begin anew, with the information (k,) of a row at the thresholds."""
        self._start()
        self._shift_ = ShiftProcess(self.tolerance_, _SIZES)
        self._law_ = BandBets(self.tolerance_, float(self.memory))
        bounds = self.tolerance_ / np.sqrt(information)
        self._at_ = [ShiftProcess(float(one), _ODDS * _SIZES) for one in bounds]
