"""Copies of rows are kept in one fold, and the target in another guise is named."""

import numpy as np
import pandas as pd
import pytest

from localexpert import FrameRoad, LocalExpertRegressor
from localexpert.data.honest_rows import find_leak, groups_of_copies


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
    first, second = np.split(np.arange(320), 2)
    given = [(first, second), (second, first)]
    assert "copies" not in model.set_params(cv=given).fit(four, of_four).report_.choices


GUISES = {
    "another unit": lambda y: 1.08 * y + 3.0,
    "its logarithm": np.log,
    "falling": lambda y: 1.0 / y,
    "rounded": lambda y: np.round(y, 1),
    "with gaps": lambda y: np.where(y < np.quantile(y, 0.004), np.nan, y),
    "nearly": lambda y: y * np.random.default_rng(1).normal(1.0, 0.002, len(y)),
}


def table(rng):
    X = rng.normal(size=(300, 3))
    return X, np.exp(X[:, 0] + rng.normal(size=300))


@pytest.mark.slow
def test_forecasts_of_a_table_of_few_cells_are_as_good_as_they_say():
    # Out of bag, the mean of a row's equals lacks its own target, and so gives it away.
    def draw(n):
        X = rng.integers(0, 4, size=(n, 3)).astype(float)
        return X, np.clip(np.round(X.mean(axis=1) + rng.normal(0.0, 0.7, n)), 0.0, 4.0)

    rng = np.random.default_rng(2)
    (X, y), (new, later) = draw(600), draw(3000)
    model = LocalExpertRegressor(roads=FrameRoad(strategy="joint"), random_state=0)
    honest = model.fit(X, y).oof_distribution_.crps(y).mean()
    assert honest == pytest.approx(model.predict_dist(new).crps(later).mean(), rel=0.1)


@pytest.mark.parametrize("guise", GUISES.values(), ids=GUISES.keys())
def test_the_target_is_found_in_any_guise(rng, guise):
    X, y = table(rng)
    place, own, others = find_leak(np.insert(X, 1, guise(y), axis=1), y, rng)
    assert place == 1
    assert own < 0.02
    assert others > 0.5


def test_what_is_no_leak(rng):
    X, y = table(rng)
    assert find_leak(X, y, rng) is None
    # Others tell it as well, as earlier values of a series do.
    later = y + 0.01 * rng.normal(size=300)
    assert find_leak(np.column_stack([y, later]), y, rng) is None
    # Most rows are told by a feature, but not all of them.
    zero = rng.uniform(size=300) < 0.9
    assert find_leak(np.insert(X, 0, zero, axis=1), np.where(zero, 0, y), rng) is None
    for few in (np.ones((300, 1)), np.empty((300, 0)), np.full((300, 1), np.nan)):
        assert find_leak(few, y, rng) is None
    assert find_leak(X, np.ones(300), rng) is None
    assert find_leak(y[:20, None], y[:20], rng) is None


def test_a_fit_names_it(rng):
    X, y = table(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(euros=0.9 * y)
    model = LocalExpertRegressor(
        roads=FrameRoad(None, strategy="joint", n_thresholds=5), random_state=0
    )
    report = model.fit(frame, y).report_
    assert report.choices["leak"]["feature"] == "euros"
    assert "column 'euros' alone tells y (it leaves" in str(report)
    assert "leak" not in model.fit(frame[["a", "b", "c"]], y).report_.choices
