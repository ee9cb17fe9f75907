"""`OneVsRestCalibrator`: binary calibrators of columns, and what joins them."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logit

from calibration import (
    IsotonicCalibrator,
    OneVsRestCalibrator,
    PlattCalibrator,
    QuadraticCalibrator,
    make_calibrator,
)
from tests.calibration.multiclass.draws import check_simplex, draw


@pytest.mark.parametrize("name", ["beta", "isotonic", "platt", "venn_abers"])
def test_a_name_is_a_calibrator(name, rng):
    p, y = draw(rng, 100, 3)
    calibrator = OneVsRestCalibrator(name).fit(p, y)
    check_simplex(calibrator.predict(p), p.shape)
    assert {type(one) for one in calibrator.calibrators_} == {
        type(make_calibrator(name))
    }


@pytest.mark.parametrize("binary", [IsotonicCalibrator(), QuadraticCalibrator(5.0)])
def test_is_binary_calibrators_and_their_sum(binary, rng):
    p, y = draw(rng)
    w = rng.integers(1, 4, size=len(y))
    columns = [
        type(binary)(**binary.get_params()).fit(p[:, j], y == j, w).predict(p[:, j])
        for j in range(4)
    ]
    raw = np.column_stack(columns)
    if isinstance(binary, IsotonicCalibrator):
        edge = 0.5 / (w.sum() + 1)
        raw = np.clip(raw, edge, 1 - edge)
    found = OneVsRestCalibrator(binary).fit(p, y, w).predict(p)
    np.testing.assert_allclose(found, raw / raw.sum(axis=1, keepdims=True), rtol=1e-9)


def test_least_squares_is_the_nearest_point_of_the_simplex(rng):
    p, y = draw(rng, 200, 4)
    fitted = OneVsRestCalibrator("platt", "least_squares").fit(p, y)
    new = np.vstack([p[:12], np.eye(4), np.full((1, 4), 0.25)])
    raw = np.column_stack(
        [one.predict(new[:, j]) for j, one in enumerate(fitted.calibrators_)]
    )
    found = fitted.predict(new)
    check_simplex(found, new.shape)
    for answer, target in zip(found, raw, strict=True):
        best = minimize(
            lambda q, target=target: ((q - target) ** 2).sum(),
            np.full(4, 0.25),
            method="SLSQP",
            bounds=[(0.0, 1.0)] * 4,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1.0},
            options={"ftol": 1e-15},
        )
        np.testing.assert_allclose(answer, best.x, atol=1e-6)
    # Some classes end at 0, where none is when answers are divided by their sum.
    assert found.min() < 1e-300 < raw.min()


def test_logits_enter_by_log_odds_of_the_class(rng):
    z = 3.0 * rng.normal(size=(300, 3))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    log_odds = logit(np.exp(log_softmax(z, axis=1)))
    platt = PlattCalibrator(scale="logit")
    raw = np.column_stack(
        [platt.fit(log_odds[:, j], y == j).predict(log_odds[:, j]) for j in range(3)]
    )
    found = OneVsRestCalibrator("platt", scale="logit").fit(z, y).predict(z)
    np.testing.assert_allclose(found, raw / raw.sum(axis=1, keepdims=True), rtol=1e-8)
    # Where probabilities round to 1 log-odds still differ.
    far = np.array([[100.0, 0.0, 0.0], [200.0, 0.0, 0.0]])
    assert OneVsRestCalibrator("platt", scale="logit").fit(z, y).predict(far).all()


def test_no_class_is_ruled_out():
    scores = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7]])
    y = np.repeat([0, 1, 2], [6, 3, 2])
    calibrator = OneVsRestCalibrator("isotonic").fit(scores[y], y)
    found = calibrator.predict(np.vstack([scores, [[0.4, 0.3, 0.3]]]))
    check_simplex(found, (4, 3))
    # Half a row in n + 1 is the least that 11 rows can know.
    assert found.min() == pytest.approx(1 / 24 / (23 / 24 + 2 / 24))


def test_a_class_without_rows_has_its_constant(rng):
    p, y = draw(rng, 200, 3)
    calibrator = OneVsRestCalibrator().fit(p[y != 1], y[y != 1])
    n = (y != 1).sum()
    np.testing.assert_allclose(
        calibrator.calibrators_[1].predict([0.1, 0.9]), 1 / (n + 2)
    )
    assert (calibrator.predict(p)[:, 1] > 0.0).all()


def test_what_is_no_calibrator_is_refused(rng):
    p, y = draw(rng, 20)
    with pytest.raises(ValueError, match="`calibrator` must be one of 'abb'"):
        OneVsRestCalibrator("magic").fit(p, y)
    with pytest.raises(TypeError, match="`calibrator` must be a ScoreCalibrator"):
        OneVsRestCalibrator(IsotonicCalibrator).fit(p, y)
