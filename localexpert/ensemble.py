"""Pools of distributions that you already have, and of those of several regressors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from functools import reduce
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    all_or_nothing,
    as_numbers,
    check_choice,
    check_integer,
    check_list,
    check_n_jobs,
    check_same_length,
    check_weights,
    refuse,
    told_of_light,
)
from calibration.typing import Float64Array
from localexpert._validation import check_seed
from localexpert.data.folds import Fold, make_folds, number_folds
from localexpert.data.honest_rows import find_copies
from localexpert.data.learners import seeded
from localexpert.data.target_values import range_without_outliers
from localexpert.data.unseen import unseen_once
from localexpert.distribution.predictive import (
    PredictiveDistribution,
    check_distribution,
    check_outcomes,
)
from localexpert.distribution.predictors import check_predicts, predict_dist
from localexpert.law.join import PoolKind, can_pool_scores, pool_laws
from localexpert.law.law import Law
from localexpert.learn.pool import ROWS_TO_WEIGH, PoolScores, draw_rows, mean_crps
from localexpert.recalibration.conformal import make_recalibration
from localexpert.regressor.adapter import DistributionAdapter, arguments_of_fit
from localexpert.regressor.base import DistributionRegressor
from localexpert.regressor.regressor import LocalExpertRegressor


def pool(
    dists: Sequence[PredictiveDistribution],
    weights: ArrayLike | None = None,
    *,
    kind: PoolKind = "linear",
) -> PredictiveDistribution:
    r"""Return the pool of distributions of the same rows.

    Parameters
    ----------
    dists : sequence of M PredictiveDistribution
        Each holds the same n rows. They may come from any models.
    weights : array-like of shape (M,) or (n, M), optional
        Not negative, with sum 1. The default is equal weights. `pool_weights` learns
        them.
    kind : {"linear", "probit"}
        "linear" is :math:`\sum_k w_k F_k`. "probit" is
        :math:`\Phi(\sum_k w_k \Phi^{-1}(F_k))`. It is sharper if the forecasts make
        similar errors. It needs distributions that are all smooth, or all discrete.

    Returns
    -------
    PredictiveDistribution

    Notes
    -----
    A pool of discrete distributions is exact. A pool of curves is a new curve through
    91 normal scores of the pool. If the peaks overlap and have like widths, the CDF and
    the CRPS are right to about 1e-5. Of N(0, 1) and N(0, s^2) in equal parts, the CDF
    is right to 3e-4 for s = 10 and to 2e-2 for s = 1000. Next to a deep gap between
    peaks both are less exact. For N(0, 1) and N(4, 0.5^2) in equal parts, the CDF is
    right to 1e-3 and the CRPS to 2e-4 of the spread. For N(0, 1) and N(20, 0.2^2) both
    are right to 1e-2. Do not rely on log scores of outcomes within such a gap. The
    density of one distribution may jump inside the range of the others, for example at
    a bound that only it has. There the CDF of the pool is off by up to 0.06.

    References
    ----------
    Gneiting & Ranjan (2013), Combining predictive distributions.

    Examples
    --------
    >>> from scipy import stats
    >>> from localexpert import PredictiveDistribution, pool
    >>> low = PredictiveDistribution.from_scipy(stats.norm(0.0, 1.0))
    >>> high = PredictiveDistribution.from_scipy(stats.norm(2.0, 1.0))
    >>> pool([low, high]).std().round(3)
    array([1.414])
    >>> pool([low, high], [0.25, 0.75], kind="probit").median().round(3)
    array([1.5])
    """
    given = _check_dists(dists)
    laws = [dist.law for dist in given]
    check_choice(kind, "kind", ("linear", "probit"))
    if weights is None:
        weights = np.full(len(laws), 1.0 / len(laws))
    rows = as_numbers(weights, "weights")
    n = len(laws[0])
    if rows.shape not in ((len(laws),), (n, len(laws))):
        shapes = f"({len(laws)},) or ({n}, {len(laws)})"
        rule = f"have shape {shapes}, a weight for each distribution"
        refuse("weights", rule, f"shape {rows.shape}")
    return replace(given[0], law=pool_laws(laws, rows, kind))


def pool_weights(
    dists: Sequence[PredictiveDistribution],
    y: ArrayLike,
    *,
    kind: PoolKind = "linear",
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_state: int = 0,
) -> Float64Array:
    """Return the weights that give a pool the least CRPS.

    Parameters
    ----------
    dists : sequence of M PredictiveDistribution
        Each holds the same n rows. The models behind them must not have seen these
        rows, so the forecasts are out of fold. Only 2000 rows are used if there are
        more.
    y : array-like of shape (n,)
        The outcomes of these rows.
    kind : {"linear", "probit"}
        As for `pool`.
    sample_weight : array-like of shape (n,), optional
    groups : array-like of shape (n,), optional
        Rows of one group stay in one fold.
    random_state : int
        Seed. It deals the rows into folds, which choose the pull towards equal weights.
        It also draws the rows that are used.

    Returns
    -------
    ndarray of shape (M,)
        Not negative, with sum 1.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from localexpert import PredictiveDistribution, pool_weights
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> good = PredictiveDistribution.from_scipy(stats.norm(0.0, 1.0), 200)
    >>> bad = PredictiveDistribution.from_scipy(stats.norm(3.0, 1.0), 200)
    >>> bool(pool_weights([good, bad], y)[0] > 0.95)
    True
    """
    given = _check_dists(dists)
    check_choice(kind, "kind", ("linear", "probit"))
    seed = check_integer(random_state, "random_state", 0)
    outcomes = check_outcomes(y, given[0])
    if len(outcomes) < 2:
        refuse("y", "have at least two rows", len(outcomes))
    weight = check_weights(sample_weight, len(outcomes))
    laws = [dist.law for dist in given]
    return _score_some(laws, outcomes, weight, groups, seed)[2].learn(kind, seed)[0]


def _score_some(
    laws: list[Law], y: Float64Array, weight: Float64Array, groups: Any, seed: int
) -> tuple[Float64Array, list[Fold], PoolScores]:
    """Return targets to weigh by, folds, and scores of as many rows as weights need.

    The seed deals and draws the rows.
    """
    # The CRPS grows with the distance, so one row far out would decide the weights.
    target = np.clip(y, *range_without_outliers(y, weight))
    folds = make_folds(len(y), "auto", None, groups, seed, weight)
    rows = draw_rows(weight, ROWS_TO_WEIGH, seed)
    number = number_folds(folds, len(y))[rows]
    drawn, held = [law.take(rows) for law in laws], (target[rows], weight[rows])
    return target, folds, PoolScores.of(drawn, *held, number, len(folds))


def _check_dists(dists: Any) -> list[PredictiveDistribution]:
    """Return distributions as a list: one or more, of equal length."""
    if isinstance(dists, PredictiveDistribution):
        rule = "be a list of distributions"
        refuse("dists", rule, "one PredictiveDistribution", TypeError)
    given = check_list(dists, "dists", "distributions")
    if len(given) == 0:
        refuse("dists", "hold at least one distribution", "none")
    for dist in given:
        own = len(check_distribution(dist, "dists"))
        check_same_length(len(given[0]), "the first of them", own, "dists")
    return given


@dataclass(eq=False, repr=False)
class DistributionEnsemble(DistributionRegressor):
    """Pool the distributions of several regressors.

    Parameters
    ----------
    members : list of (str, regressor)
        Names and unfitted regressors. A regressor is a `LocalExpertRegressor`, or
        anything that the function `predict_dist` accepts. The latter is wrapped in a
        `DistributionAdapter`, which makes its forecasts out of fold.
    pool : {"auto", "linear", "probit"}
        "linear" averages the CDFs. "probit" averages their normal scores. It is sharper
        if members make similar errors, and needs laws without jumps, or laws with only
        jumps. "auto" takes the one with the smaller out-of-fold CRPS after
        recalibration. Weights and this choice move targets that are far out nearer.
    recalibrate : {"pit"}, Recalibration or None
        Correction of the pool by its out-of-fold PIT values. It is needed because a
        linear pool of calibrated laws is too wide.
    n_jobs : int, optional
        Number of jobs of members that do not set their own. Results do not depend on
        it.
    random_state : int, optional
        Seed of members that do not set their own.

    Attributes
    ----------
    members_ : dict of str to regressor
        Fitted.
    weights_ : dict of str to float
        Not negative, with sum 1.
    pool_ : {"linear", "probit"}
        The kind of pool that was taken.
    losses_ : dict of str to float
        Mean out-of-fold CRPS of every member, and of every kind of pool that was
        compared. Each row is pooled with weights learned from other folds.
    oof_distribution_ : PredictiveDistribution
        Forecasts of the training rows. Members, weights and recalibration are all out
        of fold.
    recalibration_ : Recalibration or None
        Fitted.
    fitted_rows_ : ndarray of int
        Rows that `oof_distribution_` describes. These are the rows that all members
        have forecast out of fold.

    Notes
    -----
    The CRPS of a linear pool is a quadratic form in the weights and is minimised
    exactly. The CRPS of the probit pool is minimised numerically. Both use 2000 rows at
    most. Both pull the weights towards equal ones; the held-out CRPS decides how hard.
    Each member has its own folds. Its out-of-fold forecast of a row comes from models
    that have not seen the row, so the same is true of the pool.

    References
    ----------
    Gneiting & Ranjan (2013), Combining predictive distributions; Hall & Mitchell
    (2007), Combining density forecasts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from localexpert import LocalExpertRegressor
    >>> from localexpert.ensemble import DistributionEnsemble
    >>> from localexpert.experts import JointForest
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 2))
    >>> y = 3 * X[:, 0] + (0.1 + X[:, 1]) * rng.normal(size=200)
    >>> quick = {"center": LinearRegression(), "n_thresholds": 5, "cv": 2}
    >>> forest = JointForest(20, random_state=0)
    >>> members = [
    ...     (frame, LocalExpertRegressor(frame=frame, strategy=forest, **quick))
    ...     for frame in ("center", "standardize")
    ... ]
    >>> model = DistributionEnsemble(members, random_state=0).fit(X, y)
    >>> dist = model.predict_dist([[0.5, 0.1], [0.5, 0.9]])
    >>> bool(dist.std()[0] < dist.std()[1])
    True
    >>> sorted(model.losses_)
    ['center', 'linear', 'probit', 'standardize']
    """

    members: Sequence[tuple[str, Any]]
    _: KW_ONLY
    pool: Literal["auto", "linear", "probit"] = "auto"
    recalibrate: Any = "pit"
    n_jobs: int | None = None
    random_state: int | None = None

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit every member, and learn how to pool them.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            As `LocalExpertRegressor.fit` takes it.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        groups : array-like of shape (n,), optional
            Rows of one group stay in one fold.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            given = {"sample_weight": sample_weight, "groups": groups}
            table, target, weight, groups = self._check_data(X, y, **given)
            seed = self._check_parameters()
            members = _seeded_clones(_named(self.members), seed, self.n_jobs)
            for name, member in members.items():
                if isinstance(member, LocalExpertRegressor):
                    with _speaking_of_member(name):
                        member._check_parameters(target[weight > 0.0], groups)
            with told_of_light():
                for name, member in members.items():
                    with _speaking_of_member(name):
                        member.fit(table, target, **arguments_of_fit(member, **given))
                if groups is None:
                    groups = find_copies(table, weight, "auto", seed)
                self._learn(members, target, weight, groups, seed)
        return self

    def _learn(
        self,
        fitted: dict[str, Any],
        y: Float64Array,
        weight: Float64Array,
        groups: NDArray[Any] | None,
        seed: int,
    ) -> None:
        """Weigh fitted members by their out-of-fold forecasts."""
        judged = [member.fitted_rows_ for member in fitted.values()]
        rows = reduce(np.intersect1d, judged)
        held = rows[weight[rows] > 0.0]
        n_parts = len(held if groups is None else np.unique(groups[held]))
        if n_parts < 2:
            what = "rows" if groups is None else "groups"
            rule = f"have forecast two {what} with a weight in common out of fold"
            refuse("members", rule, f"{n_parts}: let them leave the same rows out")
        places = (np.searchsorted(own, rows) for own in judged)
        laws = [
            member.oof_distribution_.law.take(place)
            for member, place in zip(fitted.values(), places, strict=True)
        ]
        weight = weight[rows]
        parts = None if groups is None else groups[rows]
        target, folds, scores = _score_some(laws, y[rows], weight, parts, seed)
        alone = [mean_crps(law, y[rows], weight) for law in laws]
        self.losses_ = dict(zip(fitted, alone, strict=True))
        least = np.inf
        number = number_folds(folds, len(target))
        for kind in self._kinds(laws):
            own, of_folds = scores.learn(kind, seed)
            law = pool_laws(laws, of_folds[number], kind)
            recalibration = make_recalibration(self.recalibrate, seed)
            if recalibration is not None:
                law = recalibration.fit(law, target, weight, folds).apply_oof(law)
            loss = mean_crps(law, target, weight)
            self.losses_[kind] = mean_crps(law, y[rows], weight)
            if loss < least:
                least, self.pool_, self.recalibration_ = loss, kind, recalibration
                self.weights_ = dict(zip(fitted, map(float, own), strict=True))
                self.oof_distribution_ = PredictiveDistribution(law)
        self.members_, self.fitted_rows_ = fitted, rows

    def predict_dist(self, X: Any) -> PredictiveDistribution:
        """Return the predictive distribution of every row.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        PredictiveDistribution
        """
        check_is_fitted(self)
        table = self._check_table(X)
        held = {name: weight for name, weight in self.weights_.items() if weight > 0.0}
        with unseen_once():
            laws = [predict_dist(self.members_[name], table).law for name in held]
        return self._correct(pool_laws(laws, list(held.values()), self.pool_))

    def _check_parameters(self) -> int:
        """Return one seed for all. Refuse faults that a fit would notice only late."""
        seed = check_seed(self.random_state)
        check_n_jobs(self.n_jobs)
        check_choice(self.pool, "pool", ("auto", "linear", "probit"))
        recalibration = make_recalibration(self.recalibrate, seed)
        if recalibration is not None and recalibration.holds_out:
            rule = "hold no rows out of the members"
            refuse("recalibrate", rule, repr(self.recalibrate))
        return seed

    def _kinds(self, laws: list[Law]) -> list[PoolKind]:
        """Return the kinds of pools to compare."""
        able = can_pool_scores(laws)
        if self.pool == "probit" and not able:
            where = "where values of y have probability beside a smooth rest"
            refuse("pool", f'be "linear" or "auto" {where}', '"probit"')
        if self.pool != "auto":
            return [self.pool]
        return ["linear", "probit"] if able and len(laws) > 1 else ["linear"]


def _named(members: Any) -> dict[str, Any]:
    """Return regressors by name. Wrap those that keep no forecasts out of fold."""
    pairs = check_list(members, "members", "(name, regressor)")
    if len(pairs) == 0:
        refuse("members", "hold at least one regressor", "none")
    named: dict[str, Any] = {}
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            rule = "be a list of (name, regressor)"
            refuse("members", rule, f"{pair!r:.80}", TypeError)
        name, member = pair
        if name in named or name in ("linear", "probit"):
            rule = 'have names of their own, none "linear" or "probit"'
            refuse("members", rule, repr(name))
        with _speaking_of_member(name):
            check_predicts(member, "members")
        keeps = LocalExpertRegressor | DistributionAdapter | DistributionEnsemble
        kept = isinstance(member, keeps)
        named[name] = member if kept else DistributionAdapter(member)
    return named


def _seeded_clones(
    members: dict[str, Any], seed: int, n_jobs: int | None
) -> dict[str, Any]:
    """Return clones. Give a seed or a number of jobs to those that have none."""
    rng = np.random.default_rng(seed)
    out = {}
    for name, member in members.items():
        own = seeded(member, int(rng.integers(2**31)), deep=False)
        parameters = own.get_params(deep=isinstance(own, DistributionAdapter))
        for key in ("n_jobs", "estimator__n_jobs"):
            if key in parameters and parameters[key] is None:
                own.set_params(**{key: n_jobs})
        out[name] = own
    return out


@contextmanager
def _speaking_of_member(name: str) -> Iterator[None]:
    """Make an error message name the member that it is about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        error.add_note(f"This is the member {name!r}.")
        raise
