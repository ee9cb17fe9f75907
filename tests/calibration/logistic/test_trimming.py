"""Trimming against the loss it lowers, and on labels that are wrong."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from calibration.exceptions import CalibrationWarning
from calibration.logistic.polynomial import LogisticCalibrator, PlattCalibrator
from calibration.logistic.trimming import TrimmedCalibrator
from calibration.monotone.isotonic import IsotonicCalibrator
from calibration.multiclass.base import IdentityCalibrator


@pytest.fixture
def clean(rng):
    scores = rng.normal(scale=2.0, size=3000)
    return scores, (rng.uniform(size=3000) < expit(1.5 * scores)).astype(float)


@pytest.fixture
def spoiled(clean):
    """The same with 60 rows whose labels are plainly wrong."""
    scores, y = clean
    return np.append(scores, np.full(60, -9.0)), np.append(y, np.ones(60))


def truncated_loss(p, y, max_error):
    loss = -np.log(np.where(y == 1, p, 1 - p))
    return np.minimum(loss, -np.log(1 - max_error)).sum()


def test_wrong_labels_do_not_move_the_fit(clean, spoiled):
    grid = np.linspace(-5, 5, 50)
    truth = PlattCalibrator(scale="logit").fit(*clean).predict(grid)
    plain = PlattCalibrator(scale="logit").fit(*spoiled).predict(grid)
    robust = TrimmedCalibrator(scale="logit").fit(*spoiled)
    assert np.abs(plain - truth).max() > 0.1
    assert np.abs(robust.predict(grid) - truth).max() < 0.01
    assert 60 <= robust.trimmed_weight_ <= 70


def test_ends_at_a_minimum_of_the_truncated_log_loss(spoiled):
    scores, y = spoiled
    inner = LogisticCalibrator(0.0)
    robust = TrimmedCalibrator(inner, 0.95, 50, scale="logit").fit(*spoiled)
    assert robust.n_rounds_ < 50

    def loss(theta):
        return truncated_loss(expit(theta[0] + theta[1] * scores), y, 0.95)

    fitted = robust.calibrator_
    theta = np.array([fitted.intercept_, fitted.coef_[0]])
    nearby = minimize(loss, theta, method="Nelder-Mead")
    np.testing.assert_allclose(nearby.x, theta, atol=0.01)


def test_rows_dropped_are_those_of_the_rule(spoiled):
    scores, y = spoiled
    p = IsotonicCalibrator(scale="real").fit(scores, y).predict(scores)
    kept = np.abs(y - p) <= 0.8
    by_hand = IsotonicCalibrator(scale="real").fit(scores[kept], y[kept])
    once = TrimmedCalibrator(IsotonicCalibrator(), 0.8, 1, scale="real").fit(scores, y)
    np.testing.assert_array_equal(once.predict(scores), by_hand.predict(scores))
    assert once.trimmed_weight_ == (~kept).sum()
    assert once.n_rounds_ == 1


def test_a_class_is_never_dropped_altogether(rng):
    scores = rng.uniform(size=2000)
    y = rng.uniform(size=2000) < 0.01
    with pytest.warns(CalibrationWarning, match="would drop every row of a") as caught:
        robust = TrimmedCalibrator(max_error=0.9).fit(scores, y)
    assert caught[0].filename == __file__
    assert len(caught) == 1
    plain = PlattCalibrator().fit(scores, y)
    np.testing.assert_array_equal(robust.predict(scores), plain.predict(scores))


def test_scale_is_handed_on_and_the_calibrator_left_alone(clean):
    inner = IsotonicCalibrator()
    robust = TrimmedCalibrator(inner, scale="real").fit(*clean)
    assert robust.calibrator_.scale == "real"
    assert inner.get_params() == {"scale": "probability"}
    assert not hasattr(inner, "map_")
    with pytest.raises(ValueError, match="needs probabilities or log-odds"):
        TrimmedCalibrator(IdentityCalibrator(), scale="real").fit(*clean)
