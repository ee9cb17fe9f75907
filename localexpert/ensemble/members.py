"""Members of an ensemble: the standard ones, and what is asked of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from calibration.typing import Float64Array
from localexpert._validation import check_list
from localexpert.data.folds import Rows, make_folds
from localexpert.data.unseen import unseen_silently
from localexpert.distribution.predictors import check_predicts
from localexpert.law.law import Law
from localexpert.regressor.base import DistributionRegressor
from localexpert.regressor.cross_predict import arguments_of_fit, cross_val_predict_dist
from localexpert.regressor.regressor import LocalExpertRegressor

# What sets each apart; every one has folds and seeds of its own. Other folds average
# out the noise of cross-fitting, single strategies and a frame of none differ in kind.
STANDARD: Mapping[str, Mapping[str, Any]] = {
    "auto": {},
    "auto, other folds": {},
    "auto, ten folds": {"cv": 10},
    "joint": {"strategy": "joint"},
    "shared": {"strategy": "shared"},
    "thresholds on y": {"frame": None},
}


def named_members(
    members: Sequence[tuple[str, Any]] | None,
) -> list[tuple[str, Any]]:
    """Return names and regressors, the standard ones for None.

    Parameters
    ----------
    members : list of (name, regressor), optional

    Returns
    -------
    list of (name, regressor)
    """
    if members is None:
        return [(name, LocalExpertRegressor(**own)) for name, own in STANDARD.items()]
    named = check_list(members, "members", "(name, regressor)")
    if len(named) == 0:
        msg = "`members` must hold at least one regressor, got none."
        raise ValueError(msg)
    for pair in named:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            msg = f"`members` must be a list of (name, regressor), got {pair!r:.80}."
            raise TypeError(msg)
    names = [name for name, _ in named]
    for name, member in named:
        if names.count(name) > 1 or name in ("linear", "probit"):
            msg = (
                '`members` must have names of their own, none "linear" or "probit", '
                f"got {name!r}."
            )
            raise ValueError(msg)
        with speaking_of_member(name):
            check_predicts(member, "members")
    return named


def seeded_clones(
    members: list[tuple[str, Any]], seed: int, n_jobs: int | None
) -> list[tuple[str, Any]]:
    """Return clones; those without a seed or a number of jobs get one.

    Parameters
    ----------
    members : list of (name, regressor)
    seed : int
    n_jobs : int or None

    Returns
    -------
    list of (name, regressor)
    """
    rng = np.random.default_rng(seed)
    out = []
    for name, member in members:
        own, draw = clone(member), int(rng.integers(2**31))
        # Regressors of ours seed their parts themselves; a Pipeline's steps need one.
        parameters = own.get_params(deep=not isinstance(own, DistributionRegressor))
        seeds = {
            key: draw for key in parameters if key.split("__")[-1] == "random_state"
        }
        for key, value in {**seeds, "n_jobs": n_jobs}.items():
            if key in parameters and parameters[key] is None:
                own.set_params(**{key: value})
        out.append((name, own))
    return out


@contextmanager
def speaking_of_member(name: str) -> Iterator[None]:
    """Let a refusal say which member it is about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        error.add_note(f"This is the member {name!r}.")
        raise


class OutOfFold(NamedTuple):
    """What a member says of training rows that it has not seen, and which these are."""

    law: Law
    rows: Rows

    def at(self, rows: Rows) -> Law:
        """Return the laws of some of the rows."""
        return self.law.take(np.searchsorted(self.rows, rows))

    @classmethod
    def of(cls, member: Any, name: str) -> Self:
        """Return what a fitted regressor keeps."""
        if not hasattr(member, "oof_distribution_"):
            msg = (
                "`members` must keep forecasts of their training rows, "
                f"`oof_distribution_`, got {type(member).__name__} as {name!r}: let "
                "the ensemble fit it."
            )
            raise TypeError(msg)
        return cls(member.oof_distribution_.law, member.fitted_rows_)


def fit_member(
    name: str,
    member: Any,
    X: Any,
    y: Float64Array,
    given: Mapping[str, Any],
    *,
    together: ArrayLike | None,
    seed: int,
    n_jobs: int | None,
) -> tuple[Any, OutOfFold]:
    """Return a fitted member, and what it says out of fold.

    One that keeps no such forecasts, a Pipeline for instance, is fitted in folds
    besides, where the shares of rows that a category lacks are no news.

    Parameters
    ----------
    name : str
    member : regressor
    X : array or data frame of shape (n, p)
    y : ndarray of shape (n,)
    given : mapping of str to array-like or None
        Weights and groups for `fit`.
    together : array-like of shape (n,), optional
        Folds that are made here keep its rows in one: groups, or copies where there
        are none.
    seed : int
    n_jobs : int or None

    Returns
    -------
    fitted : regressor
    said : OutOfFold
    """
    with speaking_of_member(name):
        own = arguments_of_fit(member, **given)
    fitted = clone(member).fit(X, y, **own)
    if hasattr(fitted, "oof_distribution_"):
        return fitted, OutOfFold.of(fitted, name)
    weight = given.get("sample_weight")
    folds = make_folds(len(y), "auto", y, together, seed, weight)
    with unseen_silently():
        dist = cross_val_predict_dist(member, X, y, cv=folds, n_jobs=n_jobs, **given)
    return fitted, OutOfFold(dist.law, np.arange(len(y)))


def common_rows(said: Mapping[str, OutOfFold], y: Float64Array) -> Rows:
    """Return the rows that all members speak of; refuse members that differ.

    Parameters
    ----------
    said : mapping of str to OutOfFold
        Of the same rows, except that folds may leave some untested.
    y : ndarray
        What they are said to be fitted to.

    Returns
    -------
    ndarray of int
    """
    whole = {
        name: len(one.rows)
        for name, one in said.items()
        if np.array_equal(one.rows, np.arange(len(one.rows)))
    }
    (first, n), *others = whole.items() if whole else [("", len(y))]
    for name, m in others:
        if m != n:
            msg = (
                f"`members` must be fitted on the same rows, got {n} for {first!r} "
                f"and {m} for {name!r}."
            )
            raise ValueError(msg)
    last = max(int(one.rows.max()) for one in said.values())
    if n != len(y) or last >= len(y):
        msg = (
            "`y` must be what the members were fitted to, "
            f"got {len(y)} values for {max(last + 1, n)} rows."
        )
        raise ValueError(msg)
    rows = reduce(np.intersect1d, [one.rows for one in said.values()])
    if len(rows) == 0:
        msg = (
            "`members` must have forecast some rows in common out of fold, got none: "
            "let them leave the same rows out."
        )
        raise ValueError(msg)
    return rows


def check_same_features(fitted: Mapping[str, Any]) -> None:
    """Refuse members that were fitted on different features."""
    first_name, first = next(iter(fitted.items()))
    for name, member in fitted.items():
        if _features(first) != _features(member):
            msg = (
                "`members` must be fitted on the same features, got "
                f"{_features(first)} for {first_name!r} and "
                f"{_features(member)} for {name!r}."
            )
            raise ValueError(msg)


def _features(member: Any) -> list[str] | int:
    """Return the names of features if there are any, else their number."""
    names = getattr(member, "feature_names_in_", None)
    return int(member.n_features_in_) if names is None else [str(n) for n in names]
