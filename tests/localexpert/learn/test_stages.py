"""What roads of the same rows share: one centre, and what follows from it."""

import numpy as np
import pytest

from localexpert import (
    FrameRoad,
    JointForest,
    LocalExpertRegressor,
    Transformed,
    load,
)
from localexpert.coordinate import CentreStack
from localexpert.law.transform import ExpLess, LogOf

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
    model = LocalExpertRegressor(roads=[QUICK, Transformed(QUICK)], random_state=0)
    model.fit(X, y)
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
    LocalExpertRegressor(roads=[QUICK, other], random_state=0).fit(X, y)
    assert count == [120]


def test_the_rest_beside_atoms_has_the_line_through_the_centre_of_all(rng, count):
    X, y = draw(rng, 200)
    y = np.where(rng.uniform(size=200) < 0.3, 0.0, y)
    model = LocalExpertRegressor(random_state=0, cv=2).fit(X, y)
    assert model.report_.target == "mixed"
    # The others are additive ones, of the logarithm.
    assert count[0] == 200
    assert len(count) <= 3


def test_a_shared_centre_is_saved(rng, tmp_path):
    X, y = draw(rng)
    roads = Transformed(QUICK, LogOf(0.0, 50.0), ExpLess(0.0, 50.0))
    model = LocalExpertRegressor(roads=[QUICK, roads], random_state=0).fit(X, y)
    assert "transformed" in model.report_.choices["roads"]["weights"]
    model.save(tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
