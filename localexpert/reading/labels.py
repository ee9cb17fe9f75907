"""Single columns that must hold one thing: scores and labels, weights and groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.reading.columns import Cells, Dialect, Learner, show, where
from localexpert.reading.formats import GAPS, find_decimal
from localexpert.reading.messages import list_names, refuse
from localexpert.reading.reader import check_column

# Of the sum of a row's probabilities: as far as four digits in a file are off.
_ROUNDING = 1e-3
# Pairs of which one label tells the other.
_PAIRS = (("0", "1"), ("false", "true"), ("False", "True"))


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
    mark = decimal or frame.attrs.get("decimal") or find_decimal([frame[name]]) or "."
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


@dataclass(frozen=True)
class Labels:
    """Classes as files write them.

    Parameters
    ----------
    names : tuple of str or None
        Of two classes the negative one, None while it has not been met, and the
        positive one; of k columns of scores their classes.
    """

    names: tuple[str | None, ...]

    @classmethod
    def of_two(
        cls, held: Collection[str], positive: str | None = None, what: str = "label"
    ) -> Labels:
        """Find two classes among labels, of which perhaps one has been met.

        The positive one is the greater number or the later word, unless it is named.
        """
        classes = sorted(set(held))
        if len(classes) > 2:
            refuse(
                f"{what} must hold two different values, got {len(classes)}: "
                f"{list_names(classes)}"
            )
        if positive is None and len(classes) == 1:
            pair = next((pair for pair in _PAIRS if classes[0] in pair), None)
            if pair is None:
                refuse(
                    f"{what} holds {classes[0]!r} alone: say by --positive which class "
                    "is meant"
                )
            return cls(pair)
        if positive is None:
            positive = _greater(classes)
        others = [label for label in classes if label != positive]
        if len(others) > 1:
            refuse(f"--positive must be one of {list_names(classes)}, got {positive!r}")
        return cls((others[0] if others else None, positive))

    @classmethod
    def of_many(
        cls,
        held: Collection[str],
        columns: Sequence[str],
        classes: Sequence[str] | None = None,
        what: str = "label",
    ) -> Labels:
        """Return the classes of k columns of scores: those named, or found by name."""
        if classes is not None:
            if len(classes) != len(columns) or len(set(classes)) != len(columns):
                refuse(
                    f"--classes must name each of the {len(columns)} columns of "
                    f"--score once, got {list_names(classes)}"
                )
            return cls(tuple(classes))
        for names in _possible_names(columns):
            if set(held) <= set(names):
                return cls(tuple(names))
        return refuse(
            f"{what} holds {list_names(sorted(set(held)))}, which do not tell the "
            f"columns {list_names(columns)} apart: name their classes by --classes, in "
            "their order"
        )

    def meet(self, held: Collection[str], what: str = "label") -> Labels:
        """Return two classes with what a further batch tells; others are refused."""
        negative, positive = self.names
        others = sorted({*held, negative} - {positive, None}, key=str)
        if len(others) > 1:
            known = [name for name in self.names if name is not None]
            refuse(
                f"{what} must hold {list_names(known)} as before, got "
                f"{list_names(sorted(set(held)))}"
            )
        return Labels((others[0] if others else None, positive))

    def code(self, texts: NDArray[np.object_]) -> NDArray[np.intp]:
        """Return the place of each label among the classes, -1 of others, (n,)."""
        places = {name: place for place, name in enumerate(self.names)}
        return np.array([places.get(text, -1) for text in texts], dtype=np.intp)


def _possible_names(columns: Sequence[str]) -> Iterator[list[str]]:
    """Yield what columns may be called: as they are, by what differs, by number."""
    yield list(columns)
    head = _count_common(columns)
    rests = [name[head:] for name in columns]
    yield rests
    tail = _count_common([rest[::-1] for rest in rests])
    yield [rest[: len(rest) - tail] for rest in rests]
    yield [str(number) for number in range(len(columns))]


def _count_common(names: Sequence[str]) -> int:
    """Return how many letters all names begin with."""
    same = (len(set(letters)) == 1 for letters in zip(*names, strict=False))
    return sum(1 for _ in takewhile(bool, same))


def _greater(classes: Sequence[str]) -> str:
    """Return the greater number, or the later word."""
    try:
        return max(classes, key=Decimal)
    except InvalidOperation:
        return classes[-1]


def _all_gaps(missing: Collection[str]) -> frozenset[str]:
    return GAPS.union(word.strip().casefold() for word in missing)
