"""`localexpert fit`: a model from a table."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.typing import Float64Array
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
from localexpert.cli.raw_table import RawTable
from localexpert.cli.schema import Schema
from localexpert.cli.scores import lay_out_scores
from localexpert.cli.targets import with_targets
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

examples:
  localexpert fit houses.csv --target price --out houses.zip
  localexpert fit sales.csv.gz --target units --drop order_id,comment \\
      --group shop --bounds 0 inf --recalibrate conformal --out sales.zip
  localexpert fit big.parquet --target delay --fast --out first_look.zip
"""
# A forest on the target itself: seconds instead of minutes.
_FAST = {"strategy": "joint", "frame": None, "n_thresholds": 9, "cv": 3}
_LEAST_ROWS = 2
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
)


def run(options: Any) -> None:
    """Read the table, learn its columns, fit, and save."""
    if options.out == STDOUT:
        refuse("--out of fit must be a file")
    if options.bounds is not None:
        ends = zip(options.bounds, (-np.inf, np.inf), strict=True)
        low, high = options.bounds = tuple(none if x is None else x for x, none in ends)
        if not low < high:
            refuse(f"--bounds must be LOW HIGH with LOW < HIGH, got {low:g} {high:g}")
    check_writable(options.out, "--out", [options.table])
    dialect = Dialect(options.decimal, tuple(options.missing), options.thousands or "")
    whole = read_with(options, options.table)
    written = whole.find_format(options.target, "target", dialect)
    targets: list[Float64Array] = []
    how = options.target, dialect, targets, _LEAST_ROWS, written
    (table,) = with_targets([whole], *how)
    (y,) = targets
    weight = _read_weight(table, options, dialect)
    groups = None
    if options.group is not None:
        # Numbered, for an array of texts is as wide as the longest of them.
        words = table.words(options.group, "group", dialect)
        groups = np.unique(words, return_inverse=True)[1]
    schema = Schema.learn(
        table,
        options.target,
        _kept_out(table, options),
        dialect,
        options.date_order,
        options.categories,
        written,
    )
    frame = schema.frame([table], options.decimal)
    _tell_of_commas(schema)
    model = _make_regressor(options)
    note(f"fitting {count(len(y), 'row')}, {count(frame.shape[1], 'feature')}")
    with refusing(f"cannot learn from {table.path}", TypeError, ValueError):
        model.fit(frame, y, sample_weight=weight, groups=groups)
    climatology = Climatology.of(model, y, weight)
    origin = Origin.of(options.table, model, y, weight, climatology)
    if options.bounds is None and model.bounds_[0] == 0.0:
        note(
            f"{options.target!r} is never below 0, and neither is a forecast; if it "
            "may be, say --bounds none none"
        )
    save_object(TableModel(schema, model, climatology, origin), options.out, "--out")
    note(f"saved {options.out}")
    show_table(lay_out_columns(schema, model.table_summary_))
    show_table(lay_out_scores(origin.scores, "out of fold"))


def _read_weight(
    table: RawTable, options: Any, dialect: Dialect
) -> Float64Array | None:
    if options.weight is None:
        return None
    written = table.find_format(options.weight, "weight", dialect)
    weight = table.numbers(options.weight, "weight", dialect, written).values
    rule = f"weight {options.weight!r} must hold numbers from 0 on"
    table.refuse_if(~(weight >= 0.0), options.weight, rule)
    if not weight.any():
        refuse(f"weight {options.weight!r} must not be 0 in every row")
    return weight


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


def _tell_of_commas(schema: Schema) -> None:
    """Say what else commas between thousands may be, where nobody has said it."""
    written = [schema.target_written, *(rule.written for rule in schema.used)]
    if not schema.thousands and any(one.thousands == "," for one in written):
        note("if these commas are decimal marks, say --decimal ,")


def _make_regressor(options: Any) -> LocalExpertRegressor:
    """Return the regressor that the options describe; its defaults stay its own."""
    chosen: dict[str, Any] = dict(_FAST) if options.fast else {}
    for name in _PARAMETERS:
        if (value := getattr(options, name)) is not None:
            chosen[name] = None if value == "none" else value
    return LocalExpertRegressor(**chosen, verbose=show_bar(options))


COMMAND = Command(
    run,
    "learn a model from a table",
    "Learn to forecast the distribution of one column of a table from its other "
    "columns, and save the model.",
    _EPILOG,
    (
        ("table", "training rows, with a header", {}),
        ("--target", "the numbers to forecast", COLUMN | REQUIRED),
        ("--out", "where the model goes", {"metavar": "MODEL.zip"} | REQUIRED),
        ("--seed", "another seed, another model (default: 0)", SEED),
        (
            "--jobs",
            "processors, -1 for all",
            {"type": read_jobs, "metavar": "N", "dest": "n_jobs"},
        ),
    ),
    {
        "columns": _COLUMNS,
        "method (defaults are good; see LocalExpertRegressor)": _METHOD,
    },
    decimal=".",
)
