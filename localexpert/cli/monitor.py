"""`localexpert monitor`: whether a model still holds, batch by batch."""

from __future__ import annotations

import json
import math
from typing import Any

from calibration import Advice, plot_monitor
from localexpert.cli.command import Command
from localexpert.cli.console import count, note, refuse, refusing
from localexpert.cli.known_rows import KnownRows, read_known, target_name
from localexpert.cli.model_files import load_table_model, save_object
from localexpert.cli.monitor_state import MonitorState
from localexpert.cli.options import (
    COLUMN,
    FLAG,
    MODEL,
    REQUIRED,
    VALUES,
    make_reader,
    read_finite,
    read_share,
)
from localexpert.cli.output import STDOUT, check_writable, write_out
from localexpert.cli.read_file import name_input
from localexpert.monitor.forecast import ForecastMonitor

#: Exit code of an alarm.
ALARM = 3
_PICTURES = (".png", ".pdf", ".svg")
_EPILOG = """\
Each call adds a batch of rows whose targets have become known to the state, which is
made by the first call and belongs to its model. Exit codes, for a scheduler: 0 no alarm
so far, 3 an alarm, in this batch or before, 2 a mistake (the state is left as it was).
If nothing is wrong there is ever an alarm with probability --alpha at most, however
many batches there are. A batch that the state has already (the same rows in the same
order) is not counted again, so that a call may be repeated.

After an alarm the advice is the least that helps: shift, shift and slope, recalibrate,
or refit. Whatever is done makes another model, which needs a new state.

examples:
  localexpert monitor houses.zip may.csv --state state.zip
  localexpert monitor houses.zip june.csv --state state.zip --picture state.png
  localexpert monitor houses.zip july.csv --state state.zip --json || echo look at it
"""


def run(options: Any) -> int:
    """Add a batch to the state, write it, and say how things stand."""
    _check_files(options)
    model = load_table_model(options.model)
    state = MonitorState.open(options, model)
    options.decimal = options.decimal or model.schema.decimal
    how = options, model.schema, [options.table], target_name(options, model.schema)
    rows = KnownRows.join(list(read_known(*how)))
    with refusing(f"cannot monitor by {name_input(options.table)}", ValueError):
        new = state.add(rows.frame, rows.y, model)
    if new is state:
        note(f"{name_input(options.table)} is in the state already: not counted again")
    else:
        save_object(new, options.state, "--state")
    if options.picture is not None:
        _draw(new.monitor, options.picture)
    write_out(_tell(new.monitor, options))
    return ALARM if new.monitor.alarm_ else 0


def _check_files(options: Any) -> None:
    """Refuse files that cannot be written before any work is done."""
    if options.state == STDOUT:
        refuse("--state must be a file")
    check_writable(options.state, "--state", [options.model, options.table])
    if options.picture is None:
        return
    if not options.picture.endswith(_PICTURES):
        refuse(f"--picture must end in {', '.join(_PICTURES)}, got {options.picture!r}")
    others = [options.model, options.table, options.state]
    check_writable(options.picture, "--picture", others)


def _draw(monitor: ForecastMonitor, path: str) -> None:
    figure = plot_monitor(monitor)[0].figure
    with refusing(f"cannot write --picture {path!r}", OSError):
        figure.savefig(path, dpi=120)
    note(f"wrote {path}")


def _tell(monitor: ForecastMonitor, options: Any) -> str:
    """Return how things stand, as JSON or in lines."""
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
            "offset": _or_null(advice.offset),
            "scale": _or_null(advice.slope),
            "offset_interval": [_or_null(low), _or_null(high)],
            "delivered": _or_null(advice.delivered),
            "advice": advice.action,
            "evidence": advice.evidence,
        }
        return json.dumps(facts) + "\n"
    seen = count(int(monitor.n_rows_), "row")
    batches = f"{monitor.n_batches_} batch{'es' * (monitor.n_batches_ > 1)}"
    power = monitor.log_e_ / math.log(10.0)
    lines = [
        f"{seen} in {batches}: {'ALARM' if monitor.alarm_ else 'no alarm'}",
        f"e-value 10^{power:.1f}, alarm at {1.0 / monitor.alpha:g}",
        f"offset of all outcomes so far {low:.3f} to {high:.3f} standard deviations of "
        "a forecast (95 %)",
    ]
    if monitor.alarm_:
        lines += _tell_alarm(monitor, advice)
    return "\n".join(lines) + "\n"


def _tell_alarm(monitor: ForecastMonitor, advice: Advice) -> list[str]:
    gains = ", ".join(f"{name} {gain:.1f}" for name, gain in advice.evidence.items())
    return [
        f"alarm at row {monitor.alarm_row_:g}, change after about "
        f"{monitor.find_onset():g}; since then offset {advice.offset:.2f}, "
        f"spread {advice.slope:.2f}",
        f"advice: {advice.action}",
        f"evidence (log-likelihood gained): {gains}; information delivered "
        f"{advice.delivered:.0%} of what is promised",
    ]


def _or_null(number: float) -> float | None:
    return number if math.isfinite(number) else None


_TOLERANCE = make_reader(
    read_finite, lambda size: size >= 0.0, "must be a number from 0 on, got {}"
)

COMMAND = Command(
    run,
    "watch a model batch by batch: has it aged?",
    "Add a batch of rows with known targets to what a model has been watched by.",
    _EPILOG,
    (
        MODEL,
        ("table", "new rows with known targets, each row in one batch", {}),
        ("--state", "file that is kept", {"metavar": "STATE.zip"} | REQUIRED),
        ("--target", "its name here, if not as in training", COLUMN),
        (
            "--alpha",
            "chance of a false alarm, ever (default: 0.05)",
            {"type": read_share, "metavar": "P"},
        ),
        (
            "--tolerance",
            "shift in standard deviations that is no alarm (default: by training rows)",
            {"type": _TOLERANCE, "metavar": "SIZE"},
        ),
        (
            "--thresholds",
            "of the target, watched by themselves (default: quartiles of forecasts)",
            VALUES | {"default": None},
        ),
        ("--picture", "evidence over rows, as .png, .pdf or .svg", {"metavar": "FILE"}),
        ("--json", "one JSON object", FLAG),
    ),
)
