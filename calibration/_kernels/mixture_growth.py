"""Grow a variational mixture of normals by splitting components."""

import numpy as np

from calibration._kernels._jit import njit
from calibration._kernels.normal_mixture import (
    MEAN,
    RATE,
    SHAPE,
    share_groups,
    update_components,
)
from calibration.typing import Float64Array

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
