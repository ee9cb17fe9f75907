"""`localexpert calibrate`: scores and labels in, probabilities out."""

from __future__ import annotations

import os
import textwrap
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit, StratifiedKFold, cross_val_predict

from calibration import (
    MulticlassCalibrator,
    ScoreCalibrator,
    calibrator_names,
    make_calibrator,
    make_multiclass_calibrator,
    multiclass_calibrator_names,
)
from calibration.typing import Float64Array
from localexpert.cli.class_labels import CLASSES, ClassLabels, check_columns
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
from localexpert.reporting.page import report_calibration

_SCALES = ("probability", "logit", "real")
_ALL_AT_ONCE = ("auto", "matrix", "shallow_net", "temperature", "vector")
_HINT = "unless --scale says logit or real"
_EPILOG = f"""\
Learns from scores and labels of rows how often each score comes true. With --new the
scores of other rows are calibrated; without it those of the same rows, each by a
calibrator fitted on other rows (out of fold), so that they may be judged fairly.
The output is the table with one column more, {CALIBRATED!r}.

Scores of several classes stand in a column for each: --score p_a,p_b,p_c. Rows add up
to 1, unless they are logits, and the output has a column for each class,
{CALIBRATED + "_a"!r} and so on.

methods: {textwrap.fill(", ".join(calibrator_names()), 78, subsequent_indent="  ")}
of several classes these, one for each class, or all at once:
  {", ".join(name for name in multiclass_calibrator_names() if name in _ALL_AT_ONCE)}

examples:
  localexpert calibrate scores.csv --score s --label y --out calibrated.csv
  localexpert calibrate scores.csv --score s --label y --method venn_abers \\
      --save calibrator.zip --report calibration.html --out calibrated.csv
  localexpert calibrate scores.csv --score s --label sick --positive yes \\
      --new new_scores.csv --method isotonic --out new_probabilities.csv
  localexpert calibrate three.csv --score p_ox,p_hen,p_cat --label animal \\
      --method matrix --save calibrator.zip --out calibrated.csv
"""


def run(options: Any) -> None:
    """Read scores and labels, fit, and write calibrated scores."""
    _check_files(options)
    several = len(options.score) > 1
    _check_task(options, several)
    hint = "unless --scale says logit" if several else _HINT
    table = read_with(options, options.table)
    scores = read_scores(table, options, options.scale, hint)
    classes = ClassLabels.find(table, options) if several else None
    y = read_labels(table, options) if classes is None else classes.read(table, options)
    out = table if options.new is None else read_with(options, options.new)
    refuse_clash(out, [CALIBRATED] if classes is None else classes.columns())
    calibrator = _make_calibrator(options, classes)
    with refusing(f"cannot calibrate by {table.path}", TypeError, ValueError):
        fitted = clone(calibrator).fit(scores, y if classes is None else classes.of(y))
    if options.new is None or options.report is not None:
        answers = honest = _out_of_fold(calibrator, scores, y, classes, options)
    if options.new is not None:
        new = read_scores(out, options, options.scale, hint)
        what = f"cannot calibrate the scores of {out.path}"
        with refusing(what, TypeError, ValueError):
            answers = fitted.predict(new)
    if options.report is not None:
        _write_report(fitted, scores, y, honest, options)
    columns = {CALIBRATED: answers} if classes is None else classes.lay_out(answers)
    write_beside(options, out, columns)
    if options.save is not None:
        save_object(fitted, options.save, "--save")
        note(f"saved {options.save}, fitted on all {count(len(y), 'row')}")


def _check_files(options: Any) -> None:
    """Refuse files that cannot be read or written, before any work is done."""
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


def _check_task(options: Any, several: bool) -> None:
    """Refuse what means nothing for one score column, or for several."""
    if not options.score:
        refuse("--score must name a column, or one for each class")
    if not several:
        if options.method not in calibrator_names():
            refuse(
                f"--method {options.method} is of several classes: --score must name a "
                f"column for each, got {options.score[0]!r} alone"
            )
        if options.classes is not None:
            refuse(
                "--classes names the labels of several score columns, and --score "
                f"names {options.score[0]!r} alone: see --positive"
            )
        return
    check_columns(options)
    if options.scale == "real":
        refuse(
            "--scale real is an order of two classes: scores in several columns must "
            "be probability or logit"
        )
    if options.report is not None:
        refuse("--report is a page on two classes: there is none on several columns")


def _make_calibrator(
    options: Any, classes: ClassLabels | None
) -> ScoreCalibrator | MulticlassCalibrator:
    seed = options.random_state
    if classes is None:
        made = make_calibrator(options.method, random_state=seed)
        return cast(ScoreCalibrator, made.set_params(scale=options.scale))
    many = make_multiclass_calibrator(options.method, random_state=seed)
    many.set_params(scale=options.scale, classes=classes.parameter())
    return many


def _out_of_fold(
    calibrator: ScoreCalibrator | MulticlassCalibrator,
    scores: Float64Array,
    y: NDArray[np.intp],
    classes: ClassLabels | None,
    options: Any,
) -> Float64Array:
    """Return probabilities by calibrators that have not seen the row.

    What calibration changes is said on stderr, where scores can be scored.
    """
    path = name_input(options.table)
    folds, n_folds = _deal_folds(y, classes, path, options)
    known = y if classes is None else classes.of(y)
    with refusing(f"cannot calibrate by {path}", TypeError, ValueError):
        answers: Float64Array = cross_val_predict(calibrator, scores, known, cv=folds)
    what = repr(CALIBRATED) if options.new is None else options.report
    note(
        f"{what} is out of fold: each row by a calibrator fitted on the other "
        f"{n_folds - 1} of {n_folds} parts of {path}"
    )
    tell_losses(y, as_probabilities(scores, options.scale), answers)
    return answers


def _deal_folds(
    y: NDArray[np.intp], classes: ClassLabels | None, path: str, options: Any
) -> tuple[Any, int]:
    """Return what deals rows to folds that hold every class evenly, and their number.

    Of several classes some may have fewer rows than there are folds.
    """
    counts = np.sort(np.bincount(y, minlength=2))
    # Two classes are left when any fold is held out.
    second = int(counts[-2])
    if second < 2:
        which = "each label" if classes is None else "two labels"
        refuse(f"{path} must hold {which} at least twice to be calibrated out of fold")
    n_folds, seed = min(options.folds, second), options.random_state
    if classes is None:
        return StratifiedKFold(n_folds, shuffle=True, random_state=seed), n_folds
    order = np.random.default_rng(seed).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    fold_of = np.empty(len(y), dtype=np.intp)
    fold_of[order] = np.arange(len(y)) % n_folds
    return PredefinedSplit(fold_of), n_folds


def _write_report(
    fitted: Any,
    scores: Float64Array,
    y: NDArray[np.intp],
    honest: Float64Array,
    options: Any,
) -> None:
    """Write the page on probabilities out of fold."""
    before = as_probabilities(scores, options.scale)
    answers = {} if before is None else {"before": before}
    about = (
        f"{options.score[0]} of {os.path.basename(name_input(options.table))}, "
        f"calibrated by {type(fitted).__name__}, each row by one that had not seen it"
    )
    with refusing(f"cannot write --report {options.report!r}", OSError):
        answers["after"] = honest
        report_calibration(y, answers, fitted, scores, options.report, about)
    note(f"wrote {options.report}")


COMMAND = Command(
    run,
    "turn a classifier's scores into probabilities",
    "Turn scores of a classifier into probabilities.",
    _EPILOG,
    (
        ("table", "rows with a score and a label", {}),
        SCORE,
        ("--label", "two different values, or more", COLUMN | REQUIRED),
        POSITIVE,
        CLASSES,
        ("--new", "rows to calibrate instead", {"metavar": "TABLE"}),
        (
            "--method",
            "see below (default: auto, which tries several and may do nothing)",
            {
                "choices": multiclass_calibrator_names(),
                "default": "auto",
                "metavar": "METHOD",
            },
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
