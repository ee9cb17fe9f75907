"""Whatever the packages define is saved, and forecasts the same to the last bit."""

import dataclasses
import datetime as dt
import importlib
import inspect
import pkgutil

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import compose, ensemble, preprocessing, svm
from sklearn.base import BaseEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

import calibration
import localexpert
from calibration import PlattCalibrator
from calibration.storage import StorageError, save
from calibration.storage.codec import find_named, name_of
from localexpert import ExpertCalibration, load
from localexpert.experts import JointForest
from localexpert.experts.joint_forest import LeafLaws
from localexpert.experts.shared_boosting import ThresholdTrees
from tests.regressors import fast

MODULES = [
    importlib.import_module(info.name)
    for package in (calibration, localexpert)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if "__main__" not in info.name
]
CLASSES = [
    value
    for module in MODULES
    for value in vars(module).values()
    if inspect.isclass(value) and value.__module__ == module.__name__
]


def is_default_made(cls):
    """Say whether it is an estimator that is saved and needs no arguments."""
    hidden = inspect.isabstract(cls) or hasattr(cls, "from_json")
    if not issubclass(cls, BaseEstimator) or hidden:
        return False
    parameters = inspect.signature(cls).parameters.values()
    return all(p.default is not p.empty for p in parameters)


DEFAULT_MADE = [cls for cls in CLASSES if is_default_made(cls)]


@pytest.mark.parametrize("cls", DEFAULT_MADE, ids=name_of)
def test_estimators_with_their_defaults(cls, tmp_path):
    save(cls(), tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    assert type(again) is cls
    assert repr(again) == repr(cls())


def test_no_class_hides_its_state():
    """Attributes are read and written; a class with ways of its own needs a look."""
    for cls in CLASSES:
        for method in ("__getstate__", "__setstate__", "__reduce_ex__", "__new__"):
            if issubclass(cls, tuple):
                continue
            assert method not in vars(cls), f"{cls.__name__}.{method}"


def test_classes_are_found_by_one_rule():
    for cls in CLASSES:
        assert find_named("object", name_of(cls)) is cls
    for name in ("localexpert.__main__.main", "calibration.nowhere.CalibrationMap"):
        assert find_named("object", name) is None
    # Where it is defined alone, and in no other package.
    assert find_named("object", "calibration.CalibrationMap") is None


def test_what_holds_itself_is_refused(tmp_path):
    stage = localexpert.ExpertCalibration()
    stage.a = [stage]
    with pytest.raises(StorageError, match=r"`model` is nested too deeply, or holds"):
        save(stage, tmp_path / "model.zip")


N = 300


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N, 3))
    y = 3.0 * X[:, 0] + (0.2 + X[:, 1]) * rng.gamma(4.0, size=N)
    # A step on top, so that boosting and forests are worth a weight in the stack.
    return X, y + 4.0 * (X[:, 2] > 0.5)


def told_by(model, X):
    """Return what one asks of models, arrays as bytes."""
    grid, levels = np.linspace(-3.0, 12.0, 31), [0.001, 0.1, 0.5, 0.9, 0.999]
    arrays = [model.predict(X)]
    for dist in (model.predict_dist(X), model.oof_distribution_):
        arrays += [dist.cdf_at(grid), dist.quantiles(levels), dist.crps(1.0)]
        arrays += [dist.mean(), dist.var()]
    arrays += [model.thresholds_, model.oof_probabilities_, model.fitted_rows_]
    texts = [*map(repr, (model, model.report_, model.expert_report_))]
    return [*(array.tobytes() for array in arrays), *texts, sorted(vars(model))]


def check(model, rows, reload):
    X, y = rows
    model.fit(X, y)
    assert told_by(reload(model), X) == told_by(model, X)


@pytest.mark.parametrize(
    "options",
    [
        {"center": "stack", "strategy": "auto", "cv": 2},
        {"frame": "center", "smoothing": "pchip"},
        {"frame": "standardize", "recalibrate": "pit"},
        {"recalibrate": "conformal", "calibrator": PlattCalibrator()},
        {"calibrator": "bagged_isotonic", "bounds": (-1.0, np.inf)},
        {"calibrator": "isotonic", "cv": KFold(3, shuffle=True, random_state=0)},
        {"strategy": JointForest(n_estimators=10, random_state=0)},
        {"strategy": "independent"},
        {"stacker": LinearRegression()},
        {"center": [DecisionTreeRegressor(max_depth=3), LinearRegression()]},
        {"center": ensemble.HistGradientBoostingRegressor(max_iter=5)},
        {"center": make_pipeline(preprocessing.StandardScaler(), LinearRegression())},
        {"strategy": "auto", "expert": svm.LinearSVC(), "calibrator": None},
    ],
    ids=lambda options: "-".join(f"{k}={v!r:.20}" for k, v in options.items()),
)
def test_options(options, rows, reload):
    check(fast(**options), rows, reload)


def test_laws_of_training_rows_are_made_anew_and_not_written(rows, reload):
    again = reload(fast(recalibrate="pit").fit(*rows))
    assert "oof_distribution_" not in vars(again)
    assert "oof_law_" not in vars(again.forecaster_)
    assert len(again.oof_distribution_) == N
    # Another fit of the same object has laws of its own.
    X, y = rows
    again.fit(X[:200], y[:200])
    assert len(again.oof_distribution_) == 200
    with pytest.raises(AttributeError, match="forecaster_"):
        fast().oof_distribution_  # noqa: B018


def test_a_row_more_takes_less_than_200_bytes(rng, tmp_path):
    sizes = []
    for n in (500, 4500):
        X = rng.uniform(size=(n, 3))
        y = 3.0 * X[:, 0] + (0.2 + X[:, 1]) * rng.gamma(4.0, size=n)
        strategy = JointForest(30, max_samples=200, random_state=0)
        model = fast(strategy=strategy, n_thresholds=25).fit(X, y)
        model.save(tmp_path / "model.zip")
        sizes.append((tmp_path / "model.zip").stat().st_size)
    assert sizes[1] - sizes[0] < 200 * 4000


def test_tables_with_categories(rows, rng, reload):
    X, y = rows
    days = pd.Series(pd.to_datetime(["2020-01-01", "2021-06-01", "2022-02-03"]))
    zoned = days.dt.tz_localize("Europe/Berlin")
    table = pd.DataFrame(
        {
            "number": X[:, 0],
            "word": rng.choice(["a", "b", "ü"], N),
            "size": pd.Categorical(rng.choice(["s", "l"], N), ["s", "l"], ordered=True),
            "day": pd.Categorical(days[rng.choice(3, N)]),
            "zoned": pd.Categorical(zoned[rng.choice(3, N)]),
            "date": pd.Categorical(
                [dt.date(2020, 1, int(d)) for d in rng.choice(3, N) + 1]
            ),
            "bin": pd.cut(X[:, 1], 3),
            "gap": pd.array(np.where(X[:, 2] < 0.2, None, 1), dtype="Int64"),
        }
    )
    number = compose.make_column_transformer(("passthrough", ["number"]))
    tree = make_pipeline(number, DecisionTreeRegressor(max_depth=3))
    check(fast(center=tree), (table, y), reload)
    joint = fast(center=tree, strategy=JointForest(n_estimators=10, random_state=0))
    check(joint, (table, y), reload)
    check(fast(center=tree, frame=None), (pd.DataFrame(X), y), reload)


@pytest.mark.parametrize(
    ("library", "name"), [("lightgbm", "LGBMClassifier"), ("xgboost", "XGBClassifier")]
)
def test_boosters_as_experts(library, name, rows, reload):
    booster = getattr(pytest.importorskip(library), name)
    expert = booster(n_estimators=8, verbosity=0, n_jobs=1)
    # Boosters alone, and inside a pipeline.
    check(fast(strategy="auto", expert=expert), rows, reload)
    piped = make_pipeline(preprocessing.StandardScaler(), expert)
    check(fast(strategy="auto", expert=piped, n_thresholds=3), rows, reload)


THRESHOLD_TREES = ThresholdTrees(
    n_features=1,
    roots=np.array([0, -1]),
    feature=np.array([0, 1, 0]),
    kind=np.array([0, 0, 2]),
    cut=np.array([0.5, 1.0, 0.0]),
    missing_left=np.zeros(3, dtype=np.int64),
    left=np.array([1, -1, -3]),
    right=np.array([2, -2, -4]),
    first_word=np.array([0, 0, 1]),
    n_words=np.array([0, 0, 1]),
    category_words=np.array([5, 6]),
    leaf_value=np.linspace(-1.0, 1.0, 4),
)
LEAF_LAWS = LeafLaws(
    trees=[DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0]).tree_],
    first=np.array([0, 0, 2, 3]),
    step=np.array([0, 2, 1], dtype=np.int32),
    share=np.array([0.5, 0.5, 1.0], dtype=np.float32),
)


def replaced(tree, **fields):
    change = getattr(type(tree), "_replace", dataclasses.replace)
    return change(tree, **fields)


def through_a_file(tree, folder):
    """Save and load a tree in a model."""
    model = ExpertCalibration()
    model.tree = tree
    save(model, folder / "model.zip")
    return load(folder / "model.zip").tree


def answer(tree):
    """Ask a tree."""
    X = np.array([[0.0], [1.0], [np.nan], [1e9]])
    if isinstance(tree, ThresholdTrees):
        return tree.sum(X, np.array([0.5, 1.5]))
    return tree.mean(X.astype(np.float32), 3)


@pytest.mark.parametrize(
    ("tree", "name", "values"),
    [
        (THRESHOLD_TREES, "left", [0, -1, -3]),
        (THRESHOLD_TREES, "right", [2, -5, -4]),
        (THRESHOLD_TREES, "roots", [3]),
        (THRESHOLD_TREES, "feature", [0, 2, 0]),
        (THRESHOLD_TREES, "first_word", [0, 0, 2**63 - 1]),
        (THRESHOLD_TREES, "n_words", [0, 0, 2**63 - 1]),
        (LEAF_LAWS, "first", [0, 0, 2, 4]),
        (LEAF_LAWS, "step", [0, -1, 1]),
        (LEAF_LAWS, "share", [0.5, np.nan, 1.0]),
        # Too short.
        *((THRESHOLD_TREES, name, None) for name in ThresholdTrees._fields[2:]),
        *((LEAF_LAWS, name, None) for name in ("first", "step", "share")),
    ],
)
def test_trees_that_lead_nowhere_are_refused(tree, name, values, tmp_path):
    own = getattr(tree, name)
    forged = own[:1] if values is None else np.array(values, dtype=own.dtype)
    plain, shadowed = (replaced(tree, **{name: forged}) for _ in range(2))
    # No attribute stands in for a check.
    object.__setattr__(shadowed, "_check_saved", dict)
    for wrong in (plain, shadowed):
        with pytest.raises(StorageError, match=r"nowhere|are none|makes no sense"):
            through_a_file(wrong, tmp_path)


@given(data=st.data())
def test_whatever_passes_can_be_asked(data, tmp_path_factory):
    tree = data.draw(st.sampled_from([THRESHOLD_TREES, LEAF_LAWS]))
    numbers = ("left", "right", "feature", "roots", "first", "step")
    names = [name for name in numbers if hasattr(tree, name)]
    name = data.draw(st.sampled_from(names))
    values = getattr(tree, name).copy()
    place = data.draw(st.integers(0, len(values) - 1))
    values[place] = data.draw(st.integers(-6, 6))
    forged = replaced(tree, **{name: values})
    try:
        again = through_a_file(forged, tmp_path_factory.getbasetemp())
    except StorageError:
        return
    # How many columns and thresholds there are the trees do not know.
    if name not in ("feature", "step"):
        answer(again)
