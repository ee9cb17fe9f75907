"""Copies of rows: found where equality is no chance, and kept in one fold."""

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from localexpert import (
    DistributionAdapter,
    DistributionEnsemble,
    FrameRoad,
    JointForest,
    LocalExpertRegressor,
    PredictiveDistribution,
)
from localexpert.data.copies import groups_of_copies


def neighbour_law(fitted, X):
    return stats.norm(fitted.predict(X), 0.5)


class OneNeighbour(KNeighborsRegressor):
    """Forecasts around the row that is nearest."""

    def __init__(self):
        super().__init__(1)

    def predict_dist(self, X):
        return PredictiveDistribution.from_scipy(neighbour_law(self, X), len(X))


def groups(X):
    return groups_of_copies(np.asarray(X, float), np.random.default_rng(0))


def test_copies_are_groups_whatever_their_order(rng):
    once = np.column_stack([rng.normal(size=80), rng.integers(0, 3, 80)])
    once[:5, 0] = np.nan
    once[5, 0] = 0.0
    place = rng.permutation(np.repeat(np.arange(80), rng.integers(1, 5, size=80)))
    X = once[place]
    X[place == 5, 0] *= -1.0
    found = groups(X)
    # The five rows without a number are told apart by the other column at most.
    names = np.unique(once[:5, 1])
    key = np.where(place < 5, -1 - np.searchsorted(names, X[:, 1]), place)
    same = key[:, None] == key
    np.testing.assert_array_equal(found[:, None] == found, same)


@pytest.mark.parametrize(
    "columns",
    [
        lambda rng: rng.integers(0, 2, size=(400, 3)),  # few cells
        lambda rng: rng.integers(0, 12, size=(400, 2)),  # equal by chance
        lambda rng: rng.normal(size=(400, 2)),  # no copies
        lambda rng: np.repeat(rng.normal(size=(20, 2)), 20, axis=0),  # 20 places
        lambda rng: rng.integers(0, 60, size=(400, 1)),  # a grid
        lambda rng: np.repeat(np.eye(60), 5, axis=0) @ rng.normal(size=(60, 3)) > 0,
    ],
    ids=["cells", "chance", "none", "places", "grid", "binary"],
)
def test_what_is_no_copy(rng, columns):
    assert groups(columns(rng)) is None


def test_columns_that_tell_rows_apart_together(rng):
    # As measurements on coarse scales: a column has 12 values, and rows are all unlike.
    once = rng.integers(0, 12, size=(300, 8)).astype(float)
    assert len(np.unique(once, axis=0)) == 300
    X = np.concatenate([once, once[:200]])
    np.testing.assert_array_equal(groups(X)[:200], groups(X)[300:])
    # A source that repeats a row now and then goes on to do so.
    assert groups(X[:340]) is None
    # One more that follows from another says nothing of chance.
    grid = rng.integers(0, 15, size=(400, 2))
    assert groups(np.column_stack([grid, grid[:, 0] ** 2])) is None


@pytest.mark.parametrize(
    "model",
    [
        LocalExpertRegressor(
            strategy=JointForest(50, random_state=0), frame=None, random_state=0
        ),
        LocalExpertRegressor(
            RandomForestClassifier(30, oob_score=True, random_state=0),
            frame=None,
            n_thresholds=5,
            random_state=0,
        ),
        DistributionAdapter(
            KNeighborsRegressor(1), neighbour_law, cv=4, random_state=0
        ),
        DistributionEnsemble(
            [("pipe", make_pipeline(StandardScaler(), OneNeighbour()))], random_state=0
        ),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.filterwarnings("ignore:out of fold, forecasts")
def test_nobody_sees_a_copy(rng, model):
    X = np.repeat(rng.normal(size=(70, 2)), 4, axis=0)
    y = np.repeat(rng.normal(size=70), 4)
    climate = np.abs(y[:, None] - y).mean() / 2
    told = model.fit(X, y).oof_distribution_.crps(y).mean()
    assert told > 0.9 * climate


def test_out_of_fold_forecasts_have_not_seen_a_copy(rng):
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + rng.normal(size=80)
    model = LocalExpertRegressor(
        roads=FrameRoad(None, strategy="joint", n_thresholds=9), random_state=0
    )
    four, of_four = np.repeat(X, 4, axis=0), np.repeat(y, 4)
    model.fit(four, of_four)
    told = model.oof_distribution_.crps(of_four).mean()
    new = rng.normal(size=(1000, 2))
    came = new[:, 0] + rng.normal(size=1000)
    assert told > 0.75 * model.predict_dist(new).crps(came).mean()
    assert model.report_.choices["copies"] == {"copies": 240}
    assert "240 rows are equal to others" in str(model.report_)
    given = [
        (np.arange(160), np.arange(160, 320)),
        (np.arange(160, 320), np.arange(160)),
    ]
    assert "copies" not in model.set_params(cv=given).fit(four, of_four).report_.choices
