"""LightGBM's trees as arrays, for sums over all thresholds in one walk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightgbm as lgb
import numpy as np

from calibration.storage import StorageError, TextTable, read_trees
from calibration.typing import Float64Array, Int64Array
from localexpert._kernels.threshold_trees import (
    CATEGORY,
    NUMBER,
    NUMBER_OR_NAN,
    TreeArrays,
    sum_trees,
)

# Bits of a node's `decision_type` in LightGBM's model format.
_CATEGORY, _MISSING_LEFT = 1, 2
_MISSING_SHIFT, _MISSING_ZERO, _MISSING_NAN = 2, 1, 2


@dataclass(frozen=True, eq=False)
class ThresholdTrees:
    """Boosted trees whose last feature is the place of the threshold.

    Parameters
    ----------
    n_features : int
        Number of features before the threshold.
    roots : ndarray of shape (n_trees,)
    feature, kind, missing_left, left, right, first_word, n_words : ndarrays
        Of every node of all trees; see `TreeArrays`.
    cut : ndarray
        Of every node: numbers up to it go left.
    category_words : ndarray
        Bits of the categories that go left.
    leaf_value : ndarray
        Of every leaf of all trees.
    """

    n_features: int
    roots: Int64Array
    feature: Int64Array
    kind: Int64Array
    cut: Float64Array
    missing_left: Int64Array
    left: Int64Array
    right: Int64Array
    first_word: Int64Array
    n_words: Int64Array
    category_words: Int64Array
    leaf_value: Float64Array

    @classmethod
    def from_booster(
        cls, booster: lgb.Booster, start: int = 0, stop: int | None = None
    ) -> ThresholdTrees:
        """Read the trees of some rounds out of a model of one class.

        Parameters
        ----------
        booster : lightgbm.Booster
            Its trees have numbers missing as NaN, and no linear leaves.
        start, stop : int
            Rounds; default all.

        Returns
        -------
        ThresholdTrees
        """
        n_rounds = -1 if stop is None else stop - start
        text = booster.model_to_string(start_iteration=start, num_iteration=n_rounds)
        return cls(booster.num_feature() - 1, **_join_trees(read_trees(text)))

    @classmethod
    def _read_saved(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Refuse trees that a file made up: kernels follow them without checks."""
        trees = cls(**state)
        # Kernels would be compiled anew for others.
        if any(getattr(trees, name).dtype != kind for name, kind in _ARRAYS.items()):
            msg = "it holds trees of thresholds of other types than ours."
            raise StorageError(msg)
        n_nodes, n_leaves = len(trees.cut), len(trees.leaf_value)
        n_words = len(trees.category_words)
        # Of one length, or this is an error.
        columns = [trees.left, trees.right, trees.first_word, trees.n_words]
        columns += [trees.feature, trees.kind, trees.missing_left, np.arange(n_nodes)]
        left, right, first, run, feature, *_, place = np.stack(columns)
        children = np.stack([left, right])
        if not (
            ((children > place) | (children < 0)).all()
            and _lie_within(children, -n_leaves, n_nodes)
            and _lie_within(trees.roots, -n_leaves, n_nodes)
            and _lie_within(feature, 0, trees.n_features + 1)
            and _lie_within(run, 0, n_words + 1)
            and _lie_within(first, 0, n_words + 1)
            and (first <= n_words - run).all()
        ):
            msg = "it holds trees of thresholds whose nodes lead nowhere."
            raise StorageError(msg)
        return state

    def sum(self, X: Float64Array, places: Float64Array) -> Float64Array:
        """Return raw scores, shape (n, len(places)), at increasing places."""
        if X.shape[1] != self.n_features:
            msg = f"`X` must have {self.n_features} columns, got {X.shape[1]}."
            raise ValueError(msg)
        on_threshold = self.feature == self.n_features
        place_cut = np.where(
            on_threshold, np.searchsorted(places, self.cut, side="right"), -1
        )
        return sum_trees(X, len(places), self.arrays, place_cut)

    @property
    def arrays(self) -> TreeArrays:
        """What kernels walk on."""
        return TreeArrays(*(getattr(self, name) for name in TreeArrays._fields))


def _lie_within(values: Int64Array, low: int, high: int) -> bool:
    return bool(((values >= low) & (values < high)).all())


def _join_trees(trees: list[TextTable]) -> dict[str, Any]:
    """Return the arrays of all trees, one after the other, from their text."""
    parts: dict[str, list[Any]] = {name: [] for name in _ARRAYS}
    roots = []
    n_nodes = n_leaves = n_words = 0
    for tree in trees:
        leaves = tree.numbers("leaf_value")
        roots.append(n_nodes if len(leaves) > 1 else -n_leaves - 1)
        parts["leaf_value"].append(leaves)
        if len(leaves) > 1:
            nodes = _read_nodes(tree)
            for side in ("left", "right"):
                child = nodes[side]
                # Leaves are numbered -1, -2, ... within a tree.
                nodes[side] = np.where(child >= 0, child + n_nodes, child - n_leaves)
            nodes["first_word"] += n_words
            n_nodes += len(nodes["feature"])
            n_words += len(nodes["category_words"])
            for name, values in nodes.items():
                parts[name].append(values)
        n_leaves += len(leaves)
    joined = {name: _concatenate(parts[name], _ARRAYS[name]) for name in parts}
    return {"roots": np.array(roots, dtype=np.int64), **joined}


def _read_nodes(tree: TextTable) -> dict[str, Any]:
    """Return the arrays of one tree's nodes from its lines."""
    decision = tree.integers("decision_type")
    cut = tree.numbers("threshold")
    is_category = (decision & _CATEGORY) > 0
    missing = decision >> _MISSING_SHIFT
    if (missing[~is_category] == _MISSING_ZERO).any():
        msg = "`booster` must not take zeros as missing, got a tree that does."
        raise ValueError(msg)
    kind = np.where(missing == _MISSING_NAN, NUMBER_OR_NAN, NUMBER)
    kind[is_category] = CATEGORY
    bounds = tree.integers("cat_boundaries")
    first_word, n_words = np.zeros((2, len(cut)), dtype=np.int64)
    # The "threshold" of a category is the number of its run of words.
    run = cut[is_category].astype(np.int64)
    if len(run):
        first_word[is_category] = bounds[run]
        n_words[is_category] = bounds[run + 1] - bounds[run]
    return {
        "feature": tree.integers("split_feature"),
        "kind": kind,
        "cut": cut,
        "missing_left": ((decision & _MISSING_LEFT) > 0).astype(np.int64),
        "left": tree.integers("left_child"),
        "right": tree.integers("right_child"),
        "first_word": first_word,
        "n_words": n_words,
        "category_words": tree.words(),
    }


_ARRAYS: dict[str, Callable[..., Any]] = {
    "feature": np.int64,
    "kind": np.int64,
    "cut": np.float64,
    "missing_left": np.int64,
    "left": np.int64,
    "right": np.int64,
    "first_word": np.int64,
    "n_words": np.int64,
    "category_words": np.int64,
    "leaf_value": np.float64,
}


def _concatenate(parts: list[Any], dtype: Any) -> Any:
    return np.concatenate([np.empty(0, dtype=dtype), *parts])
