"""A Dirichlet-process mixture of normals on groups of rows, by variational steps.

It starts as one component and grows by splits.
"""

import math

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration.typing import Float64Array

# From here on the asymptotic series below is exact to the last digits.
_FAR = 10.0


@njit
def digamma(x: float) -> float:
    """Derivative of log Gamma at x > 0, to about 1e-14.

    psi(x) = psi(x + 1) - 1/x carries x beyond 10; there the series
    log x - 1/(2x) - sum_k B_2k / (2k x^2k) (Abramowitz & Stegun 6.3.18) is used.
    """
    shift = 0.0
    while x < _FAR:
        shift += 1.0 / x
        x += 1.0
    r = 1.0 / (x * x)
    # B_2k / 2k for k = 1, ..., 5. At x = 10 the next term is 2e-14.
    tail = r * (1 / 12 - r * (1 / 120 - r * (1 / 252 - r * (1 / 240 - r / 132))))
    return math.log(x) - 0.5 / x - tail - shift


# Rows of the parameters of a mixture, one column a component.
COUNT, MEAN, PRECISION, SHAPE, RATE = range(5)


@njit
def update_components(
    groups: Float64Array, shares: Float64Array, prior: Float64Array
) -> Float64Array:
    """Return the best parameters given who belongs where (the M step), shape (5, T).

    Components come out in order of size, the order of sticks in which the bound is
    largest: swapping neighbours a, b with weight R behind them changes the bound by
    the logarithm of alpha + b + R only, which has to be small.

    Parameters
    ----------
    groups : ndarray of shape (3, m)
        Weight, mean and variance of the rows of each group.
    shares : ndarray of shape (T, m)
        Share of each group that belongs to each component.
    prior : ndarray of shape (5,)
        Concentration; mean, its number of rows, shape and rate of the base measure.
    """
    n_components, m = shares.shape
    out = np.empty((5, n_components))
    _, mean0, precision0, shape0, rate0 = prior
    for t in range(n_components):
        count, total = 0.0, 0.0
        for g in range(m):
            part = shares[t, g] * groups[0, g]
            count += part
            total += part * (groups[1, g] - mean0)
        # The conjugate update of a normal-gamma law (Bishop 2006, section 10.2).
        precision = precision0 + count
        mean = mean0 + total / precision
        # Squares about the posterior mean lose no digits: the prior's own row
        # stands at mean0 with weight precision0.
        squares = precision0 * (mean - mean0) ** 2
        for g in range(m):
            part = shares[t, g] * groups[0, g]
            squares += part * (groups[2, g] + (groups[1, g] - mean) ** 2)
        out[COUNT, t], out[MEAN, t], out[PRECISION, t] = count, mean, precision
        out[SHAPE, t], out[RATE, t] = shape0 + 0.5 * count, rate0 + 0.5 * squares
    # A stable sort: equal components keep their places, and the result its bits.
    order = np.argsort(-out[COUNT], kind="mergesort")
    return out[:, order]


@inner
def stick_logs(counts: Float64Array, concentration: float) -> Float64Array:
    """Return E log of the components' weights, shape (T,)."""
    out = np.empty(len(counts))
    behind = counts.sum()
    passed = 0.0
    for t in range(len(counts)):
        # Rounding of the running difference must not go below an empty rest.
        behind = max(behind - counts[t], 0.0)
        # E log v and E log(1 - v) of a stick v ~ Beta(1 + count, concentration +
        # behind).
        both = digamma(1.0 + concentration + counts[t] + behind)
        if t == len(counts) - 1:  # the last stick is all that is left
            out[t] = passed
        else:
            out[t] = passed + digamma(1.0 + counts[t]) - both
            passed += digamma(concentration + behind) - both
    return out


@njit
def share_groups(
    groups: Float64Array, parameters: Float64Array, prior: Float64Array
) -> tuple[Float64Array, float]:
    """Return the best shares (the E step), shape (T, m), and the bound they reach.

    The bound on the log evidence is sum_g w_g log sum_t exp rho_gt, rho being the
    expected log of weight times normal density, less the divergence of the sticks
    and of the components from their priors.
    """
    n_components, m = parameters.shape[1], groups.shape[1]
    shares = np.empty((n_components, m))
    sticks = stick_logs(parameters[COUNT], prior[0])
    for t in range(n_components):
        shape, rate = parameters[SHAPE, t], parameters[RATE, t]
        # E log weight + E log precision / 2 and constants: all of rho but the distance.
        level = sticks[t] + 0.5 * (digamma(shape) - math.log(rate))
        level -= 0.5 * (math.log(2.0 * math.pi) + 1.0 / parameters[PRECISION, t])
        for g in range(m):
            square = groups[2, g] + (groups[1, g] - parameters[MEAN, t]) ** 2
            shares[t, g] = level - 0.5 * shape / rate * square
    bound = 0.0
    for g in range(m):
        # Less the greatest: at least one term of the sum is 1.
        peak = shares[:, g].max()
        total = 0.0
        for t in range(n_components):
            shares[t, g] = math.exp(shares[t, g] - peak)
            total += shares[t, g]
        for t in range(n_components):
            shares[t, g] /= total
        bound += groups[0, g] * (peak + math.log(total))
    # The bound is (log evidence of the rows given the laws) - KL(laws | priors).
    bound -= _stick_divergence(parameters[COUNT], prior[0])
    for t in range(n_components):
        bound -= _component_divergence(parameters[:, t], prior)
    return shares, bound


@njit
def _stick_divergence(counts: Float64Array, concentration: float) -> float:
    """KL divergence of the sticks' Beta laws from Beta(1, concentration)."""
    total = 0.0
    behind = counts.sum()
    for t in range(len(counts) - 1):
        behind = max(behind - counts[t], 0.0)
        a, b = 1.0 + counts[t], concentration + behind
        both = digamma(a + b)
        total += math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        total -= math.lgamma(1.0 + concentration) - math.lgamma(concentration)
        total += counts[t] * (digamma(a) - both) + behind * (digamma(b) - both)
    return total


@njit
def _component_divergence(parameters: Float64Array, prior: Float64Array) -> float:
    """KL divergence of a component's normal-gamma law from the base measure."""
    _, mean, precision, shape, rate = parameters
    _, mean0, precision0, shape0, rate0 = prior
    # KL of the mean given the precision, averaged over that, and KL of two gamma laws.
    normal = math.log(precision / precision0) + precision0 / precision - 1.0
    normal += precision0 * shape / rate * (mean - mean0) ** 2
    gamma = (shape - shape0) * digamma(shape) - math.lgamma(shape)
    gamma += math.lgamma(shape0) + shape0 * math.log(rate / rate0)
    gamma += shape * (rate0 / rate - 1.0)
    return float(0.5 * normal + gamma)


# Steps after which a split is judged, and the most for a mixture to settle in.
# Long enough for most of what a split gains, short beside settling.
_TRIAL_STEPS = 10
_MAX_STEPS = 500


@njit
def climb(
    groups: Float64Array,
    shares: Float64Array,
    prior: Float64Array,
    tolerance: float,
    max_steps: int,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Alternate the two steps until the bound gains less than `tolerance`.

    Returns the parameters, the shares and the bound after every step.
    """
    bounds = np.empty(max_steps)
    for step in range(max_steps):
        parameters = update_components(groups, shares, prior)
        shares, bounds[step] = share_groups(groups, parameters, prior)
        # Coordinate ascent: the bound cannot fall, so a small gain is the end of it.
        if step > 0 and bounds[step] - bounds[step - 1] < tolerance:
            return parameters, shares, bounds[: step + 1].copy()
    return parameters, shares, bounds


@njit
def split_component(
    groups: Float64Array,
    shares: Float64Array,
    parameters: Float64Array,
    t: int,
    empty: int,
    by_distance: bool,
) -> Float64Array:
    """Return shares with part of component t moved to an empty one.

    What moves lies right of its mean or, `by_distance`, further from the mean than
    one standard deviation.
    """
    out = shares.copy()
    # rate / shape is the inverse of the expected precision.
    deviation = np.sqrt(parameters[RATE, t] / parameters[SHAPE, t])
    for g in range(groups.shape[1]):
        distance = groups[1, g] - parameters[MEAN, t]
        if (abs(distance) > deviation) if by_distance else (distance > 0.0):
            out[empty, g] += out[t, g]
            out[t, g] = 0.0
    return out


@njit
def grow_mixture(
    groups: Float64Array, n_components: int, prior: Float64Array, tolerance: float
) -> tuple[Float64Array, Float64Array]:
    """Fit a mixture truncated at `n_components`, from one component up.

    All components are there from the start, and those without rows at their prior:
    the bound is one function throughout. Each component is split in two ways; the
    best split after a few steps is kept and the mixture settles, until no split
    raises the bound by `tolerance`.

    Parameters
    ----------
    groups : ndarray of shape (3, m)
        Weight, mean and variance of the rows of each group.
    n_components : int
    prior : ndarray of shape (5,)
        As in `update_components`.
    tolerance : float
        Gain of the bound that counts.

    Returns
    -------
    parameters : ndarray of shape (5, n_components)
        As in `update_components`.
    bounds : ndarray of shape (n_steps,)
        The bound on the log evidence after each accepted step.
    """
    shares = np.zeros((n_components, groups.shape[1]))
    shares[0] = 1.0
    parameters, shares, bounds = climb(groups, shares, prior, tolerance, _MAX_STEPS)
    for used in range(1, n_components):
        best, start = bounds[-1] + tolerance, shares
        for t in range(used):
            # By the side two modes part, by the distance a narrow peak and its wide
            # surroundings.
            for by_distance in (False, True):
                # Component `used` has no rows yet: components come in order of size.
                split = split_component(
                    groups, shares, parameters, t, used, by_distance
                )
                _, split, trial = climb(groups, split, prior, tolerance, _TRIAL_STEPS)
                if trial[-1] > best:
                    best, start = trial[-1], split
        if best == bounds[-1] + tolerance:
            break
        parameters, shares, steps = climb(groups, start, prior, tolerance, _MAX_STEPS)
        bounds = np.concatenate((bounds, steps))
    return parameters, bounds
