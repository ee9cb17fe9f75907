"""`fit`: the command that learns from tables, in memory or part by part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.cli.output import check_file, note, show_table, warn
from localexpert.cli.table_model import TableModel, save_object
from localexpert.data.columns import read_days
from localexpert.data.folds import Fold
from localexpert.large.tables import MOST_TRAIN_ROWS, fit_large
from localexpert.reading import ColumnReader, files
from localexpert.reading.columns import Learner
from localexpert.reading.reader import (
    check_column,
    has_target,
    read_numbers,
    read_words,
    refuse_if,
    tell_odd_cells,
)
from localexpert.reading.texts import count, list_names, refuse, refusing
from localexpert.regressor.regressor import LocalExpertRegressor

# A forest on the target itself: seconds instead of minutes.
_FAST = {"strategy": "joint", "frame": None, "n_thresholds": 9, "cv": 3}
# Rows that columns are learned from where there are more, and that are read at once.
_PART = 100_000
_FOLDS = 5
# Parameters of the regressor by the options that say them.
_PARAMETERS = {"thresholds_count": "n_thresholds", "folds": "cv", "jobs": "n_jobs"}
_PARAMETERS |= {"seed": "random_state"} | {
    name: name
    for name in ("thresholds", "frame", "strategy", "calibrator", "effort", "smoothing")
    + ("recalibrate", "bounds", "monotone")
}


def fit(options: Any) -> None:
    """Read the tables, learn their columns, fit, and save."""
    ends, known = (options.lower, options.upper), (options.target, options.event)
    if any(ends) and (not all(ends) or any(known)):
        refuse("--lower and --upper go together, and without --target and --event")
    if not any(ends) and options.target is None:
        refuse("say what to forecast: --target, or --lower and --upper")
    check_file(options.out, "--out", options.table)
    paths = files.find_tables(options.table)
    check_file(options.out, "--out", paths)
    saved = _fit(options, paths)
    if options.no_sketch:
        saved.model.training_sketch_ = None
    if options.bounds is None and saved.model.bounds_[0] == 0.0:
        note(
            f"{saved.target!r} is never below 0, and neither is a forecast; if it "
            "may be, say --bounds none none"
        )
    save_object(saved, options.out, "--out")
    note(f"saved {options.out}")
    show_table(saved.reader.lay_out())
    if (check := getattr(saved.model, "check_", None)) is not None:
        show_table(f"out of fold\n{check}")


def _fit(options: Any, paths: list[str]) -> TableModel:
    """Fit a model in memory, or of more rows to a sample, and say which."""
    most = options.max_train_rows or MOST_TRAIN_ROWS
    n_rows = files.count_rows(paths, options.format)
    streams = [files.name_input(path) for path in filter(files.is_stream, paths)]
    size = f"{count(len(paths), 'file')}, about {count(n_rows, 'row')}"
    if n_rows > most:
        why = f"{size}, more than --max-train-rows {most}"
        whole = [f"--{n}" for n in ("time", "event", "lower") if getattr(options, n)]
        if options.recalibrate not in (None, "pit"):
            whole.append(f"--recalibrate {options.recalibrate}")
        for what in (*whole, *streams):
            refuse(f"{what} needs a fit in memory, got {why}")
        note(f"{why}: read part by part, and fitted to a sample")
        return _fit_large(options, paths, n_rows, most)
    if options.max_train_rows is not None and streams:
        rule = "--max-train-rows needs files, whose rows are counted first"
        refuse(f"{rule}, got {streams[0]}")
    if len(paths) > 1:
        note(f"{size}: fitted together in memory")
    return _fit_in_memory(options, paths)


def _fit_in_memory(options: Any, paths: list[str]) -> TableModel:
    """Fit a model to all rows of files together."""
    model, reader = _make_regressor(options), _make_reader(options)
    read = list(files.read_tables(paths, options.format))
    whole = _join(options, read)
    if options.time is not None:
        check_column(whole, options.time, "time")
    features = reader.fit_transform(whole)
    # Odd cells of training were listed before.
    rows, roles = _read_roles(options, reader, whole, [])
    weight, groups = roles.get("weight"), roles.get("group")
    if weight is not None and not weight.sum() > 0.0:
        refuse(f"weight {options.weight!r} must not be 0 in every row")
    if groups is not None:
        # Numbered, for an array of texts is as wide as the longest of them.
        groups = np.unique(groups.astype(str), return_inverse=True)[1]
    _order_in_time(model, options, rows, reader, weight)
    note(f"fitting {count(len(rows), 'row')}, {count(features.shape[1], 'feature')}")
    name = files.name_tables(options.table)
    with refusing(f"cannot learn from {name}", TypeError, ValueError):
        model.fit(features, roles["target"], sample_weight=weight, groups=groups)
    return TableModel.of(reader, model, name, len(rows))


def _fit_large(options: Any, paths: list[str], n_rows: int, most: int) -> TableModel:
    """Fit a model to at most so many rows of files, and calibrate it by the others."""
    seen, name = _look_at(options, paths, n_rows), files.name_tables(options.table)
    model, reader = _make_regressor(options), _make_reader(options).fit(seen)
    roles = {role: getattr(options, role) for role in ("target", "weight", "group")}
    # Names that no feature has.
    beside = max(map(len, reader.feature_names_)) * "'"
    names = {role: role + beside for role, name in roles.items() if name is not None}
    counts: list[int] = []

    def read_parts() -> Iterator[files.Frame]:
        """Yield the rows with a target; the first pass counts them, and tells odd."""
        n_known, odd = 0, list[Any]()
        wanted = {*reader.feature_names_, *filter(None, roles.values())}
        for frame in files.read_tables(paths, options.format, wanted, _PART):
            rows, held = _read_roles(options, reader, frame, odd)
            n_known += len(rows)
            part = reader.transform(rows, odd=odd)
            part = part.assign(**{names[role]: held[role] for role in held})
            place = f"{frame.index.names[-1]}s from {frame.index[0]} on"
            part.attrs["name"] = f"{frame.attrs['path']}, {place}"
            yield part
        if not counts:
            counts.append(n_known)
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
    return TableModel.of(reader, fitted, name, counts[0])


def _look_at(options: Any, paths: list[str], n_rows: int) -> files.Frame:
    """Return rows from all over files."""
    share = min(_PART / n_rows, 1.0)
    found = [
        frame.sample(frac=share, random_state=0).sort_index()
        for frame in files.read_tables(paths, options.format, n_rows=_PART)
    ]
    return _join(options, found)


def _join(options: Any, frames: list[files.Frame]) -> files.Frame:
    """Return the rows of tables, of which one at least has each column to drop."""
    for name in options.drop:
        has = next((frame for frame in frames if name in frame), frames[0])
        check_column(has, name, "column to drop")
    return files.join_tables(frames, options.drop)


def _read_roles(
    options: Any, reader: ColumnReader, frame: files.Frame, odd: list[Any]
) -> tuple[files.Frame, dict[str, Any]]:
    """Return the rows that have a target, and what target, weight and group hold."""
    y = reader.read_target(frame, odd=odd)
    known = has_target(y)
    rows = frame if known.all() else frame[known]
    roles: dict[str, Any] = {"target": y[known]}
    if (name := options.weight) is not None:
        how = reader.decimal_, options.missing
        roles["weight"] = weight = read_numbers(rows, name, "weight", *how)
        rule = f"weight {name!r} must hold numbers from 0 on"
        refuse_if(~(weight >= 0.0), rows, name, rule)
    if options.group is not None:
        roles["group"] = read_words(rows, options.group, "group", options.missing)
    return rows, roles


def _order_in_time(
    model: LocalExpertRegressor,
    options: Any,
    frame: files.Frame,
    reader: ColumnReader,
    weight: Float64Array | None,
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
    if options.time in (options.target, options.lower, options.upper):
        refuse(f"target {options.time!r} cannot be the time as well")
    times = _read_times(options.time, frame, reader)
    refuse_if(np.isnan(times), frame, options.time, "--time must not have gaps")
    if not np.ptp(times if weight is None else times[weight > 0.0]):
        refuse("--time must have two different times at least")
    n_folds = model.cv if options.folds or options.fast else _FOLDS
    model.set_params(cv=folds_in_time(times, n_folds, weight))


def _read_times(name: str, frame: files.Frame, reader: ColumnReader) -> Float64Array:
    """Return the times of rows (n,) as numbers, NaN where missing."""
    learner = Learner(frame, reader._dialect(frame))
    rule, values = learner.find(name)
    if rule.kind not in ("date", "number"):
        why = "".join(f" ({said})" for said in learner.said)
        refuse(f"--time must name dates or numbers, got words in {name!r}{why}")
    tell_odd_cells(learner.odd)
    return read_days(values) if rule.kind == "date" else np.asarray(values)


def folds_in_time(
    times: NDArray[Any], n_folds: int, weight: Float64Array | None = None
) -> list[Fold]:
    """Return folds that test rows by models of earlier times, never of the same time.

    Rows with weight are cut into n_folds + 1 parts of equal size, except for equal
    times. The first part is only for training.
    """
    held = times if weight is None else times[weight > 0.0]
    distinct, earlier = np.unique(np.sort(held), return_index=True)
    wanted = np.arange(1, n_folds + 1) * len(held) / (n_folds + 1)
    places = np.searchsorted(earlier, wanted).clip(1, len(distinct) - 1)
    starts = distinct[np.unique(places)]
    uptos = [*starts[1:], np.inf]
    return [
        (np.flatnonzero(times < a), np.flatnonzero((times >= a) & (times < b)))
        for a, b in zip(starts, uptos, strict=True)
    ]


def _make_reader(options: Any) -> ColumnReader:
    others = filter(None, [options.weight, options.group, *options.drop])
    roles = {"others": tuple(dict.fromkeys(others)), "categories": options.categories}
    ends = (options.lower, options.upper) if options.lower else None
    roles |= {"event": options.event, "ends": ends}
    written = "decimal", "thousands", "missing", "date_order"
    marks = {name: getattr(options, name) for name in written}
    return ColumnReader(options.target, **roles, **marks)


def _make_regressor(options: Any) -> LocalExpertRegressor:
    """Return the regressor of the options; other parameters keep their defaults."""
    chosen: dict[str, Any] = dict(_FAST) if options.fast else {}
    for option, name in _PARAMETERS.items():
        value = getattr(options, option)
        if value not in (None, []):
            chosen[name] = None if value == "none" else value
    named = [column for column, _ in options.monotone]
    if len(set(named)) < len(named):
        refuse(f"--monotone must name each column once, got {list_names(named)}")
    for name, kind in (("bounds", tuple), ("monotone", dict)):
        if name in chosen:
            chosen[name] = kind(chosen[name])
    return LocalExpertRegressor(**chosen, verbose=options.verbose)
