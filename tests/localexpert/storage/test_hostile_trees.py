"""Tables of our own trees that a file made up: refused before a kernel follows them."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from calibration.storage import StorageError
from localexpert import ExpertCalibration
from localexpert.experts.leaf_laws import LeafLaws
from localexpert.experts.threshold_trees import ThresholdTrees
from localexpert.storage import load, save

THRESHOLD_TREES = ThresholdTrees(
    n_features=1,
    roots=np.array([0, -1]),
    feature=np.array([0, 1, 0]),
    kind=np.array([0, 0, 2]),
    cut=np.array([0.5, 1.0, 0.0]),
    missing_left=np.zeros(3, dtype=np.int64),
    left=np.array([1, -1, -3]),
    right=np.array([2, -2, -4]),
    first_word=np.array([0, 0, 1]),
    n_words=np.array([0, 0, 1]),
    category_words=np.array([5, 6]),
    leaf_value=np.linspace(-1.0, 1.0, 4),
)
LEAF_LAWS = LeafLaws(
    trees=[DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0]).tree_],
    first=np.array([0, 0, 2, 3]),
    step=np.array([0, 2, 1], dtype=np.int32),
    share=np.array([0.5, 0.5, 1.0], dtype=np.float32),
)
X = np.array([[0.0], [1.0], [np.nan], [1e9]])


def through_a_file(tree, folder):
    """Save and load a tree in a model."""
    model = ExpertCalibration()
    model.tree = tree
    save(model, folder / "model.zip")
    return load(folder / "model.zip").tree


def answer(tree):
    """Ask a tree."""
    if isinstance(tree, ThresholdTrees):
        return tree.sum(X, np.array([0.5, 1.5]))
    return tree.mean(X.astype(np.float32), 3)


@pytest.mark.parametrize(
    "tree", [THRESHOLD_TREES, LEAF_LAWS], ids=["thresholds", "leaves"]
)
def test_sound_trees_pass(tree, tmp_path):
    again = through_a_file(tree, tmp_path)
    np.testing.assert_array_equal(answer(again), answer(tree))


@pytest.mark.parametrize(
    ("tree", "name", "values"),
    [
        (THRESHOLD_TREES, "left", [0, -1, -3]),
        (THRESHOLD_TREES, "left", [3, -1, -3]),
        (THRESHOLD_TREES, "right", [2, -5, -4]),
        (THRESHOLD_TREES, "right", [2, -2, 1]),
        (THRESHOLD_TREES, "roots", [3]),
        (THRESHOLD_TREES, "roots", [-5]),
        (THRESHOLD_TREES, "feature", [0, 2, 0]),
        (THRESHOLD_TREES, "feature", [-1, 1, 0]),
        (THRESHOLD_TREES, "first_word", [0, 0, 2]),
        (THRESHOLD_TREES, "first_word", [0, 0, -1]),
        (THRESHOLD_TREES, "first_word", [0, 0, 2**63 - 1]),
        (THRESHOLD_TREES, "n_words", [0, 0, 9]),
        (THRESHOLD_TREES, "n_words", [0, 0, 2**63 - 1]),
        (LEAF_LAWS, "first", [0, 0, 2, 4]),
        (LEAF_LAWS, "first", [0, 0, 2, 1]),
        (LEAF_LAWS, "first", [-1, 0, 2, 3]),
        (LEAF_LAWS, "first", [0, 2, 3]),
        (LEAF_LAWS, "step", [0, -1, 1]),
        (LEAF_LAWS, "share", [0.5, np.nan, 1.0]),
    ],
)
def test_trees_that_lead_nowhere_are_refused(tree, name, values, tmp_path):
    forged = np.array(values, dtype=getattr(tree, name).dtype)
    with pytest.raises(StorageError, match=r"lead nowhere|leaves are none"):
        through_a_file(dataclasses.replace(tree, **{name: forged}), tmp_path)


@pytest.mark.parametrize(
    ("tree", "name"),
    [
        (tree, field.name)
        for tree in (THRESHOLD_TREES, LEAF_LAWS)
        for field in dataclasses.fields(tree)
        if field.name not in ("n_features", "roots", "trees")
    ],
)
def test_tables_that_are_too_short_are_refused(tree, name, tmp_path):
    short = dataclasses.replace(tree, **{name: getattr(tree, name)[:1]})
    with pytest.raises(StorageError, match=r"nowhere|leaves are none|makes no sense"):
        through_a_file(short, tmp_path)


@given(data=st.data())
def test_whatever_passes_can_be_asked(data, tmp_path_factory):
    tree = data.draw(st.sampled_from([THRESHOLD_TREES, LEAF_LAWS]))
    numbers = ("left", "right", "feature", "roots", "first", "step")
    names = [name for name in numbers if hasattr(tree, name)]
    name = data.draw(st.sampled_from(names))
    values = getattr(tree, name).copy()
    place = data.draw(st.integers(0, len(values) - 1))
    values[place] = data.draw(st.integers(-6, 6))
    forged = dataclasses.replace(tree, **{name: values})
    try:
        again = through_a_file(forged, tmp_path_factory.getbasetemp())
    except StorageError:
        return
    # How many columns and thresholds there are the trees do not know.
    if name not in ("feature", "step"):
        answer(again)
