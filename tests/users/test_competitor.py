"""A competitor with pandas frames: mixed types, gaps, a log target, a submission."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import (
    TransformedTargetRegressor,
    make_column_selector,
    make_column_transformer,
)
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from calibration import CalibrationWarning
from localexpert import (
    LocalExpertRegressor,
    cross_val_predict_dist,
    crps_score,
    crps_scorer,
    predict_dist,
)

QUICK = {"strategy": "joint", "frame": None, "n_thresholds": 7, "cv": 2}
MODEL = LocalExpertRegressor(random_state=0, **QUICK)
FOLDS = KFold(3, shuffle=True, random_state=0)


def make_houses(n, seed, *, new_kinds=()):
    """Return a table as it is downloaded: an Id, gaps, texts, years, flags."""
    rng = np.random.default_rng(seed)
    kinds = ["1Fam", "Twnhs", "Duplex"]
    kind, area = rng.choice(kinds, n), rng.uniform(40.0, 300.0, n).round()
    table = pd.DataFrame({
        "Id": np.arange(n) + 1 + 1000 * (seed > 0),
        "Area": np.where(rng.uniform(size=n) < 0.1, np.nan, area),
        "Kind": pd.Series(np.where(rng.uniform(size=n) < 0.1, None, kind)),
        "Zone": pd.Categorical(rng.choice(["RL", "RM"], n)),
        "Built": rng.integers(1900, 2010, n),
        "Garage": rng.uniform(size=n) < 0.5,
    })  # fmt: skip
    for row, name in enumerate(new_kinds):
        table.loc[row, "Kind"] = name
    price = 1000.0 * area * np.exp(0.2 * rng.normal(size=n) + 0.4 * (kind == "1Fam"))
    return table, price.round(-2)


@pytest.fixture
def houses():
    return make_houses(150, 0)


def rmsle(y, forecast):
    return np.sqrt(np.mean((np.log1p(forecast) - np.log1p(y)) ** 2))


def test_a_submission_through_the_log_target(houses, tmp_path):
    train, y = houses
    test, truth = make_houses(60, 1, new_kinds=["Manor"])
    model = TransformedTargetRegressor(MODEL, func=np.log1p, inverse_func=np.expm1)
    model.fit(train.drop(columns="Id"), y)
    with pytest.warns(CalibrationWarning, match="'Manor'"):
        forecast = model.predict(test.drop(columns="Id"))
    pd.DataFrame({"Id": test["Id"], "SalePrice": forecast}).to_csv(
        tmp_path / "submission.csv", index=False
    )
    written = pd.read_csv(tmp_path / "submission.csv")
    assert list(written.columns) == ["Id", "SalePrice"]
    np.testing.assert_array_equal(written["Id"], test["Id"])
    constant = np.full(60, np.expm1(np.log1p(y).mean()))
    assert rmsle(truth, written["SalePrice"]) < 0.8 * rmsle(truth, constant)


def test_distributions_come_through_the_log_target_in_units_of_money(houses):
    train, y = houses
    X = train.drop(columns="Id")
    model = TransformedTargetRegressor(MODEL, func=np.log, inverse_func=np.exp)
    dist = predict_dist(model.fit(X, y), X)
    inner = predict_dist(model.regressor_, X)
    np.testing.assert_allclose(dist.median(), np.exp(inner.median()), rtol=1e-6)
    assert (dist.cdf(0.0) == 0.0).all()
    assert crps_score(y, dist) < crps_score(y, dist[np.roll(np.arange(150), 1)])


def test_scores_of_a_pipeline_are_those_by_hand(houses):
    train, y = houses
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), ["Zone"]),
    )
    model = make_pipeline(columns, MODEL)
    X = train.drop(columns="Id")
    scores = cross_val_score(model, X, y, cv=FOLDS, scoring=crps_scorer)
    by_hand = [
        -crps_score(
            y[rest], predict_dist(model.fit(X.iloc[part], y[part]), X.iloc[rest])
        )
        for part, rest in FOLDS.split(X)
    ]
    np.testing.assert_allclose(scores, by_hand)
    dist = cross_val_predict_dist(model, X, y, cv=FOLDS)
    sizes = [len(rest) for _, rest in FOLDS.split(X)]
    assert -crps_score(y, dist) == pytest.approx(np.average(scores, weights=sizes))


def test_forecasts_are_stacked_with_those_of_another_model(houses):
    train, y = houses
    X = train.drop(columns="Id")
    ridge = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["Zone"])),
        Ridge(),
    )
    mine = MODEL.fit(X, np.log(y))
    other = cross_val_predict(ridge, X, np.log(y), cv=FOLDS)
    inputs = mine.oof_features().assign(ridge=other)
    assert inputs.index.equals(pd.RangeIndex(150))
    meta = Ridge().fit(inputs, np.log(y))
    new = MODEL.transform(X).assign(ridge=ridge.fit(X, np.log(y)).predict(X))
    assert list(new.columns) == list(inputs.columns)
    assert np.isfinite(meta.predict(new)).all()
