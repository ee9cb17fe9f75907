r"""Turn a classifier's scores into probabilities.

Learns from scores and labels of rows how often each score comes true. With --new the
scores of other rows are calibrated; without it those of the same rows, each by a
calibrator fitted on other rows (out of fold), so that they may be judged fairly.
The output is the table with one column more, 'calibrated', written as the input is.

Scores of several classes stand in a column for each: --score p_a,p_b,p_c. A column is
of the label that its name ends with, or that --classes says. Rows add up to 1, unless
they are logits, and the output has a column for each class, 'calibrated_a' and so on.

methods of two classes: auto, abb, bagged_isotonic, bbq, beta, centered_isotonic, elite,
  enir, histogram, isotonic, logistic, nadaraya_watson, piecewise, platt, quadratic,
  temperature, venn_abers
of several classes these, one for each class, or all at once:
  auto, matrix, shallow_net, temperature, vector

for example:
  localexpert calibrate scores.csv --score s --label y --out calibrated.csv
  localexpert calibrate scores.csv --score s --label y --method venn_abers \
      --save calibrator.zip --report calibration.html --out calibrated.csv
  localexpert calibrate scores.csv --score s --label sick --positive yes \
      --new new_scores.csv --method isotonic --out new_probabilities.csv
  localexpert calibrate three.csv --score p_ox,p_hen,p_cat --label animal \
      --method matrix --save calibrator.zip --out calibrated.csv
"""

from __future__ import annotations

import os
from typing import Any
from warnings import catch_warnings, filterwarnings

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import calibration
from calibration.typing import Float64Array
from localexpert.cli import args, calibrated
from localexpert.cli.output import check_file, check_table, note
from localexpert.cli.table_model import save_object
from localexpert.reading.files import STDIN, Frame, name_input, read_table
from localexpert.reading.labels import match_columns, read_words
from localexpert.reading.messages import count, join_few, refuse, refusing
from localexpert.reporting.page import report_calibration

_ERRORS = TypeError, ValueError


_OPTIONS = """\
table  rows with a score and a label
--score
--positive
--label COLUMN  two different values, or more
--classes
--new TABLE  rows to calibrate instead
--method METHOD  see below (default: auto, which tries several and may do nothing)
--scale probability|logit|real  what a score is (default: probability)
--save CALIBRATOR.zip  keep it, for `localexpert apply` or `calibration` in Python
--report PAGE.html  a page on scores before and after
--folds 2..  parts of the rows without --new (default: 10)
--seed 0..  another seed, another answer (default: 0)
"""


def add_options(parser: args.Parser) -> None:
    """Add the arguments of the command."""
    needed = {"required": True}
    args.add_options(
        parser,
        _OPTIONS,
        score=needed,
        label=needed,
        method={
            "default": "auto",
            "choices": calibration.calibrator_names(3),
        },
        scale={"default": "probability"},
        folds={"default": 10},
        seed=args.SEED,
    )
    args.add_out(parser, "CALIBRATED.csv")
    args.add_table_options(parser)


def run(options: Any) -> None:
    """Read scores and labels, fit, and write calibrated scores."""
    _check_files(options)
    several = _check_task(options)
    hint = f"unless --scale says logit{'' if several else ' or real'}"
    frame = read_table(options.table, args.format_of(options))
    scores = calibrated.scores_of(options, frame, options.scale, hint)
    classes = _find_classes(options, frame) if several else []
    y = calibrated.labels_of(options, frame, classes)
    known = np.array(classes)[y] if several else y
    out = frame
    if options.new is not None:
        out = read_table(options.new, args.format_of(options))
    calibrated.refuse_clash(out, names := calibrated.name_answers(classes))
    calibrator = _make_calibrator(options, classes)
    with refusing(f"cannot calibrate by {frame.attrs['path']}", *_ERRORS):
        fitted = clone(calibrator).fit(scores, known)
    if options.new is None or options.report is not None:
        answers = honest = _out_of_fold(calibrator, scores, y, known, options)
    if options.new is not None:
        new = calibrated.scores_of(options, out, options.scale, hint)
        with refusing(f"cannot calibrate scores of {out.attrs['path']}", *_ERRORS):
            answers = fitted.predict(new)
    if options.report is not None:
        _write_report(fitted, scores, y, honest, options)
    columns = np.reshape(answers, (len(answers), -1)).T
    calibrated.write_beside(options, out, dict(zip(names, columns, strict=True)))
    if options.save is not None:
        save_object(fitted, options.save, "--save")
        note(f"saved {options.save}, fitted on all {count(len(y), 'row')}")


def _check_files(options: Any) -> None:
    """Refuse files that cannot be read or written, before any work is done."""
    inputs = [name for name in (options.table, options.new) if name is not None]
    if inputs == [STDIN, STDIN]:
        refuse("standard input can be one table only: the other must be a file")
    check_table(options.out, inputs)
    taken = [*inputs, options.out]
    for option in ("save", "report"):
        if (path := getattr(options, option)) is not None:
            check_file(path, f"--{option}", taken)
            taken.append(path)


def _check_task(options: Any) -> bool:
    """Return whether there are several classes; refuse what means nothing of them."""
    several = calibrated.check_several(options)
    if not several and options.method not in calibration.calibrator_names():
        refuse(
            f"--method {options.method} is of several classes: --score must name a "
            f"column for each, got {options.score[0]!r} alone"
        )
    if several and options.scale == "real":
        refuse(
            "--scale real is an order of two classes: scores in several columns must "
            "be probability or logit"
        )
    if several and options.report is not None:
        refuse("--report is a page on two classes: there is none on several columns")
    return several


def _find_classes(options: Any, frame: Frame) -> list[str]:
    """Return the classes of the columns, which are told unless they are named."""
    held = options.classes or read_words(frame, options.label, "label")
    found = match_columns(options.score, sorted(set(held)), options.classes)
    if not options.classes:
        told = join_few([f"{column!r}: {name!r}" for column, name in found.items()])
        note(f"columns and their classes: {told}")
    return list(found.values())


def _make_calibrator(options: Any, classes: list[str]) -> Any:
    settings: dict[str, Any] = {"scale": options.scale}
    if classes:
        settings["classes"] = classes
    made: Any = calibration.make_calibrator(
        options.method,
        n_classes=max(len(classes), 2),
        random_state=options.random_state,
    )
    return made.set_params(**settings)


def _out_of_fold(
    calibrator: Any, scores: Float64Array, y: Any, known: NDArray[Any], options: Any
) -> Float64Array:
    """Return probabilities by calibrators that have not seen the row.

    What calibration changes is said on stderr, where scores can be scored.
    """
    path = name_input(options.table)
    # Two classes are left when any fold is held out.
    second = int(np.sort(np.bincount(y, minlength=2))[-2])
    if second < 2:
        refuse(f"{path} must hold two labels twice each to be calibrated out of fold")
    n_folds = min(options.folds, second)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=options.random_state)
    with catch_warnings(), refusing(f"cannot calibrate by {path}", *_ERRORS):
        # Of several classes some may have fewer rows than there are folds.
        filterwarnings("ignore", message="The least populated class")
        answers: Float64Array = cross_val_predict(calibrator, scores, known, cv=folds)
    what = repr(calibrated.CALIBRATED) if options.new is None else options.report
    note(
        f"{what} is out of fold: each row by a calibrator fitted on the other "
        f"{n_folds - 1} of {n_folds} parts of {path}"
    )
    calibrated.tell_losses(y, scores, options.scale, answers)
    return answers


def _write_report(
    fitted: Any, scores: Float64Array, y: Any, honest: Float64Array, options: Any
) -> None:
    """Write the page on probabilities out of fold."""
    before = calibrated.as_probabilities(scores, options.scale)
    answers = ({} if before is None else {"before": before}) | {"after": honest}
    about = (
        f"{options.score[0]} of {os.path.basename(name_input(options.table))}, "
        f"calibrated by {type(fitted).__name__}, each row by one that had not seen it"
    )
    with refusing(f"cannot write --report {options.report!r}", OSError):
        report_calibration(y, answers, fitted, scores, options.report, about)
    note(f"wrote {options.report}")
