"""Suggested pipelines: they name the columns, and they work when they are typed in."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from localexpert.data.learners import suggest_pipeline

NAMES = {
    "make_pipeline": make_pipeline,
    "make_column_transformer": make_column_transformer,
    "OneHotEncoder": OneHotEncoder,
    "SimpleImputer": SimpleImputer,
    "Ridge": Ridge,
}
TOWN, GAP = ["Ulm", "Bonn", "Ulm"], [1.0, np.nan, 3.0]


@pytest.mark.parametrize(
    ("X", "told"),
    [
        (
            pd.DataFrame({"size": [1.0, 2.0, 3.0], "town": TOWN}),
            "column 'town' has cat",
        ),
        (
            pd.DataFrame({"gap": GAP, "town": TOWN, "kind": list("aba")}),
            "columns 'town', 'kind' have categories and column 'gap' has missing",
        ),
        (pd.DataFrame({"size": GAP}), "column 'size' has missing values"),
        (np.column_stack([GAP, GAP]), "columns 0, 1 have missing values"),
    ],
)
def test_what_is_suggested_can_be_fitted(X, told):
    text = suggest_pipeline(X, Ridge())
    assert text.startswith(f"; {told}")
    pipeline = eval(text.partition("so take ")[2], NAMES)
    pipeline.fit(X, [1.0, 2.0, 3.0])


def test_nothing_to_suggest():
    assert suggest_pipeline(np.zeros((2, 1)), Ridge()) == ""
    lists = pd.DataFrame({"bag": [[1], [2]]})
    assert suggest_pipeline(lists, Ridge()) == ""
