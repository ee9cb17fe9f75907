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

import hashlib
import json
import math
import os
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from calibration import CalibrationMonitor, ScoreCalibrator, plot_monitor
from localexpert.cli import args, calibrated, table_model
from localexpert.cli.output import check_file, note, warn, write_out
from localexpert.cli.scores import without_infinities
from localexpert.monitor.forecast import ForecastMonitor
from localexpert.reading.files import name_input, read_table
from localexpert.reading.labels import find_gaps, find_two_labels, read_words
from localexpert.reading.messages import count, list_names, refuse, refusing
from localexpert.regressor.seen_rows import seen_rows

Monitor: TypeAlias = ForecastMonitor | CalibrationMonitor

#: Exit code of an alarm.
ALARM = 3
_PICTURES = (".png", ".pdf", ".svg")
# By the names that options are stored by: those of models and of calibrators alone, and
# settings of the first call, which later ones may only repeat.
_OF_MODELS: tuple[str, ...] = ("target", "thresholds")
_OF_CALIBRATORS: tuple[str, ...] = ("score", "label", "positive", "n_fit")
_SETTINGS = ("alpha", "tolerance", "thresholds", "n_fit")
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
    named: dict[str, Any] = {"fitted_rows": {"dest": "n_fit"}}
    args.add_options(parser, _OPTIONS, state={"required": True}, **named)
    args.add_table_options(parser, "that of each file")


def run(options: Any) -> int:
    """Add a batch to the state, write it, and say how things stand."""
    options.thresholds = options.thresholds or None
    _check_files(options)
    watched = calibrated.load_model(options)
    _check_options(watched, options)
    state = MonitorState.open(watched, options)
    n_before = getattr(state.monitor, "n_batches_", 0)
    if isinstance(watched, table_model.TableModel):
        state.add_rows(watched, options)
    else:
        state = state.add_scores(watched, options)
    # The state stays as it is where it has the batch already.
    if state.monitor.n_batches_ > n_before:
        table_model.save_object(state, options.state, "--state")
    if options.picture is not None:
        figure = plot_monitor(state.monitor)[0].figure
        with refusing(f"cannot write --picture {options.picture!r}", OSError):
            figure.savefig(options.picture, dpi=120)
        note(f"wrote {options.picture}")
    tell = _tell_json if options.json else _tell
    write_out(f"{tell(state.monitor)}\n")
    return ALARM if state.monitor.alarm_ else 0


@dataclass(frozen=True, eq=False)
class MonitorState:
    """What `localexpert monitor` keeps from batch to batch.

    Parameters
    ----------
    model : str
        Hash of the file of the model that is watched.
    monitor : ForecastMonitor or CalibrationMonitor
    labels : (str or None, str) or None
        Of a calibrator's outcomes, the positive one last; None is not met yet.
    """

    model: str
    monitor: Monitor
    labels: tuple[str | None, str] | None = None

    @classmethod
    def open(cls, watched: Any, options: Any) -> MonitorState:
        """Return the state in the file of the options, or one of a new monitor."""
        said = {name: getattr(options, name) for name in _SETTINGS}
        said = {name: value for name, value in said.items() if value is not None}
        if not os.path.exists(options.state):
            made = _make_monitor(watched, options).set_params(**said)
            return cls(_hash_file(options.model), made)
        state = cls.load(options)
        for name, wanted in said.items():
            held = getattr(state.monitor, name)
            if not np.array_equal(wanted, held):
                refuse(
                    f"{_option(name)} differs from that of --state {options.state!r}, "
                    f"{held}: another one needs a new state"
                )
        return state

    @classmethod
    def load(cls, options: Any) -> MonitorState:
        """Return the state in a file, which must be that of the model."""
        what, where = "state of `localexpert monitor`", f"--state {options.state!r}"
        state = table_model.load_object(options.state, what)
        if not isinstance(state, cls):
            refuse(f"{where} holds a {type(state).__name__}, not a {what}")
        if state.model != _hash_file(options.model):
            refuse(
                f"{where} is that of another model than {options.model!r}: a model has "
                "a state of its own, from its first batch on"
            )
        return state

    def add_rows(self, model: table_model.TableModel, options: Any) -> None:
        """Add rows of a table, of which some may be training rows."""
        _, features, y = table_model.read_whole(options, model, [options.table])
        seen = seen_rows(model.model, features, y)
        self._add(options, model.model.predict_dist(features), y, seen=seen)

    def add_scores(self, calibrator: ScoreCalibrator, options: Any) -> MonitorState:
        """Add scores and labels of rows that have one; what labels are is kept."""
        frame = read_table(options.table, args.format_of(options))
        known = ~find_gaps(frame, options.label, "label")
        path, n_left = frame.attrs["path"], int((~known).sum())
        if not known.any():
            refuse(f"{path} has no row with a label {options.label!r}")
        if n_left:
            warn(f"left out {count(n_left, 'row')} without a label {options.label!r}")
        frame = frame[known]
        scores = calibrated.scores_of(options, frame, calibrator.scale)
        texts = read_words(frame, options.label, "label")
        met = [name for name in self.labels or () if name is not None]
        positive = self.labels[1] if self.labels else options.positive
        if options.positive not in (None, positive):
            refuse(
                f"--positive differs from that of --state, {positive!r}: another one "
                "needs a new state"
            )
        what = f"label {options.label!r} of {path}"
        labels = find_two_labels(texts, positive, met, what)
        self._add(options, calibrator.predict(scores), (texts == labels[1]).astype(int))
        return replace(self, labels=labels)

    def _add(self, options: Any, *batch: Any, **more: Any) -> None:
        with refusing(f"cannot monitor by {name_input(options.table)}", ValueError):
            self.monitor.partial_fit(*batch, **more)


def _option(name: str) -> str:
    return "--fitted-rows" if name == "n_fit" else f"--{name}"


def _hash_file(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_files(options: Any) -> None:
    """Refuse files that cannot be written before any work is done."""
    taken = [options.model, options.table]
    check_file(options.state, "--state", taken)
    if options.picture is None:
        return
    if not options.picture.endswith(_PICTURES):
        refuse(f"--picture must end in {', '.join(_PICTURES)}, got {options.picture!r}")
    check_file(options.picture, "--picture", [*taken, options.state])


def _check_options(watched: Any, options: Any) -> None:
    """Refuse options that mean nothing of what is watched."""
    others, whose = _OF_CALIBRATORS, "of a calibrator, not of a model"
    if calibrated.is_of_scores(watched):
        others, whose = _OF_MODELS, "of a model, not of a calibrator"
    for name in others:
        if getattr(options, name) not in (None, []):
            refuse(f"{_option(name)} is {whose}, got {options.model}")
    if len(options.score) > 1:
        refuse(
            "--score must name one column for a calibrator of two classes, got "
            f"{list_names(options.score)}"
        )


def _make_monitor(watched: Any, options: Any) -> Monitor:
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


def _tell_json(monitor: Monitor) -> str:
    """Return how things stand as one JSON object."""
    advice = monitor.advise()
    facts = {
        "alarm": monitor.alarm_,
        "rows": monitor.n_rows_,
        "batches": monitor.n_batches_,
        "log_e_value": monitor.log_e_,
        "alarm_at_row": monitor.alarm_row_,
        "onset_row": monitor.find_onset(),
        "offset": advice.offset,
        "scale" if isinstance(monitor, ForecastMonitor) else "slope": advice.slope,
        "offset_interval": list(monitor.confidence_interval()),
        "delivered": advice.delivered,
        "advice": advice.action,
        "evidence": advice.evidence,
    }
    return json.dumps(without_infinities(facts))


def _tell(monitor: Monitor) -> str:
    """Return how things stand in lines."""
    low, high = monitor.confidence_interval()
    batches = f"{monitor.n_batches_} batch{'es' * (monitor.n_batches_ > 1)}"
    unit, width = "log-odds", "slope"
    if isinstance(monitor, ForecastMonitor):
        unit, width = "standard deviations of a forecast", "spread"
    alarm = "ALARM" if monitor.alarm_ else "no alarm"
    text = f"""\
{count(int(monitor.n_rows_), "row")} in {batches}: {alarm}
e-value 10^{monitor.log_e_ / math.log(10.0):.1f}, alarm at {1.0 / monitor.alpha:g}
offset of all outcomes so far {low:.3f} to {high:.3f} {unit} (95 %)"""
    if not monitor.alarm_:
        return text
    advice = monitor.advise()
    delivered = "too few rows to tell what information is delivered"
    if math.isfinite(advice.delivered):
        delivered = f"information delivered {advice.delivered:.0%} of what is promised"
    gains = ", ".join(f"{name} {gain:.1f}" for name, gain in advice.evidence.items())
    return f"""{text}
alarm at row {monitor.alarm_row_:g}, change after about {monitor.find_onset():g}; \
since then offset {advice.offset:.2f}, {width} {advice.slope:.2f}
advice: {advice.action}
evidence (log-likelihood gained): {gains}; {delivered}"""
