"""`SharedBoosting`: one boosted model of all thresholds, which increases in them."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal

import lightgbm as lgb
import numpy as np
from scipy.special import expit, logit
from sklearn.utils.parallel import delayed

from calibration._validation import (
    check_integer,
    check_number,
    is_auto,
    make_rng,
    refuse,
)
from calibration.storage import StorageError, TextTable, read_trees
from calibration.typing import Float64Array
from localexpert._kernels.threshold_trees import (
    CATEGORY,
    NUMBER,
    NUMBER_OR_NAN,
    TreeArrays,
    sum_trees,
)
from localexpert.coordinate.boosting import ONE_THREAD, find_rounds
from localexpert.data.directions import Directions, check_directions, read_directions
from localexpert.data.folds import Fold, Rows
from localexpert.data.learners import ask_each, thread_pool
from localexpert.data.table import Table
from localexpert.experts.base import Experts, Tasks
from localexpert.experts.thresholds import threshold_widths

# Bits of a node's `decision_type` in LightGBM's model format.
_CATEGORY, _MISSING_LEFT = 1, 2
_MISSING_SHIFT, _MISSING_ZERO, _MISSING_NAN = 2, 1, 2
_FLOATS = ("cut", "leaf_value")
_TYPES: dict[str, Any] = {
    name: np.float64 if name in _FLOATS else np.int64 for name in TreeArrays._fields[1:]
}


class ThresholdTrees(TreeArrays):
    """Boosted trees whose last feature is the place of the threshold."""

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

    def _check_saved(self) -> None:
        """Refuse trees that a file made up: kernels follow them without checks."""
        # Kernels would be compiled anew for others.
        if any(getattr(self, name).dtype != kind for name, kind in _TYPES.items()):
            msg = "it holds trees of thresholds of other types than ours."
            raise StorageError(msg)
        n_nodes, n_leaves = len(self.cut), len(self.leaf_value)
        n_words = len(self.category_words)
        # Of one length, or this is an error.
        columns = [self.left, self.right, self.first_word, self.n_words]
        columns += [self.feature, self.kind, self.missing_left, np.arange(n_nodes)]
        left, right, first, run, feature, *_, place = np.stack(columns)
        children = np.stack([left, right])
        ranges = [
            (children, -n_leaves, n_nodes - 1),
            (self.roots, -n_leaves, n_nodes - 1),
            (feature, 0, self.n_features),
            (run, 0, n_words),
            (first, 0, n_words - run),
        ]
        sound = ((children > place) | (children < 0)).all()
        if not sound or any(((v < a) | (v > b)).any() for v, a, b in ranges):
            msg = "it holds trees of thresholds whose nodes lead nowhere."
            raise StorageError(msg)

    def sum(self, X: Float64Array, places: Float64Array) -> Float64Array:
        """Return raw scores, shape (n, len(places)), at increasing places."""
        if X.shape[1] != self.n_features:
            refuse("X", f"have {self.n_features} columns", X.shape[1])
        on_threshold = self.feature == self.n_features
        place_cut = np.where(
            on_threshold, np.searchsorted(places, self.cut, side="right"), -1
        )
        return sum_trees(X, len(places), self, place_cut)


def _join_trees(trees: list[TextTable]) -> dict[str, Any]:
    """Return the arrays of all trees, one after the other, from their text."""
    parts: dict[str, list[Any]] = {
        name: [np.empty(0, kind)] for name, kind in _TYPES.items()
    }
    n_nodes = n_leaves = n_words = 0
    for tree in trees:
        leaves = tree.numbers("leaf_value")
        parts["roots"].append([n_nodes if len(leaves) > 1 else -n_leaves - 1])
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
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _read_nodes(tree: TextTable) -> dict[str, Any]:
    """Return the arrays of one tree's nodes from its lines."""
    decision = tree.integers("decision_type")
    cut = tree.numbers("threshold")
    is_category = (decision & _CATEGORY) > 0
    missing = decision >> _MISSING_SHIFT
    if (missing[~is_category] == _MISSING_ZERO).any():
        refuse("booster", "not take zeros as missing", "a tree that does")
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
        "category_words": tree.integers("cat_threshold"),
    }


# A category needs at least this many rows to be used. Repetitions do not count.
_ROWS_PER_CATEGORY = 10
# At most this many held-out rows, of all folds together, choose the number of rounds.
_HELD_OUT_ROWS = 5_000
# Number of rows that one job predicts.
_CHUNK = 5_000
# Draws per row: _DRAWS at _DRAWS_AT training rows. They fall with n^-_DRAWS_POWER.
_DRAWS, _DRAWS_AT, _DRAWS_POWER = 6, 10_000, 0.35
_LEAST_DRAWS, _MOST_DRAWS = 2, 12
# This share of the draws moves to the nearest threshold. The others stay between.
_SNAPPED = 0.7
# Rounds over which the step length rises to the learning rate.
_WARM_UP_ROUNDS = 20
_FIXED: dict[str, Any] = {
    "objective": "binary",
    "lambda_l2": 1.0,
    "max_bin": 127,
    "feature_pre_filter": False,
    **ONE_THREAD,
}


@dataclass(eq=False, repr=False)
class SharedBoosting(Experts):
    """One LightGBM model for all thresholds, with the threshold as a feature.

    Every training row is repeated with several thresholds, drawn separately for each
    row. The model learns whether the row's target lies below the drawn threshold. Trees
    may only increase in the threshold, so the probabilities are a distribution
    function.

    Parameters
    ----------
    draws : int or "auto"
        Thresholds per row. "auto": 6 at 10 000 rows. With fewer rows there are more (12
        at most), with more rows there are fewer (2 at least). So time grows slower than
        the number of rows.
    learning_rate : float
    num_leaves : int
    min_rows_in_leaf : int
        Least number of training rows in a leaf. Repetitions do not count, so a leaf
        holds at least this times `draws` repeated rows.
    max_rounds : int
        Greatest number of rounds. The number itself is chosen, see Notes.
    monotone : dict or list of int, optional
        Columns with which the target may only rise (+1) or only fall (-1), by name, or
        by position in an array. Every P(r <= v | x) then falls or rises there. Or a
        list of +1, -1 and 0, one for each column.
    n_jobs : int, optional
        Number of folds boosted at the same time, in threads.
    random_state : int, optional
        Seed of the draws and of the learner.

    Attributes
    ----------
    thresholds_ : ndarray of shape (N,)
    oof_probabilities_ : ndarray of shape (n, N)
        Increasing along the thresholds.
    n_rounds_ : int
        Rounds of every model.
    n_draws_ : int
        Thresholds per row.

    Notes
    -----
    Boosting starts at the base rate of every threshold, and the length of its steps
    rises over the first rounds to the learning rate.

    All folds have the same number of rounds. It has the least held-out loss, as a mean
    over folds. The loss is the Brier score summed over thresholds by their spacing.
    This is the CRPS between the outermost thresholds. Boosting does not wait for gains
    below .05 %.

    Thresholds enter as positions on their own grid, so their scale plays no part. The
    k-th threshold is at k, positions between are linear, and 0 and N + 1 lie one
    spacing beyond the ends. Draws are stratified: every row gets one from each of
    `draws` equal parts of the grid. Seven of ten draws move to the nearest threshold.
    The others stay where they are.

    Defaults were chosen by the same sum, out of fold, on the sets concrete, airfoil,
    kin8nm, abalone, insurance and seoul_bike, on raw targets and on residuals.

    References
    ----------
    Alberge et al. (2024), SurvivalBoost, arXiv 2410.16765 (thresholds redrawn).

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts import SharedBoosting
    >>> from localexpert.data.folds import make_folds
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> folds = make_folds(200, 2, random_state=0)
    >>> experts = SharedBoosting(max_rounds=50, random_state=0)
    >>> experts = experts.fit(X, X[:, 0], [0.25, 0.5, 0.75], folds)
    >>> experts.predict([[0.1], [0.6]]).round()
    array([[1., 1., 1.],
           [0., 0., 1.]])
    """

    _: KW_ONLY
    draws: int | Literal["auto"] = "auto"
    learning_rate: float = 0.15
    num_leaves: int = 16
    min_rows_in_leaf: int = 20
    max_rounds: int = 500
    monotone: Directions | None = None
    n_jobs: int | None = None
    random_state: int | None = None
    n_rounds_: int = field(init=False)
    n_draws_: int = field(init=False)
    trees_: list[ThresholdTrees] = field(init=False)
    starts_: list[Float64Array] = field(init=False)

    def _check_parameters(self) -> None:
        if not is_auto(self.draws):
            check_integer(self.draws, "draws", 1)
        check_number(self.learning_rate, "learning_rate", 0.0, open_low=True)
        check_integer(self.num_leaves, "num_leaves", 2)
        check_integer(self.min_rows_in_leaf, "min_rows_in_leaf", 1)
        check_integer(self.max_rounds, "max_rounds", 1)
        check_directions(self.monotone)

    def _fit(self, tasks: Tasks) -> Float64Array:
        X, parts = tasks.table.codes, [train for train, _ in tasks.folds]
        self.n_draws_ = self._count_draws(min(map(len, parts)))
        self.starts_ = [
            start_scores(tasks.y[part], tasks.weight[part], tasks.thresholds)
            for part in parts
        ]
        seeds = make_rng(self.random_state).integers(2**31, size=len(parts)).tolist()
        each = zip(tasks.folds, self.starts_, seeds, strict=True)
        with thread_pool(self.n_jobs) as pool:
            begin = delayed(HeldOutThresholds)
            held_out = pool(begin(self, tasks, *one) for one in each)
            shares = [tasks.weight[test].sum() for _, test in tasks.folds]
            self.n_rounds_ = find_rounds(held_out, shares, self.max_rounds, pool)
        self.trees_ = [
            ThresholdTrees.from_booster(one.model, 0, self.n_rounds_)
            for one in held_out
        ]
        tests = enumerate(test for _, test in tasks.folds)
        return self._answer(X, [(slice(k, k + 1), rows) for k, rows in tests])

    def _predict(self, table: Table) -> Float64Array:
        n = len(table)
        pieces = np.split(np.arange(n), range(_CHUNK, n, _CHUNK))
        return self._answer(table.codes, [(slice(None), rows) for rows in pieces])

    def _count_draws(self, n: int) -> int:
        """Return the thresholds per row, of which there are n in training."""
        if self.draws != "auto":
            return self.draws
        wanted = _DRAWS * (_DRAWS_AT / n) ** _DRAWS_POWER
        return int(np.clip(np.round(wanted), _LEAST_DRAWS, _MOST_DRAWS))

    def _answer(self, X: Float64Array, jobs: list[tuple[slice, Rows]]) -> Float64Array:
        """Return probabilities, shape (n, N).

        A job is a slice of the models, whose mean is taken, and the rows they answer.
        """
        places = np.arange(1.0, len(self.thresholds_) + 1.0)

        def ask(job: tuple[slice, Rows]) -> Float64Array:
            models, rows = job
            total: Float64Array = np.zeros((len(rows), len(places)))
            trees, starts = self.trees_[models], self.starts_[models]
            for one, start in zip(trees, starts, strict=True):
                total += expit(one.sum(X[rows], places) + start[1:-1])
            return total / len(trees)

        out = np.empty((len(X), len(places)))
        answers = ask_each(ask, jobs, len(X), self.n_jobs)
        for (_, rows), p in zip(jobs, answers, strict=True):
            out[rows] = p
        return out


class HeldOutThresholds:
    """A model of all thresholds that is being boosted, and scores of held-out rows.

    Parameters
    ----------
    experts : SharedBoosting
        It gives the parameters and the number of draws.
    tasks : Tasks
    fold : (train, test)
    start : ndarray of shape (N + 2,)
        Where boosting starts, see `start_scores`.
    seed : int
    """

    def __init__(
        self,
        experts: SharedBoosting,
        tasks: Tasks,
        fold: Fold,
        start: Float64Array,
        seed: int,
    ):
        train, test = fold
        self.rounds, self.learning_rate = 0, experts.learning_rate
        self.model = _start_model(experts, tasks, train, start, seed)
        held = test[tasks.weight[test] > 0.0]
        held = held if len(held) else test
        # Take held-out rows from all over, because rows may be sorted.
        rows = held[:: -(-len(held) * len(tasks.folds) // _HELD_OUT_ROWS)]
        self.X = tasks.table.codes[rows]
        self.labels = tasks.y[rows][:, None] <= tasks.thresholds
        self.widths = threshold_widths(tasks.thresholds, tasks.y, tasks.weight)
        # If no row has a weight, the fold has no weight in the mean either.
        weight = tasks.weight[rows]
        self.weight = weight / max(weight.sum(), np.finfo(float).tiny)
        self.raw = np.tile(start[1:-1], (len(rows), 1))

    def loss_after(self, n_rounds: int) -> float:
        """Add rounds until there are this many. Return the mean loss.

        The first rounds take short steps. In a good frame little is left to learn, and
        one full step would go too far.
        """
        done = self.model.current_iteration()
        for _ in range(n_rounds - self.rounds):
            warmth = (1 + self.model.current_iteration()) / _WARM_UP_ROUNDS
            rate = self.learning_rate * min(1.0, warmth)
            # LightGBM keeps its verbosity separately for each thread.
            self.model.reset_parameter({"learning_rate": rate, "verbosity": -1})
            self.model.update()
        self.rounds = n_rounds
        n_done = self.model.current_iteration()
        if n_done > done:  # it is not where no leaf can be split any more
            added = ThresholdTrees.from_booster(self.model, done, n_done)
            self.raw += added.sum(self.X, np.arange(1.0, self.raw.shape[1] + 1.0))
        # The mean Brier score, summed over thresholds by their spacing, is the CRPS
        # between the outermost ones.
        gaps = expit(self.raw) - self.labels
        return float(self.weight @ (gaps**2 @ self.widths))


def _start_model(
    experts: SharedBoosting, tasks: Tasks, rows: Rows, start: Float64Array, seed: int
) -> lgb.Booster:
    """Return a model without rounds, on the repeated rows."""
    n_draws = experts.n_draws_
    rng = np.random.default_rng(seed)
    places = draw_places(len(rows), n_draws, tasks.n_thresholds, rng)
    knots = grid_knots(tasks.thresholds)
    grid = np.arange(len(knots))
    signs = read_directions(experts.monotone, tasks.table.reader)
    parameters = {
        **_FIXED,
        "learning_rate": experts.learning_rate,
        "num_leaves": experts.num_leaves,
        "min_data_in_leaf": experts.min_rows_in_leaf * n_draws,
        "min_data_per_group": _ROWS_PER_CATEGORY * n_draws,
        # P(r <= v | x) may only rise with v, so it is always a distribution function.
        # If r may only rise with a feature, P may only fall with it.
        "monotone_constraints": [*(-sign for sign in signs), 1],
        "seed": seed,
    }
    repeated = np.repeat(tasks.table.codes[rows], n_draws, axis=0)
    data = lgb.Dataset(
        np.column_stack([repeated, places.ravel()]),
        (tasks.y[rows, None] <= np.interp(places, grid, knots)).ravel(),
        weight=np.repeat(tasks.weight[rows], n_draws) if tasks.weighted else None,
        # Boosting starts from the base rate of the place, also between thresholds.
        init_score=np.interp(places, grid, start).ravel(),
        categorical_feature=tasks.table.reader.categories,
        params=parameters,
        free_raw_data=True,
    )
    return lgb.Booster(parameters, data)


# Place k is the k-th threshold, and places between are linear; 0 and N + 1 are one
# spacing beyond the ends.
def grid_knots(thresholds: Float64Array) -> Float64Array:
    """Return the thresholds with one more, a spacing away, at either end."""
    if len(thresholds) == 1:
        return np.asarray(thresholds[0] + np.array([-1.0, 0.0, 1.0]))
    low = 2.0 * thresholds[0] - thresholds[1]
    high = 2.0 * thresholds[-1] - thresholds[-2]
    return np.concatenate([[low], thresholds, [high]])


def start_scores(
    y: Float64Array, weight: Float64Array, thresholds: Float64Array
) -> Float64Array:
    """Return the log-odds of the base rates at the grid's knots, shape (N + 2,).

    Boosting starts there, so trees must only learn how rows differ, not the marginal.
    The rates are smoothed, (w1 + 1/2) / (w + 1).
    """
    order = np.argsort(y, kind="stable")
    mass = np.append(0.0, np.cumsum(weight[order]))
    knots = grid_knots(thresholds)
    below = mass[np.searchsorted(y[order], knots, side="right")]
    rates: Float64Array = (below + 0.5) / (mass[-1] + 1.0)
    return logit(rates)


def draw_places(
    n: int, n_draws: int, n_thresholds: int, rng: np.random.Generator
) -> Float64Array:
    """Return positions on the grid, shape (n, n_draws), one from each stratum."""
    # One draw from each stratum spreads a row's draws over the grid. The same number of
    # independent draws would leave larger gaps and more noise.
    strata = (np.arange(n_draws) + rng.random((n, n_draws))) / n_draws
    # From half a cell before the first threshold to half a cell after the last, so
    # that snapping leaves all thresholds equally frequent.
    places = 0.5 + n_thresholds * strata
    # Forecasts only use the thresholds themselves, so most draws lie there. Draws
    # between them keep the trees from cutting right beside a threshold.
    snapped = rng.random((n, n_draws)) < _SNAPPED
    return np.where(snapped, np.clip(np.rint(places), 1, n_thresholds), places)
