"""Groups that folds do not cut, and intervals of what is calibrated."""

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from calibration import CalibratedClassifier, CalibrationWarning

X, y = make_classification(200, n_features=6, flip_y=0.1, random_state=3)
GROUPS = np.random.default_rng(1).integers(0, 20, 200)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("cv", "meant"),
    [
        (None, StratifiedGroupKFold(5)),
        (3, StratifiedGroupKFold(3)),
        (GroupKFold(4), GroupKFold(4)),
    ],
)
@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitter(cv, meant, routing, n_classes):
    labels = y if n_classes == 2 else np.arange(200) % 3
    with sklearn.config_context(enable_metadata_routing=routing):
        model = CalibratedClassifier(GaussianNB(), cv=cv)
        model.fit(X, labels, groups=list(GROUPS))
    folds = list(meant.split(X, labels, GROUPS))
    how = {"cv": folds, "method": "predict_proba"}
    expected = cross_val_predict(GaussianNB(), X, labels, **how)
    expected = expected[:, 1] if n_classes == 2 else expected
    np.testing.assert_allclose(model.oof_scores_, expected, rtol=1e-12)


def test_groups_of_a_rare_class_are_counted():
    rare = np.arange(200) < 30
    with pytest.warns(CalibrationWarning, match="holds 3 groups of class True only; 3"):
        CalibratedClassifier(GaussianNB()).fit(X, rare, groups=np.arange(200) // 10)
    with pytest.raises(ValueError, match="number of groups of the rarer class, got 4 "):
        CalibratedClassifier(cv=4).fit(X, rare, groups=np.arange(200) // 10)
    with pytest.raises(ValueError, match=r"two groups of each class .* one group of"):
        CalibratedClassifier().fit(X, rare, groups=np.arange(200) // 50)


@pytest.mark.parametrize(
    ("groups", "match"),
    [
        (np.arange(199), "`groups` must be as long as y, got 199 and 200 values"),
        (np.zeros((200, 2)), r"`groups` must be of shape \(n,\)"),
        (3, r"`groups` must be of shape \(n,\), got 3"),
        ([None, *"a" * 199], "`groups` must have no gaps, got None at position 0"),
    ],
)
def test_groups_refused(groups, match):
    with pytest.raises(ValueError, match=match):
        CalibratedClassifier().fit(X, y, groups=groups)


def test_groups_beside_given_folds_are_refused():
    folds = [(np.arange(100), np.arange(100, 200))]
    with pytest.raises(ValueError, match="`groups` must be None where `cv` gives"):
        CalibratedClassifier(cv=folds).fit(X, y, groups=GROUPS)


def test_groups_of_a_frozen_classifier_are_not_used():
    base = FrozenEstimator(GaussianNB().fit(X, y))
    expected = CalibratedClassifier(base).fit(X, y).predict_proba(X)
    got = CalibratedClassifier(base).fit(X, y, groups=GROUPS).predict_proba(X)
    np.testing.assert_array_equal(got, expected)


# --- intervals --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["isotonic", "bbq", "venn_abers"])
def test_intervals_are_those_of_the_calibrator(name):
    options = {} if name == "venn_abers" else {"coverage": 0.8}
    model = CalibratedClassifier(GaussianNB(), name).fit(X, y)
    got = model.predict_interval(X, **options)
    scores = model.estimator_.predict_proba(X)[:, 1]
    expected = model.calibrator_.predict_interval(scores, **options)
    np.testing.assert_array_equal(got, expected)
    assert got.shape == (200, 2)


def test_intervals_refused():
    for name, said in ("logistic", "Logistic"), ("centered_isotonic", "CenteredIs"):
        plain = CalibratedClassifier(GaussianNB(), name).fit(X, y)
        named = f"must have intervals, as Isotonic.*, got {said}"
        with pytest.raises(TypeError, match=named):
            plain.predict_interval(X)
    three = CalibratedClassifier(GaussianNB(), "isotonic").fit(X, np.arange(200) % 3)
    with pytest.raises(TypeError, match="for two classes, got OneVsRestCalibrator"):
        three.predict_interval(X)
    many = CalibratedClassifier(GaussianNB(), "isotonic", ensemble=True).fit(X, y)
    with pytest.raises(ValueError, match=r"`ensemble` must be False for .*, got 5 of"):
        many.predict_interval(X)


def test_folds_of_groups_are_so_many_that_no_class_is_left_out(rng):
    groups = [4, 4, 4, 4, 0, 4, 4, 1, 0, 0, 3, 4, 3, 3, 3, 0, 4, 4, 0, 4]
    y = [0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1, 0]
    X = rng.normal(size=(20, 1))
    with pytest.warns(CalibrationWarning, match="3 folds are used instead of 5"):
        model = CalibratedClassifier(GaussianNB()).fit(X, y, groups=groups)
    assert np.isfinite(model.oof_scores_).all()
    few = np.arange(4.0)[:, None], [1, 0, 1, 0]
    said = "must leave both classes in every training part"
    with pytest.warns(CalibrationWarning), pytest.raises(ValueError, match=said):
        CalibratedClassifier(GaussianNB()).fit(*few, groups=[2, 3, 0, 0])
