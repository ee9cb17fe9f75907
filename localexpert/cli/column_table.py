"""What a model has read each column as: for people, and as figures."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from localexpert.cli.columns import ColumnRule
from localexpert.cli.console import count
from localexpert.cli.schema import Schema
from localexpert.data.table_summary import ColumnSummary, TableSummary

_MOST_LINES, _MOST_NAMED, _WIDEST = 20, 4, 24
_DAY_ZERO = np.datetime64("1970-01-01")


def describe_columns(
    schema: Schema, summary: TableSummary | None
) -> list[dict[str, Any]]:
    """Return name, kind and values of each column of the training file, for JSON."""
    left = iter([] if summary is None else summary.columns)
    told = []
    for rule in schema.rules:
        n_features = 1 + len(rule.parts) if rule.kind == "date" else 1
        found = None
        if rule.kind != "dropped":
            found, *_ = [next(left, None) for _ in range(n_features)]
        told.append(_describe(rule, found))
    return told


def lay_out_columns(schema: Schema, summary: TableSummary | None) -> str:
    """Return a table of at most so many lines, and counts of the other columns."""
    told = describe_columns(schema, summary)
    names = [_cut(column["name"]) for column in told[:_MOST_LINES]]
    width = max(map(len, [*names, _cut(schema.target), "column"]))
    lines = [f"{'column':{width}}  read as", f"{_cut(schema.target):{width}}  target"]
    lines += [
        f"{name:{width}}  {_say(column)}"
        for name, column in zip(names, told, strict=False)
    ]
    kinds = Counter(column["kind"] for column in told[_MOST_LINES:])
    if kinds:
        # As many are dropped, or are dates, whatever the plural would be.
        parts = ", ".join(f"{kind} {number}" for kind, number in kinds.items())
        lines.append(f"and {count(kinds.total(), 'column')} more: {parts}")
    if schema.others:
        others = ", ".join(map(_cut, schema.others[:_MOST_NAMED]))
        more = len(schema.others) - _MOST_NAMED
        lines.append(f"no features: {others}{f' and {more} more' if more > 0 else ''}")
    return "\n".join(lines)


def _describe(rule: ColumnRule, found: ColumnSummary | None) -> dict[str, Any]:
    told: dict[str, Any] = {"name": rule.name, "kind": rule.kind}
    if rule.kind == "dropped":
        return {**told, "reason": rule.reason}
    if rule.kind == "category":
        told["categories"] = list(rule.categories)
    if rule.kind == "date":
        told["format"] = rule.date_format
    if found is None:
        return told
    n_rows = int(found.counts.sum()) + found.n_missing
    told["missing"] = found.n_missing / n_rows
    if rule.kind == "category":
        told["rows"] = found.counts.tolist()
    elif found.edges is not None and len(found.edges) and rule.kind != "boolean":
        ends = float(found.edges[0]), float(found.edges[-1])
        dates = rule.kind == "date"
        told["least"], told["greatest"] = map(_show_day, ends) if dates else ends
    return told


def _show_day(days: float) -> str:
    return str(_DAY_ZERO + np.timedelta64(int(np.floor(days)), "D"))


def _say(column: dict[str, Any]) -> str:
    """Return what is known of a column in words."""
    kind, more = column["kind"], ""
    if kind == "dropped":
        return f"dropped: {column['reason']}"
    if kind == "category":
        values = column["categories"]
        shown = ", ".join(map(_cut, values[:_MOST_NAMED]))
        more = f", {count(len(values), 'value')}: {shown}"
        more += ", ..." if len(values) > _MOST_NAMED else ""
    elif "least" in column:
        ends = (column["least"], column["greatest"])
        low, high = (e if isinstance(e, str) else f"{e:.6g}" for e in ends)
        more = f", {low} to {high}"
    missing = column.get("missing", 0.0)
    if missing:
        more += f"; {100.0 * missing:.2g} % missing"
    return f"{kind}{more}"


def _cut(name: str) -> str:
    """Return a name on one line, short enough for a table."""
    name = " ".join(name.split())
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 3]}..."
