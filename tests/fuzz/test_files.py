"""Saved models damaged and forged: one named error, or a model; never a bomb."""

import copy
import time
import tracemalloc

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

from calibration import (
    BBQCalibrator,
    CalibratedClassifier,
    PlattCalibrator,
    StorageError,
)
from localexpert import JointForest, LocalExpertRegressor, SharedBoosting, load
from tests.calibration.storage.archives import (
    describe,
    find_nodes,
    put_together,
    take_apart,
    with_description,
)

SHARE = 0.13
pytestmark = pytest.mark.slow

# What a file of some tens of kB may take at most.
MOST_SECONDS = 300.0
MOST_BYTES = 100_000_000


def make_models():
    """Return small models of several kinds with rows to ask them about."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    quick = {"n_thresholds": 3, "cv": 2, "random_state": 0, "n_jobs": 1}
    shared = SharedBoosting(max_rounds=2, random_state=0)
    forest = JointForest(n_estimators=2, random_state=0)
    line = LinearRegression()
    trees = RandomForestClassifier(2, max_depth=2, random_state=0)
    regressors = [
        LocalExpertRegressor(strategy=shared, frame=None, **quick).fit(X, y),
        LocalExpertRegressor(strategy=forest, center=line, **quick).fit(X, y),
        LocalExpertRegressor(strategy=forest, **quick, frame=None).fit(X, y > 0.0),
    ]
    classifier = CalibratedClassifier(trees, BBQCalibrator(), cv=2).fit(X, y > 0.0)
    platt = PlattCalibrator(scale="real").fit(X[:, 0], y > 0.0)
    return [
        *(
            (one, lambda model: model.predict_quantiles(X, [0.1, 0.9]))
            for one in regressors
        ),
        (classifier, lambda model: model.predict_proba(X)),
        (platt, lambda model: model.predict(X[:, 0])),
    ]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Saved models: bytes, members, what to ask, and what they answer."""
    path, out = tmp_path_factory.mktemp("sound") / "model.zip", []
    for model, ask in make_models():
        model.save(path)
        out.append((path.read_bytes(), take_apart(path), ask, ask(model)))
    return out


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "model.zip"


def test_file(seed, sound, path):
    rng = np.random.default_rng(seed)
    content, members, ask, answers = sound[rng.integers(len(sound))]
    if seed % 2:
        path.write_bytes(damage(rng, bytearray(content)))
        model = load_or_refuse(path)
        if model is not None:
            np.testing.assert_array_equal(ask(model), answers)
    else:
        kinds = [forge_members, forge_arrays, forge_description, forge_description]
        put_together(path, kinds[rng.integers(len(kinds))](rng, dict(members)))
        load_or_refuse(path)


def load_or_refuse(path):
    """Return the model, or None where an error names the file, soon and in little."""
    tracemalloc.start()
    start = time.process_time()
    try:
        model = load(path)
    except StorageError as error:
        model, complaint = None, str(error)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert model is not None or str(path) in complaint
    assert time.process_time() - start < MOST_SECONDS
    assert peak < MOST_BYTES, f"{peak / 1e6:.0f} MB"
    return model


def damage(rng, content):
    """Return bytes that are cut, flipped, blanked, doubled or strange in places."""
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(len(content) + 1))
        end = place + int(rng.integers(1, 200))
        other = int(rng.integers(len(content) + 1))
        kind = rng.integers(6)
        if kind == 0:
            del content[place:]
        elif kind == 1:
            content[place:end] = bytes(byte ^ 255 for byte in content[place:end])
        elif kind == 2:
            content[place:end] = bytes(len(content[place:end]))
        elif kind == 3:
            content[place:place] = content[other : other + end - place]
        elif kind == 4:
            content[place:place] = rng.bytes(end - place)
        else:
            content[place : place + 1] = rng.bytes(1)
    return bytes(content)


def forge_members(rng, members):
    """Return members that are swapped, dropped, cut, doubled or noise."""
    names = sorted(members)
    one, other = rng.choice(names), rng.choice(names)
    kind = rng.integers(5)
    if kind == 0:
        members[one], members[other] = members[other], members[one]
    elif kind == 1:
        del members[one]
    elif kind == 2:
        members[one] = members[one][: int(rng.integers(len(members[one]) + 1))]
    elif kind == 3:
        members[f"{one}x"] = members[one]
    else:
        members[one] = rng.bytes(int(rng.integers(200)))
    return members


def forge_arrays(rng, members):
    """Return members of which an array has another header or other numbers."""
    arrays = [name for name in sorted(members) if members[name][:6] == b"\x93NUMPY"]
    if not arrays:
        return forge_members(rng, members)
    name = str(rng.choice(arrays))
    data = members[name]
    head = data.index(b"\n") + 1
    kind = rng.integers(4)
    if kind == 0:  # as many bytes of the header, other numbers and letters in it
        place = int(rng.integers(10, head - 1))
        swap = rng.choice(list(b"0123456789fiubOSVcM<>|,()' ")).tolist()
        members[name] = data[:place] + bytes([swap]) + data[place + 1 :]
    elif kind == 1:
        shape = rng.choice([b"(0,)", b"(9999999999,)", b"(-1,)", b"()", b"(2, 99999)"])
        start = data.index(b"(")
        end = data.index(b")") + 1
        more = max(0, end - start - len(shape))
        members[name] = data[:start] + shape + b" " * more + data[end:]
    elif kind == 2:
        hole = rng.choice([np.nan, np.inf, -1e300, 1e300, -1.0, 0.0])
        place = head + 8 * int(rng.integers(max(1, (len(data) - head) // 8)))
        members[name] = data[:place] + np.float64(hole).tobytes() + data[place + 8 :]
    else:
        members[name] = data[:head] + rng.bytes(len(data) - head)
    return members


def forge_description(rng, members):
    """Return members with nodes of the description changed, repeated or exchanged."""
    tree = copy.deepcopy(describe(members))
    for _ in range(int(rng.integers(1, 4))):
        nodes = list(find_nodes(tree))
        node = nodes[rng.integers(len(nodes))]
        donor = nodes[rng.integers(len(nodes))]
        key = rng.choice(sorted(node))
        kind = rng.integers(5)
        if kind == 0:
            node[key] = copy.deepcopy(donor)
        elif kind == 1 and key in donor:
            node[key] = copy.deepcopy(donor[key])
        elif kind == 2 and isinstance(node.get("content"), list):
            node["content"] = node["content"] * int(rng.integers(2, 2000))
        elif kind == 3:
            del node[key]
        else:
            junk = [
                None,
                True,
                -1,
                10**30,
                1e308,
                "",
                "os",
                "dict",
                [],
                {},
                [[]] * 9999,
            ]
            node[key] = junk[rng.integers(len(junk))]
    return with_description(members, tree)
