"""`CalibratedClassifier` against pairs made by hand, and what it refuses."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn import config_context, datasets, dummy, neighbors, utils
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import (
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB

from calibration import (
    AutoCalibrator,
    CalibratedClassifier,
    CalibrationWarning,
    IdentityCalibrator,
    IsotonicCalibrator,
    LogisticCalibrator,
    PlattCalibrator,
    TemperatureCalibrator,
)

FOLDS = StratifiedKFold(4, shuffle=True, random_state=1)


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier on the first column that remembers what `fit` was given."""

    def fit(self, X, y, sample_weight=None, **params):
        self.X_, self.y_, self.weight_, self.params_ = X, y, sample_weight, params
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.asarray(X)[:, 0].astype(float)

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class Constant(Recorder):
    """A classifier whose `predict_proba` returns what it is told."""

    def __init__(self, output=None):
        self.output = output

    def predict_proba(self, X):
        return np.broadcast_to(self.output, (len(X), *np.shape(self.output)[-1:]))


X, y = datasets.make_classification(200, n_features=6, flip_y=0.1, random_state=3)
WEIGHTS = np.random.default_rng(0).integers(0, 4, 200).astype(float)


# --- what is fitted ---------------------------------------------------------------


def test_ensemble_is_the_average_of_pairs_made_by_hand():
    ours = CalibratedClassifier(GaussianNB(), "isotonic", cv=FOLDS, ensemble=True)
    ours.fit(X, y, WEIGHTS)
    answers, held_out = [], np.empty(len(y))
    for train, test in FOLDS.split(X, y):
        base = GaussianNB().fit(X[train], y[train], WEIGHTS[train])
        held_out[test] = base.predict_proba(X[test])[:, 1]
        by_hand = IsotonicCalibrator().fit(held_out[test], y[test], WEIGHTS[test])
        answers.append(by_hand.predict(base.predict_proba(X)[:, 1]))
    got = ours.predict_proba(X)[:, 1]
    assert_allclose(got, np.mean(answers, axis=0), rtol=1e-14)
    assert_array_equal(ours.oof_scores_, held_out)
    assert len(ours.calibrated_pairs_) == 4
    assert not hasattr(ours, "calibrator_")
    assert not hasattr(ours, "estimator_")


@pytest.mark.parametrize("ensemble", [False, True])
def test_a_fold_without_weight_calibrates_nothing(ensemble):
    fold = np.arange(len(y)) % 4
    model = CalibratedClassifier(GaussianNB(), cv=PredefinedSplit(fold))
    model.set_params(ensemble=ensemble).fit(X, y, (fold > 0).astype(float))
    assert len(model.calibrated_pairs_) == (3 if ensemble else 1)
    assert np.isfinite(model.oof_scores_).all()


@pytest.mark.parametrize("ensemble", [False, True])
def test_prefit_is_the_calibrator_fitted_on_frozen_scores(ensemble):
    base = RandomForestClassifier(20, random_state=0).fit(X[:100], y[:100])
    ours = CalibratedClassifier(FrozenEstimator(base), ensemble=ensemble, cv="unused")
    ours.fit(X[100:], y[100:], WEIGHTS[100:])
    p = base.predict_proba(X)[:, 1]
    by_hand = LogisticCalibrator().fit(p[100:], y[100:], WEIGHTS[100:])
    assert_array_equal(ours.predict_proba(X)[:, 1], by_hand.predict(p))
    assert ours.estimator_.estimator is base
    assert ours.n_features_in_ == 6
    assert not hasattr(ours, "oof_scores_")


def test_prefit_knows_the_classes_of_the_classifier():
    base = FrozenEstimator(GaussianNB().fit(X, np.where(y == 1, "yes", "no")))
    model = CalibratedClassifier(base)
    with pytest.warns(CalibrationWarning, match="holds class 1 only"):
        model.fit(X[:3], ["yes"] * 3)
    assert model.classes_.tolist() == ["no", "yes"]
    assert_allclose(model.predict_proba(X[:1]), [[0.2, 0.8]])
    with pytest.raises(ValueError, match=r"fitted on, \['no', 'yes'\], got 'maybe'"):
        model.fit(X[:2], ["yes", "maybe"])


def test_prefit_takes_the_classes_of_y_where_the_classifier_names_none():
    base = Recorder().fit(X, y)
    del base.classes_
    model = CalibratedClassifier(FrozenEstimator(base)).fit(X, y)
    assert model.classes_.tolist() == [0, 1]


def test_predict_is_the_first_label_at_one_half():
    tied = CalibratedClassifier(Constant([0.5, 0.5]), IdentityCalibrator())
    assert set(tied.fit(X, y).predict(X)) == {0}


# --- scale and response -----------------------------------------------------------


def test_auto_prefers_probabilities():
    logistic = CalibratedClassifier(LogisticRegression())
    assert logistic.fit(X, y).response_ == "predict_proba"
    hinge = SGDClassifier(random_state=0)  # has `predict_proba` for other losses only
    assert CalibratedClassifier(hinge).fit(X, y).response_ == "decision_function"


@pytest.mark.parametrize("given", ["probability", "logit", "real"])
def test_scale_is_set_by_the_response(given):
    calibrator = LogisticCalibrator(penalty=2.0, scale=given)
    model = CalibratedClassifier(LogisticRegression(), calibrator).fit(X, y)
    assert model.calibrator_.scale == "probability"
    assert model.calibrator_.penalty == 2.0
    model.set_params(response="decision_function").fit(X, y)
    assert model.calibrator_.scale == ("logit" if given == "logit" else "real")
    assert calibrator.scale == given
    assert not hasattr(calibrator, "coef_")


def test_probabilities_beyond_0_and_1_by_rounding_only_are_clipped():
    base = Constant(np.float32([-1e-7, 1.0000001]))
    model = CalibratedClassifier(base, IdentityCalibrator()).fit(X, y)
    assert model.predict_proba(X[:1]).tolist() == [[0.0, 1.0]]
    for output, wrong in ([-0.1, 1.1], "lie in .* got -0.1"), ([0.2, 0.7], "sum to 1"):
        with pytest.raises(ValueError, match=f"`scores of Constant` must .*{wrong}"):
            model.set_params(estimator=Constant(output)).fit(X, y)


# --- labels (D6) ------------------------------------------------------------------


LABELS = [(-1, 1), (1, 2), (0, 10), (False, True), ("bad", "good"), (-0.0, 7.0)]


@pytest.mark.parametrize("low_high", LABELS, ids=str)
@pytest.mark.parametrize("container", [np.array, list, pd.Series])
@pytest.mark.parametrize("ensemble", [False, True])
def test_any_two_labels_give_the_same_answers(low_high, container, ensemble):
    labels = container([low_high[label] for label in y])
    parts = LogisticRegression(), TemperatureCalibrator(scale="logit")
    asked = {"response": "decision_function", "ensemble": ensemble}
    model = CalibratedClassifier(*parts, **asked)
    expected = clone(model).fit(X, y).predict_proba(X)
    model.fit(X, labels)
    assert_array_equal(model.predict_proba(X), expected)
    assert model.classes_.tolist() == list(low_high)
    answer = np.where(expected[:, 1] > 0.5, low_high[1], low_high[0])
    assert_array_equal(model.predict(X), answer)


@pytest.mark.parametrize("dtype", ["category", "string", "object"])
def test_labels_of_pandas_types(dtype):
    labels = pd.Series(np.where(y == 1, "yes", "no"), dtype=dtype)
    model = CalibratedClassifier().fit(X, labels)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, labels) > 0.8


@pytest.mark.parametrize("kind", [int, bool, float, Decimal, Fraction])
def test_objects_that_are_numbers_are_labels(kind):
    labels = np.array([kind(int(label)) for label in y], dtype=object)
    model = CalibratedClassifier(LogisticRegression()).fit(X, labels)
    assert model.classes_.tolist() == [0, 1]
    assert model.classes_.dtype.kind == {int: "i", bool: "b"}.get(kind, "f")
    plain = CalibratedClassifier(LogisticRegression()).fit(X, y)
    assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


@pytest.mark.parametrize(
    ("labels", "match"),
    [
        (["a", None, "b", "a"], "no gaps, got None at position 1"),
        (pd.array(["a", pd.NA, "b", "a"]), "no gaps, got .* position 1"),
        (np.array(["2020", "2021", "NaT", "2020"], "M8[D]"), "no gaps, got NaT at .*2"),
        # Of these lists numpy makes texts.
        (["a", np.nan, "b", "nan"], "no gaps, got nan at position 1"),
        (["2", 1, "1", 2], "labels of one kind, got '1' and 2"),
        ([True, False, "True", False], "labels of one kind, got False and 'True'"),
        (["a", b"a", "b", "b"], "labels of one kind, got 'b' and b'a'"),
        (np.array(["a", 1, 1, "a"], object), "labels of one kind, got 'a' and 1"),
        (pd.Series([[1]] * 4), r"labels of one kind, got \[1\]"),
        ([0.0, 1.0, np.nan, 0.0], "no gaps, got nan at position 2"),
        (np.ma.masked_less([0, 1, 1, 0], 1), "have no masked entries"),
        (["a"] * 4, "hold two classes or more, got one class: 'a'"),
        ([0, 1, 1], "`X` must be as long as y, got 4 and 3 values"),
        ([[0, 1], [1, 0], [1, 1], [0, 0]], "y should be a 1d array"),
    ],
)
def test_labels_refused(labels, match):
    error = TypeError if "one kind" in match else ValueError
    with pytest.raises(error, match=match):
        CalibratedClassifier().fit(X[:4], labels)


# --- sample weights ---------------------------------------------------------------


def test_weights_reach_the_calibrator_only_where_fit_takes_none():
    base = neighbors.KNeighborsClassifier()
    model = CalibratedClassifier(base, PlattCalibrator(), cv=FOLDS)
    with pytest.warns(CalibrationWarning, match="reach the calibrator only") as caught:
        model.fit(X, y, WEIGHTS)
    assert caught[0].filename == __file__
    scores = cross_val_predict(base, X, y, cv=FOLDS, method="predict_proba")[:, 1]
    by_hand = PlattCalibrator().fit(scores, y, WEIGHTS)
    assert model.calibrator_.intercept_ == by_hand.intercept_


def test_fit_parameters_are_cut_to_the_fold_if_they_hold_a_value_per_row(rng):
    per_row, other = rng.normal(size=200), {"a": 1}
    model = CalibratedClassifier(Recorder(), cv=FOLDS, ensemble=True)
    model.fit(X, y, per_row=per_row, text="x" * 200, other=other, few=[1, 2])
    splits = FOLDS.split(X, y)
    for (train, _), (base, _) in zip(splits, model.calibrated_pairs_, strict=True):
        assert_array_equal(base.params_["per_row"], per_row[train])
        assert base.params_["text"] == "x" * 200
        assert base.params_["other"] is other
        assert base.params_["few"] == [1, 2]
        assert base.weight_ is None


# --- folds ------------------------------------------------------------------------


def test_default_is_five_stratified_folds():
    default = CalibratedClassifier(GaussianNB()).fit(X, y)
    for cv in (5, StratifiedKFold(5), list(StratifiedKFold(5).split(X, y))):
        given = CalibratedClassifier(GaussianNB(), cv=cv).fit(X, y)
        assert_array_equal(given.oof_scores_, default.oof_scores_)


def test_fewer_folds_for_a_rare_class():
    few, rare = X[:50], np.arange(50) < 3
    match = "3 rows of class True only; 3 folds are used instead"
    with pytest.warns(CalibrationWarning, match=match) as caught:
        model = CalibratedClassifier(LogisticRegression(), ensemble=True).fit(few, rare)
    assert caught[0].filename == __file__
    assert len(model.calibrated_pairs_) == 3
    with pytest.raises(ValueError, match="5 folds for 3 rows of class True"):
        model.set_params(cv=5).fit(few, rare)
    with pytest.raises(ValueError, match=r"two rows of each class.*one row of class"):
        model.set_params(cv=None).fit(few, np.arange(50) < 1)


def test_rows_in_no_test_part_have_no_score():
    cv = TimeSeriesSplit(3)
    tested = np.concatenate([test for _, test in cv.split(X)])
    model = CalibratedClassifier(GaussianNB(), cv=cv).fit(X, y)
    assert set(np.flatnonzero(np.isfinite(model.oof_scores_))) == set(tested)
    by_hand = LogisticCalibrator().fit(model.oof_scores_[tested], y[tested])
    assert model.calibrator_.intercept_ == by_hand.intercept_


def test_rows_in_several_test_parts_are_for_ensembles_only():
    cv = RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=0)
    model = CalibratedClassifier(GaussianNB(), cv=cv)
    with pytest.raises(ValueError, match=r"`cv` must put no row.*got row 0 in 3 of"):
        model.fit(X, y)
    model.set_params(ensemble=True).fit(X, y)
    sums = np.zeros(200)
    for train, test in cv.split(X, y):
        base = GaussianNB().fit(X[train], y[train])
        sums[test] += base.predict_proba(X[test])[:, 1]
    assert_allclose(model.oof_scores_, sums / 3, rtol=1e-12)


@pytest.mark.parametrize("ensemble", [False, True])
def test_result_does_not_depend_on_n_jobs(ensemble):
    trees = RandomForestClassifier(5, random_state=0)
    model = CalibratedClassifier(trees, ensemble=ensemble, cv=3)
    alone = clone(model).fit(X, y)
    together = model.set_params(n_jobs=2).fit(X, y)
    assert_array_equal(together.oof_scores_, alone.oof_scores_)
    assert_array_equal(together.predict_proba(X), alone.predict_proba(X))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_calibrators_warn_whatever_n_jobs(n_jobs):
    model = CalibratedClassifier(dummy.DummyClassifier(), cv=2, n_jobs=n_jobs)
    with pytest.warns(CalibrationWarning, match="`scores` are all equal"):
        model.fit(X[:100], np.arange(100) % 2)
    assert_allclose(model.predict_proba(X)[:, 1], 0.5)


# --- metadata routing -------------------------------------------------------------


def test_weights_are_routed_as_requested():
    with config_context(enable_metadata_routing=True):
        model = CalibratedClassifier(GaussianNB())
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            model.fit(X, y, sample_weight=WEIGHTS)
        wanted, unwanted = (
            CalibratedClassifier(GaussianNB().set_fit_request(sample_weight=request))
            .fit(X, y, sample_weight=WEIGHTS)
            .predict_proba(X)
            for request in (True, False)
        )
        default = CalibratedClassifier().fit(X, y, sample_weight=WEIGHTS)
    plain = CalibratedClassifier(GaussianNB()).fit(X, y, WEIGHTS)
    assert_array_equal(wanted, plain.predict_proba(X))
    assert np.abs(unwanted - wanted).max() > 1e-3
    want = CalibratedClassifier().fit(X, y, WEIGHTS).predict_proba(X)
    assert_array_equal(default.predict_proba(X), want)


# --- containers -------------------------------------------------------------------


def test_data_frames_reach_the_classifier_with_their_names():
    frame = pd.DataFrame(X, columns=list("abcdef"), index=np.arange(200)[::-1] * 7)
    model = CalibratedClassifier(LogisticRegression(), cv=FOLDS).fit(frame, y)
    array = clone(model).fit(X, y)
    # Frames keep columns together, arrays rows: sums may differ in the last digit.
    assert_allclose(model.predict_proba(frame), array.predict_proba(X), rtol=1e-12)
    assert not hasattr(model.fit(X, y), "feature_names_in_")


def test_arrow_sparse_arrays_and_lists_give_what_arrays_give():
    pa = pytest.importorskip("pyarrow")
    whole = np.round(X)
    model = CalibratedClassifier(RidgeClassifier(solver="sparse_cg", tol=1e-12))
    expected = clone(model).fit(whole, y).predict_proba(whole)
    arrow = pa.table({str(j): column for j, column in enumerate(whole.T)})
    for table in (csr_array(whole), whole.tolist(), arrow):
        got = clone(model).fit(table, y).predict_proba(table)
        assert_allclose(got, expected, rtol=1e-8)


def test_tags_are_those_of_the_classifier():
    tags = utils.get_tags(CalibratedClassifier(HistGradientBoostingClassifier()))
    assert tags.input_tags.allow_nan
    assert not tags.input_tags.sparse
    assert tags.classifier_tags.multi_class
    assert utils.get_tags(CalibratedClassifier()).input_tags.sparse


# --- life of the object -----------------------------------------------------------


def test_refit_forgets():
    model = CalibratedClassifier(GaussianNB()).fit(X, y)
    model.set_params(ensemble=True).fit(X, y)
    assert not hasattr(model, "calibrator_")
    model.set_params(estimator=FrozenEstimator(GaussianNB().fit(X, y))).fit(X, y)
    assert not hasattr(model, "oof_scores_")


# --- refusals ---------------------------------------------------------------------


RIDGE = {"estimator": RidgeClassifier(), "response": "predict_proba"}
WRONG_SCALE = "`scale` of TemperatureCalibrator must be one of .* got 'real'"


@pytest.mark.parametrize(
    ("params", "match"),
    [
        (RIDGE, "`response` must be a method.*RidgeClassifier has 'decision_function'"),
        ({"calibrator": TemperatureCalibrator()}, WRONG_SCALE),
        ({"cv": [([0.5, 1.5], [2, 3])]}, r"`cv` must yield row numbers .* \[0.5, 1.5"),
        ({"cv": [(np.arange(200), [])]}, "`cv` must leave no test part empty, got"),
        ({"estimator": Constant([[0.2, 0.3, 0.5]])}, r"`estimator` must .*\(40, 3\)"),
        ({"estimator": Constant([0.0, np.nan])}, "`scores of Constant` must be finite"),
    ],
)
def test_parameters_refused(params, match):
    with pytest.raises(ValueError, match=match):
        CalibratedClassifier(**params).fit(X, y)
    with pytest.raises(TypeError, match=r"`cv` must be a number, .* got np.float64\(1"):
        CalibratedClassifier(cv=np.array([1.0, 2.0])).fit(X, y)


def test_a_scale_without_meaning_is_refused_before_any_fit():
    class Expensive(Recorder):
        fit = pytest.fail

    model = CalibratedClassifier(Expensive(), IdentityCalibrator())
    with pytest.raises(ValueError, match="`scale` of IdentityCalibrator"):
        model.fit(X, y)


def test_training_parts_need_both_classes():
    for k, words in ((2, "both classes in .* on class 1 only"), (4, "all .* class 0")):
        message = f"must leave {words}"
        with pytest.raises(ValueError, match=message):
            CalibratedClassifier(cv=KFold(k)).fit(X, np.arange(200) * k // 200)
    with pytest.raises(ValueError, match="got fold 0 that trains on no row"):
        CalibratedClassifier(cv=[(np.arange(0), np.arange(200))]).fit(X, y)


def test_frozen_classifiers_refused():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        CalibratedClassifier(FrozenEstimator(GaussianNB())).fit(X, y)
    one = FrozenEstimator(dummy.DummyClassifier().fit(X, np.zeros(200)))
    with pytest.raises(ValueError, match=r"fitted on two classes or more, got \[0.0"):
        CalibratedClassifier(one).fit(X, y)


def test_class_prior_is_that_of_the_rows_that_calibrators_saw():
    labels, weight = np.array(["no", "yes"])[y], np.where(y == 1, 3.0, 1.0)
    share = weight[y == 1].sum() / weight.sum()
    for ensemble in (False, True):
        model = CalibratedClassifier(ensemble=ensemble).fit(X, labels, weight)
        assert_allclose(model.class_prior_, [1.0 - share, share])
    frozen = FrozenEstimator(LogisticRegression().fit(X, labels))
    # Rows that no fold tests are not among them.
    folds = [(np.arange(60, 200), np.arange(60))]
    for model, n in (
        (CalibratedClassifier(frozen, "platt").fit(X[:130], labels[:130]), 130),
        (CalibratedClassifier(cv=folds, ensemble=True).fit(X, labels), 60),
    ):
        share = y[:n].mean()
        assert_allclose(model.class_prior_, [1.0 - share, share])
        assert model.calibrator_.base_rate_ == pytest.approx(share)


@pytest.mark.parametrize("ensemble", [False, True])
def test_one_bar_counts_all_fits(ensemble, capsys):
    calibrator = AutoCalibrator(n_folds=3, verbose=1)
    how = {"cv": 4, "ensemble": ensemble, "verbose": 1}
    model = CalibratedClassifier(GaussianNB(), calibrator, **how).fit(X, y)
    said = capsys.readouterr().err
    # Four classifiers, one of all rows, and a calibrator of three folds for each kept.
    total = 4 + 4 * 4 if ensemble else 5 + 4
    assert f"| {total}/{total} [" in said
    assert "folds" not in said
    model.set_params(verbose=0).fit(X, y)
    assert "folds of calibrators" in capsys.readouterr().err
