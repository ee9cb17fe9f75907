"""Members of an ensemble that keep no out-of-fold forecasts of their own."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import localexpert
from localexpert import (
    DistributionEnsemble,
    JointForest,
    LocalExpertRegressor,
    cross_val_predict_dist,
)
from localexpert.data.folds import make_folds
from localexpert.ensemble.members import fit_member, seeded_clones
from tests.forecasts import of_values

FOREST = JointForest(n_estimators=10, random_state=0)
QUICK = {"strategy": FOREST, "frame": None, "n_thresholds": 3, "cv": 2}


class Recall(RegressorMixin, BaseEstimator):
    """Forecasts the training targets it was fitted on, whatever the row."""

    def fit(self, X, y):
        self.rows_ = len(X)
        self.y_ = np.sort(np.asarray(y))
        return self

    def predict(self, X):
        return self.predict_dist(X).mean()

    def predict_dist(self, X):
        values = np.unique(self.y_)
        rows = np.full((len(X), len(values)), 1.0 / len(values))
        return of_values(values, rows)


@pytest.fixture
def towns(rng):
    X = pd.DataFrame({"town": rng.choice(["a", "b"], 60), "x": rng.normal(size=60)})
    X.loc[7, "town"] = "rare"
    return X, X["x"].to_numpy() + (X["town"] == "a") + 0.5 * rng.normal(size=60)


def test_a_pipeline_is_pooled_with_a_regressor(towns, tmp_path):
    X, y = towns
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["town"]), remainder="passthrough"
    )
    plain = LocalExpertRegressor(center=LinearRegression(), **QUICK)
    members = [("piped", make_pipeline(encoder, plain)), ("plain", plain)]
    model = DistributionEnsemble(members, random_state=0).fit(X, y)
    assert set(model.weights_) == {"piped", "plain"}
    assert len(model.oof_distribution_) == 60
    again = DistributionEnsemble(members, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    model.save(tmp_path / "pool.zip")
    loaded = localexpert.load(tmp_path / "pool.zip")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_forecasts_of_members_are_out_of_fold(towns):
    X, y = towns
    X = X[["x"]].to_numpy()
    own = {"together": None, "seed": 3, "n_jobs": None}
    fitted, said = fit_member("m", Recall(), X, y, {}, **own)
    assert fitted.rows_ == 60
    np.testing.assert_array_equal(said.rows, np.arange(60))
    folds = make_folds(60, "auto", y, random_state=3)
    by_hand = cross_val_predict_dist(Recall(), X, y, cv=folds)
    np.testing.assert_array_equal(said.law.masses, by_hand.masses)
    held = said.law.masses[np.arange(60), np.searchsorted(said.law.atoms, y)]
    assert (held == 0.0).all()


def test_steps_are_seeded():
    piped = make_pipeline(LocalExpertRegressor(center=LinearRegression(), **QUICK))
    (_, one), (_, two) = seeded_clones([("a", piped), ("b", piped)], 0, None)
    seeds = {pipe[-1].random_state for pipe in (one, two)}
    assert len(seeds) == 2
    assert None not in seeds
    assert piped[-1].random_state is None
    kept = one.set_params(localexpertregressor__random_state=5)
    assert seeded_clones([("a", kept)], 0, None)[0][1][-1].random_state == 5


def test_what_cannot_be_a_member_is_named(towns):
    X, y = towns
    X = X[["x"]]
    wrong = make_pipeline(LinearRegression())
    with pytest.raises(TypeError, match="`members` must have a method predict_dist"):
        DistributionEnsemble([("line", wrong)]).fit(X, y)
    with pytest.raises(TypeError, match="whose `fit` takes no weights, got some for"):
        DistributionEnsemble([("r", Recall())]).fit(X, y, sample_weight=np.ones(60))
    fitted = make_pipeline(
        LocalExpertRegressor(center=LinearRegression(), random_state=0, **QUICK)
    ).fit(X, y)
    with pytest.raises(
        TypeError, match="`oof_distribution_`, got Pipeline as 'p': let"
    ):
        DistributionEnsemble.of_fitted({"p": fitted}, y)
