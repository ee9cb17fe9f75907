r"""Calibrate scores by a calibrator that was saved.

The output is the table with one column more, 'calibrated'; of a calibrator of several
classes with one for each, 'calibrated_a' and so on. Columns of scores are matched to
its classes by what differs in their names, p_a to a, in any order, or by --classes.
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
from localexpert.reading.labels import Labels
from localexpert.reading.messages import list_names, refuse, refusing

_ENDS = f"{calibrated.CALIBRATED}_low", f"{calibrated.CALIBRATED}_high"


_OPTIONS = """\
calibrator  a file that `localexpert calibrate --save` wrote
table  rows with a score
--score
--positive
--label COLUMN  two different values or more, where they are known
--classes A,B,C  labels that several score columns stand for, in their order (default: \
what differs in the columns' names)
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


def _match_classes(calibrator: Any, options: Any) -> Labels | None:
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
        return None
    names = [str(one) for one in calibrator.classes_.tolist()]
    if len(options.score) != len(names):
        refuse(
            f"--score must name a column for each of {list_names(names)}, got "
            f"{list_names(options.score)}"
        )
    found = Labels.of_many(names, options.score, options.classes, "the calibrator")
    column_of = dict(zip(found.names, options.score, strict=True))
    if options.classes is not None:
        if set(column_of) != set(names):
            refuse(f"--classes must name each of {list_names(names)} once")
    elif not all(str(name) in column for name, column in column_of.items()):
        refuse(
            f"the names of {list_names(options.score)} do not tell which class each is "
            f"of: name their classes by --classes, from {list_names(names)}"
        )
    options.score = [column_of[name] for name in names]
    return Labels(tuple(names))
