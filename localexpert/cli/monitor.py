"""`monitor` and `recalibrate`: find out whether a model has aged, and correct it."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone

from calibration import CalibrationMonitor, ScoreCalibrator, plot_monitor
from calibration.storage import replacing_file
from localexpert.cli.forecasts import without_infinities
from localexpert.cli.output import check_file, note, warn, write_out
from localexpert.cli.probabilities import (
    check_one_column,
    find_two_labels,
    is_of_scores,
    labels_of,
    load_model,
    read_labels,
    scores_of,
)
from localexpert.cli.table_model import TableModel, read_whole, save_object, today
from localexpert.monitor import ForecastMonitor
from localexpert.reading import files
from localexpert.reading.reader import find_gaps
from localexpert.reading.texts import count, refuse, refusing
from localexpert.recalibration.pit import ShiftRecalibration
from localexpert.regressor.recalibrated import recalibrate as recalibrate_model
from localexpert.regressor.recalibrated import seen_rows

Monitor: TypeAlias = ForecastMonitor | CalibrationMonitor

#: Exit code of an alarm.
ALARM = 3
_PICTURES = (".png", ".pdf", ".svg")
# Options of models and of calibrators alone, and settings of the first call, which
# later ones may only repeat, by the parameters that they are.
_OF_MODELS: tuple[str, ...] = ("target", "thresholds", "by", "action")
_OF_CALIBRATORS: tuple[str, ...] = ("score", "label", "positive", "fitted_rows")
_SETTINGS = {name: name for name in ("alpha", "tolerance", "thresholds")}
_SETTINGS |= {"fitted_rows": "n_fit"}


def monitor(options: Any) -> int:
    """Add a batch to the state, write it, and say how things stand."""
    options.thresholds = options.thresholds or None
    _check_files(options)
    watched = load_model(options)
    _check_options(watched, options)
    state = _State.open(watched, options)
    n_before = getattr(state.monitor, "n_batches_", 0)
    if isinstance(watched, TableModel):
        state.add_rows(watched, options)
    else:
        state = state.add_scores(watched, options)
    # The state stays as it is where it has the batch already.
    if state.monitor.n_batches_ > n_before:
        state.save(options.state)
    if options.picture is not None:
        figure = plot_monitor(state.monitor)[0].figure
        path = Path(options.picture)
        with (
            refusing(f"cannot write --picture {options.picture!r}", OSError),
            replacing_file(path) as new,
        ):
            figure.savefig(new, dpi=120, format=path.suffix[1:])
        note(f"wrote {options.picture}")
    tell = _tell_json if options.json else _tell
    write_out(f"{tell(state.monitor)}\n")
    return ALARM if state.monitor.alarm_ else 0


@dataclass(frozen=True, eq=False)
class _State:
    """The state between batches, in a file of JSON.

    Parameters
    ----------
    model : str
        Hash of the file of the model that is watched.
    monitor : ForecastMonitor or CalibrationMonitor
    labels : list of (str or None, str)
        Of a calibrator's outcomes, the positive one last; None is not met yet.
    """

    model: str
    monitor: Monitor
    labels: list[Any]

    @classmethod
    def open(cls, watched: Any, options: Any) -> _State:
        """Return the state in the file of the options, or one of a new monitor."""
        said = {name: getattr(options, option) for option, name in _SETTINGS.items()}
        said = {name: value for name, value in said.items() if value is not None}
        if not os.path.exists(options.state):
            made = _make_monitor(watched, options).set_params(**said)
            return cls(_hash_file(options.model), made, [])
        state = cls.load(options)
        for name, wanted in said.items():
            held = getattr(state.monitor, name)
            if not np.array_equal(wanted, held):
                option = "fitted-rows" if name == "n_fit" else name
                refuse(
                    f"--{option} differs from that of --state {options.state!r}, "
                    f"{held}: another one needs a new state"
                )
        return state

    @classmethod
    def load(cls, options: Any) -> _State:
        """Return the state in a file, which must be that of the model."""
        where = f"--state {options.state!r}"
        wrong = KeyError, TypeError, AttributeError, ValueError, RecursionError
        with refusing(f"{where} is no sound state of `localexpert monitor`", *wrong):
            held = json.loads(files.read_bytes(options.state))
            kinds = {one.__name__: one for one in (ForecastMonitor, CalibrationMonitor)}
            text, kind = json.dumps(held["monitor"]), held["monitor"]["monitor"]
            state = cls(held["model"], kinds[kind].from_json(text), held["labels"])
        if state.model != _hash_file(options.model):
            refuse(
                f"{where} is that of another model than {options.model!r}: a model has "
                "a state of its own, from its first batch on"
            )
        return state

    def save(self, path: str) -> None:
        """Write the state to a file, whole or not at all."""
        state = {**vars(self), "monitor": json.loads(self.monitor.to_json())}
        with (
            refusing(f"cannot write --state {path!r}", OSError),
            replacing_file(Path(path)) as new,
        ):
            new.write_text(json.dumps(state), encoding="utf-8")

    def add_rows(self, model: TableModel, options: Any) -> None:
        """Add rows of a table, of which some may be training rows."""
        _, features, y = read_whole(options, model, [options.table])
        seen = seen_rows(model.model, features, y)
        dist = model.forecast(features, files.name_input(options.table))
        self._add(options, dist, y, seen=seen)

    def add_scores(self, calibrator: ScoreCalibrator, options: Any) -> _State:
        """Add scores and labels of rows that have one; what labels are is kept."""
        frame = _keep_labelled(options, files.read_table(options.table, options.format))
        scores = scores_of(options, frame, calibrator.scale)
        texts = read_labels(options, frame)
        met = [name for name in self.labels if name is not None]
        what = f"label {options.label!r} of {frame.attrs['path']}"
        labels = find_two_labels(texts, self.find_positive(options), met, what)
        self._add(options, calibrator.predict(scores), (texts == labels[1]).astype(int))
        return replace(self, labels=list(labels))

    def find_positive(self, options: Any) -> str | None:
        """Return the label that is meant, which options may only repeat; None yet."""
        positive: str | None = self.labels[1] if self.labels else options.positive
        if options.positive not in (None, positive):
            refuse(
                f"--positive differs from that of --state, {positive!r}: another one "
                "needs a new state"
            )
        return positive

    def _add(self, options: Any, *batch: Any, **more: Any) -> None:
        with refusing(
            f"cannot monitor by {files.name_input(options.table)}", ValueError
        ):
            self.monitor.partial_fit(*batch, **more)


def _keep_labelled(options: Any, frame: files.Frame) -> files.Frame:
    """Return the rows that have a label, and say how many have none."""
    gaps = find_gaps(frame, options.label, "label")
    if gaps.all():
        refuse(f"{frame.attrs['path']} has no row with a label {options.label!r}")
    if n_left := int(gaps.sum()):
        warn(f"left out {count(n_left, 'row')} without a label {options.label!r}")
    return frame[~gaps]


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
    """Refuse options that mean nothing for the model or calibrator watched."""
    others, whose = _OF_CALIBRATORS, "of a calibrator, not of a model"
    if is_of_scores(watched):
        others, whose = _OF_MODELS, "of a model, not of a calibrator"
    for name in others:
        if getattr(options, name, None) not in (None, []):
            refuse(f"--{name.replace('_', '-')} is {whose}, got {options.model}")
    check_one_column(options)


def _make_monitor(watched: Any, options: Any) -> Monitor:
    """Return a monitor that has seen nothing, by so many rows fitted on."""
    if isinstance(watched, TableModel):
        rows = watched.origin["rows"]
        return ForecastMonitor(min(rows, watched.origin.get("corrected_rows", rows)))
    known = getattr(watched, "n_fit_", None)
    if known is None and options.fitted_rows is None:
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


def recalibrate(options: Any) -> None:
    """Load the model, read the rows, correct it by them, and save it."""
    paths = files.find_tables(options.table)
    check_file(options.out, "--out", [options.model, *options.table, *paths])
    model = load_model(options)
    _check_options(model, options)
    state = None if options.state is None else _State.load(options)
    action = _choose_action(options, state)
    where = files.name_tables(options.table)
    if isinstance(model, TableModel):
        new, n_rows = _correct(model, options, paths, action)
    else:
        # The new calibrator has the same kind and settings.
        if state is not None:
            options.positive = state.find_positive(options)
        frame = files.join_tables(list(files.read_tables(paths, options.format)))
        frame = _keep_labelled(options, frame)
        scores, y = scores_of(options, frame, model.scale), labels_of(options, frame)
        with refusing(f"cannot calibrate by {where}", TypeError, ValueError):
            new, n_rows, action = clone(model).fit(scores, y), len(y), "fitted anew"
    save_object(new, options.out, "--out")
    note(f"saved {options.out}: {action} by {count(n_rows, 'row')} of {where}")


def _choose_action(options: Any, state: _State | None) -> str:
    """Return what is to be done, as the options or the state say."""
    if options.action is not None or state is None:
        return options.action or "recalibrate"
    advice = state.monitor.advise().action
    if advice == "refit":
        refuse(
            "the advice is to refit: forecasts tell less than half of what they "
            "promise, which no correction mends; `localexpert fit` a new model on new "
            "rows, or leave out --state"
        )
    if advice == "nothing":
        refuse("there is no alarm, so nothing is to be done; or leave out --state")
    note(f"the advice is: {advice}")
    return str(advice).replace(" ", "-")


def _correct(
    model: TableModel, options: Any, paths: list[str], action: str
) -> tuple[Any, int]:
    """Return a model that is corrected by the new ones of the rows."""
    _, features, y = read_whole(options, model, paths, options.by)
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
    where, how = files.name_tables(options.table), {"random_state": options.seed}
    with refusing(f"cannot correct by {where}", TypeError, ValueError):
        fitted = recalibrate_model(
            model.model, features, y, by=list(options.by) or None, method=method, **how
        )
    what = f"{action} by {count(len(y), 'row')} of {where} on {today()}"
    steps = "; ".join(filter(None, [model.origin.get("corrected"), what]))
    origin = {**model.origin, "corrected": steps, "corrected_rows": len(y)}
    return replace(model, model=fitted, origin=origin), len(y)
