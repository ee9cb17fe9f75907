"""`Pool` lets roads compete, and weighs them by the CRPS of their joint forecast."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize, minimize_scalar
from scipy.special import ndtr

from calibration.typing import Float64Array
from localexpert.data.blend import simplex_least_squares
from localexpert.data.folds import Rows, Sample, number_folds
from localexpert.data.table import Table
from localexpert.experts.report import TaskRecord
from localexpert.law.join import PoolKind, can_pool_scores, pool_laws
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, map_levels
from localexpert.law.steps import clip_scores, scores_of
from localexpert.learn.learner import Asked, Learner, Member
from localexpert.learn.settings import Effort
from localexpert.learn.stages import WEIGHT_OF_CRPS
from localexpert.learn.steps import Step
from localexpert.progress import current_progress

# A pool counts as no gain if it gains less than this share of the best road's CRPS.
_LEAST_GAIN = 0.0005
# A road with less weight is left out of a pool.
_LEAST_WEIGHT = 0.05
# The greatest sharpness. A pool is never made wider, and rarely needs more than this.
_MOST = 1.5
# The prior for leaving the pool as it is counts as this many rows.
_ROWS_BEFORE = 100.0
# Scores of rows are clipped at this. Normal scores then have this mean square.
_FARTHEST, _MEAN_SQUARE = 3.0, 0.995
_LEAST_MASS = 1e-12
_KINDS: tuple[PoolKind, ...] = ("linear", "probit")


class Pool(Learner):
    """Fit roads, and pool their forecasts with the weights of least CRPS.

    Parameters
    ----------
    roads : mapping of str to Learner
        Unfitted. The first road is always finished. Another road is finished only if it
        may help. Roads without weight are not kept.
    random_state : int
        Seed. It draws the rows that serve to weigh the roads.
    effort : Effort
        A road begins if enough time is left: the time of the first road times its
        `cost`.
    exact : bool
        Whether the pool must follow from the roads' forecasts up to rounding, so that
        the order of rows is kept. If the laws are not discrete, the best road is then
        taken alone, because a pool of curves is a new curve.
    steps : tuple of Step
        Unfitted.

    Attributes
    ----------
    fitted_ : dict of str to Learner
        The roads that take part in the forecast.
    weights_ : dict of str to float
        Their weights, which sum to 1.
    kind_ : {"linear", "probit"}
        How their laws are pooled.
    sharpness_ : float
        Factor of the pool's normal scores, see `learn_sharpness`.
    losses_ : dict of str to float
        Expected CRPS on new rows, for every road and every pool that was compared. For
        a road in `unfinished_` it is the best that this road could hope for.
    unfinished_ : list of str
        Roads that were not promising.
    left_out_ : list of str
        Roads for which there was no time.
    """

    def __init__(
        self,
        roads: Mapping[str, Learner],
        random_state: int,
        effort: Effort,
        *,
        exact: bool,
        steps: tuple[Step, ...] = (),
    ):
        self.roads, self.random_state, self.exact = roads, random_state, exact
        self.steps, self.effort = steps, effort
        self.kind_: PoolKind = "linear"
        self.losses_: dict[str, float] = {}
        self.unfinished_: list[str] = []
        self.left_out_: list[str] = []

    def _start(self, sample: Sample) -> float:
        """Fit the first stage of the first road, and return its result."""
        name, road = next(iter(self.roads.items()))
        with current_progress().stage(name):
            self._sketch = road.start(sample)
        return self._sketch

    def _finish(self, sample: Sample) -> None:
        """Finish the first road, try the others, and weigh all finished roads."""
        y = sample.without_outliers().y
        finished: dict[str, Learner] = {}
        laws: list[Law] = []
        began, first = time.perf_counter(), 0.0
        for name, road in self.roads.items():
            if finished and not self.effort.allows(road.cost * first):
                self.left_out_.append(name)
                continue
            with current_progress().stage(name):
                if finished and not self._is_promising(name, road, sample):
                    continue
                finished[name] = road.finish()
            held = sample.weight[road.judged_]
            places = draw_rows(held, ROWS_TO_WEIGH, self.random_state)
            rows = road.judged_[places]
            law = road.law(places, y[rows])
            laws.append(law)
            self.losses_[name] = mean_crps(law, y[rows], held[places])
            first = first or time.perf_counter() - began
        with current_progress().stage("pool"):
            self._weigh(finished, laws, replace(sample, y=y))
        # The other roads still hold all their models.
        self.roads = self.fitted_
        del self._sketch

    def _weigh(
        self, finished: dict[str, Learner], laws: list[Law], sample: Sample
    ) -> None:
        """Take the pool or road with the least CRPS on the rows that all judge."""
        self.judged_ = reduce(
            np.intersect1d, [road.judged_ for road in finished.values()]
        )
        judged = sample.take_judged(self.judged_)
        number = number_folds(judged.folds, len(judged))
        places = draw_rows(judged.weight, ROWS_TO_WEIGH, self.random_state)
        y, weight = judged.y[places], judged.weight[places]
        if any(len(r.judged_) > len(self.judged_) for r in finished.values()):
            for road in finished.values():
                road.keep_rows(np.flatnonzero(np.isin(road.judged_, self.judged_)))
            laws = [road.law(places, y) for road in finished.values()]
        if len(laws) == 1:
            self._take(finished, np.ones(1), np.ones((len(judged), 1)))
            return
        scores = PoolScores.of(laws, y, weight, number[places], len(judged.folds))
        kinds = _KINDS if can_pool_scores(laws) else _KINDS[:1]
        if self.exact and not all(law.is_discrete for law in laws):
            kinds = ()
        own, of_folds = self._choose_weights(list(finished), scores, kinds)
        self._take(finished, own, of_folds[number])
        if len(self.weights_) == 1:
            return
        rows = of_folds[number[places]]
        pool = self._join([laws[k] for k in np.flatnonzero(own)], rows[:, own > 0.0])
        self.sharpness_ = learn_sharpness(
            pool, y, weight, partial(scores.crps, rows, self.kind_)
        )

    def _take(
        self, finished: dict[str, Learner], own: Float64Array, oof: Float64Array
    ) -> None:
        """Keep the roads with weight (M,), and the weights (m, M) of judged rows.

        If the pool was not learned from a row, the row gets the weights of its fold.
        """
        held = own > 0.0
        named = zip(finished, own, held, strict=True)
        self.weights_ = {name: float(w) for name, w, some in named if some}
        self.fitted_ = {name: finished[name] for name in self.weights_}
        self.heaviest_ = max(self.weights_, key=self.weights_.__getitem__)
        self.oof_weights_, self.sharpness_ = oof[:, held], 1.0

    def _is_promising(self, name: str, road: Learner, sample: Sample) -> bool:
        """Begin a road, and return whether it may still help."""
        trial = road.start(sample)
        least = min(self.losses_.values())
        # It is 0 if only the whole road could tell.
        if road.is_sketch and self._sketch > 0.0:
            least = self._sketch
        if trial <= road.hopeless * least:
            return True
        self.losses_[name] = trial
        self.unfinished_.append(name)
        return False

    def _choose_weights(
        self, names: list[str], scores: PoolScores, kinds: Sequence[PoolKind]
    ) -> tuple[Float64Array, Float64Array]:
        """Return weights (M,), and for each fold those learned outside it (F, M)."""
        best = int(np.argmin([self.losses_[name] for name in names]))
        chosen, least = None, (1.0 - _LEAST_GAIN) * self.losses_[names[best]]
        for kind in kinds:
            found = scores.learn(kind, self.random_state)
            loss = self.losses_[kind] = scores.crps(found[1][scores.fold], kind)
            if loss < least:
                chosen, least, self.kind_ = found, loss, kind
        alone = np.eye(len(names))[best]
        if chosen is None:
            return alone, np.tile(alone, (scores.n_folds, 1))
        rows = np.vstack(chosen) * (chosen[0] >= _LEAST_WEIGHT)
        total = rows.sum(axis=1, keepdims=True)
        own = rows[0] / total[0]
        rows = np.where(total > 0.0, rows / np.maximum(total, 1e-300), own)
        return own, rows[1:]

    def _law(self, asked: Asked, y: Float64Array | None = None) -> Law:
        laws = [road.law(asked, y) for road in self.fitted_.values()]
        if isinstance(asked, Table):
            return self._join(laws, np.array(list(self.weights_.values())))
        return self._join(laws, self.oof_weights_[asked])

    def _members(self, table: Table) -> list[Member]:
        return [
            (weight * within, laws)
            for name, weight in self.weights_.items()
            for within, laws in self.fitted_[name].members(table)
        ]

    def _join(self, laws: list[Law], weights: Float64Array) -> Law:
        """Return the pool as one law, with weights (M,) or (n, M)."""
        law = pool_laws(laws, weights, self.kind_)
        if self.sharpness_ > 1.0:
            return map_levels(law, LevelMap.line(0.0, self.sharpness_))
        return law

    def _keep_rows(self, places: Rows) -> None:
        """Pass the rows on to the roads."""
        self.oof_weights_ = self.oof_weights_[places]
        for road in self.fitted_.values():
            road.keep_rows(places)

    def _points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        return self.fitted_[self.heaviest_].points(table)

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts of the heaviest road said out of fold."""
        return self.fitted_[self.heaviest_].tasks_

    def _choices(self) -> dict[str, Any]:
        """Return the roads' weights and losses, and what the heaviest one chose."""
        roads = {
            "kind": self.kind_ if len(self.weights_) > 1 else self.heaviest_,
            "weights": self.weights_,
            "sharpness": self.sharpness_,
            "losses": self.losses_,
            "unfinished": self.unfinished_,
            "left out": self.left_out_,
        }
        within = self.fitted_[self.heaviest_].choices()
        if "roads" in within:
            # The heaviest road is itself a pool.
            roads["within"] = within.pop("roads")
        return {"roads": roads, **within}


def learn_sharpness(
    law: Law, y: Float64Array, weight: Float64Array, crps: Callable[[float], float]
) -> float:
    r"""Return the k >= 1 for the scores of a pool, Phi(k Phi^-1(F)).

    A pool of calibrated forecasts that differ is too wide (Gneiting & Ranjan 2013,
    theorem 3.1). The loss is the same as for curves: the mean log score and ten times
    the logarithm of the mean CRPS. For a smooth F, let z = Phi^-1(F(y)). The log score
    is log k - (k^2 - 1) z^2 / 2 plus a part without k. If F jumps, it is the log score
    of the mass between two scores. The prior for k = 1 counts as 100 rows.

    Parameters
    ----------
    law : Law
        The pool for n rows. It was not learned from any of them.
    y, weight : ndarrays of shape (n,)
    crps : function of k
        The mean CRPS.

    Returns
    -------
    float

    References
    ----------
    Gneiting & Ranjan (2013), Combining predictive distributions, Electronic Journal of
    Statistics 7.
    """
    share = weight / weight.sum()
    at = y[:, None]
    under, upto = clip_scores(law.scores(at, np.array([[0.0, 1.0]])).T)
    jumps = np.isin(y, law.atoms) | law.all_jumps
    is_last = y >= law.support[1]
    smooth, apart = share[~jumps].sum(), share[jumps]
    squares = np.minimum(upto[~jumps] ** 2, _FARTHEST**2) / _MEAN_SQUARE
    square = float(share[~jumps] @ squares)
    before = _ROWS_BEFORE / weight.sum()

    def loss(k: float) -> float:
        missed = 0.5 * k**2 * square - smooth * np.log(k)
        masses = np.where(is_last, 1.0, ndtr(k * upto)) - ndtr(k * under)
        missed -= apart @ np.log(np.maximum(masses[jumps], _LEAST_MASS))
        missed += before * (0.5 * k**2 - np.log(k))
        return float(missed + WEIGHT_OF_CRPS * np.log(max(crps(k), _LEAST_MASS)))

    return float(minimize_scalar(loss, bounds=(1.0, _MOST), method="bounded").x)


# Number of rows that serve to weigh members. Two or three weights need no more.
ROWS_TO_WEIGH = 2000
# A mesh lies between the quantiles at these normal scores.
_MESH = np.linspace(-4.0, 4.0, 41)
# With a little of the identity, equal members have a solution: equal weights.
_TOUCH = 1e-10
_SQRT_TWO_PI = np.sqrt(2.0 * np.pi)
# Strengths of the pull towards equal weights that are compared. inf is equal weights.
RIDGES = (0.0, 0.003, 0.01, 0.03, 0.1, np.inf)
# The weights of a probit pool are fitted on at most this many rows.
_ROWS_TO_FIT = 1000


def mean_crps(law: Law, y: Float64Array, weight: Float64Array) -> float:
    """Return the weighted mean CRPS of the laws of n rows.

    Parameters
    ----------
    law : Law
    y, weight : ndarrays of shape (n,)

    Returns
    -------
    float
    """
    return float(np.average(law.crps(y[:, None])[:, 0], weights=weight))


def draw_rows(weight: Float64Array, most: int, seed: int) -> Rows:
    """Draw some of the rows that have weight, and return them in order.

    Parameters
    ----------
    weight : ndarray of shape (n,)
    most : int
    seed : int

    Returns
    -------
    ndarray of int
    """
    rng = np.random.default_rng(seed)
    return np.sort(rng.permutation(np.flatnonzero(weight))[:most])


def linear_weights(matrix: Float64Array, ridge: float = 0.0) -> Float64Array:
    """Return the w >= 0 with sum 1 and the least w' A w, pulled to equal weights.

    Parameters
    ----------
    matrix : ndarray of shape (M, M)
        Symmetric, positive semidefinite.
    ridge : float
        Weight of M sum_k (w_k - 1 / M)^2, relative to the mean of the diagonal. inf
        gives equal weights.

    Returns
    -------
    ndarray of shape (M,)
    """
    m = len(matrix)
    size = np.trace(matrix) / m
    if np.isinf(ridge) or size <= 0.0:
        return np.full(m, 1.0 / m)
    # If w has sum 1, w' w is the squared distance from equal weights plus a constant.
    return simplex_least_squares(matrix / size + (ridge * m + _TOUCH) * np.eye(m))


@dataclass(frozen=True, eq=False)
class PoolScores:
    """The members' answers on a mesh in y for each row. The CRPS of a pool is a sum.

    Parameters
    ----------
    scores : ndarray of shape (M, n, m)
        Normal scores of the members' CDFs.
    dy : ndarray of shape (n, m)
        Weights of the mesh.
    above : ndarray of shape (n, m)
        Whether a point is at or above the row's y.
    weight : ndarray of shape (n,)
    fold : ndarray of int, shape (n,)
        The number of each row's fold. A fold may have no rows.
    n_folds : int
    """

    scores: Float64Array
    dy: Float64Array
    above: NDArray[np.bool_]
    weight: Float64Array
    fold: Rows
    n_folds: int

    @classmethod
    def of(
        cls,
        laws: Sequence[Law],
        y: Float64Array,
        weight: Float64Array,
        fold: Rows,
        n_folds: int,
    ) -> Self:
        """Return the scores on a mesh between the members' quantiles, and at y.

        For laws of any kind the CRPS is right to about 1e-3, which is enough to choose
        weights.

        Parameters
        ----------
        laws : sequence of M laws
            Laws of the same n rows.
        y : ndarray of shape (n,)
        weight, fold, n_folds
            As above.
        """
        at = np.tile(_MESH, (len(y), 1))
        quantiles = [law.ppf_scores(at) for law in laws]
        borders = np.sort(np.hstack([*quantiles, y[:, None]]), axis=1)
        middle = 0.5 * borders[:, 1:] + 0.5 * borders[:, :-1]
        z = np.stack([clip_scores(law.scores(middle)) for law in laws])
        dy, above = np.diff(borders, axis=1), middle >= y[:, None]
        return cls(z, dy, above, weight, fold, n_folds)

    def matrices(self) -> Float64Array:
        """Return the forms A (n, M, M) of linear pools: CRPS = w' A w if w has sum 1.

        A_kl is the integral of (F_k - 1{y <= x}) (F_l - 1{y <= x}).
        """
        miss = ndtr(self.scores) - self.above
        forms = np.einsum("kng,lng,ng->nkl", miss, miss, self.dy, optimize=True)
        return np.asarray(forms)

    def take(self, rows: Rows) -> Self:
        """Return the scores of some rows."""
        return replace(
            self,
            scores=self.scores[:, rows],
            dy=self.dy[rows],
            above=self.above[rows],
            weight=self.weight[rows],
            fold=self.fold[rows],
        )

    def crps(
        self, weights: Float64Array, kind: PoolKind, sharpness: float = 1.0
    ) -> float:
        """Return the mean CRPS of the pool, with each row's weights (n, M)."""
        shares = weights.T[:, :, None]
        if kind == "linear":
            p = (shares * ndtr(self.scores)).sum(axis=0)
            if sharpness != 1.0:
                p = ndtr(sharpness * clip_scores(scores_of(p, 1.0 - p)))
        else:
            p = ndtr(sharpness * (shares * self.scores).sum(axis=0))
        each = (self.dy * (p - self.above) ** 2).sum(axis=1)
        return float(np.average(each, weights=self.weight))

    def learn(self, kind: PoolKind, seed: int) -> tuple[Float64Array, Float64Array]:
        """Return weights of least CRPS: learned from all rows, and outside each fold.

        Parameters
        ----------
        kind : {"linear", "probit"}
        seed : int
            Draws the rows on which a probit pool is fitted.

        Returns
        -------
        weights : ndarray of shape (M,)
        of_folds : ndarray of shape (n_folds, M)
        """
        folds = range(self.n_folds)
        weighted = self.weight[:, None, None] * self.matrices()
        sums = np.stack([weighted[self.fold == k].sum(axis=0) for k in folds])
        ridge = _choose_ridge(sums)
        total = sums.sum(axis=0)
        # The total less the sum of a fold is the sum of the other folds.
        found = [linear_weights(a, ridge) for a in (total, *(total - sums))]
        if kind == "probit":
            some = self.take(draw_rows(self.weight, _ROWS_TO_FIT, seed))
            found = [some.weights(some.weight, found[0], ridge)]
            for k in folds:
                rest = np.where(some.fold == k, 0.0, some.weight)
                # If there are no rows outside the fold, take the weights of all rows.
                known = rest.any()
                found.append(some.weights(rest, found[0], ridge) if known else found[0])
        return found[0], np.stack(found[1:])

    def loss(
        self, w: Float64Array, weight: Float64Array, ridge: float
    ) -> tuple[float, Float64Array]:
        """Return the loss and its gradient: mean CRPS plus the pull to equal weights.

        Parameters
        ----------
        w : ndarray of shape (M,)
        weight : ndarray of shape (n,)
            Of the rows.
        ridge : float
            Weight of sum_k (w_k - 1 / M)^2.

        Returns
        -------
        loss : float
        gradient : ndarray of shape (M,)
        """
        pooled = np.tensordot(w, self.scores, axes=1)
        miss = ndtr(pooled) - self.above
        share = (weight / weight.sum())[:, None] * self.dy
        slope = 2.0 * share * miss * np.exp(-0.5 * pooled**2) / _SQRT_TWO_PI
        away = w - 1.0 / len(w)
        loss = float((share * miss**2).sum() + ridge * away @ away)
        gradient = np.tensordot(self.scores, slope, axes=2) + 2.0 * ridge * away
        return loss, gradient

    def weights(
        self, weight: Float64Array, start: Float64Array, ridge: float = 0.0
    ) -> Float64Array:
        """Return the w >= 0 with sum 1 and the least loss, searched from a start.

        Parameters
        ----------
        weight : ndarray of shape (n,)
        start : ndarray of shape (M,)
        ridge : float
            As in `linear_weights`, but relative to the loss at the start.

        Returns
        -------
        ndarray of shape (M,)
        """
        m = len(start)
        size = self.loss(start, weight, 0.0)[0]
        if np.isinf(ridge) or size <= 0.0 or m == 1:
            return np.full(m, 1.0 / m)

        def relative(w: Float64Array) -> tuple[float, Float64Array]:
            loss, gradient = self.loss(w, weight, ridge * m * size)
            return loss / size, gradient / size

        found = minimize(
            relative,
            start,
            jac=True,
            method="SLSQP",
            bounds=[(0.0, 1.0)] * m,
            constraints=LinearConstraint(np.ones((1, m)), 1.0, 1.0),
            options={"ftol": 1e-9, "maxiter": 100},
        )
        w = np.clip(found.x, 0.0, 1.0)
        # The solver leaves tiny numbers where a weight is zero.
        w[w < 1e-6] = 0.0
        return np.asarray(w / w.sum())


def _choose_ridge(sums: Float64Array) -> float:
    """Return the pull with the least held-out CRPS, from sums by fold (F, M, M)."""
    total = sums.sum(axis=0)

    def held_out(ridge: float) -> float:
        w = [linear_weights(total - part, ridge) for part in sums]
        return sum(float(one @ part @ one) for one, part in zip(w, sums, strict=True))

    losses = [held_out(ridge) for ridge in RIDGES]
    return RIDGES[int(np.argmin(losses))]
