"""Small files that would take much memory or time: refused before they take it."""

import io
import json
import re
import tracemalloc
import zipfile

import numpy as np
import pytest

from calibration import IsotonicCalibrator, PlattCalibrator
from calibration.storage import StorageError, load
from calibration.storage.budget import default_limit
from tests.calibration.storage.archives import (
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

# The hash of an integer is what is left by this.
PRIME = 2**61 - 1
MANY = 2000
MB = 2**20


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    path = tmp_path_factory.mktemp("sound") / "model.zip"
    PlattCalibrator().fit([0.1, 0.4, 0.3, 0.8], [0, 1, 0, 1]).save(path)
    load(path)  # what is imported when it is first needed is no news
    return take_apart(path)


def array(number, file="99.npy"):
    return node("NdArrayNode", "numpy.ndarray", number, type="numpy", file=file)


def in_model(root):
    """A calibrator with a node as its attribute."""
    kinds = list_node(node("TypeNode", "builtins.str", 10**7), number=10**7 + 1)
    content = dict_node(kinds, 10**7 + 2, x=root)
    name = "calibration.logistic.piecewise.PlattCalibrator"
    return {**node("ObjectNode", name, 10**7 + 3, content=content), "protocol": 2}


def refusal_of(path, max_memory=None):
    """Return the message and the memory that refusing a file takes."""
    tracemalloc.start()
    try:
        return load_or_refuse(path, max_memory), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def load_or_refuse(path, max_memory=None):
    with pytest.raises(StorageError, match="bomb") as refusal:
        load(path, max_memory=max_memory)
    return str(refusal.value)


def np_bytes(values):
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def numbers(values, start=200):
    return [json_node(json.dumps(v), start + i) for i, v in enumerate(values)]


def colliding(n=MANY):
    """Integers that all have the hash 0."""
    many = numbers([i * PRIME for i in range(n)], start=10**5)
    return list_node(*many, number=90)


BOMBS = {
    "an array that many nodes list": list_node(*(array(i) for i in range(100, 200))),
    "an array that many values are made of": list_node(
        array(1),
        *(stand_in("shaped", {"__id__": 1}, number=i) for i in range(100, 200)),
    ),
    "a list of lists of lists": list_node(
        *(
            list_node(list_node(number=10), *[{"__id__": 10}] * 3000, number=11),
            *[{"__id__": 11}] * 3000,
        )
    ),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_what_is_made_is_counted(kind, members, tmp_path):
    files = {**members, "99.npy": np_bytes(np.zeros(MB))}
    put_together(tmp_path / "bomb.zip", with_description(files, in_model(BOMBS[kind])))
    assert (tmp_path / "bomb.zip").stat().st_size < 100_000
    message, memory = refusal_of(tmp_path / "bomb.zip")
    assert "bytes of memory" in message
    assert "`max_memory`" in message
    assert memory < 150 * MB


@pytest.mark.parametrize("text", [b"{},", b"[],", b'{"a":{}},', b'"ab",', b"1e9,"])
def test_descriptions_of_many_things(text, members, tmp_path):
    body = b"[" + text * (20 * MB // len(text)) + b"0]"
    put_together(tmp_path / "bomb.zip", {**members, "schema.json": body})
    message, memory = refusal_of(tmp_path / "bomb.zip")
    assert "bytes of memory" in message
    assert memory < 100 * MB


def test_archives_of_many_members(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        for i in range(30_000):
            archive.writestr(f"{i}.npy", b"")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.skops", inner.getvalue())
        archive.comment = b"calibration/model 1"
    message, memory = refusal_of(tmp_path / "bomb.zip", max_memory=40 * MB)
    assert "bytes of memory (members)" in message
    assert memory < 20 * MB


@pytest.mark.parametrize(
    ("root", "complaint"),
    [
        (node("SetNode", "builtins.set", 5, content=[colliding()]), "unhashable"),
        (
            {**colliding(), "__loader__": "SetNode", "__class__": "set"},
            "more than 100 items",
        ),
        (stand_in("set", colliding()), "have the same hash"),
        (stand_in("frozenset", colliding()), "have the same hash"),
        (
            stand_in(
                "pairs",
                json_node("false", 95),
                list_node(
                    *(
                        list_node(one, {"__id__": 95}, number=10**8 + i)
                        for i, one in enumerate(colliding()["content"])
                    )
                ),
            ),
            "have the same hash",
        ),
        (
            dict_node(
                list_node(node("TypeNode", "builtins.int", 3), *[{"__id__": 3}] * MANY),
                **{str(i * PRIME): json_node("0", 10**5 + i) for i in range(MANY)},
            ),
            "more than 100 keys",
        ),
        (
            node(
                "NdArrayNode",
                "numpy.ndarray",
                5,
                type="json",
                content=colliding()["content"],
                shape=tuple_node(json_node(str(MANY), 95), number=96),
            ),
            "have the same hash",
        ),
        (
            stand_in(
                "pandas",
                json_node('"Index"', 95),
                colliding(),
                json_node('"object"', 97),
            ),
            "have the same hash",
        ),
    ],
)
def test_hashes_that_are_made_to_collide(root, complaint, members, tmp_path):
    put_together(tmp_path / "bomb.zip", with_description(members, in_model(root)))
    assert complaint in load_or_refuse(tmp_path / "bomb.zip")


@pytest.mark.parametrize(
    "root",
    [
        stand_in("range", *numbers([0, 10**15, 1])),
        stand_in("frozenset", stand_in("range", *numbers([0, 10**15, 1]), number=7)),
        stand_in("pandas", json_node('"RangeIndex"', 9), *numbers([0, 10**15, 1])),
        node(
            "ConstructorFromReduceNode",
            "builtins.range",
            9,
            content=tuple_node(*numbers([0, 10**15, 1])),
        ),
        stand_in("fraction", *numbers(["1e999999999", 1])),
        stand_in("fraction", *numbers(["1e999999999"])),
        node(
            "ConstructorFromReduceNode",
            "fractions.Fraction",
            9,
            content=tuple_node(*numbers(["1e999999999"])),
        ),
        node("DTypeNode", "numpy.dtype", 5, content=array(6, "98.npy")),
    ],
)
def test_numbers_that_stand_for_much(root, members, tmp_path):
    files = {**members, "98.npy": np_bytes(np.empty(0, dtype="S100000000"))}
    put_together(tmp_path / "bomb.zip", with_description(files, in_model(root)))
    message, memory = refusal_of(tmp_path / "bomb.zip")
    assert "two nodes" not in message
    assert re.search("range of more|not trusted|makes no sense|an array of", message)
    assert memory < 50 * MB


@pytest.mark.parametrize("kind", ["Timestamp", "DatetimeTZDtype", "dtype"])
def test_no_zone_is_read_from_a_file(kind, members, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"TZif2" + bytes(39))
    zone = json.dumps(f"dateutil/{secret}")
    parts = {
        "Timestamp": [stand_in("scalar", array(7, "98.npy"), number=8)],
        "DatetimeTZDtype": [json_node('"ns"', 8)],
        "dtype": [],
    }[kind]
    if kind == "dtype":
        zone = json.dumps(f"datetime64[ns, dateutil/{secret}]")
    root = stand_in(
        "pandas", json_node(json.dumps(kind), 5), *parts, json_node(zone, 6)
    )
    files = {**members, "98.npy": np_bytes(np.array(0, dtype="M8[ns]"))}
    put_together(tmp_path / "zone.zip", with_description(files, in_model(root)))
    with pytest.raises(StorageError, match="a time zone of dateutil"):
        load(tmp_path / "zone.zip")


def test_the_limit_can_be_raised_and_lowered(tmp_path):
    scores = np.linspace(0.0, 1.0, 1000)
    model = IsotonicCalibrator().fit(scores, scores > 0.5)
    model.save(tmp_path / "model.zip")
    with pytest.raises(
        StorageError, match=r"more than 1000 bytes of memory .* greater"
    ):
        load(tmp_path / "model.zip", max_memory=1000)
    again = load(tmp_path / "model.zip", max_memory=1e8)
    np.testing.assert_array_equal(again.predict(scores), model.predict(scores))
    with pytest.raises(TypeError, match="`max_memory` must be a real number, got"):
        load(tmp_path / "model.zip", max_memory="much")


def test_whatever_is_saved_is_within_the_limit(tmp_path):
    """Zeros that pack to nothing, and equal arrays of which there is one copy."""
    model = PlattCalibrator().fit([0.1, 0.4, 0.3, 0.8], [0, 1, 0, 1])
    model.x = [np.zeros(MB // 2) for _ in range(90)]
    model.save(tmp_path / "model.zip")
    size = (tmp_path / "model.zip").stat().st_size
    assert size < 40 * MB
    assert default_limit(0) < 90 * 4 * MB
    assert load(tmp_path / "model.zip").x[89].sum() == 0.0


@pytest.mark.parametrize(
    "value",
    [{1, 2.5, "a"}, frozenset("abc"), range(5), {i: i for i in range(500)}],
    ids=lambda value: type(value).__name__,
)
def test_sets_and_ranges_come_back(value, tmp_path):
    model = PlattCalibrator()
    model.x = value
    model.save(tmp_path / "model.zip")
    again = load(tmp_path / "model.zip").x
    assert type(again) is type(value)
    assert again == value
