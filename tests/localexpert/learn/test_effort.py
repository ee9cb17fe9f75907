"""Effort: from one quick look to many fits, and fits that have so many seconds."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold

from localexpert import FrameRoad, LocalExpertRegressor, load
from localexpert.learn import pool


@pytest.fixture(scope="module")
def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(240, 3))
    return X, 3.0 * X[:, 0] + (0.1 + 2.0 * X[:, 1] ** 2) * rng.normal(size=240)


def make(effort: object, **parameters: object) -> LocalExpertRegressor:
    return LocalExpertRegressor(
        effort=effort, random_state=0, **({"cv": 2} | parameters)
    )


def fast(effort: object, **parameters: object) -> LocalExpertRegressor:
    """Return a regressor of few, cheap stages."""
    few = {"center": LinearRegression(), "n_thresholds": 5, "strategy": "joint"}
    return make(effort, **(few | parameters))


def crps(model: LocalExpertRegressor, X: np.ndarray, y: np.ndarray) -> float:
    return float(model.predict_dist(X).crps(y).mean())


def test_quick_fits_ask_no_expert(table: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = table
    model = make("quick").fit(X, y)
    summary = model.report_.summary()
    assert set(summary["frame"]["weights"]) == {"boosting"}
    assert set(summary["experts"]["weights"]) == {"marginal"}
    # Forecasts are corrected out of fold, and better than climatology.
    assert model.recalibration_ is not None
    assert model.check_.crps < 0.8 * model.check_.climatology
    spread = model.predict_dist([[0.5, 0.05, 0.5], [0.5, 0.95, 0.5]]).std()
    assert spread[1] > 1.5 * spread[0]


@pytest.mark.parametrize("kind", ["counts", "few values", "zeros", "skewed", "two"])
def test_quick_fits_suit_any_target(
    table: tuple[np.ndarray, np.ndarray], kind: str
) -> None:
    X, _ = table
    rng = np.random.default_rng(1)
    smooth = np.exp(1.0 + X[:, 0] + rng.normal(size=len(X)))
    y = {
        "counts": rng.poisson(6.0 * np.exp(X[:, 0])).astype(float),
        "few values": np.clip(np.floor(2.0 * smooth / smooth.mean()), 0.0, 5.0),
        "zeros": np.where(rng.uniform(size=len(X)) < 0.3, 0.0, smooth),
        "skewed": smooth,
        "two": (X[:, 0] > rng.uniform(size=len(X))).astype(float),
    }[kind]
    model = make("quick").fit(X, y)
    dist = model.predict_dist(X)
    assert np.isfinite(dist.log_score(y)).all()
    assert abs(dist.mean().mean() - y.mean()) < 0.3 * y.std()
    if kind in ("counts", "few values", "two"):
        values = np.arange(-100.0, 20.0 * y.max() + 1.0)
        inside = dist.pmf(values[:, None]).sum(axis=0)
        np.testing.assert_allclose(inside, 1.0, atol=1e-3)


def test_quick_fits_keep_order(table: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = table
    model = make("quick", monotone={0: 1}).fit(X, y)
    low, high = X.copy(), X.copy()
    low[:, 0], high[:, 0] = 0.2, 0.8
    grid = np.linspace(y.min(), y.max(), 9)
    below, above = (model.predict_dist(rows).cdf_at(grid) for rows in (low, high))
    assert (below >= above - 1e-12).all()


def test_best_pools_fits_with_other_folds(
    table: tuple[np.ndarray, np.ndarray], tmp_path: object
) -> None:
    X, y = table
    model = fast("best").fit(X, y)
    losses = model.report_.summary()["roads"]["losses"]
    assert {"default", "other folds", "ten folds", "other ten folds"} < set(losses)
    assert losses["default"] != losses["other folds"]
    assert model.oof_probabilities_.shape == (240, 5)
    assert len(model.oof_distribution_) == len(model.oof_prediction_) == 240
    model.save(f"{tmp_path}/best.zip")
    again = load(f"{tmp_path}/best.zip").predict_dist(X)
    np.testing.assert_array_equal(again.mean(), model.predict_dist(X).mean())


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[np.ndarray, ...]]]:
    """Return a list that takes the folds of what is pooled from now on."""
    folds: list[list[tuple[np.ndarray, ...]]] = []
    finish = pool.Pool._finish

    def note(self: pool.Pool, sample: object) -> None:
        finish(self, sample)  # type: ignore[arg-type]
        folds.extend(road.tasks_.folds for road in self.fitted_.values())

    monkeypatch.setattr(pool.Pool, "_finish", note)
    return folds


def test_best_keeps_groups_together(
    table: tuple[np.ndarray, np.ndarray], seen: list[list[tuple[np.ndarray, ...]]]
) -> None:
    X, y = table
    groups = np.arange(len(y)) % 60
    fast("best", cv="auto").fit(X, y, groups=groups)
    tests = {tuple(test.tolist()) for folds in seen for _, test in folds}
    assert len(tests) > 10
    assert not any(
        np.isin(groups[train], groups[test]).any() for f in seen for train, test in f
    )


@pytest.mark.parametrize("groups", [None, np.arange(12) % 3])
@pytest.mark.parametrize("effort", ["quick", "best"])
def test_few_rows_or_groups_have_as_many_folds(
    table: tuple[np.ndarray, np.ndarray], effort: str, groups: np.ndarray | None
) -> None:
    X, y = table
    n = 6 if groups is None else 12
    model = fast(effort, cv="auto").fit(X[:n], y[:n], groups=groups)
    assert len(model.oof_distribution_) == n


def test_folds_of_the_users_are_those_of_all(
    table: tuple[np.ndarray, np.ndarray], seen: list[list[tuple[np.ndarray, ...]]]
) -> None:
    X, y = table
    fast("best", cv=KFold(3)).fit(X, y)
    tests = {tuple(test.tolist()) for folds in seen for _, test in folds}
    assert tests == {tuple(test.tolist()) for _, test in KFold(3).split(X)}


def test_what_is_named_wins(table: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = table
    road = FrameRoad("center", n_thresholds=4, strategy="joint")
    model = make("quick", roads=road, center=LinearRegression()).fit(X, y)
    assert len(model.thresholds_) == 4
    assert set(model.report_.summary()["frame"]["weights"]) == {"LinearRegression_0"}


def test_a_fit_without_time_is_quick_and_says_so(
    table: tuple[np.ndarray, np.ndarray],
) -> None:
    X, y = table
    hurried, quick = make(1e-9).fit(X, y), make("quick").fit(X, y)
    roads = hurried.report_.summary()["roads"]
    assert roads["left out"] == [
        "default",
        "other folds",
        "ten folds",
        "other ten folds",
    ]
    assert "no time for default, other folds" in str(hurried.report_)
    assert crps(hurried, X, y) == pytest.approx(crps(quick, X, y), rel=1e-9)


def test_a_fit_with_time_does_all(
    table: tuple[np.ndarray, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table
    roads = fast(1e6).fit(X, y).report_.summary()["roads"]
    assert roads["left out"] == []
    # Time that is over after the first road leaves out the others.
    monkeypatch.setattr("localexpert.learn.settings.Effort.allows", lambda *_: False)
    roads = fast(1e6).fit(X, y).report_.summary()["roads"]
    assert roads["left out"] == ["other folds", "ten folds", "other ten folds"]


@pytest.mark.parametrize(
    "effort", [0, 0.0, -1.0, np.inf, np.nan, "fast", None, True, [5]]
)
def test_efforts_that_are_none(
    table: tuple[np.ndarray, np.ndarray], effort: object
) -> None:
    X, y = table
    with pytest.raises(ValueError, match=r"`effort` must be one of 'quick'.*got "):
        make(effort).fit(X, y)
