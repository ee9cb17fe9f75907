"""`JointForest`: one random forest whose leaves hold whole distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils.parallel import delayed

from calibration._jobs import one_thread
from calibration._validation import (
    check_flag,
    check_integer,
    check_number,
    is_auto,
    make_rng,
)
from calibration.storage import StorageError
from calibration.typing import Float64Array, Int64Array
from localexpert.coordinate.families import slim_tree
from localexpert.data.folds import Rows
from localexpert.data.learners import ask_each
from localexpert.data.table import Table
from localexpert.experts.base import Experts, Tasks
from localexpert.progress import current_progress, run_jobs


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
        slim_tree(tree)
        tree.value[:] = 0.0
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

    def _check_saved(self) -> None:
        """Refuse invalid laws in a file, because they are added up without checks."""
        n_nodes = sum(tree.node_count for tree in self.trees)
        if (
            self.first.shape != (n_nodes + 1,)
            or self.step.shape != self.share.shape
            or self.step.ndim != 1
            or self.first[0] != 0
            or (np.diff(self.first, append=len(self.step)) < 0).any()
            or (self.step < 0).any()
            or not (self.share >= 0.0).all()
            or {self.first.dtype.kind, self.step.dtype.kind} != {"i"}
        ):
            msg = "it holds a forest whose leaves are none."
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


# Most rows of a bootstrap sample if `max_samples` is "auto".
_MOST_SAMPLES = 20_000
# Most trees times rows drawn if `n_estimators` is "auto", with bounds on the trees.
# With 2 000 000, the CRPS of tables of 7 000 to 12 000 rows was .1 % smaller.
_MOST_DRAWN = 600_000
_LEAST_TREES, _MOST_TREES = 60, 100
# Number of random cuts of each feature that a split tries. The table of the trees holds
# each feature this many times. With one cut, losses were 3 to 6 % greater on raw
# targets.
_CUTS = 3
# The number of thresholds whose indicators are decomposed, and the number of components
# that decide the splits.
_MOST_INDICATORS, _COMPONENTS = 32, 4
# Number of rows that one job predicts.
_CHUNK = 4_096


@dataclass(eq=False, repr=False)
class JointForest(Experts):
    """One random forest on the indicators of all thresholds.

    A tree splits where the indicators `r <= v_k` of several thresholds together
    become purest, and every leaf holds the share of its rows below every threshold.

    Parameters
    ----------
    n_estimators : int or "auto"
        Number of trees. "auto": 100, or fewer if there are many rows. Then all trees
        together draw about 600 000 rows at most. There are at least 60 trees.
    min_samples_leaf : int
        Least number of distinct rows in a leaf.
    max_features : float
        Share of the features tried at a split.
    max_samples : int or "auto"
        Rows drawn for a tree, with replacement. "auto": as many as there are, but at
        most 20 000, so that time grows little with more rows.
    out_of_bag : bool
        True: each row is predicted by the trees that have not drawn it. Folds are not
        needed. False: each tree draws from the training part of one fold and predicts
        its test part. Use this if folds keep groups of rows together. A
        `LocalExpertRegressor` uses it for groups, copies of rows and the user's folds.
    n_jobs : int, optional
        Number of trees grown at the same time, in threads.
    random_state : int, optional
        Seed.

    Attributes
    ----------
    thresholds_ : ndarray of shape (N,)
    oof_probabilities_ : ndarray of shape (n, N)
        Increasing along the thresholds.

    Notes
    -----
    With few trees or few rows, it may happen that no tree may predict a row. Such a row
    gets the smoothed base rates (n1 + 1) / (n + 2) of the other rows.

    A split lowers the squared error of the first principal components of the
    indicators. These hold nearly all of the variance: with 8 or all 25 instead of 4,
    losses changed by less than .1 %. The trees are scikit-learn's extremely randomised
    ones, with a few random cuts of each feature that they try. Trees that differ more
    have a better mean than trees with the best cuts.

    Defaults were chosen by the Brier score summed over thresholds, out of bag, on the
    sets concrete, airfoil, kin8nm, abalone, insurance and seoul_bike, on raw targets
    and on residuals.

    Categories are ordered by their codes. A split also tries both sides for missing
    values. If a feature had none in the node, they go to the side with more rows.

    References
    ----------
    Meinshausen (2006), Quantile regression forests (leaves that hold distributions).
    Geurts, Ernst & Wehenkel (2006), Extremely randomized trees (random cuts).

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts import JointForest
    >>> from localexpert.data.folds import make_folds
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> folds = make_folds(200, 2, random_state=0)
    >>> experts = JointForest(20, random_state=0)
    >>> experts = experts.fit(X, X[:, 0], [0.25, 0.5, 0.75], folds)
    >>> experts.predict([[0.1], [0.6]]).round()
    array([[1., 1., 1.],
           [0., 0., 1.]])
    """

    n_estimators: int | str = "auto"
    _: KW_ONLY
    min_samples_leaf: int = 1
    max_features: float = 0.8
    max_samples: int | str = "auto"
    out_of_bag: bool = True
    n_jobs: int | None = None
    random_state: int | None = None
    laws_: LeafLaws = field(init=False)

    def _check_saved(self) -> None:
        """Refuse trees in a file that belong to another table."""
        if not hasattr(self, "laws_"):
            return
        n_features = self.reader_.features.n_columns
        n_thresholds = len(self.thresholds_)
        most = max((tree.feature.max() for tree in self.laws_.trees), default=-1)
        last = self.laws_.step.max(initial=-1)
        if most >= n_features or last >= n_thresholds:
            msg = (
                f"it holds a tree of feature {most} and threshold {last} "
                f"for {n_features} features and {n_thresholds} thresholds."
            )
            raise StorageError(msg)

    def _check_parameters(self) -> None:
        if not is_auto(self.n_estimators):
            check_integer(self.n_estimators, "n_estimators", 1)
        check_integer(self.min_samples_leaf, "min_samples_leaf", 1)
        check_number(self.max_features, "max_features", 0.0, 1.0, open_low=True)
        if not is_auto(self.max_samples):
            check_integer(self.max_samples, "max_samples", 1)
        check_flag(self.out_of_bag, "out_of_bag")

    def _fit(self, tasks: Tasks) -> Float64Array:
        self.inputs_ = tasks.table.dense_inputs_of(tasks.weight)
        X = self._view(tasks.table)
        rng = make_rng(self.random_state)
        n_trees = self.n_estimators
        if n_trees == "auto":
            most = _MOST_DRAWN // self._count_samples(len(tasks.present))
            n_trees = int(np.clip(most, _LEAST_TREES, _MOST_TREES))
        seeds = rng.integers(2**31, size=int(n_trees)).tolist()
        wide = np.tile(X, (1, _CUTS))
        # scikit-learn's check could only find gaps, and it takes time.
        gaps = bool(np.isnan(X).any())
        grow = delayed(self._grow)
        jobs = [grow(tasks, wide, gaps, *one) for one in enumerate(seeds)]
        # One thread for linear algebra: the trees share the cores.
        with current_progress().stage("trees"), one_thread("blas"):
            grown = run_jobs(jobs, n_jobs=self.n_jobs, require="sharedmem")
        self.laws_ = LeafLaws.join([laws for laws, _ in grown])
        asked = np.stack([asked for _, asked in grown], axis=1)
        held = tasks.judged[tasks.weight[tasks.judged] > 0.0]
        spoke = asked[held].sum(axis=1)
        # A row alone in its leaf is one draw from its law. So the mean of m trees has
        # the noise p (1 - p) / m. Leaves with more rows have less noise.
        more = np.mean(1.0 / np.maximum(spoke, 1)) - 1.0 / len(grown)
        self.spared_ = float(more) / self.min_samples_leaf
        return _fill_unjudged(self._answer(X, asked), tasks)

    def _predict(self, table: Table) -> Float64Array:
        return self._answer(self._view(table))

    def _answer(
        self, X: NDArray[np.float32], asked: NDArray[np.bool_] | None = None
    ) -> Float64Array:
        """Return the mean of the trees, or of those that are asked about a row."""

        def ask(start: int) -> Float64Array:
            rows = slice(start, start + _CHUNK)
            some = None if asked is None else asked[rows]
            return self.laws_.mean(X[rows], len(self.thresholds_), some)

        parts = ask_each(ask, range(0, len(X), _CHUNK), len(X), self.n_jobs)
        return np.concatenate([np.empty((0, len(self.thresholds_))), *parts])

    def _view(self, table: Table) -> NDArray[np.float32]:
        """Return rows in single precision, as trees of scikit-learn read them."""
        return np.ascontiguousarray(self.inputs_.narrow(table.codes), dtype=np.float32)

    def _count_samples(self, n: int) -> int:
        """Return how many of `n` rows a tree draws."""
        if self.max_samples == "auto":
            return min(n, _MOST_SAMPLES)
        return int(self.max_samples)

    def _grow(
        self, tasks: Tasks, X: NDArray[np.float32], gaps: bool, number: int, seed: int
    ) -> tuple[LeafLaws, NDArray[np.bool_]]:
        """Grow a tree on a bootstrap sample. Also return the rows that it may predict.

        Returns
        -------
        laws : LeafLaws
        asked : ndarray of bool, shape (n,)
        """
        rng = np.random.default_rng(seed)
        source, asked = tasks.present, np.ones(len(tasks), dtype=bool)
        if not (self.out_of_bag and tasks.is_whole):
            source, test = tasks.folds[number % len(tasks.folds)]
            asked[:] = False
            asked[test] = True
        drawn = source[rng.integers(len(source), size=self._count_samples(len(source)))]
        weights = np.bincount(drawn, minlength=len(tasks)) * tasks.weight
        tree = ExtraTreeRegressor(
            min_samples_leaf=self.min_samples_leaf,
            max_features=self.max_features,
            random_state=seed,
        )
        below, n_thresholds = tasks.below, tasks.n_thresholds
        table = project_indicators(below, weights, n_thresholds, _COMPONENTS)
        tree.fit(X, table[below], sample_weight=weights, check_input=gaps)
        tree.tree_.feature[:] %= X.shape[1] // _CUTS
        laws = LeafLaws.fill(tree.tree_, X, below, weights, n_thresholds)
        # Out of bag: a tree must not predict the rows that it has drawn.
        asked[drawn] = False
        return laws, asked


def project_indicators(
    below: Rows, weights: Float64Array, n_thresholds: int, n_components: int
) -> Float64Array:
    """Return principal components of the indicators, a row for each value of `below`.

    A row's indicators `k >= below` only depend on the number `below`. So a table with
    one row for each such number holds them all.

    Parameters
    ----------
    below, weights : ndarrays of shape (n,)
    n_thresholds, n_components : int

    Returns
    -------
    ndarray of shape (n_thresholds + 1, min(n_components, n_thresholds))
    """
    numbers = np.arange(n_thresholds + 1)
    # If there are many thresholds, use some of them. They tell nearly as much, and the
    # decomposition of all would take long.
    asked = numbers[: -1 : -(-n_thresholds // _MOST_INDICATORS)]
    mass = np.bincount(below, weights, minlength=n_thresholds + 1)
    indicators = (numbers[:, None] <= asked).astype(np.float64)
    indicators -= mass @ indicators / mass.sum()
    _, directions = np.linalg.eigh((mass[:, None] * indicators).T @ indicators)
    # The components' sums of squares add up to nearly that of all indicators. So the
    # purest split by a few components is nearly the purest by all thresholds, at a
    # fraction of the cost.
    return np.asarray(indicators @ directions[:, ::-1][:, :n_components])


def _fill_unjudged(oof: Float64Array, tasks: Tasks) -> Float64Array:
    """Fill rows without an answer with the base rates of the other rows."""
    # With few trees a row may be in all bags. Its base rate leaves the row itself out.
    silent = np.isnan(oof[:, 0])
    if silent.any():
        weights, below = tasks.weight[silent, None], tasks.below
        mass = np.bincount(below, tasks.weight, minlength=tasks.n_thresholds + 1)
        own = below[silent, None] <= np.arange(tasks.n_thresholds)
        others = np.cumsum(mass)[:-1] - weights * own
        oof[silent] = (others + 1.0) / (tasks.weight.sum() - weights + 2.0)
    return oof
