"""Files damaged, or forged with right checksums: one error, no crash, no bomb."""

import json
import re
import time
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from calibration import BBQCalibrator, CalibratedClassifier, PlattCalibrator
from calibration.storage import StorageError, load
from calibration.storage.names import name_of
from tests.calibration.storage.archives import (
    put_together,
    read_array,
    take_apart,
    with_array,
)

PLATT = name_of(PlattCalibrator)
# The hash of an integer is what is left by this.
PRIME = 2**61 - 1
MB = 2**20


def forge(*nodes):
    """Nodes of a calibrator with the last of these as an attribute."""
    n = len(nodes)
    return [*nodes, ["builtins.dict", "x", [n - 1]], ["object", PLATT, [n]]]


def table(values):
    """The node and the bytes of an array."""
    values = np.asarray(values)
    return ["array", values.dtype.str, "C", False, 0, *values.shape], values.tobytes()


def refusal_of(path, nodes, arrays=b"", **options):
    """Return the message, the seconds and the memory that refusing takes."""
    put_together(path, nodes, arrays)
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
    return *take_apart(path), X


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "model.zip"
    trees = RandomForestClassifier(2, max_depth=2, random_state=0)
    pieces = fit(trees, path)
    return path.read_bytes(), *pieces


def test_150_damaged_files_are_refused_or_harmless(sound, tmp_path):
    content, _, _, X = sound
    rng, path, n_refused = np.random.default_rng(0), tmp_path / "model.zip", 0
    path.write_bytes(content)
    answers = load(path).predict_proba(X)
    for i in range(150):
        damaged = bytearray(content)
        place = int(rng.integers(len(content)))
        if i % 4 == 0:
            del damaged[place:]
        elif i % 4 == 1:
            damaged[place] ^= 1 << int(rng.integers(8))
        elif i % 4 == 2:
            damaged[place : place + 64] = bytes(64)
        else:
            damaged[place:place] = rng.bytes(int(rng.integers(1, 9)))
        path.write_bytes(damaged)
        try:
            np.testing.assert_array_equal(load(path).predict_proba(X), answers)
        except StorageError:
            n_refused += 1
    # Some bits say nothing: a time stamp, or the like.
    assert n_refused >= 140


JUNK = [
    *(None, True, -1, 0, 10**30, 1e308, "", "os", "object", "call", "sklearn.Tree"),
    *([], {}, [0], [-1], [10**6], [True], [[0]], "builtins.eval", "<f8", "|O"),
]


def test_nodes_and_numbers_that_are_made_up(sound, tmp_path):
    """Whatever passes may answer anything, and must not crash."""
    _, nodes, arrays, X = sound
    rng, n_refused = np.random.default_rng(1), 0
    for _ in range(150):
        forged, data = [list(node) for node in nodes], bytearray(arrays)
        for _ in range(int(rng.integers(1, 4))):
            node = forged[rng.integers(len(forged))]
            if rng.random() < 0.5:
                node[rng.integers(len(node))] = JUNK[rng.integers(len(JUNK))]
            elif rng.random() < 0.5:
                place = int(rng.integers(len(data) - 8)) // 8 * 8
                wild = [0, -1, 2**31 - 1, 2**40, -(2**62), 7]
                new = np.int64(wild[rng.integers(len(wild))])
                data[place : place + 8] = new.tobytes()
            else:
                node[:] = forged[rng.integers(len(forged))]
        put_together(tmp_path / "model.zip", forged, bytes(data))
        try:
            model = load(tmp_path / "model.zip")
        except StorageError:
            n_refused += 1
            continue
        with suppress(LookupError, TypeError, ValueError, AttributeError):
            model.predict_proba(X)
    assert n_refused > 50


def colliding(kind, *first):
    return [f"{kind}", *first, *(i * PRIME for i in range(2000))]


ZEROS, ZERO_BYTES = table(np.zeros((MB // 8, 8)))
BOOSTER = ["lightgbm.Booster", [9]]
GROWN = ["builtins.dict", "_fit_X", [0], "n_features_in_", 8, "_fit_method", "kd_tree"]
GROWN += ["leaf_size", 9, "effective_metric_", "euclidean"]
GROWN += ["effective_metric_params_", [1], "_sklearn_version", sklearn.__version__]
NEIGHBOURS = ["object", "sklearn.neighbors._unsupervised.NearestNeighbors"]
UNSOUND = {
    # What would run, or be imported.
    "os.system": (forge(["function", "os.system"]), b"", "os.system.* not trusted"),
    "a call": (forge(["call", "os.system", None, "true"]), b"", "not trusted"),
    "eval": (forge(["type", "builtins.eval"]), b"", "not trusted"),
    "a module": (forge(["object", "this.Nothing", None]), b"", "not trusted"),
    "a class of numpy": (forge(["call", "numpy.memmap", None]), b"", "not trusted"),
    "a maker": (forge(["object", "sklearn.tree._tree.Tree", None]), b"", "not trusted"),
    "sklearn's data": (
        forge(["function", "sklearn.datasets.load_files"]),
        b"",
        "not trusted",
    ),
    "a class that is called": (forge(["call", PLATT, None]), b"", "not trusted"),
    "a file": (forge(["builtins.open", "x"]), b"", "makes no sense"),
    "no model": ([["builtins.list", 1, 2]], b"", "only models of calibration"),
    "a model of others": (
        [["object", "sklearn.svm.SVC", None]],
        b"",
        "only models of calibration",
    ),
    # What stands for much.
    "nested text": (b"[" * 100_000, b"", "makes no sense"),
    "a long integer": (b"[" + b"9" * 5000 + b"]", b"", "makes no sense"),
    "many lists": (b"[" + b"[]," * (4 * MB) + b"0]", b"", "bytes of memory"),
    "many texts": (b"[" + b'"ab",' * (4 * MB) + b"0]", b"", "bytes of memory"),
    "one array many times": (forge(*[ZEROS] * 400), ZERO_BYTES, "bytes of memory"),
    "copies of one array": (
        forge(ZEROS, *[["builtins.bytes", [0]]] * 400),
        ZERO_BYTES,
        "bytes of memory",
    ),
    "copies of copies": (
        forge(ZEROS, *[["builtins.list", *[[i]] * 99] for i in range(9)], BOOSTER),
        ZERO_BYTES,
        "bytes of memory",
    ),
    "trees of one table of rows": (
        forge(ZEROS, ["builtins.dict"], GROWN, *[[*NEIGHBOURS, [2]]] * 400),
        ZERO_BYTES,
        "bytes of memory",
    ),
    # What is slow to find.
    "a set": (forge(colliding("builtins.set")), b"", "same hash"),
    "a frozenset": (forge(colliding("builtins.frozenset")), b"", "same hash"),
    "keys": (forge(colliding("builtins.dict")), b"", "same hash"),
    "an array of objects": (
        forge(colliding("numpy.ndarray", False, 1, 2000)),
        b"",
        "same hash",
    ),
    # Arrays that are none.
    "too long": (forge(["array", "<f8", "C", False, 0, 9]), b"12345678", "other bytes"),
    "beyond": (forge(["array", "<f8", "C", False, 8, 1]), b"12345678", "other bytes"),
    "a length below 0": (forge(["array", "<f8", "C", False, 0, -1]), b"", "the shape"),
    "a yes for a length": (forge(["array", "<f8", "C", False, 0, True]), b"", "shape"),
    "objects": (forge(["array", "|O", "C", False, 0, 1]), b"12345678", "the dtype"),
    "wide items": (forge(["array", "S99999999", "C", False, 0, 0]), b"", "other bytes"),
    "no items": (forge(["array", "|V0", "C", False, 0, 9]), b"", "other bytes"),
    # Nodes that come later, or are none.
    "itself": (forge(["builtins.list", [0]]), b"", "a node 0 that is none"),
    "before the first": (forge(["builtins.list", [-1]]), b"", "a node -1 that is none"),
    "a dict for a node": (forge(["builtins.list", {}]), b"", "makes no sense"),
    "half a pair": (forge(["builtins.dict", "a"]), b"", "makes no sense"),
    # States of random numbers.
    "a generator": (
        forge(
            ["builtins.dict", "pos", 10**9],
            ["builtins.dict", "bit_generator", "MT19937", "state", [0]],
            ["numpy.RandomState", [1]],
        ),
        b"",
        "whose place is none",
    ),
}


@pytest.mark.parametrize("kind", UNSOUND)
def test_forged_files_are_refused_soon_and_in_little(kind, tmp_path):
    nodes, arrays, complaint = UNSOUND[kind]
    load_first = tmp_path / "first.zip"
    PlattCalibrator().save(load_first)
    load(load_first)  # what is imported when it is first needed is no news
    message, memory = refusal_of(tmp_path / "bomb.zip", nodes, arrays)
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


def find_tables(nodes, arrays, field):
    """Return places and arrays of tables that have a field."""
    for place, node in enumerate(nodes):
        if node[0] == "array" and not isinstance(node[1], str):
            array = read_array(node, arrays)
            if field in array.dtype.names:
                yield place, array


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
    for place, array in list(find_tables(nodes, arrays, field)):
        array[field][0] = value
        nodes, arrays = with_array(nodes, arrays, place, array)
    message, _ = refusal_of(path, nodes, arrays)
    assert re.search("lead nowhere|categories are none", message)


def change_arrays(nodes, arrays, is_meant, new):
    """Put others in the place of the arrays that are meant."""
    n_changed = 0
    for place, node in enumerate(nodes):
        if node[0] == "array":
            array = read_array(node, arrays)
            if is_meant(array):
                nodes, arrays = with_array(nodes, arrays, place, new(array))
                n_changed += 1
    assert n_changed
    return nodes, arrays


@pytest.mark.parametrize(
    ("estimator", "is_meant", "new", "complaint"),
    [
        (
            KNeighborsClassifier(3, algorithm="brute"),
            lambda a: a.dtype == float and a.shape[1:] == (2,),
            lambda a: a[:, :1],
            "rows of shape",
        ),
        (
            KNeighborsClassifier(3, algorithm="brute"),
            lambda a: a.dtype == int and a.size > 20,
            lambda a: a + 10**6,
            "rows of classes",
        ),
        (
            SVC(),
            lambda a: a.dtype == np.int32 and a.size == 2,
            lambda a: a + 10**6,
            "tables do not fit",
        ),
        (
            SVC(),
            lambda a: a.dtype == np.int32 and a.size > 2,
            lambda a: a[:2],
            "tables do not fit",
        ),
        (
            SVC(),
            lambda a: a.ndim == 2 and a.shape[1] == 2 and a.dtype == float,
            lambda a: a[:, :1],
            "tables do not fit",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    estimator, is_meant, new, complaint, tmp_path
):
    nodes, arrays, _ = fit(estimator, tmp_path / "model.zip")
    forged = change_arrays(nodes, arrays, is_meant, new)
    assert complaint in refusal_of(tmp_path / "model.zip", *forged)[0]


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
def test_trees_of_neighbours_are_grown_again(algorithm, tmp_path):
    nodes, *_ = fit(
        KNeighborsClassifier(3, algorithm=algorithm, leaf_size=5, p=3),
        tmp_path / "model.zip",
    )
    # No table of nodes is in the file, so none can be forged.
    assert not any(n[0] == "array" and not isinstance(n[1], str) for n in nodes)


@pytest.mark.parametrize("piped", [False, True])
def test_boosters_that_lead_nowhere_are_refused(piped, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.LGBMClassifier(
        n_estimators=2, min_child_samples=5, verbosity=-1, n_jobs=1
    )
    estimator = make_pipeline(StandardScaler(), booster) if piped else booster
    nodes, arrays, _ = fit(estimator, tmp_path / "model.zip")
    wrong = re.sub(rb"leaf_value=\S", b"leaf_value=-", arrays)
    wrong = re.sub(rb"leaf_value=-\S", b"leaf_value=--", wrong)
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
    """Zeros pack to nothing: they are not packed then."""
    model = PlattCalibrator()
    model.x = np.zeros(4 * MB)
    model.save(tmp_path / "model.zip")
    assert load(tmp_path / "model.zip").x.sum() == 0.0


def test_a_description_is_plain_json(sound):
    assert json.loads(json.dumps(sound[1])) == sound[1]
    assert sound[1][-1][:2] == [
        "object",
        "calibration.classifier.classifier.CalibratedClassifier",
    ]
