"""`MadeForecasts`: forecasts as arrays, and made from forecasts of other libraries."""

from __future__ import annotations

from copy import copy
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import (
    as_numbers,
    check_flag,
    check_number,
    check_same_length,
    refuse,
    show,
)
from calibration.typing import Float64Array
from localexpert._validation import (
    check_array,
    check_increasing,
    check_probability_rows,
)
from localexpert.distribution.answers import AskedForecasts
from localexpert.law import from_others
from localexpert.law.basis import STANDARD, basis_of
from localexpert.law.curve import Curve, end_slopes
from localexpert.law.law import Law
from localexpert.law.steps import cell_widths


class MadeForecasts(AskedForecasts):
    """A forecast as arrays, and how to make one; a base of `PredictiveDistribution`."""

    @property
    def coefficients(self) -> Float64Array:
        """Coefficients of the rows' curves, (n, K); K is 0 where there are none.

        A curve is y = sum_k c_k B_k(z). Here z is the normal score of the level within
        the probability that no atom holds, and B_k are cubic B-splines on the `knots`
        of `to_arrays`. With bounds it is the curve of log(y - low), of -log(high - y),
        or of the logit.
        """
        curve = self.law.clipped.curve
        empty = np.empty((len(self.law), 0))
        return _read_only(empty if curve is None else curve.coefficients)

    @property
    def atoms(self) -> Float64Array:
        """Values with probability of their own, the same for all rows, (A,)."""
        return _read_only(self.law.clipped.atoms)

    @property
    def masses(self) -> Float64Array:
        """Their probabilities, (n, A)."""
        return _read_only(self.law.clipped.masses)

    def to_arrays(self) -> dict[str, Any]:
        """Return the distributions as arrays, which `from_arrays` takes back.

        Returns
        -------
        dict of str to ndarray or number
            `atoms` (A,), `masses` (n, A), `widths` (A,). If there are curves:
            `coefficients` (n, K), `knots` (K + 4,), `slopes` (n, 2) beyond both ends
            and `bounds` (n, 2). If values are rounded or clipped: `step`, `offset` and
            `ends`. If moments are known from elsewhere: `moments` (n, 4).

        Examples
        --------
        >>> from scipy import stats
        >>> from localexpert import PredictiveDistribution
        >>> dist = PredictiveDistribution.from_scipy(stats.norm([0.0, 5.0], 1.0))
        >>> arrays = dist.to_arrays()
        >>> arrays["coefficients"].shape
        (2, 91)
        >>> PredictiveDistribution.from_arrays(**arrays).median().round(6)
        array([0., 5.])
        """
        law, curve = self.law, self.law.curve
        out: dict[str, Any] = {"atoms": law.atoms, "masses": law.masses}
        out["widths"] = law.widths
        if curve is not None:
            out |= {
                "coefficients": curve.coefficients,
                "knots": curve.basis.knots,
                "slopes": curve.slopes,
                "bounds": np.column_stack([curve.low, curve.high]),
            }
        if law.has_jumps and curve is not None:
            out |= {"step": law.step, "offset": law.offset, "ends": np.array(law.ends)}
            out["end_width"] = law.end_width
        if law.ordered:
            out["ordered"] = True
        if law.known is not None:
            out["moments"] = law.known
        # Copies: a fitted model may hold the arrays.
        return {name: copy(value) for name, value in out.items()}

    @classmethod
    def from_arrays(
        cls,
        *,
        coefficients: ArrayLike | None = None,
        atoms: ArrayLike = (),
        masses: ArrayLike | None = None,
        widths: ArrayLike | None = None,
        knots: ArrayLike | None = None,
        slopes: ArrayLike | None = None,
        bounds: ArrayLike | None = None,
        step: float = 0.0,
        offset: float = 0.0,
        ends: ArrayLike = (-np.inf, np.inf),
        end_width: float = 1.0,
        ordered: bool = False,
        moments: ArrayLike | None = None,
    ) -> Self:
        """Return the distributions with given coefficients, or masses, or both.

        Parameters
        ----------
        coefficients : array-like of shape (n, K), optional
            Coefficients of the curves, not decreasing along a row. None if all
            probability is in atoms.
        atoms : array-like of shape (A,)
            Increasing values of positive probability.
        masses : array-like of shape (n, A), optional
            Probabilities of the atoms. Rows sum to 1 without coefficients, and to 1 at
            most with them.
        widths : array-like of shape (A,), optional
            Widths of the atoms' cells. The density of an atom is its mass over this
            width. By default cells end half-way between atoms.
        knots : array-like of shape (K + 4,), optional
            Knots of the B-splines; by default the 95 that the library uses.
        slopes : array-like of shape (n, 2), optional
            Slopes beyond the outer knots; by default those at these knots.
        bounds : array-like of shape (n, 2) or (2,), optional
            Least and greatest value of a curve, infinite by default.
        step, offset : float
            The lattice that curves are rounded to; no lattice by default.
        ends : (float, float)
            Values are clipped to these ends.
        end_width : float
            Width of the cells of the ends.
        ordered : bool
            Whether distributions made from these keep the order of rows.
        moments : array-like of shape (n, 4), optional
            Mean and second to fourth central moment, if they are known from elsewhere.

        Returns
        -------
        PredictiveDistribution

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]]
        >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
        >>> dist.mean()
        array([1.1, 1.9])
        """
        values, curve = check_array(atoms, "atoms", (None,)), None
        if len(values):
            check_increasing(values, "atoms")
        if coefficients is not None:
            curve = _read_curve(coefficients, knots, slopes, bounds)
        else:
            _refuse_alone(knots=knots, slopes=slopes, bounds=bounds)
        rows = _read_masses(masses, values, curve)
        check_flag(ordered, "ordered")
        law = Law(
            curve,
            values,
            rows,
            _read_widths(widths, values),
            step=check_number(step, "step", 0.0, np.inf),
            offset=check_number(offset, "offset", -np.inf, np.inf),
            ends=_check_ends(ends),
            end_width=check_number(end_width, "end_width", 0.0, np.inf, open_low=True),
            ordered=ordered,
            known=None if moments is None else _check_moments(moments, len(rows)),
        )
        return cls(law)

    @classmethod
    def from_quantiles(
        cls,
        values: ArrayLike,
        levels: ArrayLike,
        *,
        bounds: tuple[float | None, float | None] | None = None,
    ) -> Self:
        """Return the smooth distributions with given quantiles.

        Parameters
        ----------
        values : array-like of shape (n, k)
            Quantiles, a row for each forecast.
        levels : array-like of shape (k,)
            Their levels in (0, 1), strictly increasing, k >= 2.
        bounds : (float, float), optional
            Least and greatest possible value; None means no bounds.

        Returns
        -------
        PredictiveDistribution

        Warns
        -----
        CalibrationWarning
            If quantiles cross, they are put in order. If they lie beyond the bounds,
            they are put on the bound.

        Notes
        -----
        The quantiles come back exactly. On normal scores z of the levels the curve is a
        natural cubic spline in y. With a lower bound it is a spline in log(y - low),
        with an upper one in -log(high - y), and with both in the sum of the two. Its
        slopes at the levels lie between 0.3 (0.5 at the outermost) and 1.5 times the
        lesser slope of the chords beside, so it increases everywhere. Beyond the
        outermost levels it is straight and keeps its slope; if the two outermost
        quantiles are nearly equal, it has a quarter of its mean slope. So tails are
        normal, and log-normal towards a bound. With two levels and no bounds it is a
        normal law.

        Equal quantiles are moved apart by about 1e-6 of the range of those around them:
        the CDF is steep there, but no value has probability of its own. An outcome that
        hits the steep part has a great density. So compare forecasts with many ties by
        the CRPS, not by log scores.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> rows = [[8.0, 10.0, 12.0], [1.0, 2.0, 4.0]]
        >>> dist = PredictiveDistribution.from_quantiles(rows, [0.1, 0.5, 0.9])
        >>> dist.quantiles([0.1, 0.5, 0.9])
        array([[ 8., 10., 12.],
               [ 1.,  2.,  4.]])
        >>> dist.std().round(2)
        array([1.56, 1.21])
        """
        return cls(from_others.law_of_quantiles(values, levels, bounds))

    @classmethod
    def from_samples(
        cls,
        samples: ArrayLike,
        *,
        kind: Literal["auto", "smooth", "discrete"] = "auto",
        bounds: tuple[float | None, float | None] | None = None,
    ) -> Self:
        """Return the distributions of draws of equal weight.

        Parameters
        ----------
        samples : array-like of shape (n, m)
            m draws for each of n forecasts; transpose an array (m, n).
        kind : {"auto", "smooth", "discrete"}
            "smooth": a smooth curve through at least 10 draws. "discrete": each value
            has its share of the row's draws. "auto": discrete if all draws together
            have at most 100 distinct values.
        bounds : (float, float), optional
            Least and greatest possible value of smooth distributions.

        Returns
        -------
        PredictiveDistribution

        Notes
        -----
        "discrete" is the empirical law: its CRPS is that of the ensemble. It takes
        memory for n times the number of distinct values in all rows. The smooth law
        joins the sorted draws at their normal scores by straight lines, and smooths
        these by a Gaussian window of width 0.7 m^(-1/5). Beyond the outermost 0.5 % of
        the draws, but no more than 8 draws, tails are those of `from_quantiles`.

        Examples
        --------
        >>> import numpy as np
        >>> from localexpert import PredictiveDistribution
        >>> draws = np.random.default_rng(0).normal([[0.0], [5.0]], 1.0, (2, 1000))
        >>> PredictiveDistribution.from_samples(draws).mean().round(1)
        array([-0.,  5.])
        >>> PredictiveDistribution.from_samples([[1, 1, 2, 4]]).pmf(1.0)
        array([0.5])
        """
        return cls(from_others.law_of_samples(samples, kind, bounds))

    @classmethod
    def from_bins(cls, edges: ArrayLike, probabilities: ArrayLike) -> Self:
        """Return the smooth distributions with given probabilities of bins.

        Parameters
        ----------
        edges : array-like of shape (B + 1,)
            Finite and strictly increasing, the same for all rows.
        probabilities : array-like of shape (n, B)
            Probabilities of the bins between the edges; rows sum to 1.

        Returns
        -------
        PredictiveDistribution
            It has the histogram's quantiles at 161 levels from Phi(-3) to Phi(3),
            joined as in `from_quantiles`, and lies between the outermost edges. Its CDF
            differs from the histogram's by about 0.01 at most.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> dist = PredictiveDistribution.from_bins([0, 1, 2, 4], [[0.2, 0.5, 0.3]])
        >>> dist.cdf([[1.0], [2.0], [4.0]]).ravel().round(2)
        array([0.2, 0.7, 1. ])
        """
        return cls(from_others.law_of_bins(edges, probabilities))

    @classmethod
    def from_scipy(cls, frozen: Any, n: int | None = None) -> Self:
        """Return the distributions of a frozen law of `scipy.stats`.

        Parameters
        ----------
        frozen : frozen continuous or discrete distribution
            Such as ``scipy.stats.norm(loc, scale)`` with arrays (n,) or numbers.
        n : int, optional
            Number of rows if all parameters are numbers; one by default.

        Returns
        -------
        PredictiveDistribution
            A continuous law has scipy's quantiles at 91 levels, or at 161 if some of
            its moments do not exist, and scipy's moments: those that do not exist are
            infinite or nan. Between the levels quantiles are exact to about 1e-5 of
            the spread, and log densities to 1e-4, or to 1e-2 next to a kink of the
            density, as in the middle of a Laplace law. A discrete law keeps its values,
            except 1e-12 of the probability in each tail. They must lie in steps of 1,
            the same in all rows, and may be at most 10 000 in all.

        Examples
        --------
        >>> from scipy import stats
        >>> from localexpert import PredictiveDistribution
        >>> dist = PredictiveDistribution.from_scipy(stats.norm([0.0, 5.0], [1.0, 2.0]))
        >>> dist.quantiles([0.5, 0.975]).round(2)
        array([[0.  , 1.96],
               [5.  , 8.92]])
        >>> counts = PredictiveDistribution.from_scipy(stats.poisson([1.0, 4.0]))
        >>> counts.pmf(0).round(3)
        array([0.368, 0.018])
        """
        return cls(from_others.law_of_frozen(frozen, n))


def _read_only(array: Float64Array) -> Float64Array:
    """Return a view that cannot be written to: a fitted model may hold the array."""
    view = array[:]
    view.setflags(write=False)
    return view


def _refuse_alone(**parts: Any) -> None:
    """Refuse arguments of curves if there are no curves."""
    for name, value in parts.items():
        if value is not None:
            refuse(name, "be None without `coefficients`", f"{value!r:.60}")


def _read_masses(
    masses: ArrayLike | None, values: Float64Array, curve: Curve | None
) -> Float64Array:
    """Return the masses (n, A) of atoms; without curves rows must sum to 1."""
    if len(values) == 0:
        if curve is None:
            refuse("atoms", "be given where there are no `coefficients`", "none")
        return np.empty((len(curve), 0))
    if masses is None:
        refuse("masses", "be given for `atoms`", "None")
    rows = check_probability_rows(masses, "masses", len(values), full=curve is None)
    if curve is not None:
        check_same_length(len(curve), "`coefficients`", len(rows), "masses")
    return rows


def _read_widths(widths: ArrayLike | None, values: Float64Array) -> Float64Array:
    """Return positive widths of cells, one for each atom."""
    if len(values) == 0:
        return values
    if widths is None:
        return cell_widths(values)
    size = check_array(widths, "widths", (len(values),))
    if (size <= 0.0).any():
        refuse("widths", "be positive", show(size.min()))
    return size


def _check_moments(moments: ArrayLike, n: int) -> Float64Array:
    """Return four moments for each row; they may be infinite or nan."""
    known = np.asarray(as_numbers(moments, "moments"))
    if known.shape != (n, 4):
        refuse("moments", f"have shape ({n}, 4)", f"shape {known.shape}")
    return known


def _check_ends(ends: ArrayLike) -> tuple[float, float]:
    """Return the two ends that values are clipped to; infinite means no end."""
    found = as_numbers(ends, "ends")
    if found.shape != (2,) or not found[0] < found[1]:
        refuse("ends", "be a low end and a higher one", found.tolist())
    return float(found[0]), float(found[1])


def _check_knots(knots: ArrayLike) -> Float64Array:
    """Return clamped knots."""
    found = check_array(knots, "knots", (None,))
    first, last = found[:4], found[-4:]
    clamped = len(found) >= 8 and (first == first[0]).all() and (last == last[0]).all()
    inner = np.diff(found[3:-3]) if clamped else np.zeros(1)
    # No more than two are equal inside.
    if not clamped or (inner < 0.0).any() or (inner[:-1] + inner[1:] <= 0.0).any():
        rule = "not decrease, be equal four times at both ends and at most twice inside"
        refuse("knots", rule, f"{found!r:.60}")
    return found


def _read_curve(
    coefficients: ArrayLike,
    knots: ArrayLike | None,
    slopes: ArrayLike | None,
    bounds: ArrayLike | None,
) -> Curve:
    """Return curves. If coefficients fall, the error names the row and the column."""
    basis = STANDARD if knots is None else basis_of(_check_knots(knots))
    c = check_array(coefficients, "coefficients", (None, basis.size))
    falls = np.argwhere(np.diff(c, axis=1) < 0.0)
    if len(falls):
        i, k = falls[0]
        got = f"{show(c[i, k])} before {show(c[i, k + 1])} in row {i}, column {k}"
        refuse("coefficients", "not fall along a row", got)
    beyond = end_slopes(c, basis)
    if slopes is not None:
        beyond = check_array(slopes, "slopes", (len(c), 2))
    if (beyond <= 0.0).any():
        i = int(np.argmax((beyond <= 0.0).any(axis=1)))
        refuse("slopes", "be positive", f"{show(beyond[i].min())} in row {i}")
    walls = as_numbers((-np.inf, np.inf) if bounds is None else bounds, "bounds")
    if walls.shape not in ((2,), (len(c), 2)):
        refuse("bounds", f"have shape (2,) or ({len(c)}, 2)", f"shape {walls.shape}")
    low, high = np.broadcast_to(walls, (len(c), 2)).T
    if not (low < high).all():
        i = int(np.argmin(low < high))
        rule = "have a low end below the high one"
        refuse("bounds", rule, f"({low[i]:g}, {high[i]:g}) in row {i}")
    return Curve(basis, c, beyond, low.copy(), high.copy())
