"""Linear models of targets that are known only in part: where draws begin."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from calibration.typing import Float64Array
from localexpert.coordinate.small_nets import Ramps
from localexpert.data.folds import Fold
from localexpert.data.unseen import warn_user
from localexpert.experts.thresholds import lattice_step
from localexpert.law.from_others import law_of_quantiles
from localexpert.law.law import Law
from localexpert.law.steps import LOG_SQRT_TWO_PI, cell_edges
from localexpert.partial.draws import Outcomes
from localexpert.partial.outcomes import nearest_ends

# Laws of errors: normal, or that of least values (a Weibull law of exp y).
_ERRORS = "normal", "least"
# Others than normal ones need a log score of all rows that is better by this: they lie
# differently where nothing is known.
_LEAST_GAIN = 4.0
# Ridges, in rows, of lines and of so many ramps of each column. Those of the logarithm
# of the spread are greater by the last number.
_RIDGE, _RIDGE_OF_RAMPS, _N_RAMPS, _OF_SPREAD = 1.0, 60.0, 6, 4.0
# Bounds of errors in spreads, of the logarithm of the spread, and of that of rates.
_FAR, _MOST_LOG, _MOST_RATE, _TINIEST = 36.0, 6.0, 50.0, 1e-300
# Bounds of errors in likelihoods. Where both a target and its entry are at a bound, the
# target seems sure, so bounds lie far beyond what may be likely.
_FARTHEST = {"normal": 1e6, "least": 100.0}
# A model needs so many finite ends on each side.
_LEAST_ENDS = 2
# Scores at which a law is told. Values on a lattice go that far, and are so many.
_SCORES, _MOST_VALUES = np.linspace(-4.0, 4.0, 41), 300
# No draw is greater than the greatest end by more than this factor, as a logarithm.
_MOST_FACTOR = 10.0


def linear_law(outcomes: Outcomes, columns: Float64Array, folds: list[Fold]) -> Law:
    r"""Return laws of all rows from a linear model that has not seen them.

    .. math:: g(y) = a + b'x + e^{c + d'x} \varepsilon,

    where g is the identity or, if no target is negative, the logarithm, and
    :math:`\varepsilon` is normal or has the law of least values. The likelihood is that
    of what is known. Coefficients have ridges. The choice is the best one out of fold;
    then columns may bend at their quantiles, if that is better.

    Parameters
    ----------
    outcomes : Outcomes
    columns : ndarray of shape (n, q)
        Centred and scaled, without gaps.
    folds : list of Fold

    Returns
    -------
    Law
        Of n rows. It has masses of values if targets lie on a lattice. If next to
        nothing is known, it is wide, and a warning says so.

    References
    ----------
    Tobin (1958), Estimation of relationships for limited dependent variables. Wei
    (1992), The accelerated failure time model.
    """
    # How far out codes for missing values are has no say.
    outcomes, held = outcomes.without_outliers(), outcomes.weight > 0.0
    sides = outcomes.lower[held], outcomes.upper[held]
    if min(np.isfinite(side).sum() for side in sides) < _LEAST_ENDS:
        return _wide_law(*sides, outcomes.ends).take(np.zeros(len(held), np.intp))
    positive = outcomes.ends.min() >= 0.0 and (_cells(outcomes)[1] > 0.0).all()
    allowed = (False, True) if positive else (False,)
    models = [_Model(outcomes, *kind) for kind in product(allowed, _ERRORS)]
    straight = [(model, model.out_of_fold(columns, folds)) for model in models]
    best = min(straight, key=_loss_of)
    bent = np.asarray(Ramps.learn(columns, _N_RAMPS).spread(columns), np.float64)
    again = best[0].out_of_fold(bent, folds, columns.shape[1])
    model, parts = min(best, (best[0], again), key=_loss_of)
    return model.law(*model.widened(*parts))


def _loss_of(tried: tuple[_Model, Float64Array]) -> float:
    model, parts = tried
    return model.loss(*parts) + _LEAST_GAIN * (model.errors != _ERRORS[0])


@dataclass(frozen=True, eq=False)
class _Model:
    """A scale on which errors of one law are alike. Means and spreads are in its unit.

    Parameters
    ----------
    outcomes : Outcomes
    is_log : bool
        Whether it is the logarithm.
    errors : {"normal", "least"}
    """

    outcomes: Outcomes
    is_log: bool
    errors: str

    @cached_property
    def scaled(self) -> tuple[Float64Array, float, float]:
        """Lower and upper ends and entries (3, n), and centre and unit of all."""
        ends = np.stack([*_cells(self.outcomes), self.outcomes.entry])
        if self.is_log:
            with np.errstate(divide="ignore"):
                ends = np.log(np.maximum(ends, 0.0))
        near = nearest_ends(ends[0], ends[1])
        centre = float(np.average(near, weights=self.weight))
        variance = np.average((near - centre) ** 2, weights=self.weight)
        # The mean of equal numbers may differ from them by rounding.
        alike = np.ptp(near) == 0.0
        unit = np.ptp(ends[:2][np.isfinite(ends[:2])]) if alike else np.sqrt(variance)
        unit = float(unit) or 1.0
        ends = (ends - centre) / unit
        if self.outcomes.known.any():
            return ends, centre, unit
        # Most rows may lie in one interval. Then y varies more than their ends do.
        one = np.ones((len(near), 1))
        moved, wider = map(float, _fit(self.errors, ends, self.weight, one)[:, 0])
        factor = float(np.exp(wider))
        return (ends - moved) / factor, centre + unit * moved, unit * factor

    @cached_property
    def weight(self) -> Float64Array:
        """Weights of mean 1: shares of all rows are as good as numbers of them."""
        weight = self.outcomes.weight
        return np.asarray(weight / weight[weight > 0.0].mean())

    def loss(self, mean: Float64Array, log_spread: Float64Array) -> float:
        """Return the log score of all rows. Known targets have densities of y."""
        (ends, centre, unit), known = self.scaled, self.outcomes.known
        logs = np.maximum(_likelihood(self.errors, ends, mean, log_spread)[0], -_FAR)
        if len(self.outcomes.values) == 0:
            stretch = centre + unit * ends[0, known] if self.is_log else 0.0
            logs[known] -= np.log(unit) + stretch
        return -float(self.weight @ logs)

    def out_of_fold(
        self, columns: Float64Array, folds: list[Fold], n_lines: int | None = None
    ) -> Float64Array:
        """Return mean and log spread (2, n) of rows that the model has not seen.

        Rows that no fold tests have those of a model of all rows. Columns after the
        first `n_lines` are ramps.
        """
        ends, weight = self.scaled[0], self.weight
        inputs = np.column_stack([np.ones(len(columns)), columns])
        parts, rows = np.empty((2, len(columns))), np.arange(len(columns))
        untested = len(rows) - sum(len(test) for _, test in folds)
        for train, test in [(rows, rows)] * (untested > 0) + folds:
            seen = ends[:, train], weight[train], inputs[train]
            parts[:, test] = _fit(self.errors, *seen, n_lines) @ inputs[test].T
        parts[1] = np.clip(parts[1], -_MOST_LOG, _MOST_LOG)
        return parts

    def widened(
        self, mean: Float64Array, log_spread: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return centres and spreads of y or its logarithm, right in the mean.

        Models are too sure of rows that they have not seen.
        """
        ends, centre, unit = self.scaled
        z, one = (ends - mean) / np.exp(log_spread), np.ones((len(mean), 1))
        moved, wider = _fit(self.errors, z, self.weight, one)[:, 0]
        mean, log_spread = mean + np.exp(log_spread) * moved, log_spread + wider
        return centre + unit * mean, unit * np.exp(log_spread)

    def law(self, centres: Float64Array, spreads: Float64Array) -> Law:
        """Return the law of all rows. If y has few values it has masses of those."""
        if len(self.outcomes.values):
            return self._law_of_cells(centres, spreads)
        levels = ndtr(_SCORES)
        normal = self.errors == "normal"
        z = _SCORES if normal else np.log(-np.log1p(-levels))
        values = centres[:, None] + spreads[:, None] * z
        if not self.is_log:
            return law_of_quantiles(values, levels, None)
        most = np.log(self.outcomes.ends.max()) + _MOST_FACTOR
        return law_of_quantiles(np.exp(np.minimum(values, most)), levels, (0.0, None))

    def _law_of_cells(self, centres: Float64Array, spreads: Float64Array) -> Law:
        """Return masses of cells around known values. A lattice goes on beyond them."""
        values = self.outcomes.values
        step = lattice_step(values)
        if step is not None:
            room = _SCORES[-1] * spreads
            ends = np.quantile(centres - room, 0.01), np.quantile(centres + room, 0.99)
            far = np.exp(ends) if self.is_log else np.asarray(ends)
            low, high = np.round((far - values[0]) / step)
            high = max(min(high, low + _MOST_VALUES), low + 1.0)
            values = values[0] + step * np.arange(low, high + 1.0)
        edges = cell_edges(values)[1:-1]
        edges = np.log(np.maximum(edges, _TINIEST)) if self.is_log else edges
        z = np.clip((edges - centres[:, None]) / spreads[:, None], -_FAR, _FAR)
        upto = -np.expm1(_laws_of_errors(self.errors, z)[0])
        return Law.discrete(values, np.diff(upto, axis=1, prepend=0.0, append=1.0))


def _cells(outcomes: Outcomes) -> tuple[Float64Array, Float64Array]:
    """Return lower and upper ends; a value of few stands for the cell around it."""
    lower, upper, values = outcomes.lower, outcomes.upper, outcomes.values
    if len(values) == 0:
        return lower, upper
    step = lattice_step(values)
    if step is not None:
        return lower - 0.5 * step, upper + 0.5 * step
    edges = np.concatenate([[-np.inf], cell_edges(values)[1:-1], [np.inf]])
    first = np.searchsorted(values, lower).clip(max=len(values) - 1)
    last = np.searchsorted(values, upper, "right").clip(min=1)
    return edges[first], edges[last]


def _fit(
    errors: str,
    ends: Float64Array,
    weight: Float64Array,
    inputs: Float64Array,
    n_lines: int | None = None,
) -> Float64Array:
    """Return coefficients (2, 1 + q) of the mean and of the log spread.

    The first of `inputs` is 1. After it and `n_lines` come ramps.
    """
    penalty = np.full((2, inputs.shape[1]), _RIDGE)
    if n_lines is not None:
        penalty[:, 1 + n_lines :] = _RIDGE_OF_RAMPS
    penalty[1] *= _OF_SPREAD
    # The intercept of the spread is held a little, for few known targets.
    penalty[:, 0] = 0.0, 1.0

    def loss(flat: Float64Array) -> tuple[float, Float64Array]:
        found = flat.reshape(2, -1)
        mean, log_spread = found @ inputs.T
        log_spread = np.clip(log_spread, -_MOST_LOG, _MOST_LOG)
        logs, *slopes = _likelihood(errors, ends, mean, log_spread)
        slope = penalty * found - (weight * np.stack(slopes)) @ inputs
        value = 0.5 * (penalty * found**2).sum() - weight @ logs
        return float(value), slope.ravel()

    start = np.zeros(penalty.size)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return np.asarray(found.x.reshape(2, -1))


def _likelihood(
    errors: str, ends: Float64Array, mean: Float64Array, log_spread: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return logs of likelihoods (n,) and their slopes in mean and log spread.

    Parameters
    ----------
    errors : {"normal", "least"}
    ends : ndarray of shape (3, n)
        Lower and upper ends, and entries. Equal ends have a density.
    mean, log_spread : ndarrays of shape (n,)
    """
    spread = np.exp(log_spread)
    z = np.clip((ends - mean) / spread, -_FARTHEST[errors], _FARTHEST[errors])
    log_sf, log_pdf, slope = _laws_of_errors(errors, z)
    log_sf = np.where(np.isinf(ends), np.where(ends > 0.0, -np.inf, 0.0), log_sf)
    known = ends[0] == ends[1]
    gap = np.where(known, -1.0, log_sf[1] - log_sf[0])
    inside = log_sf[0] + np.log(np.maximum(-np.expm1(gap), _TINIEST))
    rates = np.minimum(log_pdf - np.stack([inside, inside, log_sf[2]]), _MOST_RATE)
    rates = np.where(np.isinf(ends), 0.0, np.exp(rates))
    at_ends = rates * z
    logs = np.where(known, log_pdf[0] - log_spread, inside) - log_sf[2]
    by_mean = np.where(known, -slope[0], rates[0] - rates[1]) - rates[2]
    of_known = -slope[0] * z[0] - 1.0
    by_log = np.where(known, of_known, at_ends[0] - at_ends[1]) - at_ends[2]
    return logs, by_mean / spread, by_log


def _laws_of_errors(
    errors: str, z: Float64Array
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return log survival and log density of errors, and the slope of the latter."""
    if errors == "normal":
        return log_ndtr(-z), -0.5 * z**2 - LOG_SQRT_TWO_PI, -z
    rise = np.exp(z)
    return -rise, z - rise, 1.0 - rise


def _wide_law(lower: Float64Array, upper: Float64Array, ends: Float64Array) -> Law:
    """Return one wide law, with warning: beyond ends nothing is known.

    Half of it lies beyond the range of all ends, by as much as the range, or half-way
    to 0 if the ends are positive.
    """
    warn_user(
        "`y` holds hardly any known value or bounded interval: how far targets lie "
        "beyond their ends is an assumption, and forecasts are wide."
    )
    low, high = float(ends.min()), float(ends.max())
    spread = high - low or abs(high) or 1.0
    values, levels = [high, high + spread], [0.1, 0.5]
    if np.isfinite(lower).sum() < np.isfinite(upper).sum():
        least = max(low - spread, 0.5 * low) if low > 0.0 else low - spread
        values, levels = [least, low], [0.5, 0.9]
    bounds = (0.0, None) if low > 0.0 else None
    return law_of_quantiles([values], levels, bounds)
