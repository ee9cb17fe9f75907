"""Learners: pipelines that are suggested work, and threads only where they help."""

import threading

import numpy as np
import pandas as pd
import pytest
from sklearn import compose, impute, linear_model, preprocessing
from sklearn.pipeline import make_pipeline

from localexpert import LocalExpertRegressor
from localexpert.data.learners import ask_each, suggest_pipeline

MANY = 10_000


def whereabouts(_):
    return threading.get_ident()


def test_many_rows_are_asked_about_in_other_threads():
    assert threading.get_ident() not in ask_each(whereabouts, range(9), MANY, 2)
    # One piece of work is no faster elsewhere.
    assert ask_each(whereabouts, [0], MANY, 2) == [threading.get_ident()]


def test_a_row_is_forecast_without_looking_for_threads(monkeypatch, rng):
    X = rng.uniform(size=(120, 3))
    y = 4.0 * (X[:, 0] > 0.5) + rng.normal(size=120)
    model = LocalExpertRegressor(n_thresholds=9, cv=2, random_state=0, n_jobs=2)
    model.fit(X, y)
    batch = model.predict_dist(X).quantiles([0.1, 0.5, 0.9])
    model.predict_dist(X[:1])

    # They would be paid for at every call.
    monkeypatch.setattr("localexpert.data.learners.Parallel", None)
    monkeypatch.setattr("calibration._jobs.ThreadpoolController", None)
    for k in range(3):
        one = model.predict_dist(X[[k]]).quantiles([0.1, 0.5, 0.9])
        np.testing.assert_allclose(one[0], batch[k], rtol=1e-6)


MAKERS = [make_pipeline, compose.make_column_transformer, linear_model.Ridge]
MAKERS += [preprocessing.OneHotEncoder, impute.SimpleImputer]
NAMES = {one.__name__: one for one in MAKERS}
TOWN, GAP = ["Ulm", "Bonn", "Ulm"], [1.0, np.nan, 3.0]


@pytest.mark.parametrize(
    ("X", "told"),
    [
        (pd.DataFrame({"size": [1.0, 2.0, 3.0], "town": TOWN}), "column 'town' has"),
        (
            pd.DataFrame({"gap": GAP, "town": TOWN, "kind": list("aba")}),
            "columns 'town', 'kind' have categories and column 'gap' has missing",
        ),
        (pd.DataFrame({"size": GAP}), "column 'size' has missing values"),
        (np.column_stack([GAP, GAP]), "columns 0, 1 have missing values"),
    ],
)
def test_what_is_suggested_can_be_fitted(X, told):
    text = suggest_pipeline(X, linear_model.Ridge())
    assert text.startswith(f"; {told}")
    pipeline = eval(text.partition("so take ")[2], NAMES)
    pipeline.fit(X, [1.0, 2.0, 3.0])


def test_nothing_to_suggest():
    assert suggest_pipeline(np.zeros((2, 1)), linear_model.Ridge()) == ""
    lists = pd.DataFrame({"bag": [[1], [2]]})
    assert suggest_pipeline(lists, linear_model.Ridge()) == ""
