"""Calibrated probabilities: written beside the rows, and scored where labels are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from calibration.typing import Float64Array
from localexpert.cli.cells import Dialect
from localexpert.cli.console import note, refuse
from localexpert.cli.out_column import OutColumn, copy_column
from localexpert.cli.output import write_table
from localexpert.cli.raw_table import RawTable
from localexpert.reporting.page import PROBABILITY_LOSSES

# The column that is added to a table.
CALIBRATED = "calibrated"


def refuse_clash(table: RawTable, names: Iterable[str]) -> None:
    """Refuse a table that has a column of such a name already."""
    for name in names:
        if name in table.columns:
            refuse(f"{table.path} has a column {name!r} already; rename it")


def write_beside(
    options: Any, table: RawTable, answers: Mapping[str, Float64Array]
) -> None:
    """Write the table with more columns (n,) as the options say."""
    dialect = Dialect(options.decimal)
    columns = {name: copy_column(table, name, dialect) for name in table.columns}
    more = {name: OutColumn(values) for name, values in answers.items()}
    write_table(options.out, {**columns, **more}, "row")


def as_probabilities(scores: Float64Array, scale: str) -> Float64Array | None:
    """Return what scores say by themselves; None where they say an order only.

    Scores (n,) are of one class of two, (n, k) of k classes.
    """
    if scale == "real":
        return None
    if scale == "probability":
        return scores
    return np.asarray(expit(scores) if scores.ndim == 1 else softmax(scores, axis=1))


def tell_losses(
    y: NDArray[np.intp], before: Float64Array | None, after: Float64Array
) -> None:
    """Say on stderr what calibration changes, of probabilities (n,) or (n, k)."""
    for name, loss in PROBABILITY_LOSSES.items():
        told = "" if before is None else f"{loss(y, before):.5f} before, "
        note(f"{name} {told}{loss(y, after):.5f} after")
