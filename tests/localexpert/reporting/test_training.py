"""What is recalled of training is what the model was given."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from localexpert import crps_scorer, explain_forecast, plot_threshold_reliability
from localexpert.reporting.evidence import gather_evidence
from localexpert.reporting.training import Training, recall_reader, recall_training


@pytest.fixture
def data(rng):
    X = rng.normal(size=(160, 2))
    return X, np.exp(X[:, 0] + 0.3 * rng.normal(size=160))


@pytest.mark.parametrize("frame", [None, "center", "standardize"])
def test_smooth_targets_up_to_rounding(frame, fast, data):
    X, y = data
    weight = np.where(np.arange(160) % 3, 1.0, 2.0)
    training = recall_training(fast(frame=frame).fit(X, y, weight))
    np.testing.assert_allclose(training.y, y, rtol=1e-12)
    np.testing.assert_array_equal(training.weight, weight)
    assert len(training.oof) == 160


def test_targets_with_values_of_their_own(fast, data):
    X, y = data
    y = np.select([X[:, 1] > 0.8, X[:, 1] < -1.0], [0.0, 5.0], y)
    model = fast().fit(X, y)
    assert model.report_.target == "mixed"
    training = recall_training(model)
    np.testing.assert_allclose(training.y, y, rtol=1e-12)
    np.testing.assert_array_equal(training.y[y == 5.0], 5.0)


def test_discrete_targets(fast, data):
    X, y = data
    y = np.floor(np.minimum(2.0 * y, 5.0))
    np.testing.assert_array_equal(recall_training(fast().fit(X, y)).y, y)


def test_constant_targets(fast, data):
    with pytest.warns(UserWarning, match="every forecast is that value"):
        model = fast().fit(data[0], np.full(160, 2.5))
    np.testing.assert_array_equal(recall_training(model).y, np.full(160, 2.5))
    assert recall_reader(model).category_codes == {}


def test_rows_that_were_set_aside_are_not_of_training(fast, data):
    X, y = data
    model = fast(recalibrate="conformal").fit(X, y)
    training = recall_training(model)
    np.testing.assert_allclose(training.y, y[model.fitted_rows_], rtol=1e-12)


def test_other_models_keep_nothing_that_is_known_of():
    assert recall_training(object()) is None
    assert recall_reader(object()) is None


def test_categories(houses):
    assert set(recall_reader(houses.model).category_codes[2]) == {
        "Aa & Bb",
        "Cc",
        "<script>alert(1)</script>",
    }
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    assert recall_reader(frame) is None


def test_the_range_leaves_room_for_rounding_and_no_more():
    y = np.array([-1e6, 3.0, 1e6])
    low, high = Training(y, np.ones(3), None).range
    assert low < -1e6 < 1e6 < high
    assert high - 1e6 < 0.01
    low, high = Training(y, np.array([1.0, 1.0, 0.0]), None).range
    assert high == pytest.approx(3.0, abs=0.01)


def test_wrappers_are_looked_into(fast, data):
    X, y = data
    bare = {"X_train": None, "y_train": None, "coverage": 0.9, "random_state": 0}
    inner = fast(frame=None).fit(X, y)
    piped = FrozenEstimator(make_pipeline(FunctionTransformer(), inner))
    told = gather_evidence(piped, X, y, **bare)
    np.testing.assert_array_equal(told.training.y, recall_training(inner).y)
    np.testing.assert_array_equal(told.dist.mean(), inner.predict(X))
    assert told.climatology is not None
    search = GridSearchCV(inner, {"n_thresholds": [3]}, scoring=crps_scorer, cv=2)
    told = gather_evidence(search.fit(X, y), X, y, **bare)
    assert told.model is search.best_estimator_
    # What the regressor inside was given are no targets.
    logs = TransformedTargetRegressor(inner, func=np.log, inverse_func=np.exp)
    told = gather_evidence(logs.fit(X, y), X, y, **bare)
    assert told.training is None
    assert told.dist.law.support[0] == 0.0
    # Pictures and explanations ask the same way.
    why = explain_forecast(piped, X[:2], X[:5], n_permutations=4, random_state=0)
    np.testing.assert_allclose(why.total, inner.predict(X[:2]))
    axes = plot_threshold_reliability(piped, numbers=[0])
    assert (
        axes[0].get_title()
        == plot_threshold_reliability(inner, numbers=[0])[0].get_title()
    )
    plt.close("all")
