"""Values of every kind that is not all in its attributes: the same again."""

import datetime as dt
from collections import OrderedDict, defaultdict
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KDTree, NearestNeighbors
from sklearn.preprocessing import FunctionTransformer

from calibration import CalibratedClassifier, PlattCalibrator
from calibration.storage import StorageError, load
from tests.calibration.storage.test_calibrators import assert_same


@pytest.fixture
def reload(tmp_path):
    """Save and load a value in a model."""

    def save_and_load(value):
        model = PlattCalibrator()
        model.value_ = value
        model.save(tmp_path / "model.zip")
        return load(tmp_path / "model.zip").value_

    return save_and_load


def frozen(array):
    array.setflags(write=False)
    return array


OBJECTS = np.array([[None, "a"], [(1, 2), 2.5]], dtype=object)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        b"\x00bytes",
        bytearray(b"\x00bytes"),
        slice(1, None),
        defaultdict(dict, a={1: 2.0}),
        np.ma.MaskedArray([1.0, 2.0], [True, False]),
        frozenset({1, "a"}),
        {(1, "a"): None, None: 1, 2.5: [1], "b": {True: 0}},
        OrderedDict([(1, 1), (0, 2)]),
        {1: {2: {3: np.ones(2)}}},
        np.float32(0.1),
        np.str_("word"),
        np.datetime64("2020-01-01T10", "h"),
        np.timedelta64(3, "D"),
        np.dtype([("a", "i4"), ("b", "f8")]),
        np.float64,
        str,
        LogisticRegression,
        np.arange(6.0).reshape(2, 3).T,
        frozen(np.arange(3)),
        np.zeros((0, 3)),
        OBJECTS,
        frozen(OBJECTS.copy()),
        np.array([], dtype=object),
        dt.datetime(2020, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        dt.timedelta(days=1, microseconds=5),
        Decimal("1.50"),
        pd.Interval(*pd.to_datetime(["2020-01-01", "2021-06-01"])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_are_the_same_again(value, reload):
    again = reload(value)
    assert_same(value, again)
    assert repr(value) == repr(again)


def test_what_occurs_twice_is_one_object_again(reload):
    array, words = np.ones(3), {1: "a"}
    again = reload([array, words, (array, words), frozen(array.view())])
    assert again[2][0] is again[0]
    assert again[2][1] is again[1]
    assert not again[3].flags.writeable


def test_the_model_itself_is_left_alone(reload):
    inner = {(1, 2): np.float64(3.0)}
    estimator = LogisticRegression(C=np.float64(2.0))
    model = CalibratedClassifier(estimator)
    model.inner_ = inner
    assert reload(model).inner_ == inner
    assert model.inner_ is inner
    assert type(inner[1, 2]) is np.float64
    assert model.estimator is estimator
    assert type(estimator.C) is np.float64


class Hidden:
    """Found by its name; a file that holds it has to be trusted."""


def test_what_cannot_be_saved_is_named_with_its_place(reload, tmp_path):
    class Local:
        pass

    for value, complaint in (
        (lambda: None, r"model\.value_\['a'\]\[0\]` cannot be saved .*<lambda>"),
        (Local(), r"model\.value_\['a'\]\[0\]` cannot be saved .*Local"),
        (KDTree(np.eye(3)), r"\[0\]` cannot be saved .*newObj would make it"),
        (pd.Index(["a"]), r"\[0\]` cannot be saved .*_new_Index would make it"),
        ((i for i in ()), r"model\.value_\['a'\]\[0\]` cannot be saved .*generator"),
        (
            FunctionTransformer(lambda x: x),
            r"model\.value_\['a'\]\[0\]\.func` cannot be saved .*<lambda>",
        ),
    ):
        with pytest.raises(StorageError, match=complaint):
            reload({"a": [value]})
    assert not list(tmp_path.iterdir())
    with pytest.raises(StorageError, match=r"Hidden, which are not trusted"):
        reload(Hidden())
    assert type(load(tmp_path / "model.zip", trusted=[Hidden]).value_) is Hidden


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "PCG64DXSM"])
def test_generators_have_the_same_children(kind, reload):
    generator = np.random.Generator(getattr(np.random, kind)(3))
    generator.spawn(2)
    state = np.random.RandomState(0)
    again, legacy = reload([generator, state])
    assert legacy.normal() == state.normal()
    assert again.spawn(1)[0].integers(1000) == generator.spawn(1)[0].integers(1000)
    assert again.integers(1000) == generator.integers(1000)


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "kd_tree", "metric": "manhattan", "leaf_size": 2},
        {"algorithm": "ball_tree", "p": 3, "metric_params": {"w": [1.0, 2.0]}},
        {"metric": "seuclidean", "metric_params": {"V": [1.0, 4.0]}},
        {"algorithm": "ball_tree", "metric": "haversine"},
    ],
)
def test_trees_of_neighbours_are_grown_again_and_answer_the_same(options, reload, rng):
    X = rng.normal(size=(50, 2))
    near = NearestNeighbors(n_neighbors=3, **options).fit(X)
    for one, other in zip(near.kneighbors(X), reload(near).kneighbors(X), strict=True):
        np.testing.assert_array_equal(one, other)
