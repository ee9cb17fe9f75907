"""One `random_state` is the seed of every part that has none of its own."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
)
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold

from calibration import BaggedIsotonicCalibrator
from localexpert import (
    ConformalRecalibration,
    DistributionAdapter,
    DistributionEnsemble,
    FrameRoad,
    IndependentExperts,
    JointForest,
    LocalExpertRegressor,
    PitRecalibration,
    SharedBoosting,
    Stacker,
)

TREES = ExtraTreesRegressor(5, max_depth=3)


def normal(fitted, X):
    return stats.norm(fitted.predict(X), 1.0)


def quick(**options):
    options = {"strategy": "joint", "frame": None, "n_thresholds": 3, "cv": 2} | options
    return LocalExpertRegressor(**options)


ADAPTER = DistributionAdapter(TREES, normal, cv=2)
SEARCH = GridSearchCV(Ridge(), {"alpha": [1.0, 20.0]}, cv=KFold(2, shuffle=True))
MODELS = {
    "forest": quick(strategy=JointForest(5)),
    "boosting": quick(strategy=SharedBoosting(max_rounds=5)),
    "experts": quick(strategy=IndependentExperts(ExtraTreesClassifier(3))),
    "expert": quick(strategy="independent", expert=ExtraTreesClassifier(3)),
    "center": quick(frame="center", center=TREES),
    "search": quick(frame="center", center=SEARCH),
    "centers": quick(frame="center", center=[TREES, TREES]),
    "stacker": quick(stacker=TREES),
    "Stacker": quick(stacker=Stacker(TREES, passthrough=True)),
    "calibrator": quick(calibrator=BaggedIsotonicCalibrator(n_bags=3)),
    "cv": quick(cv=KFold(2, shuffle=True)),
    "pit": quick(recalibrate=PitRecalibration()),
    "conformal": quick(recalibrate=ConformalRecalibration()),
    "road": LocalExpertRegressor(
        cv=2, roads=FrameRoad(None, strategy=JointForest(5), n_thresholds=3)
    ),
    "adapter": ADAPTER,
    "levels": DistributionAdapter(
        GradientBoostingRegressor(loss="quantile", subsample=0.5, n_estimators=3),
        levels=[0.1, 0.5, 0.9],
        level_name="alpha",
        cv=2,
    ),
    "ensemble": DistributionEnsemble(
        [("a", quick(strategy=JointForest(5))), ("b", ADAPTER)]
    ),
}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(160, 3))
    return X, 3.0 * X[:, 0] + rng.normal(size=160)


@pytest.mark.parametrize("name", MODELS)
def test_equal_seeds_give_equal_models(name, table):
    first, again, other = (
        clone(MODELS[name]).set_params(random_state=seed).fit(*table)
        for seed in (0, 0, 1)
    )
    asked = table[0][:20]
    levels = [0.1, 0.4, 0.9]
    expected = first.predict_dist(asked).quantiles(levels)
    assert_array_equal(again.predict_dist(asked).quantiles(levels), expected)
    assert not np.array_equal(other.predict_dist(asked).quantiles(levels), expected)
    if hasattr(first, "stacker_"):
        assert_array_equal(again.predict(asked), first.predict(asked))


@pytest.mark.parametrize("effort", ["quick", "default"])
def test_rows_without_weight_change_nothing(effort, table, rng):
    # So many that their number would matter, of a target of which roads are many.
    X, y = table[0], np.exp(0.5 * table[1])
    weight = np.append(np.ones(160), np.zeros(1200))
    more = np.vstack([X, rng.uniform(size=(1200, 3))]), np.append(y, np.full(1200, 9.0))
    model = LocalExpertRegressor(effort=effort, random_state=0)
    expected = clone(model).fit(X, y).predict_dist(X[:20]).interval()
    model.fit(*more, sample_weight=weight)
    assert_allclose(model.predict_dist(X[:20]).interval(), expected, rtol=1e-9)
    assert len(model.oof_distribution_) == 1360


def test_a_seed_of_a_part_is_kept(table):
    forest = JointForest(5, random_state=3)
    members = [("a", quick(strategy=forest))]
    model = DistributionEnsemble(members, random_state=0).fit(*table)
    part = model.members_["a"].forecaster_.experts.fitted_.popitem()[1]
    assert (part.random_state, forest.random_state) == (3, 3)
    given = KFold(2, shuffle=True)
    quick(strategy=JointForest(5), cv=given, random_state=0).fit(*table)
    assert given.random_state is None


def test_a_splitter_may_refuse_a_seed(table):
    @dataclass(frozen=True)
    class Blocks:
        random_state: int | None = None

        def split(self, *rows):
            return KFold(2).split(*rows)

    assert len(quick(cv=Blocks()).fit(*table).oof_distribution_) == 160
