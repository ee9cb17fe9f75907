"""Piecewise logistic regression: log-odds that are a line with kinks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibration._kernels.cells import collapse_ties
from calibration._kernels.logistic import LogisticProblem, fit_logistic
from calibration._validation import (
    check_integer,
    check_number,
    check_optional_seed,
    is_auto,
)
from calibration.base.calibrators import Scale
from calibration.base.log_odds import (
    WEAK_RIDGE,
    LogOddsCalibrator,
    deal_by_rank,
    limit_pull,
    limit_units,
    unpenalised_loss,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# Knots are searched and strengths are compared on this many cells, whatever n is.
_SEARCH_CELLS = 1024
# Rows are dealt over folds from this many cells. They lie far closer than any knots.
_FOLD_CELLS = 32_768
_N_FOLDS = 5
# The strengths that are tried. The strongest comes first, so that of equals the
# smoothest is taken.
_STRENGTHS = 10.0 ** np.arange(4.0, -3.0, -1.0)
# Beyond this strength no kink is left in double precision.
_STRONGEST = 1e12
# "auto" stops adding knots at a gain below this share of the log-likelihood ...
_LEAST_SHARE = 0.01
# ... or below what AIC charges for the two parameters of a knot, its place and kink.
_LEAST_GAIN = 2.0


class PiecewiseLogisticCalibrator(LogOddsCalibrator):
    r"""Piecewise logistic regression: continuous, piecewise linear log-odds.

    Parameters
    ----------
    n_pieces : int or "auto"
        Number of linear pieces. 3 searches the two knots among percentiles of the two
        classes. Other integers and "auto" add knots one by one, which is hill climbing.
        "auto" stops when a knot does not pay.
    regularization : float or "auto"
        Strength :math:`\lambda` of the penalty on kinks, with x in units of its
        standard deviation. "auto" takes the one of 0.01, 0.1, ..., 10 000 with the best
        likelihood on held-out rows, in 5 folds.
    random_state : int or None
        Seed of the folds. None draws one.
    scale : {"probability", "logit", "real"}
        What a score is. Probabilities enter by their log-odds.

    Attributes
    ----------
    knots_ : ndarray of shape (n_pieces - 1,)
        Increasing places of the kinks, in x.
    intercept_ : float
        Log-odds at x = 0 on the line of the first piece.
    slopes_ : ndarray of shape (n_pieces,)
        Slope of each piece.
    regularization_ : float
        The strength used. It is 0 if there is no knot.
    n_pieces_ : int
        Number of pieces. It is less than asked for if the scores allow no more.

    Notes
    -----
    .. math:: \log\frac{P(y=1|x)}{P(y=0|x)}
        = b + a x + \sum_j c_j \max(x - \theta_j, 0)

    minimises the negative log-likelihood plus :math:`\lambda \sum_j (s_x c_j)^2`, where
    :math:`s_x` is the standard deviation of x. :math:`c_j` is the slope right of knot j
    minus the slope left of it, so this is the paper's penalty on slope differences. The
    end pieces continue beyond the training scores. For separable data, a ridge of about
    a thousandth of a row pulls a towards doing nothing. A kink has at least this ridge
    too.

    With three pieces, theta_1 is one of the 10, 20, ..., 90 % percentiles of class 0,
    and theta_2 > theta_1 is one of class 1. The pair with maximum likelihood is taken.
    If there is no such pair, the best single percentile is the one knot.

    Hill climbing chooses from the 5, 10, ..., 95 % percentiles of all scores. Each time
    it takes the knot that gains most. Then knots move to neighbouring percentiles as
    long as that gains. Otherwise an early knot would stay where it was best alone.
    "auto" stops when a knot gains less than 1 % of the log-likelihood, or less than 2.
    AIC charges 2 for a knot. The 1 % alone would admit noise in small samples.

    Held-out folds search their own knots.

    References
    ----------
    Zhang & Yang (2004), Probabilistic score estimation with piecewise logistic
    regression, sections 3.3 and 5.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import PiecewiseLogisticCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=20_000)
    >>> y = rng.uniform(size=20_000) < scores**2
    >>> PiecewiseLogisticCalibrator().fit(scores, y).predict([0.2, 0.5, 0.8]).round(2)
    array([0.04, 0.25, 0.64])
    """

    knots_: Float64Array
    intercept_: float
    slopes_: Float64Array
    regularization_: float
    n_pieces_: int

    def __init__(
        self,
        n_pieces: int | Literal["auto"] = 3,
        regularization: float | Literal["auto"] = "auto",
        random_state: int | None = 0,
        *,
        scale: Scale = "probability",
    ):
        self.n_pieces = n_pieces
        self.regularization = regularization
        self.random_state = random_state
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_auto(self.n_pieces):
            check_integer(self.n_pieces, "n_pieces", 1)
        if not is_auto(self.regularization):
            check_number(self.regularization, "regularization", 0.0, _STRONGEST)
        check_optional_seed(self.random_state)

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        cells = ScoreSummary(*collapse_ties(x, summary.weight0, summary.weight1))
        likelihood = _Likelihood.of(cells, 0.0 if self.scale == "real" else 1.0)
        line = self._search(likelihood, cells)
        self.regularization_ = self._choose_strength(likelihood, cells, len(line.knots))
        line = likelihood.maximise(cells, line.knots, line, self.regularization_)
        order = np.argsort(line.knots)
        self.knots_ = line.knots[order]
        self.n_pieces_ = len(order) + 1
        slope, kinks = line.theta[1], line.theta[2:][order]
        self.slopes_ = np.cumsum(np.append(slope, kinks)) / likelihood.spread
        self.intercept_ = float(line.theta[0] - self.slopes_[0] * likelihood.center)

    def _log_odds(self, x: Float64Array) -> Float64Array:
        out: Float64Array = self.intercept_ + self.slopes_[0] * x
        for knot, kink in zip(self.knots_, np.diff(self.slopes_), strict=True):
            out += kink * np.maximum(x - knot, 0.0)
        return out

    def _search(self, likelihood: _Likelihood, cells: ScoreSummary) -> _Line:
        """Return the line of maximum likelihood, found on condensed cells."""
        if self.n_pieces == 3:
            return _search_pair(likelihood, cells)
        most = None if self.n_pieces == "auto" else self.n_pieces - 1
        return _climb(likelihood, cells, most)

    def _choose_strength(
        self, likelihood: _Likelihood, cells: ScoreSummary, n_knots: int
    ) -> float:
        """Return the given strength, or the best one on held-out folds."""
        if n_knots == 0:
            return 0.0
        if self.regularization != "auto":
            return float(self.regularization)
        gains = np.zeros(len(_STRENGTHS))
        cells = cells.condense(_FOLD_CELLS)
        for rest, fold in deal_by_rank(cells, _N_FOLDS, self.random_state):
            line = self._search(likelihood, rest)
            few = rest.condense(_SEARCH_CELLS)
            held_out = fold.condense(_SEARCH_CELLS)
            for i, strength in enumerate(_STRENGTHS):
                # Each strength starts from the fit of the one before, so that few steps
                # are left.
                line = likelihood.maximise(few, line.knots, line, strength)
                gains[i] += likelihood.value(held_out, line)
        return float(_STRENGTHS[np.argmax(gains)])


@dataclass(frozen=True)
class _Line:
    """Knots in x, and theta: level, first slope and kinks in standard units."""

    knots: Float64Array
    theta: Float64Array


@dataclass(frozen=True)
class _Likelihood:
    """The penalised likelihood, in standard units u = (x - center) / spread."""

    center: float
    spread: float
    # The weak ridge pulls the first slope to this.
    prior_slope: float

    @classmethod
    def of(cls, cells: ScoreSummary, prior_slope: float) -> _Likelihood:
        """Take the units from the weighted moments of the cells."""
        # Work in units of the range. Their squares neither overflow nor vanish.
        width = float(cells.scores[-1] - cells.scores[0]) or 1.0
        center = float(cells.weight @ cells.scores / cells.n)
        variance = cells.weight @ ((cells.scores - center) / width) ** 2 / cells.n
        spread = width * (float(np.sqrt(variance)) or 1.0)
        return cls(center, spread, prior_slope * spread)

    def maximise(
        self, cells: ScoreSummary, knots: Float64Array, start: _Line, strength: float
    ) -> _Line:
        """Return the best line with these knots, from a line with the first of them."""
        p = len(knots) + 2
        # The kernel halves penalties, but the paper does not.
        penalty = np.full(p, max(2.0 * strength, WEAK_RIDGE))
        penalty[:2] = 0.0, limit_pull(WEAK_RIDGE, self.prior_slope)
        prior = np.zeros(p)
        prior[1] = self.prior_slope
        theta = np.append(start.theta, np.zeros(p - len(start.theta)))
        design = self._design(cells.scores, knots)
        problem = LogisticProblem(design, cells.weight0, cells.weight1, penalty, prior)
        return _Line(knots, fit_logistic(limit_units(problem), theta)[0])

    def value(self, cells: ScoreSummary, line: _Line) -> float:
        """Return the log-likelihood of a line, without penalty."""
        design = self._design(cells.scores, line.knots)
        return -unpenalised_loss(design, cells, line.theta)

    def best(
        self, cells: ScoreSummary, start: _Line, choices: Iterable[Float64Array]
    ) -> _Line:
        """Return the most likely of the lines with the knots of each choice."""
        lines = [self.maximise(cells, knots, start, 0.0) for knots in choices]
        return max(lines, key=lambda line: self.value(cells, line), default=start)

    def _design(self, x: Float64Array, knots: Float64Array) -> Float64Array:
        """Return rows of 1, u and max(u - u_j, 0), shape (n_knots + 2, n_cells)."""
        line = [np.ones(len(x)), (x - self.center) / self.spread]
        return np.stack(line + [np.maximum(x - k, 0.0) / self.spread for k in knots])


def _search_pair(likelihood: _Likelihood, cells: ScoreSummary) -> _Line:
    """Choose theta_1 < theta_2 from percentiles of class 0 and of class 1."""
    # This is the search of Zhang & Yang. It takes one knot from the percentiles of each
    # class.
    tenths = np.arange(1, 10) / 10.0
    firsts = _inner(cells, cells.percentiles(tenths, cells.weight0))
    seconds = _inner(cells, cells.percentiles(tenths, cells.weight1))
    pairs = [np.array([a, b]) for a in firsts for b in seconds if a < b]
    singles = np.union1d(firsts, seconds)[:, None]
    few = cells.condense(_SEARCH_CELLS)
    straight = _straight(likelihood, few)
    return likelihood.best(few, straight, pairs or singles)


def _climb(likelihood: _Likelihood, cells: ScoreSummary, most: int | None) -> _Line:
    """Add the best knot until there are `most`, or (for None) until no knot pays."""
    # Take twentieths. From one to the next, a kink moves the fit by less than its
    # noise.
    places = _inner(cells, cells.percentiles(np.arange(1, 20) / 20.0))
    few = cells.condense(_SEARCH_CELLS)
    line = _straight(likelihood, few)
    value = likelihood.value(few, line)
    limit = len(places) if most is None else min(most, len(places))
    while len(line.knots) < limit:
        left = np.setdiff1d(places, line.knots)
        longer = [np.append(line.knots, knot) for knot in left]
        best = _settle(likelihood, few, places, likelihood.best(few, line, longer))
        gain = likelihood.value(few, best) - value
        # A knot must pay for itself. Otherwise noise would add knots for ever.
        if most is None and gain < max(_LEAST_SHARE * abs(value), _LEAST_GAIN):
            break
        line, value = best, value + gain
    return line


def _settle(
    likelihood: _Likelihood, cells: ScoreSummary, places: Float64Array, line: _Line
) -> _Line:
    """Move knots to neighbouring places, the best move first, as long as that helps."""
    seen = {tuple(np.sort(line.knots))}
    while True:
        at = np.searchsorted(places, line.knots)
        moves = []
        for j, near in [(j, i + side) for j, i in enumerate(at) for side in (-1, 1)]:
            if 0 <= near < len(places) and near not in at:
                moved = line.knots.copy()
                moved[j] = places[near]
                # No knots are best twice, except in fits that ran out of steps. Such
                # fits would gain a little each time that they are continued.
                if tuple(np.sort(moved)) not in seen:
                    moves.append(moved)
        best = likelihood.best(cells, line, moves)
        # Use `not >`, so that equal values do not send the search round in a circle.
        if not likelihood.value(cells, best) > likelihood.value(cells, line):
            return line
        line = best
        seen.add(tuple(np.sort(line.knots)))


def _straight(likelihood: _Likelihood, cells: ScoreSummary) -> _Line:
    """Return the line without knots. It is logistic regression."""
    return likelihood.maximise(cells, np.empty(0), _Line(np.empty(0), np.empty(0)), 0.0)


def _inner(cells: ScoreSummary, knots: Float64Array) -> Float64Array:
    """Return the distinct knots with scores on both sides."""
    low, high = cells.scores[0], cells.scores[-1]
    return np.unique(knots[(knots > low) & (knots < high)])
