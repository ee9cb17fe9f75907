"""`MadeForecasts`: forecasts as arrays, and made of what other libraries forecast."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import (
    as_numbers,
    check_array,
    check_flag,
    check_increasing,
    check_number,
    check_probability_rows,
    check_same_length,
    show,
)
from localexpert.distribution.answers import Answers
from localexpert.law.basis import STANDARD, basis_of
from localexpert.law.curve import Curve, end_slopes
from localexpert.law.from_others import (
    law_of_bins,
    law_of_frozen,
    law_of_quantiles,
    law_of_samples,
)
from localexpert.law.law import Law
from localexpert.law.steps import cell_widths


class MadeForecasts(Answers):
    """What a forecast is, in arrays; a base of `PredictiveDistribution`."""

    @property
    def coefficients(self) -> Float64Array:
        """Coefficients of the rows' curves, (n, K); K is 0 where there are none.

        A curve is y = sum_k c_k B_k(z), z the normal score of the level within what
        no atom holds and B_k cubic B-splines on the `knots` of `to_arrays`. Between
        bounds it is that of log(y - low), -log(high - y), or of the logit.
        """
        curve = self.law.clipped.curve
        return np.empty((len(self.law), 0)) if curve is None else curve.coefficients

    @property
    def atoms(self) -> Float64Array:
        """Values of positive probability that all rows share, (A,)."""
        return self.law.clipped.atoms

    @property
    def masses(self) -> Float64Array:
        """Their probabilities, (n, A)."""
        return self.law.clipped.masses

    def to_arrays(self) -> dict[str, Any]:
        """Return all that the distributions are, for `from_arrays`.

        Returns
        -------
        dict of str to ndarray or number
            `atoms` (A,), `masses` (n, A), `widths` (A,); where there are curves
            `coefficients` (n, K), `knots` (K + 4,), `slopes` (n, 2) beyond both ends
            and `bounds` (n, 2); where values are rounded or clipped `step`, `offset`
            and `ends`; moments (n, 4) where they are known otherwise.

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
        return out

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
        """Return the distributions of coefficients, or of masses, or of both.

        Parameters
        ----------
        coefficients : array-like of shape (n, K), optional
            Of the curves, not decreasing along a row; None where all probability is in
            atoms.
        atoms : array-like of shape (A,)
            Increasing values of positive probability.
        masses : array-like of shape (n, A), optional
            Rows sum to 1 without coefficients, and to 1 at most beside them.
        widths : array-like of shape (A,), optional
            Of the atoms' cells, which say what a hit is worth in the log score; by
            default cells that end half-way between atoms.
        knots : array-like of shape (K + 4,), optional
            Of the B-splines; by default the 95 that the library uses.
        slopes : array-like of shape (n, 2), optional
            Beyond the outer knots; by default as at them.
        bounds : array-like of shape (n, 2) or (2,), optional
            Least and greatest value of a curve, infinite by default.
        step, offset : float
            Of a lattice that curves are rounded to; no lattice by default.
        ends : (float, float)
            What values are clipped to.
        end_width : float
            Of the cells of the ends.
        ordered : bool
            Whether rows are to keep their order in what is made of them.
        moments : array-like of shape (n, 4), optional
            Mean and second to fourth central moment, where they are known otherwise.

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
        values, curve = _read_atoms(atoms), None
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
            Least and greatest possible value; None is no bound.

        Returns
        -------
        PredictiveDistribution

        Warns
        -----
        CalibrationWarning
            Where quantiles cross, or lie beyond the bounds: they are put in order, and
            on the bound.

        Notes
        -----
        The quantiles come back exactly. On normal scores z of the levels the curve is a
        natural cubic spline in y. Above a finite bound it is one in log(y - low),
        below one in -log(high - y), and between two in the sum of both. Its slopes at
        the levels lie between 0.3 (0.5 at the outermost) and 1.5 times the lesser slope
        of the chords beside, so that it increases everywhere. Beyond the outermost
        levels it is straight, with the slope that it has there; if the two outermost
        quantiles are nearly equal, with a quarter of its mean slope. So tails are
        normal, and log-normal towards a bound. With two levels and no bounds it is a
        normal law.

        Quantiles that are equal are drawn apart by about 1e-6 of the range of those
        around them: a steep part, not a value with probability of its own. An outcome
        that hits it has a great density, so of forecasts with many ties compare the
        CRPS, not log scores.

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
        return cls(law_of_quantiles(values, levels, bounds))

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
            m draws for each of n forecasts; of an array (m, n) give its transpose.
        kind : {"auto", "smooth", "discrete"}
            "smooth": a smooth curve through the draws, of which there must be 10 at
            least. "discrete": each value met has its share of the row's draws. "auto":
            discrete where all draws together have 100 distinct values at most.
        bounds : (float, float), optional
            Least and greatest possible value, of smooth distributions.

        Returns
        -------
        PredictiveDistribution

        Notes
        -----
        "discrete" is the empirical law: its CRPS is that of the ensemble. It takes
        memory for n times the number of distinct values in all rows. The smooth law is
        the sorted draws at their normal scores, as straight lines, smoothed by a
        Gaussian window of width 0.7 m^(-1/5); its tails are those of `from_quantiles`.

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
        return cls(law_of_samples(samples, kind, bounds))

    @classmethod
    def from_bins(cls, edges: ArrayLike, probabilities: ArrayLike) -> Self:
        """Return the smooth distributions of probabilities of bins.

        Parameters
        ----------
        edges : array-like of shape (B + 1,)
            Finite and strictly increasing, the same for all rows.
        probabilities : array-like of shape (n, B)
            Of the bins between them; rows sum to 1.

        Returns
        -------
        PredictiveDistribution
            With the histogram's quantiles at 161 levels from Phi(-3) to Phi(3), joined
            as in `from_quantiles`, between the outermost edges. The CDF is that of the
            histogram within about 0.01.

        Examples
        --------
        >>> from localexpert import PredictiveDistribution
        >>> dist = PredictiveDistribution.from_bins([0, 1, 2, 4], [[0.2, 0.5, 0.3]])
        >>> dist.cdf([[1.0], [2.0], [4.0]]).ravel().round(2)
        array([0.2, 0.7, 1. ])
        """
        return cls(law_of_bins(edges, probabilities))

    @classmethod
    def from_scipy(cls, frozen: Any, n: int | None = None) -> Self:
        """Return the distributions of a frozen law of `scipy.stats`.

        Parameters
        ----------
        frozen : frozen continuous or discrete distribution
            As ``scipy.stats.norm(loc, scale)`` with arrays (n,) or numbers.
        n : int, optional
            Number of rows, for parameters that are numbers only; one by default.

        Returns
        -------
        PredictiveDistribution
            A continuous law has scipy's quantiles at 91 levels, or at 161 if some of
            its moments do not exist, and scipy's moments: those that do not exist are
            infinite or nan. Between the levels quantiles are right to about 1e-5 of
            the spread, and log densities to 1e-4; next to a kink of the density, as in
            the middle of a Laplace law, to 1e-2. A discrete law has its values but for
            1e-12 of the probability in each tail, 10 000 values at most in all rows
            together.

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
        return cls(law_of_frozen(frozen, n))


def _refuse_alone(**parts: Any) -> None:
    """Refuse parts of curves where there are none."""
    for name, value in parts.items():
        if value is not None:
            msg = f"`{name}` must be None without `coefficients`, got {value!r:.60}."
            raise ValueError(msg)


def _read_atoms(atoms: ArrayLike) -> Float64Array:
    """Return increasing values, or none."""
    values = as_numbers(atoms, "atoms")
    if values.size == 0:
        return np.empty(0)
    values = check_array(values, "atoms", (None,))
    check_increasing(values, "atoms")
    return values


def _read_masses(
    masses: ArrayLike | None, values: Float64Array, curve: Curve | None
) -> Float64Array:
    """Return the masses (n, A) of atoms, whole where there is no curve."""
    if len(values) == 0:
        if curve is None:
            msg = (
                "`coefficients` or `atoms` with `masses` must be given, got no "
                "`coefficients` and no `atoms`."
            )
            raise ValueError(msg)
        return np.empty((len(curve), 0))
    if masses is None:
        msg = "`masses` must be given for `atoms`, got None."
        raise ValueError(msg)
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
        msg = f"`widths` must be positive, got {show(size.min())}."
        raise ValueError(msg)
    return size


def _check_moments(moments: ArrayLike, n: int) -> Float64Array:
    """Return four moments for each row, which need not be finite."""
    known = np.asarray(as_numbers(moments, "moments"))
    if known.shape != (n, 4):
        msg = f"`moments` must have shape ({n}, 4), got shape {known.shape}."
        raise ValueError(msg)
    return known


def _check_ends(ends: ArrayLike) -> tuple[float, float]:
    """Return the two ends that values are clipped to, infinite where there is none."""
    found = as_numbers(ends, "ends")
    if found.shape != (2,) or not found[0] < found[1]:
        msg = f"`ends` must be a low end and a higher one, got {found.tolist()}."
        raise ValueError(msg)
    return float(found[0]), float(found[1])


def _check_knots(knots: ArrayLike) -> Float64Array:
    """Return clamped knots."""
    found = check_array(knots, "knots", (None,))
    first, last = found[:4], found[-4:]
    clamped = len(found) >= 8 and (first == first[0]).all() and (last == last[0]).all()
    inner = np.diff(found[3:-3]) if clamped else np.zeros(1)
    # No more than two are equal inside.
    if not clamped or (inner < 0.0).any() or (inner[:-1] + inner[1:] <= 0.0).any():
        msg = (
            "`knots` must not decrease, be four times the same at both ends and twice "
            f"at most inside, got {found!r:.60}."
        )
        raise ValueError(msg)
    return found


def _read_curve(
    coefficients: ArrayLike,
    knots: ArrayLike | None,
    slopes: ArrayLike | None,
    bounds: ArrayLike | None,
) -> Curve:
    """Return curves, and refuse coefficients that fall by row and column."""
    basis = STANDARD if knots is None else basis_of(_check_knots(knots))
    c = check_array(coefficients, "coefficients", (None, basis.size))
    falls = np.argwhere(np.diff(c, axis=1) < 0.0)
    if len(falls):
        i, k = falls[0]
        msg = (
            "`coefficients` must not fall along a row, got "
            f"{show(c[i, k])} before {show(c[i, k + 1])} in row {i}, column {k}."
        )
        raise ValueError(msg)
    beyond = end_slopes(c, basis)
    if slopes is not None:
        beyond = check_array(slopes, "slopes", (len(c), 2))
    if (beyond <= 0.0).any():
        i = int(np.argmax((beyond <= 0.0).any(axis=1)))
        msg = f"`slopes` must be positive, got {show(beyond[i].min())} in row {i}."
        raise ValueError(msg)
    walls = as_numbers((-np.inf, np.inf) if bounds is None else bounds, "bounds")
    if walls.shape not in ((2,), (len(c), 2)):
        msg = (
            f"`bounds` must have shape (2,) or ({len(c)}, 2), got shape {walls.shape}."
        )
        raise ValueError(msg)
    low, high = np.broadcast_to(walls, (len(c), 2)).T
    if not (low < high).all():
        i = int(np.argmin(low < high))
        msg = (
            "`bounds` must have a low end below the high one, got "
            f"({low[i]:g}, {high[i]:g}) in row {i}."
        )
        raise ValueError(msg)
    return Curve(basis, c, beyond, low.copy(), high.copy())
