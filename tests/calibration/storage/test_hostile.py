"""Files made up with right checksums, or damaged: one error, and nothing is run."""

import copy
import io
import re
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibration import BBQCalibrator, CalibratedClassifier
from calibration.storage import StorageError, load
from tests.calibration.storage.archives import (
    SCHEMA,
    describe,
    find_nodes,
    put_together,
    take_apart,
    with_description,
)
from tests.calibration.storage.forged import (
    dict_node,
    json_node,
    list_node,
    node,
    stand_in,
    tuple_node,
)

RUN = []


def make_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = rng.normal(size=60) < X[:, 0]
    forest = RandomForestClassifier(2, max_depth=2, random_state=0)
    return CalibratedClassifier(forest, BBQCalibrator(), cv=2).fit(X, y), X


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A saved model: its path, bytes and members, rows, and what it says of them."""
    path = tmp_path_factory.mktemp("sound") / "model.zip"
    model, X = make_model()
    model.save(path)
    return path, path.read_bytes(), take_apart(path), X, model.predict_proba(X)


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "model.zip"


def load_or_refuse(path):
    """Return the model or the error, which names the file; anything else escapes."""
    try:
        return load(path)
    except StorageError as refusal:
        error = refusal
    assert str(path) in str(error)
    return error


@given(data=st.data())
def test_damage_is_told_or_harmless(data, sound, target):
    _, content, _, X, answers = sound
    damaged = bytearray(content)
    kind = data.draw(st.sampled_from(["cut", "flip", "zero", "insert"]))
    place = data.draw(st.integers(0, len(content) - 1))
    if kind == "cut":
        del damaged[place:]
    elif kind == "flip":
        damaged[place] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "zero":
        damaged[place : place + 64] = bytes(64)
    else:
        damaged[place:place] = data.draw(st.binary(min_size=1, max_size=8))
    target.write_bytes(damaged)
    loaded = load_or_refuse(target)
    if not isinstance(loaded, StorageError):  # a time stamp, or the like
        np.testing.assert_array_equal(loaded.predict_proba(X), answers)


@given(data=st.data())
def test_members_swapped_cut_and_renamed(data, sound, target):
    members = dict(sound[2])
    names = st.sampled_from(sorted(members))
    one, other = data.draw(names), data.draw(names)
    kind = data.draw(st.sampled_from(["swap", "drop", "cut", "noise"]))
    if kind == "swap":
        members[one], members[other] = members[other], members[one]
    elif kind == "drop":
        del members[one]
    elif kind == "cut":
        members[one] = members[one][: data.draw(st.integers(0, len(members[one])))]
    else:
        members[one] = data.draw(st.binary(max_size=200))
    put_together(target, members)
    load_or_refuse(target)


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**30),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(
        [
            "os",
            "system",
            "eval",
            "calibration.exceptions",
            "CalibrationWarning",
            "StandIn",
            "calibration.storage.stand_ins",
            "TypeNode",
            "ObjectNode",
            "MethodNode",
            "FunctionNode",
            "ConstructorFromReduceNode",
            "builtins",
            "dict",
            "__class__",
        ]
    ),
    st.just([]),
    st.just({}),
    st.builds(lambda n: {"__id__": n}, st.integers(-2, 300)),
)


def replace_somewhere(tree, data):
    """Put junk in a random place of a tree of lists and dicts."""
    while True:
        if isinstance(tree, dict) and tree:
            key = data.draw(st.sampled_from(sorted(tree)))
        elif isinstance(tree, list) and tree:
            key = data.draw(st.integers(0, len(tree) - 1))
        else:
            return
        if not isinstance(tree[key], dict | list) or data.draw(st.booleans()):
            tree[key] = data.draw(JUNK)
            return
        tree = tree[key]


@given(data=st.data())
def test_descriptions_that_are_made_up(data, sound, target):
    description = copy.deepcopy(describe(sound[2]))
    for _ in range(data.draw(st.integers(1, 3))):
        replace_somewhere(description, data)
    put_together(target, with_description(sound[2], description))
    load_or_refuse(target)


@given(data=st.data())
def test_nodes_that_are_made_up(data, sound, target):
    description = copy.deepcopy(describe(sound[2]))
    nodes = list(find_nodes(description))
    for _ in range(data.draw(st.integers(1, 3))):
        node = data.draw(st.sampled_from(nodes))
        node[data.draw(st.sampled_from(sorted(node)))] = data.draw(JUNK)
    put_together(target, with_description(sound[2], description))
    load_or_refuse(target)


@given(text=st.text(max_size=50))
@settings(max_examples=20)
def test_descriptions_that_are_no_json(text, sound, target):
    put_together(target, {**sound[2], SCHEMA: text.encode("utf-8")})
    assert isinstance(load_or_refuse(target), StorageError)


@pytest.mark.parametrize(
    "text",
    [b"[" * 100_000, b"1" * 10_000, b"\xff", b"[]", b"{}", b'{"protocol": true}'],
)
def test_json_of_bad_will(text, sound, target):
    put_together(target, {**sound[2], SCHEMA: text})
    with pytest.raises(StorageError, match=r"no sound JSON|of no protocol of skops"):
        load(target)


@pytest.mark.parametrize("protocol", [-1, 0, 1, 3, 99, "2", None, 2.5, True])
def test_protocols_of_skops_whose_nodes_are_others(protocol, sound, target):
    description = {**describe(sound[2]), "protocol": protocol}
    put_together(target, with_description(sound[2], description))
    with pytest.raises(StorageError, match="of no protocol of skops"):
        load(target)


def assert_refused(root, complaint, sound, target, extra=None):
    """Load a file whose model has a node in it, or is one."""
    inside = node(
        "ObjectNode",
        "calibration.binning.bbq.BBQCalibrator",
        99,
        content=dict_node(
            list_node(node("TypeNode", "builtins.str", 60), number=61), 62, x=root
        ),
    )
    members = {**sound[2], **(extra or {})}
    put_together(target, with_description(members, {**inside, "protocol": 2}))
    with pytest.raises(StorageError, match=complaint):
        load(target)
    put_together(target, with_description(members, {**root, "protocol": 2}))
    with pytest.raises(StorageError, match=rf"{complaint}|only models of calibration"):
        load(target)


def run(*arguments):
    RUN.append(arguments)


LOADERS = [
    "ObjectNode",
    "ConstructorFromReduceNode",
    "FunctionNode",
    "TypeNode",
    "NdArrayNode",
    "DictNode",
    "ListNode",
    "SetNode",
    "TupleNode",
    "RandomStateNode",
    "RandomGeneratorNode",
    "MaskedArrayNode",
    "DefaultDictNode",
    "SparseMatrixNode",
    "TreeNode",
    "LossNode",
    "QuantileForestNode",
    "BytesNode",
    "CachedNode",
    "NoSuchNode",
    "",
]
EVIL = [
    f"{__name__}.run",
    "os.system",
    "posix.system",
    "builtins.eval",
    "builtins.getattr",
    "builtins.__import__",
    "functools.partial",
    "subprocess.Popen",
    "operator.methodcaller",
    "antigravity.fly",
    "calibration.storage.model.save_model",
    "sklearn.datasets._base.load_files",
    "numpy.load",
    "numpy.f2py.run_main",
]


@pytest.mark.parametrize("loader", LOADERS)
def test_nothing_is_run_not_even_by_skops(loader, sound, target):
    one, other = (tuple_node(json_node('"true"', n), number=n + 1) for n in (50, 52))
    for name in EVIL:
        content = {"content": one, "type": "numpy", "file": "1.bin"}
        evil = node(loader, name, **content, __reduce__={"args": other})
        assert_refused(evil, f"{name.rpartition('.')[2]}.* not trusted", sound, target)
    assert RUN == []
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize(
    ("loader", "name", "content"),
    [
        ("MethodNode", "builtins.str", {"func": "format", "obj": json_node('"x"', 91)}),
        (
            "PartialNode",
            "functools.partial",
            {
                "func": node("FunctionNode", f"{__name__}.run", 2),
                "args": tuple_node(),
                "kwds": json_node("{}", 3),
                "namespace": json_node("null", 4),
            },
        ),
        ("OperatorFuncNode", "operator.methodcaller", {}),
        ("OperatorFuncNode", "operator.attrgetter", {}),
        ("FunctionNode", "numpy.save", {}),
        ("FunctionNode", "sklearn.utils._joblib.delayed", {}),
        ("FunctionNode", "sklearn.metrics._scorer.inspect", {}),
        ("SparseMatrixNode", "scipy.sparse._csr.csr_matrix", {}),
        ("QuantileForestNode", "quantile_forest.QuantileForest", {}),
        ("ObjectNode", "lightgbm.basic.Booster", {}),
        ("ObjectNode", "calibration.nothing.Nothing", {}),
        ("ObjectNode", "localexpert.cli.table.TableModel", {}),
        ("NdArrayNode", "calibration.binning.bbq.BBQCalibrator", {}),
        ("TupleNode", "calibration.binning.bbq.BBQCalibrator", {}),
        ("DictNode", "calibration.binning.bbq.BBQCalibrator", {}),
        ("TypeNode", "builtins.type", {}),
        ("ConstructorFromReduceNode", "calibration.binning.bbq.BBQCalibrator", {}),
        ("ConstructorFromReduceNode", "sklearn.svm._classes.SVC", {}),
        ("ConstructorFromReduceNode", "builtins.bytearray", {}),
    ],
)
def test_nodes_that_call_are_refused(loader, name, content, sound, target):
    evil = node(loader, name, content=content, attrs=tuple_node(number=95))
    assert_refused(evil, f"{name}.* not trusted", sound, target)
    assert RUN == []


@pytest.mark.parametrize(
    ("root", "complaint"),
    [
        (stand_in("system", json_node('"true"', 2)), "makes no sense"),
        (stand_in("__class__"), "makes no sense"),
        (stand_in("lightgbm", json_node('"x"', 2)), "makes no sense"),
        (stand_in("frozen", json_node("1", 2)), "makes no sense"),
        (stand_in("shaped", json_node("1", 2)), "makes no sense"),
        (stand_in("dtype", json_node('"no such"', 2)), "makes no sense"),
        # Round and round: a tuple and an object that hold themselves.
        (tuple_node({"__id__": 90}), "makes no sense"),
        (
            node(
                "ObjectNode",
                "calibration.binning.bbq.BBQCalibrator",
                1,
                content={"__id__": 1},
            ),
            "makes no sense",
        ),
        (tuple_node({"__id__": 55}), "makes no sense"),
        (tuple_node(json_node("1", 5), json_node("2", 5)), "two nodes 5"),
        (tuple_node({"__id__": 5, "more": 1}), "a node without a name"),
        (json_node("no json", 1), "makes no sense"),
        (json_node(7, 1), "makes no sense"),
        (list_node({"__id__": 1, "__loader__": None}), "a node without a name"),
        (
            dict_node(
                list_node(node("TypeNode", "builtins.object", 3)), a=tuple_node()
            ),
            "keys of the type builtins.object",
        ),
        (
            dict_node(
                list_node(node("TypeNode", "calibration.storage.stand_ins.StandIn", 3)),
                lightgbm=tuple_node(),
            ),
            "keys of the type calibration.storage",
        ),
        (dict_node(tuple_node({"__id__": 80}), a=list_node()), "type builtins.list"),
        (
            node(
                "RandomGeneratorNode",
                "numpy.random._generator.Generator",
                content={
                    "bit_generator": tuple_node(),
                    "seed_seq": dict_node(
                        list_node(), pool_size=json_node(str(10**9), 5)
                    ),
                },
            ),
            "a pool of",
        ),
    ],
)
def test_nodes_of_bad_will(root, complaint, sound, target):
    assert_refused(root, complaint, sound, target)


def test_nodes_that_stand_for_many_others_are_refused(sound, target):
    root = list_node(json_node("1", 1), number=100)
    for number in range(101, 140):
        root = list_node(root, {"__id__": number - 1}, number=number)
    assert_refused(root, r"bytes of memory \(1\.\d+e\+12 nodes\)", sound, target)


def test_what_is_no_model_is_not_loaded(sound, target):
    root = node("TypeNode", "calibration.binning.bbq.BBQCalibrator", protocol=2)
    put_together(target, with_description(sound[2], root))
    with pytest.raises(StorageError, match="only models of calibration"):
        load(target)


def npy_header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "data",
    [
        npy_header(header)
        for header in (
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}\n",
            b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n",
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}\n",
            b"{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}\n",
            b"{'descr': '<U0', 'fortran_order': False, 'shape': (9999999999,)}\n",
            b"__import__('os').system('true')\n",
            b"(" * 5000 + b"\n",
            b"",
        )
    ]
    # A pickle, a zip, and nothing: numpy would read the second.
    + [b"\x80\x04cos\nsystem\n", b"PK\x03\x04", b""],
)
@pytest.mark.parametrize("suffix", ["npy", "bin"])
def test_arrays_of_bad_will(data, suffix, sound, target):
    name = f"99.{suffix}"
    root = node("NdArrayNode", "numpy.ndarray", type="numpy", file=name)
    assert_refused(root, "an array", sound, target, {name: data})


@pytest.mark.parametrize("name", ["77.npy", "../77.npy", "", None, 7, ["x"]])
def test_members_that_are_not_there(name, sound, target):
    root = node("NdArrayNode", "numpy.ndarray", type="numpy", file=name)
    assert_refused(root, r"is missing|makes no sense", sound, target)


def test_a_class_that_has_moved_is_found_by_its_name(sound, target):
    description = describe(sound[2])
    for found in find_nodes(description):
        if found["__module__"].startswith("calibration."):
            found["__module__"] = "calibration.somewhere.else"
    put_together(target, with_description(sound[2], description))
    np.testing.assert_array_equal(load(target).predict_proba(sound[3]), sound[4])


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(2, random_state=0),
        HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5, random_state=0),
        GradientBoostingClassifier(n_estimators=2, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_trees_that_lead_nowhere_are_refused(estimator, tmp_path):
    _, X = make_model()
    path = tmp_path / "model.zip"
    CalibratedClassifier(estimator, cv=2).fit(X, X[:, 0] > 0).save(path)
    members = take_apart(path)
    broken = 0
    for name, data in members.items():
        array = np.load(io.BytesIO(data)) if name.endswith(".npy") else np.ones(1)
        for field in {"left_child", "left"} & set(array.dtype.names or ()):
            array[field][0] = 0  # round and round
            buffer = io.BytesIO()
            np.save(buffer, array)
            members[name] = buffer.getvalue()
            broken += 1
    assert broken
    put_together(path, members)
    with pytest.raises(StorageError, match="lead nowhere"):
        load(path)


def test_trees_whose_tables_do_not_fit_are_refused(sound, target):
    for key, content in (("node_count", "99999"), ("max_depth", '"deep"')):
        description = describe(sound[2])
        for found in find_nodes(description):
            if found["__loader__"] == "DictNode" and "node_count" in found["content"]:
                number = found["content"][key]["__id__"]
                found["content"][key] = json_node(content, 10**6 + number)
                break
        put_together(target, with_description(sound[2], description))
        with pytest.raises(StorageError, match=r"tables do not fit|makes no sense"):
            load(target)


@pytest.mark.parametrize("piped", [False, True])
def test_boosters_that_lead_nowhere_are_refused(piped, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    _, X = make_model()
    booster = lightgbm.LGBMClassifier(
        n_estimators=2, min_child_samples=5, verbosity=-1, n_jobs=1
    )
    estimator = make_pipeline(StandardScaler(), booster) if piped else booster
    path = tmp_path / "model.zip"
    model = CalibratedClassifier(estimator, cv=2).fit(X, X[:, 0] > 0)
    model.save(path)
    again = load(path)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    members = take_apart(path)
    changed = {
        name: re.sub(rb"leaf_value=\S+", b"leaf_value=-", data)
        for name, data in members.items()
    }
    assert changed != members
    put_together(path, changed)
    with pytest.raises(StorageError, match="LightGBM that is not sound"):
        load(path)


def test_the_archive_is_an_ordinary_zip(sound):
    with zipfile.ZipFile(sound[0]) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["model.skops"]
        inner = archive.read("model.skops")
    with zipfile.ZipFile(io.BytesIO(inner)) as archive:
        assert archive.testzip() is None
        assert archive.namelist()[0] == SCHEMA
