"""Nets of one hidden layer, against their formula written out row by row."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.special import log_softmax

from calibration.multiclass import shallow_net
from calibration.multiclass.shallow_net import HiddenLayer, NetProblem


@pytest.fixture
def problem(rng):
    z = log_softmax(rng.normal(size=(4, 60)), axis=0)
    labels = rng.integers(0, 4, size=60)
    return NetProblem(z, rng.normal(size=(6, 60)), labels, rng.uniform(1, 3, 60), 0.7)


def objective(theta, problem, layer, anchor):
    """The objective as it is written, a row at a time."""
    k, h, d = len(problem.z), len(layer.shifts), len(problem.inputs)
    w, c, v, b = np.split(theta, np.cumsum([h * d, h, k * h]))
    n, total = problem.weight.sum(), 0.0
    for z, x, y, weight in zip(
        problem.z.T, problem.inputs.T, problem.labels, problem.weight, strict=True
    ):
        units = np.tanh(w.reshape(h, d) @ x + c)
        total -= weight * log_softmax(z + v.reshape(k, h) @ units + b)[y]
    return total / n + problem.ridge / n * ((theta - anchor) ** 2).sum()


def test_value_and_gradient_are_those_of_the_formula(problem, rng, monkeypatch):
    layer = HiddenLayer.draw(rng, 5, 6, 4)
    anchor = layer.flatten()
    theta = anchor + rng.normal(size=anchor.size)
    value, gradient = problem.value_and_gradient(theta, layer, anchor)
    assert value == pytest.approx(objective(theta, problem, layer, anchor), rel=1e-12)
    off = check_grad(
        lambda t: objective(t, problem, layer, anchor), lambda _: gradient, theta
    )
    assert off < 1e-5
    # In blocks of a few rows it is the same sum.
    monkeypatch.setattr("calibration.multiclass.class_scores._BLOCK", 1)
    many = problem.value_and_gradient(theta, layer, anchor)
    assert many[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(many[1], gradient, atol=1e-14)


def test_a_layer_drawn_corrects_nothing(problem, rng):
    layer = HiddenLayer.draw(rng, 5, 6, 4)
    np.testing.assert_allclose(
        layer.correct(problem.z, problem.inputs), problem.z, atol=1e-14
    )
    again = layer.filled(layer.flatten())
    for name in ("slopes", "shifts", "heights", "intercept"):
        np.testing.assert_array_equal(getattr(again, name), getattr(layer, name))


def test_training_descends_to_a_stationary_point(problem, rng, monkeypatch):
    monkeypatch.setattr(shallow_net, "_MAX_STEPS", 2000)
    drawn = HiddenLayer.draw(rng, 4, 6, 4)
    anchor = drawn.flatten()
    found = problem.train(drawn).flatten()
    before, _ = problem.value_and_gradient(anchor, drawn, anchor)
    after, gradient = problem.value_and_gradient(found, drawn, anchor)
    assert after < before - 0.01
    assert np.abs(gradient).max() < 1e-6
    assert anchor.tolist() == drawn.flatten().tolist()


def test_many_rows_start_from_some_of_them(problem, rng, monkeypatch):
    drawn = HiddenLayer.draw(rng, 4, 6, 4)
    whole = problem.train(drawn).flatten()
    monkeypatch.setattr(shallow_net, "_START_ROWS", 20)
    monkeypatch.setattr(shallow_net, "_MORE_STEPS", 0)
    started = problem.train(drawn).flatten()
    monkeypatch.setattr(shallow_net, "_MORE_STEPS", 20)
    polished = problem.train(drawn).flatten()
    values = [
        problem.value_and_gradient(theta, drawn, drawn.flatten())[0]
        for theta in (drawn.flatten(), started, polished, whole)
    ]
    assert values[2] < min(values[0], values[1])
    assert values[2] < values[3] + 0.05
