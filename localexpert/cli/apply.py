"""`localexpert apply`: scores calibrated by a calibrator that was saved."""

from __future__ import annotations

from typing import Any

from calibration import ScoreCalibrator
from calibration.typing import Float64Array
from localexpert.cli.command import Command
from localexpert.cli.console import refuse, refusing
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
The output is the table with one column more, {CALIBRATED!r}. With --interval come
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
    table = read_with(options, options.table)
    names = [CALIBRATED, *(_ENDS if options.interval else ())]
    refuse_clash(table, names)
    hint = "as those that the calibrator was fitted to"
    scores = read_scores(table, options, calibrator.scale, hint)
    y = None if options.label is None else read_labels(table, options)
    with refusing(
        f"cannot calibrate the scores of {table.path}", TypeError, ValueError
    ):
        answers = _ask(calibrator, scores, options.interval)
    if y is not None:
        before = as_probabilities(scores, calibrator.scale)
        tell_losses(y, before, answers[CALIBRATED])
    write_beside(options, table, answers)


def _load(path: str) -> Any:
    """Return a calibrator of scores."""
    thing = load_object(path, "calibrator")
    if not isinstance(thing, ScoreCalibrator):
        refuse(f"{path} holds a {type(thing).__name__}, not a calibrator of scores")
    return thing


def _ask(
    calibrator: Any, scores: Float64Array, interval: bool
) -> dict[str, Float64Array]:
    """Return columns of answers (n,) by their names."""
    answers = {CALIBRATED: calibrator.predict(scores)}
    if interval:
        answers.update(zip(_ENDS, calibrator.predict_interval(scores).T, strict=True))
    return answers


COMMAND = Command(
    run,
    "calibrate scores by a saved calibrator",
    "Calibrate scores of a two-class classifier by a calibrator that was saved.",
    _EPILOG,
    (
        ("calibrator", "a file that `localexpert calibrate --save` wrote", {}),
        ("table", "rows with a score", {}),
        SCORE,
        ("--label", "two different values, where they are known", COLUMN),
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
