"""Parts of a variance: by hand, by the law of total variance, and of fitted models."""

import numpy as np
import pytest

from localexpert import LocalExpertRegressor
from localexpert.law.join import spread_parts
from localexpert.law.law import Law


def law(*masses: float) -> Law:
    return Law.discrete(np.array([0.0, 2.0, 4.0]), np.array([masses]))


def test_parts_by_hand() -> None:
    one = (0.75, [law(1.0, 0.0, 0.0), law(0.0, 1.0, 0.0)])  # means 0 and 2
    other = (0.25, [law(0.5, 0.0, 0.5), law(0.0, 0.0, 1.0)])  # 2 and 4, variances 4, 0
    parts = spread_parts([one, other])
    assert parts.within[0] == pytest.approx(0.25 * (4.0 + 0.0) / 2.0)
    assert parts.folds[0] == pytest.approx(0.75 * 1.0 + 0.25 * 1.0)
    # Roads' means 1 and 3, that of all 1.5.
    assert parts.roads[0] == pytest.approx(0.75 * 0.25 + 0.25 * 2.25)
    assert parts.disagreement[0] == pytest.approx(1.75 / 2.25)


def test_total_is_the_variance_of_the_mixture(rng: np.random.Generator) -> None:
    values, weights = np.arange(6.0), np.array([0.2, 0.5, 0.3])
    masses = rng.dirichlet(np.ones(6), size=(3, 4, 7))
    members = [
        (w, [Law.discrete(values, fold) for fold in road])
        for w, road in zip(weights, masses, strict=True)
    ]
    mixture = np.tensordot(weights, masses.mean(axis=1), axes=1)
    mean = mixture @ values
    variance = mixture @ values**2 - mean**2
    assert spread_parts(members).total == pytest.approx(variance)


def test_laws_without_variance_do_not_disagree() -> None:
    assert spread_parts([(1.0, [law(0.0, 1.0, 0.0)])]).disagreement.tolist() == [0.0]


@pytest.mark.parametrize("kind", ["smooth", "positive", "atom", "counts"])
def test_members_average_to_the_forecast(kind: str, rng: np.random.Generator) -> None:
    X = rng.normal(size=(200, 2))
    y = 3.0 * X[:, 0] + rng.normal(size=200)
    if kind == "positive":
        y = np.exp(0.3 * y)
    elif kind == "atom":
        y = np.maximum(y, 0.0)
    elif kind == "counts":
        y = rng.poisson(np.exp(0.3 * X[:, 0])).astype(float)
    model = LocalExpertRegressor(effort="quick", random_state=0).fit(X, y)
    members = model.forecaster_.members(model._read(X[:20]))
    assert sum(weight for weight, _ in members) == pytest.approx(1.0)
    mean = sum(
        w * np.mean([a.moments()[:, 0] for a in laws], axis=0) for w, laws in members
    )
    spread = model.predict_dist(X[:20])
    assert mean == pytest.approx(spread.mean(), abs=0.1 * y.std())
    parts = model.spread_parts(X[:20])
    assert (parts.disagreement <= 1.0).all()
    assert (parts.disagreement >= 0.0).all()
    assert (parts.disagreement < 0.5).mean() > 0.9


def test_disagreement_is_large_where_rows_are_few() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    y = X[:, 0] + rng.normal(size=300)
    model = LocalExpertRegressor(effort="quick", random_state=0).fit(X, y)
    middle, edge = model.spread_parts([[0.0], [4.0]]).disagreement
    assert middle < edge


@pytest.mark.filterwarnings("ignore:`y` is 1 in every row")
def test_forecast_without_spread_has_no_parts() -> None:
    X = np.arange(20.0)[:, None]
    model = LocalExpertRegressor(random_state=0).fit(X, np.ones(20))
    assert not model.spread_parts(X).total.any()
