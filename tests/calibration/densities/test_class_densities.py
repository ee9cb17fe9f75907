"""What the calibrators that model class densities share."""

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import norm
from sklearn.svm import SVC

from calibration import CalibrationWarning, IsotonicCalibrator
from calibration.densities.dpm import DPMCalibrator
from calibration.densities.kde import KDECalibrator, _balance, robust_spread

everyone = pytest.mark.parametrize("cls", [KDECalibrator, DPMCalibrator])


@pytest.fixture
def rare(rng):
    """Scores of a balanced model of a rare class, far from calibrated."""
    y = (rng.uniform(size=20_000) < 0.05).astype(int)
    return 1.0 / (1.0 + np.exp(-rng.normal(1.2 * y - 0.6))), y


@everyone
def test_base_rate_of_a_rare_class_is_kept(cls, rare, rng):
    scores, y = rare
    fitted = cls().fit(scores[:10_000], y[:10_000])
    mean = fitted.predict(scores[:10_000]).mean()
    assert mean == pytest.approx(y[:10_000].mean(), abs=2e-5)
    fresh = rng.normal(1.2 * (rng.uniform(size=200_000) < 0.05) - 0.6)
    fresh_mean = fitted.predict(1.0 / (1.0 + np.exp(-fresh))).mean()
    assert fresh_mean == pytest.approx(y[:10_000].mean(), abs=0.002)


@everyone
def test_rare_class_has_the_shape_of_the_thesis(cls, rare):
    """Table 4: whatever the raw scores, RMSE comes down to that of the base rate."""
    scores, y = rare
    fitted = cls().fit(scores[:10_000], y[:10_000])
    p, truth = fitted.predict(scores[10_000:]), y[10_000:]
    raw = np.sqrt(np.mean((scores[10_000:] - truth) ** 2))
    rmse = np.sqrt(np.mean((p - truth) ** 2))
    assert raw > 0.35
    assert rmse < np.sqrt(truth.mean() * (1 - truth.mean()))
    bins = np.array_split(np.argsort(p), 10)
    gaps = [abs(p[rows].mean() - truth[rows].mean()) for rows in bins]
    assert max(gaps) < 0.03
    assert np.mean(gaps) < 0.008


@everyone
def test_densities_are_those_of_the_classes(cls, rng):
    y = np.arange(40_000) % 2
    x = rng.normal(2.0 * y, 1.0 + 0.5 * y)
    fitted = cls(scale="real").fit(x, y)
    grid = np.linspace(-3.0, 6.0, 40)
    truth = np.column_stack([norm.pdf(grid), norm.pdf(grid, 2.0, 1.5)])
    found = fitted.densities(grid)
    assert found.shape == (40, 2)
    assert abs(found - truth).max() < 0.02


@everyone
def test_predictions_hold_beyond_the_scores_seen(cls, rng):
    y = np.arange(400) % 2
    x = rng.normal(3.0 * y)
    fitted = cls(scale="real").fit(x, y)
    ends = fitted.predict([x.min(), x.max()])
    np.testing.assert_array_equal(fitted.predict([-1e9, 1e300]), ends)
    assert ends[0] < 0.2
    assert ends[1] > 0.8


@everyone
def test_unit_and_origin_of_real_scores_do_not_matter(cls, rng):
    y = np.arange(300) % 2
    x = np.round(rng.normal(2.0 * y), 3)
    plain = cls(scale="real").fit(x, y).predict(x)
    for scale, shift in ((1e-150, 0.0), (1e150, 0.0), (4.0, 1e6)):
        moved = cls(scale="real").fit(scale * x + shift, y)
        np.testing.assert_allclose(moved.predict(scale * x + shift), plain, atol=1e-6)


@everyone
def test_one_far_score_does_not_spoil_the_others(cls, rng):
    y = np.arange(500) % 2
    x = rng.normal(2.0 * y)
    plain = cls(scale="real").fit(x, y).predict(x)
    far = cls(scale="real").fit(np.append(x, 1e9), np.append(y, 1)).predict(x)
    assert abs(far - plain).mean() < 0.02


@everyone
def test_scores_that_the_logit_cannot_tell_apart_give_the_prior(cls):
    fitted = cls().fit([5e-324, 1e-323, 1e-310], [0, 1, 1])
    np.testing.assert_allclose(fitted.predict([0.0, 0.5, 1.0]), 3 / 5)


@everyone
def test_densities_need_two_classes(cls):
    with pytest.warns(CalibrationWarning, match="class 1 only"):
        fitted = cls().fit([0.2, 0.4], [1, 1])
    with pytest.raises(ValueError, match="`densities` needs a fit on two classes"):
        fitted.densities([0.3])


def test_balance_finds_the_prior_or_its_limit(rng):
    ratio, weight = rng.normal(size=50), rng.uniform(size=50)
    prior = _balance(ratio, weight, 0.3)
    mean = weight @ (1 / (1 + np.exp(-ratio - prior))) / weight.sum()
    assert mean == pytest.approx(0.3, abs=1e-12)
    flat = _balance(np.full(4, 2.0), np.ones(4), 0.3)
    assert flat == pytest.approx(logit(0.3) - 2.0, abs=1e-12)


def test_robust_spread_is_the_smaller_of_two_and_never_zero_for_ties(rng):
    x = np.sort(rng.standard_cauchy(size=4001))
    assert robust_spread(x, np.ones(4001)) == (x[3000] - x[1000]) / 1.349
    tied = np.array([0.0, 5.0])
    weight = np.array([99.0, 1.0])
    expected = np.sqrt(0.01 * 0.99) * 5.0
    assert robust_spread(tied, weight) == pytest.approx(expected)


def root_mean_square(values):
    return float(np.sqrt(np.mean(np.square(values))))


def draw_circular(rng, n):
    y = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 2, n) + 2 * y
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def draw_xor(rng, n):
    corner = rng.choice([-1, 1], (n, 2))
    y = (corner.prod(axis=1) > 0).astype(int)
    return corner + 0.4 * rng.normal(size=(n, 2)), y


@everyone
@pytest.mark.parametrize(("draw", "bar"), [(draw_circular, 0.39), (draw_xor, 0.36)])
def test_linear_svm_on_designs_that_are_not_linear(cls, draw, bar):
    """Thesis table 3: .38 and .39 on the circles; isotonic regression has .46."""
    errors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        svm = SVC(kernel="linear").fit(*draw(rng, 1000))
        (features, y), (fresh, truth) = draw(rng, 1000), draw(rng, 1000)
        scores, fresh_scores = map(svm.decision_function, (features, fresh))
        errors.append(
            [
                root_mean_square(
                    kind(scale="real").fit(scores, y).predict(fresh_scores) - truth
                )
                for kind in (cls, IsotonicCalibrator)
            ]
        )
    ours, isotonic = np.mean(errors, axis=0)
    assert ours <= bar
    assert isotonic > 0.43
