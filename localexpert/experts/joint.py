"""`JointForest`: one random forest whose leaves hold whole distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.parallel import delayed

from calibration._kernels.types import Float64Array
from localexpert._kernels.leaf_trees import add_leaves
from localexpert._validation import check_integer, check_number
from localexpert.experts.boosting import thread_pool
from localexpert.experts.experts import Experts
from localexpert.experts.tables import TableEncoder
from localexpert.experts.tasks import Tasks
from localexpert.folds import Rows

# Most rows of a bootstrap sample where `max_samples` is "auto".
_MOST_SAMPLES = 20_000
# Trees that speak for a row out of bag, on average, at most: with many rows, of which
# each tree sees few, nearly all could.
_OOB_TREES = 80
# Rows predicted in one piece of work.
_CHUNK = 5_000


@dataclass(frozen=True, eq=False)
class LeafTree:
    """A tree whose leaves hold distributions: arrays per node, and `cdf` per leaf.

    `leaf` is the row of `cdf`, shape (n_leaves, N), of a leaf, and -1 at other nodes.
    Of a fitted tree of scikit-learn only this is kept: the rest is ten times as big.
    """

    feature: NDArray[np.int32]
    cut: Float64Array
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    leaf: NDArray[np.int32]
    cdf: NDArray[np.float32]

    @classmethod
    def from_tree(
        cls,
        fitted: DecisionTreeRegressor,
        nodes: Rows,
        below: Rows,
        weights: Float64Array,
        n_thresholds: int,
    ) -> LeafTree:
        """Fill the leaves of a tree with rows that lie below thresholds from `below`.

        Parameters
        ----------
        fitted : DecisionTreeRegressor
        nodes, below, weights : ndarrays of shape (n,)
            Of every row the leaf, the first threshold it lies below, the weight.
        n_thresholds : int

        Returns
        -------
        LeafTree
        """
        tree = fitted.tree_
        leaves, place = np.unique(nodes, return_inverse=True)
        leaf = np.full(tree.node_count, -1, dtype=np.int32)
        leaf[leaves] = np.arange(len(leaves))
        n_bins = n_thresholds + 1
        mass = np.bincount(
            place * n_bins + below, weights, minlength=len(leaves) * n_bins
        ).reshape(-1, n_bins)
        total = np.cumsum(mass, axis=1)
        return cls(
            tree.feature.astype(np.int32),
            tree.threshold.copy(),
            tree.missing_go_to_left.astype(bool),
            tree.children_left.astype(np.int32),
            tree.children_right.astype(np.int32),
            leaf,
            # Quotients of an increasing run increase, and none exceeds one.
            (total[:, :-1] / total[:, -1:]).astype(np.float32),
        )

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
            self.cdf,
            sums,
            counts,
        )


class JointForest(Experts):
    """One random forest on the indicators of all thresholds.

    A tree splits where the indicators `r <= v_k` of several thresholds together
    become purest, and every leaf holds the share of its rows below every threshold.

    Parameters
    ----------
    n_estimators : int
        Number of trees.
    min_samples_leaf : int
        Least number of distinct rows in a leaf.
    max_features : float
        Share of the features tried at a split.
    n_outputs : int
        Thresholds, evenly chosen, whose indicators decide the splits. The leaves
        hold all thresholds in any case; time grows with this number.
    max_samples : int or "auto"
        Rows drawn, with replacement, for a tree; "auto": as many as there are, at
        most 20 000, so that time grows little with more rows.
    out_of_bag : bool
        True: rows are predicted by the trees that have not drawn them, and the folds
        are not needed. False: each tree draws from the training part of one fold and
        predicts its test part, for folds that keep groups of rows together.
    n_jobs : int, optional
        Trees grown at a time, in threads.
    random_state : int, optional
        Seed.

    Attributes
    ----------
    thresholds_ : ndarray of shape (N,)
    oof_probabilities_ : ndarray of shape (n, N)
        Increasing along the thresholds.

    Notes
    -----
    A row that no tree may speak for (few trees, few rows) gets the smoothed base
    rates (n1 + 1) / (n + 2) of the other rows. With more than some 50 000 rows only
    about 80 trees are asked for each row out of bag, drawn anew for every row.

    Defaults were chosen by the Brier score summed over thresholds, out of bag, on the
    sets concrete, airfoil, kin8nm, abalone, insurance and seoul_bike, on raw targets
    and on residuals.

    Categories are ordered by their codes. Missing values go to the better side of a
    split, and where a feature had none in training to the side with more rows. The
    trees read features as float32.

    References
    ----------
    Meinshausen (2006), Quantile regression forests (leaves that hold distributions).

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts import JointForest
    >>> from localexpert.folds import make_folds
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> folds = make_folds(200, 2, random_state=0)
    >>> experts = JointForest(20, random_state=0)
    >>> experts = experts.fit(X, X[:, 0], [0.25, 0.5, 0.75], folds)
    >>> experts.predict([[0.1], [0.6]]).round()
    array([[1., 1., 1.],
           [0., 0., 1.]])
    """

    trees_: list[LeafTree]
    encoder_: TableEncoder

    def __init__(
        self,
        n_estimators: int = 200,
        *,
        min_samples_leaf: int = 3,
        max_features: float = 0.67,
        n_outputs: int = 13,
        max_samples: int | str = "auto",
        out_of_bag: bool = True,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ):
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.n_outputs = n_outputs
        self.max_samples = max_samples
        self.out_of_bag = out_of_bag
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_integer(self.n_estimators, "n_estimators", 1)
        check_integer(self.min_samples_leaf, "min_samples_leaf", 1)
        check_number(self.max_features, "max_features", 0.0, 1.0, open_low=True)
        check_integer(self.n_outputs, "n_outputs", 1)
        if self.max_samples != "auto":
            check_integer(self.max_samples, "max_samples", 1)

    def _fit(self, tasks: Tasks) -> Float64Array:
        self.encoder_ = TableEncoder.learn(tasks.X)
        X = self.encoder_.encode(tasks.X).astype(np.float32)
        rng = np.random.default_rng(self.random_state)
        seeds = rng.integers(2**31, size=self.n_estimators).tolist()
        below = tasks.count_below(np.arange(tasks.n))
        with thread_pool(self.n_jobs) as pool:
            grown = pool(
                delayed(self._grow)(tasks, X, below, number, seed)
                for number, seed in enumerate(seeds)
            )
            parts = pool(
                delayed(_predict_judged)(grown, X, rows)
                for rows in _chunk_rows(tasks.n)
            )
        self.trees_ = [tree for tree, _ in grown]
        sums, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        return _fill_unjudged(sums, counts, tasks, below)

    def _predict(self, X: Any) -> Float64Array:
        table = self.encoder_.encode(X).astype(np.float32)
        with thread_pool(self.n_jobs) as pool:
            parts = pool(
                delayed(_predict_mean)(self.trees_, table[rows])
                for rows in _chunk_rows(len(table))
            )
        return np.concatenate([np.empty((0, len(self.thresholds_))), *parts])

    def _grow(
        self,
        tasks: Tasks,
        X: NDArray[np.float32],
        below: Rows,
        number: int,
        seed: int,
    ) -> tuple[LeafTree, NDArray[np.uint8]]:
        """Grow a tree on a bootstrap sample; also say whom it may be asked about.

        Returns
        -------
        tree : LeafTree
        judged : ndarray
            One bit per row, packed.
        """
        rng = np.random.default_rng(seed)
        source, judged = self._choose_source(tasks, number)
        size = len(source)
        if self.max_samples == "auto":
            size = min(size, _MOST_SAMPLES)
        else:
            size = int(self.max_samples)
        drawn = np.bincount(rng.integers(len(source), size=size), minlength=len(source))
        rows = source[drawn > 0]
        weights = drawn[drawn > 0] * tasks.weights[rows]
        outputs = _choose_outputs(tasks.n_thresholds, self.n_outputs)
        tree = DecisionTreeRegressor(
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            random_state=seed,
        )
        tree.fit(X[rows], below[rows, None] <= outputs, sample_weight=weights)
        nodes = tree.apply(X[rows], check_input=False)
        judged[rows] = False
        share = _OOB_TREES * tasks.n / max(1, self.n_estimators * judged.sum())
        if share < 1.0:
            judged &= rng.random(tasks.n) < share
        filled = LeafTree.from_tree(
            tree, nodes, below[rows], weights, tasks.n_thresholds
        )
        return filled, np.packbits(judged)

    def _choose_source(
        self, tasks: Tasks, number: int
    ) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the rows that a tree draws from, and those it may be asked about."""
        if self.out_of_bag:
            return tasks.present, np.ones(tasks.n, dtype=bool)
        train, test = tasks.folds[number % len(tasks.folds)]
        judged = np.zeros(tasks.n, dtype=bool)
        judged[test] = True
        return train, judged


def _choose_outputs(n_thresholds: int, n_outputs: int) -> NDArray[np.intp]:
    """Return the numbers of the thresholds that decide splits, both ends among them."""
    if n_outputs == 1:
        return np.array([n_thresholds // 2])
    spaced = np.linspace(0, n_thresholds - 1, min(n_outputs, n_thresholds))
    return np.rint(spaced).astype(np.intp)


def _chunk_rows(n: int) -> list[slice]:
    return [slice(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]


def _predict_judged(
    grown: list[tuple[LeafTree, NDArray[np.uint8]]],
    X: NDArray[np.float32],
    rows: slice,
) -> tuple[Float64Array, Float64Array]:
    """Return sums of the answers of the trees that may speak, and their numbers."""
    part = X[rows].astype(np.float64)
    sums = np.zeros((len(part), grown[0][0].cdf.shape[1]))
    counts = np.zeros(len(part))
    for tree, judged in grown:
        asked = np.unpackbits(judged, count=len(X))[rows].astype(bool)
        tree.add(part, asked, sums, counts)
    return sums, counts


def _predict_mean(trees: list[LeafTree], X: NDArray[np.float32]) -> Float64Array:
    """Return the mean answer of all trees."""
    part = X.astype(np.float64)
    sums = np.zeros((len(part), trees[0].cdf.shape[1]))
    everyone = np.ones(len(part), dtype=bool)
    for tree in trees:
        tree.add(part, everyone, sums, np.zeros(len(part)))
    return sums / len(trees)


def _fill_unjudged(
    sums: Float64Array, counts: Float64Array, tasks: Tasks, below: Rows
) -> Float64Array:
    """Return mean answers, and the base rates of the other rows where there is none."""
    silent = counts == 0.0
    oof = sums / np.maximum(counts, 1.0)[:, None]
    if silent.any():
        weights = tasks.weights[silent, None]
        mass = np.bincount(below, tasks.weights, minlength=tasks.n_thresholds + 1)
        own = below[silent, None] <= np.arange(tasks.n_thresholds)
        others = np.cumsum(mass)[:-1] - weights * own
        oof[silent] = (others + 1.0) / (tasks.weights.sum() - weights + 2.0)
    return oof
