"""Files damaged, or forged with right checksums: one error, no crash, no bomb."""

import re
import time
import tracemalloc

import numpy as np
import pytest
import sklearn
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from calibration import (
    BBQCalibrator,
    CalibratedClassifier,
    CalibrationMap,
    PlattCalibrator,
)
from calibration.storage import StorageError, check_booster_text, load
from calibration.storage.codec import name_of
from tests.calibration.storage import archives

lgb = pytest.importorskip("lightgbm")

PLATT = name_of(PlattCalibrator)
# The hash of an integer is what is left by this.
PRIME = 2**61 - 1
MB = 2**20


def forge(*nodes):
    """Nodes of a calibrator with the last of these as an attribute."""
    n = len(nodes)
    return [*nodes, ["builtins.dict", "x", [n - 1]], ["object", PLATT, [n]]]


def refusal_of(path, nodes, arrays=b"", **options):
    """Return the message, the seconds and the memory that refusing takes."""
    archives.put_together(path, nodes, arrays)
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(StorageError, match=re.escape(str(path))) as refusal:
            load(path, **options)
        return str(refusal.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        assert time.process_time() - start < 60.0


def fit(estimator, path):
    """Save and load a classifier of these; return its nodes, arrays and rows."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=80), rng.integers(0, 4, size=80)])
    y = rng.normal(size=80) < X[:, 1] - 1.5
    model = CalibratedClassifier(estimator, BBQCalibrator(), cv=2).fit(X, y)
    model.save(path)
    again = load(path)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    return *archives.take_apart(path), X


def colliding(kind, *first):
    return [f"{kind}", *first, *(i * PRIME for i in range(2000))]


def tower(kind, n_levels, n_times=1):
    """Values in values: many, or deep."""
    return [[kind], *[[kind, *[[i]] * n_times] for i in range(n_levels)]]


def sets_of_copies(n_levels, n_alike=15):
    """Sets that are equal, but not one object, beside numbers of one hash."""
    nodes, level = [], [7] * n_alike
    for _ in range(n_levels):
        copies = []
        for _ in range(n_alike):
            start = len(nodes)
            nodes += [["builtins.tuple", one, j * PRIME] for j, one in enumerate(level)]
            pairs = [[start + j] for j in range(n_alike)]
            copies.append([len(nodes)])
            nodes.append(["builtins.frozenset", *pairs])
        level = copies
    return nodes


ZEROS, ZERO_BYTES = ["array", "<f8", "C", False, 0, MB // 8, 8], bytes(8 * MB)
BOOSTER = ["lightgbm.Booster", [9]]
GROWN = ["builtins.dict", "_fit_X", [0], "n_features_in_", 8, "_fit_method", "kd_tree"]
GROWN += ["leaf_size", 9, "effective_metric_", "euclidean"]
GROWN += ["effective_metric_params_", [1], "_sklearn_version", sklearn.__version__]
NEIGHBOURS = ["object", "sklearn.neighbors._unsupervised.NearestNeighbors"]
BOOSTING = ["builtins.dict", "estimators_", [1], "n_trees_per_iteration_", 9]
GB = "sklearn.ensemble._gb.GradientBoostingRegressor"
BOOSTING += ["_sklearn_version", sklearn.__version__]
MAP, STEPS = name_of(CalibrationMap), ["builtins.dict", "kind", "step", "knots", [1]]
UNSOUND = {
    # What would run, or be imported.
    "not trusted": {
        "os.system": forge(["function", "os.system"]),
        "a call": forge(["call", "os.system", None, "true"]),
        "eval": forge(["type", "builtins.eval"]),
        "a module": forge(["object", "this.Nothing", None]),
        "a class of numpy": forge(["call", "numpy.memmap", None]),
        "a maker": forge(["object", "sklearn.tree._tree.Tree", None]),
        "sklearn's data": forge(["function", "sklearn.datasets.load_files"]),
        "a class that is called": forge(["call", PLATT, None]),
    },
    "only models of calibration and localexpert": {
        "no model": [["builtins.list", 1, 2]],
        "a model of others": [["object", "sklearn.svm.SVC", None]],
    },
    # What stands for much.
    "bytes of memory": {
        "many lists": b"[" + b"[]," * (4 * MB) + b"0]",
        "many texts": b"[" + b'"ab",' * (4 * MB) + b"0]",
        "one array many times": forge(*[ZEROS] * 400),
        "copies of one array": forge(ZEROS, *[["builtins.bytes", [0]]] * 400),
        "copies of copies": forge(
            ZEROS, *[["builtins.list", *[[i]] * 99] for i in range(9)], BOOSTER
        ),
        "trees of one table of rows": forge(
            ZEROS, ["builtins.dict"], GROWN, *[[*NEIGHBOURS, [2]]] * 400
        ),
        "a field of one array many times": forge(
            ZEROS, ["builtins.list", *[[0]] * 40], STEPS, ["object", MAP, [2]]
        ),
        "few tuples as many": forge(*tower("builtins.tuple", 60, 2)),
        "few lists as many": forge(*tower("builtins.list", 60, 2)),
        "one long tuple many times": forge(
            ["builtins.tuple", *range(20_000)], ["builtins.list", *[[0]] * 20_000]
        ),
        "sets in sets": forge(*sets_of_copies(6)),
    },
    "nested too deeply": {"a tower": forge(*tower("builtins.tuple", 100_000))},
    # What is slow to find.
    "same hash": {
        "a set": forge(colliding("builtins.set")),
        "a frozenset": forge(colliding("builtins.frozenset")),
        "keys": forge(colliding("builtins.dict")),
        "an array of objects": forge(colliding("numpy.ndarray", False, 1, 2000)),
    },
    # Arrays and nodes that are none.
    "other bytes": {
        "too long": forge(["array", "<f8", "C", False, 0, MB + 1]),
        "beyond": forge(["array", "<f8", "C", False, 8, MB]),
        "wide items": forge(["array", "S99999999", "C", False, 0, 0]),
        "no items": forge(["array", "|V0", "C", False, 0, 9]),
    },
    "the shape .* and the dtype": {
        "a length below 0": forge(["array", "<f8", "C", False, 0, -1]),
        "a yes for a length": forge(["array", "<f8", "C", False, 0, True]),
        "objects": forge(["array", "|O", "C", False, 0, 1]),
    },
    "a node -?[01] that is none": {
        "itself": forge(["builtins.list", [0]]),
        "before the first": forge(["builtins.list", [-1]]),
    },
    "makes no sense": {
        "nested text": b"[" * 100_000,
        "a long integer": b"[" + b"9" * 5000 + b"]",
        "a file": forge(["builtins.open", "x"]),
        "bytes of a number": forge(["builtins.bytearray", 10**10]),
        "objects of axes": forge(["numpy.ndarray", False, -(10**10)]),
        "a dict for a node": forge(["builtins.list", {}]),
        "half a pair": forge(["builtins.dict", "a"]),
    },
    "shape .40,. for 9 sums": {
        "members that are long": forge(
            ZEROS, ["builtins.list", *[[0]] * 40], BOOSTING, ["object", GB, [2]]
        )
    },
    "whose place is none": {
        "a generator": forge(
            ["builtins.dict", "pos", 10**9],
            ["builtins.dict", "bit_generator", "MT19937", "state", [0]],
            ["numpy.RandomState", [1]],
        )
    },
}


@pytest.mark.parametrize(
    ("complaint", "kind"), [(said, kind) for said in UNSOUND for kind in UNSOUND[said]]
)
def test_forged_files_are_refused_soon_and_in_little(complaint, kind, tmp_path):
    PlattCalibrator().save(tmp_path / "first.zip")
    load(tmp_path / "first.zip")  # what is imported when first needed is no news
    nodes = UNSOUND[complaint][kind]
    message, memory = refusal_of(tmp_path / "bomb.zip", nodes, ZERO_BYTES)
    assert re.search(complaint, message), message
    assert memory < 300 * MB


@pytest.mark.parametrize("kind", ["builtins.set", "builtins.dict"])
def test_what_is_found_by_hashes_is_counted(kind, tmp_path):
    nodes = forge([kind, *range(10**6, 10**6 + 400_000)])
    message, memory = refusal_of(tmp_path / "x.zip", nodes, max_memory=60 * MB)
    assert "items in its description" in message
    assert memory < 100 * MB


def test_many_names_are_not_looked_up(tmp_path):
    names = [["type", f"calibration.x{i}.A"] for i in range(2000)]
    assert "more than 1000 types" in refusal_of(tmp_path / "x.zip", forge(*names))[0]


def change_arrays(nodes, arrays, is_meant, new):
    """Put others in the place of the arrays that are meant."""
    n_changed = 0
    for place, node in enumerate(nodes):
        if node[0] == "array":
            array = archives.read_array(node, arrays)
            if is_meant(array):
                nodes, arrays = archives.with_array(nodes, arrays, place, new(array))
                n_changed += 1
    assert n_changed
    return nodes, arrays


TREES = {
    "left_child": RandomForestClassifier(2, random_state=0),
    "left": HistGradientBoostingClassifier(
        max_iter=2, min_samples_leaf=5, random_state=0
    ),
    "right_child": GradientBoostingClassifier(n_estimators=2, random_state=0),
    "feature": RandomForestClassifier(2, random_state=0),
    "is_categorical": HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5),
}


@pytest.mark.parametrize("field", TREES)
def test_trees_that_lead_nowhere_are_refused(field, tmp_path):
    path = tmp_path / "model.zip"
    nodes, arrays, _ = fit(TREES[field], path)
    value = {"feature": 10**6, "is_categorical": 1}.get(field, 0)

    def forge_nodes(array):
        array[field][0] = value
        return array

    is_meant = lambda array: field in (array.dtype.names or ())  # noqa: E731
    forged = change_arrays(nodes, arrays, is_meant, forge_nodes)
    message, _ = refusal_of(path, *forged)
    assert re.search("lead nowhere|categories are none", message)


NEAR = KNeighborsClassifier(3, algorithm="brute")


def cut(array):
    return array[:, :1]


def lift(array):
    return array + 10**6


@pytest.mark.parametrize(
    ("estimator", "is_meant", "new", "complaint"),
    [
        (NEAR, lambda a: a.dtype == float and a.shape[1:] == (2,), cut, "rows of sha"),
        (NEAR, lambda a: a.dtype == int and a.size > 20, lift, "rows of classes"),
        (SVC(), lambda a: a.dtype == np.int32 and a.size == 2, lift, "do not fit"),
        (SVC(), lambda a: a.dtype == float and a.shape[1:] == (2,), cut, "do not fit"),
    ],
)
def test_tables_that_do_not_fit(estimator, is_meant, new, complaint, tmp_path):
    nodes, arrays, _ = fit(estimator, tmp_path / "model.zip")
    forged = change_arrays(nodes, arrays, is_meant, new)
    assert complaint in refusal_of(tmp_path / "model.zip", *forged)[0]


def test_trees_without_a_number_of_features_are_refused(tmp_path):
    nodes, arrays, _ = fit(DecisionTreeClassifier(), tmp_path / "model.zip")
    (tree,) = (node for node in nodes if "tree_" in node)
    tree[tree.index("n_features_in_")] = "other"
    message, _ = refusal_of(tmp_path / "model.zip", nodes, arrays)
    assert "makes no sense (KeyError: 'n_features_in_')" in message


def test_boosters_that_lead_nowhere_are_refused(tmp_path):
    booster = lgb.LGBMClassifier(n_estimators=2, verbosity=-1, n_jobs=1)
    nodes, arrays, _ = fit(booster, tmp_path / "model.zip")
    wrong = re.sub(rb"leaf_value=\S\S", b"leaf_value=--", arrays)
    assert wrong != arrays
    message, _ = refusal_of(tmp_path / "model.zip", nodes, wrong)
    assert "LightGBM that is not sound" in message


def test_the_limit_can_be_raised_and_lowered(tmp_path):
    model = PlattCalibrator().fit([0.1, 0.4, 0.3, 0.8], [0, 1, 0, 1])
    model.save(tmp_path / "model.zip")
    with pytest.raises(StorageError, match=r"more than 1000 bytes .* greater"):
        load(tmp_path / "model.zip", max_memory=1000)
    assert load(tmp_path / "model.zip", max_memory=1e8).predict([0.3]) > 0.0
    with pytest.raises(TypeError, match="`max_memory` must be a real number, got"):
        load(tmp_path / "model.zip", max_memory="much")


def test_whatever_is_saved_is_within_the_limit(tmp_path):
    """Zeros pack to nothing: they are not packed then, and others are."""
    model = PlattCalibrator()
    model.x = np.zeros(4 * MB)
    model.save(tmp_path / "model.zip")
    assert load(tmp_path / "model.zip").x.sum() == 0.0
    model.x = np.random.default_rng(0).integers(0, 4, 2 * MB)
    model.save(tmp_path / "model.zip")
    assert (tmp_path / "model.zip").stat().st_size < model.x.nbytes / 8


BASE = {"verbosity": -1, "num_threads": 1, "num_leaves": 8, "min_data_in_leaf": 5}


def train(**parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[:, 2] = rng.integers(0, 5, 300)
    y = X[:, 0]
    if "objective" in parameters:
        y = np.digitize(y, [-0.5, 0.5])[:300]
    data = lgb.Dataset(X, y, categorical_feature=[2])
    return lgb.train({**BASE, **parameters}, data, 3).model_to_string()


TEXT = train()


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"boosting": "dart"},
        {"min_data_in_leaf": 500},
        {"objective": "multiclass", "num_class": 3},
    ],
    ids=str,
)
def test_sound_models_pass(parameters):
    check_booster_text(train(**parameters))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"num_leaves=8", "num_leaves=9"),
        (r"left_child=1", "left_child=0"),
        (r"right_child=\d+", "right_child=77777"),
        (r"split_feature=\d", "split_feature=3"),
        (r"decision_type=\d", "decision_type=99"),
        (r"leaf_value=\S+", "leaf_value=zero"),
        (r"tree_sizes=\d+", "tree_sizes=99999"),
        (r"num_class=1", "num_class=900000000"),
        (r"end of trees", "no end"),
        (r"version=v4", "version=v9"),
        (r"is_linear=0", "is_linear=1"),
        (r"shrinkage=1", "unknown=1\rleft_child=77777\rshrinkage=1"),
    ],
)
def test_made_up_tables_are_refused(old, new):
    changed = re.sub(old, new, TEXT, count=1)
    assert changed != TEXT
    # Sizes that fit, so that the size is not what gives it away.
    gain = len(changed) - len(TEXT)
    first = int(re.search(r"tree_sizes=(\d+)", TEXT)[1])
    fitting = changed.replace(f"tree_sizes={first}", f"tree_sizes={first + gain}")
    for text in (changed, fitting):
        with pytest.raises(StorageError, match="LightGBM that is not sound"):
            check_booster_text(text)


@given(place=st.integers(0, len(TEXT) - 1), size=st.integers(1, 200))
def test_gaps_among_trees_are_told(place, size):
    trees = TEXT.index("Tree=0"), TEXT.index("end of trees")
    assume(trees[0] <= place and place + size <= trees[1])
    with pytest.raises(StorageError, match="not sound"):
        check_booster_text(TEXT[:place] + TEXT[place + size :])


@pytest.mark.parametrize("claim", ["num_class:300000", "num_class:"])
def test_objectives_of_other_numbers_of_classes_are_refused(claim):
    """LightGBM writes so many probabilities, whatever room there is."""
    text = train(objective="multiclass", num_class=3)
    changed = text.replace("multiclass num_class:3", f"multiclass {claim}")
    assert changed != text
    with pytest.raises(StorageError, match=r"not sound \(the classes of its objective"):
        check_booster_text(changed)
