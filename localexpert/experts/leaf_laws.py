"""`LeafLaws`: trees whose leaves hold whole distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from calibration.storage import StorageError
from calibration.typing import Float64Array, Int64Array
from localexpert.data.folds import Rows


@dataclass(frozen=True, eq=False)
class LeafLaws:
    """Trees of scikit-learn, and the law of every leaf as a list of steps.

    The nodes of all trees have consecutive numbers. The law of node l has the
    probability `share[j]` between the thresholds `step[j] - 1` and `step[j]`, for j
    from `first[l]` to `first[l + 1] - 1`. The rest lies above all thresholds. A leaf
    has few rows and so few steps. Its CDF would need a number for every threshold.

    Parameters
    ----------
    trees : list of sklearn.tree._tree.Tree
    first : ndarray of int, shape (n_nodes + 1,)
    step : ndarray of int
    share : ndarray of float32
    """

    trees: list[Any]
    first: Int64Array
    step: NDArray[np.int32]
    share: NDArray[np.float32]

    @classmethod
    def fill(
        cls,
        tree: Any,
        X: NDArray[np.float32],
        below: Rows,
        weights: Float64Array,
        n_thresholds: int,
    ) -> LeafLaws:
        """Fill the leaves of one tree.

        Parameters
        ----------
        tree : sklearn.tree._tree.Tree
        X : ndarray of shape (n, p)
        below, weights : ndarrays of shape (n,)
            For every row, the first threshold that it lies below, and its weight.
        n_thresholds : int

        Returns
        -------
        LeafLaws
        """
        # Only the cuts of a grown tree are used. Zeros make a saved tree pack well.
        tree.value[:] = 0.0
        for numbers in (
            tree.impurity,
            tree.n_node_samples,
            tree.weighted_n_node_samples,
        ):
            numbers[:] = 0
        drawn = np.flatnonzero(weights)
        leaf, step, weights = tree.apply(X[drawn]), below[drawn], weights[drawn]
        total = np.bincount(leaf, weights, minlength=tree.node_count)
        share = weights / total[leaf]
        # The part above all thresholds is the rest and is not stored.
        inside = step < n_thresholds
        laws = csr_array(
            (share[inside], (leaf[inside], step[inside])),
            shape=(tree.node_count, n_thresholds),
        )
        laws.sum_duplicates()
        return cls(
            [tree],
            laws.indptr.astype(np.int64),
            laws.indices.astype(np.int32),
            laws.data.astype(np.float32),
        )

    @classmethod
    def join(cls, parts: Sequence[LeafLaws]) -> LeafLaws:
        """Return the trees of all parts, with consecutive numbers of nodes."""
        ends = np.cumsum([0, *(len(part.share) for part in parts)])
        first = [part.first[1:] + end for part, end in zip(parts, ends, strict=False)]
        return cls(
            [tree for part in parts for tree in part.trees],
            np.concatenate([[0], *first]),
            np.concatenate([part.step for part in parts]),
            np.concatenate([part.share for part in parts]),
        )

    @classmethod
    def _read_saved(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Refuse invalid laws in a file, because they are added up without checks."""
        laws = cls(**state)
        n_nodes = sum(tree.node_count for tree in laws.trees)
        if (
            laws.first.shape != (n_nodes + 1,)
            or laws.step.shape != laws.share.shape
            or laws.step.ndim != 1
            or laws.first[0] != 0
            or (np.diff(laws.first, append=len(laws.step)) < 0).any()
            or (laws.step < 0).any()
            or not (laws.share >= 0.0).all()
            or {laws.first.dtype.kind, laws.step.dtype.kind} != {"i"}
        ):
            msg = "it holds a forest whose leaves are none."
            raise StorageError(msg)
        return state

    def check_fit(self, n_features: int, n_thresholds: int) -> None:
        """Refuse trees of other features, or laws of other thresholds.

        Parameters
        ----------
        n_features, n_thresholds : int
        """
        most = max((tree.feature.max() for tree in self.trees), default=-1)
        last = self.step.max(initial=-1)
        if most >= n_features or last >= n_thresholds:
            msg = (
                f"it holds a tree of feature {most} and threshold {last} "
                f"for {n_features} features and {n_thresholds} thresholds."
            )
            raise StorageError(msg)

    def mean(
        self,
        X: NDArray[np.float32],
        n_thresholds: int,
        asked: NDArray[np.bool_] | None = None,
    ) -> Float64Array:
        """Return the mean CDF at the thresholds, shape (n, n_thresholds).

        Parameters
        ----------
        X : ndarray of shape (n, p)
        n_thresholds : int
        asked : ndarray of shape (n, n_trees), optional
            Which trees answer for a row. By default all do. The result is NaN if none
            does.

        Returns
        -------
        ndarray of shape (n, n_thresholds)
        """
        n, n_trees = len(X), len(self.trees)
        starts = np.cumsum([0, *(tree.node_count for tree in self.trees)])
        nodes = np.empty((n, n_trees), dtype=np.int64)
        for j, tree in enumerate(self.trees):
            nodes[:, j] = tree.apply(X) + starts[j]
        part = np.ones((n, n_trees)) if asked is None else asked.astype(np.float64)
        rows = csr_array(
            (part.ravel(), nodes.ravel(), np.arange(n + 1) * n_trees),
            shape=(n, starts[-1]),
        )
        laws = csr_array(
            (self.share.astype(np.float64), self.step, self.first),
            shape=(starts[-1], n_thresholds),
        )
        # Shares are not negative, so their sums increase along the thresholds.
        cdf: Float64Array = np.cumsum((rows @ laws).toarray(), axis=1)
        with np.errstate(invalid="ignore"):
            cdf /= part.sum(axis=1, keepdims=True)
        return np.minimum(cdf, 1.0, out=cdf)
