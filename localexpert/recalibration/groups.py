"""`GroupedRecalibration`: one recalibration for each group of rows."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration._validation import (
    check_choice,
    check_same_length,
    check_vector,
    check_weights,
    is_gap,
    refuse,
)
from calibration.typing import Float64Array
from localexpert.data.columns import Columns, has_columns
from localexpert.data.folds import Rows
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.law.join import gather_laws
from localexpert.law.law import Law
from localexpert.recalibration.conformal import make_recalibration
from localexpert.recalibration.pit import PitRecalibration, Recalibration, check_rows
from localexpert.recalibration.weighted import WeightedConformal, check_effective

_Key: TypeAlias = tuple[Any, ...]

# Fewest rows of a group; a `ConformalRecalibration` needs as many.
_LEAST_ROWS = 20
_MOST_NAMED = 5
# No new row weighs more in these units: its levels must not round to one.
_MOST_WEIGHT = 2.0**30


class GroupedRecalibration:
    """A recalibration within each group, so that coverage holds in each of them.

    Parameters
    ----------
    recalibrate : {"conformal", "pit"} or Recalibration
        The recalibration of each group; each learns from its own calibration rows.
    random_state : int, optional
        Seed of a recalibration that is given by name.

    Attributes
    ----------
    recalibrations_ : dict
        Fitted, by group.
    effective_rows_ : float
        Number of rows of the smallest group; with weights, its effective number.

    Notes
    -----
    If all rows are exchangeable, so are the rows of a group. So the guarantee of
    `ConformalRecalibration` holds here on average over the rows of each group, with
    the number of rows of the group (Vovk's Mondrian predictors).

    References
    ----------
    Vovk, Lindsay, Nouretdinov & Gammerman (2003), Mondrian confidence machine; Vovk,
    Gammerman & Shafer (2005), Algorithmic learning in a random world, chapter 4.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from localexpert import GroupedRecalibration, PredictiveDistribution
    >>> rng = np.random.default_rng(0)
    >>> where = rng.choice(["calm", "wild"], size=600)
    >>> y = rng.normal(scale=np.where(where == "wild", 3.0, 1.0))
    >>> dist = PredictiveDistribution.from_scipy(stats.norm(0.0, np.full(600, 2.0)))
    >>> better = GroupedRecalibration(random_state=0).fit(dist, y, where)
    >>> better.apply(dist[:2], ["calm", "wild"]).std().round(1)
    array([1. , 2.8])
    """

    recalibrations_: dict[Any, Recalibration | WeightedConformal]

    def __init__(
        self, recalibrate: Any = "conformal", *, random_state: int | None = None
    ):
        self.recalibrate = recalibrate
        self.random_state = random_state

    def fit(
        self,
        law: Law | PredictiveDistribution,
        y: ArrayLike,
        groups: ArrayLike | None,
        weight: Float64Array | None = None,
        *,
        overlap: float = 1.0,
    ) -> Self:
        """Learn from the rows of each group.

        Parameters
        ----------
        law : Law or PredictiveDistribution
            Of n rows that the forecaster has not seen.
        y : array-like of shape (n,)
        groups : array-like of shape (n,) or (n, k)
            Labels; with k columns the groups are their combinations. A missing value is
            a label, too. None: all rows are one group.
        weight : ndarray of shape (n,), optional
            Weights for new rows of another kind: "conformal" is then
            `WeightedConformal`. Each group needs 50 effective rows.
        overlap : float
            Share of the new rows that weights can represent.

        Returns
        -------
        self
        """
        made = make_recalibration(self.recalibrate, self.random_state)
        if made is None:
            refuse("recalibrate", 'be "conformal", "pit" or a Recalibration', "None")
        rows, target, _ = check_rows(law, y, None)
        if weight is not None:
            check_choice(self.recalibrate, "recalibrate", ("conformal", "pit"))
            given = check_vector(weight, "weight")
            self.unit_ = float(np.ldexp(0.5, np.frexp(given.max())[1]))
            weight = check_weights(self._in_units(given), len(target), "weight")
        parts = rows_by_group(groups, len(target))
        rare = [key for key, part in parts.items() if len(part) < _LEAST_ROWS]
        if groups is not None and rare:
            got = f"{len(parts[rare[0]])} of {_show(rare[0])}"
            got += f"; {len(rare)} of {len(parts)} groups have fewer"
            refuse("groups", f"have at least {_LEAST_ROWS} rows each", got)
        self.recalibrations_, self.effective_rows_ = {}, np.inf
        for key, part in parts.items():
            own, count = (rows.take(part), target[part]), float(len(part))
            if weight is None:
                self.recalibrations_[key] = deepcopy(made).fit(*own)
            else:
                where = "" if groups is None else f" of {_show(key)}"
                count = check_effective(weight[part], overlap, where)
                self.recalibrations_[key] = self._fit_weighted(
                    *own, weight[part], count
                )
            self.effective_rows_ = min(self.effective_rows_, count)
        return self

    def _fit_weighted(
        self, law: Law, y: Float64Array, weight: Float64Array, count: float
    ) -> Recalibration | WeightedConformal:
        """Return the correction by weighted rows, which count as so many."""
        if self.recalibrate == "conformal":
            return WeightedConformal(random_state=self.random_state).fit(law, y, weight)
        # The strength of the pull counts in rows.
        counted = weight * (count / weight.sum())
        return PitRecalibration(random_state=self.random_state).fit(law, y, counted)

    def apply(
        self,
        law: PredictiveDistribution,
        groups: ArrayLike | None,
        weight: Float64Array | None = None,
    ) -> PredictiveDistribution:
        """Return the forecasts, each with the correction of its group.

        Parameters
        ----------
        law : PredictiveDistribution
            Forecasts of n rows.
        groups : array-like of shape (n,) or (n, k)
            Groups of these rows; `fit` must have seen all of them.
        weight : ndarray of shape (n,), optional
            Weights of these rows, if the fit had weights.

        Returns
        -------
        PredictiveDistribution
        """
        parts, laws = self._known_parts(groups, len(law)), []
        for key, part in parts.items():
            one, own = self.recalibrations_[key], law.law.take(part)
            if not isinstance(one, WeightedConformal):
                laws.append(one.apply(own))
            elif weight is None:
                refuse("weight", "be given as it was in `fit`", "None")
            else:
                laws.append(one.apply(own, self._in_units(weight[part])))
        if not laws:
            return law
        return replace(law, law=gather_laws(laws, parts.values()))

    @property
    def asks_weights(self) -> bool:
        """Whether `apply` needs the weights of its rows."""
        learned = self.recalibrations_.values()
        return any(isinstance(one, WeightedConformal) for one in learned)

    def bound(self, groups: ArrayLike | None, weight: Float64Array) -> Float64Array:
        """Return how far the coverage of rows may be off, see `WeightedConformal`.

        Parameters
        ----------
        groups : array-like of shape (n,) or (n, k)
        weight : ndarray of shape (n,)

        Returns
        -------
        ndarray of shape (n,)
            NaN for rows whose correction has no guarantee.
        """
        bounds = np.full(len(weight), np.nan)
        for key, part in self._known_parts(groups, len(weight)).items():
            one = self.recalibrations_[key]
            if isinstance(one, WeightedConformal):
                bounds[part] = one.bound(self._in_units(weight[part]))
        return bounds

    def _in_units(self, weight: Float64Array) -> Float64Array:
        """Return weights in a unit near the greatest of the fit: a ratio has none.

        The unit is a power of two, so nothing is rounded.
        """
        with np.errstate(all="ignore"):
            return np.minimum(weight / self.unit_, _MOST_WEIGHT)

    def _known_parts(self, groups: ArrayLike | None, n: int) -> dict[_Key, Rows]:
        """Return the rows of each group; refuse groups that `fit` has not seen."""
        parts = rows_by_group(groups, n)
        unknown = [key for key in parts if key not in self.recalibrations_]
        if unknown:
            known = [_show(key) for key in self.recalibrations_]
            named = known[:_MOST_NAMED] + ["..."] * (len(known) > _MOST_NAMED)
            rule = f"hold groups of the calibration rows only ({', '.join(named)})"
            got = f"{_show(unknown[0])} in row {parts[unknown[0]][0]}"
            n_such = sum(len(parts[key]) for key in unknown)
            refuse("groups", rule, f"{got} and {n_such} such rows in all")
        return parts


def read_groups(X: Any, by: Any) -> NDArray[np.object_]:
    """Return the columns of a table that define its groups.

    Parameters
    ----------
    X : array or data frame of shape (n, p)
    by : name, number or list of them
        The columns: names in a data frame, numbers in an array.

    Returns
    -------
    ndarray of shape (n, k)
    """
    X = X if hasattr(X, "shape") else np.asarray(X)
    columns, named = Columns.of(X), has_columns(X)
    there = (columns.names or ()) if named else tuple(range(columns.n_columns))
    asked = by if isinstance(by, list) else [by]
    if not asked:
        refuse("by", "name at least one column", "none")
    found = []
    for one in asked:
        try:
            known = not isinstance(one, bool) and one in there
        except (TypeError, ValueError):
            known = False
        if not known:
            kind = "columns" if named else "numbers of columns"
            listed = ", ".join(repr(name) for name in there[:_MOST_NAMED])
            refuse("by", f"hold {kind} of `X` ({listed})", f"{one!r:.60}")
        values = X[one].to_list() if named else X[:, one].tolist()
        found.append(np.array([*values, None], dtype=object)[:-1])
    return np.column_stack(found)


def rows_by_group(groups: ArrayLike | None, n: int) -> dict[_Key, Rows]:
    """Return the rows of each group, a tuple of labels; a missing label is None."""
    if groups is None:
        return {(): np.arange(n)}
    parts: dict[_Key, list[int]] = {}
    try:
        if getattr(getattr(groups, "dtype", None), "kind", "") == "M":
            # Nanoseconds would become integers.
            groups = np.asarray(groups).astype("datetime64[us]")
        table = np.asarray(groups, dtype=object)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or table.shape[1] == 0:
            msg = f"got shape {table.shape}"
            raise ValueError(msg)
        for i, row in enumerate(table.tolist()):
            key = tuple(None if is_gap(label) else label for label in row)
            parts.setdefault(key, []).append(i)
    except (TypeError, ValueError) as error:
        msg = f"`groups` must be labels of shape (n,) or (n, k), {error}."
        raise type(error)(msg) from error
    check_same_length(n, "the forecasts", len(table), "groups")
    return {key: np.array(part) for key, part in parts.items()}


def _show(key: _Key) -> str:
    return repr(key[0]) if len(key) == 1 else repr(key)
