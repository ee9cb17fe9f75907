"""What is told of columns is what the model has read, on few lines."""

import numpy as np
import pandas as pd

from localexpert.cli.column_table import describe_columns, lay_out_columns
from localexpert.cli.columns import ColumnRule
from localexpert.cli.number_formats import NumberFormat
from localexpert.cli.schema import Schema
from localexpert.data.table import Table
from localexpert.data.table_summary import TableSummary


def test_all_kinds():
    rules = (
        ColumnRule("id", "dropped", reason="constant"),
        ColumnRule("day", "date", date_format="year-month-day", parts=("year",)),
        ColumnRule("share", "number", written=NumberFormat(unit="%")),
        ColumnRule("a very long name of a column", "category", tuple("abcde")),
        ColumnRule("new\nline", "boolean"),
        ColumnRule("empty here", "number"),
    )
    written = NumberFormat(thousands=",", unit="$")
    schema = Schema("y", rules, ("weight", "group"), target_written=written)
    frame = pd.DataFrame(
        {
            "day.days": [-1.0, 0.0, np.nan, 19_000.0],
            "day.year": [1969.0, 1970.0, np.nan, 2022.0],
            "share": [0.5, 99.0, 3.0, 4.0],
            "kind": pd.Categorical(["a", None, "b", "c"], categories=list("abcde")),
            "flag": [1.0, 0.0, 1.0, 0.0],
            "empty here": [np.nan] * 4,
        }
    )
    summary = TableSummary.of(Table.of(frame), np.ones(4))
    assert lay_out_columns(schema, summary).splitlines() == [
        "column                    read as",
        "y                         target, number in $ with thousands marks "
        "('$1,234' is 1234)",
        "id                        dropped: constant",
        "day                       date, 1969-12-31 to 2022-01-08; 25 % missing",
        "share                     number in percent ('50%' is 50), 0.5 to 99",
        "a very long name of a...  category, 5 values: a, b, c, d, ...; 25 % missing",
        "new line                  boolean",
        "empty here                number; 100 % missing",
        "no features: weight, group",
    ]
    told = describe_columns(schema, summary)
    assert told[3]["rows"] == [1, 1, 1, 0, 0]
    assert told[1]["format"] == "year-month-day"
    # Models of earlier versions keep no summary.
    assert describe_columns(schema, None)[4] == {"name": "new\nline", "kind": "boolean"}


def test_many_columns_are_counted():
    rules = [ColumnRule(f"c{j}", "number") for j in range(25)]
    rules += [ColumnRule("d", "dropped", reason="constant")]
    lines = lay_out_columns(Schema("y", tuple(rules)), None).splitlines()
    assert len(lines) == 23
    assert lines[-1] == "and 6 columns more: number 5, dropped 1"
