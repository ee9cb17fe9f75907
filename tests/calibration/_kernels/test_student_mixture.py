"""Mixture of Student t laws against scipy."""

import numpy as np
from scipy.stats import t

from calibration._kernels.mixture import log_student_mixture


def test_is_the_log_of_the_weighted_densities(rng):
    weights = rng.dirichlet(np.ones(4))
    means, scales = rng.normal(size=4), rng.uniform(0.1, 3.0, 4)
    freedoms = rng.uniform(0.5, 50.0, 4)
    x = np.concatenate([rng.normal(scale=5.0, size=30), [-1e8, 1e8]])
    density = t.pdf(x[:, None], freedoms, means, scales) @ weights
    values = log_student_mixture(x, weights, means, scales, freedoms)
    np.testing.assert_allclose(values, np.log(density), rtol=1e-10)
