"""Scores and two-class labels, read from a table."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.cli.cells import Dialect
from localexpert.cli.console import list_names, refuse
from localexpert.cli.lists import split_names
from localexpert.cli.options import REQUIRED, Option
from localexpert.cli.raw_table import RawTable

# Of the sum of a row's probabilities: as far as four digits in a file are off.
_ROUNDING = 1e-3

SCORE: Option = (
    "--score",
    "greater means likelier; of several classes a column for each, with commas",
    {"type": split_names, "metavar": "COLUMN[,COLUMN]"} | REQUIRED,
)
POSITIVE: Option = (
    "--positive",
    "the class whose probability is meant (default: the greater of the two)",
    {"metavar": "LABEL"},
)


def read_scores(table: RawTable, options: Any, scale: str, hint: str) -> Float64Array:
    """Return the scores of all rows, the hint says what else they may be.

    Of one column their shape is (n,), of k columns (n, k).
    """
    columns = [
        _read_column(table, name, options, scale, hint) for name in options.score
    ]
    if len(columns) == 1:
        return columns[0]
    scores = np.column_stack(columns)
    if scale == "probability":
        sums = scores.sum(axis=1)
        wrong = np.abs(sums - 1.0) > _ROUNDING
        if wrong.any():
            row = int(np.argmax(wrong))
            refuse(
                f"scores {list_names(options.score)} must add up to 1 {hint}, "
                f"got {sums[row]:.6g} in {table.where(row)}"
            )
        # What is left is how the file rounds.
        scores /= sums[:, None]
    return scores


def _read_column(
    table: RawTable, name: str, options: Any, scale: str, hint: str
) -> Float64Array:
    """Return the scores of one column (n,)."""
    dialect = Dialect(options.decimal, thousands=options.thousands or "")
    scores = table.numbers(name, "score", dialect).values
    score = f"score {name!r} must"
    table.refuse_if(np.isnan(scores), name, f"{score} not have gaps")
    if scale == "probability":
        rule = f"{score} lie in [0, 1] {hint}"
        table.refuse_if((scores < 0.0) | (scores > 1.0), name, rule)
    return scores


def read_labels(table: RawTable, options: Any) -> NDArray[np.intp]:
    """Return 1 for the positive class and 0 for the other, shape (n,)."""
    texts = table.words(options.label, "label", Dialect(options.decimal))
    classes = sorted(set(texts))
    if len(classes) != 2:
        refuse(
            f"label {options.label!r} of {table.path} must hold two different values, "
            f"got {len(classes)}: {list_names(classes)}"
        )
    positive = options.positive
    if positive is None:
        positive = greater_label(classes)
    if positive not in classes:
        refuse(f"--positive must be one of {list_names(classes)}, got {positive!r}")
    return np.asarray(texts == positive, dtype=np.intp)


def greater_label(classes: Sequence[str]) -> str:
    """Return the greater number, or the later word."""
    try:
        return max(classes, key=Decimal)
    except InvalidOperation:
        return classes[-1]
