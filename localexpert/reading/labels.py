"""Single columns that must hold one thing: scores and labels, weights and groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.reading.columns import Cells, Dialect, Learner, show, where
from localexpert.reading.formats import GAPS, decimal_of
from localexpert.reading.messages import list_names, refuse
from localexpert.reading.reader import check_column

# Of the sum of a row's probabilities: as far as four digits in a file are off.
_ROUNDING = 1e-3


def read_numbers(
    frame: Any,
    name: str,
    role: str = "column",
    decimal: str | None = None,
    thousands: str | None = None,
    missing: Collection[str] = (),
) -> Float64Array:
    """Return a column that must hold finite numbers, or gaps, as NaN, shape (n,)."""
    check_column(frame, name, role)
    mark = decimal or decimal_of(frame) or "."
    dialect = Dialect(mark, thousands, _all_gaps(missing))
    rule, _ = Learner(frame, dialect).find(name, role)
    values, odd = rule.read(frame[name], dialect)
    refuse_if(odd, frame, name, f"{role} {name!r} must hold finite numbers")
    return np.asarray(values, dtype=np.float64)


def read_words(
    frame: Any, name: str, role: str = "column", missing: Collection[str] = ()
) -> NDArray[np.object_]:
    """Return a column of texts that must have no gaps, shape (n,)."""
    gaps = find_gaps(frame, name, role, missing)
    if gaps.any():
        refuse(f"{role} {name!r} has a gap in {where(frame, int(np.argmax(gaps)))}")
    cells = Cells.of(frame[name], Dialect())
    return np.array(cells.texts, dtype=object)[cells.codes]


def find_gaps(
    frame: Any, name: str, role: str = "column", missing: Collection[str] = ()
) -> NDArray[np.bool_]:
    """Return which cells of a column stand for nothing, shape (n,)."""
    check_column(frame, name, role)
    cells = Cells.of(frame[name], Dialect(gaps=_all_gaps(missing)))
    return cells.is_gap[cells.codes]


def refuse_if(
    wrong: NDArray[np.bool_], frame: Any, name: str, rule: str, hint: str = ""
) -> None:
    """Refuse the first cell of a column that breaks a rule, if there is one."""
    if wrong.any():
        row = int(np.argmax(wrong))
        refuse(f"{rule}, got {show(frame, name, row)} in {where(frame, row)}{hint}")


def read_scores(
    frame: Any,
    names: Sequence[str],
    decimal: str | None = None,
    thousands: str | None = None,
    *,
    probability: bool = False,
    hint: str = "",
) -> Float64Array:
    """Return the scores of rows: of one column (n,), of k columns (n, k).

    Probabilities must lie in [0, 1], and those of k columns add up to 1; the hint says
    what else they may be.
    """
    columns = []
    for name in names:
        scores = read_numbers(frame, name, "score", decimal, thousands)
        score = f"score {name!r} must"
        refuse_if(np.isnan(scores), frame, name, f"{score} not have gaps")
        if probability:
            rule = f"{score} lie in [0, 1] {hint}".rstrip()
            refuse_if((scores < 0.0) | (scores > 1.0), frame, name, rule)
        columns.append(scores)
    if len(columns) == 1:
        return columns[0]
    scores = np.column_stack(columns)
    if probability:
        sums = scores.sum(axis=1)
        wrong = np.abs(sums - 1.0) > _ROUNDING
        if wrong.any():
            row = int(np.argmax(wrong))
            refuse(
                f"scores {list_names(names)} must add up to 1 {hint}".rstrip()
                + f", got {sums[row]:.6g} in {where(frame, row)}"
            )
        # What is left is how the file rounds.
        scores /= sums[:, None]
    return scores


def find_two_labels(
    held: Collection[str],
    positive: str | None = None,
    known: Collection[str] = (),
    what: str = "label",
) -> tuple[str | None, str]:
    """Return the negative one of two labels, None until it is met, and the positive.

    The positive one is the greater number or the later word, unless it is named; known
    are labels that were met before.
    """
    met = sorted({*held, *known})
    if len(met) > 2:
        refuse(
            f"{what} must hold two different values, got {len(met)}: {list_names(met)}"
        )
    if positive is None:
        if len(met) == 1:
            refuse(
                f"{what} holds {met[0]!r} alone: say by --positive which class is meant"
            )
        positive = _greater(met)
    others = [label for label in met if label != positive]
    if len(others) > 1:
        refuse(f"--positive must be one of {list_names(met)}, got {positive!r}")
    return (others[0] if others else None), positive


def match_columns(
    columns: Sequence[str], labels: Collection[str], classes: Sequence[str] = ()
) -> dict[str, str]:
    """Return the label that each column of scores is of.

    It is the one that the column's name ends with, or that `classes` has in its place.
    """
    if not classes:
        ends = {c: [label for label in labels if c.endswith(label)] for c in columns}
        found = {c: max(of, key=len, default="") for c, of in ends.items()}
    else:
        found = dict(zip(columns, classes, strict=False))
    if sorted(classes or found.values()) != sorted(labels) or len(found) != len(labels):
        refuse(
            f"--score must name a column for each of {list_names(labels)}, whose name "
            "ends with it, or --classes name the label of each column, in their order, "
            f"got {list_names(classes or columns)}"
        )
    return found


def _greater(labels: Sequence[str]) -> str:
    """Return the greater number, or the later word."""
    try:
        return max(labels, key=Decimal)
    except InvalidOperation:
        return labels[-1]


def _all_gaps(missing: Collection[str]) -> frozenset[str]:
    return GAPS.union(word.strip().casefold() for word in missing)
