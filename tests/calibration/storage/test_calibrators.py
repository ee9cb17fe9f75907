"""Every calibrator and kind of value, saved and loaded, is the same to the last bit."""

import datetime as dt
import warnings
from collections import OrderedDict, defaultdict
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn import compose, ensemble, neighbors, svm
from sklearn.base import BaseEstimator, clone
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.impute import KNNImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from calibration import (
    ACPCalibrator,
    AllPairsClassifier,
    AutoCalibrator,
    CalibratedClassifier,
    CalibrationMonitor,
    IsotonicCalibrator,
    LogisticCalibrator,
    MulticlassCalibrator,
    PlattCalibrator,
    SBACalibrator,
    ScoreCalibrator,
    VennAbersCalibrator,
)
from calibration.storage import StorageError, load
from tests.calibration.base.test_calibrators import EXPORTED, MULTICLASS, make, members

BASES = {MulticlassCalibrator, ScoreCalibrator}
# Those that are fitted on more than scores have tests of their own below, or beside
# those of what they do.
OTHERS = {ACPCalibrator, AllPairsClassifier, CalibratedClassifier, SBACalibrator}


SCORES = np.round(np.random.default_rng(0).uniform(size=400), 3)
HITS = (np.random.default_rng(1).uniform(size=400) < SCORES**2).astype(int)


def assert_same(first, second):
    """Compare whatever they hold, arrays bit for bit, at any depth."""
    assert type(first) is type(second)
    if isinstance(first, np.ndarray):
        assert first.dtype == second.dtype
        assert first.shape == second.shape
        assert first.flags.writeable == second.flags.writeable
        if first.dtype == object:
            for one, other in zip(first.ravel(), second.ravel(), strict=True):
                assert_same(one, other)
        else:
            assert first.tobytes() == second.tobytes()
    elif isinstance(first, dict):
        assert list(first) == list(second)
        for key in first:
            assert_same(first[key], second[key])
    elif isinstance(first, list | tuple):
        assert len(first) == len(second)
        for one, other in zip(first, second, strict=True):
            assert_same(one, other)
    elif type(first).__module__.startswith(("calibration", "localexpert")):
        assert_same(vars(first), vars(second))
    elif isinstance(first, bool | int | float | str | np.generic | None):
        assert repr(first) == repr(second)


def test_no_estimator_is_forgotten():
    found = set(members(BaseEstimator))
    assert found == {*EXPORTED, *MULTICLASS, *OTHERS, *BASES, CalibrationMonitor}
    assert all(hasattr(cls, "save") for cls in found - {CalibrationMonitor})


@pytest.mark.parametrize("cls", EXPORTED)
def test_calibrators(cls, reload):
    model = make(cls).fit(SCORES, HITS)
    again = reload(model)
    assert_same(model, again)
    grid = np.linspace(0.0, 1.0, 1001)
    assert model.predict(grid).tobytes() == again.predict(grid).tobytes()
    # It is as alive as before.
    other = again.fit(SCORES, 1 - HITS).predict(grid)
    assert (other.tobytes() != model.predict(grid).tobytes()) == cls._learns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(SCORES, np.ones(400))
    for other in (make(cls), model):
        assert_same(other, reload(other))


def test_what_is_fitted_on_more_than_scores(rng, reload):
    features = rng.normal(size=(400, 2))
    near = SBACalibrator().fit(features, SCORES, HITS)
    ends = np.column_stack([SCORES - 0.1, SCORES + 0.1]).clip(0.0, 1.0)
    intervals = ACPCalibrator().fit(SCORES, HITS)
    kind = np.array(["a", "b", "c"])[np.digitize(features[:, 0], [-0.5, 0.5])]
    pairs = AllPairsClassifier().fit(features, kind)
    for one, asked in (
        (near, lambda model: model.predict(features, SCORES)),
        (intervals, lambda model: model.predict(SCORES, ends)),
        (pairs, lambda model: model.predict_proba(features)),
        (VennAbersCalibrator().fit(SCORES, HITS), lambda m: m.predict_interval(SCORES)),
        (IsotonicCalibrator().fit(SCORES, HITS).map_, lambda m: m.interval(SCORES)),
        (AutoCalibrator().fit(SCORES, HITS), lambda model: repr(model.report_)),
    ):
        assert_array_equal(asked(one), asked(reload(one)))


X = np.random.default_rng(0).normal(size=(200, 3))
y = np.where(np.random.default_rng(1).normal(size=200) < X[:, 0], "yes", "no")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"calibrator": "auto", "estimator": LogisticRegression()},
        {"calibrator": VennAbersCalibrator(), "ensemble": True, "cv": 3},
        {"cv": StratifiedKFold(3, shuffle=True, random_state=0)},
        {"estimator": ensemble.RandomForestClassifier(5, random_state=0), "n_jobs": 1},
        {"estimator": make_pipeline(StandardScaler(), svm.SVC()), "cv": 2},
        {"estimator": ensemble.VotingClassifier([("a", GaussianNB())], voting="soft")},
        {"estimator": make_pipeline(StandardScaler(), CalibratedClassifier())},
        {
            "estimator": svm.SVC(),
            "response": "decision_function",
            "calibrator": LogisticCalibrator(scale="real"),
        },
    ],
    ids=lambda options: "-".join(options) or "default",
)
def test_classifiers(options, reload):
    model = CalibratedClassifier(**options).fit(X, y)
    again = reload(model)
    assert model.predict_proba(X).tobytes() == again.predict_proba(X).tobytes()
    assert_array_equal(model.predict(X), again.predict(X))
    assert_array_equal(model.oof_scores_, again.oof_scores_)
    assert repr(again) == repr(model)
    # One object in two places stays one.
    if not options.get("ensemble"):
        assert again.estimator_ is again.calibrated_pairs_[0].estimator


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_boosters_of_other_libraries(library, reload):
    module = pytest.importorskip(library)
    if library == "lightgbm":
        booster = module.LGBMClassifier(n_estimators=10, verbosity=-1, n_jobs=1)
    else:
        booster = module.XGBClassifier(n_estimators=10, n_jobs=1)
    model = CalibratedClassifier(booster, cv=3).fit(X, y == "yes")
    again = reload(model)
    assert model.predict_proba(X).tobytes() == again.predict_proba(X).tobytes()


@pytest.mark.parametrize(
    "booster",
    [
        ensemble.GradientBoostingClassifier(n_estimators=2, random_state=0),
        ensemble.HistGradientBoostingClassifier(max_iter=2, random_state=0),
    ],
)
@pytest.mark.parametrize("cuts", [[0.5], [-0.5, 0.5]])
def test_boosters_of_two_and_three_classes(booster, cuts, reload):
    y = np.digitize(X[:, 0], cuts)
    model = CalibratedClassifier(booster, cv=2).fit(X, y)
    assert_array_equal(reload(model).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    "kinds", [np.number, "number", ["float64", np.float32], np.dtype(float)]
)
def test_pipelines_that_choose_columns_by_their_types(kinds, reload):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": y})
    columns = compose.make_column_transformer(
        (StandardScaler(), compose.make_column_selector("^[ab]$", dtype_include=kinds)),
        (OneHotEncoder(), compose.make_column_selector(dtype_exclude="number")),
    )
    pipeline = make_pipeline(columns, LogisticRegression())
    model = CalibratedClassifier(pipeline).fit(frame, y)
    again, expected = reload(model), model.predict_proba(frame)
    assert_array_equal(again.predict_proba(frame), expected)
    assert_array_equal(clone(again).fit(frame, y).predict_proba(frame), expected)


@pytest.mark.parametrize("scoring", [None, "neg_log_loss", ["accuracy", "roc_auc"]])
def test_searches_and_selections_hold_functions_of_sklearn(scoring, reload):
    pipeline = make_pipeline(SelectKBest(f_classif, k=1), LogisticRegression())
    grid = {"logisticregression__C": [0.1, 1.0]}
    refit = scoring[0] if isinstance(scoring, list) else True
    search = GridSearchCV(pipeline, grid, scoring=scoring, refit=refit, cv=3)
    model = CalibratedClassifier(search, cv=3).fit(X, y)
    again = reload(model)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.estimator_.score(X, y) == model.estimator_.score(X, y)


@pytest.fixture
def reload_value(reload):
    """Save and load a value in a model."""

    def save_and_load(value, **options):
        model = PlattCalibrator()
        model.value_ = value
        return reload(model, **options).value_

    return save_and_load


def frozen(array):
    array.setflags(write=False)
    return array


OBJECTS = np.array([[None, "a"], [(1, 2), 2.5]], dtype=object)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        b"\x00bytes",
        bytearray(b"\x00bytes"),
        slice(1, None),
        defaultdict(dict, a={1: 2.0}),
        np.ma.MaskedArray([1.0, 2.0], [True, False]),
        frozenset({1, "a"}),
        {(1, "a"): None, None: 1, 2.5: [1], "b": {True: 0}},
        OrderedDict([(1, 1), (0, 2)]),
        {1: {2: {3: np.ones(2)}}},
        np.float32(0.1),
        np.str_("word"),
        np.datetime64("2020-01-01T10", "h"),
        np.timedelta64(3, "D"),
        np.dtype([("a", "i4"), ("b", "f8")]),
        np.float64,
        str,
        LogisticRegression,
        np.arange(6.0).reshape(2, 3).T,
        frozen(np.arange(3)),
        np.zeros((0, 3)),
        OBJECTS,
        frozen(OBJECTS.copy()),
        np.array([], dtype=object),
        dt.datetime(2020, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        dt.timedelta(days=1, microseconds=5),
        Decimal("1.50"),
        pd.Interval(*pd.to_datetime(["2020-01-01", "2021-06-01"])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_are_the_same_again(value, reload_value):
    again = reload_value(value)
    assert_same(value, again)
    assert repr(value) == repr(again)


def test_what_occurs_twice_is_one_object_again(reload_value):
    array, words = np.ones(3), {1: "a"}
    again = reload_value([array, words, (array, words), frozen(array.view())])
    assert again[2][0] is again[0]
    assert again[2][1] is again[1]
    assert not again[3].flags.writeable


def test_the_model_itself_is_left_alone(reload_value):
    inner = {(1, 2): np.float64(3.0)}
    estimator = LogisticRegression(C=np.float64(2.0))
    model = CalibratedClassifier(estimator)
    model.inner_ = inner
    assert reload_value(model).inner_ == inner
    assert model.inner_ is inner
    assert type(inner[1, 2]) is np.float64
    assert model.estimator is estimator
    assert type(estimator.C) is np.float64


class Hidden:
    """Found by its name; a file that holds it has to be trusted."""


def test_what_cannot_be_saved_is_named_with_its_place(reload_value, tmp_path):
    class Local:
        pass

    for value, complaint in (
        (lambda: None, r"model\.value_\['a'\]\[0\]` cannot be saved .*<lambda>"),
        (Local(), r"model\.value_\['a'\]\[0\]` cannot be saved .*Local"),
        (neighbors.KDTree(np.eye(3)), r"\[0\]` cannot be saved .*newObj would make it"),
        (pd.Index(["a"]), r"\[0\]` cannot be saved .*_new_Index would make it"),
        ((i for i in ()), r"model\.value_\['a'\]\[0\]` cannot be saved .*generator"),
        (
            FunctionTransformer(lambda x: x),
            r"model\.value_\['a'\]\[0\]\.func` cannot be saved .*<lambda>",
        ),
    ):
        with pytest.raises(StorageError, match=complaint):
            reload_value({"a": [value]})
    assert not list(tmp_path.iterdir())
    with pytest.raises(StorageError, match=r"Hidden, which are not trusted"):
        reload_value(Hidden())
    assert type(load(tmp_path / "model.zip", trusted=[Hidden]).value_) is Hidden


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "PCG64DXSM"])
def test_generators_have_the_same_children(kind, reload_value):
    generator = np.random.Generator(getattr(np.random, kind)(3))
    generator.spawn(2)
    state = np.random.RandomState(0)
    again, legacy = reload_value([generator, state])
    assert legacy.normal() == state.normal()
    assert again.spawn(1)[0].integers(1000) == generator.spawn(1)[0].integers(1000)
    assert again.integers(1000) == generator.integers(1000)


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "kd_tree", "metric": "manhattan", "leaf_size": 2},
        {"algorithm": "ball_tree", "p": 3, "metric_params": {"w": [1.0, 2.0]}},
        {"metric": "seuclidean", "metric_params": {"V": [1.0, 4.0]}},
        {"algorithm": "ball_tree", "metric": "haversine"},
    ],
)
def test_trees_of_neighbours_are_grown_again_alike(options, reload_value, rng):
    X = rng.normal(size=(50, 2))
    near = neighbors.NearestNeighbors(n_neighbors=3, **options).fit(X)
    again = reload_value(near)
    for one, other in zip(near.kneighbors(X), again.kneighbors(X), strict=True):
        assert_array_equal(one, other)


def test_an_imputer_by_neighbours_fills_the_same(reload_value, rng):
    X = np.where(rng.uniform(size=(50, 3)) < 0.2, np.nan, rng.normal(size=(50, 3)))
    imputer = KNNImputer(n_neighbors=3).fit(X)
    assert_array_equal(reload_value(imputer).transform(X), imputer.transform(X))
