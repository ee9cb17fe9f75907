"""Models of LightGBM as text: sound ones pass, all others are told before it reads."""

import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from calibration.storage import StorageError, check_booster_text

lgb = pytest.importorskip("lightgbm")

BASE = {"verbosity": -1, "num_threads": 1, "num_leaves": 8, "min_data_in_leaf": 5}


def train(**parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[:, 2] = rng.integers(0, 5, 300)
    y = X[:, 0]
    if "objective" in parameters:
        y = np.digitize(y, [-0.5, 0.5])[:300]
    data = lgb.Dataset(X, y, categorical_feature=[2])
    return lgb.train({**BASE, **parameters}, data, 3).model_to_string()


TEXT = train()


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"boosting": "dart"},
        {"min_data_in_leaf": 500},
        {"objective": "multiclass", "num_class": 3},
    ],
    ids=str,
)
def test_sound_models_pass(parameters):
    check_booster_text(train(**parameters))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"num_leaves=8", "num_leaves=9"),
        (r"left_child=1", "left_child=0"),
        (r"right_child=\d+", "right_child=77777"),
        (r"split_feature=\d", "split_feature=3"),
        (r"decision_type=\d", "decision_type=99"),
        (r"leaf_value=\S+", "leaf_value=zero"),
        (r"tree_sizes=\d+", "tree_sizes=99999"),
        (r"num_class=1", "num_class=900000000"),
        (r"end of trees", "no end"),
        (r"version=v4", "version=v9"),
        (r"is_linear=0", "is_linear=1"),
        (r"shrinkage=1", "unknown=1\rleft_child=77777\rshrinkage=1"),
    ],
)
def test_made_up_tables_are_refused(old, new):
    changed = re.sub(old, new, TEXT, count=1)
    assert changed != TEXT
    # Sizes that fit, so that the size is not what gives it away.
    gain = len(changed) - len(TEXT)
    first = int(re.search(r"tree_sizes=(\d+)", TEXT)[1])
    fitting = changed.replace(f"tree_sizes={first}", f"tree_sizes={first + gain}")
    for text in (changed, fitting):
        with pytest.raises(StorageError, match="LightGBM that is not sound"):
            check_booster_text(text)


@given(place=st.integers(0, len(TEXT) - 1), size=st.integers(1, 200))
def test_gaps_among_trees_are_told(place, size):
    trees = TEXT.index("Tree=0"), TEXT.index("end of trees")
    assume(trees[0] <= place and place + size <= trees[1])
    with pytest.raises(StorageError, match="not sound"):
        check_booster_text(TEXT[:place] + TEXT[place + size :])


@pytest.mark.parametrize("claim", ["num_class:300000", "num_class:"])
def test_objectives_of_other_numbers_of_classes_are_refused(claim):
    """LightGBM writes so many probabilities, whatever room there is."""
    text = train(objective="multiclass", num_class=3)
    changed = text.replace("multiclass num_class:3", f"multiclass {claim}")
    assert changed != text
    with pytest.raises(StorageError, match=r"not sound \(the classes of its objective"):
        check_booster_text(changed)
