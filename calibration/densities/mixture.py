"""A Dirichlet-process mixture of normals on groups of rows, by variational steps.

It starts as one component and grows by splits.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, gammaln, psi

from calibration.typing import Float64Array

# Rows of the parameters of a mixture. Each component is a column.
COUNT, MEAN, PRECISION, SHAPE, RATE = range(5)


def update_components(
    groups: Float64Array, shares: Float64Array, prior: Float64Array
) -> Float64Array:
    """Return the best parameters given who belongs where (the M step), shape (5, T).

    Components are returned in order of size. In this order of sticks the bound is
    largest: if neighbours a, b with weight R behind them are exchanged, the bound
    changes only by the logarithm of alpha + b + R, which has to be small.

    Parameters
    ----------
    groups : ndarray of shape (3, m)
        Weight, mean and variance of the rows of each group.
    shares : ndarray of shape (T, m)
        Share of each group that belongs to each component.
    prior : ndarray of shape (5,)
        Concentration, then mean, its number of rows, shape and rate of the base
        measure.
    """
    _, mean0, precision0, shape0, rate0 = prior
    part = shares * groups[0]
    count = part.sum(axis=1)
    # This is the conjugate update of a normal-gamma law (Bishop 2006, section 10.2).
    precision = precision0 + count
    mean = mean0 + part @ (groups[1] - mean0) / precision
    # Squares about the posterior mean lose no digits. The prior counts as a row at
    # mean0 with weight precision0.
    squares = precision0 * (mean - mean0) ** 2
    squares += np.einsum("tg,tg->t", part, _squares(groups, mean))
    out = np.stack(
        [count, mean, precision, shape0 + 0.5 * count, rate0 + 0.5 * squares]
    )
    # The sort is stable, so that equal components keep their places, and the result its
    # bits.
    return np.asarray(out[:, np.argsort(-count, kind="stable")])


def _squares(groups: Float64Array, mean: Float64Array) -> Float64Array:
    """Return the mean squared distance of each group from each mean, shape (T, m)."""
    distance: Float64Array = groups[1] - mean[:, None]
    distance *= distance
    distance += groups[2]
    return distance


def share_groups(
    groups: Float64Array, parameters: Float64Array, prior: Float64Array
) -> tuple[Float64Array, float]:
    """Return the best shares (the E step), shape (T, m), and the bound they reach.

    The bound on the log evidence is sum_g w_g log sum_t exp rho_gt, less the divergence
    of the sticks and of the components from their priors. Here rho is the expected log
    of weight times normal density.
    """
    count, mean, precision, shape, rate = parameters
    sticks, divergence = expect_sticks(count, prior[0])
    # E log weight + E log precision / 2 and constants are all of rho but the distance.
    level = sticks + 0.5 * (psi(shape) - np.log(rate))
    level -= 0.5 * (np.log(2.0 * np.pi) + 1.0 / precision)
    shares = _squares(groups, mean)
    shares *= (-0.5 * shape / rate)[:, None]
    shares += level[:, None]
    # Subtract the greatest, so that at least one term of the sum is 1.
    peak = shares.max(axis=0)
    shares -= peak
    np.exp(shares, out=shares)
    total = shares.sum(axis=0)
    shares /= total
    # The bound is (log evidence of the rows given the laws) - KL(laws | priors).
    bound = groups[0] @ (peak + np.log(total)) - divergence
    return shares, float(bound - component_divergence(parameters, prior).sum())


def expect_sticks(
    counts: Float64Array, concentration: float
) -> tuple[Float64Array, float]:
    """Return E log of the components' weights (T,), and the divergence of the sticks.

    This is the divergence from their Beta(1, concentration) laws.
    """
    behind = np.append(np.cumsum(counts[:0:-1])[::-1], 0.0)
    a, b = 1.0 + counts, concentration + behind
    both = psi(a + b)
    # These are E log v and E log(1 - v) of a stick v ~ Beta(a, b).
    stick, rest = psi(a) - both, psi(b) - both
    divergence = counts * stick + behind * rest - betaln(a, b) - np.log(concentration)
    # The last stick takes all that is left.
    stick[-1] = 0.0
    stick[1:] += np.cumsum(rest[:-1])
    return stick, float(divergence[:-1].sum())


def component_divergence(parameters: Float64Array, prior: Float64Array) -> Float64Array:
    """Return the KL divergence of normal-gamma laws from the base measure, (T,)."""
    _, mean, precision, shape, rate = parameters
    _, mean0, precision0, shape0, rate0 = prior
    # KL of the mean given the precision, averaged over the precision, and KL of gamma
    # laws.
    normal = np.log(precision / precision0) + precision0 / precision - 1.0
    normal += precision0 * shape / rate * (mean - mean0) ** 2
    gamma = (shape - shape0) * psi(shape) - gammaln(shape)
    gamma += gammaln(shape0) + shape0 * np.log(rate / rate0)
    gamma += shape * (rate0 / rate - 1.0)
    return np.asarray(0.5 * normal + gamma)


# Steps after which a split is judged, and the most steps for a mixture to settle. The
# first suffice for most of what a split gains, and are few beside the second.
_TRIAL_STEPS = 10
_MAX_STEPS = 500


def climb(
    groups: Float64Array,
    shares: Float64Array,
    prior: Float64Array,
    tolerance: float,
    max_steps: int,
) -> tuple[Float64Array, Float64Array, list[float]]:
    """Alternate the two steps until the bound gains less than `tolerance`.

    Returns the parameters, the shares and the bound after every step.
    """
    bounds: list[float] = []
    # This is coordinate ascent. The bound cannot fall, so a small gain is the end.
    while len(bounds) < 2 or bounds[-1] - bounds[-2] >= tolerance:
        parameters = update_components(groups, shares, prior)
        shares, bound = share_groups(groups, parameters, prior)
        bounds.append(bound)
        if len(bounds) == max_steps:
            break
    return parameters, shares, bounds


def split_component(
    groups: Float64Array,
    shares: Float64Array,
    parameters: Float64Array,
    t: int,
    empty: int,
    by_distance: bool,
) -> Float64Array:
    """Return shares with part of component t moved to an empty one.

    The groups that move lie right of its mean. With `by_distance`, they are further
    from the mean than one standard deviation.
    """
    distance = groups[1] - parameters[MEAN, t]
    # rate / shape is the inverse of the expected precision.
    deviation = np.sqrt(parameters[RATE, t] / parameters[SHAPE, t])
    moves = np.abs(distance) > deviation if by_distance else distance > 0.0
    out = shares.copy()
    out[empty, moves] += out[t, moves]
    out[t, moves] = 0.0
    return out


def grow_mixture(
    groups: Float64Array, n_components: int, prior: Float64Array, tolerance: float
) -> tuple[Float64Array, Float64Array]:
    """Fit a mixture truncated at `n_components`, from one component up.

    All components are there from the start. Those without rows are at their prior, so
    the bound is one function throughout. Each component is split in two ways. The split
    that is best after a few steps is kept, and the mixture settles. This ends when no
    split raises the bound by `tolerance`.

    Parameters
    ----------
    groups : ndarray of shape (3, m)
        Weight, mean and variance of the rows of each group.
    n_components : int
    prior : ndarray of shape (5,)
        As in `update_components`.
    tolerance : float
        A gain of the bound counts if it is at least this.

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
        best, start = bounds[-1] + tolerance, None
        for t in range(used):
            # A split by side parts two modes. A split by distance parts a narrow peak
            # from its wide surroundings.
            for by_distance in (False, True):
                # Components come in order of size, so component `used` has no rows yet.
                split = split_component(
                    groups, shares, parameters, t, used, by_distance
                )
                _, split, trial = climb(groups, split, prior, tolerance, _TRIAL_STEPS)
                if trial[-1] > best:
                    best, start = trial[-1], split
        if start is None:
            break
        parameters, shares, steps = climb(groups, start, prior, tolerance, _MAX_STEPS)
        bounds += steps
    return parameters, np.array(bounds)
