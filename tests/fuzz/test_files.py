"""Saved models damaged and forged: one named error, or a model; never a bomb."""

import copy
import json
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
    put_together,
    read_array,
    take_apart,
    with_array,
)

SHARE = 0.3
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
    """Saved models: bytes, nodes and arrays, what to ask, and what they answer."""
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
        kinds = [forge_bytes, forge_arrays, forge_nodes, forge_nodes]
        forged = kinds[rng.integers(len(kinds))](rng, *copy.deepcopy(members))
        put_together(path, *forged)
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


def forge_bytes(rng, nodes, arrays):
    """Return arrays that are cut, shifted or noise, or a description that is."""
    place = int(rng.integers(len(arrays) + 1))
    kind = rng.integers(4)
    if kind == 0:
        return nodes, arrays[:place]
    if kind == 1:
        return nodes, arrays[place:] + arrays[:place]
    if kind == 2:
        return nodes, rng.bytes(len(arrays))
    text = json.dumps(nodes).encode()
    cut = int(rng.integers(len(text)))
    return text[:cut] + rng.bytes(3) + text[cut:], arrays


def forge_arrays(rng, nodes, arrays):
    """Return an array with other numbers, another shape or another type."""
    places = [i for i, node in enumerate(nodes) if node[0] == "array"]
    place = places[rng.integers(len(places))]
    array = read_array(nodes[place], arrays)
    kind = rng.integers(4)
    if kind == 0:
        nodes[place][1] = rng.choice(["<f8", "<i4", "|O", "<U9", "<M8[ns]", "|b1"])
    elif kind == 1:
        shapes = [[0], [9999999999], [-1], [], [2, 99999], [True]]
        nodes[place][5:] = shapes[rng.integers(len(shapes))]
    elif kind == 2:
        nodes, arrays = with_array(
            nodes, arrays, place, np.atleast_1d(array)[: array.size // 2]
        )
    else:
        held = array.view(np.uint8) if array.ndim and array.size else array
        data = np.frombuffer(rng.bytes(held.nbytes), np.uint8)
        start = nodes[place][4]
        arrays = arrays[:start] + data.tobytes() + arrays[start + len(data) :]
    return nodes, arrays


def forge_nodes(rng, nodes, arrays):
    """Return nodes that are changed, repeated or exchanged."""
    for _ in range(int(rng.integers(1, 4))):
        node = nodes[rng.integers(len(nodes))]
        donor = nodes[rng.integers(len(nodes))]
        place = int(rng.integers(len(node)))
        kind = rng.integers(5)
        if kind == 0:
            node[place] = donor[rng.integers(len(donor))]
        elif kind == 1:
            node[place] = [int(rng.integers(-1, len(nodes) + 1))]
        elif kind == 2:
            node[1:] = node[1:] * int(rng.integers(2, 2000))
        elif kind == 3:
            del node[place]
        else:
            node[place] = JUNK[rng.integers(len(JUNK))]
    return nodes, arrays


JUNK = [None, True, -1, 10**30, 1e308, "", "os", "dict", [], {}, [[]] * 9999]
