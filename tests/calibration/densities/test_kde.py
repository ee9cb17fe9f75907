"""Kernel densities, and what all calibrators by class densities share."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.svm import SVC

from calibration import (
    AsymmetricLaplaceCalibrator,
    AutoCalibrator,
    DPMCalibrator,
    ENIRCalibrator,
    GaussianCalibrator,
    IsotonicCalibrator,
    KDECalibrator,
)
from calibration.densities.kde import (
    KERNELS,
    KernelDensity,
    LeaveOneOut,
    _balance,
    silverman_bandwidth,
    tabulate_kernel,
)

FORMULAS = {
    "gaussian": norm.pdf,
    "boxcar": lambda u: 0.5 * (abs(u) <= 1),
    "epanechnikov": lambda u: 0.75 * np.maximum(1 - u**2, 0),
    "tricube": lambda u: 70 / 81 * np.maximum(1 - abs(u) ** 3, 0) ** 3,
}
every_kernel = pytest.mark.parametrize("kernel", FORMULAS)


@every_kernel
def test_constants_of_the_kernels_are_their_integrals(kernel):
    formula, (reach, roughness, spread) = FORMULAS[kernel], KERNELS[kernel]

    def integral(function):
        return 2.0 * quad(function, 0.0, reach)[0]

    assert integral(formula) == pytest.approx(1.0, abs=1e-9)
    assert integral(lambda u: formula(u) ** 2) == pytest.approx(roughness)
    variance = integral(lambda u: u**2 * formula(u))
    assert variance == pytest.approx(spread, rel=1e-7)


@every_kernel
def test_table_is_the_formula_over_its_peak(kernel):
    table = tabulate_kernel(kernel)
    u = np.arange(len(table)) / 16
    expected = FORMULAS[kernel](u) / FORMULAS[kernel](0.0)
    if kernel == "boxcar":
        expected[-1] = 0.5
    assert_allclose(table, expected, atol=1e-15)


@pytest.mark.parametrize("law", ["normal", "cauchy", "ties"])
def test_silverman_is_the_rule_of_thumb(rng, law):
    x = {
        "normal": rng.normal(scale=3.0, size=2001),
        "cauchy": rng.standard_cauchy(size=2001),
        "ties": np.repeat([0.0, 5.0], [1981, 20]),
    }[law]
    low, high = np.sort(x)[[500, 1500]]
    spread = min(x.std(), (high - low) / 1.349) if high > low else x.std()
    cells = np.unique(x, return_counts=True)
    value = silverman_bandwidth(*cells, "gaussian")
    assert value == pytest.approx(1.06 * spread * 2001**-0.2, rel=1e-12)
    # Marron & Nolan's factors from the normal kernel, as printed (Haerdle 1991).
    for kernel, factor in (("boxcar", 1.740), ("epanechnikov", 2.214)):
        ratio = silverman_bandwidth(*cells, kernel) / value
        assert ratio == pytest.approx(factor, abs=5e-4)


def brute_force(x, y, bandwidths, prior_weight):
    """Fit without each row and score it; plain arithmetic of the docstring."""
    losses = []
    for i in range(len(x)):
        others = np.delete(np.arange(len(x)), i)
        heights = []
        for k in (0, 1):
            rows = others[y[others] == k]
            place = np.sort(x[rows])
            given = place, np.ones(len(rows)), "gaussian", bandwidths[k]
            density = KernelDensity.from_rows(*given)
            rate = (len(rows) + 1) / (len(others) + 2)
            height = density.sums(x[i : i + 1])[0] / bandwidths[k]
            extra = prior_weight * rate / np.sqrt(bandwidths[0] * bandwidths[1])
            heights.append(height + extra)
        losses.append(-np.log(heights[y[i]] / sum(heights)))
    return np.mean(losses)


@pytest.mark.parametrize("bandwidths", [(0.1, 0.1), (0.05, 0.3)])
def test_is_the_loss_of_every_row_left_out(rng, bandwidths):
    x = np.round(rng.uniform(size=60), 1)
    y = (rng.uniform(size=60) < x).astype(int)
    place = np.unique(x)
    weights = np.stack(
        [[((x == value) & (y == k)).sum() for value in place] for k in (0, 1)]
    ).astype(float)
    judge = LeaveOneOut(place, weights, 0.5)
    heights = [judge.heights("gaussian", bandwidths[k], k) for k in (0, 1)]
    expected = brute_force(x, y, bandwidths, 0.5)
    assert judge.loss(*heights) == pytest.approx(expected, rel=1e-10)


def test_a_weight_below_one_is_one_row():
    place, weights = np.array([0.0, 0.1]), np.array([[0.5, 0.0], [0.0, 0.25]])
    judge = LeaveOneOut(place, weights, 1.0)
    # Row 0 left out: no class 0; one row of class 1, weight .25, rates 1 and 1.25
    # over 2.25. Row 1 left out: half a row of class 0, rates 1.5 and 1 over 2.5.
    first = -np.log((1 / 2.25) / (1.25 / 2.25 + 0.25 + 1 / 2.25))
    second = -np.log((1 / 2.5) / (1.5 / 2.5 + 0.5 + 1 / 2.5))
    expected = (0.5 * first + 0.25 * second) / 0.75
    heights = [judge.heights("boxcar", 0.2, k) for k in (0, 1)]
    assert judge.loss(*heights) == pytest.approx(expected, rel=1e-12)


@pytest.fixture
def data(rng):
    y = (rng.uniform(size=300) < 0.3).astype(int)
    return rng.normal(1.5 * y), y, rng.uniform(0.1, 2.0, 300)


def direct_log_odds(points, x, y, weight, bandwidths, kernel, prior_weight=0.5):
    """Bayes' rule by O(n^2) sums, before the mean is brought to the base rate."""
    log_heights = []
    totals = [weight[y == k].sum() for k in (0, 1)]
    for k, h in enumerate(bandwidths):
        rows, mass = x[y == k], weight[y == k]
        shape, peak = FORMULAS[kernel], FORMULAS[kernel](0.0)
        height = shape((points[:, None] - rows) / h) @ mass / (peak * h)
        rate = (totals[k] + 1) / (sum(totals) + 2)
        extra = prior_weight * rate / np.sqrt(bandwidths[0] * bandwidths[1])
        log_heights.append(np.log(height + extra))
    return log_heights[1] - log_heights[0]


def root_mean_square(values):
    return np.sqrt(np.mean(values**2))


@every_kernel
@pytest.mark.parametrize("shared", [True, False])
def test_is_the_direct_sum(kernel, shared, data, rng):
    x, y, weight = data
    options = {"kernel": kernel, "shared_bandwidth": shared, "scale": "real"}
    fitted = KDECalibrator("silverman", **options).fit(x, y, weight)
    points = rng.uniform(x.min(), x.max(), 200)
    expected = direct_log_odds(points, x, y, weight, fitted.bandwidths_, kernel)
    n0, n1 = (weight[y == k].sum() for k in (0, 1))
    shift = fitted.prior_log_odds_ - np.log(n1 / n0)
    assert abs(shift) < 0.15
    gap = expit(fitted.predict_log_odds(points) - shift) - expit(expected)
    assert root_mean_square(gap) < (0.01 if kernel == "boxcar" else 0.001)
    assert root_mean_square(gap) > 0.0


def test_cross_validation_takes_the_least_brute_force_loss(rng):
    x = rng.uniform(size=120)
    y = (rng.uniform(size=120) < 0.5 + 0.4 * np.sin(9 * x)).astype(int)
    fitted = KDECalibrator("cv", scale="real").fit(x, y)
    losses = [brute_force(x, y, pair, 0.5) for pair in fitted.cv_bandwidths_]
    assert_allclose(fitted.cv_losses_, losses, rtol=2e-3)
    best = int(np.argmin(losses))
    assert 0 < best < len(losses) - 1
    assert fitted.bandwidths_[0] == pytest.approx(fitted.cv_bandwidths_[best, 0])


def test_separate_bandwidths_are_tried_in_all_pairs(rng):
    y = np.arange(600) % 2
    x = np.where(y == 1, rng.normal(0, 0.05, 600), rng.normal(0, 2.0, 600))
    fitted = KDECalibrator("cv", shared_bandwidth=False, scale="real").fit(x, y)
    pairs = fitted.cv_bandwidths_
    assert len(pairs) == len(np.unique(pairs[:, 0])) * len(np.unique(pairs[:, 1]))
    assert_allclose(fitted.bandwidths_, pairs[fitted.cv_losses_.argmin()])
    assert fitted.bandwidths_[0] > 3 * fitted.bandwidths_[1]


def test_a_class_of_one_score_has_a_bandwidth(rng):
    x, y = np.append(rng.normal(size=99), 0.3), np.repeat([0, 1], [99, 1])
    fitted = KDECalibrator("silverman", shared_bandwidth=False, scale="real").fit(x, y)
    pooled = KDECalibrator("silverman", scale="real").fit(x, y).bandwidths_[0]
    assert fitted.bandwidths_[1] == pytest.approx(pooled / np.sqrt(2.0))


def test_a_bandwidth_that_rounding_would_lose_is_refused():
    with pytest.raises(ValueError, match=r"`bandwidth` must be at least 2\*\*-40 of"):
        KDECalibrator(1e-20).fit([0.1, 0.2, 0.4], [0, 1, 1])


everyone = pytest.mark.parametrize("cls", [KDECalibrator, DPMCalibrator])


@everyone
def test_rare_class_keeps_its_rate_and_has_the_shape_of_the_thesis(cls, rng):
    """Table 4: whatever the raw scores, RMSE comes down to that of the base rate."""
    # Scores of a balanced model of a rare class, far from calibrated.
    y = (rng.uniform(size=20_000) < 0.05).astype(int)
    scores = expit(rng.normal(1.2 * y - 0.6))
    fitted = cls().fit(scores[:10_000], y[:10_000])
    mean = fitted.predict(scores[:10_000]).mean()
    assert mean == pytest.approx(y[:10_000].mean(), abs=2e-5)
    p, truth = fitted.predict(scores[10_000:]), y[10_000:]
    assert root_mean_square(scores[10_000:] - truth) > 0.35
    assert root_mean_square(p - truth) < np.sqrt(truth.mean() * (1 - truth.mean()))
    bins = np.array_split(np.argsort(p), 10)
    gaps = [abs(p[rows].mean() - truth[rows].mean()) for rows in bins]
    assert max(gaps) < 0.03
    assert np.mean(gaps) < 0.008


@everyone
def test_predictions_hold_beyond_the_scores_seen(cls, rng):
    y = np.arange(400) % 2
    x = rng.normal(3.0 * y)
    fitted = cls(scale="real").fit(x, y)
    ends = fitted.predict([x.min(), x.max()])
    assert_array_equal(fitted.predict([-1e9, 1e300]), ends)
    assert ends[0] < 0.2
    assert ends[1] > 0.8


@everyone
def test_one_far_score_does_not_spoil_the_others(cls, rng):
    y = np.arange(500) % 2
    x = rng.normal(2.0 * y)
    plain = cls(scale="real").fit(x, y).predict(x)
    far = cls(scale="real").fit(np.append(x, 1e9), np.append(y, 1)).predict(x)
    assert abs(far - plain).mean() < 0.02


BY_DENSITIES = [KDECalibrator, DPMCalibrator, GaussianCalibrator]
BY_DENSITIES += [partial(GaussianCalibrator, True), AsymmetricLaplaceCalibrator]


@pytest.mark.parametrize("make", [*BY_DENSITIES, AutoCalibrator])
def test_scores_that_the_logit_cannot_tell_apart_give_the_prior(make):
    fitted = make().fit([5e-324, 1e-323, 1e-310], [0, 1, 1])
    assert_allclose(fitted.predict([0.0, 0.5, 1.0]), 3 / 5)


def test_balance_finds_the_prior_or_its_limit(rng):
    ratio, weight = rng.normal(size=50), rng.uniform(size=50)
    prior = _balance(ratio, weight, 0.3)
    mean = weight @ (1 / (1 + np.exp(-ratio - prior))) / weight.sum()
    assert mean == pytest.approx(0.3, abs=1e-12)
    flat = _balance(np.full(4, 2.0), np.ones(4), 0.3)
    assert flat == pytest.approx(logit(0.3) - 2.0, abs=1e-12)


def draw_circular(rng, n):
    y = np.arange(n) % 2
    angle, radius = rng.uniform(0, 2 * np.pi, n), rng.uniform(0, 2, n) + 2 * y
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


@pytest.mark.parametrize("cls", [KDECalibrator, DPMCalibrator, ENIRCalibrator])
def test_linear_svm_on_circles(cls):
    """Thesis tables 3, 14: .38 or .39; isotonic regression has .46."""
    errors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        svm = SVC(kernel="linear").fit(*draw_circular(rng, 1000))
        (features, y), (fresh, truth) = (draw_circular(rng, 1000) for _ in range(2))
        scores, fresh_scores = map(svm.decision_function, (features, fresh))
        fits = [kind(scale="real").fit(scores, y) for kind in (cls, IsotonicCalibrator)]
        errors.append([root_mean_square(f.predict(fresh_scores) - truth) for f in fits])
    ours, isotonic = np.mean(errors, axis=0)
    assert ours <= 0.39
    assert isotonic > 0.43
