"""`calibrate` and `apply`: scores of classes made probabilities, beside their table."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any
from warnings import catch_warnings, filterwarnings

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import calibration
from calibration import MulticlassCalibrator, ScoreCalibrator
from calibration.typing import Float64Array
from localexpert.cli.output import check_file, check_table, note, write_table
from localexpert.cli.table_model import (
    TableModel,
    as_table_model,
    beside,
    load_object,
    save_object,
)
from localexpert.reading.columns import where
from localexpert.reading.files import STDIN, Frame, name_input, read_table
from localexpert.reading.reader import read_numbers, read_words, refuse_if
from localexpert.reading.texts import (
    as_whole,
    count,
    join_few,
    list_names,
    read_yes_no,
    refuse,
    refusing,
)
from localexpert.reporting.page import PROBABILITY_LOSSES, report_calibration

# The column that is added to a table, and those of --interval.
_CALIBRATED = "calibrated"
_ENDS = f"{_CALIBRATED}_low", f"{_CALIBRATED}_high"
_ERRORS = TypeError, ValueError
# The sum of a row's probabilities may be off by the rounding to four digits.
_ROUNDING = 1e-3


def calibrate(options: Any) -> None:
    """Read scores and labels, fit, and write calibrated scores."""
    _check_files(options)
    several = _check_task(options)
    frame = read_table(options.table, options.format)
    scores = scores_of(options, frame, options.scale)
    classes = _find_classes(options, frame) if several else []
    y = labels_of(options, frame, classes)
    known = np.array(classes)[y] if several else y
    out = frame
    if options.new is not None:
        out = read_table(options.new, options.format)
    _refuse_clash(out, names := _name_answers(classes))
    calibrator = _make_calibrator(options, classes)
    with refusing(f"cannot calibrate by {frame.attrs['path']}", *_ERRORS):
        fitted = clone(calibrator).fit(scores, known)
    if options.new is None or options.report is not None:
        answers = honest = _out_of_fold(calibrator, scores, y, known, options)
    if options.new is not None:
        new = scores_of(options, out, options.scale)
        with refusing(f"cannot calibrate scores of {out.attrs['path']}", *_ERRORS):
            answers = fitted.predict(new)
    if options.report is not None:
        _write_report(fitted, scores, y, honest, options)
    write_table(options, "row", [beside(out, _by_name(names, answers))])
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
    several = _check_several(options)
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


def _check_several(options: Any) -> bool:
    """Return whether there are several columns of scores; refuse what is none."""
    columns, several = options.score, len(options.score) > 1
    if not columns or len(set(columns)) < len(columns):
        refuse(
            "--score must name a column, or one for each class, and each once, got "
            f"{list_names(columns) or 'none'}"
        )
    wrong, right = ("positive", "classes") if several else ("classes", "positive")
    if getattr(options, wrong):
        number = "several columns" if several else "one column"
        refuse(f"--{wrong} says nothing of {number} of --score: see --{right}")
    return several


def _find_classes(options: Any, frame: Frame) -> list[str]:
    """Return the classes of the columns; print them unless the options name them."""
    held = options.classes or read_labels(options, frame)
    found = match_columns(options.score, sorted(set(held)), options.classes)
    if not options.classes:
        pairs = join_few([f"{column!r}: {name!r}" for column, name in found.items()])
        note(f"columns and their classes: {pairs}")
    return list(found.values())


def _make_calibrator(options: Any, classes: list[str]) -> Any:
    # Columns of two classes are calibrated as those of more.
    made: Any = calibration.make_calibrator(
        options.method, n_classes=3 if classes else 2, random_state=options.seed
    )
    named = {"classes": classes} if classes else {}
    return made.set_params(scale=options.scale, **named)


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
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=options.seed)
    with catch_warnings(), refusing(f"cannot calibrate by {path}", *_ERRORS):
        # Some of several classes may have fewer rows than there are folds.
        filterwarnings("ignore", message="The least populated class")
        answers: Float64Array = cross_val_predict(calibrator, scores, known, cv=folds)
    what = repr(_CALIBRATED) if options.new is None else options.report
    note(
        f"{what} is out of fold: each row by a calibrator fitted on the other "
        f"{n_folds - 1} of {n_folds} parts of {path}"
    )
    _tell_losses(y, scores, options.scale, answers)
    return answers


def _write_report(
    fitted: Any, scores: Float64Array, y: Any, honest: Float64Array, options: Any
) -> None:
    """Write the page on probabilities out of fold."""
    before = _as_probabilities(scores, options.scale)
    answers = ({} if before is None else {"before": before}) | {"after": honest}
    about = (
        f"{options.score[0]} of {os.path.basename(name_input(options.table))}, "
        f"calibrated by {type(fitted).__name__}, each row by one that had not seen it"
    )
    with refusing(f"cannot write --report {options.report!r}", OSError):
        report_calibration(y, answers, fitted, scores, options.report, about)
    note(f"wrote {options.report}")


def apply(options: Any) -> None:
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
    frame = read_table(options.table, options.format)
    names = _name_answers(classes)
    _refuse_clash(frame, [*names, *(_ENDS if options.interval else ())])
    scores = scores_of(options, frame, calibrator.scale)
    with refusing(f"cannot calibrate scores of {frame.attrs['path']}", *_ERRORS):
        p = calibrator.predict(scores)
        answers = _by_name(names, p)
        if options.interval:
            answers |= _by_name(_ENDS, calibrator.predict_interval(scores))
    if options.label is not None:
        y = labels_of(options, frame, classes)
        _tell_losses(y, scores, calibrator.scale, p)
    write_table(options, "row", [beside(frame, answers)])


def _match_classes(calibrator: Any, options: Any) -> list[str]:
    """Order the columns of scores as the classes of a calibrator of several.

    The order in which they are given says nothing.
    """
    _check_several(options)
    if is_of_scores(calibrator):
        check_one_column(options)
        return []
    names = [as_whole(str(one)) for one in calibrator.classes_.tolist()]
    found = match_columns(options.score, names, options.classes)
    options.score = sorted(found, key=lambda column: names.index(found[column]))
    return names


def check_one_column(options: Any) -> None:
    """Refuse several columns of scores for a calibrator of two classes."""
    if len(options.score) > 1:
        rule = "--score must name one column for a calibrator of two classes"
        refuse(f"{rule}, got {list_names(options.score)}")


def load_model(options: Any) -> TableModel | ScoreCalibrator:
    """Return a model of tables, or a calibrator, whose columns must be named."""
    thing = load_object(options.model, "model or calibrator")
    if not is_of_scores(thing):
        model = as_table_model(thing, options.model)
        if model.partial:
            why = f"targets of {options.model} are known in part ({model.partial})"
            cure = (
                "`localexpert evaluate` scores new rows, `localexpert fit` learns anew"
            )
            refuse(f"{why}, and this command takes known ones; {cure}")
        return model
    for name in ("score", "label"):
        if not getattr(options, name):
            refuse(f"--{name} must name a column: {options.model} is a calibrator")
    calibrator: ScoreCalibrator = thing
    return calibrator


def is_of_scores(thing: Any) -> bool:
    """Say whether something is a calibrator of one score a row."""
    # Those that take either shape have classes if they were fitted on columns.
    return isinstance(thing, ScoreCalibrator) and not hasattr(thing, "classes_")


def scores_of(options: Any, frame: Frame, scale: str) -> Float64Array:
    """Return the scores that the options name, (n,) or of several classes (n, k).

    Probabilities must lie in [0, 1], and those of k columns add up to 1.
    """
    hint = "(see --scale of calibrate)"
    columns = []
    for name in options.score:
        scores = read_numbers(frame, name, "score")
        score = f"score {name!r} must"
        refuse_if(np.isnan(scores), frame, name, f"{score} not have gaps")
        if scale == "probability":
            rule = f"{score} lie in [0, 1] {hint}"
            refuse_if((scores < 0.0) | (scores > 1.0), frame, name, rule)
        columns.append(scores)
    if len(columns) == 1:
        return columns[0]
    table = np.column_stack(columns)
    if scale == "probability":
        sums = table.sum(axis=1)
        wrong = np.abs(sums - 1.0) > _ROUNDING
        if wrong.any():
            row = int(np.argmax(wrong))
            refuse(
                f"scores {list_names(options.score)} must add up to 1 {hint}, "
                f"got {sums[row]:.6g} in {where(frame, row)}"
            )
        # The rest of the difference is the rounding in the file.
        table /= sums[:, None]
    return table


def read_labels(options: Any, frame: Frame) -> NDArray[np.object_]:
    """Return the label of each row as a text (n,), and 1.0 as "1"."""
    texts = read_words(frame, options.label, "label")
    return np.array([as_whole(text) for text in texts], dtype=object)


def labels_of(
    options: Any, frame: Frame, classes: Sequence[str] = ()
) -> NDArray[np.intp]:
    """Return the place of each row's label among the classes (n,); of two by default.

    Two classes are found in the labels, of which both must be there.
    """
    texts = read_labels(options, frame)
    what = f"label {options.label!r} of {frame.attrs['path']}"
    if not classes:
        negative, positive = find_two_labels(texts, options.positive, what=what)
        if negative is None or positive not in texts:
            held = list_names(sorted(set(texts)))
            refuse(f"{what} must hold two different values, got {held}")
        classes = negative, positive
    places = {name: place for place, name in enumerate(classes)}
    codes = np.array([places.get(text, -1) for text in texts], dtype=np.intp)
    rule = f"label {options.label!r} must be one of {list_names(classes)}"
    refuse_if(codes < 0, frame, options.label, rule)
    return codes


def _name_answers(classes: Sequence[str]) -> list[str]:
    """Return the names of the columns of probabilities; of two classes there is one."""
    return [f"{_CALIBRATED}_{name}" for name in classes] or [_CALIBRATED]


def _by_name(names: Sequence[str], p: Float64Array) -> dict[str, Float64Array]:
    """Return the columns of answers (n,) or (n, k) by their names."""
    return dict(zip(names, np.reshape(p, (len(p), -1)).T, strict=True))


def _refuse_clash(frame: Frame, names: Iterable[str]) -> None:
    """Refuse a table that has a column of such a name already."""
    for name in set(names) & set(frame.columns):
        refuse(f"{frame.attrs['path']} has a column {name!r} already; rename it")


def _as_probabilities(scores: Float64Array, scale: str) -> Float64Array | None:
    """Return what scores say by themselves; None where they say an order only.

    Scores (n,) are of one class of two, (n, k) of k classes.
    """
    if scale == "real":
        return None
    if scale == "probability":
        return scores
    return np.asarray(expit(scores) if scores.ndim == 1 else softmax(scores, axis=1))


def _tell_losses(
    y: NDArray[np.intp], scores: Float64Array, scale: str, after: Float64Array
) -> None:
    """Say on stderr what calibration changes, of probabilities (n,) or (n, k)."""
    before = _as_probabilities(scores, scale)
    for name, loss in PROBABILITY_LOSSES.items():
        first = "" if before is None else f"{loss(y, before):.5f} before, "
        note(f"{name} {first}{loss(y, after):.5f} after")


def find_two_labels(
    held: Collection[str],
    positive: str | None = None,
    known: Collection[str] = (),
    what: str = "label",
) -> tuple[str | None, str]:
    """Return the negative one of two labels, None until it is met, and the positive.

    The positive one is yes, the greater number or the later word, unless it is named;
    known are labels that were met before.
    """
    met = sorted({*held, *known})
    if len(met) > 2:
        refuse(
            f"{what} must hold two different values, got {len(met)}: {list_names(met)}"
        )
    if positive is None:
        if len(met) == 1:
            refuse(
                f"{what} holds {met[0]!r} alone: say by --positive which class is meant"
            )
        try:
            positive = max(met, key=Decimal)
        except InvalidOperation:
            # In some languages the word for no comes after the word for yes.
            positive = met[0 if read_yes_no(met).tolist() == [1.0, 0.0] else -1]
        note(f"the probability of {positive!r} is meant (--positive says another)")
    others = [label for label in met if label != positive]
    if len(others) > 1:
        refuse(f"--positive must be one of {list_names(met)}, got {positive!r}")
    return (others[0] if others else None), positive


def match_columns(
    columns: Sequence[str], labels: Collection[str], classes: Sequence[str] = ()
) -> dict[str, str]:
    """Return the label that each column of scores is of.

    It is the one that the column's name ends with, or that `classes` has in its place.
    """
    if not classes:
        found = {}
        for column in columns:
            # Programs that write 1.0 for 1 also name a column by it.
            ends = re.sub(r"(?<=\d)\.0$", "", column), column
            one, other = ([at for at in labels if end.endswith(at)] for end in ends)
            found[column] = max(one or other, key=len, default="")
    else:
        found = dict(zip(columns, classes, strict=False))
    if sorted(classes or found.values()) != sorted(labels) or len(found) != len(labels):
        refuse(
            f"--score must name a column for each of {list_names(labels)}, whose name "
            "ends with it, or --classes name the label of each column, in their order, "
            f"got {list_names(classes or columns)}"
        )
    return found
