"""`localexpert monitor`: whether a model still holds, batch by batch."""

from __future__ import annotations

import json
import math
from typing import Any

from calibration import Advice, plot_monitor
from localexpert.cli.command import Command
from localexpert.cli.console import count, note, refuse, refusing
from localexpert.cli.labelled import POSITIVE, SCORE
from localexpert.cli.model_files import save_object
from localexpert.cli.monitor_state import Monitor, MonitorState
from localexpert.cli.options import (
    COLUMN,
    FLAG,
    REQUIRED,
    VALUES,
    make_reader,
    read_finite,
    read_share,
    whole_number,
)
from localexpert.cli.output import STDOUT, check_writable, write_out
from localexpert.cli.read_file import name_input
from localexpert.cli.watched import Watched, open_watched

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

Of a calibrator of two classes a batch is scores and labels; offsets and --tolerance are
in log-odds. The state remembers the labels, so that a batch may hold one of them alone;
rows without a label are left out.

examples:
  localexpert monitor houses.zip may.csv --state state.zip
  localexpert monitor houses.zip june.csv --state state.zip --picture state.png
  localexpert monitor houses.zip july.csv --state state.zip --json || echo look at it
  localexpert monitor calibrator.zip may.csv --score s --label y --state state.zip
"""


def run(options: Any) -> int:
    """Add a batch to the state, write it, and say how things stand."""
    _check_files(options)
    watched = open_watched(options)
    state = MonitorState.open(options, lambda: watched.make_monitor(options))
    batch = watched.read(options, state)
    with refusing(f"cannot monitor by {name_input(options.table)}", ValueError):
        new = state.add(batch)
    if new is state:
        note(f"{name_input(options.table)} is in the state already: not counted again")
    else:
        save_object(new, options.state, "--state")
    if options.picture is not None:
        _draw(new.monitor, options.picture)
    write_out(_tell(new.monitor, watched, options))
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


def _draw(monitor: Monitor, path: str) -> None:
    figure = plot_monitor(monitor)[0].figure
    with refusing(f"cannot write --picture {path!r}", OSError):
        figure.savefig(path, dpi=120)
    note(f"wrote {path}")


def _tell(monitor: Monitor, watched: Watched, options: Any) -> str:
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
            watched.scale[0]: _or_null(advice.slope),
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
        f"offset of all outcomes so far {low:.3f} to {high:.3f} {watched.unit} (95 %)",
    ]
    if monitor.alarm_:
        lines += _tell_alarm(monitor, advice, watched.scale[1])
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


def _or_null(number: float) -> float | None:
    return number if math.isfinite(number) else None


_ONE_SCORE = {**SCORE[2], "required": False, "metavar": "COLUMN"}
_TOLERANCE = make_reader(
    read_finite, lambda size: size >= 0.0, "must be a number from 0 on, got {}"
)

COMMAND = Command(
    run,
    "watch a model batch by batch: has it aged?",
    "Add a batch of rows with known targets to what a model has been watched by.",
    _EPILOG,
    (
        (
            "model",
            "a file of `localexpert fit` or `localexpert calibrate --save`",
            {},
        ),
        ("table", "new rows with known outcomes, each row in one batch", {}),
        ("--state", "file that is kept", {"metavar": "STATE.zip"} | REQUIRED),
        ("--target", "its name here, if not as in training", COLUMN),
        (
            "--alpha",
            "chance of a false alarm, ever (default: 0.05)",
            {"type": read_share, "metavar": "P"},
        ),
        (
            "--tolerance",
            "shift that is no alarm, in standard deviations or of a calibrator in "
            "log-odds (default: by training rows)",
            {"type": _TOLERANCE, "metavar": "SIZE"},
        ),
        (
            "--thresholds",
            "of the target, watched by themselves (default: quartiles of forecasts)",
            VALUES | {"default": None},
        ),
        (SCORE[0], "of a calibrator: the column of scores", _ONE_SCORE),
        ("--label", "of a calibrator: two different values", COLUMN),
        POSITIVE,
        (
            "--fitted-rows",
            "of a calibrator: how many it was fitted on, if its file does not tell",
            whole_number(1, dest="n_fit"),
        ),
        ("--picture", "evidence over rows, as .png, .pdf or .svg", {"metavar": "FILE"}),
        ("--json", "one JSON object", FLAG),
    ),
)
