"""`explain_forecast`: contributions of features, by forecasts of mixed rows.

`MixedRows` have features of different rows of a table. Features, or groups of them that
go together, are called players.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from operator import methodcaller
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from calibration._validation import (
    check_choice,
    check_integer,
    check_level,
    check_list,
    check_mapping,
    check_number,
    make_rng,
    refuse,
)
from calibration.typing import Float64Array, Int64Array
from localexpert._validation import check_row, format_number
from localexpert.data.columns import Columns, has_columns, list_columns
from localexpert.data.table import take_rows
from localexpert.data.unseen import unseen_once
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.distribution.predictors import check_predicts, predict_dist

Evaluate: TypeAlias = Callable[[PredictiveDistribution], Float64Array]
Name: TypeAlias = Literal["mean", "median", "std", "quantile", "exceedance"]
_NAMES = ("mean", "median", "std", "quantile", "exceedance")
# Coalitions of more players than this are never enumerated.
_MOST_ENUMERATED = 12
# Most rows in a call of `predict_dist`.
_BATCH = 20_000
# Standard errors are 0 below this share of the largest forecast.
_ROUNDING = 1e-13
# Rows and features that `print` shows.
_ROWS_SHOWN, _FEATURES_SHOWN = 3, 10


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Contributions that add up to the difference of a forecast from the base.

    Parameters
    ----------
    of : str
        The number explained: "mean", "quantile 0.9", "P(y > 3)", or a function's name.
    feature_names : tuple of str
        Features, or groups of them.
    values : ndarray of shape (n, P)
        Contributions, in units of the number explained.
    standard_errors : ndarray of shape (n, P)
        Standard errors of sampled orders; 0 where contributions are exact.
    base : float
        Mean of the number over the background rows.
    total : ndarray of shape (n,)
        The number of every row: the sum of `base` and the row's contributions.
    inputs : ndarray of str, shape (n, P)
        The rows' values of the features.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import Explanation
    >>> names, inputs = ("age", "dose"), np.array([["61", "2.5"]])
    >>> values, errors = np.array([[-1.0, 3.0]]), np.array([[0.1, 0.1]])
    >>> print(Explanation("mean", names, values, errors, 5.0, np.array([7.0]), inputs))
    mean of row 0: 7 = 5 (base) + contributions
      dose = 2.5    +3   (se 0.1)
      age = 61      -1   (se 0.1)
    """

    of: str
    feature_names: tuple[str, ...]
    values: Float64Array
    standard_errors: Float64Array
    base: float
    total: Float64Array
    inputs: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.total)

    def __repr__(self) -> str:
        shown = [self.describe(row) for row in range(min(len(self), _ROWS_SHOWN))]
        if len(self) > _ROWS_SHOWN:
            shown.append(f"and {len(self) - _ROWS_SHOWN} more rows")
        return "\n".join(shown)

    def describe(self, row: int, max_features: int = _FEATURES_SHOWN) -> str:
        """Return a table of one row, the largest contributions first.

        Parameters
        ----------
        row : int
        max_features : int
            Features listed; the others are summed in one line.

        Returns
        -------
        str
        """
        parts = self.largest(row, max_features)
        head = f"{self.of} of row {row}: {self.total[row]:.4g}"
        lines = [f"{head} = {self.base:.4g} (base) + contributions"]
        width = max(len(label) for label, _, _ in parts)
        for label, value, error in parts:
            line = f"  {label:<{width}}  {value:>+10.4g}"
            lines.append(line + (f"   (se {error:.1g})" if error > 0.0 else ""))
        return "\n".join(lines)

    def largest(
        self, row: int, max_features: int = _FEATURES_SHOWN
    ) -> list[tuple[str, float, float]]:
        """Return the largest contributions of a row, and the sum of the others.

        Parameters
        ----------
        row : int
        max_features : int

        Returns
        -------
        list of (label, contribution, standard error)
            The standard error of the others' sum is an upper bound, the sum of theirs.
        """
        row = check_row(row, "row", len(self))
        check_integer(max_features, "max_features", 1)
        values, errors = self.values[row], self.standard_errors[row]
        order = np.argsort(-np.abs(values), kind="stable")
        kept, rest = order[:max_features], order[max_features:]
        names = [f"{self.feature_names[j]} = {self.inputs[row, j]}" for j in kept]
        parts = [*zip(names, values[kept].tolist(), errors[kept].tolist(), strict=True)]
        if len(rest):
            plural = "s" if len(rest) > 1 else ""
            label = f"{len(rest)} other{plural}"
            parts.append((label, float(values[rest].sum()), float(errors[rest].sum())))
        return parts

    def to_frame(self) -> Any:
        """Return a data frame with a line per row and feature; needs pandas.

        Returns
        -------
        pandas.DataFrame
            Columns row, feature, input, contribution and standard_error.
        """
        import pandas as pd

        n, p = self.values.shape
        return pd.DataFrame(
            {
                "row": np.repeat(np.arange(n), p),
                "feature": list(self.feature_names) * n,
                "input": self.inputs.ravel(),
                "contribution": self.values.ravel(),
                "standard_error": self.standard_errors.ravel(),
            }
        )


@unseen_once()
def explain_forecast(
    model: Any,
    X: Any,
    background: Any,
    *,
    of: Name | Evaluate = "mean",
    at: float | None = None,
    groups: Mapping[str, Sequence[Any]] | None = None,
    method: Literal["auto", "enumerate", "sample"] = "auto",
    n_permutations: int = 8,
    n_background: int = 100,
    random_state: int | None = None,
) -> Explanation:
    r"""Return what every feature contributes to a number of each forecast.

    The number comes from the final forecast, after every stage of the model. So
    contributions to a probability are in units of probability.

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
    X : array or data frame of shape (n, p)
        Rows to explain.
    background : array or data frame of shape (m, p)
        Rows to compare features with, such as training rows.
    of : {"mean", "median", "std", "quantile", "exceedance"} or callable
        The number: the mean, median or standard deviation, the quantile of level
        `at`, or P(y > at | x). A callable maps a `PredictiveDistribution` of k rows to
        an array (k,).
    at : float, optional
    groups : dict of str to list, optional
        Features that enter together, by the names of columns (of an array x0, x1,
        ..., or numbers).
    method : {"auto", "enumerate", "sample"}
        All coalitions of features, which is exact, or sampled orders. "auto" enumerates
        if the model needs no more forecasts than for sampling.
    n_permutations : int
        Orders of the features drawn per background row, in antithetic pairs: even
        and at least 4.
    n_background : int
        If the background has more rows, so many are drawn without repetition. They
        replace the background, also in the base.
    random_state : int, optional
        Seed of the draws. The contributions of a row depend on no other row of `X`.

    Returns
    -------
    Explanation

    Notes
    -----
    Let f be the number, and :math:`v_x(S)` the mean of f over the background rows with
    columns S replaced by those of x. The contribution of feature j is the mean of
    :math:`v_x(S \cup j) - v_x(S)` over all orders of the features, where S are the
    features before j. Columns are replaced without regard to dependence: mixed rows may
    be unlike any row seen.

    Contributions add up to f(x) minus the mean of f over the background, sampled or
    not: along one order the changes of f telescope to :math:`f(x) - f(b)`, and every
    background row b is the start of equally many orders. Sampling is unbiased; its
    standard errors come from the spread of the pairs of each background row, and do
    not speak of the choice of the background. Where at most two features act
    together (f is a sum of functions of one feature and of two), an order and its
    reverse share every joint effect evenly: sampling is then exact, with errors of 0.

    References
    ----------
    Castro, Gomez & Tejada (2009), Polynomial calculation of the Shapley value based
    on sampling. Mitchell, Cooper, Frank & Holmes (2022), Sampling permutations for
    Shapley value estimation (antithetic pairs).

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert import explain_forecast
    >>> class Coin:
    ...     def predict_dist(self, X):
    ...         p = np.asarray(X) @ [0.1, 0.3]
    ...         p = np.column_stack([1 - p, p])
    ...         return PredictiveDistribution.from_arrays(atoms=[0, 1], masses=p)
    >>> rows, background = [[1.0, 2.0]], [[0.0, 0.0], [1.0, 1.0]]
    >>> print(explain_forecast(Coin(), rows, background, of="exceedance", at=0.5))
    P(y > 0.5) of row 0: 0.7 = 0.2 (base) + contributions
      x1 = 2       +0.45
      x0 = 1       +0.05
    """
    check_predicts(model)
    check_choice(method, "method", ("auto", "enumerate", "sample"))
    if check_integer(n_permutations, "n_permutations", 4) % 2:
        refuse("n_permutations", "be even", n_permutations)
    label, evaluate = _read_number(of, at)
    rows, rng = read_table(X, "X"), make_rng(random_state)
    against = read_table(background, "background")
    n, m = len(rows), check_integer(n_background, "n_background", 1)
    if len(against) > m:
        against = take_rows(against, np.sort(rng.choice(len(against), m, False)))
    m = len(against)
    mixed = MixedRows.of(join_rows(rows, against), groups)
    game = _Game(model, label, evaluate, mixed)
    p = len(mixed.names)
    numbers = game.ask(n + m, lambda asked: np.repeat(asked[:, None], p, axis=1))
    total, base = np.split(numbers, [n])
    cost = n_permutations * (p - 1)
    few = p <= _MOST_ENUMERATED and 2**p - 2 <= cost
    if method == "enumerate" or (method == "auto" and few):
        values = game.enumerate(total, base)
        errors = np.zeros_like(values)
    else:
        values, errors = game.sample(total, base, n_permutations // 2, rng)
    inputs, start = mixed.describe(n), float(base.mean())
    return Explanation(label, mixed.names, values, errors, start, total, inputs)


def _read_number(of: Any, at: Any) -> tuple[str, Evaluate]:
    """Return the name of what is explained, and how it is read off distributions."""
    if not callable(of):
        check_choice(of, "of", _NAMES)
    if (of in ("quantile", "exceedance")) == (at is None):
        rule = 'a level or a value where `of` is "quantile" or "exceedance", else None'
        refuse("at", f"be {rule}", f"{at!r}")
    if of == "quantile":
        level = check_level(at, "at")
        return f"quantile {level:g}", methodcaller("ppf", level)
    if of == "exceedance":
        most = np.finfo(float).max
        value = check_number(at, "at", -most, most)
        return f"P(y > {value:g})", methodcaller("sf", value)
    if callable(of):
        return getattr(of, "__name__", type(of).__name__), of
    return of, methodcaller(of)


@dataclass(frozen=True)
class _Game:
    """Values of coalitions S of features for a row x.

    v(S) is the mean over background rows b of f(x in the columns of S, b in the
    others). The table holds the n explained rows, and after them the m of the
    background. f of the empty and of the full coalition is asked for once.
    """

    model: Any
    label: str
    evaluate: Evaluate
    mixed: MixedRows

    def ask(self, n: int, mix: Callable[[Int64Array], Int64Array]) -> Float64Array:
        """Return f of n mixed rows; `mix` says where their players come from."""
        answers = np.empty(n)
        for start in range(0, n, _BATCH):
            asked = np.arange(start, min(start + _BATCH, n))
            dist = predict_dist(self.model, self.mixed.mix(mix(asked)))
            values = np.asarray(self.evaluate(dist), dtype=np.float64)
            if values.shape != asked.shape:
                rule = f"return one number per row, shape {asked.shape}"
                refuse("of", rule, f"shape {values.shape}")
            answers[asked] = values
        if not np.isfinite(answers).all():
            got = answers[~np.isfinite(answers)][0]
            refuse("of", "return finite numbers", f"{got} of {self.label}")
        return answers

    def enumerate(self, total: Float64Array, base: Float64Array) -> Float64Array:
        """Return exact contributions, shape (n, P), from all coalitions."""
        p, m = len(self.mixed.names), len(base)
        if p > _MOST_ENUMERATED:
            most = f"{_MOST_ENUMERATED} features or groups"
            refuse("method", f'not be "enumerate" for more than {most}', f"{p} of them")
        codes = np.arange(1, 2**p - 1)
        members = (codes[:, None] >> np.arange(p)) & 1 > 0
        inner = self._worth(
            len(total), np.repeat(members, m, axis=0), np.tile(np.arange(m), len(codes))
        )
        worth = inner.reshape(len(total), len(codes), m).mean(axis=2)
        # Shapley (1953): S comes just before j in the share 1 / (p C(p - 1, |S|)) of
        # all orders, and S with j in it just after j entered.
        before = members.sum(axis=1, keepdims=True) - members
        share = np.where(members, 1.0, -1.0) / (p * comb(p - 1, before))
        return np.asarray((total - base.mean())[:, None] / p + worth @ share)

    def sample(
        self,
        total: Float64Array,
        base: Float64Array,
        n_pairs: int,
        rng: np.random.Generator,
    ) -> tuple[Float64Array, Float64Array]:
        """Return contributions and standard errors, shapes (n, P), from drawn orders.

        From each background row the players' columns are taken from x one after the
        other; a contribution is the mean change of f as the player enters. An order
        and its reverse make an antithetic pair, which is one draw. Given the
        background rows pairs are independent: the variance of the mean is
        sum_b s_b^2 / (R m^2) with s_b^2 the variance of the R pairs of row b.
        """
        n, m, p = len(total), len(base), len(self.mixed.names)
        forth = rng.random((m, n_pairs, p)).argsort(axis=-1)
        ranks = np.stack([forth, p - 1 - forth], axis=2)
        entered = ranks[..., None, :] < np.arange(1, p)[:, None]
        row_of_draw = np.repeat(np.arange(m), n_pairs * 2 * (p - 1))
        road = np.empty((n, m, n_pairs, 2, p + 1))
        road[..., 0] = base[:, None, None]
        inner = self._worth(n, entered.reshape(-1, p), row_of_draw)
        road[..., 1:-1] = inner.reshape(n, m, n_pairs, 2, p - 1)
        road[..., -1] = total[:, None, None, None]
        gains = np.take_along_axis(np.diff(road), ranks[None], axis=-1).mean(axis=3)
        spread = gains.var(axis=2, ddof=1).sum(axis=1)
        errors = np.sqrt(spread / n_pairs) / m
        # Equal changes of f differ by rounding.
        least = _ROUNDING * np.abs(road).max(axis=(1, 2, 3, 4))
        errors[errors <= least[:, None]] = 0.0
        return gains.mean(axis=(1, 2)), errors

    def _worth(
        self, n: int, members: NDArray[np.bool_], background: Int64Array
    ) -> Float64Array:
        """Return f of n rows mixed in E ways, members (E, P), background rows (E,)."""
        ways = len(background)

        def mix(asked: Int64Array) -> Int64Array:
            row, way = np.divmod(asked, max(ways, 1))
            other = n + background[way]
            return np.where(members[way], row[:, None], other[:, None])

        return self.ask(n * ways, mix)


# A group shows so many of its values.
_VALUES_SHOWN = 3
# Kinds of numbers; truth values are another.
_NUMBERS = {"i", "u", "f"}


@dataclass(frozen=True)
class MixedRows:
    """Makes tables column by column; every column keeps its type.

    Parameters
    ----------
    table : array or data frame of shape (n, p)
        The table that columns are taken from.
    names : tuple of str
        Names of the P players. A group has the place of its first column.
    owner : ndarray of shape (p,)
        The player of every column.
    """

    table: Any
    names: tuple[str, ...]
    owner: Int64Array

    @classmethod
    def of(cls, table: Any, groups: Mapping[str, Sequence[Any]] | None) -> MixedRows:
        """Name the columns of a table, and join some of them to groups.

        Columns of an array are called x0, x1, ..., and may be given by number.
        """
        names = Columns.of(table).names
        labels = names or tuple(f"x{j}" for j in range(table.shape[1]))
        held = _read_groups(labels, {} if groups is None else groups, names is None)
        places = range(len(labels))
        keys: list[tuple[bool, Any]] = [(j in held, held.get(j, j)) for j in places]
        players = list(dict.fromkeys(keys))
        named = tuple(str(k if group else labels[k]) for group, k in players)
        for name in held.values():
            if named.count(str(name)) > 1:
                refuse("groups", "not be named as a feature is", f"{name!r}")
        owner = np.array([players.index(key) for key in keys], dtype=np.int64)
        return cls(table, named, owner)

    def mix(self, places: Int64Array) -> Any:
        """Return k rows, player j of which is taken from the rows places[:, j].

        Parameters
        ----------
        places : ndarray of shape (k, P)

        Returns
        -------
        array or data frame of shape (k, p)
        """
        table, at = self.table, places[:, self.owner]
        if not has_columns(table):
            return np.take_along_axis(table, at, axis=0)
        columns = list_columns(table)
        if hasattr(table, "with_columns"):  # polars
            taken = [column.gather(at[:, j]) for j, column in enumerate(columns)]
            return table[at[:, 0]].with_columns(*taken)
        import pandas as pd

        # Joined in one go: columns set one by one would leave the frame in pieces.
        parts = [pd.Series(c.array.take(at[:, j])) for j, c in enumerate(columns)]
        return pd.concat(parts, axis=1).set_axis(table.columns, axis=1)

    def describe(self, n: int) -> NDArray[np.object_]:
        """Return the values of every player in the first n rows as text, (n, P)."""
        table = self.table
        columns = list_columns(table) if has_columns(table) else list(table.T)
        text = np.empty((n, len(self.names)), dtype=object)
        for player in range(len(self.names)):
            mine = np.flatnonzero(self.owner == player)
            cells = [map(format_number, columns[j][:n]) for j in mine[:_VALUES_SHOWN]]
            more = ", ..." if len(mine) > _VALUES_SHOWN else ""
            rows = zip(*cells, strict=True)
            text[:, player] = [", ".join(row) + more for row in rows]
        return text


def read_table(X: Any, name: str) -> Any:
    """Return a data frame as it is and anything else as an array with two axes."""
    table = X if hasattr(X, "columns") else np.asarray(X)
    if len(table.shape) != 2 or 0 in table.shape:
        rule = "be an array or data frame of shape (n, p) that is not empty"
        refuse(name, rule, f"shape {tuple(table.shape)}")
    return table


def check_columns(X: Any, other: Any, name: str) -> None:
    """Refuse a table of that name with other columns than `X` has."""
    want, got = Columns.of(X), Columns.of(other)
    if got != want:
        rule = f"have the columns of `X`, {want.names or want.n_columns}"
        refuse(name, rule, got.names or got.n_columns)


def join_rows(X: Any, background: Any) -> Any:
    """Return the rows of `X` and after them those of a background that is like it."""
    if type(X) is not type(background):
        rule, found = type(X).__name__, type(background).__name__
        refuse("background", f"be of the type of `X`, {rule}", found, TypeError)
    check_columns(X, background, "background")
    if not has_columns(X):
        return np.concatenate([X, background])
    for name, *types in zip(X.columns, X.dtypes, background.dtypes, strict=True):
        # Numbers of different width can be joined, and nothing else.
        if types[0] != types[1] and not all(map(_is_number, types)):
            # The name of types of categories is one; their repr lists these.
            show = repr if str(types[0]) == str(types[1]) else str
            mine, other = (" ".join(show(one).split()) for one in types)
            got = f"{other} and {mine} in column {name!r}"
            refuse("background", "have the types of the columns of `X`", got, TypeError)
    if hasattr(X, "with_columns"):  # polars
        join = import_module("polars").concat
        return join([X, background], how="vertical_relaxed")
    import pandas as pd

    return pd.concat([X, background], ignore_index=True)


def _is_number(kind: Any) -> bool:
    """Say whether a type of pandas or polars is one of numbers."""
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric())
    return getattr(kind, "kind", "") in _NUMBERS


def _read_groups(
    labels: tuple[Any, ...], groups: Mapping[str, Sequence[Any]], numbered: bool
) -> dict[int, str]:
    """Return the group of each column in a group, by the column's number."""
    check_mapping(groups, "groups", "names to lists of features")
    held: dict[int, str] = {}
    for name, features in groups.items():
        listed = check_list(features, f"groups[{name!r}]", "features")
        if not listed:
            refuse(f"groups[{name!r}]", "hold at least one feature", "none")
        for feature in listed:
            found = [j for j, label in enumerate(labels) if feature == label]
            if numbered and feature in range(len(labels)):
                found = [feature]
            for wrong, rule in (
                (not found, f"features of `X`, which are {list(labels)}"),
                (any(j in held for j in found), "a feature once"),
            ):
                if wrong:
                    refuse("groups", f"hold {rule}", f"{feature!r} in {name!r}")
            held |= dict.fromkeys(found, name)
    return held
