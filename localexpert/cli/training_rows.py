"""`TrainingRows`: the rows that columns are learned from, target and weight apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.cli.cells import Dialect
from localexpert.cli.console import note, refuse
from localexpert.cli.joined_table import JoinedTable
from localexpert.cli.number_formats import PLAIN, NumberFormat
from localexpert.cli.raw_table import RawTable
from localexpert.cli.schema import Schema
from localexpert.cli.targets import with_targets

_LEAST_ROWS = 2


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows with a target, and what their columns are.

    Parameters
    ----------
    schema : Schema
    table : RawTable of n rows
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
    weight_written : NumberFormat
    groups : ndarray of object, shape (n,), or None
        A word each.
    """

    schema: Schema
    table: RawTable
    y: Float64Array
    weight: Float64Array | None
    weight_written: NumberFormat
    groups: NDArray[np.object_] | None

    @classmethod
    def learn(
        cls, whole: RawTable, options: Any, dialect: Dialect, *, tells: bool = True
    ) -> Self:
        """Find out what each column is; rows without a target are told if `tells`."""
        written = whole.find_format(options.target, "target", dialect)
        targets: list[Float64Array] = []
        how = options.target, dialect, targets, _LEAST_ROWS, written
        (table,) = with_targets([whole], *how, tells=tells)
        (y,) = targets
        weight, weight_written = None, PLAIN
        if options.weight is not None:
            weight_written = table.find_format(options.weight, "weight", dialect)
            weight = read_weight(table, options.weight, dialect, weight_written)
        groups = None
        if options.group is not None:
            groups = table.words(options.group, "group", dialect)
        others = _kept_out(table, options)
        if isinstance(table, JoinedTable):
            known = {options.target, *others, *options.categories}
            table.check_kinds([n for n in table.columns if n not in known], dialect)
        how_dated = options.date_order, options.categories
        schema = Schema.learn(
            table, options.target, others, dialect, *how_dated, written
        )
        return cls(schema, table, y, weight, weight_written, groups)


def read_weight(
    table: RawTable, name: str, dialect: Dialect, written: NumberFormat
) -> Float64Array:
    """Return the weights of rows, of which none is missing or below zero."""
    weight = table.numbers(name, "weight", dialect, written).values
    rule = f"weight {name!r} must hold numbers from 0 on"
    table.refuse_if(~(weight >= 0.0), name, rule)
    return weight


def check_weights(name: str, total: float) -> None:
    """Refuse weights that add up to nothing."""
    if not total > 0.0:
        refuse(f"weight {name!r} must not be 0 in every row")


def left_out_by(options: Any) -> set[str]:
    """Return the columns that are dropped and nothing else, as they may differ."""
    used = {options.target, options.weight, options.group, *options.categories}
    return set(options.drop) - used


def tell_of_commas(schema: Schema) -> None:
    """Say what else commas between thousands may be, where nobody has said it."""
    written = [schema.target_written, *(rule.written for rule in schema.used)]
    if not schema.thousands and any(one.thousands == "," for one in written):
        note("if these commas are decimal marks, say --decimal ,")


def _kept_out(table: RawTable, options: Any) -> list[str]:
    """Return the columns that are no features because the user says so."""
    for name in options.drop:
        table.column(name, "column to drop")
    named = [options.weight, options.group, *options.drop]
    if options.target in named:
        refuse(f"target {options.target!r} cannot be weight, group or dropped as well")
    for name in options.categories:
        table.column(name, "column of categories")
        if name in (options.target, *named):
            refuse(
                f"--categories must name columns to learn from, got {name!r}, which is "
                "target, weight, group or dropped"
            )
    return list(dict.fromkeys(name for name in named if name is not None))
