"""Objects whose methods are not Python: tables that do not fit are refused."""

import io
import json
from contextlib import suppress

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from calibration import CalibratedClassifier, PlattCalibrator
from calibration.storage import StorageError, load
from calibration.storage.nodes import walk_nodes
from calibration.storage.trees import walk_objects
from tests.calibration.storage.archives import put_together, take_apart
from tests.calibration.storage.mutations import mutate

# What skops writes of histograms with categories, and knows of no one.
TRUSTED = ["functools.partial", "sklearn.utils.validation.check_array"]


def change(path, is_meant, new):
    """Put new values in the place of the arrays that are meant; return how many."""
    members, n_changed = take_apart(path), 0
    for name, data in members.items():
        array = np.load(io.BytesIO(data)) if name.endswith(".npy") else None
        if array is not None and is_meant(array):
            buffer = io.BytesIO()
            np.save(buffer, new(array))
            members[name] = buffer.getvalue()
            n_changed += 1
    put_together(path, members)
    return n_changed


def save_fit(estimator, path):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=80), rng.integers(0, 4, size=80)])
    y = rng.normal(size=80) < X[:, 1] - 1.5
    model = CalibratedClassifier(estimator, cv=2).fit(X, y)
    model.save(path)
    again = load(path, trusted=TRUSTED)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def with_field(name, value):
    def new(array):
        array = array.copy()
        array[name] = value
        return array

    return new


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
@pytest.mark.parametrize("field", ["idx_start", "idx_end", "is_leaf"])
def test_trees_of_neighbours(algorithm, field, tmp_path):
    path = tmp_path / "model.zip"
    save_fit(KNeighborsClassifier(3, algorithm=algorithm, leaf_size=5), path)
    value = 0 if field == "is_leaf" else 10**6
    assert change(
        path, lambda a: "idx_start" in (a.dtype.names or ()), with_field(field, value)
    )
    with pytest.raises(StorageError, match="neighbours whose nodes lead nowhere"):
        load(path)


@pytest.mark.parametrize(
    ("is_meant", "new"),
    [
        # Rows asked for distances, their classes.
        (lambda a: a.dtype == float and a.ndim == 2, lambda a: a[:, :1]),
        (lambda a: a.dtype == float and a.ndim == 2, lambda a: a[:0]),
        (lambda a: a.dtype == int and len(a) > 20, lambda a: a + 10**6),
    ],
)
def test_neighbours_by_brute_force(is_meant, new, tmp_path):
    path = tmp_path / "model.zip"
    save_fit(KNeighborsClassifier(3, algorithm="brute"), path)
    assert change(path, is_meant, new)
    with pytest.raises(StorageError, match=r"rows of (shape|classes)"):
        load(path)


@pytest.mark.parametrize(
    ("is_meant", "new"),
    [
        (lambda a: a.dtype == np.int32 and len(a) == 2, lambda a: a + 10**6),
        (lambda a: a.dtype == np.int32 and len(a) > 2, lambda a: a + 10**6),
        (lambda a: a.dtype == np.int32 and len(a) > 2, lambda a: a[:2]),
        (lambda a: a.ndim == 2 and a.shape[0] == 1, lambda a: a[:, :1]),
        (lambda a: a.ndim == 2 and a.shape[1] == 2, lambda a: a[:, :1]),
    ],
)
def test_support_vectors(is_meant, new, tmp_path):
    path = tmp_path / "model.zip"
    save_fit(SVC(), path)
    assert change(path, is_meant, new)
    with pytest.raises(StorageError, match="machine whose tables do not fit"):
        load(path)


@pytest.mark.parametrize("field", ["bitset_idx", "is_categorical"])
def test_categories_of_histograms(field, tmp_path):
    path = tmp_path / "model.zip"
    estimator = HistGradientBoostingClassifier(
        max_iter=3, min_samples_leaf=5, categorical_features=[1], random_state=0
    )
    save_fit(estimator, path)
    # All splits said to be on categories: those on numbers are not.
    value = 1 if field == "is_categorical" else 10**6
    assert change(
        path, lambda a: "bitset_idx" in (a.dtype.names or ()), with_field(field, value)
    )
    with pytest.raises(StorageError, match="categories are none"):
        load(path, trusted=TRUSTED)


def test_columns_of_boosted_trees(tmp_path):
    path = tmp_path / "model.zip"
    save_fit(GradientBoostingClassifier(n_estimators=2, random_state=0), path)
    model = load(path)
    for value in walk_objects(model):
        if isinstance(value, GradientBoostingClassifier):
            value.n_trees_per_iteration_ = 3
    model.save(path)
    with pytest.raises(StorageError, match=r"trees of the shape \(2, 1\) for 3 sums"):
        load(path)


@pytest.mark.parametrize("place", [-1, 625, 10**9])
def test_random_states_that_are_nowhere(place, tmp_path):
    model = PlattCalibrator()
    model.x = np.random.RandomState(0)
    state = model.x.get_state(legacy=False)
    state["state"]["pos"] = 617
    model.x.set_state(state)
    path = tmp_path / "model.zip"
    model.save(path)
    members = take_apart(path)
    name = next(name for name in members if b'"617"' in members[name])
    members[name] = members[name].replace(b'"617"', f'"{place}"'.encode())
    put_together(path, members)
    # Newer versions of numpy refuse it themselves.
    wrong = "a random generator whose place is none|state position must be"
    with pytest.raises(StorageError, match=wrong):
        load(path)


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "PCG64", "SFC64"])
def test_random_generators_come_back(kind, tmp_path):
    model = PlattCalibrator()
    model.x = np.random.Generator(getattr(np.random, kind)(3))
    model.save(tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    assert again.x.integers(1000) == model.x.integers(1000)


@pytest.mark.parametrize("name", ["KDTree", "EuclideanDistance64"])
def test_states_that_are_too_short_are_refused(name, tmp_path):
    path = tmp_path / "model.zip"
    save_fit(KNeighborsClassifier(3, algorithm="kd_tree", leaf_size=5), path)
    members = take_apart(path)
    root = json.loads(members["schema.json"])
    (node,) = (
        node
        for node in walk_nodes(root)
        if node.get("__class__") == name and node["__loader__"] == "ObjectNode"
    )
    node["content"]["content"].pop()
    members["schema.json"] = json.dumps(root).encode()
    put_together(path, members)
    with pytest.raises(StorageError, match=f"the state of a {name} is too short"):
        load(path)


@pytest.mark.parametrize("seed", range(5))
def test_mutated_models_are_refused_or_answer(seed, tmp_path):
    """A few of the many that the fuzzer tries."""
    path = tmp_path / "model.zip"
    save_fit(KNeighborsClassifier(3, algorithm="kd_tree", leaf_size=5), path)
    members = take_apart(path)
    X = np.array([[0.0, 0.0], [1e9, -1.0], [np.pi, 1e-300]])
    n_refused = 0
    for i in range(40):
        changed, _ = mutate(members, np.random.default_rng(100 * seed + i))
        put_together(path, changed)
        try:
            model = load(path)
        except StorageError:
            n_refused += 1
            continue
        with suppress(LookupError, TypeError, ValueError, AttributeError):
            model.predict_proba(X)
    assert 10 < n_refused < 40
