"""Whether the prior alone has moved."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit
from scipy.stats import chi2

from calibration import prior_shift_test
from tests.calibration.drift.test_priors import draw_scores


def test_the_statistic_is_the_least_squared_distance(rng):
    """Beside a search over the prior, with the covariance at the best one."""
    scores, y = draw_scores(rng, 400, 0.5)
    p_old, p = expit(scores), expit(draw_scores(rng, 300, 0.2)[0])
    found = prior_shift_test(p, p_old, y, n_bins=5)
    edges = np.quantile(np.concatenate([p, p_old]), [0.2, 0.4, 0.6, 0.8])
    new, zeros, ones = (
        np.eye(5)[np.searchsorted(edges, part)][:, :4]
        for part in (p, p_old[y == 0], p_old[y == 1])
    )

    def distance(share, at=None):
        at = share if at is None else at
        away = new.mean(0) - share * ones.mean(0) - (1 - share) * zeros.mean(0)
        spread = np.cov(new.T, ddof=0) / len(new)
        spread += at**2 * np.cov(ones.T, ddof=0) / len(ones)
        spread += (1 - at) ** 2 * np.cov(zeros.T, ddof=0) / len(zeros)
        return away @ np.linalg.solve(spread, away)

    best = minimize_scalar(
        lambda share: distance(share, found.prior), bounds=(0, 1), method="bounded"
    )
    assert found.prior == pytest.approx(best.x, abs=1e-4)
    assert found.statistic == pytest.approx(distance(best.x, found.prior), rel=1e-4)
    assert found.dof == 3
    assert found.p_value == chi2.sf(found.statistic, 3)


def test_a_share_of_zero_is_a_degree_of_freedom(rng):
    p_old, y = rng.uniform(size=(400, 3)), np.arange(400) % 3
    p_old[np.arange(400), y] += 2.0
    p_old /= p_old.sum(axis=1, keepdims=True)
    with_all = prior_shift_test(p_old, p_old, y, n_bins=4)
    two = prior_shift_test(p_old[y < 2], p_old, y, n_bins=4)
    assert two.prior[2] == pytest.approx(0.0, abs=0.02)
    assert with_all.prior.sum() == pytest.approx(1.0)
    assert with_all.dof <= 9 - 2


@pytest.mark.slow
@pytest.mark.parametrize("new", [0.02, 0.5])
def test_the_level_is_held_and_a_move_is_found(new):
    """At level .05; 3 errors of 400 samples are .033."""
    p_values, moved = [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        scores, y = draw_scores(rng, 1000, 0.5)
        fresh = draw_scores(rng, 1000, new)[0]
        p_values.append(prior_shift_test(expit(fresh), expit(scores), y).p_value)
        other = prior_shift_test(expit(1.4 * fresh + 0.4), expit(scores), y)
        moved.append(other.p_value)
    assert abs(np.mean(np.array(p_values) < 0.05) - 0.05) < 0.033
    assert np.mean(np.array(moved) < 0.05) > 0.6


def test_what_cannot_be_told_is_refused():
    y = [0, 1, 0, 1]
    with pytest.raises(ValueError, match="`p` must take values in more than 2 bins"):
        prior_shift_test([0.5, 0.5], [0.5, 0.5, 0.5, 0.5], y)
    with pytest.raises(ValueError, match="`n_bins` must be at least 3, got 2"):
        prior_shift_test([0.5], [0.1, 0.2, 0.3, 0.4], y, n_bins=2)
    with pytest.raises(ValueError, match="`y_old` must be as long as p_old"):
        prior_shift_test([0.5], [0.1, 0.2, 0.3], y)
