"""`ColumnReader`: the rules of a training table's columns, stored with a model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import islice
from typing import Any, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from calibration import CalibrationWarning
from calibration.typing import Float64Array
from localexpert.reading.columns import (
    Cells,
    ColumnRule,
    Dialect,
    Learner,
    OddCell,
    list_odd,
    list_odd_zones,
    show,
    where,
)
from localexpert.reading.texts import (
    GAPS,
    OTHER,
    choose_decimal,
    count,
    cut,
    decimal_of,
    find_number_format,
    guess_decimal,
    list_names,
    load_pandas,
    read_yes_no,
    refuse,
)

# Different odd cells that one message lists.
_MOST_TOLD = 40
# Lines of columns that a table shows.
_MOST_LINES = 40
_LEAST_ROWS = 2


class ColumnReader(BaseEstimator):
    """Reads raw tables as the training table was read: columns become features.

    A column holds numbers, dates, yes or no, or words. At least 95 % of its filled
    cells decide the kind. All other cells become gaps and are listed. Numbers may have
    a unit, a percent sign or marks of thousands that are the same all over.

    Parameters
    ----------
    target : str, optional
        Column of numbers that is forecast, and no feature.
    others : sequence of str, optional
        Further columns that are no features: weights, groups, what is left out.
    categories : sequence of str, optional
        Columns that are no numbers, though digits, such as zip codes.
    missing : sequence of str, optional
        More marks of gaps besides the usual ones; upper and lower case are the same.
    decimal : {".", ","}, optional
        Decimal mark; by default it is found in each table.
    thousands : {",", ".", " ", "'"}, optional
        Mark between groups of three digits; by default it is found in each column.
    date_order : {"dmy", "mdy"}, optional
        Of dates that can be read either way, such as 03/04/2025.
    event : str, optional
        Column that says where the target is known. Elsewhere it is at least the number
        that stands there.
    ends : (str, str), optional
        Columns of the lower and the upper end of a target that is known in part, in the
        place of `target`.

    Attributes
    ----------
    rules_ : tuple of ColumnRule
        Of every column that may be a feature, in the order of the training table.
    target_rule_ : ColumnRule or None
    decimal_ : {".", ","} or None
        Decimal mark of the training table. None if that was no file.
    odd_cells_ : tuple of OddCell
        Every different cell of the training table that was read as a gap, or not as the
        others of its column.

    Examples
    --------
    >>> import pandas as pd
    >>> from localexpert.reading import ColumnReader
    >>> frame = pd.DataFrame(
    ...     {"km": ["1,5 km", "20,25 km"], "on": ["1.2.2024", "7.3.2024"]}
    ... )
    >>> ColumnReader().fit(frame).transform(frame)
          km         on
    0   1.50 2024-02-01
    1  20.25 2024-03-07
    """

    decimal_: str | None

    def __init__(
        self,
        target: str | None = None,
        others: Sequence[str] = (),
        categories: Sequence[str] = (),
        missing: Sequence[str] = (),
        decimal: str | None = None,
        thousands: str | None = None,
        date_order: str | None = None,
        event: str | None = None,
        ends: tuple[str, str] | None = None,
    ) -> None:
        self.target = target
        self.others = others
        self.categories = categories
        self.missing = missing
        self.decimal = decimal
        self.thousands = thousands
        self.date_order = date_order
        self.event = event
        self.ends = ends

    @classmethod
    def of_model(cls, model: Any) -> Self:
        """Return a reader for a regressor that was fitted to a data frame in Python.

        Parameters
        ----------
        model : LocalExpertRegressor
        """
        learned = model.reader_
        if learned.columns.names is None:
            refuse("the model was fitted to an array: its columns have no names")
        codes = {learned.column_of[j]: c for j, c in learned.category_codes.items()}
        rules = []
        for place, name in enumerate(learned.columns.names):
            if place in codes:
                values = tuple(codes[place])
                rules.append(ColumnRule(name, "category", categories=values))
            elif learned.dates and learned.dates[place]:
                rules.append(ColumnRule(name, "date", zoned=learned.zoned.get(place)))
            else:
                rules.append(ColumnRule(name, "number", written=None))
        reader = cls()
        reader.rules_, reader.target_rule_ = tuple(rules), None
        reader.decimal_, reader.odd_cells_ = None, ()
        return reader

    def fit(self, frame: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's
        """Find out what each column is; all that is odd is said in one warning.

        Parameters
        ----------
        frame : pandas.DataFrame of shape (n, p)
            As it is read: texts or types. Rows with a target decide the kinds.
        y : None
            Ignored: the target is a column.
        """
        self.fit_transform(frame)
        return self

    def fit_transform(self, frame: Any, y: Any = None) -> Any:  # noqa: ARG002
        """Fit, and return the features of the rows with a target, each read once.

        Parameters
        ----------
        frame : pandas.DataFrame of shape (n, p)
        y : None
            Ignored: the target is a column.

        Returns
        -------
        pandas.DataFrame of shape (m, q)
        """
        frame = _as_pandas(frame)
        decimal = decimal_of(frame, self._given_decimal)
        self.decimal_ = choose_decimal(frame, decimal)
        dialect = self._dialect(frame)
        learner = Learner(frame, dialect)
        self.target_rule_ = None
        if self.target is not None or self.ends is not None:
            self._check_roles(frame)
            if self.target is not None:
                self.target_rule_ = learner.find(self.target, "target")[0]
            rows = has_target(self.read_target(frame, odd=[]))
            _check_targets(frame, str(self.target_name), int(rows.sum()))
            learner.frame = frame = frame if rows.all() else frame[rows]
        kept = self._list_roles()
        found = [
            learner.learn(name, as_category=name in self.categories)
            for name in frame.columns
            if name not in kept
        ]
        self.rules_ = tuple(rule for rule, _ in found)
        self.odd_cells_ = tuple(learner.odd)
        if not self.used_:
            goal = f" {self.target!r}" if self.target else ""
            refuse(f"{_path(frame)} has no column to learn{goal} from")
        if not (decimal or self.thousands):
            held = [self.target_rule_] if self.target_rule_ else []
            held += [ColumnRule(name, "number") for name in self.ends or ()]
            learner.said += find_doubts(frame, [*self.used_, *held], dialect)
        self._tell(learner.said)
        features = {r.name: v for r, v in found if r.kind != "dropped"}
        return load_pandas().DataFrame(features, index=frame.index)

    def transform(self, frame: Any, odd: list[OddCell] | None = None) -> Any:
        """Return the features of rows, by the names of columns in any order.

        Parameters
        ----------
        frame : data frame of shape (n, p)
            Of pandas or polars, as it was read from a file or with types.
        odd : list of OddCell, optional
            Cells that do not fit their columns are added here. By default one warning
            lists them.

        Returns
        -------
        pandas.DataFrame of shape (n, q)
            Numbers, categories and dates, with the index of the rows.
        """
        frame = _as_pandas(frame)
        lacking = [rule.name for rule in self.used_ if rule.name not in frame]
        if lacking:
            refuse(
                f"{_path(frame)} lacks {count(len(lacking), 'column')} that the model "
                f"was trained on: {list_names(lacking)}"
            )
        dialect = self._dialect(frame)
        self._tell_doubts(frame, self.used_, dialect)
        found = [] if odd is None else odd
        features = {r.name: self._read(r, frame, dialect, found) for r in self.used_}
        if odd is None:
            tell_odd_cells(found)
        return load_pandas().DataFrame(features, index=frame.index)

    def read_target(
        self, frame: Any, name: str | None = None, odd: list[OddCell] | None = None
    ) -> Float64Array:
        """Return the targets of rows, NaN where missing: (n,), or their ends (n, 2).

        Parameters
        ----------
        frame : data frame of shape (n, p)
        name : str, optional
            Name of the target in this table, if not the name in training.
        odd : list of OddCell, optional
            As in `transform`.
        """
        frame = _as_pandas(frame)
        if self.ends is not None:
            return self._read_ends(frame, *self.ends)
        column: Any = self.target if name is None else name
        check_column(frame, column, "target")
        rule = self.target_rule_ or ColumnRule("", "number", written=None)
        found = [] if odd is None else odd
        rule = replace(rule, name=column)
        dialect = self._dialect(frame)
        self._tell_doubts(frame, [rule], dialect)
        y = self._read(rule, frame, dialect, found, "target")
        if odd is None:
            tell_odd_cells(found)
        y = np.asarray(y, dtype=np.float64)
        if self.event is None:
            return y
        known, upper = has_target(y), y.copy()
        seen = read_flags(frame[known], self.event, "event", self.missing)
        upper[known] = np.where(seen, y[known], np.inf)
        return np.column_stack([y, upper])

    def _read_ends(self, frame: Any, lower: str, upper: str) -> Float64Array:
        """Return ends (n, 2), infinite where one is a gap, NaN where both are."""
        ends = np.empty((len(frame), 2))
        for end, name in zip(ends.T, (lower, upper), strict=True):
            role, dialect = self.told_by[name], self._dialect(frame)
            check_column(frame, name, role)
            gaps = dialect.gaps | ({"-inf"} if role == "lower" else {"inf", "+inf"})
            cells = Cells.of(frame[name], replace(dialect, gaps=gaps))
            words, marks = cells.words, (dialect.decimal, dialect.thousands)
            form = find_number_format(words, cells.counts, *marks)[0]
            end[:] = cells.spread(form.read(words), np.nan)
            odd = np.isnan(end) & ~cells.is_gap[cells.codes]
            refuse_if(odd, frame, name, f"{role} {name!r} must hold finite numbers")
            end[np.isin(end, dialect.gap_numbers)] = np.nan
        if (wrong := ends[:, 0] > ends[:, 1]).any():
            row = int(np.argmax(wrong))
            got = f"{show(frame, lower, row)} and {show(frame, upper, row)}"
            order = f"lower {lower!r} must not be above upper {upper!r}"
            refuse(f"{order}, got {got} in {where(frame, row)}")
        empty = np.isnan(ends)
        one = empty & ~empty.all(axis=1, keepdims=True)
        return np.where(one, [-np.inf, np.inf], ends)

    @property
    def told_by(self) -> dict[str, str]:
        """Names of the columns that say what is known of targets, and their roles."""
        if self.ends is not None:
            return dict(zip(self.ends, ("lower", "upper"), strict=True))
        return {} if self.event is None else {self.event: "event"}

    @property
    def target_name(self) -> str | None:
        """What the target is called, by one column or two; None if it is not known."""
        return " to ".join(map(str, self.ends)) if self.ends else self.target

    @property
    def used_(self) -> tuple[ColumnRule, ...]:
        """Rules of the columns that become features."""
        return tuple(rule for rule in self.rules_ if rule.kind != "dropped")

    @property
    def feature_names_(self) -> list[str]:
        """Names of the columns that become features."""
        return [rule.name for rule in self.used_]

    def _list_roles(self) -> set[Any]:
        """Return the names of the columns that are no features."""
        target = () if self.target is None else (self.target,)
        return {*target, *self.told_by, *self.others}

    def find_unknown(self, frame: Any, known: Collection[str] = ()) -> list[str]:
        """Return the columns of a table that training did not have, but for some."""
        met = {*self._list_roles(), *known, *(rule.name for rule in self.rules_)}
        return [n for n in frame.attrs.get("names", frame.columns) if n not in met]

    def lay_out(self) -> str:
        """Return a table of what the columns of the training table were read as."""
        held: dict[Any, str] = {rule.name: rule.text for rule in self.rules_}
        held = self.told_by | held
        if self.target_rule_ is not None:
            held = {self.target: f"target, {self.target_rule_.text}"} | held
        names = [cut(" ".join(str(name).split())) for name in held]
        width = max(map(len, names))
        lines = [f"{n:{width}}  {t}" for n, t in zip(names, held.values(), strict=True)]
        if len(lines) > _MOST_LINES:
            more = count(len(lines) - _MOST_LINES, "column")
            lines[_MOST_LINES:] = [f"and {more} more"]
        if self.others:
            lines.append(f"no features: {list_names(self.others)}")
        return "\n".join(lines)

    def _read(
        self,
        rule: ColumnRule,
        frame: Any,
        dialect: Dialect,
        odd: list[OddCell],
        role: str = "column",
    ) -> Any:
        """Return a column; refuse it if no filled cell fits."""
        values, is_odd = rule.read(frame[rule.name], dialect)
        if is_odd.any():
            if rule.kind != "category" and load_pandas().isna(values).all():
                row = int(np.argmax(is_odd))
                refuse(
                    f"{role} {rule.name!r} must hold {rule.text} as in training, got "
                    f"{show(frame, rule.name, row)} in {where(frame, row)}"
                )
            what = f"not {rule.text} as in training"
            if rule.kind == "category":
                what = "not met in training"
            odd += list_odd(frame, rule.name, is_odd, f"{what}, taken as a gap")
        odd += list_odd_zones(frame, rule, values)
        return rule.as_feature(values)

    def _dialect(self, frame: Any) -> Dialect:
        """Return how a table writes its values; in doubt as the training table did."""
        mark, parting = (
            choose_decimal(frame, self._given_decimal, self.decimal_),
            self.thousands,
        )
        if mark != self.decimal_:
            parting = OTHER.get(parting or "", parting)
        parting = frame.attrs.get("thousands") or parting
        return Dialect(mark, parting, _all_gaps(self.missing), self.date_order)

    @property
    def _given_decimal(self) -> str | None:
        """The decimal mark that the user gave, if only by the mark of thousands."""
        return self.decimal or OTHER.get(self.thousands or "")

    def _tell_doubts(
        self, frame: Any, rules: Iterable[ColumnRule], dialect: Dialect
    ) -> None:
        """Warn of marks that neither the table nor its training tells for sure."""
        foreign = self.decimal_ is None or "delimiter" in frame.attrs
        foreign &= self.decimal_ != guess_decimal(frame)
        if foreign and decimal_of(frame, self._given_decimal) is None:
            for message in find_doubts(frame, rules, dialect):
                warn(message, CalibrationWarning, stacklevel=3)

    def _check_roles(self, frame: Any) -> None:
        """Refuse columns that are not there, or are two things at once."""
        roles = {} if self.target is None else {self.target: "target"}
        taken = [*self.others, *roles, *(self.ends or self.told_by)]
        for name, role in (roles | self.told_by).items():
            check_column(frame, name, role)
            if taken.count(name) > 1:
                refuse(f"{role} {name!r} cannot have another role as well")
        for name in self.categories:
            check_column(frame, name, "column of categories")
            if name in (self.target, *self.told_by, *self.others):
                refuse(
                    f"--categories must name columns to learn from, got {name!r}, "
                    "which is target, weight, group or dropped"
                )

    def _tell(self, said: list[str]) -> None:
        """Warn of what was found, and list what is odd."""
        by_reason: dict[str, list[str]] = {}
        for rule in self.rules_:
            if rule.kind == "dropped":
                by_reason.setdefault(rule.reason, []).append(rule.name)
        said = said + [f"dropped ({r}): {list_names(n)}" for r, n in by_reason.items()]
        for message in said:
            warn(message, CalibrationWarning, stacklevel=3)
        tell_odd_cells(self.odd_cells_)


def check_column(frame: Any, name: Any, role: str = "column") -> None:
    """Refuse a name that no column has, and say which there are."""
    if name not in frame.columns:
        names = list(frame.attrs.get("names", frame.columns))
        close = get_close_matches(str(name), map(str, names), n=1, cutoff=0.7)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        refuse(
            f"{_path(frame)} has no {role} {name!r}{hint}; its columns are "
            f"{list_names(names)}"
        )


def read_numbers(
    frame: Any,
    name: str,
    role: str = "column",
    decimal: str | None = None,
    missing: Collection[str] = (),
) -> Float64Array:
    """Return a column that must hold finite numbers, or gaps, as NaN, shape (n,)."""
    check_column(frame, name, role)
    mark, thousands = choose_decimal(frame, decimal), frame.attrs.get("thousands")
    dialect = Dialect(mark, thousands, _all_gaps(missing))
    rule, _ = Learner(frame, dialect).find(name, role)
    if not (thousands or decimal_of(frame, decimal)):
        for message in find_doubts(frame, [rule], dialect):
            warn(message, CalibrationWarning, stacklevel=2)
    values, odd = rule.read(frame[name], dialect)
    refuse_if(odd, frame, name, f"{role} {name!r} must hold finite numbers")
    return np.asarray(values, dtype=np.float64)


def find_doubts(frame: Any, rules: Iterable[ColumnRule], dialect: Dialect) -> list[str]:
    """Return warnings of numbers whose marks may be decimal or part thousands.

    Nothing in the table tells which: the mark of the dialect is a guess.
    """
    commas, other = dialect.decimal == ",", OTHER[dialect.decimal]
    kinds, found = ("marks of thousands", "decimal marks"), dict[str, list[str]]()
    for rule in rules:
        parted = rule.written is not None and rule.written.thousands in OTHER
        if rule.kind != "number" or not (commas or parted):
            continue
        cells = Cells.of(frame[rule.name], dialect)
        one, two = (
            np.abs(
                find_number_format(cells.words, cells.counts, mark)[0].read(cells.words)
            )
            for mark in (dialect.decimal, other)
        )
        if (one != two)[~np.isnan(one + two)].any():
            found.setdefault(kinds[int((one < two).any())], []).append(rule.name)
    return [
        f"{kind} are read in {list_names(names)}; if they are "
        f"{kinds[1 - kinds.index(kind)]}, say --decimal {other}"
        for kind, names in found.items()
    ]


def read_words(
    frame: Any, name: str, role: str, missing: Collection[str] = ()
) -> NDArray[np.object_]:
    """Return a column of texts that must have no gaps, shape (n,)."""
    gaps = find_gaps(frame, name, role, missing)
    if gaps.any():
        refuse(f"{role} {name!r} has a gap in {where(frame, int(np.argmax(gaps)))}")
    cells = Cells.of(frame[name], Dialect())
    return np.array(cells.texts, dtype=object)[cells.codes]


def read_flags(
    frame: Any, name: str, role: str, missing: Collection[str] = ()
) -> Float64Array:
    """Return a column that must hold yes or no, as 1 or 0, without gaps, shape (n,)."""
    cells = read_words(frame, name, role, missing)
    codes, words = load_pandas().factorize(cells)
    flags = read_yes_no(words)
    for value in (0.0, 1.0):
        flags[np.isin(words, [f"{value:g}", f"{value}"])] = value
    rule = f"{role} {name!r} must hold yes or no, true or false, or 1 or 0"
    refuse_if(np.isnan(flags)[codes], frame, name, rule)
    return np.asarray(flags[codes])


def has_target(y: Float64Array) -> NDArray[np.bool_]:
    """Return of which rows something is known of the target, (n,) or ends (n, 2)."""
    return ~np.isnan(y.reshape(len(y), -1)[:, 0])


def find_gaps(
    frame: Any, name: str, role: str, missing: Collection[str] = ()
) -> NDArray[np.bool_]:
    """Return which cells of a column are gaps, shape (n,)."""
    check_column(frame, name, role)
    cells = Cells.of(frame[name], Dialect(gaps=_all_gaps(missing)))
    return cells.is_gap[cells.codes]


def refuse_if(wrong: NDArray[np.bool_], frame: Any, name: str, rule: str) -> None:
    """Refuse the first cell of a column that breaks a rule, if there is one."""
    if wrong.any():
        row = int(np.argmax(wrong))
        refuse(f"{rule}, got {show(frame, name, row)} in {where(frame, row)}")


def tell_odd_cells(odd: Iterable[OddCell]) -> None:
    """List every different odd cell with its count and first place, in one warning."""
    merged: dict[tuple[str, str, str], OddCell] = {}
    for cell in odd:
        key = cell.why, cell.column, cell.text
        n = cell.count + (merged[key].count if key in merged else 0)
        merged[key] = replace(merged.get(key, cell), count=n)
    if not merged:
        return
    said: dict[tuple[str, str], list[str]] = {}
    for (why, column, text), cell in islice(merged.items(), _MOST_TOLD):
        shown = f"{text!r} ({count(cell.count, 'row')}, first in {cell.where})"
        said.setdefault((why, column), []).append(shown)
    listed = [f"{c!r}: {', '.join(t)} {why}" for (why, c), t in said.items()]
    more = len(merged) - _MOST_TOLD
    listed += [f"and {more} more"] if more > 0 else []
    warn(f"odd cells in {'; '.join(listed)}", CalibrationWarning, stacklevel=3)


def _check_targets(frame: Any, name: str, n_known: int) -> None:
    """Refuse a table with too few targets, and say how many rows have none."""
    if n_known < _LEAST_ROWS:
        refuse(
            f"{_path(frame)} must have at least {_LEAST_ROWS} rows with a target "
            f"{name!r}, got {n_known}"
        )
    if n_known < len(frame):
        rows = count(len(frame) - n_known, "row")
        msg = f"left out {rows} without a target {name!r}"
        warn(msg, CalibrationWarning, stacklevel=4)


def _path(frame: Any) -> str:
    return str(frame.attrs.get("path", "the table"))


def _as_pandas(frame: Any) -> Any:
    """Return a data frame of pandas, of polars too."""
    if not hasattr(frame, "columns"):
        refuse(f"`frame` must be a data frame, got {type(frame).__name__}")
    frame = frame if hasattr(frame, "iloc") else frame.to_pandas()
    if not frame.columns.is_unique:
        several = frame.columns[frame.columns.duplicated()].unique()
        refuse(f"{_path(frame)} has several columns of one name: {list_names(several)}")
    return frame


def _all_gaps(missing: Collection[str]) -> frozenset[str]:
    return GAPS.union(word.strip().casefold() for word in missing)
