"""The road of a continuous target: which curve it chooses, and no humps for nothing."""

import numpy as np
import pytest

from localexpert import LocalExpertRegressor
from localexpert.curves.spline import ProbitSpline


def draw_rows(n, seed=0):
    """Return rows whose target is normal, with a mean and a spread of its own."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 5))
    mean, spread = np.sin(5.0 * X[:, 0]) + 2.0 * X[:, 1], 0.2 + X[:, 2]
    return X, mean + spread * rng.normal(size=n)


@pytest.fixture(scope="module")
def fitted():
    X, y = draw_rows(300)
    model = LocalExpertRegressor(
        strategy="joint", frame=None, n_thresholds=9, cv=3, random_state=0
    )
    return model.fit(X, y), y


def test_the_curve_is_chosen_by_log_score_and_crps_and_pays_for_its_knots(fitted):
    model, y = fitted
    road = model.forecaster_
    laws = road.laws
    told = model.report_.summary()["spline"]
    assert told["chosen"] == min(told["losses"], key=told["losses"].get)
    first, last = laws.base_.t(road.thresholds_[[0, -1]])
    for smoothing in (0.3, 0.4):
        frame, builder = road.frame, ProbitSpline(smoothing)
        curves = laws.curves(road.tasks_.calibrated, builder)
        law = laws._law(frame.oof_center_, frame.oof_scale_, curves)
        missed = -law.logpdf(y[:, None]).mean()
        crps = law.crps(y[:, None]).mean()
        n_knots = ((curves.knots > first) & (curves.knots < last)).sum()
        expected = missed + 10.0 * np.log(crps) + 2.0 * n_knots / 300.0
        assert told["losses"][repr(builder)] == pytest.approx(expected)
