"""`ClassLabels`: which class each of several score columns is of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.cli.cells import Dialect
from localexpert.cli.console import join_few, list_names, note, refuse
from localexpert.cli.lists import split_names
from localexpert.cli.options import Option
from localexpert.cli.probabilities import CALIBRATED
from localexpert.cli.raw_table import RawTable

CLASSES: Option = (
    "--classes",
    "labels that several score columns stand for, in their order (default: the "
    "columns' names, or what differs in them, or 0,1,2)",
    {"type": split_names, "metavar": "A,B,C"},
)


@dataclass(frozen=True)
class ClassLabels:
    """The classes of k score columns.

    Parameters
    ----------
    names : tuple of str
        The k labels as a file writes them, in the order of the columns.
    """

    names: tuple[str, ...]

    @classmethod
    def find(cls, table: RawTable, options: Any) -> ClassLabels:
        """Return the classes that the options name, or else the columns and labels."""
        columns: list[str] = options.score
        if options.classes is not None:
            names = tuple(options.classes)
            if len(names) != len(columns) or len(set(names)) != len(columns):
                refuse(
                    f"--classes must name each of the {len(columns)} columns of "
                    f"--score once, got {list_names(names)}"
                )
            return cls(names)
        held = set(table.words(options.label, "label", Dialect(options.decimal)))
        fits = [one for one in _possible_names(columns) if held <= set(one)]
        if not fits:
            refuse(
                f"label {options.label!r} of {table.path} holds "
                f"{list_names(sorted(held))}, which do not tell the columns "
                f"{list_names(columns)} apart: name their classes by --classes, in "
                "their order"
            )
        pairs = [f"{c!r}: {n!r}" for c, n in zip(columns, fits[0], strict=True)]
        note(f"columns and their classes: {join_few(pairs)}")
        return cls(tuple(fits[0]))

    def read(self, table: RawTable, options: Any) -> NDArray[np.intp]:
        """Return the column of the class of each row, shape (n,)."""
        texts = table.words(options.label, "label", Dialect(options.decimal))
        places = {name: place for place, name in enumerate(self.names)}
        labels = np.array([places.get(text, -1) for text in texts], dtype=np.intp)
        rule = f"label {options.label!r} must be one of {list_names(self.names)}"
        table.refuse_if(labels < 0, options.label, rule)
        return labels

    def parameter(self) -> list[str] | None:
        """Return `classes` of a calibrator: None for numbers in their order."""
        numbers = tuple(str(number) for number in range(len(self.names)))
        return None if self.names == numbers else list(self.names)

    def of(self, columns: NDArray[np.intp]) -> NDArray[Any]:
        """Return the labels of columns (n,) as that calibrator knows them."""
        names = self.parameter()
        return columns if names is None else np.array(names)[columns]

    def columns(self) -> list[str]:
        """Return the names of the columns of answers."""
        return [f"{CALIBRATED}_{name}" for name in self.names]

    def lay_out(self, answers: Float64Array) -> dict[str, Float64Array]:
        """Return columns of answers (n,) by their names."""
        return dict(zip(self.columns(), answers.T, strict=True))


def check_columns(options: Any) -> None:
    """Refuse columns and options that mean nothing for several classes."""
    columns: Sequence[str] = options.score
    if len(set(columns)) < len(columns):
        refuse(f"--score must name each column once, got {list_names(columns)}")
    if options.positive is not None:
        refuse(
            "--positive says which of two labels one score is of; of several columns "
            "--classes names the labels"
        )


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
