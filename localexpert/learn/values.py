"""Laws of discrete targets: possible values, their probabilities, and tails."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr, ndtri

from calibration.typing import Float64Array
from localexpert.curves.spline import increase_probabilities
from localexpert.data.folds import Sample
from localexpert.data.table import Table
from localexpert.data.target_values import count_values, range_without_outliers
from localexpert.experts.thresholds import cuts_between, lattice_step
from localexpert.law.basis import STANDARD
from localexpert.law.curve import Curve, read_curve
from localexpert.law.law import Law
from localexpert.law.steps import cell_edges, nearest_places
from localexpert.law.totals import common_step
from localexpert.learn.stages import Answers
from localexpert.learn.steps import UNBOUNDED, Bounds, Limits, Step

# A value with at least this weight tells where the target's values end, or what lies
# between them.
_WELL_KNOWN = 20.0
# With fewer values the target is a yes or no, and has no further values.
_FEWEST_VALUES = 3
# At most this many values are added at either end.
MOST_BEYOND = 50


@dataclass(frozen=True, eq=False)
class Support:
    """The values met in training, and possible new values near the rare ones.

    Parameters
    ----------
    values : ndarray of shape (M,)
        Increasing.
    shares : ndarray of shape (V, M)
        How the probability of each value met is split among all values. Rows sum to 1.

    Notes
    -----
    Perhaps no row lies between two neighbouring values, or beyond the last one. If
    these values are rare, this is little evidence. The probability of all values never
    met is about the share of the rows whose value was met once (Good 1953). So a value
    of weight w < 20 adds half a row to either side where nothing was met. This side
    gets 1 / (2 max(w, 1)) times the probability of the value. So it gets more in rows
    that expect such values. The k-th value away gets a part of it in proportion to
    1 / (k (k + 1)).

    Values between those met are only added to a lattice with few gaps (counts, grades,
    prices in steps). Otherwise the cells of the histogram leave nothing out. Beyond the
    ends the lattice, or the mean step, goes on for as far again as the values reach. It
    stops after 50 steps, at the bounds, and at 0 if no value lies beyond 0. The mean
    step of whole numbers is whole.
    Values that are far out, or more than 50 steps of a lattice away from the next one,
    play no part in this.

    References
    ----------
    Good (1953), The population frequencies of species and the estimation of
    population parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.learn.values import Support
    >>> met, weight = np.array([0.0, 1.0, 3.0]), np.array([60.0, 30.0, 1.0])
    >>> support = Support.of(met, weight)
    >>> print(support.values)
    [0. 1. 2. 3. 4. 5. 6.]
    >>> print(support.shares[2].round(2))
    [0.   0.   0.25 0.5  0.17 0.06 0.03]
    """

    values: Float64Array
    shares: Float64Array

    @classmethod
    def of(
        cls, met: Float64Array, weight: Float64Array, bounds: Bounds = UNBOUNDED
    ) -> Support:
        """Return the support of a target.

        Parameters
        ----------
        met, weight : ndarrays of shape (V,)
            Distinct values, increasing, and their weights.
        bounds : (float, float)

        Returns
        -------
        Support
        """
        near = ordinary_values(met, weight)
        rare = (weight < _WELL_KNOWN) & near & (near.sum() >= _FEWEST_VALUES)
        odds = np.where(rare, 0.5 / np.maximum(weight, 1.0), 0.0)
        values, rows = [], []
        # A gap lies before each value, and one after the last.
        first = int(np.argmax(near))
        for number, gap in enumerate(_gaps(met[near], bounds), first):
            away = np.arange(1.0, len(gap) + 1.0)
            parts = 1.0 / (away * (away + 1.0))
            parts /= max(parts.sum(), 1e-300)
            row = np.zeros((len(met), len(gap)))
            if number > 0:
                row[number - 1] = odds[number - 1] * parts
            if number < len(met):
                row[number] = odds[number] * parts[::-1]
            if row.any():
                values.append(gap)
                rows.append(row)
        every = np.concatenate([met, *values])
        shares = np.column_stack([np.eye(len(met)), *rows])
        order = np.argsort(every)
        shares = shares[:, order] / shares.sum(axis=1, keepdims=True)
        return cls(every[order], shares)

    def spread(self, masses: Float64Array) -> Float64Array:
        """Return the probabilities (n, M) of all values, from those of the values met.

        Parameters
        ----------
        masses : ndarray of shape (n, V)

        Returns
        -------
        ndarray of shape (n, M)
        """
        # Most shares are 0. Also, in a product of full matrices the rounding of a row
        # depends on the number of rows.
        shares = csr_array(self.shares.T)
        return np.ascontiguousarray((shares @ masses.T).T)


def ordinary_values(met: Float64Array, weight: Float64Array) -> NDArray[np.bool_]:
    """Return which values are neither far out nor beyond a wide gap of a lattice.

    Parameters
    ----------
    met, weight : ndarrays of shape (V,)
        Distinct values, increasing, and their weights.

    Returns
    -------
    ndarray of bool, shape (V,)
    """
    low, high = range_without_outliers(met, weight)
    near = (met >= low) & (met <= high)
    step = lattice_step(met[near])
    if step is None:
        return near
    # Number the runs of values without a wide gap. The heaviest run is ordinary.
    run = np.cumsum(np.diff(met, prepend=met[0]) > MOST_BEYOND * step)
    heaviest = np.argmax(np.bincount(run, weight * near))
    return np.asarray(near & (run == heaviest))


def _gaps(met: Float64Array, bounds: Bounds) -> list[Float64Array]:
    """Return possible values below, between and above those met, V + 1 arrays."""
    if len(met) < _FEWEST_VALUES:
        return [np.empty(0)] * (len(met) + 1)
    step = lattice_step(met)
    inner = [np.empty(0)] * (len(met) - 1)
    if step is None:
        step, unit = float(np.ptp(met)) / (len(met) - 1), common_step(met)
        # A multiple of what divides all steps: that of whole numbers is whole.
        step = step if unit is None else unit * max(round(step / unit), 1)
    else:
        counts = np.round(np.diff(met) / step).astype(np.intp)
        inner = [
            np.linspace(low, high, count + 1)[1:-1]
            for low, high, count in zip(met[:-1], met[1:], counts, strict=True)
        ]
    low = max(bounds[0], 0.0) if met[0] == 0.0 else bounds[0]
    high = min(bounds[1], 0.0) if met[-1] == 0.0 else bounds[1]
    reach = min(round(float(np.ptp(met)) / step), MOST_BEYOND)
    away = step * np.arange(1.0, reach + 1.0)
    below, above = met[0] - away[::-1], met[-1] + away
    # A touch of slack, so that rounding loses no bound that is a value.
    slack = 1e-9 * step
    return [below[below >= low - slack], *inner, above[above <= high + slack]]


# With at least this many values, a smooth law is learned from targets drawn anywhere in
# their cells.
MANY_VALUES = 12
# A support goes on for `MOST_BEYOND` steps beyond the values met. The k-th step has a
# share in proportion to 1 / (k (k + 1)), so all beyond the last step has this share.
_BEYOND = 1.0 / (MOST_BEYOND + 1.0)
# Standard deviation of the logarithm of the distance from the last step.
_SPREAD = 1.0


class Masses:
    """Turn probabilities at the cuts between values into probabilities of values.

    Parameters
    ----------
    bounds : (float, float)
        Least and greatest value that is possible, met or not.
    """

    def __init__(self, bounds: Bounds):
        self.bounds = bounds

    def fit(self, part: Sample, *_answers: Any) -> None:
        """Note which values occur.

        Parameters
        ----------
        part : Sample
        """
        met, weight = count_values(part.y, part.weight)
        self.support_ = Support.of(met, weight, self.bounds)
        self.n_ = float(part.weight.sum())

    def law(self, answers: Answers) -> Law:
        """Take differences of the increasing CDF. Every value keeps some probability.

        A value that was not seen near x may still occur. So all values share the weight
        of one row in n + 1. No log score is then infinite, and means of many values
        stay where they are. A value that was never met gets its part from its rare
        neighbours (`Support`).

        Parameters
        ----------
        answers : Answers
            Where there is no frame.

        Returns
        -------
        Law
        """
        cdf = increase_probabilities(answers.p, self.n_)
        masses = _masses_between(cdf, self.n_)
        return Law.discrete(self.support_.values, self.support_.spread(masses))

    def choices(self) -> dict[str, Any]:
        """Return an empty dictionary, because nothing is chosen."""
        return {}


def _masses_between(
    cdf: Float64Array, n: float, extra: Float64Array | None = None
) -> Float64Array:
    """Return the probabilities of the values between cuts. All are positive.

    A value that was not seen near x may still occur. So all values share the weight of
    one row, and no log score is infinite.

    Parameters
    ----------
    cdf : ndarray of shape (m, V - 1)
        The CDF at the cuts, increasing along a row.
    n : float
        Number of training rows.
    extra : ndarray of shape (V,), optional
        Shares of the values in that row, with sum 1. The default is equal shares.

    Returns
    -------
    ndarray of shape (m, V)
    """
    ends = np.zeros((len(cdf), 1)), np.ones((len(cdf), 1))
    masses = np.diff(np.column_stack([ends[0], cdf, ends[1]]), axis=1)
    shares = 1.0 / masses.shape[1] if extra is None else extra
    return np.asarray((n * masses + shares) / (n + 1.0))


@dataclass
class Cells(Step):
    """Give each value the mass of a smooth law that is nearest to it.

    If a target of many values is nearly a function of the features, a centre tells more
    than a question for each value.

    Parameters
    ----------
    atoms : ndarray of shape (A,)
        Values that are learned unchanged.
    bounds : (float, float)
        Least and greatest value that is possible, met or not.
    random_state : int
        Draws the place of each target in its cell.
    """

    atoms: Float64Array = field(default_factory=lambda: np.empty(0))
    bounds: Bounds = UNBOUNDED
    random_state: int = 0
    keeps_order: ClassVar[bool] = True
    asks_smooth: ClassVar[bool] = True
    makes_values: ClassVar[bool] = True

    def bind(self, limits: Limits, seed: int) -> tuple[Self, Limits]:
        """Return a copy with bounds and seed. The smooth law inside has no bounds.

        The cells of the outermost values hold all mass beyond them.
        """
        own = replace(self, bounds=limits.bounds, random_state=seed)
        return own, Limits(max_shape=limits.max_shape)

    def fit(self, sample: Sample) -> None:
        """Look at which values there are."""
        self.met_, weight = count_values(sample.y, sample.weight)
        self.support_ = Support.of(self.met_, weight, self.bounds)
        self.n_ = float(sample.weight.sum())

    def there(self, y: Float64Array) -> Float64Array:
        """Return targets at random places in their cells, so a smooth law has no steps.

        If there are few values, a smooth law learns more from the values themselves.
        """
        if len(self.met_) < MANY_VALUES:
            return y
        rng = np.random.default_rng(self.random_state)
        values = self.support_.values
        edges, at = cell_edges(values), nearest_places(values, y)
        # A value that is far from others has a cell as wide as theirs.
        half = 0.5 * np.median(np.diff(edges))
        low = np.maximum(edges[at], values[at] - half)
        high = np.minimum(edges[at + 1], values[at] + half)
        drawn = low + rng.uniform(size=len(y)) * (high - low)
        return np.where(np.isin(y, self.atoms), y, drawn)

    def there_anew(self, y: Float64Array) -> Float64Array:
        """Return targets as they are."""
        return y

    def read(self, law: Law) -> Law:
        """Return the law of the nearest value.

        All values share one extra row. The part of a value is split among values met
        and not met, just as a forecast's own mass is. The values not met are many, and
        may lie far out.
        """
        values, shares = self.support_.values, self.support_.shares
        extra = shares.sum(axis=0) / len(shares)
        cuts = np.tile(cuts_between(values), (len(law), 1))
        cdf = np.maximum.accumulate(law.cdf(cuts), axis=1)
        return Law.discrete(values, _masses_between(cdf, self.n_, extra))


@dataclass
class Tails(Step):
    """Let the values of a discrete law go on beyond both ends, without limit.

    A law gives some mass to values beyond the greatest one met. This mass goes to a
    lattice without end: a count of twice the greatest is rare but not impossible.
    Distances from the last value of the support are log-normal, so moments are finite.
    Their median is the distance by which the support goes on beyond the values met.

    Parameters
    ----------
    bounds : (float, float)
        Least and greatest value that is possible.
    """

    bounds: Bounds
    keeps_order: ClassVar[bool] = True

    def fit(self, sample: Sample) -> None:
        """Note the values met."""
        values, weight = count_values(sample.y, sample.weight)
        values = values[ordinary_values(values, weight)]
        self.met_ = float(values[0]), float(values[-1])
        self.step_ = lattice_step(values)

    def read(self, law: Law) -> Law:
        """Move a part of the mass beyond the values met to a curve."""
        if self.step_ is None:
            # In a discrete law any value lies in the cell of a value of the support.
            return law
        sides = law.atoms < self.met_[0], law.atoms > self.met_[1]
        gaps = [law.masses[:, side].sum(axis=1) for side in sides]
        open_ = [
            bool(side.any()) and not np.isfinite(end)
            for side, end in zip(sides, self.bounds, strict=True)
        ]
        if not any(open_) or len(law) == 0:
            return law
        masses, parts = law.masses.copy(), []
        for side, gap, is_open in zip(sides, gaps, open_, strict=True):
            taken = _BEYOND if is_open else 0.0
            masses[:, side] *= 1.0 - taken
            parts.append(taken * gap)
        step = self.step_
        # Between the ends, only values that are far out go to the curve.
        low, high = _ends_of_run(law.atoms, self.met_, step)
        spans = self.met_[0] - low, high - self.met_[1]
        total = np.maximum(parts[0] + parts[1], 1e-300)
        return replace(
            law,
            curve=_both_tails(parts[0] / total, (low, high), spans),
            masses=masses,
            step=step,
            offset=float(law.atoms[0]),
            ends=self.bounds,
        )


def _ends_of_run(values: Float64Array, inside: Bounds, step: float) -> Bounds:
    """Return the two ends of the run of cells without a gap."""
    gaps = np.append(np.flatnonzero(np.diff(values) > 1.5 * step), len(values) - 1)
    last = gaps[np.searchsorted(values[gaps], inside[1])]
    first = np.append(0, gaps[:-1] + 1)
    start = first[np.searchsorted(values[first], inside[0], "right") - 1]
    return float(values[start]) - 0.5 * step, float(values[last]) + 0.5 * step


def _both_tails(share: Float64Array, ends: Bounds, spans: Bounds) -> Curve:
    """Return curves with a share (n,) below the lower end, and the rest above."""
    n, g = len(share), STANDARD.greville
    free = np.full(n, np.inf)
    if (share == 0.0).all():
        u = np.log(spans[1]) + _SPREAD * g
        return read_curve(np.tile(u, (n, 1)), np.full(n, ends[1]), free)
    if (share == 1.0).all():
        u = _SPREAD * g - np.log(spans[0])
        return read_curve(np.tile(u, (n, 1)), -free, np.full(n, ends[0]))
    start = np.clip(ndtri(share), -9.0, 9.0)[:, None]
    # Scores in a tail are those of its own levels, greatest at the last value.
    below, above = (
        ndtri(np.minimum(ndtr(sign * g) / ndtr(sign * start), 1.0))
        for sign in (1.0, -1.0)
    )
    u = np.where(
        g < start,
        ends[0] - spans[0] * np.exp(-_SPREAD * below),
        ends[1] + spans[1] * np.exp(-_SPREAD * above),
    )
    return read_curve(u, -free, free, plain=True)


class ConstantLaws:
    """One value for every row.

    Parameters
    ----------
    value : float
    n : int
        Number of training rows.
    """

    def __init__(self, value: float, n: int):
        self.value = value
        self.oof_law_ = self.law(np.arange(n))

    def law(self, asked: Sized) -> Law:
        """Return the law of rows, new or judged.

        Parameters
        ----------
        asked : Table, or ndarray of int

        Returns
        -------
        Law
        """
        return Law.discrete(np.array([self.value]), np.ones((len(asked), 1)))

    def members(self, table: Table) -> list[tuple[float, list[Law]]]:
        """Return the law of new rows, which is the only one."""
        return [(1.0, [self.law(table)])]

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return the only value as threshold, with the probability 1, (n, 1) each.

        Parameters
        ----------
        table : Table of shape (n, p)

        Returns
        -------
        thresholds, probabilities : ndarrays of shape (n, 1)
        """
        return np.full((len(table), 1), self.value), np.ones((len(table), 1))
