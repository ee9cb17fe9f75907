"""What all regressors of distributions promise, those of scikit-learn's checks too."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    BayesianRidge,
    LinearRegression,
    QuantileRegressor,
    Ridge,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from localexpert import (
    DistributionAdapter,
    DistributionEnsemble,
    LocalExpertRegressor,
    PredictiveDistribution,
    Stacker,
)
from localexpert.experts import JointForest, SharedBoosting
from localexpert.regressor.recalibrated import RecalibratedRegressor

QUICK = {"center": LinearRegression(), "n_thresholds": 5, "cv": 2, "random_state": 0}
SHARED = SharedBoosting(max_rounds=20, random_state=0)
FOREST = JointForest(10, random_state=0)


class Normal:
    """A line's own normal law, without an address in the names of tests."""

    def __call__(self, fitted, X):
        return stats.norm(*fitted.predict(X, return_std=True))

    def __repr__(self):
        return "normal"


def ours(**parameters):
    return LocalExpertRegressor(**{"strategy": FOREST, **QUICK, **parameters})


def adapter():
    return DistributionAdapter(BayesianRidge(), Normal(), cv=2, random_state=0)


def quantiles():
    one = QuantileRegressor(alpha=0.0)
    levels = {"levels": [0.1, 0.5, 0.9], "level_name": "quantile"}
    return DistributionAdapter(one, **levels, bounds=(-9.0, 9.0), cv=2, random_state=0)


def pooled():
    members = [(name, ours(frame=name)) for name in ("center", "standardize")]
    return DistributionEnsemble(members, random_state=0)


def draw(names=("a", "b"), n=150, seed=3):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=names)
    return X, X.to_numpy()[:, 0] + rng.normal(size=n)


def recalibrated():
    model = FrozenEstimator(ours().fit(*draw(n=60)))
    return RecalibratedRegressor(model, "pit", random_state=0)


MAKERS = {
    "plain": ours,
    "ordered": lambda: ours(strategy=SHARED, center="stack", monotone=[1, 0]),
    "stacked": lambda: ours(stacker=Stacker(Ridge(), passthrough=True)),
    "recalibrated out of fold": lambda: ours(recalibrate="pit", stacker="auto"),
    "adapter": lambda: adapter().set_params(recalibrate="pit"),
    "quantiles": quantiles,
    "levels": lambda: DistributionAdapter(ours(), cv=2, random_state=0),
    "ensemble": pooled,
    "recalibrated": recalibrated,
}


def said_by(model, X):
    return np.column_stack([model.predict_quantiles(X, [0.1, 0.5]), model.predict(X)])


@pytest.fixture(scope="module", params=MAKERS)
def fitted(request):
    X, y = draw()
    return MAKERS[request.param]().fit(X, y), X, y


def test_clones_are_unfitted_and_fit_alike(fitted):
    model, X, y = fitted
    again = clone(model)
    assert not [name for name in vars(again) if name.endswith("_")]
    if "n_jobs" in model.get_params(deep=False):
        again.set_params(n_jobs=2)
    np.testing.assert_array_equal(said_by(again.fit(X, y), X), said_by(model, X))


def test_pickles_and_files_say_the_same(fitted, reload):
    model, X, _ = fitted
    trusted = [f"{__name__}.Normal"] * (getattr(model, "forecast", None) is not None)
    read = reload(model, trusted=trusted)
    for again in (pickle.loads(pickle.dumps(model)), read):
        np.testing.assert_array_equal(said_by(again, X), said_by(model, X))
        if hasattr(model, "oof_distribution_"):
            two = [one.oof_distribution_.median() for one in (model, again)]
            np.testing.assert_array_equal(*two)


def test_parameters_set_after_the_fit_change_no_forecast(fitted):
    model, X, _ = fitted
    other = copy.copy(model)
    for name in model.get_params(deep=False):
        setattr(other, name, "another")
    # Gaps that training did not have are filled in another way where order counts.
    rows = X.mask(X > 2.0) if getattr(model, "monotone", None) else X
    np.testing.assert_array_equal(said_by(other, rows), said_by(model, rows))


def test_methods_agree_with_the_distribution(fitted):
    model, X, y = fitted
    dist = model.predict_dist(X)
    np.testing.assert_allclose(model.predict(X), dist.mean(), atol=1e-2)
    np.testing.assert_array_equal(model.predict_interval(X, 0.5), dist.interval(0.5))
    assert model.score(X, y) > 0.2


def test_out_of_fold_scores_like_new_rows(fitted):
    model, _, y = fitted
    if not hasattr(model, "oof_distribution_"):
        return  # it is corrected by other rows than the model was fitted to
    X_new, y_new = draw(n=300, seed=4)
    oof = model.oof_distribution_.crps(y)
    new = model.predict_dist(X_new).crps(y_new)
    noise = np.sqrt(oof.var() / 150 + new.var() / 300)
    assert abs(oof.mean() - new.mean()) < 3.0 * noise


class Fails(RegressorMixin, BaseEstimator):
    """A line whose last fits fail where the target is above 50."""

    def __init__(self, error=RuntimeError):
        self.error = error

    def fit(self, X, y):
        if np.mean(y) > 50.0:
            raise self.error
        self.line_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.line_.predict(X)

    def predict_dist(self, X):
        quantiles = self.predict(X)[:, None] + np.array([-1.0, 0.0, 1.0])
        return PredictiveDistribution.from_quantiles(quantiles, [0.1, 0.5, 0.9])


FAILING = {
    "regressor": lambda error: ours(frame="center", center=Fails(error)),
    "adapter": lambda error: DistributionAdapter(Fails(error)),
    "ensemble": lambda error: DistributionEnsemble(
        [("line", DistributionAdapter(Fails(error)))]
    ),
}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("name", FAILING)
def test_a_failed_fit_changes_nothing(name, error):
    X, y = draw()
    model = FAILING[name](error)
    for before in (dict(vars(model)), dict(vars(model.fit(X, y)))):
        vars(model).clear()
        vars(model).update(before)
        with pytest.raises((RuntimeError, KeyboardInterrupt)):
            model.fit(draw(["c", "d"])[0], 100.0 + y)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[key] is value for key, value in before.items())


def expected_failures(model):
    """Return checks and reasons."""
    if isinstance(model, DistributionAdapter):
        return {}
    trees = "repeated rows grow other trees than weighted ones"
    out_of_fold = "`fit_transform` describes the training rows out of fold"
    return {
        "check_sample_weight_equivalence_on_dense_data": trees,
        "check_transformer_data_not_an_array": out_of_fold,
        "check_transformer_general": out_of_fold,
    }


@pytest.mark.slow
@parametrize_with_checks(
    [
        ours(strategy=SHARED),
        ours(strategy=SHARED, center="stack", monotone={0: 1}),
        adapter(),
        pooled(),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore::calibration.exceptions.CalibrationWarning")
def test_sklearn_checks(estimator, check):
    check(estimator)
