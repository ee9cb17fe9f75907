"""`PredictiveDistribution`: the forecasts of all rows, and what users ask of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    check_callable,
    check_choice,
    check_integer,
    check_level,
    check_number,
    check_same_length,
    check_vector,
    check_weights,
    is_gap,
    make_rng,
    refuse,
    show,
)
from calibration.typing import Float64Array
from localexpert._validation import check_array, check_targets
from localexpert.distribution.frame import Questions, forecast_frame, forecast_html
from localexpert.distribution.makers import MadeForecasts
from localexpert.law.join import append_laws
from localexpert.law.law import Law
from localexpert.law.totals import Correlation, CorrelationEstimate, total_law
from localexpert.law.transform import ValueMap, transform_law

if TYPE_CHECKING:
    import pandas as pd

# `expect` holds the nodes of so many rows in memory at a time.
_CHUNK = 2048
# Rounding may bring the eigenvalues of a correlation matrix so far below 0.
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False, repr=False)
class PredictiveDistribution(MadeForecasts):
    """The distributions of n targets: an immutable container of one law per row.

    Methods that take a value or a level broadcast it against shape (n,), as frozen
    distributions of `scipy.stats` do: a number or an array (n,) gives (n,), an array
    (k, n) gives (k, n). `quantiles` and `cdf_at` take a vector that all rows share
    and give one row of answers per row of the forecast.

    Pick rows as from an array: by a number (which gives one row), a slice, indices or
    booleans.

    The upper tail is where targets are large. The `level` is a confidence for both
    tails: at 0.95 the value at risk leaves 5 % of the probability beyond it.

    Parameters
    ----------
    law : Law
        The distributions. It is internal: `from_arrays`, `from_quantiles`,
        `from_samples`, `from_bins` and `from_scipy` make forecasts.
    labels : ndarray of shape (n,), optional
        Names of the rows. `total` names each row by its group.

    Notes
    -----
    A row has masses of values that all rows share, the `atoms`, and a curve for the
    rest of the probability. The curve gives y as an increasing function of the normal
    score of the level, by the `coefficients` of cubic B-splines. `to_arrays` returns
    all of it.

    Models, `from_scipy`, `pool`, `transform` and recalibrations read a curve at 91
    normal scores between -8 and 8, closest in the middle. For usual distributions
    quantiles, means and the CRPS are then exact to about 1e-5 of the spread, and log
    scores to 1e-4. Next to deep gaps between peaks they are less exact, see `pool`.

    If a value has probability of its own, its density is that probability over the
    width of the value's cell. By default the cell ends half-way to the next value.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
    >>> forecast = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> forecast
    PredictiveDistribution(n=2, 3 values)
    >>> forecast.mean(), forecast.cdf(1.0)
    (array([1.1, 1.9]), array([0.7, 0.1]))
    >>> forecast.quantiles([0.1, 0.9])
    array([[0., 2.],
           [1., 2.]])
    """

    law: Law
    labels: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law):
            refuse("law", "be a Law", type(self.law).__name__, TypeError)
        if self.labels is not None:
            check_same_length(len(self.law), "`law`", len(self.labels), "labels")

    def __len__(self) -> int:
        return len(self.law)

    def __getitem__(self, rows: Any) -> PredictiveDistribution:
        if not isinstance(rows, slice):
            rows = np.atleast_1d(np.asarray(rows))
            # An empty list is one of floats to NumPy.
            if rows.size == 0 and rows.dtype.kind == "f":
                rows = rows.astype(np.intp)
            if rows.ndim > 1:
                refuse("rows", "be indices of one dimension", f"shape {rows.shape}")
        labels = None if self.labels is None else self.labels[rows]
        return PredictiveDistribution(self.law.take(rows), labels)

    def __repr__(self) -> str:
        law, kind = self.law, "smooth"
        if law.is_discrete:
            kind = f"{len(law.atoms)} values"
        elif law.step > 0.0:
            kind = f"steps of {law.step:g}"
        elif law.has_jumps:
            kind = f"smooth beside {len(self.atoms)} values"
        return f"PredictiveDistribution(n={len(self)}, {kind})"

    def _repr_html_(self) -> str:
        return forecast_html(self)

    def mean(self) -> Float64Array:
        """Return the means.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._moments[:, 0].copy()

    def var(self) -> Float64Array:
        """Return the variances.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._moments[:, 1].copy()

    def std(self) -> Float64Array:
        """Return the standard deviations.

        Returns
        -------
        ndarray of shape (n,)
        """
        return np.sqrt(self._moments[:, 1])

    def skew(self) -> Float64Array:
        """Return the skewnesses, 0 where the variance is 0.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._standardized(3)

    def kurtosis(self) -> Float64Array:
        """Return the excess kurtoses, 0 where the variance is 0.

        Returns
        -------
        ndarray of shape (n,)
        """
        return np.where(self.var() == 0.0, 0.0, self._standardized(4) - 3.0)

    def median(self) -> Float64Array:
        """Return the medians.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.ppf(0.5)

    def mode(self) -> Float64Array:
        """Return the likeliest values: where `pdf` is greatest, or `pmf`.

        Returns
        -------
        ndarray of shape (n,)
            If all probability is in values, few or those of a lattice, the likeliest of
            these, however wide their cells are. Elsewhere the place of greatest
            density, the peak of the curve or an atom: the density of an atom is its
            probability over the width of its cell.
        """
        return self.law.mode()

    def entropy(self) -> Float64Array:
        """Return the expected log scores, E[-logpdf(Y)].

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.law.entropy()

    def interval(self, coverage: float = 0.9) -> Float64Array:
        """Return the interval that leaves out equal tails.

        Parameters
        ----------
        coverage : float
            Probability of the interval, in (0, 1).

        Returns
        -------
        ndarray of shape (n, 2)
        """
        tail = 0.5 * (1.0 - check_level(coverage, "coverage"))
        return self.quantiles([tail, 1.0 - tail])

    def hdi(self, coverage: float = 0.9) -> Float64Array:
        """Return the shortest interval that holds the coverage.

        It is the highest-density region where the density has one peak.

        Parameters
        ----------
        coverage : float
            Probability of the interval, in (0, 1).

        Returns
        -------
        ndarray of shape (n, 2)
        """
        return self.law.shortest_interval(check_level(coverage, "coverage"))

    def hdi_regions(self, coverage: float = 0.9) -> list[Float64Array]:
        """Return the region where the density is highest, a union of intervals.

        Parameters
        ----------
        coverage : float
            Probability of the region, in (0, 1); met to within 0.01.

        Returns
        -------
        list of n ndarrays of shape (m, 2)
            Intervals in increasing order; a value of positive probability that
            stands alone is an interval of width 0.
        """
        level = check_level(coverage, "coverage")
        return self.law.densest_regions(np.full(len(self), level))

    def value_at_risk(
        self, level: ArrayLike, tail: Literal["upper", "lower"] = "upper"
    ) -> Float64Array:
        """Return the quantile with a share 1 - level of the probability beyond it.

        Parameters
        ----------
        level : array-like that broadcasts against (n,)
            Confidence in (0, 1).
        tail : {"upper", "lower"}
            "upper": ppf(level); "lower": ppf(1 - level).

        Returns
        -------
        ndarray of the broadcast shape
        """
        check_choice(tail, "tail", ("upper", "lower"))
        levels = _check_confidence(level, len(self))
        return self.ppf(levels if tail == "upper" else 1.0 - levels)

    def expected_shortfall(
        self, level: ArrayLike, tail: Literal["upper", "lower"] = "upper"
    ) -> Float64Array:
        r"""Return the mean of Y beyond the value at risk v.

        Parameters
        ----------
        level : array-like that broadcasts against (n,)
            Confidence in (0, 1).
        tail : {"upper", "lower"}
            "upper": E[Y | Y >= v]; "lower": E[Y | Y <= v].

        Returns
        -------
        ndarray of the broadcast shape

        Notes
        -----
        At the level :math:`\alpha` of the upper tail it is

        .. math:: v + \frac{E \max(Y - v, 0)}{1 - \alpha},

        the mean of the quantiles beyond the level. The lower tail is alike. If v has
        probability of its own, only a part of it counts: the part that completes the
        share :math:`1 - \alpha`. This keeps the measure coherent.

        References
        ----------
        Acerbi & Tasche (2002), On the coherence of expected shortfall.
        """
        v = self.value_at_risk(level, tail)
        beyond = 1.0 - _check_confidence(level, len(self))
        below, above = self.partial_means(v)
        return v + above / beyond if tail == "upper" else v - below / beyond

    def expect(self, func: Callable[[Float64Array], Float64Array]) -> Float64Array:
        """Return E[func(Y)] of every row.

        Parameters
        ----------
        func : callable
            Maps an array of values (m, k) to an array of the same shape, element by
            element: ``lambda y: np.maximum(y - 5.0, 0.0)``.

        Returns
        -------
        ndarray of shape (n,)
            For smooth functions that grow no faster than the fourth power it is as
            exact as the moments.
        """
        check_callable(func, "func")
        parts = [np.empty(0)]
        for start in range(0, len(self.law), _CHUNK):
            y, weights = self.law.take(slice(start, start + _CHUNK)).nodes()
            values = np.asarray(func(y), dtype=np.float64)
            if values.shape != y.shape:
                rule = f"return an array of the shape it is given, {y.shape}"
                refuse("func", rule, f"shape {values.shape}")
            # At values without probability func may be infinite or nan.
            held = np.where(weights > 0.0, values, 0.0)
            parts.append((held * weights).sum(axis=1))
        return np.concatenate(parts)

    def to_frame(
        self,
        *,
        quantiles: ArrayLike | None = None,
        interval: ArrayLike | None = None,
        exceed: ArrayLike | None = None,
        risk: ArrayLike | None = None,
        tail: Literal["upper", "lower"] = "upper",
        index: Any = None,
    ) -> pd.DataFrame:
        """Return the forecasts as a pandas data frame, as `localexpert predict` does.

        Parameters
        ----------
        quantiles : float or array-like, optional
            Levels in [0, 1]; 0.05, 0.5 and 0.95 if nothing else is asked for.
        interval : float or array-like, optional
            Coverages of central intervals.
        exceed : float or array-like, optional
            Values v of the probabilities P(Y > v).
        risk : float or array-like, optional
            Confidences of values at risk and expected shortfalls, in (0, 1).
        tail : {"upper", "lower"}
            The tail of these risks.
        index : array-like of shape (n,), optional
            Labels of the rows; `labels` if there are any.

        Returns
        -------
        pandas.DataFrame
            Columns mean, std and, as asked for, q0.05, low_0.9 and high_0.9,
            p_above_100, var_0.95 and es_0.95.
        """
        asked = Questions.of(quantiles, interval, exceed, risk, tail)
        labels = self.labels if index is None else index
        return forecast_frame(asked.answers(self), labels)

    def rvs(
        self, size: int = 1, random_state: int | np.random.Generator | None = None
    ) -> Float64Array:
        """Draw values, independent between rows.

        Parameters
        ----------
        size : int
            Draws per row.
        random_state : int or Generator, optional
            Seed or source of the draws; None draws a seed.

        Returns
        -------
        ndarray of shape (size, n)
        """
        rng = make_rng(random_state)
        shape = (check_integer(size, "size", 1), len(self))
        return self._at(self.law.ppf_scores, rng.standard_normal(shape))

    def transform(
        self,
        func: Callable[[Float64Array], Float64Array],
        inverse: Callable[[Float64Array], Float64Array],
    ) -> Self:
        """Return the distributions of func(Y) for an increasing function.

        It turns a forecast of log prices into one of prices:
        ``dist.transform(np.exp, np.log)``.

        Parameters
        ----------
        func, inverse : callable
            An increasing function and its inverse; both map an array of values to an
            array of the same shape, element by element. They are tried at quantiles:
            an error is raised if func does not increase or inverse does not undo it.

        Returns
        -------
        PredictiveDistribution
            Values of positive probability are mapped and keep their probabilities,
            clipped ends to about 1e-4. An affine func is exact. For any other func
            curves are read anew, at 91 normal scores: there quantiles are exact.
            Between them, quantiles, moments and the CRPS are exact to about 1e-5 of the
            spread for a smooth func, and log scores to 1e-4. The result keeps neither
            function, so it can always be pickled. Some moments do not exist, such as
            those of exp(Y) where Y has tails heavier than normal ones. They come out
            huge, infinite or nan, because curves are lines beyond 8 deviations;
            quantiles are as good as before.

        Examples
        --------
        >>> import numpy as np
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.5, 0.5]]
        >>> logs = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
        >>> logs.transform(np.exp, np.log).mean().round(3)
        array([1.859])
        """
        values = ValueMap(func, inverse)
        return replace(self, law=transform_law(self.law, values))

    def total(
        self,
        weights: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        correlation: ArrayLike | CorrelationEstimate = 0.0,
        random_state: int | np.random.Generator | None = None,
    ) -> Self:
        r"""Return the distribution of the sum over the rows, or over groups of them.

        Parameters
        ----------
        weights : array-like of shape (n,), optional
            Weight of each row, such as a position in a portfolio; may be negative.
        groups : array-like of shape (n,), optional
            A label for each row: one total for each label, in the order of
            ``np.unique(groups)``. None sums all rows.
        correlation : float, CorrelationEstimate or array-like of shape (n, n)
            Correlation of the rows' normal scores: one for all pairs, the result of
            `estimate_correlation`, or a matrix. 0 is independence. It makes totals too
            narrow if the rows of a group share an influence that no feature shows.
        random_state : int or Generator, optional
            Seed or source of the draws for correlated rows; None draws a seed.

        Returns
        -------
        PredictiveDistribution
            One row for each total; `labels` are those of the groups.

        Notes
        -----
        Means are exact. For independent rows variances, third and fourth moments are
        exact too. If all rows are discrete on a lattice, such as counts, probabilities
        of independent sums are products in frequencies, exact to about 1e-14. Other
        laws are put on a grid of at most a fortieth of the sum's deviation and
        multiplied in frequencies. The result has quantiles at 97 levels between 1e-9
        and 1 - 1e-9: CDFs are exact to about 1e-4, or 1e-2 if the sum's density has a
        sharp peak, and tails beyond these levels are normal. If tails are too long for
        a grid, such as those of log-normals with a deviation above 2.5, sums are drawn
        as correlated ones are, and CDFs are exact to about 1e-2. A value that a sum
        takes with probability of its own, such as 0 where no row has any rain, keeps
        that probability.

        Correlated rows have a Gaussian copula: row i is the quantile of :math:`Z_i`,
        and the normal :math:`Z` have the given correlation. The rows themselves have
        this correlation only if they are normal. The law comes from 16 384 antithetic
        draws, and from 4 096 if there are 10 000 rows or more: CDFs are exact to about
        0.005, or 0.05 beside values with probability of their own. Beyond the outermost
        8 draws tails are normal: an expected shortfall of 0.999 is right to about 2 %
        if rows are normal, and to 5 to 15 % if tails are heavy. Variances are sums
        by Mehler's formula, exact to 1e-4 for smooth laws, and 1e-2 for others; if all
        rows are discrete, mean and variance are those of the draws. A value that more
        than a thousandth of the draws take has probability of its own.

        References
        ----------
        McNeil, Frey & Embrechts (2015), Quantitative Risk Management.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.5, 0.5]] * 3
        >>> coins = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=rows)
        >>> coins.total().pmf([[0], [1], [2], [3]]).ravel()
        array([0.125, 0.375, 0.375, 0.125])
        >>> both = coins.total(groups=["a", "b", "a"])
        >>> both.labels, both.mean()
        (array(['a', 'b'], dtype='<U1'), array([1. , 0.5]))
        """
        n = len(self.law)
        if n == 0:
            msg = "`total` needs at least one row, got none."
            raise ValueError(msg)
        w = np.ones(n) if weights is None else check_vector(weights, "weights")
        if len(w) != n:
            refuse("weights", f"have one for each of the {n} rows", len(w))
        rows = rows_of(groups, n)
        most = max(len(each) for each in rows)
        if isinstance(correlation, CorrelationEstimate):
            # So many rows cannot have a correlation below this.
            correlation = max(correlation.correlation, -1.0 / max(most - 1, 1))
        bond = _read_correlation(correlation, n, most, make_rng(random_state))
        labels = None if groups is None else np.unique(np.asarray(groups))
        return type(self)(total_law(self.law, w, rows, bond), labels)

    @cached_property
    def _moments(self) -> Float64Array:
        return self.law.moments(2)

    def _standardized(self, order: int) -> Float64Array:
        """Return a central moment over that power of the standard deviation."""
        variance = self._moments[:, 1]
        finite = np.isfinite(variance)
        scale = np.where(finite & (variance > 0.0), variance, 1.0)
        # One by one: the square of a tiny variance is 0.
        with np.errstate(over="ignore"):
            ratio = self.law.moments(order)[:, order - 1] / scale
            ratio /= scale ** (0.5 * order - 1.0)
        return np.where(finite, ratio, np.nan)


def rows_of(groups: ArrayLike | None, n: int) -> list[NDArray[np.intp]]:
    """Return the rows of each group, in the order of the sorted labels."""
    if groups is None:
        return [np.arange(n)]
    labels: NDArray[Any] = np.asarray(groups)
    if labels.shape != (n,):
        rule = f"have a label for each of the {n} rows, shape ({n},)"
        refuse("groups", rule, f"shape {labels.shape}")
    missing = [is_gap(label) for label in labels.tolist()]
    if any(missing):
        refuse("groups", "not be missing", f"{labels[missing.index(True)]!r}")
    try:
        _, number = np.unique(labels, return_inverse=True)
    except TypeError as error:
        rule = "be labels of one kind"
        refuse("groups", rule, "some that do not compare", TypeError, cause=error)
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)


def _read_correlation(
    correlation: ArrayLike, n: int, most: int, rng: np.random.Generator
) -> Correlation | None:
    """Return the correlation of n rows, None if it is 0; `most` rows are in a sum."""
    if np.ndim(correlation) == 0:
        rho = check_number(correlation, "correlation", -1.0, 1.0)
        if most > 1 and rho < -1.0 / (most - 1) - _ROUNDING:
            rule = f"be at least -1 / {most - 1} for {most} rows"
            got = f"{rho:g}: no such correlation of all pairs exists"
            refuse("correlation", rule, got)
        return None if rho == 0.0 else Correlation(rng, rho)
    matrix = check_array(correlation, "correlation", (n, n))
    if not np.allclose(np.diag(matrix), 1.0, rtol=0.0, atol=_ROUNDING):
        refuse("correlation", "be 1 on its diagonal", "others")
    if not np.allclose(matrix, matrix.T, rtol=0.0, atol=_ROUNDING):
        refuse("correlation", "be symmetric", "a matrix that is not")
    least = float(np.linalg.eigvalsh(matrix)[0])
    if least < -_ROUNDING * n:
        rule = "have no negative eigenvalue"
        refuse("correlation", rule, f"{least:g}: no such correlation exists")
    return None if not (matrix - np.eye(n)).any() else Correlation(rng, 0.0, matrix)


def check_distribution(dist: Any, name: str = "dist") -> PredictiveDistribution:
    """Refuse what is not a `PredictiveDistribution`."""
    if not isinstance(dist, PredictiveDistribution):
        refuse(name, "be a PredictiveDistribution", type(dist).__name__, TypeError)
    return dist


def check_outcomes(y: ArrayLike, dist: Any, name: str = "y") -> Float64Array:
    """Return outcomes (n,), one for each row of what must be a forecast.

    Those that equal one of its values up to rounding are this value.
    """
    check_distribution(dist)
    outcomes = check_vector(y, name)
    check_same_length(len(dist), "`dist`", len(outcomes), name)
    return np.asarray(dist.law.snap(outcomes))


def _check_confidence(level: ArrayLike, n: int) -> Float64Array:
    """Return levels in (0, 1) broadcast against (n,)."""
    if not isinstance(level, np.ndarray) and np.ndim(level) == 0:
        check_level(level, "level")
    levels = check_targets(level, "level", n)
    outside = (levels <= 0.0) | (levels >= 1.0)
    if outside.any():
        refuse("level", "lie in (0, 1)", show(levels[outside].flat[0]))
    return levels


def concatenate(dists: Sequence[PredictiveDistribution]) -> PredictiveDistribution:
    """Return the rows of several distributions as one, in their order.

    Parameters
    ----------
    dists : sequence of PredictiveDistribution
        One or more, with laws of any kinds. They may be forecasts of parts of a table,
        or of models for groups of rows.

    Returns
    -------
    PredictiveDistribution
        The rows of all parts. If all parts have the same kind of law, it has this kind.
        Curves stay as they are, on the knots of all parts; only if these are more than
        600, curves on other knots are read at 91 normal scores.
        If values have probability of their own, all rows share them and the widths of
        their cells: log scores there are in units of these widths.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution, concatenate
    >>> coin = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=[[0.5, 0.5]])
    >>> sure = PredictiveDistribution.from_arrays(atoms=[2], masses=[[1.0]])
    >>> both = concatenate([coin, sure])
    >>> both, both.mean()
    (PredictiveDistribution(n=2, 3 values), array([0.5, 2. ]))
    """
    if not isinstance(dists, list | tuple):
        rule = "be a list of PredictiveDistribution"
        refuse("dists", rule, type(dists).__name__, TypeError)
    if len(dists) == 0:
        refuse("dists", "hold at least one distribution", "none")
    for i, dist in enumerate(dists):
        if not isinstance(dist, PredictiveDistribution):
            rule = "hold PredictiveDistribution"
            refuse("dists", rule, f"{type(dist).__name__} at position {i}", TypeError)
    held = [dist.labels for dist in dists if dist.labels is not None]
    labels = np.concatenate(held) if len(held) == len(dists) else None
    return PredictiveDistribution(append_laws([dist.law for dist in dists]), labels)


def mass_below_zero(
    dist: PredictiveDistribution, y: ArrayLike, sample_weight: ArrayLike | None = None
) -> float | None:
    r"""Return the mean probability of values below zero, if no target was there.

    Parameters
    ----------
    dist : PredictiveDistribution
        Forecasts of n rows; for training rows take those out of fold.
    y : array-like of shape (n,)
        Targets of the rows.
    sample_weight : array-like of shape (n,), optional
        Rows of weight zero do not count.

    Returns
    -------
    float or None
        Weighted mean of :math:`P(Y_i < 0)`. None if a target lies below zero, because
        forecasts may lie there too.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.distribution.predictive import mass_below_zero
    >>> rows = [[0.2, 0.6, 0.2], [0.1, 0.1, 0.8]]
    >>> dist = PredictiveDistribution.from_arrays(atoms=[-1, 0, 2], masses=rows)
    >>> round(mass_below_zero(dist, [0.0, 2.0]), 3)
    0.15
    >>> mass_below_zero(dist, [-1.0, 2.0]) is None
    True
    """
    target = check_outcomes(y, dist)
    weight = check_weights(sample_weight, len(target))
    if (target[weight > 0.0] < 0.0).any():
        return None
    below = dist.law.cdf_left(np.zeros((len(target), 1)))[:, 0]
    return float(below @ weight / weight.sum())
