"""Maps of levels, so that F becomes G(F): their base, and those by likelihood."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import simpson
from scipy.interpolate import BSpline
from scipy.special import ndtr, ndtri

from calibration._validation import (
    check_list,
    check_number,
    check_same_length,
    check_vector,
    check_weights,
    refuse,
    warn_of_light,
)
from calibration.typing import Float64Array
from localexpert.data.folds import Fold, known_folds, make_folds, number_folds
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, log_rate, map_levels

Forecast = TypeVar("Forecast", Law, PredictiveDistribution)


class Recalibration(ABC):
    """A correction of forecasts, learned from past forecasts and their outcomes.

    Forecasts are laws or distributions of any model, of this package or another.
    A subclass sets `map_`, the map for new rows, and `oof_map_`, the map for the rows
    that the regressor was trained on. Each of these rows gets a map that has not
    learned from it.
    """

    #: Whether nothing else may see the rows that it is fitted on.
    holds_out: ClassVar[bool]
    map_: LevelMap
    oof_map_: LevelMap

    def fit(
        self,
        law: Law | PredictiveDistribution,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        folds: list[Fold] | None = None,
    ) -> Self:
        """Learn the map from laws and outcomes; no law may know its row's outcome.

        Parameters
        ----------
        law : Law or PredictiveDistribution
            Of n rows.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        folds : list of (train, test), optional
            Folds of these rows; each row is in one test part. The map of a fold is
            learned from its training rows: all other folds, or the earlier ones if time
            orders them. Not used if `holds_out` is true.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._learn(*check_rows(law, y, sample_weight), folds)
        return self

    @abstractmethod
    def _check_parameters(self) -> None:
        """Refuse invalid constructor arguments, before anything is fitted."""

    @abstractmethod
    def _learn(
        self, law: Law, y: Float64Array, weight: Float64Array, folds: list[Fold] | None
    ) -> None:
        """Set `map_` and `oof_map_`."""

    @abstractmethod
    def choices(self) -> dict[str, Any]:
        """Return the choices that `fit` made.

        Returns
        -------
        dict
            Ready for JSON.
        """

    def apply(self, law: Forecast) -> Forecast:
        """Return the forecasts with CDF G(F), for new rows.

        Parameters
        ----------
        law : Law or PredictiveDistribution

        Returns
        -------
        Law or PredictiveDistribution
            Of the type given; the same object if the map is the identity.
        """
        return correct(law, self.map_)

    def apply_oof(self, law: Forecast) -> Forecast:
        """Return the out-of-fold forecasts of the training rows, recalibrated.

        Parameters
        ----------
        law : Law or PredictiveDistribution
            Forecasts of the rows of `fit`, in their order.

        Returns
        -------
        Law or PredictiveDistribution
            Each row by a map that has not seen it.
        """
        return correct(law, self.oof_map_)


def correct(given: Forecast, levels: LevelMap) -> Forecast:
    """Return forecasts with CDF G(F), of the type given."""
    law = _law_of(given)
    mapped = map_levels(law, levels)
    if mapped is law:
        return given
    if isinstance(given, PredictiveDistribution):
        return replace(given, law=mapped)
    return mapped


def _law_of(given: Any) -> Law:
    """Return a law as it is, or the law of a distribution."""
    law = given.law if isinstance(given, PredictiveDistribution) else given
    if not isinstance(law, Law):
        rule = "be a Law or a PredictiveDistribution"
        refuse("law", rule, type(given).__name__, TypeError)
    return law


def check_rows(
    given: Law | PredictiveDistribution, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Law, Float64Array, Float64Array]:
    """Return the law, and targets and weights of its length."""
    law, target = _law_of(given), check_vector(y, "y")
    check_same_length(len(law), "`law`", len(target), "y")
    weights = check_weights(sample_weight, len(target))
    warn_of_light(weights, stacklevel=3)
    return law, target, weights


# Knots of h(z) - z, in normal deviations. The curve is constant beyond them.
_KNOTS = np.linspace(-3.0, 3.0, 11)
_STEP = float(_KNOTS[1] - _KNOTS[0])
# Least h' at the knots.
_LEAST_SLOPE = 0.02
# Least h' at a row during the search.
_FLATTEST = 1e-4
# Cells of scores: the rows of a cell count as one score, their mean.
_EDGES = np.linspace(-8.0, 8.0, 513)
_MIDDLES = 0.5 * (_EDGES[:-1] + _EDGES[1:])
# Weight of the integral of h''^2 for each uniform row.
_ROUGHNESS = 0.1
_MAX_STEPS = 100
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class PitCells:
    """Scores of PIT values, added up in cells for each fold.

    Parameters
    ----------
    weight : ndarray of shape (F, C)
        Weight in each fold and cell.
    sums : ndarray of shape (F, C)
        Weight times score.
    """

    weight: Float64Array
    sums: Float64Array

    @classmethod
    def of(
        cls,
        ends: Float64Array,
        furthest: float,
        weight: Float64Array,
        fold: NDArray[np.int64],
        n_folds: int,
    ) -> PitCells:
        """Gather the rows.

        Parameters
        ----------
        ends : ndarray of shape (n, 1) or (n, 2)
            Scores of the rows, or of both ends of their jumps. Weight is spread over a
            jump like the normal law.
        furthest : float
            Scores are clipped to -furthest and furthest.
        weight : ndarray of shape (n,)
        fold : ndarray of shape (n,)
        n_folds : int

        Returns
        -------
        PitCells
        """
        most = min(furthest, _EDGES[-1])
        low, high = np.clip(ends[:, [0, -1]], -most, most).T
        first, last = np.maximum(np.searchsorted(_EDGES, [low, high]) - 1, 0)
        size = n_folds, len(_MIDDLES)

        def add_up(cell: NDArray[np.int64], values: Float64Array) -> Float64Array:
            place = np.ravel_multi_index((fold, cell), size)
            sums = [np.bincount(place, part, size[0] * size[1]) for part in values]
            return np.asarray(sums, dtype=np.float64).reshape(-1, *size)

        wide = first < last
        density = wide * weight / np.where(wide, _normal_parts(low, high)[0], 1.0)
        in_one = ~wide * weight * np.stack([np.ones(len(low)), 0.5 * (low + high)])
        starts = in_one + density * _normal_parts(low, _EDGES[first + 1])
        parts = add_up(first, starts)
        parts += add_up(last, density * _normal_parts(_EDGES[last], high))
        # Cells between both ends are covered as a whole: they get the densities of rows
        # that have begun less those that have ended. Rounding errors are set to 0.
        begun = add_up(np.minimum(first + 1, last), density[None])
        begun -= add_up(last, density[None])
        covered = np.maximum(np.cumsum(begun, axis=2), 0.0)
        return cls(*(parts + covered * _normal_parts(_EDGES[:-1], _EDGES[1:])[:, None]))

    @property
    def scores(self) -> Float64Array:
        """Mean score in each fold and cell, (F, C); 0 in empty cells."""
        return self.sums / np.where(self.weight == 0.0, 1.0, self.weight)

    def take(self, folds: Sequence[int]) -> PitCells:
        """Return the cells of some folds together.

        Parameters
        ----------
        folds : sequence of int

        Returns
        -------
        PitCells
        """
        chosen = (part[list(folds)] for part in (self.weight, self.sums))
        return PitCells(*(part.sum(0, keepdims=True) for part in chosen))

    def gains(self, maps: list[LevelMap]) -> Float64Array:
        """Return log G' of each fold's map in the fold's cells, (F, C)."""
        by_fold = LevelMap.by_row(maps, np.arange(len(maps)))
        scores = self.scores
        return log_rate(scores, *by_fold.forward(scores))


def _normal_parts(low: Float64Array, high: Float64Array) -> Float64Array:
    """Return the integrals of phi(z) and of z phi(z) from low to high, (2, m)."""
    # The smaller tail keeps its digits.
    upper = low > 0.0
    a, b = np.where(upper, -high, low), np.where(upper, -low, high)
    density = np.exp(-0.5 * np.square([low, high])) / np.sqrt(2.0 * np.pi)
    return np.stack([ndtr(b) - ndtr(a), density[0] - density[1]])


def fit_curve(cells: PitCells, strength: float) -> LevelMap:
    """Return the curve of greatest penalised likelihood, by Newton's method.

    Parameters
    ----------
    cells : PitCells
        Cells of one fold.
    strength : float
        Number of uniform rows to add; inf gives the identity.

    Returns
    -------
    LevelMap
    """
    if not (np.isfinite(strength) and cells.weight.any()):
        return LevelMap.through(_KNOTS, _KNOTS, np.ones(len(_KNOTS)))
    used = cells.weight[0] > 0.0
    z = np.concatenate([cells.scores[0, used], _MIDDLES])
    uniform = np.exp(-0.5 * _MIDDLES**2)
    weight = np.append(cells.weight[0, used], strength / uniform.sum() * uniform)
    found = _maximise(z, weight, strength * _ROUGHNESS * _roughness())
    curve, slopes = _spline()(_KNOTS) @ found, _spline()(_KNOTS, 1) @ found
    # `LevelMap` accepts a share of a correction, up to 1. The cubic pieces already
    # increase. But the slopes 1 + slope of a Hermite curve must be at most 3 times the
    # chords 1 + rise beside them.
    rises = np.diff(curve) / _STEP
    steepest = float((np.maximum(slopes[1:], slopes[:-1]) - 3.0 * rises).max())
    fall, most = -float(min(slopes.min(), rises.min())), 1.0 - _LEAST_SLOPE
    share = min(2.0 / max(steepest, 2.0), most / max(fall, most))
    return LevelMap.through(_KNOTS, _KNOTS + share * curve, 1.0 + share * slopes)


def _maximise(
    z: Float64Array, weight: Float64Array, penalty: Float64Array
) -> Float64Array:
    """Return the coefficients of d, where h(z) = z + d(z), by damped Newton steps.

    The objective, sum of weight (log h' - h^2 / 2 + z^2 / 2) - d' penalty d / 2, is
    concave in d; the uniform rows in every cell keep h' positive.
    """
    inside = np.clip(z, _KNOTS[0], _KNOTS[-1])
    basis, rates = _spline()(inside), _spline()(inside, 1)

    def objective(d: Float64Array) -> float:
        moved, slopes = basis @ d, 1.0 + rates @ d
        # A map that is nearly flat where few rows lie makes Newton steps fail.
        if slopes.min() <= _FLATTEST:
            return -np.inf
        score = weight @ (np.log(slopes) - moved * (z + 0.5 * moved))
        return float(score - 0.5 * d @ penalty @ d)

    d = np.zeros(basis.shape[1])
    for _ in range(_MAX_STEPS):
        slopes = 1.0 + rates @ d
        slope = rates.T @ (weight / slopes) - basis.T @ (weight * (z + basis @ d))
        slope -= penalty @ d
        bend = basis.T @ (weight[:, None] * basis) + penalty
        bend += rates.T @ ((weight / slopes**2)[:, None] * rates)
        step, length, best = np.linalg.solve(bend, slope), 1.0, objective(d)
        while objective(d + length * step) < best and length > _TOLERANCE:
            length *= 0.5
        if length * (slope @ step) <= _TOLERANCE * weight.sum():
            break
        d = d + length * step
    return d


@cache
def _spline() -> BSpline:
    """Return cubic B-splines; the outer three at either end are joined to one.

    So their sums have no slope and no curvature at the outer knots. Beyond these they
    are constant, and keep two continuous derivatives.
    """
    beyond = _STEP * np.arange(1.0, 4.0)
    knots = np.concatenate([_KNOTS[0] - beyond[::-1], _KNOTS, _KNOTS[-1] + beyond])
    free = np.eye(len(_KNOTS) - 2)
    return BSpline(knots, np.vstack([free[[0, 0]], free, free[[-1, -1]]]), 3)


@cache
def _roughness() -> Float64Array:
    """Return the integrals of products of the splines' second derivatives.

    These derivatives are straight between knots, so Simpson's rule is exact.
    """
    bends = _spline()(np.linspace(_KNOTS[0], _KNOTS[-1], 2 * len(_KNOTS) - 1), 2)
    products = bends[:, :, None] * bends[:, None, :]
    return np.asarray(simpson(products, dx=0.5 * _STEP, axis=0))


def furthest_score(weight: float) -> float:
    """Return the normal score beyond which so many rows cannot say anything.

    Parameters
    ----------
    weight : float
        Sum of the weights of all rows.

    Returns
    -------
    float
    """
    return -float(ndtri(0.5 / (weight + 1.0)))


class _ByScores(Recalibration):
    """A base of those that learn from scores in cells, by a map for each fold."""

    holds_out = False
    random_state: int | None

    def _learn(
        self, law: Law, y: Float64Array, weight: Float64Array, folds: list[Fold] | None
    ) -> None:
        n = len(y)
        if folds is None:
            if n < 2:
                refuse("y", "have at least two rows", n)
            seed = self.random_state
            folds = make_folds(n, random_state=seed, sample_weight=weight)
        number = number_folds(folds, n)
        ends = law.scores(y[:, None], np.array([[0.0, 1.0]]))
        furthest = furthest_score(float(weight.sum()))
        cells = PitCells.of(ends, furthest, weight, number, len(folds))
        maps = self._choose(cells, known_folds(folds, n))
        self.oof_map_ = LevelMap.by_row(maps, number)

    @abstractmethod
    def _choose(self, cells: PitCells, known: list[list[int]]) -> list[LevelMap]:
        """Set the map, and return the map of each fold.

        It is learned from the folds that this fold knows, see `known_folds`. If it
        knows none, it is the identity.
        """


class PitRecalibration(_ByScores):
    r"""A smooth map learned from out-of-fold PIT values; no guarantee.

    Parameters
    ----------
    strengths : sequence of float
        Candidates for the strength of the pull towards the identity, in rows: strength
        s counts as s rows whose PIT values are uniform. The identity itself is always a
        candidate.
    random_state : int, optional
        Seed that deals the rows to five folds if `fit` gets no folds.

    Attributes
    ----------
    map_, oof_map_ : LevelMap
        The map for new rows, and for each training row a map from other folds.
    strength_ : float
        The strength chosen; inf is the identity.
    losses_ : dict of float to float
        Held-out log score of the PIT values by strength; that of the identity is 0.

    Notes
    -----
    With z = Phi^-1(F(y)) the log score changes by -log G'(F(y)), where

    .. math:: \log G' = \log h'(z) - h(z)^2 / 2 + z^2 / 2.

    h(z) - z is a cubic spline between +-2.4, and constant beyond. It maximises three
    terms: this sum over rows, which is concave, plus the same sum over the s uniform
    rows, minus s times the roughness of h. The strength chosen is the greatest one
    whose held-out score is within one standard error of the best. So noise changes
    nothing.

    If y has probability of its own, its PIT value is spread evenly over the jump of F.
    The score of the spread value is a bound: by Jensen's inequality the log score of
    the jump gains at least as much.

    References
    ----------
    Gneiting, Balabdaoui & Raftery (2007), Probabilistic forecasts, calibration and
    sharpness; Czado, Gneiting & Held (2009), Predictive model assessment for count
    data.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.recalibration.pit import PitRecalibration
    >>> y = np.random.default_rng(0).choice(3, size=500, p=[0.1, 0.2, 0.7])
    >>> rows = np.tile([0.3, 0.4, 0.3], (500, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> better = PitRecalibration(random_state=0).fit(dist, y).apply(dist)
    >>> bool(better.masses[0, 2] > 0.6)
    True

    Forecasts of any library are corrected by their past. Here they are too narrow:

    >>> from scipy import stats
    >>> past = PredictiveDistribution.from_scipy(stats.norm(0.0, 1.0), 500)
    >>> outcomes = np.random.default_rng(0).normal(0.0, 2.0, 500)
    >>> wider = PitRecalibration(random_state=0).fit(past, outcomes)
    >>> bool(wider.apply(past[:3]).std().min() > 1.5)
    True
    """

    def __init__(
        self,
        strengths: tuple[float, ...] = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0),
        *,
        random_state: int | None = None,
    ):
        self.strengths = strengths
        self.random_state = random_state

    def fit_cells(self, cells: PitCells) -> Self:
        """Choose the strength by folds of other rows than those of `oof_map_`.

        Parameters
        ----------
        cells : PitCells
            Cells of rows that no model has seen; each fold may learn from all others.
            The cells of a table are the sums of the cells of its parts.

        Returns
        -------
        self
        """
        self._check_parameters()
        folds = range(len(cells.weight))
        self._choose(cells, [[k for k in folds if k != fold] for fold in folds])
        self.oof_map_ = self.map_
        return self

    def _choose(self, cells: PitCells, known: list[list[int]]) -> list[LevelMap]:
        pulls = [np.inf, *sorted(self.strengths, reverse=True)]
        maps = [[fit_curve(cells.take(some), s) for some in known] for s in pulls]
        gains = np.array([cells.gains(one) for one in maps])
        n = float(cells.weight.sum())
        means = np.einsum("fc,sfc->s", cells.weight, gains) / n
        # Differences row by row, because noise that strengths share does not count.
        away = gains - gains[int(np.argmax(means))]
        squares = np.einsum("fc,sfc->s", cells.weight, away**2) / n
        errors = np.sqrt(np.maximum(squares - (means - means.max()) ** 2, 0.0) / n)
        best = int(np.argmax(means + errors >= means.max()))
        self.strength_ = pulls[best]
        self.losses_ = dict(zip(pulls, (means[0] - means).tolist(), strict=True))
        self.map_ = fit_curve(cells.take(range(len(known))), self.strength_)
        return maps[best]

    def _check_parameters(self) -> None:
        for strength in check_list(self.strengths, "strengths", "numbers"):
            check_number(strength, "strengths", 0.0, np.inf)

    def choices(self) -> dict[str, Any]:
        """Return the strength, and the scores of all candidates.

        Returns
        -------
        dict
            Ready for JSON.
        """
        losses = {str(s): loss for s, loss in self.losses_.items()}
        strength = str(self.strength_)
        same = "nothing is changed" if strength == "inf" else f"strength {strength}"
        return {"kind": "pit", "chosen": same, "strength": strength, "losses": losses}


# A fit adds so many rows with scores of mean 0 and deviation 1.
_PULL = 4.0
# Least and greatest width of new forecasts, as a multiple of the old width.
_WIDTHS = 0.1, 10.0


class ShiftRecalibration(_ByScores):
    r"""A shift of all forecasts in their standard deviations, with a slope if wanted.

    It learns at most two numbers. So it helps least, and needs the fewest rows.

    Parameters
    ----------
    slope : bool
        Whether forecasts are widened or narrowed too.
    random_state : int, optional
        Seed that deals the rows to five folds if `fit` gets no folds.

    Attributes
    ----------
    map_, oof_map_ : LevelMap
        The map for new rows, and for each training row a map from other folds.
    offset_, width_ : float
        Mean and standard deviation of the scores of the rows, pulled towards 0 and 1
        with the weight of four rows.

    Notes
    -----
    Scores are :math:`z = \Phi^{-1}(F(y))`; if y has probability of its own they are
    spread over the jump of F. The new CDF is
    :math:`\Phi((\Phi^{-1}(F) - \mu) / \sigma)`. A normal law with mean m and deviation
    s becomes the normal law with mean :math:`m + \mu s` and deviation
    :math:`\sigma s`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.stats import norm
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.recalibration.pit import ShiftRecalibration
    >>> dist = PredictiveDistribution.from_scipy(norm(0.0, 1.0), 400)
    >>> y = np.random.default_rng(0).normal(1.0, 1.0, 400)
    >>> moved = ShiftRecalibration(random_state=0).fit(dist, y).apply(dist)
    >>> bool(abs(moved.mean()[0] - y.mean()) < 0.05)
    True
    """

    def __init__(self, *, slope: bool = False, random_state: int | None = None):
        self.slope = slope
        self.random_state = random_state

    def _choose(self, cells: PitCells, known: list[list[int]]) -> list[LevelMap]:
        self.offset_, self.width_ = self._fit(cells.take(range(len(known))))
        self.map_ = _line(self.offset_, self.width_)
        return [_line(*self._fit(cells.take(others))) for others in known]

    def _fit(self, cells: PitCells) -> tuple[float, float]:
        """Return mean and deviation of the scores in cells."""
        weight, scores = cells.weight[0], cells.scores[0]
        n = float(weight.sum()) + _PULL
        offset = float(weight @ scores) / n
        if not self.slope:
            return offset, 1.0
        spread = float(weight @ (scores - offset) ** 2) + _PULL * (1.0 + offset**2)
        return offset, float(np.clip(np.sqrt(spread / n), *_WIDTHS))

    def _check_parameters(self) -> None:
        if not isinstance(self.slope, bool):
            refuse("slope", "be a bool", f"{self.slope!r:.60}", TypeError)

    def choices(self) -> dict[str, Any]:
        """Return the shift and the width.

        Returns
        -------
        dict
            Ready for JSON.
        """
        return {"kind": "shift", "offset": self.offset_, "width": self.width_}


def _line(offset: float, width: float) -> LevelMap:
    """Return the map of scores z to (z - offset) / width."""
    return LevelMap.line(-offset / width, 1.0 / width)
