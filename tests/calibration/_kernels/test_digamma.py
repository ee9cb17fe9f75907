"""Digamma against scipy."""

import numpy as np
from scipy.special import psi

from calibration._kernels.mixture import digamma


def test_agrees_with_scipy_over_the_range():
    x = np.concatenate([np.logspace(-6, 12, 300), [1.0, 2.0, 9.999, 10.0, 10.001]])
    values = np.array([digamma(value) for value in x])
    np.testing.assert_allclose(values, psi(x), rtol=1e-12, atol=1e-13)
