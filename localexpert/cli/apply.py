r"""Calibrate scores by a calibrator that was saved.

The output is the table with one column more, 'calibrated'; of a calibrator of several
classes with one for each, 'calibrated_a' and so on. A column of scores is of the class
that its name ends with, as p_a, in any order, or that --classes says.
With --interval come 'calibrated_low' and 'calibrated_high': of Venn-Abers its two
probabilities, one of which is calibrated whatever the scores are; of binning and
isotonic calibrators 90 % intervals for the share that comes true. Where the label is
known, stderr tells how good probabilities are before and after; only rows that the
calibrator has not seen tell the truth.

for example:
  localexpert calibrate scores.csv --score s --label y --method venn_abers \
      --save calibrator.zip --out calibrated.csv
  localexpert apply calibrator.zip new_scores.csv --score s --interval --out new.csv
  localexpert apply calibrator.zip test_scores.csv --score s --label y --out test.csv
  localexpert apply three.zip new.csv --score p_hen,p_cat,p_ox --out animals.csv
"""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration import MulticlassCalibrator, ScoreCalibrator
from localexpert.cli import args, calibrated
from localexpert.cli.output import check_table
from localexpert.cli.table_model import load_object
from localexpert.reading.files import read_table
from localexpert.reading.labels import match_columns
from localexpert.reading.messages import list_names, refuse, refusing

_ENDS = f"{calibrated.CALIBRATED}_low", f"{calibrated.CALIBRATED}_high"


_OPTIONS = """\
calibrator  a file that `localexpert calibrate --save` wrote
table  rows with a score
--score
--positive
--label COLUMN  two different values or more, where they are known
--classes
--interval  lower and upper ends too
"""


def add_options(parser: args.Parser) -> None:
    """Add the arguments of the command."""
    args.add_options(parser, _OPTIONS, score={"required": True})
    args.add_out(parser, "CALIBRATED.csv")
    args.add_table_options(parser)


def run(options: Any) -> None:
    """Load the calibrator, read the scores, write probabilities."""
    check_table(options.out, [options.calibrator, options.table])
    calibrator = load_object(options.calibrator, "calibrator")
    if not isinstance(calibrator, ScoreCalibrator | MulticlassCalibrator):
        kind = type(calibrator).__name__
        refuse(f"{options.calibrator} holds a {kind}, not a calibrator of scores")
    if options.interval and not hasattr(calibrator, "predict_interval"):
        refuse(
            "--interval needs a calibrator that tells one, such as venn_abers, "
            f"isotonic or histogram, got a {type(calibrator).__name__}"
        )
    if options.positive is not None and options.label is None:
        refuse("--positive says which --label is meant, and there is none")
    classes = _match_classes(calibrator, options)
    frame = read_table(options.table, args.format_of(options))
    names = calibrated.name_answers(classes)
    calibrated.refuse_clash(frame, [*names, *(_ENDS if options.interval else ())])
    scores = calibrated.scores_of(options, frame, calibrator.scale)
    what = f"cannot calibrate scores of {frame.attrs['path']}"
    with refusing(what, TypeError, ValueError):
        p = calibrator.predict(scores)
        answers = dict(zip(names, np.reshape(p, (len(p), -1)).T, strict=True))
        if options.interval:
            ends = calibrator.predict_interval(scores).T
            answers.update(zip(_ENDS, ends, strict=True))
    if options.label is not None:
        y = calibrated.labels_of(options, frame, classes)
        calibrated.tell_losses(y, scores, calibrator.scale, p)
    calibrated.write_beside(options, frame, answers)


def _match_classes(calibrator: Any, options: Any) -> list[str]:
    """Order the columns of scores as the classes of a calibrator of several.

    The order in which they are given says nothing.
    """
    several = calibrated.check_several(options)
    if calibrated.is_of_scores(calibrator):
        if several:
            refuse(
                "--score must name one column for a calibrator of two classes, "
                f"got {list_names(options.score)}"
            )
        return []
    names = [str(one) for one in calibrator.classes_.tolist()]
    found = match_columns(options.score, names, options.classes)
    options.score = sorted(found, key=lambda column: names.index(found[column]))
    return names
