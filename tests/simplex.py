"""Least values on a simplex by a general optimiser."""

import numpy as np
from scipy.optimize import minimize


def least_on_simplex(loss, k):
    """Return the shares of a whole (k,) with the least loss."""
    whole = {"type": "eq", "fun": lambda q: q.sum() - 1.0}
    how = {"bounds": [(0.0, 1.0)] * k, "options": {"ftol": 1e-15, "maxiter": 500}}
    start = np.full(k, 1.0 / k)
    return minimize(loss, start, method="SLSQP", constraints=whole, **how).x
