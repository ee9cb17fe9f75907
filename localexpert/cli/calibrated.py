"""Scores and labels of a table, and the probabilities that are written beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from calibration import ScoreCalibrator
from calibration.typing import Float64Array
from localexpert.cli.output import Conventions, note, write_table
from localexpert.cli.table_model import TableModel, as_table_model, load_object
from localexpert.reading.files import Frame
from localexpert.reading.labels import (
    find_two_labels,
    read_scores,
    read_words,
    refuse_if,
)
from localexpert.reading.messages import list_names, load_pandas, refuse
from localexpert.reporting.page import PROBABILITY_LOSSES

#: The column that is added to a table.
CALIBRATED = "calibrated"
_FITTED = "as those that the calibrator was fitted to"


def load_model(options: Any) -> TableModel | ScoreCalibrator:
    """Return a model of tables, or a calibrator, whose columns must be named."""
    thing = load_object(options.model, "model or calibrator")
    if not is_of_scores(thing):
        return as_table_model(thing, options.model)
    for name in ("score", "label"):
        if not getattr(options, name):
            refuse(f"--{name} must name a column: {options.model} is a calibrator")
    calibrator: ScoreCalibrator = thing
    return calibrator


def is_of_scores(thing: Any) -> bool:
    """Say whether something is a calibrator of one score a row."""
    # Those that take either shape have classes if they were fitted on columns.
    return isinstance(thing, ScoreCalibrator) and not hasattr(thing, "classes_")


def scores_of(
    options: Any, frame: Frame, scale: str, hint: str = _FITTED
) -> Float64Array:
    """Return the scores that the options name, (n,) or of several classes (n, k)."""
    how = options.score, options.decimal, options.thousands
    return read_scores(frame, *how, probability=scale == "probability", hint=hint)


def labels_of(
    options: Any, frame: Frame, classes: Sequence[str] = ()
) -> NDArray[np.intp]:
    """Return the place of each row's label among the classes (n,); of two by default.

    Two classes are found in the labels, of which both must be there.
    """
    texts = read_words(frame, options.label, "label")
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


def check_several(options: Any) -> bool:
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


def name_answers(classes: Sequence[str]) -> list[str]:
    """Return the names of the columns of probabilities; of two classes there is one."""
    return [f"{CALIBRATED}_{name}" for name in classes] or [CALIBRATED]


def refuse_clash(frame: Frame, names: Iterable[str]) -> None:
    """Refuse a table that has a column of such a name already."""
    for name in set(names) & set(frame.columns):
        refuse(f"{frame.attrs['path']} has a column {name!r} already; rename it")


def write_beside(
    options: Any, frame: Frame, answers: Mapping[str, Float64Array]
) -> None:
    """Write the table with more columns (n,) as the options say."""
    more = load_pandas().DataFrame(answers, index=frame.index)
    whole = load_pandas().concat([frame, more], axis=1)
    write_table(options.out, "row", [(whole, Conventions.of(options, frame))])


def as_probabilities(scores: Float64Array, scale: str) -> Float64Array | None:
    """Return what scores say by themselves; None where they say an order only.

    Scores (n,) are of one class of two, (n, k) of k classes.
    """
    if scale == "real":
        return None
    if scale == "probability":
        return scores
    return np.asarray(expit(scores) if scores.ndim == 1 else softmax(scores, axis=1))


def tell_losses(
    y: NDArray[np.intp], scores: Float64Array, scale: str, after: Float64Array
) -> None:
    """Say on stderr what calibration changes, of probabilities (n,) or (n, k)."""
    before = as_probabilities(scores, scale)
    for name, loss in PROBABILITY_LOSSES.items():
        told = "" if before is None else f"{loss(y, before):.5f} before, "
        note(f"{name} {told}{loss(y, after):.5f} after")
