"""Add a batch of rows with known outcomes to what a model has been watched by.

Each call adds a batch of rows whose targets have become known to the state, which is
made by the first call and belongs to its model. Exit codes, for a scheduler: 0 no alarm
so far, 3 an alarm, in this batch or before, 2 a mistake (the state is left as it was).
If nothing is wrong there is ever an alarm with probability --alpha at most, however
many batches there are. A batch that the state has already (the same rows, in any order)
is not counted again, so that a call may be repeated.

After an alarm the advice is the least that helps: shift, shift and slope, recalibrate,
or refit. `localexpert recalibrate` carries it out. Whatever is done makes another
model, which needs a new state.

Of a calibrator of two classes a batch is scores and labels; offsets and --tolerance are
in log-odds. The state remembers the labels, so that a batch may hold one of them alone;
rows without a label are left out.

for example:
  localexpert monitor houses.zip may.csv --state state.zip
  localexpert monitor houses.zip june.csv --state state.zip --picture state.png
  localexpert monitor houses.zip july.csv --state state.zip --json || echo look at it
  localexpert monitor calibrator.zip may.csv --score s --label y --state state.zip
"""

from __future__ import annotations

import json
import math
from typing import Any

from calibration import Advice, CalibrationMonitor, ScoreCalibrator, plot_monitor
from localexpert.cli import args, table_model
from localexpert.cli.calibrated import FITTED, scores_of
from localexpert.cli.console import note, warn
from localexpert.cli.known_rows import join_known, read_known
from localexpert.cli.monitor_state import Batch, Monitor, MonitorState
from localexpert.cli.output import check_file, write_out
from localexpert.cli.scores import without_infinities
from localexpert.monitor.forecast import ForecastMonitor
from localexpert.reading.files import name_input, read_table
from localexpert.reading.labels import Labels, find_gaps, read_words
from localexpert.reading.messages import (
    count,
    list_names,
    refuse,
    refusing,
)
from localexpert.regressor.seen_rows import seen_rows

#: Exit code of an alarm.
ALARM = 3
_PICTURES = (".png", ".pdf", ".svg")
# Options of models and of calibrators, by the names that they are stored by.
_OF_MODELS = {"target": "--target", "thresholds": "--thresholds"}
_OF_CALIBRATORS = {
    "score": "--score",
    "label": "--label",
    "positive": "--positive",
    "n_fit": "--fitted-rows",
}


_OPTIONS = """\
model  a file of `localexpert fit` or `localexpert calibrate --save`
table  new rows with known outcomes, each row in one batch
--state STATE.zip  file that is kept
--target
--alpha P  chance of a false alarm, ever (default: 0.05)
--tolerance SIZE  shift that is no alarm, in standard deviations or of a calibrator in \
log-odds (default: by training rows)
--thresholds V,V  of the target, watched by themselves (default: quartiles of forecasts)
--score
--positive
--label COLUMN  of a calibrator: two different values
--fitted-rows 1..  of a calibrator: how many it was fitted on, if its file does not tell
--picture FILE  evidence over rows, as .png, .pdf or .svg
--json
"""


def add_options(parser: args.Parser) -> None:
    """Add the arguments of the command."""
    more: dict[str, Any] = {
        "state": {"required": True},
        "fitted_rows": {"dest": "n_fit"},
    }
    args.add_options(parser, _OPTIONS, **more)
    args.add_table_options(parser, "that of each file")


def run(options: Any) -> int:
    """Add a batch to the state, write it, and say how things stand."""
    options.thresholds = options.thresholds or None
    _check_files(options)
    watched = _load(options)
    state = MonitorState.open(options, lambda: _make_monitor(watched, options))
    if isinstance(watched, table_model.TableModel):
        batch = _read_rows(watched, options)
    else:
        batch = _read_scores(watched, options, state)
    with refusing(f"cannot monitor by {name_input(options.table)}", ValueError):
        new = state.add(batch)
    if new is not state:
        table_model.save_object(new, options.state, "--state")
    if options.picture is not None:
        figure = plot_monitor(new.monitor)[0].figure
        with refusing(f"cannot write --picture {options.picture!r}", OSError):
            figure.savefig(options.picture, dpi=120)
        note(f"wrote {options.picture}")
    write_out(_tell(new.monitor, options))
    return ALARM if new.monitor.alarm_ else 0


def _check_files(options: Any) -> None:
    """Refuse files that cannot be written before any work is done."""
    taken = [options.model, options.table]
    check_file(options.state, "--state", taken)
    if options.picture is None:
        return
    if not options.picture.endswith(_PICTURES):
        refuse(f"--picture must end in {', '.join(_PICTURES)}, got {options.picture!r}")
    check_file(options.picture, "--picture", [*taken, options.state])


def _load(options: Any) -> table_model.TableModel | ScoreCalibrator:
    """Return what is watched, and refuse options of the other kind."""
    thing = table_model.load_object(options.model, "model or calibrator")
    if not isinstance(thing, ScoreCalibrator):
        model = table_model.as_table_model(thing, options.model)
        _refuse_any(options, _OF_CALIBRATORS, "of a calibrator, not of a model")
        return model
    _refuse_any(options, _OF_MODELS, "of a model, not of a calibrator")
    for name in ("score", "label"):
        if getattr(options, name) is None:
            refuse(f"--{name} must name a column: {options.model} is a calibrator")
    if len(options.score) != 1:
        refuse(
            "--score must name one column for a calibrator of two classes, got "
            f"{list_names(options.score)}"
        )
    return thing


def _refuse_any(options: Any, others: dict[str, str], what: str) -> None:
    """Refuse options that mean nothing here."""
    for stored, name in others.items():
        if getattr(options, stored) is not None:
            refuse(f"{name} is {what}, got {options.model}")


def _make_monitor(
    watched: table_model.TableModel | ScoreCalibrator, options: Any
) -> Monitor:
    """Return a monitor that has seen nothing, by so many rows fitted on."""
    if isinstance(watched, table_model.TableModel):
        return ForecastMonitor(watched.n_rows)
    known = getattr(watched, "n_fit_", None)
    if known is None and options.n_fit is None:
        refuse(
            f"{options.model} does not tell how many rows it was fitted on: say it by "
            "--fitted-rows"
        )
    return CalibrationMonitor(max(round(known or 1), 1))


def _read_rows(model: table_model.TableModel, options: Any) -> Batch:
    """Read features and targets; rows that were learned from are told."""
    _, features, y = join_known(read_known(options, model, [options.table]))
    seen = seen_rows(model.model, features, y)
    return Batch(model.model.predict_dist(features), y, seen=seen)


def _read_scores(
    calibrator: ScoreCalibrator, options: Any, state: MonitorState
) -> Batch:
    """Read scores and labels of the rows that have one."""
    frame = read_table(options.table, args.format_of(options))
    known = ~find_gaps(frame, options.label, "label")
    path, n_left = frame.attrs["path"], int((~known).sum())
    if not known.any():
        refuse(f"{path} has no row with a label {options.label!r}")
    if n_left:
        warn(f"left out {count(n_left, 'row')} without a label {options.label!r}")
    frame = frame[known]
    scores = scores_of(options, frame, calibrator.scale, FITTED)
    texts = read_words(frame, options.label, "label")
    what = f"label {options.label!r} of {path}"
    if state.labels is None:
        labels = Labels.of_two(texts, options.positive, what)
    else:
        positive = state.labels.names[1]
        if options.positive not in (None, positive):
            refuse(
                f"--positive differs from that of --state, {positive!r}: another one "
                "needs a new state"
            )
        labels = state.labels.meet(texts, what)
    return Batch(calibrator.predict(scores), labels.code(texts), labels)


def _tell(monitor: Monitor, options: Any) -> str:
    """Return how things stand, as JSON or in lines."""
    of_model = isinstance(monitor, ForecastMonitor)
    scale = "scale" if of_model else "slope"
    advice = monitor.advise()
    low, high = monitor.confidence_interval()
    if options.json:
        facts = {
            "alarm": monitor.alarm_,
            "rows": monitor.n_rows_,
            "batches": monitor.n_batches_,
            "log_e_value": monitor.log_e_,
            "alarm_at_row": monitor.alarm_row_,
            "onset_row": monitor.find_onset(),
            "offset": advice.offset,
            scale: advice.slope,
            "offset_interval": [low, high],
            "delivered": advice.delivered,
            "advice": advice.action,
            "evidence": advice.evidence,
        }
        return json.dumps(without_infinities(facts)) + "\n"
    seen = count(int(monitor.n_rows_), "row")
    batches = f"{monitor.n_batches_} batch{'es' * (monitor.n_batches_ > 1)}"
    power = monitor.log_e_ / math.log(10.0)
    unit = "standard deviations of a forecast" if of_model else "log-odds"
    lines = [
        f"{seen} in {batches}: {'ALARM' if monitor.alarm_ else 'no alarm'}",
        f"e-value 10^{power:.1f}, alarm at {1.0 / monitor.alpha:g}",
        f"offset of all outcomes so far {low:.3f} to {high:.3f} {unit} (95 %)",
    ]
    if monitor.alarm_:
        spread = "spread" if of_model else "slope"
        lines += _tell_alarm(monitor, advice, spread)
    return "\n".join(lines) + "\n"


def _tell_alarm(monitor: Monitor, advice: Advice, scale: str) -> list[str]:
    delivered = "too few rows to tell what information is delivered"
    if math.isfinite(advice.delivered):
        share = f"{advice.delivered:.0%}"
        delivered = f"information delivered {share} of what is promised"
    gains = ", ".join(f"{name} {gain:.1f}" for name, gain in advice.evidence.items())
    return [
        f"alarm at row {monitor.alarm_row_:g}, change after about "
        f"{monitor.find_onset():g}; since then offset {advice.offset:.2f}, "
        f"{scale} {advice.slope:.2f}",
        f"advice: {advice.action}",
        f"evidence (log-likelihood gained): {gains}; {delivered}",
    ]
