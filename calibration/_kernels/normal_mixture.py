"""Variational Dirichlet-process mixture of normals on groups of rows."""

import math

import numpy as np

from calibration._kernels._jit import inner, njit
from calibration._kernels.digamma import digamma
from calibration.typing import Float64Array

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
