"""Files made up with right checksums, or damaged: one error, and nothing is run."""

import copy
import io
import json
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

from calibration import BBQCalibrator, CalibratedClassifier
from calibration.storage import StorageError, load
from tests.calibration.storage.archives import (
    describe,
    put_together,
    take_apart,
    with_description,
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
        ["os:system", "calibration.exceptions:CalibrationWarning", "plain", "made"]
    ),
    st.just([]),
    st.just({}),
    st.builds(lambda n: {"ref": n}, st.integers(-2, 300)),
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
def test_schemas_of_skops_that_are_made_up(data, sound, target):
    members = dict(sound[2])
    name = next(n for n in members if n.endswith(".json") and n.startswith("parts/"))
    schema = json.loads(members[name])
    replace_somewhere(schema, data)
    members[name] = json.dumps(schema).encode()
    put_together(target, members)
    load_or_refuse(target)


@given(text=st.text(max_size=50))
@settings(max_examples=20)
def test_descriptions_that_are_no_json(text, sound, target):
    put_together(target, {**sound[2], "description.json": text.encode("utf-8")})
    assert isinstance(load_or_refuse(target), StorageError)


@pytest.mark.parametrize(
    "text",
    [b"[" * 100_000, b'{"root": NaN, "nodes": []}', b"1" * 10_000, b"\xff", b"[]"],
)
def test_json_of_bad_will(text, sound, target):
    put_together(target, {**sound[2], "description.json": text})
    with pytest.raises(StorageError, match=r"no sound JSON|no description"):
        load(target)


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        ([[0, "object", "os:system", {}]], "'os:system'"),
        ([[0, "object", "builtins:eval", {}]], "'builtins:eval'"),
        (
            [[0, "made", "calibration.binning.bbq:BBQCalibrator", [1]]],
            "not made by a call",
        ),
        ([[0, "named", "calibration.binning.bbq:BBQCalibrator", {}]], "which is none"),
        (
            [[0, "class", "localexpert.regressor.regressor:LocalExpertRegressor"]],
            "only models",
        ),
        ([[0, "class", "calibration.nothing:Nothing"]], "does not know"),
        (
            [[0, "class", "calibration.binning.bbq:BBQCalibrator"]],
            "no model but an object",
        ),
        ([[0, "list", []]], "no model but an object of list"),
        ([[0, "tuple", [{"ref": 0}]]], "makes no sense"),
        ([[0, "list", []], [0, "list", []]], "two nodes 0"),
        ([[0, "objects", [10**9, 10**9], []]], "has 0 items"),
        ([[0, "array", "arrays/77.npy", True]], "is missing"),
        ([[0, "part", "pickle", {}, {}]], "not read here"),
        ([[0, "plain", "seeds", [1, None, 10**9, 0]]], "a pool of"),
        ([[0, "plain", "bits", ["system", {}, None]]], "makes no sense"),
        ([[0, "plain", "eval", ["1"]]], "makes no sense"),
        (
            [[0, "object", "calibration.binning.bbq:BBQCalibrator", {"__class__": 1}]],
            "sets the attribute",
        ),
    ],
)
def test_nodes_of_bad_will(nodes, complaint, sound, target):
    description = {"nodes": nodes, "root": {"ref": 0}}
    put_together(target, with_description(sound[2], description))
    with pytest.raises(StorageError, match=complaint):
        load(target)


def npy_header(text):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}\n",
        b"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}\n",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}\n",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}\n",
        b"{'descr': '<U0', 'fortran_order': False, 'shape': (9999999999,)}\n",
        b"__import__('os').system('true')\n",
        b"(" * 5000 + b"\n",
        b"",
    ],
)
@pytest.mark.parametrize("suffix", ["npy", "planes"])
def test_arrays_of_bad_will(header, suffix, sound, target):
    members = dict(sound[2])
    members["arrays/99." + suffix] = npy_header(header)
    nodes = [[0, "array", "arrays/99." + suffix, True]]
    put_together(target, with_description(members, {"nodes": nodes, "root": None}))
    with pytest.raises(StorageError, match="an array"):
        load(target)


def run(*arguments):
    RUN.append(arguments)


def test_nothing_is_run_not_even_by_skops(sound, target):
    members = dict(sound[2])
    name = next(n for n in members if n.endswith(".json") and n.startswith("parts/"))
    schema = json.loads(members[name])
    for loader in ("ConstructorFromReduceNode", "FunctionNode", "TypeNode"):
        for function in ((__name__, "run"), ("os", "system"), ("builtins", "eval")):
            evil = {
                "__module__": function[0],
                "__class__": function[1],
                "__loader__": loader,
                "content": {
                    "__class__": "str",
                    "__module__": "builtins",
                    "__loader__": "JsonNode",
                    "content": '["true"]',
                },
            }
            changed = {**schema, "content": evil, "__id__": 1}
            members[name] = json.dumps(changed).encode()
            put_together(target, members)
            with pytest.raises(StorageError, match=f"{function[1]}.* not trusted"):
                load(target)
    assert RUN == []


def test_a_pickle_inside_is_never_read(sound, target):
    members = dict(sound[2])
    members["arrays/99.npy"] = b"\x80\x04cos\nsystem\n"
    nodes = [[0, "array", "arrays/99.npy", True]]
    put_together(target, with_description(members, {"nodes": nodes, "root": None}))
    with pytest.raises(StorageError, match="no sound header"):
        load(target)


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


def test_the_archive_is_an_ordinary_zip(sound):
    with zipfile.ZipFile(sound[0]) as archive:
        assert archive.testzip() is None
        assert {"manifest.json", "description.json"} <= set(archive.namelist())
