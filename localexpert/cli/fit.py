"""`localexpert fit`: a model from a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from localexpert.cli.cells import Dialect
from localexpert.cli.column_table import lay_out_columns
from localexpert.cli.command import Command
from localexpert.cli.console import (
    count,
    note,
    refuse,
    refusing,
    show_table,
)
from localexpert.cli.dates import ORDERS
from localexpert.cli.joined_table import join_tables
from localexpert.cli.large_fit import check_large, fit_large_rows
from localexpert.cli.lists import list_of
from localexpert.cli.model_files import TableModel, save_object
from localexpert.cli.options import (
    COLUMN,
    FLAG,
    NAMES,
    REQUIRED,
    SEED,
    Option,
    make_reader,
    read_jobs,
    read_with,
    show_bar,
    whole_number,
)
from localexpert.cli.origin import Origin
from localexpert.cli.output import STDOUT, check_writable
from localexpert.cli.read_file import is_parquet, name_input
from localexpert.cli.row_counts import count_rows, is_stream
from localexpert.cli.scores import lay_out_scores
from localexpert.cli.tables import find_alike, find_tables, name_tables
from localexpert.cli.training_rows import (
    TrainingRows,
    check_weights,
    left_out_by,
    tell_of_commas,
)
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.climatology import Climatology

_EPILOG = """\
Dates become numbers (days since 1970, and year, month, weekday, hour where they
vary), texts become categories, and empty cells, NA, NaN, null, none, ? and - are
gaps, which need no filling in. Columns that are empty, constant, or differ in every
row as names do are dropped, and rows without a target as well; stderr says so.
Numbers with marks between thousands, currencies and percent (50% is 50) are read
where a whole column is written in one way; stderr says so, or what to say instead.
Lists have commas or blanks; a name that has a comma stands in quotes of its own.
At the end it says what each column was read as, and how good forecasts of rows were
by models that had not seen them. The same command makes the same model again.

Several files, and the Parquet files of folders, are one table, and must hold the same
columns. With more than --max-train-rows rows it is read part by part and need not fit
into memory (of CSV one file must): a sample is learned from, drawn by --group where
that is given, and all other rows calibrate, as --recalibrate pit does; what a column
is read as is learned from rows all over the files. stderr says which way it went.
What comes from a pipe is read at once, and not counted.

examples:
  localexpert fit houses.csv --target price --out houses.zip
  localexpert fit sales.csv.gz --target units --drop order_id,comment \\
      --group shop --bounds 0 inf --recalibrate conformal --out sales.zip
  localexpert fit big.parquet --target delay --fast --out first_look.zip
  localexpert fit sales/ --target units --max-train-rows 100000 --out sales.zip
"""
# A forest on the target itself: seconds instead of minutes.
_FAST = {"strategy": "joint", "frame": None, "n_thresholds": 9, "cv": 3}
# As that of `fit_large`.
_MOST_ROWS = 250_000
_SMOOTHINGS = ("auto", "pchip", "smoothing_spline")


_COLUMNS: tuple[Option, ...] = (
    ("--drop", "not to learn from", NAMES),
    ("--weight", "how many rows each row stands for", COLUMN),
    ("--group", "rows of one group stay in one fold", COLUMN),
    ("--missing", "further gaps", NAMES),
    ("--categories", "no numbers, though digits, such as zip codes", NAMES),
    ("--date-order", "of dates such as 03/04/2025", {"choices": tuple(ORDERS)}),
)
_read_smoothing = make_reader(
    lambda text: text if text in _SMOOTHINGS else float(text),
    lambda _: True,
    "must be a number, auto, pchip or smoothing_spline, got {}",
)
_read_end = make_reader(
    lambda text: None if text == "none" else float(text),
    lambda end: end is None or end == end,  # noqa: PLR0124 - NaN is no end
    "must be a number or none, got {}",
)
_SIGNS = {"+1": 1, "1": 1, "-1": -1}
_read_direction = make_reader(
    lambda text: (text.rpartition(":")[0].strip(), _SIGNS.get(text.rpartition(":")[2])),
    lambda pair: bool(pair[0]) and pair[1] is not None,
    "must be columns with +1 or -1, such as area:+1,age:-1, got {}",
)
# Of the regressor; the options are stored by these names.
_PARAMETERS = (
    *("n_thresholds", "thresholds", "frame", "strategy", "calibrator", "cv"),
    *("smoothing", "recalibrate", "bounds", "n_jobs", "random_state"),
)
_METHOD: tuple[Option, ...] = (
    ("--fast", "a first look: one forest, 9 thresholds", FLAG),
    (
        "--thresholds-count",
        "how many questions 'is it below v?' are asked",
        whole_number(1, dest="n_thresholds"),
    ),
    (
        "--thresholds",
        "equally probable or equally spaced",
        {"choices": ("quantile", "uniform")},
    ),
    (
        "--frame",
        "ask of the target itself (none), less its mean, or over its spread too",
        {"choices": ("auto", "standardize", "center", "none")},
    ),
    (
        "--strategy",
        "one boosted model (shared), one forest (joint), or a pool of both",
        {"choices": ("auto", "shared", "joint")},
    ),
    (
        "--calibrator",
        "of the answers to each question",
        {"choices": ("auto", "isotonic", "bagged_isotonic", "none")},
    ),
    ("--folds", "of everything out of fold", whole_number(2, dest="cv")),
    (
        "--smoothing",
        "a number, auto, pchip or smoothing_spline",
        {"type": _read_smoothing, "metavar": "S"},
    ),
    (
        "--recalibrate",
        "correct whole forecasts; conformal keeps a fifth of the rows for it",
        {"choices": ("pit", "conformal")},
    ),
    (
        "--bounds",
        "least and greatest possible target, none where there is none; without this "
        "option 0 is the least where no target is below it",
        {"nargs": 2, "type": _read_end, "metavar": ("LOW", "HIGH")},
    ),
    (
        "--monotone",
        "columns with which the target may only rise (+1) or fall (-1), all else equal",
        list_of("COLUMN:SIGN", _read_direction, default=None),
    ),
)


def run(options: Any) -> None:
    """Read the tables, learn their columns, fit, and save."""
    if options.out == STDOUT:
        refuse("--out of fit must be a file")
    _order_bounds(options)
    check_writable(options.out, "--out", options.table)
    paths = find_tables(options.table)
    if paths != options.table:
        check_writable(options.out, "--out", paths)
    if len(paths) > 1:
        paths = find_alike(options, paths, left_out_by(options))
    saved = _fit(options, paths)
    if options.bounds is None and saved.model.bounds_[0] == 0.0:
        note(
            f"{options.target!r} is never below 0, and neither is a forecast; if it "
            "may be, say --bounds none none"
        )
    save_object(saved, options.out, "--out")
    note(f"saved {options.out}")
    show_table(lay_out_columns(saved.schema, saved.model.table_summary_))
    assert saved.origin is not None
    show_table(lay_out_scores(saved.origin.scores, "out of fold"))


def _order_bounds(options: Any) -> None:
    """Make --bounds two numbers, the lesser first."""
    if options.bounds is not None:
        ends = zip(options.bounds, (-np.inf, np.inf), strict=True)
        low, high = options.bounds = tuple(none if x is None else x for x, none in ends)
        if not low < high:
            refuse(f"--bounds must be LOW HIGH with LOW < HIGH, got {low:g} {high:g}")


def _fit(options: Any, paths: list[str]) -> TableModel:
    """Fit a model in memory, or of more rows to a sample, and say which."""
    dialect = Dialect(options.decimal, tuple(options.missing), options.thousands or "")
    most = options.max_train_rows or _MOST_ROWS
    n_rows = count_rows(paths, options.max_unpacked)
    why = _say_size(paths, n_rows, most)
    name = name_tables(options.table)
    if n_rows > most:
        check_large(options, paths, why)
        note(f"{why}: fitted to a sample, calibrated by the others, part by part")
        how = paths, name, n_rows, most, dialect
        return fit_large_rows(_make_regressor(options), options, *how)
    if n_rows or any(map(is_stream, paths)):
        _check_small(options, paths)
    if paths != options.table or len(paths) > 1:
        note(f"{why}: fitted together in memory")
    return _fit_in_memory(options, paths, name, dialect)


def _fit_in_memory(
    options: Any, paths: list[str], name: str, dialect: Dialect
) -> TableModel:
    """Fit a model to all rows of files together."""
    tables = [read_with(options, path) for path in paths]
    whole = join_tables(tables, name, options.decimal, left_out_by(options))
    del tables
    rows = TrainingRows.learn(whole, options, dialect)
    if rows.weight is not None:
        check_weights(options.weight, rows.weight.sum())
    groups = None
    if rows.groups is not None:
        # Numbered, for an array of texts is as wide as the longest of them.
        groups = np.unique(rows.groups, return_inverse=True)[1]
    frame = rows.schema.frame([rows.table], options.decimal)
    tell_of_commas(rows.schema)
    y, weight = rows.y, rows.weight
    model = _make_regressor(options)
    note(f"fitting {count(len(y), 'row')}, {count(frame.shape[1], 'feature')}")
    with refusing(f"cannot learn from {whole.path}", TypeError, ValueError):
        model.fit(frame, y, sample_weight=weight, groups=groups)
    climatology = Climatology.of(model, y, weight)
    origin = Origin.of(name, model, y, weight, climatology)
    return TableModel(rows.schema, model, climatology, origin)


def _say_size(paths: list[str], n_rows: int, most: int) -> str:
    """Return how many rows there are, and whether that is more than a fit takes."""
    about = "" if all(map(is_parquet, paths)) else "about "
    files = "" if len(paths) == 1 else f"{count(len(paths), 'file')}, "
    more = "more" if n_rows > most else "no more"
    rows = count(n_rows, "row")
    if any(map(is_stream, paths)):
        rows += " (those of a pipe are not counted)"
    return f"{files}{about}{rows}, {more} than --max-train-rows {most}"


def _check_small(options: Any, paths: list[str]) -> None:
    """Refuse what only a fit part by part can do.

    A limit means nothing where rows cannot be counted before they are read.
    """
    if options.max_train_rows is not None:
        for path in filter(is_stream, paths):
            refuse(
                f"--max-train-rows needs files, whose rows are counted first, got "
                f"{name_input(path)}"
            )


def _make_regressor(options: Any) -> LocalExpertRegressor:
    """Return the regressor that the options describe; its defaults stay its own."""
    chosen: dict[str, Any] = dict(_FAST) if options.fast else {}
    for name in _PARAMETERS:
        if (value := getattr(options, name)) is not None:
            chosen[name] = None if value == "none" else value
    if options.monotone is not None:
        chosen["monotone"] = dict(options.monotone)
    return LocalExpertRegressor(**chosen, verbose=show_bar(options))


COMMAND = Command(
    run,
    "learn a model from a table",
    "Learn to forecast the distribution of one column of a table from its other "
    "columns, and save the model.",
    _EPILOG,
    (
        (
            "table",
            "training rows, with a header: files, or folders of Parquet",
            {"nargs": "+"},
        ),
        ("--target", "the numbers to forecast", COLUMN | REQUIRED),
        ("--out", "where the model goes", {"metavar": "MODEL.zip"} | REQUIRED),
        ("--seed", "another seed, another model (default: 0)", SEED),
        (
            "--jobs",
            "processors, -1 for all",
            {"type": read_jobs, "metavar": "N", "dest": "n_jobs"},
        ),
        (
            "--max-train-rows",
            f"of more rows a sample of so many is learned from (default: {_MOST_ROWS})",
            whole_number(10),
        ),
    ),
    {
        "columns": _COLUMNS,
        "method (defaults are good; see LocalExpertRegressor)": _METHOD,
    },
    decimal=".",
)
