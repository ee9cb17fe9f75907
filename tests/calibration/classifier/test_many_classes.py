"""`CalibratedClassifier` of more than two classes, by hand and by name."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import datasets, linear_model, pipeline, preprocessing, svm
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from calibration import (
    AllPairsCalibrator,
    AutoCalibrator,
    CalibratedClassifier,
    CalibrationWarning,
    IsotonicCalibrator,
    LogisticCalibrator,
    OneVsRestCalibrator,
    PlattCalibrator,
    SoftmaxCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
    calibrator_names,
)
from tests.calibration.classifier.test_classifier import Constant, Recorder

FOLDS = StratifiedKFold(4, shuffle=True, random_state=1)


# Flowers by their names, blurred so that probabilities are no certainties.
X, y = datasets.load_iris(return_X_y=True)
X = X + np.random.default_rng(0).normal(scale=0.6, size=X.shape)
y = datasets.load_iris().target_names[y]


def last(n_classes):
    """Return the flowers of the last two classes, or of all three."""
    return X[-50 * n_classes :], y[-50 * n_classes :]


# --- what is fitted ---------------------------------------------------------------


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
@pytest.mark.parametrize(
    ("calibrator", "margin"),
    [(PlattCalibrator(), "real"), (SoftmaxCalibrator("vector", 1.0), "logit")],
)
def test_scores_are_those_of_cross_val_predict(method, calibrator, margin):
    rows, labels = last(3 if margin == "logit" else 2)
    base = linear_model.LogisticRegression()
    model = CalibratedClassifier(base, calibrator, cv=FOLDS, response=method)
    found = model.fit(rows, labels).predict_proba(rows)
    scores = cross_val_predict(base, rows, labels, cv=FOLDS, method=method)
    whole = getattr(base.fit(rows, labels), method)(rows)
    if margin == "real" and scores.ndim == 2:
        scores, whole = scores[:, 1], whole[:, 1]
    assert_allclose(model.oof_scores_, scores, rtol=1e-14)
    scale = "probability" if method == "predict_proba" else margin
    by_hand = clone(calibrator).set_params(scale=scale)
    by_hand.fit(scores, np.searchsorted(model.classes_, labels))
    found = found[:, 1] if margin == "real" else found
    assert_allclose(found, by_hand.predict(whole), rtol=1e-10)
    assert (model.calibrator_.scale, model.response_) == (scale, method)


@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize(
    "calibrator",
    [
        None,
        *calibrator_names(3),
        IsotonicCalibrator(),
        AllPairsCalibrator(),
        OneVsRestCalibrator("beta", classes=["x", "y", "z"]),
    ],
    ids=str,
)
def test_iris_by_each_calibrator(calibrator, ensemble):
    model = CalibratedClassifier(GaussianNB(), calibrator, cv=3, ensemble=ensemble)
    p = model.fit(X, y).predict_proba(X)
    assert p.shape == (150, 3)
    assert p.min() >= 0.0
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.oof_scores_.shape == (150, 3)
    assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    assert model.score(X, y) > 0.75


@pytest.mark.parametrize(
    ("n_classes", "given", "meant"),
    [
        (3, None, SoftmaxCalibrator("matrix", penalty=1.0)),
        (3, "auto", AutoCalibrator()),
        *((3, s, SoftmaxCalibrator(s)) for s in ("temperature", "vector", "matrix")),
        (3, "isotonic", OneVsRestCalibrator(IsotonicCalibrator())),
        (3, VennAbersCalibrator(), OneVsRestCalibrator(VennAbersCalibrator())),
        (2, None, LogisticCalibrator()),
        (2, "auto", AutoCalibrator()),
        (2, "isotonic", IsotonicCalibrator()),
        (2, "temperature", TemperatureCalibrator()),
        (2, "matrix", SoftmaxCalibrator()),
    ],
    ids=str,
)
def test_what_names_mean(n_classes, given, meant):
    rows, labels = last(n_classes)
    model = CalibratedClassifier(GaussianNB(), given).fit(rows, labels)
    assert str(model.calibrator_) == str(meant)
    same = clone(model).set_params(calibrator=meant).fit(rows, labels)
    assert_array_equal(same.predict_proba(rows), model.predict_proba(rows))
    assert model.get_params()["calibrator"] is given


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_two_classes_as_columns(method):
    rows, labels = last(2)
    base = linear_model.LogisticRegression()
    both = SoftmaxCalibrator("temperature"), TemperatureCalibrator(scale="logit")
    columns, binary = (
        CalibratedClassifier(base, one, response=method).fit(rows, labels)
        for one in both
    )
    assert columns.oof_scores_.shape == (100, 2)
    assert_allclose(columns.oof_scores_[:, 1], binary.oof_scores_, rtol=1e-14)
    assert_allclose(columns.predict_proba(rows), binary.predict_proba(rows), atol=1e-5)


# --- labels and columns -----------------------------------------------------------


@pytest.mark.parametrize("labels", [[0, 1, 2], [-1.0, 2.0, 30.0], ["a", "b", "c"]])
@pytest.mark.parametrize("container", [np.array, list, pd.Series, pd.Categorical])
def test_any_labels_give_the_same_probabilities(labels, container):
    columns = np.unique(y, return_inverse=True)[1]
    expected = CalibratedClassifier(GaussianNB()).fit(X, columns).predict_proba(X)
    model = CalibratedClassifier(GaussianNB())
    model.fit(X, container([labels[c] for c in columns]))
    assert_array_equal(model.predict_proba(X), expected)
    assert model.classes_.tolist() == labels


class Reversed(linear_model.LogisticRegression):
    """A classifier with its classes in the other order, as nothing forbids."""

    def fit(self, X, y):
        super().fit(X, y)
        sign = -1.0 if len(self.coef_) == 1 else 1.0
        for name in ("coef_", "intercept_"):
            setattr(self, name, sign * getattr(self, name)[::-1])
        self.classes_ = self.classes_[::-1]
        return self


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_classes_in_another_order_are_put_in_order(n_classes, method):
    rows, labels = last(n_classes)
    found, expected = (
        CalibratedClassifier(one, response=method).fit(rows, labels).oof_scores_
        for one in (Reversed(), linear_model.LogisticRegression())
    )
    assert_allclose(found, expected, atol=1e-12)


def test_frozen_classifier_knows_classes_that_y_lacks():
    base = GaussianNB().fit(X, y)
    some = y != "setosa"
    model = CalibratedClassifier(FrozenEstimator(base))
    with pytest.warns(CalibrationWarning, match=r"`y` has no row of \['setosa'\], wh"):
        model.fit(X[some], y[some])
    with pytest.warns(CalibrationWarning, match=r"`y` has no row of \['setosa'\], wh"):
        clone(model).fit(X, y, some.astype(float))
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    by_hand = SoftmaxCalibrator(penalty=1.0, classes=model.classes_)
    by_hand.fit(base.predict_proba(X[some]), y[some])
    expected = by_hand.predict(base.predict_proba(X))
    assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"`y` must hold the classes .* got 'rose'"):
        model.fit(X[:2], ["setosa", "rose"])


def test_a_frozen_classifier_takes_no_texts_for_its_numbers(rng):
    """Of so many classes numpy's sets take 1 for "1"."""
    y = np.arange(120) % 40
    X = y[:, None] + rng.normal(size=(120, 1))
    for known, asked in ((y, y.astype(str)), (y.astype(str), y)):
        model = CalibratedClassifier(FrozenEstimator(GaussianNB().fit(X, known)))
        got = repr(asked[0].item())
        with pytest.raises(ValueError, match=f"`y` must hold the classes .* got {got}"):
            model.fit(X, asked)


def test_frames_with_columns_in_another_order_are_refused():

    class Framed(GaussianNB):
        def predict_proba(self, X):
            frame = pd.DataFrame(super().predict_proba(X), columns=self.classes_)
            return frame[self.classes_[::-1]]

    with pytest.raises(ValueError, match="`scores of Framed` must have its columns in"):
        CalibratedClassifier(Framed()).fit(X, y)


# --- refusals ---------------------------------------------------------------------


def test_three_pairs_are_not_three_classes():
    pairs = svm.SVC(decision_function_shape="ovo")
    for base in (pairs, pipeline.make_pipeline(preprocessing.StandardScaler(), pairs)):
        model = CalibratedClassifier(base, response="decision_function")
        with pytest.raises(ValueError, match=r'`estimator` must .*shape="ovo" of'):
            model.fit(X, y)
        frozen = FrozenEstimator(clone(base).fit(X, y))
        with pytest.raises(ValueError, match='set it to "ovr"'):
            model.set_params(estimator=frozen).fit(X, y)
    assert CalibratedClassifier(svm.SVC()).fit(X, y).score(X, y) > 0.75


def test_classifiers_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"decision values of shape \(n, 3\), a"):
        CalibratedClassifier(Recorder(), cv=4).fit(X, y)
    with pytest.raises(ValueError, match=r"probabilities of shape \(n, 3\).*, 2\)"):
        CalibratedClassifier(Constant([0.5, 0.5])).fit(X, y)
