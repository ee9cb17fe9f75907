"""`JointForest`: one random forest whose leaves hold whole distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.parallel import delayed

from calibration.typing import Float64Array
from localexpert._kernels.forest_split import N_TARGETS
from localexpert._kernels.forest_tree import grow_tree
from localexpert._validation import check_flag, check_integer, check_number, is_auto
from localexpert.data.folds import Rows
from localexpert.data.table import Table
from localexpert.data.threads import ask_each, thread_pool
from localexpert.experts.base import Experts
from localexpert.experts.feature_codes import FeatureCodes
from localexpert.experts.leaf_tree import LeafTree
from localexpert.experts.tasks import Tasks
from localexpert.progress import current_progress, run_jobs

# Most rows of a bootstrap sample where `max_samples` is "auto".
_MOST_SAMPLES = 20_000
# Trees times rows drawn, within these bounds, where `n_estimators` is "auto".
_MOST_DRAWN = 2_000_000
_LEAST_TREES, _MOST_TREES = 60, 200
# Rows of a node that choose its split: so many, or so many per row that a leaf needs.
# With 256 or with all of them losses were the same within the noise of seeds, .3 %.
_SEARCHED, _SEARCHED_PER_LEAF_ROW = 512, 64
# Trees that speak for a row out of bag, on average, at most: with many rows, of which
# each tree sees few, nearly all could.
_OOB_TREES = 80
# Rows predicted in one piece of work.
_CHUNK = 5_000


class JointForest(Experts):
    """One random forest on the indicators of all thresholds.

    A tree splits where the indicators `r <= v_k` of several thresholds together
    become purest, and every leaf holds the share of its rows below every threshold.

    Parameters
    ----------
    n_estimators : int or "auto"
        Number of trees. "auto": 200, fewer with many rows, so that all trees
        together draw some 2 000 000 rows at most, but 60 at least.
    min_samples_leaf : int
        Least number of distinct rows in a leaf.
    max_features : float
        Share of the features tried at a split.
    n_components : int
        Principal components of the indicators that decide the splits, at most 4. The
        leaves hold all thresholds in any case.
    max_samples : int or "auto"
        Rows drawn, with replacement, for a tree; "auto": as many as there are, at
        most 20 000, so that time grows little with more rows.
    out_of_bag : bool
        True: rows are predicted by the trees that have not drawn them, and the folds
        are not needed. False: each tree draws from the training part of one fold and
        predicts its test part, for folds that keep groups of rows together, as a
        `LocalExpertRegressor` does for groups, copies of rows and folds of the user's.
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

    A split lowers the squared error of the first principal components of the
    indicators, by themselves nearly all of their variance: with 8 or all 25 instead
    of 4, losses changed by less than .1 %. Of each feature eight cuts are tried, one
    drawn from each eighth of the bins between the ends of a node: trees that differ
    more make a better mean than trees with the best cuts.

    Defaults were chosen by the Brier score summed over thresholds, out of bag, on the
    sets concrete, airfoil, kin8nm, abalone, insurance and seoul_bike, on raw targets
    and on residuals.

    Categories are ordered by their codes. Missing values go to the better side of a
    split, and where a feature had none in the node to the side with more rows. The
    trees cut features between at most 255 bins.

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

    trees_: list[LeafTree]

    def __init__(
        self,
        n_estimators: int | str = "auto",
        *,
        min_samples_leaf: int = 2,
        max_features: float = 0.8,
        n_components: int = 4,
        max_samples: int | str = "auto",
        out_of_bag: bool = True,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ):
        self.n_estimators = n_estimators
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.n_components = n_components
        self.max_samples = max_samples
        self.out_of_bag = out_of_bag
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def _read_saved(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Refuse trees that a file made up and that are of another table."""
        for tree in state.get("trees_", ()):
            n_columns = state["reader_"].features.n_columns
            tree.check_fit(n_columns, len(state["thresholds_"]))
        return state

    def _check_parameters(self) -> None:
        if not is_auto(self.n_estimators):
            check_integer(self.n_estimators, "n_estimators", 1)
        check_integer(self.min_samples_leaf, "min_samples_leaf", 1)
        check_number(self.max_features, "max_features", 0.0, 1.0, open_low=True)
        check_integer(self.n_components, "n_components", 1)
        if self.n_components > N_TARGETS:
            msg = (
                f"`n_components` must be at most {N_TARGETS}, got {self.n_components}."
            )
            raise ValueError(msg)
        if not is_auto(self.max_samples):
            check_integer(self.max_samples, "max_samples", 1)
        check_flag(self.out_of_bag, "out_of_bag")

    def _fit(self, tasks: Tasks) -> Float64Array:
        X = tasks.table.codes
        features = FeatureCodes.learn(X, tasks.present)
        rng = np.random.default_rng(self.random_state)
        seeds = rng.integers(2**31, size=self._count_trees(tasks)).tolist()
        below = tasks.count_below(np.arange(tasks.n))
        jobs = [
            delayed(self._grow)(tasks, features, below, number, seed, len(seeds))
            for number, seed in enumerate(seeds)
        ]
        with thread_pool(self.n_jobs) as pool:
            with current_progress().stage("trees"):
                grown = run_jobs(jobs, n_jobs=self.n_jobs, require="sharedmem")
            parts = pool(
                delayed(_predict_judged)(grown, X, rows, tasks.n_thresholds)
                for rows in _chunk_rows(tasks.n)
            )
        self.trees_ = [tree for tree, _ in grown]
        sums, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        return _fill_unjudged(sums, counts, tasks, below)

    def _predict(self, table: Table) -> Float64Array:
        X, n_thresholds = table.codes, len(self.thresholds_)
        parts = ask_each(
            lambda rows: _predict_mean(self.trees_, X[rows].copy(), n_thresholds),
            _chunk_rows(len(X)),
            len(X),
            self.n_jobs,
        )
        return np.concatenate([np.empty((0, n_thresholds)), *parts])

    def _count_trees(self, tasks: Tasks) -> int:
        if self.n_estimators != "auto":
            return int(self.n_estimators)
        trees = _MOST_DRAWN // self._count_samples(len(tasks.present))
        return int(np.clip(trees, _LEAST_TREES, _MOST_TREES))

    def _count_samples(self, n: int) -> int:
        """Return how many of `n` rows a tree draws."""
        if self.max_samples == "auto":
            return min(n, _MOST_SAMPLES)
        return int(self.max_samples)

    def _grow(
        self,
        tasks: Tasks,
        features: FeatureCodes,
        below: Rows,
        number: int,
        seed: int,
        n_trees: int,
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
        size = self._count_samples(len(source))
        drawn = np.bincount(rng.integers(len(source), size=size), minlength=len(source))
        rows = source[drawn > 0]
        weights = drawn[drawn > 0] * tasks.weights[rows]
        key = rng.integers(2**64, dtype=np.uint64)
        tree = self._grow_tree(
            features, rows, below[rows], weights, tasks.n_thresholds, key
        )
        # Out of bag: what a tree has drawn it may not be asked about.
        judged[rows] = False
        share = _OOB_TREES * tasks.n / max(1, n_trees * judged.sum())
        if share < 1.0:
            judged &= rng.random(tasks.n) < share
        return tree, np.packbits(judged)

    def _grow_tree(
        self,
        features: FeatureCodes,
        rows: Rows,
        below: Rows,
        weights: Float64Array,
        n_thresholds: int,
        key: np.uint64,
    ) -> LeafTree:
        """Grow a tree on some rows of the table, of which the others are given."""
        feature, last_left, missing_left, left, right, leaf_of = grow_tree(
            features.codes[:, rows],
            below.astype(np.int64),
            weights,
            _project_indicators(below, weights, n_thresholds, self.n_components),
            max(1, int(self.max_features * len(features.codes))),
            max(_SEARCHED, _SEARCHED_PER_LEAF_ROW * self.min_samples_leaf),
            self.min_samples_leaf,
            key,
        )
        return LeafTree.fill(
            feature,
            features.cuts[feature, last_left],
            missing_left,
            left,
            right,
            leaf_of=leaf_of,
            below=below,
            weights=weights,
            n_thresholds=n_thresholds,
        )

    def _choose_source(
        self, tasks: Tasks, number: int
    ) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the rows that a tree draws from, and those it may be asked about."""
        if self.out_of_bag and tasks.is_whole:
            return tasks.present, np.ones(tasks.n, dtype=bool)
        train, test = tasks.folds[number % len(tasks.folds)]
        judged = np.zeros(tasks.n, dtype=bool)
        judged[test] = True
        return train, judged


def _project_indicators(
    below: Rows, weights: Float64Array, n_thresholds: int, n_components: int
) -> Float64Array:
    """Return principal components of the indicators, shape (n_thresholds + 1, 4).

    A row's indicators `k >= below` depend on nothing but the number `below`, so a
    table of that many rows holds them. Columns beyond `n_components` are zero.
    """
    numbers = np.arange(n_thresholds + 1)
    mass = np.bincount(below, weights, minlength=n_thresholds + 1)
    indicators = (numbers[:, None] <= numbers[:-1]).astype(np.float64)
    indicators -= mass @ indicators / mass.sum()
    _, directions = np.linalg.eigh((mass[:, None] * indicators).T @ indicators)
    # Their sums of squares add up to nearly that of all indicators, so the purest split
    # by a few components is nearly the purest by all thresholds, at a fraction of the
    # cost.
    kept = directions[:, ::-1][:, :n_components]
    table = np.zeros((n_thresholds + 1, N_TARGETS))
    table[:, : kept.shape[1]] = indicators @ kept
    return table


def _chunk_rows(n: int) -> list[slice]:
    return [slice(start, min(start + _CHUNK, n)) for start in range(0, n, _CHUNK)]


def _predict_judged(
    grown: list[tuple[LeafTree, NDArray[np.uint8]]],
    X: Float64Array,
    rows: slice,
    n_thresholds: int,
) -> tuple[Float64Array, Float64Array]:
    """Return sums of the answers of the trees that may speak, and their numbers."""
    # Kernels are compiled for arrays that may be written to; a user's may not.
    part = X[rows].copy()
    sums = np.zeros((len(part), n_thresholds))
    counts = np.zeros(len(part))
    for tree, judged in grown:
        asked = np.unpackbits(judged, count=len(X))[rows].astype(bool)
        tree.add(part, asked, sums, counts)
    return sums, counts


def _predict_mean(
    trees: list[LeafTree], X: Float64Array, n_thresholds: int
) -> Float64Array:
    """Return the mean answer of all trees."""
    sums, counts = np.zeros((len(X), n_thresholds)), np.zeros(len(X))
    everyone = np.ones(len(X), dtype=bool)
    for tree in trees:
        tree.add(X, everyone, sums, counts)
    return sums / len(trees)


def _fill_unjudged(
    sums: Float64Array, counts: Float64Array, tasks: Tasks, below: Rows
) -> Float64Array:
    """Return mean answers, and the base rates of the other rows where there is none."""
    # With few trees a row may be in all bags. Its base rate leaves the row itself out.
    silent = counts == 0.0
    oof = sums / np.maximum(counts, 1.0)[:, None]
    if silent.any():
        weights = tasks.weights[silent, None]
        mass = np.bincount(below, tasks.weights, minlength=tasks.n_thresholds + 1)
        own = below[silent, None] <= np.arange(tasks.n_thresholds)
        others = np.cumsum(mass)[:-1] - weights * own
        oof[silent] = (others + 1.0) / (tasks.weights.sum() - weights + 2.0)
    return oof
