"""Monotone forecasts: no CDF crosses that of a row which differs in the feature alone.

Targets here are not monotone in the features, so whatever is not held in order by
construction is found out of order: see `test_the_attack_finds_what_is_not_in_order`.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from localexpert import (
    CellRoad,
    DiscreteRoad,
    DistributionEnsemble,
    FrameRoad,
    GridRoad,
    JointForest,
    LocalExpertRegressor,
    Step,
    Transformed,
)
from localexpert.experts import IndependentExperts, SharedBoosting
from localexpert.recalibration.conformal import ConformalRecalibration
from localexpert.recalibration.pit import PitRecalibration
from tests.fuzz.test_fits import check_order

SIGNS = {"area": 1, "age": -1}
SHARED = SharedBoosting(max_rounds=20, random_state=0)
FRAME = FrameRoad(strategy=SHARED, n_thresholds=9)
PIT = PitRecalibration((10.0,))


def draw(seed=0, n=300):
    """Return rows with gaps, and a positive target that rises and falls with both."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "area": rng.normal(size=n).round(1),
            "age": rng.uniform(size=n),
            "kind": rng.choice(list("abc"), n),
            "noise": rng.normal(size=n),
        }
    )
    area, age = X["area"], X["age"]
    log = np.sin(3.0 * area) + 0.5 * area - age * np.where(X["kind"] == "b", -1.0, 1.0)
    y = np.exp(log + (0.2 + 0.5 * age) * rng.normal(size=n)).to_numpy()
    for name in ("area", "noise"):
        X.loc[rng.uniform(size=n) < 0.05, name] = np.nan
    return X, y


def pairs(n, seed=1):
    """Return rows, and those that differ in one constrained feature for greater y.

    From far below what was trained on to far above, by steps of all sizes.
    """
    rng = np.random.default_rng(seed)
    low = pd.DataFrame(
        {
            "area": np.where(rng.uniform(size=n) < 0.1, -1e300, 2 * rng.normal(size=n)),
            "age": rng.uniform(-1.0, 2.0, size=n),
            "kind": rng.choice(["a", "b", "c", None], n),
            "noise": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    high = low.copy()
    step = 10.0 ** rng.uniform(-6.0, 2.0, size=n)
    first = rng.uniform(size=n) < 0.6
    high.loc[first, "area"] += step[first]
    high.loc[~first, "age"] -= step[~first]
    return low, high


def attack(model, y):
    """Check CDFs, quantiles and means of pairs of rows."""
    low, high = (model.predict_dist(side) for side in pairs(600))
    assert (low.mean() != high.mean()).mean() > 0.1, "the feature must matter"
    check_order(low, high, y)


def fit(y=None, sample_weight=None, **parameters):
    X, own = draw()
    if not {"roads", "strategy"} & parameters.keys():
        parameters["strategy"] = SHARED
    shape = {} if "roads" in parameters else {"n_thresholds": 9}
    usual = {"monotone": SIGNS, "cv": 3, "random_state": 0, **shape}
    model = LocalExpertRegressor(**{**usual, **parameters})
    return model.fit(X, own if y is None else y, sample_weight)


SMOOTH = {
    "no bounds": {"bounds": None},
    "both roads": {"roads": [FRAME, Transformed(FRAME)]},
    "bounds on both sides": {"bounds": (0.0, 50.0)},
    "grid": {"roads": GridRoad(40, strategy=SHARED)},
    "independent": {"strategy": "independent", "n_thresholds": 5},
    "thresholds": {"thresholds": [0.5, 1.0, 2.0, 4.0], "n_thresholds": 25},
    "pit of log": {"recalibrate": PIT, "roads": Transformed(FRAME)},
    "conformal": {"recalibrate": ConformalRecalibration(random_state=0)},
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_targets(name):
    _, y = draw()
    attack(fit(**SMOOTH[name]), y)


def test_the_attack_finds_what_is_not_in_order():
    _, y = draw()
    with pytest.raises(AssertionError, match="<= 1e-09"):
        attack(fit(monotone=None, frame=None), y)


@pytest.mark.parametrize(
    "roads",
    [DiscreteRoad(SHARED), CellRoad(FRAME), [DiscreteRoad(SHARED), CellRoad(FRAME)]],
    ids=["values", "cells", "pool"],
)
@pytest.mark.parametrize("recalibrate", [None, PIT], ids=["plain", "pit"])
def test_discrete_targets(roads, recalibrate):
    y = np.minimum(draw()[1].round(), 10.0)
    model = fit(y, roads=roads, recalibrate=recalibrate)
    assert model.forecaster_.oof_law_.is_discrete
    attack(model, y)


def test_values_that_are_met_often():
    """The smooth road takes all rows; bounds collect what lies beyond them."""
    y = np.where(np.random.default_rng(3).uniform(size=300) < 0.4, 0.0, draw()[1])
    model = fit(y)
    assert model.report_.target == "continuous"
    attack(model, y)
    assert model.predict_dist(draw()[0]).pmf(0.0).min() > 0.0


def test_all_that_is_chosen_by_default():
    X, y = draw()
    model = LocalExpertRegressor(monotone=SIGNS, cv=2, random_state=0).fit(X, y)
    assert set(model.report_.choices["roads"]["losses"]) == {"frame", "log"}
    assert len(model.report_.choices["roads"]["weights"]) == 1
    attack(model, y)


@pytest.mark.parametrize("pool", ["linear", "probit"])
def test_pools_of_ordered_members_are_ordered(pool):
    X, y = draw()
    usual = {"n_thresholds": 7, "cv": 2, "strategy": SHARED, "bounds": None}
    members = [
        (name, LocalExpertRegressor(monotone=SIGNS, random_state=seed, **usual))
        for seed, name in enumerate("ab")
    ]
    pooled = DistributionEnsemble(members, pool=pool, random_state=0).fit(X, y)
    assert len(pooled.weights_) == 2
    attack(pooled, y)


class OwnStep(Step):
    """A step that says nothing of order."""

    def read(self, law):
        """Return a law as it is."""
        return law


OTHER_WAY = SharedBoosting(monotone={"age": 1})
OWN = IndependentExperts(LogisticRegression())
SILENT = FrameRoad().with_step(OwnStep())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"frame": "center"}, "`frame` must be None or \"auto\".*got 'center'"),
        ({"strategy": "joint"}, "`strategy` must .*`monotone`, got 'joint'"),
        ({"strategy": JointForest()}, r"`strategy` must .*got JointForest\(\)"),
        ({"roads": GridRoad()}, "`strategy` must .*got 'deep'"),
        ({"strategy": OTHER_WAY}, "`strategy` must be experts with the same `monot"),
        ({"strategy": OWN}, "`classifier` must be None with `monotone`"),
        ({"expert": LogisticRegression()}, "`expert` must be None.*`monotone`"),
        ({"center": LinearRegression()}, '`center` must be "stack".*`monotone`'),
        ({"calibrator": "quadratic"}, "`calibrator` must .*got 'quadratic'"),
        ({"smoothing": "pchip"}, "`smoothing` must .*got 'pchip'"),
        ({"stacker": "auto"}, "`stacker` must be None.*got 'auto'"),
        ({"recalibrate": object()}, "`recalibrate` must be .*`monotone`"),
        *(
            ({"roads": road}, r"`roads` must be .*`keeps_order`")
            for road in (SILENT, Transformed(SILENT), CellRoad(SILENT))
        ),
    ],
)
def test_what_may_break_the_order_is_refused(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit(**parameters)
