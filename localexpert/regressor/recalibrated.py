"""`adapt` and `recalibrate`: correct a fitted model by rows that no fit has seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    all_or_nothing,
    check_choice,
    check_same_length,
    check_vector,
    count_rows,
    refuse,
)
from calibration.typing import Float64Array
from localexpert._validation import check_answers, check_seed, speaking_of
from localexpert.data.table import Table, take_rows
from localexpert.data.training_rows import Hashes, SeenRows, TrainingSketch, hash_rows
from localexpert.data.unseen import unseen_silently
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.distribution.predictors import check_predicts, open_same, predict_dist
from localexpert.partial.outcomes import is_partial, nearest_ends, read_ends
from localexpert.recalibration.groups import (
    GroupedRecalibration,
    read_groups,
    rows_by_group,
)
from localexpert.recalibration.pit import Recalibration
from localexpert.recalibration.weighted import ShiftWeights, shift_weights
from localexpert.regressor.base import DistributionRegressor


def seen_rows(model: Any, X: Any, y: ArrayLike) -> SeenRows:
    """Tell which rows a fitted model has learned from, as far as the model knows.

    Scores of such rows are too good. A correction learned from them makes forecasts too
    sure. A `LocalExpertRegressor` keeps hashes of its training rows with their targets,
    if nearly all rows differ, and a corrected one also those of the rows that corrected
    it. It knows every row if there are up to 8192, and a share of them if there are
    more.

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
    X : array or data frame of shape (n, p)
        Rows in the columns that `model` expects.
    y : array-like of shape (n,) or (n, 2)
        Of two columns: lower and upper ends of targets.

    Returns
    -------
    SeenRows
        `found`, the `share` of rows that the model has learned from, and which rows
        they are (`learned`). The share is None if the model does not know. It prints as
        a sentence.

    Notes
    -----
    A row is recognised by all of its features and its target, in single precision. So a
    row that was changed counts as new. If chance alone explains the number of equal
    rows, then no row counts as learned from.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import LocalExpertRegressor, seen_rows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(150, 1))
    >>> y = X[:, 0] + rng.normal(size=150)
    >>> model = LocalExpertRegressor(effort="quick", random_state=0)
    >>> model = model.fit(X[:100], y[:100])
    >>> print(seen_rows(model, X, y))
    The model has learned from 100 of the 150 rows.
    """
    check_predicts(model)
    rows = RowsInParts(model)
    rows.add(X, y)
    return rows.find_seen()


@dataclass(eq=False)
class RowsInParts:
    """Rows that come in parts, of which `seen_rows` is asked at last, of all at once.

    Parameters
    ----------
    model : fitted model
    n_rows : int
    sketches : list of TrainingSketch
        Of the model and its corrections.
    hashes : list of ndarray of uint64
        Of the rows of each part, if there are sketches.
    """

    model: Any
    n_rows: int = 0
    sketches: list[TrainingSketch] = field(default_factory=list)
    hashes: list[Hashes] = field(default_factory=list)

    @unseen_silently()
    def add(self, X: Any, y: ArrayLike) -> NDArray[np.bool_]:
        """Add rows (n, p); return which are equal to rows of training (n,)."""
        target = nearest_ends(*read_ends(y)) if is_partial(y) else check_vector(y, "y")
        table, self.sketches = _find_sketches(self.model, X)
        self.n_rows += len(target)
        if table is None:
            return np.zeros(len(target), dtype=bool)
        check_same_length(len(table), "`X`", len(target), "y")
        self.hashes.append(hash_rows(table, target))
        known = np.concatenate([one.hashes for one in self.sketches])
        return np.isin(self.hashes[-1], known)

    def find_seen(self) -> SeenRows:
        """Return what is known of all rows, in their order."""
        if not self.hashes:
            return SeenRows(self.n_rows)
        hashes = np.concatenate(self.hashes)
        return SeenRows.either([one.find(hashes) for one in self.sketches])


def _find_sketches(model: Any, X: Any) -> tuple[Table | None, list[TrainingSketch]]:
    """Return the rows as the regressor inside the wrappers reads them, and its sketch.

    Sketches of corrections follow. If the regressor has none, all are left out.
    """
    model = open_same(model)
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            if hasattr(step, "transform"):
                X = step.transform(X)
        return _find_sketches(model.steps[-1][1], X)
    sketch = getattr(model, "training_sketch_", None)
    sketches = [sketch] if isinstance(sketch, TrainingSketch) else []
    if sketches and hasattr(model, "reader_"):
        return model.reader_.read(X), sketches
    if not isinstance(model, DistributionRegressor):
        return None, []
    # The model may be a corrected or an adapted one, or an ensemble with members. All
    # of these get the same rows.
    names = "model_", "estimator_"
    inside = [getattr(model, name, None) for name in names]
    for one in [*inside, *getattr(model, "members_", {}).values()]:
        table, known = _find_sketches(one, X)
        if table is not None:
            return table, known + sketches
    return None, []


# A function of weights is asked about this many rows one by one. Its answers may differ
# by rounding of this size.
_MOST_ASKED, _ROUNDING = 1000, 1e-5

Weights: TypeAlias = ShiftWeights | Callable[[Any], ArrayLike]


@dataclass(eq=False, repr=False)
class RecalibratedRegressor(DistributionRegressor):
    """A fitted model and its correction, as `recalibrate` and `adapt` make it.

    Parameters
    ----------
    model : fitted regressor
        It must forecast distributions. It is never fitted again. It is frozen, so that
        clones keep what it has learned.
    method : {"conformal", "pit"} or Recalibration
        How the forecasts are corrected. If `fit` gets `X_new`, this must be one of the
        two names.
    by : name, number or list of them, optional
        Columns of `X` that define groups. The correction is learned within each group.
    weights : ShiftWeights or callable, optional
        Only for `adapt`, see there.
    random_state : int, optional
        Seed of the draws inside the jumps of CDFs, of folds, and of the classifier that
        estimates weights.

    Attributes
    ----------
    recalibration_ : GroupedRecalibration
        Fitted. Without `by` all rows are one group.
    weights_ : ShiftWeights, callable or None
        What gives the weights of rows, if `adapt` made this model.
    effective_rows_ : float
        Number of calibration rows, or, if they have weights, the number of equally
        weighted rows that would tell as much. With `by`, that of the smallest group.
    bound_ : float
        By how much coverage may be off, see `adapt`. With `by`, the greatest of the
        groups. NaN for "pit", which has no guarantee.
    training_sketch_ : TrainingSketch or None
        Hashes of the calibration rows, by which `seen_rows` recognises them. None if
        `model` keeps no hashes of its own rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> from localexpert import LocalExpertRegressor, recalibrate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 1))
    >>> y = X[:, 0] + rng.normal(size=300)
    >>> model = LocalExpertRegressor(
    ...     strategy="joint", frame=None, n_thresholds=5, cv=2, random_state=0
    ... ).fit(X[:200], y[:200])
    >>> round(recalibrate(model, X[200:], y[200:], random_state=0).bound_, 2)
    0.11
    """

    model: Any
    method: Literal["conformal", "pit"] | Recalibration = "conformal"
    _: KW_ONLY
    by: Any = None
    weights: Weights | None = None
    random_state: int | None = None
    weights_: Any = field(init=False)

    def fit(self, X: Any, y: ArrayLike, X_new: Any = None) -> Self:
        """Learn the correction. The model stays as it is.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            Calibration rows, which the model has not seen.
        y : array-like of shape (n,)
        X_new : array or data frame of shape (m, p), optional
            Rows of the kind that the model will forecast from now on.

        Returns
        -------
        self
        """
        with all_or_nothing(self):
            check_predicts(self.model)
            seed = check_seed(self.random_state)
            target = check_vector(y, "y")
            self.model_, self.by_ = self.model, self.by
            dist = predict_dist(self.model, X)
            check_same_length(len(dist), "`X`", len(target), "y")
            rows = RowsInParts(self.model)
            rows.add(X, target)
            rows.find_seen().warn(
                "A correction needs rows that no fit has seen: what it learns from "
                "these makes forecasts of new rows too sure. Leave them out."
            )
            sketches = map(TrainingSketch.of, rows.hashes)
            self.training_sketch_ = next((s for s in sketches if s.recognises), None)
            self.weights_ = weight = new = None
            if X_new is not None:
                weight, new = self._weigh(X, X_new, seed)
            elif self.weights is not None:
                refuse("weights", "be None without `X_new`", f"{self.weights!r:.60}")
            with speaking_of(groups="by", recalibrate="method", weight="weights"):
                made = GroupedRecalibration(self.method, random_state=seed)
                overlap = getattr(self.weights_, "overlap", 1.0)
                made.fit(dist, target, self._groups(X), weight, overlap=overlap)
            if new is None:
                learned = made.recalibrations_.values()
                choices = (o.choices() for o in learned if isinstance(o, Recalibration))
                self.bound_ = float(max(one.get("bound", np.nan) for one in choices))
            else:
                with speaking_of(groups="X_new"):
                    groups = self._groups(X_new)
                    bounds = made.bound(groups, new)
                parts = rows_by_group(groups, len(new)).values()
                self.bound_ = float(max(bounds[part].mean() for part in parts))
            self.recalibration_, self.effective_rows_ = made, made.effective_rows_
            return self

    def predict_dist(self, X: Any) -> PredictiveDistribution:
        """Return the corrected distribution of every row.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        PredictiveDistribution
        """
        check_is_fitted(self)
        dist = predict_dist(self.model_, X)
        one = self.recalibration_
        # A map of PIT values is the same for all rows, or for all rows of a group.
        weight = _weigh(self.weights_, X) if one.asks_weights else None
        with speaking_of(groups="X"):
            corrected: PredictiveDistribution = one.apply(dist, self._groups(X), weight)
        return corrected

    def _groups(self, X: Any) -> NDArray[np.object_] | None:
        return None if self.by_ is None else read_groups(X, self.by_)

    def _weigh(
        self, X: Any, X_new: Any, seed: int
    ) -> tuple[Float64Array, Float64Array]:
        """Return the weights of the calibration rows and of the new rows."""
        check_choice(self.method, "method", ("conformal", "pit"))
        if count_rows(X_new) == 0:
            refuse("X_new", "hold at least one row", "none")
        if self.weights is None:
            with speaking_of(X_old="X"):
                found = shift_weights(X, X_new, random_state=seed)
            self.weights_, weight = found, found.weight
        else:
            reader = Table.of(X).reader
            with speaking_of(X="X_new"):
                _ = reader.read(X_new).codes
            self.weights_, weight = self.weights, _weigh(self.weights, X)
            if not isinstance(self.weights, ShiftWeights):
                _check_alone(self.weights, X, weight)
        with speaking_of(X="X_new"):
            return weight, _weigh(self.weights_, X_new)


def recalibrate(
    model: Any,
    X_cal: Any,
    y_cal: ArrayLike,
    *,
    by: Any = None,
    method: Literal["conformal", "pit"] | Recalibration = "conformal",
    random_state: int | None = None,
) -> RecalibratedRegressor:
    """Correct the forecasts of a fitted model, for all rows or group by group.

    Parameters
    ----------
    model : fitted regressor
        Of distributions, or a wrapper of one as `predict_dist` takes it.
    X_cal : array or data frame of shape (n, p)
        Rows that no fit has seen, in the columns that `model` expects.
    y_cal : array-like of shape (n,)
    by : name, number or list of them, optional
        Columns that define groups: names in a data frame, numbers in an array. Coverage
        then holds on average within each combination of their values. Each combination
        needs 20 rows at least, and `predict` refuses a row of any other. If the groups
        are not a column of the model, see `GroupedRecalibration`. An order that
        `monotone` keeps holds within each group.
    method : {"conformal", "pit"} or Recalibration
        "conformal": `ConformalRecalibration`, which has a guarantee. "pit":
        `PitRecalibration`, which is smoother and has no guarantee.
    random_state : int, optional
        Seed of the draws inside the jumps of CDFs, and of folds.

    Returns
    -------
    RecalibratedRegressor

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from localexpert import LocalExpertRegressor, interval_coverage, recalibrate
    >>> rng = np.random.default_rng(1)
    >>> n = 3000
    >>> X = pd.DataFrame({"x": rng.uniform(size=n), "b": rng.choice(["p", "q"], n)})
    >>> y = X["x"] + rng.normal(size=n) * np.where(X["b"] == "q", 1.0, 0.1)
    >>> model = LocalExpertRegressor(
    ...     strategy="joint", frame=None, n_thresholds=5, cv=2, random_state=0
    ... ).fit(X[:300].assign(b=rng.permutation(X["b"][:300])), y[:300])
    >>> better = recalibrate(model, X[300:1300], y[300:1300], by="b", random_state=0)
    >>> q = X["b"].to_numpy()[1300:] == "q"
    >>> for one in (model, better):
    ...     dist = one.predict_dist(X[1300:])[q]
    ...     print(f"{interval_coverage(y[1300:][q], dist, coverage=0.9):.1f}")
    0.8
    0.9
    """
    made = RecalibratedRegressor(
        _frozen(model), method, by=by, random_state=random_state
    )
    with speaking_of(X="X_cal", y="y_cal"):
        return made.fit(X_cal, y_cal)


def adapt(
    model: Any,
    X_cal: Any,
    y_cal: ArrayLike,
    X_new: Any,
    *,
    by: Any = None,
    method: Literal["conformal", "pit"] = "conformal",
    weights: Weights | None = None,
    random_state: int | None = None,
) -> RecalibratedRegressor:
    r"""Correct the forecasts of a fitted model for rows of another kind.

    Use it under covariate shift: the features are distributed differently than in
    training, but the distribution of the target given the features is the same.

    Parameters
    ----------
    model : fitted regressor
        Of distributions, or a wrapper of one as `predict_dist` takes it.
    X_cal : array or data frame of shape (n, p)
        Rows of the old kind that no fit has seen, in the columns that `model` expects.
    y_cal : array-like of shape (n,)
    X_new : array or data frame of shape (m, p)
        Rows of the new kind. Their targets are not needed.
    by : name, number or list of them, optional
        Columns that define groups, as for `recalibrate`. Each group is corrected by its
        own calibration rows, and needs at least 50 effective ones.
    method : {"conformal", "pit"}
        "conformal": the weighted map of `WeightedConformal`. Each new row has its own
        map, with its own weight in the denominator. "pit": `PitRecalibration` with
        weighted rows, which count as their effective number. It is smoother and the
        same for all rows, and it has no guarantee.
    weights : ShiftWeights or callable, optional
        None: `shift_weights(X_cal, X_new)`. A function gets a table and returns a
        weight for each row: the new density over the old one, up to a factor. The
        weight must not depend on the other rows of the table (the function is also
        asked about single rows). To save the model, define the function in a module.
    random_state : int, optional
        Seed of the draws inside the jumps of CDFs, of folds, and of the classifier that
        estimates weights.

    Returns
    -------
    RecalibratedRegressor
        `effective_rows_` says how many rows the correction rests on (with `by`, in the
        smallest group). `bound_` is b below, on average over `X_new` (with `by`, the
        greatest mean of a group).

    Raises
    ------
    ValueError
        If the calibration rows count for fewer than 50 rows of equal weight.

    Notes
    -----
    With "conformal" and known weights, the quantiles Q(a) of new rows satisfy, at every
    level a,

    .. math:: |P(Y \le Q(a)) - a| \le E[b],

    with b as in `WeightedConformal`, about one over the root of the effective rows. If
    the weights v are estimated, coverage may be off by
    :math:`\tfrac12 E|v(X) - w(X)|` more. This is half the mean absolute error of the
    weights over the old rows, if v and w both have mean 1 there (Lei & Candes, 2021).
    Nothing here can measure that error. Coverage holds on average over new rows, not
    for each single row.

    With "conformal", a row's map depends on its weight. So only "pit" keeps the order
    that `monotone` keeps.

    References
    ----------
    Tibshirani, Foygel Barber, Candes & Ramdas (2019), Conformal prediction under
    covariate shift. Lei & Candes (2021), Conformal inference of counterfactuals and
    individual treatment effects.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import LocalExpertRegressor, adapt
    >>> rng = np.random.default_rng(0)
    >>> X, X_new = rng.normal(size=(500, 1)), rng.normal(1.0, 1.0, size=(300, 1))
    >>> y = np.abs(X[:, 0]) + rng.normal(size=500)
    >>> model = LocalExpertRegressor(
    ...     strategy="joint", frame=None, n_thresholds=5, cv=2, random_state=0
    ... ).fit(X[:200], y[:200])
    >>> moved = adapt(model, X[200:], y[200:], X_new, random_state=0)
    >>> round(moved.effective_rows_)
    132
    """
    made = RecalibratedRegressor(
        _frozen(model), method, by=by, weights=weights, random_state=random_state
    )
    if count_rows(X_new) < 0:
        refuse("X_new", "be a data frame or an array", f"{X_new!r:.60}", TypeError)
    with speaking_of(X="X_cal", y="y_cal"):
        return made.fit(X_cal, y_cal, X_new)


def _frozen(model: Any) -> Any:
    """Return a model that stays fitted when it is cloned."""
    check_predicts(model)
    return model if isinstance(model, FrozenEstimator) else FrozenEstimator(model)


def _weigh(weights: Weights, X: Any) -> Float64Array:
    """Return the weights of rows, and refuse negative ones."""
    if isinstance(weights, ShiftWeights):
        return weights.of(X)
    if not callable(weights):
        refuse("weights", "be ShiftWeights or callable", f"{weights!r:.60}", TypeError)
    rule = "`weights` must return a finite number for every row"
    found = check_answers(weights(X), count_rows(X), rule)
    if (found < 0.0).any():
        refuse("weights", "return weights that are not negative", f"{found.min():g}")
    return found


def _check_alone(
    weights: Callable[[Any], ArrayLike], X: Any, found: Float64Array
) -> None:
    """Refuse weights that are all 0, or that depend on the other rows of the table."""
    if not found.any():
        refuse("weights", "not return 0 for every row of `X`", "only zeros")
    table = X if hasattr(X, "shape") else np.asarray(X)
    places = np.linspace(0, len(found) - 1, min(len(found), _MOST_ASKED))
    # Weights that are clipped or ranked differ most at the least and greatest ones.
    for row in np.argsort(found, kind="stable")[places.astype(np.intp)]:
        alone = float(_weigh(weights, take_rows(table, np.array([row])))[0])
        if not np.isclose(alone, found[row], rtol=_ROUNDING, atol=0.0):
            rule = "return the same for a row alone as beside others"
            got = f"{alone:g} and {found[row]:g} for row {row}"
            why = "a forecast must not depend on the rows beside it"
            refuse("weights", rule, f"{got}: {why}")
