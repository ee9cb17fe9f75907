r"""Write a page on a model and its forecasts of rows with known targets.

The page is one HTML file that needs no network: a verdict, scores beside climatology,
calibration, coverage, back-tests of values at risk, examples of forecasts, importance
of the columns, odd cells of the training file, and warnings where the rows differ from
those of training, of which the model keeps a summary. It says how many of the rows the
model has learned from, and judges by the others. With the training file there is a
boosted baseline as well.

Several files, and the Parquet files of folders, are one table. Of more than --max-rows
rows, and of as many training rows, so many are drawn, and the page says so: it takes
all forecasts at once. `localexpert evaluate` scores any number of rows.

for example:
  localexpert report houses.zip test.csv --out report.html
  localexpert report houses.zip test.csv --train houses.csv --id house \
      --groups town,kind --var .95 --title "House prices" --unit EUR --out report.html
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from localexpert.cli import args
from localexpert.cli.output import check_file, note
from localexpert.cli.table_model import (
    Known,
    TableModel,
    load_table_model,
    read_whole,
)
from localexpert.reading.files import STDIN, find_tables, name_tables
from localexpert.reading.labels import find_gaps
from localexpert.reading.messages import refuse, refusing
from localexpert.reporting import report
from localexpert.reporting.evidence import MISSING

# A page takes the forecasts of all its rows at once.
_MOST_ROWS = 50_000


_PAGE = f"""\
--train TABLE  the training rows, for a boosted baseline: a file, or a folder of Parquet
--max-rows 1..  of more rows so many are drawn, the same ones (default: {_MOST_ROWS})
--title TEXT  heading of the page
--unit TEXT  of the target, for axes
--id COLUMN  what rows that are shown are called
--coverage P  of the intervals (default: 0.9)
--groups A,B  columns that coverage is shown by
--var P,P  levels of values at risk that are tested, overall and by group
--pdf-friendly  made to be printed: light, all open, page breaks
"""


def add_options(parser: args.Parser) -> None:
    """Add the arguments of the command."""
    rows = "rows with known targets, not used in training: files, or folders of Parquet"
    table = f"model\ntable+  {rows}\n--target\n--out REPORT.html  where the page goes"
    args.add_options(parser, table, out={"required": True})
    args.add_table_options(parser, "that of each file")
    more: dict[str, Any] = {
        "max_rows": {"default": _MOST_ROWS},
        "coverage": {"default": 0.9},
    }
    args.add_options(parser.add_argument_group("page"), _PAGE, **more)


def run(options: Any) -> None:
    """Load the model, read the tables, write the report."""
    train = [] if options.train is None else [options.train]
    if STDIN in options.table and STDIN in train:
        refuse("standard input can be one table only: give a file after --train")
    given = [options.model, *options.table, *train]
    check_file(options.out, "--out", given)
    paths, learned = find_tables(options.table), find_tables(train)
    check_file(options.out, "--out", [*paths, *learned])
    model = load_table_model(options.model)
    named = [*options.groups, *([options.id] if options.id else [])]
    (frame, features, y), n = _draw(options, model, paths, named)
    source = name_tables(options.table)
    if len(y) < n:
        source += f" (drawn from {n:,})"
    more: dict[str, Any] = {}
    if learned:
        options.target = model.target
        (_, more["X_train"], more["y_train"]), _ = _draw(options, model, learned)
    if options.groups:
        more["groups"] = {
            name: _group(model, frame, features, name) for name in options.groups
        }
    if options.id is not None:
        more["row_names"] = frame[options.id].astype(str)
    with refusing(f"cannot write --out {options.out!r}", OSError):
        report(
            model.model,
            features,
            y,
            options.out,
            coverage=options.coverage,
            title=options.title,
            target_name=model.target,
            unit=options.unit,
            source=source,
            pdf_friendly=options.pdf_friendly,
            odd_cells=model.reader.odd_cells_,
            var_levels=sorted(set(options.var)),
            verbose=args.show_bar(options),
            **more,
        )
    note(f"wrote {options.out}")


def _draw(
    options: Any, model: TableModel, paths: list[str], kept: Collection[str] = ()
) -> tuple[Known, int]:
    """Return rows of files, some of them if there are more than a page takes."""
    frame, features, y = read_whole(options, model, paths, kept)
    n, most = len(y), options.max_rows
    if n > most:
        note(f"drew {most} (--max-rows) of {n} rows of {name_tables(paths)}")
        rows = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
        frame, features, y = frame.iloc[rows], features.iloc[rows], y[rows]
    return (frame, features, y), n


def _group(model: TableModel, frame: Any, features: Any, name: str) -> Any:
    """Return a feature as the model reads it, or any other column as texts."""
    if name in features and features[name].dtype.kind in "biuf":
        return features[name]
    gaps = find_gaps(frame, name, "group", model.reader.missing)
    return np.where(gaps, MISSING, frame[name].astype(str).str.strip())
