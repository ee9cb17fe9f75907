"""`localexpert calibrate`: scores and labels in, probabilities out."""

from __future__ import annotations

import os
import textwrap
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from calibration import ScoreCalibrator, calibrator_names, make_calibrator
from calibration.typing import Float64Array
from localexpert.cli.command import Command
from localexpert.cli.console import count, note, refuse, refusing
from localexpert.cli.labelled import POSITIVE, SCORE, read_labels, read_scores
from localexpert.cli.model_files import save_object
from localexpert.cli.options import COLUMN, REQUIRED, SEED, read_with, whole_number
from localexpert.cli.output import (
    STDOUT,
    check_table_writable,
    check_writable,
    read_out,
)
from localexpert.cli.probabilities import (
    CALIBRATED,
    as_probabilities,
    refuse_clash,
    tell_losses,
    write_beside,
)
from localexpert.cli.read_file import STDIN, name_input
from localexpert.reporting.probabilities import report_calibration

_SCALES = ("probability", "logit", "real")
_HINT = "unless --scale says logit or real"
_EPILOG = f"""\
Learns from scores and labels of rows how often each score comes true. With --new the
scores of other rows are calibrated; without it those of the same rows, each by a
calibrator fitted on other rows (out of fold), so that they may be judged fairly.
The output is the table with one column more, {CALIBRATED!r}.

methods: {textwrap.fill(", ".join(calibrator_names()), 78, subsequent_indent="  ")}

examples:
  localexpert calibrate scores.csv --score s --label y --out calibrated.csv
  localexpert calibrate scores.csv --score s --label y --method venn_abers \\
      --save calibrator.zip --report calibration.html --out calibrated.csv
  localexpert calibrate scores.csv --score s --label sick --positive yes \\
      --new new_scores.csv --method isotonic --out new_probabilities.csv
"""


def run(options: Any) -> None:
    """Read scores and labels, fit, and write calibrated scores."""
    inputs = [name for name in (options.table, options.new) if name is not None]
    if inputs == [STDIN, STDIN]:
        refuse("standard input can be one table only: the other must be a file")
    if options.save == STDOUT:
        refuse("--save must be a file")
    check_table_writable(options.out, inputs)
    if options.save is not None:
        check_writable(options.save, "--save", [*inputs, options.out])
    if options.report == STDOUT:
        refuse("--report must be a file")
    if options.report is not None:
        others = [name for name in (options.out, options.save) if name is not None]
        check_writable(options.report, "--report", [*inputs, *others])
    table = read_with(options, options.table)
    scores = read_scores(table, options, options.scale, _HINT)
    y = read_labels(table, options)
    out = table if options.new is None else read_with(options, options.new)
    refuse_clash(out, [CALIBRATED])
    calibrator = _make_calibrator(options)
    with refusing(f"cannot calibrate by {table.path}", TypeError, ValueError):
        fitted = clone(calibrator).fit(scores, y)
    if options.new is None or options.report is not None:
        answers = honest = _out_of_fold(calibrator, scores, y, options)
    if options.new is not None:
        new = read_scores(out, options, options.scale, _HINT)
        what = f"cannot calibrate the scores of {out.path}"
        with refusing(what, TypeError, ValueError):
            answers = fitted.predict(new)
    if options.report is not None:
        _write_report(fitted, scores, y, honest, options)
    write_beside(options, out, {CALIBRATED: answers})
    if options.save is not None:
        save_object(fitted, options.save, "--save")
        note(f"saved {options.save}, fitted on all {count(len(y), 'row')}")


def _make_calibrator(options: Any) -> ScoreCalibrator:
    seed = options.random_state
    made = make_calibrator(options.method, random_state=seed)
    return cast(ScoreCalibrator, made.set_params(scale=options.scale))


def _out_of_fold(
    calibrator: ScoreCalibrator,
    scores: Float64Array,
    y: NDArray[np.intp],
    options: Any,
) -> Float64Array:
    """Return probabilities by calibrators that have not seen the row, shape (n,).

    What calibration changes is said on stderr, where scores can be scored.
    """
    path = name_input(options.table)
    rarer = int(min(y.sum(), len(y) - y.sum()))
    if rarer < 2:
        refuse(
            f"{path} must hold each label at least twice to be calibrated out of fold"
        )
    n_folds = min(options.folds, rarer)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=options.random_state)
    with refusing(f"cannot calibrate by {path}", TypeError, ValueError):
        answers: Float64Array = cross_val_predict(calibrator, scores, y, cv=folds)
    what = repr(CALIBRATED) if options.new is None else options.report
    note(
        f"{what} is out of fold: each row by a calibrator fitted on the other "
        f"{n_folds - 1} of {n_folds} parts of {path}"
    )
    tell_losses(y, as_probabilities(scores, options.scale), answers)
    return answers


def _write_report(
    fitted: ScoreCalibrator,
    scores: Float64Array,
    y: NDArray[np.intp],
    honest: Float64Array,
    options: Any,
) -> None:
    """Write the page on probabilities out of fold."""
    before = as_probabilities(scores, options.scale)
    answers = {} if before is None else {"before": before}
    about = (
        f"{options.score} of {os.path.basename(name_input(options.table))}, "
        f"calibrated by {type(fitted).__name__}, each row by one that had not seen it"
    )
    with refusing(f"cannot write --report {options.report!r}", OSError):
        answers["after"] = honest
        report_calibration(y, answers, fitted, scores, options.report, about)
    note(f"wrote {options.report}")


COMMAND = Command(
    run,
    "turn a classifier's scores into probabilities",
    "Turn scores of a two-class classifier into probabilities.",
    _EPILOG,
    (
        ("table", "rows with a score and a label", {}),
        SCORE,
        ("--label", "two different values", COLUMN | REQUIRED),
        POSITIVE,
        ("--new", "rows to calibrate instead", {"metavar": "TABLE"}),
        (
            "--method",
            "see below (default: auto, which tries several and may do nothing)",
            {"choices": calibrator_names(), "default": "auto", "metavar": "METHOD"},
        ),
        (
            "--scale",
            "what a score is (default: probability)",
            {"choices": _SCALES, "default": "probability"},
        ),
        (
            "--out",
            "default: stdout",
            {"default": STDOUT, "type": read_out, "metavar": "CALIBRATED.csv"},
        ),
        (
            "--save",
            "keep it, for `localexpert apply` or `calibration` in Python",
            {"metavar": "CALIBRATOR.zip"},
        ),
        ("--report", "a page on scores before and after", {"metavar": "PAGE.html"}),
        (
            "--folds",
            "parts of the rows without --new (default: 10)",
            whole_number(2, default=10),
        ),
        ("--seed", "another seed, another answer (default: 0)", SEED),
    ),
    decimal=".",
)
