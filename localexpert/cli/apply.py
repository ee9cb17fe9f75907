"""`localexpert apply`: scores calibrated by a calibrator that was saved."""

from __future__ import annotations

from typing import Any

from calibration import MulticlassCalibrator, ScoreCalibrator
from localexpert.cli.class_labels import ClassLabels, check_columns
from localexpert.cli.command import Command
from localexpert.cli.console import list_names, refuse, refusing
from localexpert.cli.labelled import POSITIVE, SCORE, read_labels, read_scores
from localexpert.cli.model_files import load_object
from localexpert.cli.options import COLUMN, FLAG, read_with
from localexpert.cli.output import STDOUT, check_table_writable, read_out
from localexpert.cli.probabilities import (
    CALIBRATED,
    as_probabilities,
    refuse_clash,
    tell_losses,
    write_beside,
)

_ENDS = "calibrated_low", "calibrated_high"
_EPILOG = f"""\
The output is the table with one column more, {CALIBRATED!r}; of a calibrator of
several classes with one for each, {CALIBRATED + "_a"!r} and so on: --score names their
columns in the order of its classes. With --interval come
{" and ".join(map(repr, _ENDS))}: of Venn-Abers its two probabilities, one of
which is calibrated whatever the scores are; of binning and isotonic calibrators 90 %
intervals for the share that comes true. Where the label is known, stderr tells how good
probabilities are before and after; only rows that the calibrator has not seen tell
the truth.

examples:
  localexpert calibrate scores.csv --score s --label y --method venn_abers \\
      --save calibrator.zip --out calibrated.csv
  localexpert apply calibrator.zip new_scores.csv --score s --interval --out new.csv
  localexpert apply calibrator.zip test_scores.csv --score s --label y --out test.csv
"""


def run(options: Any) -> None:
    """Load the calibrator, read the scores, write probabilities."""
    check_table_writable(options.out, [options.calibrator, options.table])
    calibrator = _load(options.calibrator)
    if options.interval and not hasattr(calibrator, "predict_interval"):
        refuse(
            "--interval needs a calibrator that tells one, such as venn_abers, "
            f"isotonic or histogram, got a {type(calibrator).__name__}"
        )
    if options.positive is not None and options.label is None:
        refuse("--positive says which --label is meant, and there is none")
    classes = _find_classes(calibrator, options)
    table = read_with(options, options.table)
    names = [CALIBRATED] if classes is None else classes.columns()
    refuse_clash(table, [*names, *(_ENDS if options.interval else ())])
    hint = "as those that the calibrator was fitted to"
    scores = read_scores(table, options, calibrator.scale, hint)
    y = None
    if options.label is not None:
        read = read_labels if classes is None else classes.read
        y = read(table, options)
    with refusing(
        f"cannot calibrate the scores of {table.path}", TypeError, ValueError
    ):
        p = calibrator.predict(scores)
        answers = {CALIBRATED: p} if classes is None else classes.lay_out(p)
        if options.interval:
            ends = calibrator.predict_interval(scores).T
            answers.update(zip(_ENDS, ends, strict=True))
    if y is not None:
        tell_losses(y, as_probabilities(scores, calibrator.scale), p)
    write_beside(options, table, answers)


def _load(path: str) -> Any:
    """Return a calibrator of scores."""
    thing = load_object(path, "calibrator")
    if not isinstance(thing, ScoreCalibrator | MulticlassCalibrator):
        refuse(f"{path} holds a {type(thing).__name__}, not a calibrator of scores")
    return thing


def _find_classes(calibrator: Any, options: Any) -> ClassLabels | None:
    """Return the classes of a calibrator of several; refuse columns that do not fit."""
    if isinstance(calibrator, ScoreCalibrator):
        if len(options.score) != 1:
            refuse(
                "--score must name one column for a calibrator of two classes, "
                f"got {list_names(options.score)}"
            )
        return None
    classes = ClassLabels(tuple(str(one) for one in calibrator.classes_.tolist()))
    check_columns(options)
    if len(options.score) != len(classes.names):
        refuse(
            f"--score must name a column for each of {list_names(classes.names)}, in "
            f"that order, got {list_names(options.score)}"
        )
    return classes


COMMAND = Command(
    run,
    "calibrate scores by a saved calibrator",
    "Calibrate scores of a classifier by a calibrator that was saved.",
    _EPILOG,
    (
        ("calibrator", "a file that `localexpert calibrate --save` wrote", {}),
        ("table", "rows with a score", {}),
        SCORE,
        ("--label", "two different values or more, where they are known", COLUMN),
        POSITIVE,
        ("--interval", "lower and upper ends too", FLAG),
        (
            "--out",
            "default: stdout",
            {"default": STDOUT, "type": read_out, "metavar": "CALIBRATED.csv"},
        ),
    ),
    decimal=".",
)
