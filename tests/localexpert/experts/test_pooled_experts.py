"""Pools of strategies: what they say are probabilities."""

import numpy as np

from localexpert.experts.pooled_experts import PooledExperts


def test_members_that_are_all_sure_are_no_more_than_sure():
    pool = PooledExperts({})
    # As the solver may leave them, up to rounding.
    pool.weights_ = {"a": 0.6000000000000001, "b": 0.4000000000000001}
    sure = {"a": np.ones((2, 3)), "b": np.ones((2, 3))}
    assert sum(pool.weights_.values()) > 1.0
    np.testing.assert_array_equal(pool._join(sure), np.ones((2, 3)))
