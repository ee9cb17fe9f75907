"""Regressors on all roads, saved and loaded, forecast the same to the last bit."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

from calibration import CalibrationWarning, PlattCalibrator
from calibration.storage import StorageError
from localexpert import LocalExpertRegressor
from localexpert.experts import JointForest, SharedBoosting
from localexpert.storage import load

N = 300


def fast(**parameters):
    """A regressor that fits in about a second."""
    quick = {
        "center": LinearRegression(),
        "strategy": SharedBoosting(max_rounds=20, random_state=0),
        "n_thresholds": 5,
        "cv": 3,
        "random_state": 0,
    }
    return LocalExpertRegressor(**{**quick, **parameters})


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(N, 3))
    return X, 3.0 * X[:, 0] + (0.2 + X[:, 1]) * rng.gamma(4.0, size=N)


@pytest.fixture
def reload(tmp_path):
    """Save and load a model."""

    def save_and_load(model, **options):
        model.save(tmp_path / "model.zip")
        return load(tmp_path / "model.zip", **options)

    return save_and_load


def assert_same_laws(first, second):
    """Compare what one asks of distributions, bit for bit."""
    levels = np.array([0.001, 0.1, 0.5, 0.9, 0.999])
    grid = np.linspace(-3.0, 12.0, 31)
    answers = [
        (d.cdf_at(grid), d.quantiles(levels), d.mean(), d.var(), d.crps(1.0))
        for d in (first, second)
    ]
    for one, other in zip(*answers, strict=True):
        assert one.tobytes() == other.tobytes()


def assert_same_models(model, again, X):
    assert_same_laws(model.predict_dist(X), again.predict_dist(X))
    assert model.predict(X).tobytes() == again.predict(X).tobytes()
    assert_same_laws(model.oof_distribution_, again.oof_distribution_)
    assert set(vars(model)) == set(vars(again))
    assert repr(model) == repr(again)
    if hasattr(model, "report_"):
        assert model.report_.summary() == again.report_.summary()
        for name in ("thresholds_", "oof_probabilities_", "fitted_rows_"):
            assert getattr(model, name).tobytes() == getattr(again, name).tobytes()
        assert repr(model.expert_report_) == repr(again.expert_report_)


def check(model, rows, reload, **options):
    X, y = rows
    model.fit(X, y)
    assert_same_models(model, reload(model, **options), X)


def test_all_that_a_default_regressor_may_hold(rows, reload):
    X, y = rows
    # A step on top, so that boosting and forests are worth a weight in the stack.
    model = LocalExpertRegressor(n_thresholds=9, cv=3, random_state=0)
    model.fit(X, y + 4.0 * (X[:, 2] > 0.5))
    assert_same_models(model, reload(model), X)


@pytest.mark.parametrize(
    "center",
    [
        [DecisionTreeRegressor(max_depth=3), LinearRegression()],
        ExtraTreesRegressor(5, random_state=0),
        HistGradientBoostingRegressor(max_iter=5),
        make_pipeline(StandardScaler(), LinearRegression()),
    ],
    ids=lambda center: type(center).__name__,
)
def test_centres_of_other_libraries(center, rows, reload):
    check(fast(center=center), rows, reload)


@pytest.mark.parametrize(
    "options",
    [
        {"frame": None},
        {"frame": "center", "smoothing": "pchip"},
        {"frame": "standardize", "recalibrate": "pit"},
        {"recalibrate": "conformal", "calibrator": PlattCalibrator()},
        {"calibrator": "bagged_isotonic", "bounds": (-1.0, np.inf)},
        {"calibrator": "isotonic", "cv": KFold(3, shuffle=True, random_state=0)},
        {"thresholds": [2.0, 3.0, 4.0], "frame": "auto", "cv": 3},
        {"strategy": JointForest(n_estimators=10, random_state=0)},
        {"strategy": "independent"},
        {"strategy": "auto", "expert": LogisticRegression()},
        {"strategy": "auto", "expert": LinearSVC(), "calibrator": None},
    ],
    ids=lambda options: "-".join(f"{k}={v!r:.20}" for k, v in options.items()),
)
def test_options(options, rows, reload):
    check(fast(**options), rows, reload)


def test_a_stacker(rows, reload):
    check(fast(stacker=LinearRegression()), rows, reload)


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


@pytest.mark.parametrize("recalibrate", [None, "pit"])
def test_discrete_and_mixed_targets(recalibrate, rows, reload):
    X, y = rows
    check(fast(recalibrate=recalibrate), (X, np.round(y)), reload)
    with_zeros = np.where(X[:, 2] < 0.3, 0.0, y)
    check(fast(recalibrate=recalibrate), (X, with_zeros), reload)


def test_a_constant_target(rows, reload):
    X, _ = rows
    with pytest.warns(CalibrationWarning, match="in every row"):
        model = fast().fit(X, np.full(N, 2.0))
    assert_same_models(model, reload(model), X)


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
    number = make_column_transformer(("passthrough", ["number"]))
    tree = make_pipeline(number, DecisionTreeRegressor(max_depth=3))
    check(fast(center=tree), (table, y), reload)
    joint = fast(center=tree, strategy=JointForest(n_estimators=10, random_state=0))
    check(joint, (table, y), reload)
    check(fast(center=tree, frame=None), (pd.DataFrame(X), y), reload)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_boosters_as_experts(library, rows, reload):
    module = pytest.importorskip(library)
    if library == "lightgbm":
        expert = module.LGBMClassifier(n_estimators=8, verbosity=-1, n_jobs=1)
    else:
        expert = module.XGBClassifier(n_estimators=8, n_jobs=1)
    # Boosters alone, and inside a pipeline.
    check(fast(strategy="auto", expert=expert), rows, reload)
    piped = make_pipeline(StandardScaler(), expert)
    check(fast(strategy="auto", expert=piped, n_thresholds=3), rows, reload)


def test_functions_are_refused_and_named(tmp_path):
    path = tmp_path / "model.zip"
    path.write_bytes(b"as it was")
    model = fast(expert=lambda: None)
    with pytest.raises(
        StorageError, match=r"`model.expert` cannot be saved .*<lambda>"
    ):
        model.save(path)
    inside = make_pipeline(FunctionTransformer(lambda x: x), LinearRegression())
    place = r"`model\.center\.steps\[0\]\[1\]\.func`"
    with pytest.raises(StorageError, match=rf"{place} cannot be saved .*<lambda>"):
        fast(center=inside).save(path)
    assert path.read_bytes() == b"as it was"
    assert [p.name for p in tmp_path.iterdir()] == ["model.zip"]


def test_types_of_other_libraries_have_to_be_trusted(rows, tmp_path):
    X, y = rows
    path = tmp_path / "model.zip"
    squares = FunctionTransformer(np.testing.assert_equal)
    model = fast(center=make_pipeline(StandardScaler(), LinearRegression()))
    model.fit(X, y).save(path)
    load(path)
    model.set_params(center=squares).save(path)
    with pytest.raises(StorageError, match=r"trusted=\['numpy.testing.*assert_equal"):
        load(path)
    name = f"{np.testing.assert_equal.__module__}.assert_equal"
    assert load(path, trusted=[name]).center.func is np.testing.assert_equal
