"""`localexpert fit`: a model from a table."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.cli.cells import Dialect
from localexpert.cli.console import count, note, refuse, refusing
from localexpert.cli.dates import ORDERS
from localexpert.cli.model_files import TableModel, save_object
from localexpert.cli.options import (
    new_command,
    read_count,
    read_jobs,
    read_names,
    read_with,
    show_bar,
)
from localexpert.cli.output import STDOUT, check_writable
from localexpert.cli.raw_table import RawTable
from localexpert.cli.schema import Schema
from localexpert.cli.targets import with_targets
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.climatology import Climatology

_EPILOG = """\
Dates become numbers (days since 1970, and year, month, weekday, hour where they
vary), texts become categories, and empty cells, NA, NaN, null, none, ? and - are
gaps, which need no filling in. Columns that are empty, constant, or differ in every
row as names do are dropped, and rows without a target as well; stderr says so.

examples:
  localexpert fit houses.csv --target price --out houses.zip --seed 0
  localexpert fit sales.csv.gz --target units --drop order_id,comment \\
      --group shop --bounds 0 inf --recalibrate conformal --out sales.zip
  localexpert fit big.parquet --target delay --fast --out first_look.zip
"""
# A forest on the target itself: seconds instead of minutes.
_FAST = {"strategy": "joint", "frame": None, "n_thresholds": 9, "cv": 3}
_LEAST_ROWS = 2


def add_command(commands: Any) -> None:
    """Add the command and its options."""
    parser = new_command(
        commands,
        run,
        _EPILOG,
        help="learn a model from a table",
        description="Learn to forecast the distribution of one column of a table "
        "from its other columns, and save the model.",
    )
    parser.add_argument("table", help="training rows, with a header")
    parser.add_argument(
        "--target", required=True, metavar="COLUMN", help="the numbers to forecast"
    )
    parser.add_argument(
        "--out", required=True, metavar="MODEL.zip", help="where the model goes"
    )
    parser.add_argument(
        "--seed", type=read_count(0), metavar="N", help="same seed, same model"
    )
    parser.add_argument(
        "--jobs", type=read_jobs, metavar="N", help="processors, -1 for all"
    )
    _add_columns(parser)
    _add_parameters(parser)


def _add_columns(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("columns")
    group.add_argument(
        "--drop", type=read_names, default=[], metavar="A,B", help="not to learn from"
    )
    group.add_argument(
        "--weight", metavar="COLUMN", help="how many rows each row stands for"
    )
    group.add_argument(
        "--group", metavar="COLUMN", help="rows of one group stay in one fold"
    )
    group.add_argument(
        "--missing", type=read_names, default=[], metavar="A,B", help="further gaps"
    )
    group.add_argument(
        "--date-order", choices=tuple(ORDERS), help="of dates such as 03/04/2025"
    )


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "method (defaults are good; see LocalExpertRegressor)"
    )
    group.add_argument(
        "--fast", action="store_true", help="a first look: one forest, 9 thresholds"
    )
    group.add_argument(
        "--thresholds-count",
        type=read_count(1),
        metavar="N",
        help="how many questions 'is it below v?' are asked",
    )
    group.add_argument(
        "--thresholds",
        choices=("quantile", "uniform"),
        help="equally probable or equally spaced",
    )
    group.add_argument(
        "--frame",
        choices=("auto", "standardize", "center", "none"),
        help="ask of the target itself (none), less its mean, or over its spread too",
    )
    group.add_argument(
        "--strategy",
        choices=("auto", "shared", "joint"),
        help="one boosted model (shared), one forest (joint), or a pool of both",
    )
    group.add_argument(
        "--calibrator",
        choices=("auto", "isotonic", "bagged_isotonic", "none"),
        help="of the answers to each question",
    )
    group.add_argument(
        "--folds", type=read_count(2), metavar="N", help="of everything out of fold"
    )
    group.add_argument(
        "--smoothing",
        type=_read_smoothing,
        metavar="S",
        help="a number, auto, pchip or smoothing_spline",
    )
    group.add_argument(
        "--recalibrate",
        choices=("pit", "conformal"),
        help="correct whole forecasts; conformal keeps a fifth of the rows for it",
    )
    group.add_argument(
        "--bounds",
        nargs=2,
        type=float,
        metavar=("LOW", "HIGH"),
        help="least and greatest possible target; inf for none",
    )


def run(options: Any) -> None:
    """Read the table, learn its columns, fit, and save."""
    if options.out == STDOUT:
        refuse("--out of fit must be a file")
    if options.bounds is not None and not options.bounds[0] < options.bounds[1]:
        low, high = options.bounds
        refuse(f"--bounds must be LOW HIGH with LOW < HIGH, got {low:g} {high:g}")
    check_writable(options.out, "--out", [options.table])
    dialect = Dialect(options.decimal, tuple(options.missing))
    targets: list[Float64Array] = []
    whole = read_with(options, options.table)
    (table,) = with_targets([whole], options.target, dialect, targets, _LEAST_ROWS)
    (y,) = targets
    weight = _read_weight(table, options, dialect)
    groups = None
    if options.group is not None:
        groups = table.words(options.group, "group", dialect).astype(str)
    schema = Schema.learn(
        table, options.target, _kept_out(table, options), dialect, options.date_order
    )
    frame = schema.frame([table], options.decimal)
    model = _make_regressor(options)
    note(f"fitting {count(len(y), 'row')}, {count(frame.shape[1], 'feature')}")
    with refusing(f"cannot learn from {options.table}", TypeError, ValueError):
        model.fit(frame, y, sample_weight=weight, groups=groups)
    climatology = Climatology.of(model, y, weight)
    save_object(TableModel(schema, model, climatology), options.out, "--out")
    note(f"saved {options.out}")


def _read_weight(
    table: RawTable, options: Any, dialect: Dialect
) -> Float64Array | None:
    if options.weight is None:
        return None
    weight = table.numbers(options.weight, "weight", dialect)
    wrong = ~(weight >= 0.0)
    if wrong.any():
        row = int(np.argmax(wrong))
        refuse(
            f"weight {options.weight!r} must hold numbers from 0 on, got "
            f"{table.show(options.weight, row)} in {table.where(row)}"
        )
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
    return list(dict.fromkeys(name for name in named if name is not None))


def _make_regressor(options: Any) -> LocalExpertRegressor:
    """Return the regressor that the options describe; its defaults stay its own."""
    given = {
        "n_thresholds": options.thresholds_count,
        "thresholds": options.thresholds,
        "frame": options.frame,
        "strategy": options.strategy,
        "calibrator": options.calibrator,
        "cv": options.folds,
        "smoothing": options.smoothing,
        "recalibrate": options.recalibrate,
        "bounds": None if options.bounds is None else tuple(options.bounds),
        "n_jobs": options.jobs,
        "random_state": options.seed,
    }
    chosen: dict[str, Any] = dict(_FAST) if options.fast else {}
    for name, value in given.items():
        if value is not None:
            chosen[name] = None if value == "none" else value
    return LocalExpertRegressor(**chosen, verbose=show_bar(options))


def _read_smoothing(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        pass
    if text not in ("auto", "pchip", "smoothing_spline"):
        msg = f"must be a number, auto, pchip or smoothing_spline, got {text!r}"
        raise argparse.ArgumentTypeError(msg)
    return text
