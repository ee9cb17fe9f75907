"""Beta calibration against a constrained optimiser and known densities."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import beta

from calibration import BetaCalibrator


def nll(theta, scores, y):
    f = theta[0] * np.log(scores) - theta[1] * np.log1p(-scores) + theta[2]
    return (np.logaddexp(0, f) - y * f).sum()


@pytest.mark.parametrize("shape", ["square", "sigmoid", "flat", "falling", "hooked"])
def test_is_the_maximum_likelihood_over_increasing_maps(rng, shape):
    """D12: also where the free optimum has a negative parameter."""
    scores = rng.uniform(0.01, 0.99, 1500)
    truth = {
        "square": scores**2,
        "sigmoid": 1 / (1 + np.exp(-8 * (scores - 0.5))),
        "flat": np.full(1500, 0.3),
        "falling": 1 - scores,
        "hooked": 0.1 + 0.8 * (2 * scores - 1) ** 2 * (scores > 0.5),
    }[shape]
    y = (rng.uniform(size=1500) < truth).astype(int)
    ours = BetaCalibrator().fit(scores, y)
    best = minimize(
        nll, [1, 1, 0], args=(scores, y), bounds=[(0, None), (0, None), (None, None)]
    )
    got = nll([ours.a_, ours.b_, ours.intercept_], scores, y)
    assert got <= best.fun + 0.02
    assert min(ours.a_, ours.b_) >= 0
    assert (np.diff(ours.predict(np.linspace(0, 1, 200))) >= 0).all()


def test_moments_match_each_class_and_use_bayes_rule(rng):
    scores = np.concatenate([rng.beta(2, 5, 4000), rng.beta(6, 3, 2000)])
    y = np.repeat([0, 1], [4000, 2000])
    fitted = BetaCalibrator("moments").fit(scores, y)
    for k in (0, 1):
        model = beta(*fitted.shapes_[k])
        assert model.mean() == pytest.approx(scores[y == k].mean(), rel=1e-9)
        assert model.var() == pytest.approx(scores[y == k].var(), rel=1e-9)
    points = np.array([0.1, 0.4, 0.8])
    density = [beta(*fitted.shapes_[k]).pdf(points) for k in (0, 1)]
    joint = [4001 / 6002 * density[0], 2001 / 6002 * density[1]]
    np.testing.assert_allclose(fitted.predict(points), joint[1] / (joint[0] + joint[1]))


def test_moments_of_a_class_with_one_score_are_finite():
    fitted = BetaCalibrator("moments").fit([0.2, 0.2, 0.6, 0.9], [0, 0, 1, 1])
    p = fitted.predict([0.0, 0.2, 0.5, 1.0])
    assert np.isfinite(p).all()
    assert p[1] > 0
