"""Stages: one centre for roads of the same rows, and which curve is chosen."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from localexpert import FrameRoad, JointForest, LocalExpertRegressor, Transformed
from localexpert.coordinate.centre import CentreStack
from localexpert.curves.spline import ProbitSpline
from localexpert.learn.stages import Answers

FOREST = JointForest(20, random_state=0)
QUICK = FrameRoad("center", strategy=FOREST, n_thresholds=7)


@pytest.fixture
def count(monkeypatch):
    """Count the centres that are fitted on rows."""
    fitted = []
    fit = CentreStack.fit

    def note(self, sample):
        fitted.append(len(sample))
        return fit(self, sample)

    monkeypatch.setattr(CentreStack, "fit", note)
    return fitted


def draw(rng, n=120):
    X = rng.uniform(size=(n, 3))
    return X, np.exp(2.0 * X[:, 0] + 0.3 * rng.normal(size=n))


def test_a_function_of_the_target_has_the_function_of_its_centre(rng, count):
    X, y = draw(rng)
    roads = [QUICK, Transformed(QUICK)]
    model = LocalExpertRegressor(roads=roads, cv=2, random_state=0).fit(X, y)
    # And an additive one, of the logarithm.
    assert count == [120, 120]
    for road in model.forecaster_.fitted_.values():
        frame = road.frame
        if not road.steps:
            continue
        known = np.clip(frame.centre_.known.oof_, y.min(), y.max())
        own, share = frame.centre_.own_, frame.centre_.share_
        told = 0.0 if own is None else own.oof_
        expected = (1.0 - share) * np.log(known) + share * told
        np.testing.assert_allclose(frame.centre_.oof_, expected)
    assert np.isfinite(model.predict_dist(X).mean()).all()


def test_equal_frames_are_fitted_once(rng, count):
    X, y = draw(rng)
    other = FrameRoad("center", strategy=FOREST, n_thresholds=5)
    cheap = {"center": LinearRegression(), "cv": 2, "random_state": 0}
    LocalExpertRegressor(roads=[QUICK, other], **cheap).fit(X, y)
    assert count == [120]


def test_the_rest_beside_atoms_has_the_line_through_the_centre_of_all(rng, count):
    X, y = draw(rng)
    y = np.where(rng.uniform(size=120) < 0.3, 0.0, y)
    model = LocalExpertRegressor(random_state=0, cv=2).fit(X, y)
    assert model.report_.target == "mixed"
    # The others are additive ones, of the logarithm.
    assert count[0] == 120
    assert len(count) <= 3


def test_the_curve_is_chosen_by_log_score_and_crps_and_pays_for_its_knots(rng):
    X = rng.uniform(size=(300, 5))
    mean, spread = np.sin(5.0 * X[:, 0]) + 2.0 * X[:, 1], 0.2 + X[:, 2]
    y = mean + spread * rng.normal(size=300)
    quick = {"strategy": "joint", "frame": None, "n_thresholds": 9, "cv": 3}
    model = LocalExpertRegressor(**quick, random_state=0).fit(X, y)
    road = model.forecaster_
    laws = road.laws
    told = model.report_.summary()["spline"]
    assert told["chosen"] == min(told["losses"], key=told["losses"].get)
    first, last = laws.base_.t(road.thresholds_[[0, -1]])
    frame, p = road.frame, road.tasks_.calibrated
    answers = Answers(frame.oof_center_, frame.oof_scale_, p)
    for smoothing in (0.3, 0.4):
        builder = ProbitSpline(smoothing)
        curves = laws.curves(p, builder)
        law = laws._law(answers, curves)
        missed = -law.logpdf(y[:, None]).mean()
        crps = law.crps(y[:, None]).mean()
        n_knots = ((curves.knots > first) & (curves.knots < last)).sum()
        expected = missed + 10.0 * np.log(crps) + 2.0 * n_knots / 300.0
        assert told["losses"][repr(builder)] == pytest.approx(expected)
