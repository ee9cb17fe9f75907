"""Dirichlet-process mixtures of normals for the two classes and Bayes' rule."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from calibration._kernels.cells import group_means, group_starts
from calibration._validation import check_integer, check_number
from calibration.base.calibrators import Scale
from calibration.densities.kde import DensityCalibrator, robust_spread
from calibration.densities.mixture import (
    COUNT,
    MEAN,
    PRECISION,
    RATE,
    SHAPE,
    grow_mixture,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# The base measure, in units of the spread of all scores. It is a normal-gamma law. Its
# mean is 0 and worth a tenth of a row. Its precision has shape 1 and rate a tenth, so
# that components are expected to be narrower than the whole.
_BASE = 0.0, 0.1, 1.0, 0.1
# Rows of a class are summed into at most this many groups.
_GROUPS = 1024
# The unit is at least this share of the range. With weights far apart the spread may be
# so small that squares in its units overflow.
_LEAST_SPREAD = 1e-100
# A gain of the bound counts if it is at least this many nats.
_TOLERANCE = 0.01
# Densities are computed for this many scores at a time, so that their table stays in
# cache.
_BLOCK = 2048


class DPMCalibrator(DensityCalibrator):
    r"""Dirichlet-process mixtures of normals as class densities, and Bayes' rule.

    Parameters
    ----------
    max_components : int
        Truncation: the greatest number of components of a class. It is at least 2.
    concentration : float
        Concentration of the Dirichlet process of both classes together, in (0, 1e6].
        Class k has its share :math:`(n_k + 1)/(n + 2)` of it.
    scale : {"probability", "logit", "real"}
        What a score is. Probabilities enter by their log-odds.

    Attributes
    ----------
    weights_ : ndarray of shape (2, max_components)
        Expected weights of the components in class 0 and in class 1. The largest is
        first.
    means_, scales_, degrees_of_freedom_ : ndarrays of shape (2, max_components)
        The Student t law of a new score in each component.
    lower_bounds_ : list of two ndarrays
        For each class, the bound on the log evidence after each step. It never falls.
    prior_log_odds_ : float
        Log of the ratio of the class priors. With these priors the mean prediction is
        the base rate.
    x_range_ : tuple of 2 floats
        Range of the training scores as log-odds. Beyond it predictions stay constant.

    Notes
    -----
    Each class has the density of eq. 3.1 of the thesis, with the model of Blei &
    Jordan. It has sticks :math:`v_t \sim Beta(1, \alpha)` and weights
    :math:`v_t \prod_{s<t} (1 - v_s)`. The components are normal. Their mean and
    precision come from a normal-gamma law that is common to the classes, scaled by the
    middle and the spread of all scores. If rows (x, y) come from one Dirichlet process
    with base measure :math:`\alpha G_0 \times` (base rate), each class is such a
    process with its share of :math:`\alpha`.

    The posterior is approximated by independent laws of sticks, components and
    memberships, coordinate by coordinate. Components are kept in order of size
    (Kurihara et al.). The mixture starts as one component. Each time, the split that
    raises the bound most is kept, until no split raises it. So nothing is drawn at
    random. The density is that of a new row: a mixture of Student t laws. The base
    measure is one of them, with the weight of its share of :math:`\alpha`.

    Beyond 1024 distinct scores in a class, neighbours of about equal weight are summed
    into groups whose rows share their memberships. Each group enters by its weight,
    mean and variance, so that the bound is still one for all rows.

    References
    ----------
    Pakdaman Naeini (2016), Obtaining accurate probabilities using classifier
    calibration, section 3.1. Blei & Jordan (2006), Variational inference for
    Dirichlet process mixtures. Kurihara, Welling & Teh (2007), Collapsed variational
    Dirichlet process mixture models; Kurihara, Welling & Vlassis (2006), Accelerated
    variational Dirichlet process mixtures.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.densities.dpm import DPMCalibrator
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(4000) % 2
    >>> scores = np.where(y == 1, rng.choice([-2.0, 2.0], 4000), 0.0)
    >>> scores += rng.normal(size=4000)
    >>> dpm = DPMCalibrator(scale="real").fit(scores, y)
    >>> (dpm.weights_ > 0.1).sum(axis=1)
    array([1, 2])
    >>> dpm.predict([-3.0, 0.0, 3.0]).round(1)
    array([1. , 0.1, 1. ])
    """

    weights_: Float64Array
    means_: Float64Array
    scales_: Float64Array
    degrees_of_freedom_: Float64Array
    lower_bounds_: list[Float64Array]

    def __init__(
        self,
        max_components: int = 12,
        concentration: float = 2.0,
        *,
        scale: Scale = "probability",
    ):
        self.max_components = max_components
        self.concentration = concentration
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer(self.max_components, "max_components", 2)
        check_number(self.concentration, "concentration", 0.0, 1e6, open_low=True)

    def _fit_densities(self, summary: ScoreSummary, x: Float64Array) -> None:
        weight = summary.weight
        # Take median and robust spread, because the base measure must not follow a far
        # outlier.
        middle = x[np.searchsorted(np.cumsum(weight), 0.5 * (1.0 - 1e-14) * summary.n)]
        least = _LEAST_SPREAD * float(x[-1] - x[0])
        unit = max(robust_spread(x - middle, weight), least)
        place = (x - middle) / unit
        laws, self.lower_bounds_ = [], []
        for weights in (summary.weight0, summary.weight1):
            share = (weights.sum() + 1.0) / (summary.n + 2.0)
            prior = np.array([self.concentration * share, *_BASE])
            groups = _group_rows(place, weights)
            parameters, bounds = grow_mixture(
                groups, self.max_components, prior, _TOLERANCE
            )
            laws.append(_law_of_new_row(parameters, float(prior[0])))
            self.lower_bounds_.append(bounds)
        self.weights_, means, scales, self.degrees_of_freedom_ = (
            np.array(rows) for rows in zip(*laws, strict=True)
        )
        self.means_, self.scales_ = middle + unit * means, unit * scales

    def _log_ratio(self, x: Float64Array) -> Float64Array:
        return self._log_density(x, 1) - self._log_density(x, 0)

    def _log_density(self, x: Float64Array, k: int) -> Float64Array:
        """Return the log of the mixture of Student t laws of class k, shape (n,)."""
        means, scales = self.means_[k][:, None], self.scales_[k][:, None]
        freedoms = self.degrees_of_freedom_[k][:, None]
        power = 0.5 * freedoms + 0.5
        level = np.log(self.weights_[k])[:, None] - np.log(scales)
        level += gammaln(power) - gammaln(0.5 * freedoms)
        level -= 0.5 * np.log(np.pi * freedoms)
        out = np.empty(len(x))
        for start in range(0, len(x), _BLOCK):
            some = slice(start, start + _BLOCK)
            # log1p keeps the digits near a mode, where the distance is small.
            terms = np.log1p(((x[some] - means) / scales) ** 2 / freedoms)
            terms *= -power
            terms += level
            # Far out all terms underflow, but their logarithms do not.
            peak = terms.max(axis=0)
            terms -= peak
            out[some] = peak + np.log(np.exp(terms, out=terms).sum(axis=0))
        return out


def _group_rows(place: Float64Array, weight: Float64Array) -> Float64Array:
    """Return weight, mean and variance of at most `_GROUPS` groups, shape (3, m)."""
    held = weight > 0.0
    place, weight = place[held], weight[held]
    if len(place) <= _GROUPS:
        return np.stack([weight, place, np.zeros(len(place))])
    starts = group_starts(weight, _GROUPS)
    mean = group_means(place, weight, starts)
    apart = place - np.repeat(mean, np.diff(starts, append=len(place)))
    variance = group_means(apart**2, weight, starts)
    return np.stack([np.add.reduceat(weight, starts), mean, variance])


def _law_of_new_row(
    parameters: Float64Array, concentration: float
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
    """Return expected weights, and the Student t laws' means, scales and freedoms."""
    count, mean, precision, shape, rate = (
        parameters[row] for row in (COUNT, MEAN, PRECISION, SHAPE, RATE)
    )
    behind = np.append(np.cumsum(count[:0:-1])[::-1], 0.0)
    # This is E(1 - v) of each stick under its Beta posterior.
    rest = (concentration + behind) / (1.0 + concentration + count + behind)
    # The last stick takes all that is left.
    rest[-1] = 0.0
    weights = (1.0 - rest) * np.append(1.0, np.cumprod(rest[:-1]))
    # The predictive law of a normal-gamma posterior is a Student t law. It has 2 shape
    # degrees of freedom.
    scales = np.sqrt(rate / shape * (1.0 + 1.0 / precision))
    return weights, mean, scales, 2.0 * shape
