from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import coo_array, csr_array
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, PredefinedSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from calibration import (
    AllPairsClassifier,
    CalibratedClassifier,
    CalibrationWarning,
    PlattCalibrator,
)
from calibration.multiclass.binary import couple_pairs

# Rows of four classes that overlap, of unequal size.
RNG = np.random.default_rng(0)
y = RNG.choice(4, size=300, p=[0.4, 0.3, 0.2, 0.1])
CENTRES = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5], [1.5, 1.5]])
X = CENTRES[y] + RNG.normal(size=(300, 2))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", [GaussianNB(), LinearSVC(random_state=0)])
def test_experts_are_calibrated_classifiers_of_pairs(estimator, weighted, rng):
    w = rng.integers(0, 3, size=300) if weighted else np.ones(300)
    chances = []
    for i, j in combinations(range(4), 2):
        rows = np.flatnonzero((y == i) | (y == j))
        expert = CalibratedClassifier(estimator, PlattCalibrator(), cv=3)
        expert.fit(X[rows], y[rows], w[rows] if weighted else None)
        chances.append(expert.predict_proba(X)[:, 1])
    model = AllPairsClassifier(estimator, PlattCalibrator(), cv=3)
    found = model.fit(X, y, w if weighted else None).predict_proba(X)
    expected = couple_pairs(chances, 4)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_array_equal(model.predict(X), expected.argmax(axis=1))


def test_two_classes_without_weight():
    model = AllPairsClassifier(LogisticRegression())
    with pytest.warns(CalibrationWarning, match="`y` holds class 0 only"):
        model.fit(X, y, (y < 2).astype(float))
    assert (model.predict(X) < 2).all()


@pytest.mark.parametrize(
    "cv", [None, 4, StratifiedKFold(3), "pairs", "masks", "generator"]
)
def test_folds_of_any_kind(cv):
    folds = list(StratifiedKFold(3).split(X, y))
    if cv == "pairs":
        cv = folds
    elif cv == "masks":
        cv = [tuple(np.isin(np.arange(300), part) for part in fold) for fold in folds]
    elif cv == "generator":
        cv = iter(folds)
    model = AllPairsClassifier(GaussianNB(), cv=cv).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    if not isinstance(cv, int | None):
        same = AllPairsClassifier(GaussianNB(), cv=folds).fit(X, y)
        np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))


def test_folds_whose_test_part_lacks_a_pair():
    # A fold tests one class, or half of its rows.
    part = 2 * y + np.arange(300) % 2
    model = AllPairsClassifier(GaussianNB(), cv=PredefinedSplit(part)).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_rare_class_has_fewer_folds_in_its_pairs_only():
    rest = np.flatnonzero(y == 3)[3:]
    rows, labels = np.delete(X, rest, axis=0), np.delete(y, rest)
    with pytest.warns(CalibrationWarning, match="3 rows of class 3 only; 3 folds"):
        model = AllPairsClassifier(GaussianNB()).fit(rows, labels)
    assert np.isfinite(model.predict_proba(rows)).all()
    with pytest.raises(ValueError, match="`cv` must not be greater than the number"):
        AllPairsClassifier(GaussianNB(), cv=5).fit(rows, labels)


def test_sparse_tables_and_routing():
    w = np.where(y == 0, 2.0, 1.0)
    plain = AllPairsClassifier(LogisticRegression()).fit(X, y, w).predict_proba(X)
    sparse = AllPairsClassifier(LogisticRegression()).fit(csr_array(X), y, w)
    np.testing.assert_allclose(sparse.predict_proba(csr_array(X)), plain, rtol=1e-6)
    with sklearn.config_context(enable_metadata_routing=True):
        base = LogisticRegression().set_fit_request(sample_weight=True)
        routed = AllPairsClassifier(base)
        routed.fit(X, y, sample_weight=w)
        AllPairsClassifier().fit(X, y, sample_weight=w)
        assert "estimator" in routed.get_metadata_routing()._route_mappings
    np.testing.assert_array_equal(routed.predict_proba(X), plain)


@pytest.mark.parametrize("kind", [np.asarray, list, coo_array, pd.DataFrame])
def test_rows_beyond_one_chunk(kind, monkeypatch):
    model = AllPairsClassifier(LogisticRegression()).fit(X, y)
    whole, asked = model.predict_proba(X), []
    monkeypatch.setattr("calibration.multiclass.binary._CHUNK", 20)
    one = model.experts_[0]
    answer = one.predict_proba
    monkeypatch.setattr(one, "predict_proba", lambda X: asked.append(X) or answer(X))
    np.testing.assert_allclose(model.predict_proba(kind(X)), whole, rtol=1e-12)
    assert len(asked) > 1


def test_bad_data_is_named():
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    with pytest.raises(TypeError, match="`estimator` must be a classifier that can be"):
        AllPairsClassifier(frozen).fit(X, y)
    with pytest.raises(ValueError, match="`y` must hold two classes or more, got one"):
        AllPairsClassifier(GaussianNB()).fit(X, np.zeros(300))
    with pytest.raises(ValueError, match="`y` must hold at least two rows of each"):
        AllPairsClassifier(GaussianNB()).fit(X, np.append(y[:-1], 7))
    folds = list(GroupKFold(4).split(X, y, y))
    with pytest.raises(ValueError, match="`cv` must leave both classes in every"):
        AllPairsClassifier(GaussianNB(), cv=folds).fit(X, y)
