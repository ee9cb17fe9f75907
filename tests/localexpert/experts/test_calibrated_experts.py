"""What experts may reach is told before they are calibrated one by one."""

import numpy as np
import pytest

from localexpert import JointForest
from localexpert.data.folds import make_folds
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.calibrated_experts import CalibratedExperts
from localexpert.experts.calibration import ExpertCalibration


@pytest.fixture
def units(rng):
    """Many rows of few units: a forest on y is sure of far too little."""
    profiles, levels = rng.normal(size=(25, 5)), rng.uniform(0.0, 50.0, size=25)
    unit = rng.integers(25, size=500)
    X = profiles[unit] + 0.4 * rng.normal(size=(500, 5))
    y = levels[unit] + 0.3 * rng.normal(size=500)
    folds = make_folds(500, 3, random_state=0)
    return Sample(Table.of(X), y, np.ones(500), folds)


def loss_of(p, sample, thresholds):
    """Return the Brier score summed over thresholds by their spacing."""
    below = sample.y[:, None] <= thresholds
    return float(((p - below) ** 2 @ np.gradient(thresholds)).mean())


def test_a_prospect_is_near_what_is_reached(units):
    thresholds = np.quantile(units.y, np.linspace(0.02, 0.98, 49))
    forest = JointForest(60, max_features=0.8, min_samples_leaf=5, random_state=0)
    experts = CalibratedExperts({"joint": forest}, ExpertCalibration(random_state=0))
    asked = units, thresholds, np.ones(500)
    experts.ask(*asked)
    prospect = experts.prospect(*asked)
    raw = loss_of(experts.pool_.oof_probabilities_, units, thresholds)
    reached = loss_of(
        experts.calibrate(units, thresholds).tasks_.calibrated, units, thresholds
    )
    assert reached < 0.95 * raw
    assert prospect < 0.98 * raw
    assert prospect == pytest.approx(reached, rel=0.1)


def test_rows_without_weight_promise_nothing(units):
    experts = CalibratedExperts(
        {"joint": JointForest(5, random_state=0)}, ExpertCalibration(None)
    )
    asked = units, np.array([10.0, 30.0]), np.zeros(500)
    experts.ask(*asked)
    assert experts.prospect(*asked) == 0.0
