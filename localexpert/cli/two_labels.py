"""`TwoLabels`: the two classes of labels that come batch by batch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localexpert.cli.cells import Dialect, Distinct
from localexpert.cli.console import count, list_names, refuse, warn
from localexpert.cli.labelled import greater_label
from localexpert.cli.raw_table import RawTable

# Pairs of which one label tells the other.
_PAIRS = (("0", "1"), ("false", "true"), ("False", "True"))


@dataclass(frozen=True)
class TwoLabels:
    """Labels as files write them.

    Parameters
    ----------
    positive : str
        The class whose probability is meant.
    negative : str or None
        The other; None as long as it has not been met.
    """

    positive: str
    negative: str | None

    @classmethod
    def of(cls, held: Collection[str], positive: str | None, what: str) -> TwoLabels:
        """Find the classes of the labels of a first batch, of one class perhaps."""
        classes = sorted(held)
        if len(classes) > 2:
            refuse(f"{what} must hold two different values, got {_show(classes)}")
        if positive is None and len(classes) == 1:
            pair = next((pair for pair in _PAIRS if classes[0] in pair), None)
            if pair is None:
                refuse(
                    f"{what} holds {classes[0]!r} alone: say by --positive which class "
                    "is meant"
                )
            return cls(pair[1], pair[0])
        if positive is None:
            positive = greater_label(classes)
        others = [label for label in classes if label != positive]
        if len(others) > 1:
            refuse(f"--positive must be one of {_show(classes)}, got {positive!r}")
        return cls(positive, others[0] if others else None)

    def meet(self, held: Collection[str], positive: str | None, what: str) -> TwoLabels:
        """Return the classes with what a further batch tells; others are refused."""
        if positive not in (None, self.positive):
            refuse(
                f"--positive differs from that of --state, {self.positive!r}: another "
                "one needs a new state"
            )
        others = sorted({*held, self.negative} - {self.positive, None}, key=str)
        if len(others) > 1:
            known = [self.positive, *([self.negative] if self.negative else [])]
            refuse(f"{what} must hold {_show(known)} as before, got {_show(held)}")
        return TwoLabels(self.positive, others[0] if others else None)

    def code(self, labels: NDArray[np.object_]) -> NDArray[np.intp]:
        """Return 1 for the positive class and 0 for the other, shape (n,)."""
        return np.asarray(labels == self.positive, dtype=np.intp)


def read_known_labels(
    table: RawTable, name: str, decimal: str
) -> tuple[RawTable, NDArray[np.object_]]:
    """Return the rows of a table that have a label, and their labels (n,)."""
    dialect = Dialect(decimal)
    texts = Distinct.of(table.column(name, "label"), dialect)
    rows = np.flatnonzero(~texts.is_gap[texts.codes])
    if not len(rows):
        refuse(f"{table.path} has no row with a label {name!r}")
    if len(rows) < len(table):
        rest = count(len(table) - len(rows), "row")
        warn(f"left out {rest} without a label {name!r}")
    known: Any = table if len(rows) == len(table) else table.take(rows)
    return known, known.words(name, "label", dialect)


def _show(labels: Collection[str]) -> str:
    return list_names(sorted(labels))
