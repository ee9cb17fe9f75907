"""Saved models damaged and forged: one named error, or a model; never a bomb."""

import copy
import json
import time
import tracemalloc

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

import calibration
from localexpert import JointForest, LocalExpertRegressor, SharedBoosting, load
from tests.calibration.storage.archives import put_together, take_apart

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
    classifier = calibration.CalibratedClassifier(
        trees, calibration.BBQCalibrator(), cv=2
    ).fit(X, y > 0.0)
    platt = calibration.PlattCalibrator(scale="real").fit(X[:, 0], y > 0.0)
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
    content, (nodes, arrays), ask, answers = sound[rng.integers(len(sound))]
    if seed % 2:
        path.write_bytes(damage(rng, content))
        model = load_or_refuse(path)
        if model is not None:
            np.testing.assert_array_equal(ask(model), answers)
        return
    kind = rng.integers(4)
    if kind == 0:
        nodes = damage(rng, json.dumps(nodes).encode())
    elif kind == 1:
        arrays = damage(rng, arrays)
    else:
        nodes = forge(rng, copy.deepcopy(nodes))
    put_together(path, nodes, arrays)
    load_or_refuse(path)


def load_or_refuse(path):
    """Return the model, or None where an error names the file, soon and in little."""
    tracemalloc.start()
    start = time.process_time()
    try:
        model = load(path)
    except calibration.StorageError as error:
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
    content = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        place, other = rng.integers(len(content) + 1, size=2).tolist()
        end = place + int(rng.integers(1, 200))
        part = content[place:end]
        news = (
            bytes(byte ^ 255 for byte in part),
            bytes(len(part)),
            part + content[other : other + len(part)],
            rng.bytes(1) + part,
            rng.choice([-1, 2**31 - 1, -(2**62)]).tobytes(),
        )
        if rng.uniform() < 0.2:
            del content[place:]
        else:
            content[place:end] = news[rng.integers(len(news))]
    return bytes(content)


def forge(rng, nodes):
    """Return nodes that are changed, repeated or exchanged."""
    for _ in range(int(rng.integers(1, 4))):
        node, donor = (nodes[rng.integers(len(nodes))] for _ in range(2))
        news = (
            donor[rng.integers(len(donor))],
            [int(rng.integers(-1, len(nodes) + 1))],
            JUNK[rng.integers(len(JUNK))],
        )
        if rng.uniform() < 0.2:
            node[1:] = node[1:] * int(rng.integers(2000))
        else:
            node[rng.integers(len(node))] = news[rng.integers(len(news))]
    return nodes


JUNK = [None, True, -1, 10**30, 1e308, "", "os", "dict", "|O", [], {}, [[]] * 9999]
