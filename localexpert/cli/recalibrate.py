r"""Correct a model by rows that it has not learned from, and save what comes of it.

Carries out what `monitor` advises. With --state the advice is that of its state;
--action says one by itself: shift moves all forecasts by so many of their standard
deviations, shift-and-slope widens or narrows them too, and recalibrate, the default,
learns a map of the whole law: by --method conformal, with a guarantee for coverage, or
pit, smoother. With --by the map is learned within the groups of a column. Where the
advice is to refit, a new model has to be fitted on new rows by `fit`.

A calibrator of two classes (--score, --label) is fitted anew, as it was at first, on
these rows. The model that is given stays as it is. The new one needs a new state of
`monitor`. Rows that the model has learned from are left out, since they look better
forecast than new ones are.

for example:
  localexpert monitor houses.zip may.csv --state state.zip || \
      localexpert recalibrate houses.zip may.csv --state state.zip --out houses_may.zip
  localexpert recalibrate houses.zip spring.csv --by town --out houses_spring.zip
  localexpert recalibrate calibrator.zip may.csv --score s --label y --out may.zip
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.base import clone

from calibration import ScoreCalibrator
from localexpert.cli import args, calibrated, table_model
from localexpert.cli.monitor import MonitorState
from localexpert.cli.output import check_file, note, warn
from localexpert.reading import files
from localexpert.reading.messages import count, refuse, refusing
from localexpert.recalibration.pit import ShiftRecalibration
from localexpert.regressor.recalibrated import recalibrate
from localexpert.regressor.seen_rows import seen_rows

_ACTIONS = "shift", "shift-and-slope", "recalibrate"


_OPTIONS = f"""\
model  a file of `localexpert fit` or `calibrate --save`
table+  new rows with known outcomes: files, or folders of Parquet
--out NEW.zip  where the new model goes
--state STATE.zip  of `localexpert monitor`: what it advises is done
--action {"|".join(_ACTIONS)}  what to do (default: the advice of --state, or \
recalibrate)
--method conformal|pit  of --action recalibrate (default: conformal)
--by A,B  columns within whose values the map is learned
--target
--score
--positive
--label COLUMN  of a calibrator: two different values
--seed 0..  another seed, other draws (default: 0)
"""


def add_options(parser: args.Parser) -> None:
    """Add the arguments of the command."""
    more: dict[str, Any] = {
        "out": {"required": True},
        "method": {"default": "conformal"},
    }
    args.add_options(parser, _OPTIONS, seed=args.SEED, **more)
    args.add_table_options(parser, "that of each file")


def run(options: Any) -> None:
    """Load the model, read the rows, correct it by them, and save it."""
    check_file(options.out, "--out", [options.model, *options.table])
    paths = files.find_tables(options.table)
    check_file(options.out, "--out", paths)
    model = calibrated.load_model(options)
    action = _choose_action(options)
    new: Any
    if isinstance(model, ScoreCalibrator):
        new, n_rows = _fit_calibrator(model, options, paths)
        action = "fitted anew"
    else:
        new, n_rows = _correct(model, options, paths, action)
    table_model.save_object(new, options.out, "--out")
    rows = f"{count(n_rows, 'row')} of {files.name_tables(options.table)}"
    note(f"saved {options.out}: {action} by {rows}")


def _choose_action(options: Any) -> str:
    """Return what is to be done, as the options or the state say."""
    if options.action is not None or options.state is None:
        return options.action or _ACTIONS[-1]
    advice = MonitorState.load(options).monitor.advise().action
    if advice == "refit":
        refuse(
            "the advice is to refit: forecasts tell less than half of what they "
            "promise, which no correction mends; `localexpert fit` a new model on new "
            "rows, or say an --action"
        )
    if advice == "nothing":
        refuse("there is no alarm, so nothing is to be done; or say an --action")
    note(f"the advice is: {advice}")
    return str(advice).replace(" ", "-")


def _correct(
    model: table_model.TableModel, options: Any, paths: list[str], action: str
) -> tuple[table_model.TableModel, int]:
    """Return a model that is corrected by the new ones of the rows."""
    _, features, y = table_model.read_whole(options, model, paths, options.by)
    seen = seen_rows(model.model, features, y)
    if seen.found:
        warn(str(seen))
    if seen.learned is not None:
        features, y = features[~seen.learned], y[~seen.learned]
    if not len(y):
        refuse("the model has learned from all of these rows: give new ones")
    method: Any = options.method
    if action != "recalibrate":
        method = ShiftRecalibration(slope=action == "shift-and-slope")
    by = list(options.by) or None
    where = files.name_tables(options.table)
    with refusing(f"cannot correct by {where}", TypeError, ValueError):
        seed = options.random_state
        fitted = recalibrate(
            model.model, features, y, by=by, method=method, random_state=seed
        )
    origin = model.origin
    if origin is not None:
        what = f"{action} by {count(len(y), 'row')} of {where} on {table_model.today()}"
        origin = replace(
            origin, corrected="; ".join(filter(None, [origin.corrected, what]))
        )
    return replace(model, model=fitted, origin=origin), len(y)


def _fit_calibrator(
    calibrator: ScoreCalibrator, options: Any, paths: list[str]
) -> tuple[ScoreCalibrator, int]:
    """Return a calibrator of the same kind and settings, fitted on these rows."""
    frame = files.join_tables(list(files.read_tables(paths, args.format_of(options))))
    scores = calibrated.scores_of(options, frame, calibrator.scale)
    y = calibrated.labels_of(options, frame)
    with refusing(f"cannot calibrate by {frame.attrs['path']}", TypeError, ValueError):
        return clone(calibrator).fit(scores, y), len(y)
