"""Softmax regressions against their objective and general optimisers."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, logsumexp
from sklearn.base import clone

from calibration import (
    BetaCalibrator,
    CalibrationWarning,
    SoftmaxCalibrator,
    TemperatureCalibrator,
)
from calibration.multiclass import softmax_map
from calibration.multiclass.softmax import PENALTIES
from tests.calibration.multiclass.draws import draw, temperature_ridge


def mix(log_p, n):
    """Return log-probabilities (n, k) mixed with the uniform law."""
    k = log_p.shape[1]
    return np.log((1 - 1 / (n + 1)) * np.exp(log_p) + 1 / ((n + 1) * k))


def objective(theta, z, y, w, structure, multiplier):
    """The objective of the reference as it is written there, rows in the first axis."""
    n, k = w.sum(), z.shape[1]
    if structure == "matrix":
        theta = theta.reshape(k, k + 1)
        square, bias = theta[:, :-1], theta[:, -1]
        logits = z + z @ square.T + bias
        own = np.diag(square)
        others = (square**2).sum() - (own**2).sum()
    else:
        own, bias = theta.reshape(k, 2).T
        logits, others = (1 + own) * z + bias, 0.0
    cross = w @ (logsumexp(logits, axis=1) - logits[np.arange(len(y)), y]) / n
    ridge = k / n * (bias**2).sum() + k / n * (own**2).sum() + k * (k - 1) / n * others
    return cross + multiplier * ridge


@pytest.mark.parametrize("structure", ["matrix", "vector"])
@pytest.mark.parametrize("multiplier", [1.0, 0.03])
def test_minimises_the_objective_as_it_is_written(structure, multiplier, rng):
    p, y = draw(rng, 150, 3)
    w = rng.integers(1, 4, size=150).astype(float)
    fitted = SoftmaxCalibrator(structure, multiplier).fit(p, y, w)
    z = mix(log_softmax(fitted.inverse_temperature_ * np.log(p), axis=1), w.sum())
    arguments = (z, y, w, structure, multiplier)
    start = np.zeros(12 if structure == "matrix" else 6)
    truth = minimize(objective, start, arguments, "BFGS", options={"gtol": 1e-9})
    theta = fitted.map_.theta
    assert_allclose(theta.ravel(), truth.x, atol=1e-5)
    moved = z @ fitted.coef_.T if structure == "matrix" else z * fitted.coef_
    expected = np.exp(log_softmax(moved + fitted.intercept_, axis=1))
    assert_allclose(fitted.predict(p), expected, rtol=1e-9)


@pytest.mark.parametrize("k", [2, 26])
def test_the_gradient_is_nothing_for_few_and_many_classes(k, rng):
    p, y = draw(rng, 600, k, 3.0)
    fitted = SoftmaxCalibrator("matrix", 1.0).fit(p, y)
    z = mix(log_softmax(fitted.inverse_temperature_ * np.log(p), axis=1), 600)
    answer = fitted.predict(p) - np.eye(k)[y]
    square, bias = fitted.coef_ - np.eye(k), fitted.intercept_
    pull = np.where(np.eye(k) == 1, k, k * (k - 1)) * square
    assert_allclose((answer.T @ z + 2 * pull) / 600, 0.0, atol=1e-8)
    assert_allclose((answer.sum(axis=0) + 2 * k * bias) / 600, 0, atol=1e-8)


def test_a_start_from_some_rows_ends_at_the_same_place(rng, monkeypatch):
    p, y = draw(rng, 3000, 3)
    whole = SoftmaxCalibrator("matrix", 1.0).fit(p, y)
    monkeypatch.setattr("calibration.multiclass.softmax_map._START_ROWS", 300)
    monkeypatch.setattr("calibration.multiclass.softmax_map._SAMPLE_ROWS", 100)
    monkeypatch.setattr("calibration.multiclass.class_scores._BLOCK", 1000)
    parts = SoftmaxCalibrator("matrix", 1.0).fit(p, y)
    assert_allclose(parts.coef_, whole.coef_, atol=1e-6)


def test_two_classes_without_a_penalty_are_beta_calibration(rng):
    score = rng.beta(2.0, 2.0, size=20_000)
    y = (rng.uniform(size=20_000) < score**1.5).astype(int)
    table = np.column_stack([1 - score, score])
    beta = BetaCalibrator().fit(score, y)
    assert min(beta.a_, beta.b_) > 0.0
    fitted = SoftmaxCalibrator("matrix", 0.0).fit(table, y)
    assert_allclose(fitted.predict(table)[:, 1], beta.predict(score), atol=1e-6)


def test_wrong_order_has_the_end_of_the_bracket(rng):
    p, _ = draw(rng, 200, 3, 1.0)
    fitted = SoftmaxCalibrator("temperature").fit(p, p.argmin(axis=1))
    assert 0.0 < fitted.inverse_temperature_ < 1.001 * np.exp(-16.0)
    assert_allclose(fitted.predict(p), 1 / 3, atol=1e-5)
    perfect = SoftmaxCalibrator("temperature").fit(p, p.argmax(axis=1))
    assert np.isfinite(perfect.predict(p)).all()


def test_only_rows_with_a_zero_are_mixed_by_the_temperature(rng):
    p, y = draw(rng, 100, 3)
    p[:10] = [0.5, 0.5, 0.0]
    fitted = SoftmaxCalibrator("temperature").fit(p, np.minimum(y, 1))
    half = 0.5 * p[p > 0.0].min()
    z = np.log(np.where(p == 0.0, half, p))
    plain = log_softmax(fitted.inverse_temperature_ * z, axis=1)
    found = fitted.predict(p)
    assert_allclose(found[10:], np.exp(plain[10:]), rtol=1e-9)
    assert_allclose(found[:10], np.exp(mix(plain[:10], 100)), rtol=1e-9)


def test_penalty_is_chosen_by_the_data(rng):
    p, y = draw(rng, 2000, 3, 1.0)
    # A matrix that mixes classes: much to learn, and rows enough.
    mixing = np.array([[1.0, 0.9, 0.0], [0.0, 1.0, 0.9], [0.9, 0.0, 1.0]])
    mixed = np.exp(np.log(p) @ mixing)
    mixed /= mixed.sum(axis=1, keepdims=True)
    auto = SoftmaxCalibrator().fit(mixed, y)
    assert auto.penalty_ < 1.0
    assert list(auto.cv_losses_) == list(PENALTIES)
    assert auto.cv_losses_[auto.penalty_] < auto.cv_losses_[1.0]
    fixed = SoftmaxCalibrator(penalty=auto.penalty_).fit(mixed, y)
    assert_allclose(auto.coef_, fixed.coef_, atol=1e-6)
    # Labels that scores know nothing of: the most cautious will do.
    noise = rng.integers(3, size=(9, 2000))
    found = [SoftmaxCalibrator().fit(mixed, labels).penalty_ for labels in noise]
    assert np.median(found) == 1.0


@pytest.mark.parametrize(
    ("n", "k", "words", "structure"),
    [
        (400, 151, "has at most 150 classes, got 151", "vector"),
        (5, 8, "fewer rows than classes", "temperature"),
    ],
)
def test_a_matrix_of_too_many_classes_becomes_less(n, k, words, structure, rng):
    p, y = draw(rng, n, k)
    with pytest.warns(CalibrationWarning, match=words):
        fitted = SoftmaxCalibrator(penalty=1.0).fit(p, y)
    assert fitted.structure_ == structure
    assert (fitted.penalty_ is None) == (structure == "temperature")
    less = clone(fitted).set_params(structure=structure)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        assert_array_equal(fitted.predict(p), less.fit(p, y).predict(p))


@pytest.mark.parametrize("size", [1e-3, 0.3, 1.0, 50.0])
def test_is_the_least_cross_entropy(size, rng):
    p, y = draw(rng, 200)
    weight = rng.integers(1, 4, size=200).astype(float)
    z = size * np.log(p)

    def loss(u):
        cross = -weight @ log_softmax(np.exp(u) * z, axis=1)[np.arange(200), y]
        return cross + temperature_ridge(np.exp(u), z, weight)

    truth = minimize_scalar(loss, bounds=(-16.0, 16.0), options={"xatol": 1e-10})
    found = softmax_map.find_inverse_temperature(z.T.copy(), y, weight)
    assert np.log(found) == pytest.approx(truth.x, abs=1e-5)
    # In u the loss is flat to rounding nearby; its slope is not.
    answer = np.exp(log_softmax(found * z, axis=1))
    slope = weight @ ((answer * z).sum(axis=1) - z[np.arange(200), y])
    # The ridge is quadratic: its slope by differences is exact.
    ends = [temperature_ridge(found + h, z, weight) for h in (0.5, -0.5)]
    slope += ends[0] - ends[1]
    assert abs(slope) < 1e-6 * np.abs(z).max()


@pytest.mark.parametrize("power", [0.3, 1.0, 4.0])
def test_two_classes_are_the_binary_temperature(power, rng):
    p, y = draw(rng, 500, 2, power)
    w = rng.integers(0, 4, size=500)
    many = SoftmaxCalibrator("temperature").fit(p, y, w)
    two = TemperatureCalibrator().fit(p[:, 1], y, w)
    assert_allclose(many.predict(p)[:, 1], two.predict(p[:, 1]), atol=1e-10)
    z = np.log(p)
    two = TemperatureCalibrator(scale="logit").fit(z[:, 1] - z[:, 0], y, w)
    many = SoftmaxCalibrator("temperature", scale="logit").fit(z, y, w)
    assert_allclose(many.inverse_temperature_, two.inverse_temperature_, rtol=1e-9)


@pytest.mark.parametrize("size", [1e3, 1e9, 1e40])
def test_logits_of_any_size_have_their_temperature(size, rng):
    p, y = draw(rng, 500, 3)
    z = np.log(p).T.copy()
    found = softmax_map.find_inverse_temperature(size * z, y, np.ones(500))
    assert found * size == pytest.approx(
        softmax_map.find_inverse_temperature(z, y, np.ones(500)), rel=1e-2
    )


PROBLEMS = pytest.mark.parametrize(
    "cls", [softmax_map.MatrixProblem, softmax_map.VectorProblem]
)


def make(cls, rng, n=60, k=4):
    """Return a small problem with weights and a ridge of many sizes."""
    p, y = draw(rng, n, k)
    shape = (k, k + 1) if cls is softmax_map.MatrixProblem else (k, 2)
    weight = rng.integers(1, 4, size=n).astype(float)
    return cls(np.log(p).T.copy(), y, weight, rng.uniform(0.01, 0.1, size=shape))


@PROBLEMS
def test_gradient_and_curvature_are_differences(cls, rng, monkeypatch):
    problem = make(cls, rng)
    # Several blocks, the last one short.
    monkeypatch.setattr("calibration.multiclass.class_scores._BLOCK", 25 * 4)
    theta = 0.2 * rng.normal(size=problem.ridge.shape)
    point = problem.at(theta)
    for _ in range(5):
        direction = rng.normal(size=theta.shape)
        ends = [problem.at(theta + h * direction) for h in (1e-6, -1e-6)]
        slope = (ends[0].value - ends[1].value) / 2e-6
        assert (point.gradient * direction).sum() == pytest.approx(slope, rel=1e-6)
        bent = (ends[0].gradient - ends[1].gradient) / 2e-6
        found = problem.curvature(point.p, direction)
        assert_allclose(found, bent, rtol=1e-5, atol=1e-8)


@PROBLEMS
def test_blocks_are_parts_of_the_hessian(cls, rng):
    problem = make(cls, rng)
    point = problem.at(0.1 * rng.normal(size=problem.ridge.shape))
    blocks = problem.class_blocks(point.p, slice(None))
    k, d = problem.ridge.shape
    assert blocks.shape == (k, d, d)
    for c in range(k):
        for place in range(d):
            unit = np.zeros((k, d))
            unit[c, place] = 1.0
            column = problem.curvature(point.p, unit)[c]
            assert_allclose(blocks[c, :, place], column, atol=1e-12)


@PROBLEMS
def test_separable_rows_without_a_ridge_end(cls):
    y = np.arange(30) % 3
    z = np.where(np.eye(3)[y].T == 1.0, -0.1, -3.0)
    shape = (3, 4) if cls is softmax_map.MatrixProblem else (3, 2)
    problem = cls(z, y, np.ones(30), np.full(shape, 1e-9))
    theta = softmax_map.solve_scaling(problem)
    assert np.isfinite(theta).all()
    assert problem.at(theta).value < 1e-5
