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
from localexpert.cli.options import COLUMN, REQUIRED, Option
from localexpert.cli.raw_table import RawTable

SCORE: Option = ("--score", "greater means likelier", COLUMN | REQUIRED)
POSITIVE: Option = (
    "--positive",
    "the class whose probability is meant (default: the greater of the two)",
    {"metavar": "LABEL"},
)


def read_scores(table: RawTable, options: Any, scale: str, hint: str) -> Float64Array:
    """Return the scores of all rows (n,); the hint says what else they may be."""
    scores = table.numbers(options.score, "score", Dialect(options.decimal))
    score = f"score {options.score!r} must"
    table.refuse_if(np.isnan(scores), options.score, f"{score} not have gaps")
    if scale == "probability":
        rule = f"{score} lie in [0, 1] {hint}"
        table.refuse_if((scores < 0.0) | (scores > 1.0), options.score, rule)
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
        positive = _greater(classes)
    if positive not in classes:
        refuse(f"--positive must be one of {list_names(classes)}, got {positive!r}")
    return np.asarray(texts == positive, dtype=np.intp)


def _greater(classes: Sequence[str]) -> str:
    """Return the greater number, or the later word."""
    try:
        return max(classes, key=Decimal)
    except InvalidOperation:
        return classes[-1]
