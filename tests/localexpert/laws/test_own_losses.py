"""What laws expect of their own losses, against brute force and formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import expon, norm, t, uniform

from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.laws import DiscreteLaw, MixedLaw
from localexpert.laws.own_losses import own_losses
from tests.fuzz import laws as kinds

KINDS = (
    kinds.spline,
    kinds.jagged,
    kinds.bounded,
    kinds.recalibrated,
    kinds.pooled,
    kinds.mixed,
    kinds.moved,
    kinds.mapped,
    kinds.transformed,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("seed", [1, 2])
def test_of_all_kinds_they_are_integrals_of_the_cdf(kind, seed):
    law = kind(np.random.default_rng(seed))
    if isinstance(law, DiscreteLaw):
        law = kinds.mixed(np.random.default_rng(seed))
    middle = law.ppf(np.full((len(law), 1), 0.5))
    far = law.ppf_scores(np.tile([-8.0, -3.0, 3.0, 8.0], (len(law), 1)))
    panels = kinds.Panels(law, np.hstack([middle, far]))
    crps, abs_error = own_losses(law)
    # The brute force is right to some 1e-8 of pools; the claim is 1e-9.
    assert_allclose(crps, (panels.dy * panels.cdf * panels.sf).sum(axis=1), rtol=2e-8)
    _, below, above = panels.losses(middle[:, 0])
    assert_allclose(abs_error, below + above, rtol=2e-8)


def test_of_values_they_are_double_sums(rng):
    law = kinds.discrete(rng)
    values, p = law.values, law.probabilities
    crps, abs_error = own_losses(law)
    apart = np.abs(values[:, None] - values)
    assert_allclose(crps, 0.5 * np.einsum("ij,jk,ik->i", p, apart, p), rtol=1e-12)
    median = law.ppf(np.full((2, 1), 0.5))
    assert_allclose(abs_error, (p * np.abs(values - median)).sum(axis=1), rtol=1e-12)


def test_rare_values_far_away_keep_their_digits():
    crps, abs_error = own_losses(DiscreteLaw([0.0, 1e20], [[1.0, 1e-20]]))
    assert_allclose([crps[0], abs_error[0]], 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("frozen", "crps", "abs_error"),
    [
        (norm(3.0, 2.0), 2.0 / np.sqrt(np.pi), 2.0 * np.sqrt(2.0 / np.pi)),
        (uniform(0.0, 6.0), 1.0, 1.5),
        (expon(scale=4.0), 2.0, 4.0 * np.log(2.0)),
        (t(1.0), np.inf, np.inf),
    ],
)
def test_of_known_laws_they_are_known(frozen, crps, abs_error):
    dist = PredictiveDistribution.from_scipy(frozen)
    assert_allclose(dist.expected_crps(), crps, rtol=1e-9)
    assert_allclose(dist.expected_abs_error(), abs_error, rtol=1e-9)


def test_one_sure_value_has_no_loss():
    smooth = kinds.spline(np.random.default_rng(0))
    law = MixedLaw(np.array([1.0]), np.ones((2, 1)), smooth, np.ones(1))
    assert_allclose(own_losses(law), 0.0, atol=1e-12)
    assert_allclose(own_losses(DiscreteLaw([5.0], [[1.0]])), 0.0, atol=0.0)
