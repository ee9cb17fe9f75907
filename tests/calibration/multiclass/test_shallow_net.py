"""Shallow nets: what they learn, how, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad
from scipy.special import log_softmax, softmax
from sklearn.base import clone

from calibration import (
    CalibrationWarning,
    ShallowNetCalibrator,
    SoftmaxCalibrator,
    log_loss,
)
from calibration.multiclass import shallow_net
from calibration.multiclass.shallow_net import HiddenLayer, NetProblem
from tests.calibration.multiclass.draws import check_simplex, draw


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
    given = problem, layer, anchor
    off = check_grad(lambda t: objective(t, *given), lambda _: gradient, theta)
    assert off < 1e-5
    # In blocks of a few rows it is the same sum.
    monkeypatch.setattr("calibration.multiclass.class_scores._BLOCK", 1)
    many = problem.value_and_gradient(theta, layer, anchor)
    assert many[0] == pytest.approx(value, rel=1e-12)
    assert_allclose(many[1], gradient, atol=1e-14)


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


# Scores that say little, and a number that says whether class 2 is possible.
RNG = np.random.default_rng(0)
P, Y = draw(RNG, 1200, 3, 1.0)
HOUR = np.where(Y == 2, RNG.uniform(0, 8, 1200), RNG.uniform(0, 24, 1200))


def test_learns_what_is_no_line(rng):
    """No matrix mends an error that depends on the distance from 1/3."""
    p = rng.dirichlet(np.ones(3), size=2400)
    far = np.abs(p[:, 0] - 1 / 3)
    away = np.c_[0 * far, 8.0 * far - 2.0, 2.0 - 8.0 * far]
    true = softmax(np.log(p) + away, axis=1)
    y = np.minimum((rng.uniform(size=(2400, 1)) > true.cumsum(axis=1)).sum(axis=1), 2)
    train, test = slice(0, 1200), slice(1200, None)
    nets = ShallowNetCalibrator().fit(p[train], y[train]).predict(p[test])
    matrix = SoftmaxCalibrator().fit(p[train], y[train]).predict(p[test])
    assert log_loss(y[test], nets) < log_loss(y[test], matrix) - 0.03


def test_a_great_penalty_leaves_the_temperature_alone(rng):
    p, y = draw(rng, 100, 3)
    nets = ShallowNetCalibrator(penalty=1e6).fit(p, y)
    scaled = np.exp(nets.nets_.base.prepare(p)).T
    assert_allclose(nets.predict(p), scaled, atol=1e-3)
    temperature = SoftmaxCalibrator("temperature").fit(p, y)
    # But for the uniform law, which is a row in a hundred.
    assert_allclose(scaled, temperature.predict(p), atol=0.01)


def test_adagrad_hears_logits_and_side_information():
    nets = ShallowNetCalibrator(2, solver="adagrad")
    by_logits = clone(nets).set_params(scale="logit").fit(np.log(P), Y)
    expected = clone(nets).fit(P, Y).predict(P)
    assert_allclose(by_logits.predict(np.log(P)), expected, atol=1e-8)
    knowing = clone(nets).fit(P, Y, side=HOUR).predict(P, HOUR)
    assert log_loss(Y, knowing) < log_loss(Y, expected) - 0.05


def test_side_information_helps_where_it_should(rng):
    train, test = slice(0, 600), slice(600, None)

    def loss_with(side):
        fitted = ShallowNetCalibrator(3).fit(P[train], Y[train], side=side[train])
        return log_loss(Y[test], fitted.predict(P[test], side[test]))

    plain = ShallowNetCalibrator(3).fit(P[train], Y[train]).predict(P[test])
    without = log_loss(Y[test], plain)
    assert loss_with(HOUR) < without - 0.05
    assert loss_with(np.c_[rng.normal(size=1200), HOUR]) < without - 0.05
    # What says nothing costs little, and its unit nothing.
    assert loss_with(rng.normal(size=1200)) < without + 0.03
    assert loss_with(1e80 * HOUR) == pytest.approx(loss_with(np.full(1200, 3.0)))
    assert loss_with(1e50 * HOUR - 1e51) == pytest.approx(loss_with(HOUR), abs=1e-4)


def test_a_constant_beside_the_scores_changes_nothing():
    for constant in (0.0, 7.3, 1e300):
        side = np.full(1200, constant)
        fitted = ShallowNetCalibrator(2).fit(P, Y, side=side)
        found = fitted.predict(P, side)
        assert_array_equal(fitted.predict(P, side + 1.0), found)
        check_simplex(found, P.shape)


def test_weights_and_order_with_side_information(rng):
    times = rng.integers(0, 4, size=1200)
    weighted = ShallowNetCalibrator(2).fit(P, Y, times, side=HOUR)
    rows = rng.permutation(np.repeat(np.arange(1200), times))
    repeated = ShallowNetCalibrator(2).fit(P[rows], Y[rows], side=HOUR[rows])
    expected = weighted.predict(P, HOUR)
    assert_array_equal(repeated.predict(P, HOUR), expected)
    other = clone(repeated).set_params(random_state=6).fit(P, Y, times, side=HOUR)
    assert (other.predict(P, HOUR) != expected).any()


def test_a_constant_answer_asks_for_the_side_as_well():
    with pytest.warns(CalibrationWarning, match="`y` holds class 1 only") as caught:
        fitted = ShallowNetCalibrator().fit(P, np.ones(1200), side=HOUR)
    assert caught[0].filename == __file__
    assert_allclose(fitted.predict(P, HOUR)[0, 1], 1201 / 1203)
    with pytest.raises(ValueError, match="`side` must have the 1 columns of the fit"):
        fitted.predict(P)


def test_names_of_side_information_are_those_of_the_fit():
    side = pd.DataFrame({"hour": HOUR, "age": HOUR**2})
    nets = ShallowNetCalibrator(1).fit(P, Y, side=side)
    assert nets.side_names_ == ["hour", "age"]
    assert_array_equal(nets.predict(P, side.to_numpy()), nets.predict(P, side))
    match = r"`side` must have its columns in the order \['hour', 'age'\], got "
    with pytest.raises(ValueError, match=match + "'age' in the place of 'hour'"):
        nets.predict(P, side[["age", "hour"]])
    with pytest.raises(ValueError, match=match + "'day' in the place of 'age'"):
        nets.llr(P, side.rename(columns={"age": "day"}))
    arrow = pytest.importorskip("pyarrow").Table.from_pandas(side)
    assert_array_equal(nets.predict(P, arrow), nets.predict(P, side))
    assert nets.fit(P, Y, side=HOUR).side_names_ == []
    nets.predict(P, side[["age"]])
    nets.fit(P, Y).predict(P)


@pytest.mark.parametrize(
    ("side", "error", "words"),
    [
        ([np.nan] * 20, ValueError, "`side` must be finite, got nan in row 0, column"),
        ([1.0] * 19, ValueError, "`side` must be as long as scores, got 19 and 20"),
        (np.ones((20, 0)), ValueError, r"`side` must have shape \(n,\) or \(n, s\)"),
        (np.ones((20, 1, 1)), ValueError, r"`side` must have .* got shape \(20, 1, 1"),
        (["a"] * 20, TypeError, "`side` must .* got 'a' at position 0"),
    ],
)
def test_bad_side_information_is_named(side, error, words, rng):
    p, y = draw(rng, 20)
    with pytest.raises(error, match=words):
        ShallowNetCalibrator().fit(p, y, side=side)
    fitted = ShallowNetCalibrator(1).fit(p, y, side=np.arange(20))
    with pytest.raises(error, match=words):
        fitted.predict(p, side)


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_other_columns_than_those_of_the_fit_are_named(columns, rng):
    p, y = draw(rng, 20)
    known, other = (np.ones((20, k)) if k else None for k in (2, columns))
    for one, side in ((known, other), (other, known)):
        fitted = ShallowNetCalibrator(1).fit(p, y, side=one)
        with pytest.raises(ValueError, match=r"`side` must have the \d columns of the"):
            fitted.predict(p, side)


@pytest.mark.parametrize(
    ("parameters", "error", "words"),
    [
        ({"hidden_units": (5,)}, TypeError, r"`hidden_units` must be a pair .* \(5,\)"),
        ({"hidden_units": (0, 4)}, ValueError, "`hidden_units` must be at least 1"),
        ({"hidden_units": (7, 4)}, ValueError, "`hidden_units` must be at least 7,"),
    ],
)
def test_bad_parameters_are_named(parameters, error, words, rng):
    p, y = draw(rng, 20)
    with pytest.raises(error, match=words):
        ShallowNetCalibrator(**parameters).fit(p, y)
