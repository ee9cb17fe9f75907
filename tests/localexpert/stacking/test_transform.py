"""Meta-features in the container that is asked for, as scikit-learn's transformers."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline

import localexpert
from localexpert import LocalExpertRegressor

QUICK = {"strategy": "joint", "frame": None, "n_thresholds": 3, "cv": 2}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(60, 2)), columns=["a", "b"])
    X.index = np.arange(60) + 100
    y = X["a"] + 0.1 * rng.normal(size=60)
    model = LocalExpertRegressor(center=LinearRegression(), random_state=0, **QUICK)
    return model.fit(X, y), X, y


@pytest.mark.parametrize(
    ("kind", "container"),
    [("default", pd.DataFrame), ("pandas", pd.DataFrame), ("polars", pl.DataFrame)],
)
def test_the_container_is_chosen(fitted, kind, container, tmp_path):
    model, X, y = fitted
    plain = model.transform(X)
    other = clone(model).set_output(transform=kind).fit(X, y)
    for table in (other.transform(X), clone(other).fit_transform(X, y)):
        assert type(table) is container
        assert list(table.columns) == list(model.get_feature_names_out())
        if kind != "polars":
            assert list(table.index) == list(X.index)
    np.testing.assert_array_equal(np.asarray(other.transform(X)), plain.to_numpy())
    with config_context(transform_output=kind):
        assert type(model.transform(X)) is container
    other.save(tmp_path / "model.zip")
    again = localexpert.load(tmp_path / "model.zip")
    assert type(again.transform(X)) is container


def test_a_pipeline_sets_its_steps(fitted):
    model, X, y = fitted
    pipeline = make_pipeline(clone(model), RidgeCV()).set_output(transform="polars")
    told = pipeline.fit(X, y)[:-1].transform(X)
    assert type(told) is pl.DataFrame
    plain = make_pipeline(clone(model), RidgeCV()).fit(X, y)
    np.testing.assert_allclose(pipeline.predict(X), plain.predict(X))
