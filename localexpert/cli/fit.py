r"""Learn to forecast the distribution of one column of a table, and save the model.

All other columns are learned from. Dates become numbers (days, and year, month, weekday
and hour where they vary), texts become categories, and empty cells, NA, null, k.A., #NV
and the like are gaps, which need no filling in. A column is numbers, dates, yes or no,
or words by what 95 % of its cells are; all other cells become gaps, and stderr lists
them. Numbers may have a unit, a percent sign (50% is 50) or marks between thousands
that are the same all over. Columns that are empty, constant, or differ in every row as
names do are dropped, and rows without a target as well; stderr says so. At the end it
says what each column was read as, and how good forecasts of rows were by models that
had not seen them. The same command makes the same model again.

Where rows to come are later than those of training, --time names the column of their
time: each row is then judged by models of earlier rows alone, so that scores are not
too good. Lists have commas; a name with a comma stands in quotes of its own.

Several files, and the Parquet files of folders, are one table, and must hold the same
columns. With more than --max-train-rows rows it is read part by part and need not fit
into memory (of CSV one file must): a sample is learned from, drawn by --group where
that is given, and all other rows calibrate, as --recalibrate pit does; what a column
is read as is learned from rows all over the files. stderr says which way it went.
What comes from a pipe is read at once, and not counted.

for example:
  localexpert fit houses.csv --target price --out houses.zip
  localexpert fit demand.csv --target units --time day --effort best --out demand.zip
  localexpert fit sales.csv.gz --target units --drop order_id,comment \
      --group shop --bounds 0 inf --recalibrate conformal --out sales.zip
  localexpert fit big.parquet --target delay --fast --out first_look.zip
  localexpert fit sales/ --target units --max-train-rows 100000 --out sales.zip
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.cli import args
from localexpert.cli.output import check_file, note, show_table, warn
from localexpert.cli.scores import lay_out
from localexpert.cli.table_model import TableModel, save_object
from localexpert.data.folds import Fold
from localexpert.large.fit_large import fit_large
from localexpert.reading import ColumnReader, files
from localexpert.reading.labels import read_numbers, read_words, refuse_if
from localexpert.reading.messages import count, refuse, refusing
from localexpert.reading.reader import check_column, tell_odd_cells
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.climatology import Climatology

# A forest on the target itself: seconds instead of minutes.
_FAST = {"strategy": "joint", "frame": None, "n_thresholds": 9, "cv": 3}
# As that of `fit_large`.
_MOST_ROWS = 250_000
# Rows that columns are learned from where there are more, and that are read at once.
_PART = 100_000
_FOLDS = 5
_SMOOTHINGS = ("auto", "pchip", "smoothing_spline")
_EFFORTS = ("quick", "default", "best")
_SIGNS = {"+1": 1, "1": 1, "-1": -1}
# Of the regressor; the options are stored by these names.
_PARAMETERS = (
    *("n_thresholds", "thresholds", "frame", "strategy", "calibrator", "cv", "effort"),
    *("smoothing", "recalibrate", "bounds", "n_jobs", "random_state"),
)

_OPTIONS = f"""\
table+  training rows, with a header: files, or folders of Parquet
--target COLUMN  the numbers to forecast
--out MODEL.zip  where the model goes
--seed 0..  another seed, another model (default: 0)
--jobs N  processors, -1 for all
--max-train-rows 10..  of more rows a sample of so many is learned from (default: \
{_MOST_ROWS})
--no-sketch  keep no hashes of training rows, by which `evaluate` tells them from \
new ones
"""
_COLUMNS = """\
--drop A,B  not to learn from
--weight COLUMN  how many rows each row stands for
--group COLUMN  rows of one group stay in one fold
--time COLUMN  dates or numbers: rows are judged by models of earlier rows alone
--missing A,B  further gaps
--categories A,B  no numbers, though digits, such as zip codes
--date-order dmy|mdy  of dates such as 03/04/2025
"""
_METHOD = f"""\
--effort EFFORT  {", ".join(_EFFORTS)}, or seconds: how much the fit may cost
--fast  a first look: one forest, 9 thresholds
--thresholds-count 1..  how many questions 'is it below v?' are asked
--thresholds quantile|uniform  equally probable or equally spaced
--frame auto|standardize|center|none  ask of the target itself (none), less its mean, \
or over its spread too
--strategy auto|shared|joint  one boosted model (shared), one forest (joint), or a \
pool of both
--calibrator auto|isotonic|bagged_isotonic|none  of the answers to each question
--folds 2..  of everything out of fold
--smoothing S  a number, {", ".join(_SMOOTHINGS[:-1])} or {_SMOOTHINGS[-1]}
--recalibrate pit|conformal  correct whole forecasts; conformal keeps a fifth of the \
rows for it
--bounds LOW  least and greatest possible target, none where there is none; without \
this option 0 is the least where no target is below it
--monotone COLUMN:SIGN  columns with which the target may only rise (+1) or fall (-1), \
else equal
"""


_read_smoothing = args.make_reader(
    lambda text: text if text in _SMOOTHINGS else float(text),
    lambda _: True,
    "must be a number, auto, pchip or smoothing_spline, got {}",
)
_read_effort = args.make_reader(
    lambda text: text if text in _EFFORTS else float(text),
    lambda effort: isinstance(effort, str) or effort > 0.0,
    "must be quick, default, best, or a number of seconds, got {}",
)
_read_end = args.make_reader(
    lambda text: None if text == "none" else float(text),
    lambda end: end is None or end == end,  # noqa: PLR0124 - NaN is no end
    "must be a number or none, got {}",
)
_read_direction = args.make_reader(
    lambda text: (text.rpartition(":")[0].strip(), _SIGNS[text.rpartition(":")[2]]),
    lambda pair: bool(pair[0]),
    "must be columns with +1 or -1, such as area:+1,age:-1, got {}",
)


def add_options(parser: args.Parser) -> None:
    """Add the arguments of the command."""
    needed = {"required": True}
    jobs = {"type": args.read_jobs, "dest": "n_jobs"}
    more = {"seed": args.SEED, "jobs": jobs}
    args.add_options(parser, _OPTIONS, target=needed, out=needed, **more)
    args.add_table_options(parser)
    args.add_options(parser.add_argument_group("columns"), _COLUMNS)
    args.add_options(
        parser.add_argument_group(
            "method (defaults are good; see LocalExpertRegressor)"
        ),
        _METHOD,
        effort={"type": _read_effort},
        thresholds_count={"dest": "n_thresholds"},
        folds={"dest": "cv"},
        smoothing={"type": _read_smoothing},
        bounds={"nargs": 2, "type": _read_end, "metavar": ("LOW", "HIGH")},
        monotone=args.list_of("COLUMN:SIGN", _read_direction),
    )


def run(options: Any) -> None:
    """Read the tables, learn their columns, fit, and save."""
    check_file(options.out, "--out", options.table)
    paths = files.find_tables(options.table)
    check_file(options.out, "--out", paths)
    saved = _fit(options, paths)
    if options.no_sketch:
        # A large fit is corrected by all rows: the regressor is inside.
        vars(saved.model).get("model", saved.model).training_sketch_ = None
    if options.bounds is None and saved.model.bounds_[0] == 0.0:
        note(
            f"{options.target!r} is never below 0, and neither is a forecast; if it "
            "may be, say --bounds none none"
        )
    save_object(saved, options.out, "--out")
    note(f"saved {options.out}")
    show_table(saved.reader.lay_out())
    assert saved.origin is not None
    show_table(f"out of fold\n{lay_out(saved.origin.scores)}")


def _fit(options: Any, paths: list[str]) -> TableModel:
    """Fit a model in memory, or of more rows to a sample, and say which."""
    most = options.max_train_rows or _MOST_ROWS
    n_rows = files.count_rows(paths, args.format_of(options))
    name = files.name_tables(options.table)
    streams = [files.name_input(path) for path in filter(files.is_stream, paths)]
    size = f"{count(len(paths), 'file')}, about {count(n_rows, 'row')}"
    if n_rows > most:
        why = f"{size}, more than --max-train-rows {most}"
        conformal = "--recalibrate conformal" * (options.recalibrate == "conformal")
        for what in ("--time" * bool(options.time), conformal, *streams):
            if what:
                refuse(f"{what} needs a fit in memory, got {why}")
        note(f"{why}: fitted to a sample, calibrated by the others, part by part")
        return _fit_large(options, paths, name, n_rows, most)
    if options.max_train_rows is not None and streams:
        rule = "--max-train-rows needs files, whose rows are counted first"
        refuse(f"{rule}, got {streams[0]}")
    if len(paths) > 1:
        note(f"{size}: fitted together in memory")
    return _fit_in_memory(options, paths, name)


def _fit_in_memory(options: Any, paths: list[str], name: str) -> TableModel:
    """Fit a model to all rows of files together."""
    model, reader = _make_regressor(options), _make_reader(options)
    how = args.format_of(options)
    whole = files.join_tables(list(files.read_tables(paths, how)), options.drop)
    for column in options.drop:
        check_column(whole, column, "column to drop")
    if options.time is not None:
        check_column(whole, options.time, "time")
    # Odd cells of training are told by `fit`.
    rows, features, roles = _make_part(options, reader.fit(whole), whole, [])
    y, weight, groups = roles["target"], roles.get("weight"), roles.get("group")
    if weight is not None and not weight.sum() > 0.0:
        refuse(f"weight {options.weight!r} must not be 0 in every row")
    if groups is not None:
        # Numbered, for an array of texts is as wide as the longest of them.
        groups = np.unique(groups.astype(str), return_inverse=True)[1]
    _order_in_time(model, options, rows, reader)
    note(f"fitting {count(len(rows), 'row')}, {count(features.shape[1], 'feature')}")
    with refusing(f"cannot learn from {name}", TypeError, ValueError):
        model.fit(features, y, sample_weight=weight, groups=groups)
    climatology = Climatology.of(model, y, weight)
    return TableModel.of(reader, model, name, len(rows), climatology)


def _fit_large(
    options: Any, paths: list[str], name: str, n_rows: int, most: int
) -> TableModel:
    """Fit a model to at most so many rows of files, and calibrate it by the others."""
    seen = _look_at(options, paths, n_rows)
    model, reader = _make_regressor(options), _make_reader(options).fit(seen)
    roles = {role: getattr(options, role) for role in ("target", "weight", "group")}
    # Names that no feature has.
    beside = max(map(len, reader.feature_names_)) * "'"
    names = {role: role + beside for role, name in roles.items() if name is not None}
    told: list[int] = []

    def read_parts() -> Iterator[files.Frame]:
        """Yield the rows with a target; the first pass counts them, and tells odd."""
        n_known, odd = 0, list[Any]()
        wanted = {*reader.feature_names_, *filter(None, roles.values())}
        for frame in files.read_tables(paths, args.format_of(options), wanted, _PART):
            rows, part, held = _make_part(options, reader, frame, odd)
            n_known += len(rows)
            part = part.assign(**{names[role]: held[role] for role in held})
            place = f"{frame.index.names[-1]}s from {frame.index[0]} on"
            part.attrs["name"] = f"{frame.attrs['path']}, {place}"
            yield part
        if not told:
            told.append(n_known)
            tell_odd_cells(odd)

    note(f"learned what the columns are from {count(len(seen), 'row')} of all files")
    with refusing(f"cannot learn from {name}", TypeError, ValueError, OSError):
        fitted = fit_large(
            model,
            read_parts,
            names["target"],
            max_train_rows=most,
            weight=names.get("weight"),
            key=names.get("group"),
            learning_curve=not options.fast,
        )
    choices = getattr(getattr(fitted, "report_", None), "choices", {})
    for of in ("large", "learning curve"):
        if of in choices:
            note(f"{of}: {choices[of]['chosen']}")
    note("scores out of fold are of the sample")
    return TableModel.of(reader, fitted, name, told[0])


def _look_at(options: Any, paths: list[str], n_rows: int) -> files.Frame:
    """Return rows from all over files."""
    share = min(_PART / n_rows, 1.0)
    found = [
        frame.sample(frac=share, random_state=0).sort_index()
        for frame in files.read_tables(paths, args.format_of(options), n_rows=_PART)
    ]
    return files.join_tables(found, options.drop)


def _make_part(
    options: Any, reader: ColumnReader, frame: files.Frame, odd: list[Any]
) -> tuple[files.Frame, Any, dict[str, Any]]:
    """Return the rows that have a target, their features, and what roles hold."""
    y = reader.read_target(frame, odd=odd)
    known = np.isfinite(y)
    rows = frame[known]
    roles: dict[str, Any] = {"target": y[known]}
    if options.weight is not None:
        roles["weight"] = _read_weight(options, reader, rows)
    if options.group is not None:
        roles["group"] = read_words(rows, options.group, "group")
    return rows, reader.transform(rows, odd=odd), roles


def _read_weight(
    options: Any, reader: ColumnReader, frame: files.Frame
) -> Float64Array:
    """Return the weights of rows (n,), of which none is missing or below zero."""
    how = reader.decimal_, options.thousands, options.missing
    weight = read_numbers(frame, options.weight, "weight", *how)
    rule = f"weight {options.weight!r} must hold numbers from 0 on"
    refuse_if(~(weight >= 0.0), frame, options.weight, rule)
    return weight


def _order_in_time(
    model: LocalExpertRegressor, options: Any, frame: files.Frame, reader: ColumnReader
) -> None:
    """Give a model the folds that --time asks for, or say that there are dates."""
    if options.time is None:
        dates = [rule.name for rule in reader.rules_ if rule.kind == "date"]
        if dates and options.group is None:
            warn(
                f"column {dates[0]!r} holds dates, and folds are dealt at random: if "
                f"rows to come are later than these, say --time {dates[0]}, or scores "
                "out of fold may be too good"
            )
        return
    if options.group is not None:
        refuse("--group deals folds by groups and --time by order: say one of them")
    if options.time == options.target:
        refuse(f"target {options.target!r} cannot be the time as well")
    times = _read_times(options, frame)
    if np.isnan(times).any():
        refuse_if(np.isnan(times), frame, options.time, "--time must not have gaps")
    model.set_params(
        cv=folds_in_time(times, model.cv if options.cv or options.fast else _FOLDS)
    )


def _read_times(options: Any, frame: files.Frame) -> Float64Array:
    """Return the times of rows (n,) as numbers."""
    how = {"decimal": options.decimal, "date_order": options.date_order}
    clock = ColumnReader(missing=options.missing, thousands=options.thousands, **how)
    column = frame[[options.time]]
    if column[options.time].nunique() < 2:
        refuse("--time must have two different times at least")
    column.attrs = frame.attrs
    times = clock.fit(column).transform(column)[options.time]
    if clock.rules_[0].kind not in ("date", "number"):
        refuse(f"--time must name dates or numbers, got words in {options.time!r}")
    if clock.rules_[0].kind == "date":
        times = times.astype("int64").where(times.notna())
    return np.asarray(times, dtype=np.float64)


def folds_in_time(times: NDArray[Any], n_folds: int) -> list[Fold]:
    """Return folds that test rows by those of earlier times, none of the same.

    The first of n_folds + 1 parts, of as many rows where times differ, only trains.
    """
    distinct, earlier = np.unique(np.sort(times), return_index=True)
    wanted = np.arange(1, n_folds + 1) * len(times) / (n_folds + 1)
    places = np.searchsorted(earlier, wanted).clip(1, len(distinct) - 1)
    starts = distinct[np.unique(places)]
    uptos = [*starts[1:], np.inf]
    return [
        (np.flatnonzero(times < a), np.flatnonzero((times >= a) & (times < b)))
        for a, b in zip(starts, uptos, strict=True)
    ]


def _make_reader(options: Any) -> ColumnReader:
    others = [options.weight, options.group, *options.drop]
    return ColumnReader(
        target=options.target,
        others=tuple(dict.fromkeys(name for name in others if name is not None)),
        categories=tuple(options.categories),
        missing=tuple(options.missing),
        decimal=options.decimal,
        thousands=options.thousands,
        date_order=options.date_order,
    )


def _make_regressor(options: Any) -> LocalExpertRegressor:
    """Return the regressor that the options describe; its defaults stay its own."""
    chosen: dict[str, Any] = dict(_FAST) if options.fast else {}
    for name in _PARAMETERS:
        if (value := getattr(options, name)) is not None:
            value = tuple(value) if name == "bounds" else value
            chosen[name] = None if value == "none" else value
    if options.monotone:
        chosen["monotone"] = dict(options.monotone)
    return LocalExpertRegressor(**chosen, verbose=args.show_bar(options))
