"""`LeafTree`: a tree whose leaves hold whole distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.storage import StorageError, check_nodes
from calibration.typing import Float64Array
from localexpert._kernels.leaf_trees import add_leaves
from localexpert.data.folds import Rows

# Of the fields below.
_DTYPES = ["i4", "f8", "b1", "i4", "i4", "i4", "i4", "i4", "f4"]


@dataclass(frozen=True, eq=False)
class LeafTree:
    """A tree whose leaves hold distributions: arrays per node, and steps of leaves.

    Values up to `cut` go left; the children of a leaf are -1. `leaf` is the number of a
    leaf, and -1 at other nodes. The CDF of leaf l steps up to `reached[j]` at threshold
    `below[j]`, j from `first[l]` to `first[l + 1] - 1`. A leaf has few rows and so few
    steps, where its CDF would have a number for every threshold.
    """

    feature: NDArray[np.int32]
    cut: Float64Array
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    leaf: NDArray[np.int32]
    first: NDArray[np.int32]
    below: NDArray[np.int32]
    reached: NDArray[np.float32]

    @classmethod
    def fill(
        cls,
        feature: NDArray[np.int32],
        cut: Float64Array,
        missing_left: NDArray[np.bool_],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        *,
        leaf_of: NDArray[np.integer[Any]],
        below: Rows,
        weights: Float64Array,
        n_thresholds: int,
    ) -> LeafTree:
        """Fill the leaves of a tree with rows that lie below thresholds from `below`.

        Parameters
        ----------
        feature, cut, missing_left, left, right : ndarrays of shape (n_nodes,)
        leaf_of, below, weights : ndarrays of shape (n,)
            Of every row the leaf, the first threshold it lies below, the weight.
        n_thresholds : int

        Returns
        -------
        LeafTree
        """
        leaves = np.flatnonzero(left < 0)
        leaf = np.full(len(feature), -1, dtype=np.int32)
        leaf[leaves] = np.arange(len(leaves))
        n_bins = n_thresholds + 1
        # 64 bits, for leaves times bins may need them.
        cell = leaf[leaf_of] * np.int64(n_bins) + below
        mass = np.bincount(cell, weights, minlength=len(leaves) * n_bins)
        mass = mass.reshape(-1, n_bins)
        total = np.cumsum(mass, axis=1)
        # Quotients of an increasing run increase, and none exceeds one.
        cdf = (total[:, :-1] / total[:, -1:]).astype(np.float32)
        steps = mass[:, :-1] > 0.0
        first = np.append(0, np.cumsum(steps.sum(axis=1))).astype(np.int32)
        place = np.nonzero(steps)[1].astype(np.int32)
        return cls(
            feature, cut, missing_left, left, right, leaf, first, place, cdf[steps]
        )

    @classmethod
    def _read_saved(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Refuse a tree that a file made up: kernels follow it without checks."""
        tree = cls(**state)
        # Kernels would be compiled anew for others.
        if [part.dtype.str[1:] for part in state.values()] != _DTYPES:
            msg = f"it holds a tree of other types than {_DTYPES}."
            raise StorageError(msg)
        inner = tree.left >= 0
        check_nodes(np.stack([tree.left, tree.right]), tree.feature, inner)
        leaf = tree.leaf[~inner]
        if (
            len({part.shape for part in (tree.cut, tree.missing_left, tree.leaf)}) > 1
            or (leaf < 0).any()
            or (tree.leaf[inner] >= 0).any()
            or (leaf >= len(tree.first) - 1).any()
            or tree.below.shape != tree.reached.shape
            or (tree.first.ndim, tree.reached.ndim) != (1, 1)
            or (np.diff(tree.first, prepend=0, append=len(tree.reached)) < 0).any()
            or (tree.below < 0).any()
        ):
            msg = "it holds a tree whose leaves are none."
            raise StorageError(msg)
        return state

    def check_fit(self, n_features: int, n_thresholds: int) -> None:
        """Refuse a tree that asks for other features, or answers for other thresholds.

        Parameters
        ----------
        n_features, n_thresholds : int
        """
        most = self.feature.max()
        last = self.below.max(initial=-1)
        if most >= n_features or last >= n_thresholds:
            msg = (
                f"it holds a tree of feature {most} and threshold {last} "
                f"for {n_features} features and {n_thresholds} thresholds."
            )
            raise StorageError(msg)

    def add(
        self,
        X: Float64Array,
        asked: NDArray[np.bool_],
        sums: Float64Array,
        counts: Float64Array,
    ) -> None:
        """Add the answers for the rows asked about to `sums`, one to their `counts`."""
        add_leaves(
            X,
            asked,
            self.feature,
            self.cut,
            self.missing_left,
            self.left,
            self.right,
            self.leaf,
            self.first,
            self.below,
            self.reached,
            sums,
            counts,
        )
