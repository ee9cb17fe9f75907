"""Weights of logarithmic pools, against a general optimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from calibration.selection.trials import learn_weights, pool_logs
from tests.calibration.multiclass.draws import draw


def total(w, logs, y, weight, ridge, prior):
    """The total loss of a pool as it is written."""
    z = np.tensordot(w, logs, axes=1)
    loss = weight @ (logsumexp(z, axis=0) - z[y, np.arange(len(y))])
    return loss + ridge / 2 * ((w - prior) ** 2).sum()


@pytest.mark.parametrize("ridge", [0.1, 10.0])
def test_weights_are_the_least_of_what_is_written(ridge, rng):
    p, y = draw(rng, 200, 3)
    candidates = [p, draw(rng, 200, 3)[0], p**0.3, 1.0 - 0.9 * p]
    logs = np.stack(
        [np.log(one / one.sum(axis=1, keepdims=True)).T for one in candidates]
    )
    weight = rng.integers(1, 4, size=200).astype(float)
    prior = np.eye(4)[0]
    found = learn_weights(logs, np.eye(3)[y].T * weight, prior, ridge)
    arguments = (logs, y, weight, ridge, prior)
    truth = minimize(
        total,
        prior,
        arguments,
        "L-BFGS-B",
        bounds=[(0.0, None)] * 4,
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    np.testing.assert_allclose(found, truth.x, atol=1e-4)
    assert total(found, *arguments) <= truth.fun + 1e-9
    # One of them is at its bound.
    assert (found == 0.0).any()


def test_two_that_say_the_same_share(rng):
    p, y = draw(rng, 100, 3)
    logs = np.stack([np.log(p).T] * 2)
    weights = learn_weights(logs, np.eye(3)[y].T, np.array([0.5, 0.5]), 1.0)
    assert weights[0] == pytest.approx(weights[1])
    pooled = np.exp(pool_logs(weights, logs))
    np.testing.assert_allclose(pooled.sum(axis=0), 1.0)
