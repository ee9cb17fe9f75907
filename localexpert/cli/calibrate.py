"""`localexpert calibrate`: scores and labels in, probabilities out."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import calibration
from calibration import ScoreCalibrator
from calibration.typing import Float64Array
from localexpert.cli.cells import Dialect
from localexpert.cli.command import Command
from localexpert.cli.console import count, list_names, note, refuse, refusing
from localexpert.cli.model_files import save_object
from localexpert.cli.options import COLUMN, REQUIRED, SEED, read_with, whole_number
from localexpert.cli.out_column import OutColumn, copy_column
from localexpert.cli.output import (
    STDOUT,
    check_table_writable,
    check_writable,
    read_out,
    write_table,
)
from localexpert.cli.raw_table import RawTable

_METHODS: dict[str, Callable[..., ScoreCalibrator]] = {
    "auto": calibration.AutoCalibrator,
    "abb": calibration.ABBCalibrator,
    "bagged_isotonic": calibration.BaggedIsotonicCalibrator,
    "bbq": calibration.BBQCalibrator,
    "beta": calibration.BetaCalibrator,
    "centered_isotonic": calibration.CenteredIsotonicCalibrator,
    "elite": calibration.ELiTECalibrator,
    "enir": calibration.ENIRCalibrator,
    "histogram": calibration.HistogramCalibrator,
    "isotonic": calibration.IsotonicCalibrator,
    "logistic": calibration.LogisticCalibrator,
    "piecewise": calibration.PiecewiseLogisticCalibrator,
    "platt": calibration.PlattCalibrator,
    "quadratic": calibration.QuadraticCalibrator,
    "temperature": calibration.TemperatureCalibrator,
    "venn_abers": calibration.VennAbersCalibrator,
}
_SCALES = ("probability", "logit", "real")
_LOSSES = {"log loss": calibration.log_loss, "Brier score": calibration.brier_score}
_NAME = "calibrated"
_EPILOG = f"""\
Learns from scores and labels of rows how often each score comes true. With --new the
scores of other rows are calibrated; without it those of the same rows, each by a
calibrator fitted on other rows (out of fold), so that they may be judged fairly.
The output is the table with one column more, {_NAME!r}.

methods: {textwrap.fill(", ".join(_METHODS), 78, subsequent_indent="  ")}

examples:
  localexpert calibrate scores.csv --score s --label y --out calibrated.csv
  localexpert calibrate scores.csv --score s --label sick --positive yes \\
      --new new_scores.csv --method isotonic --out new_probabilities.csv
"""


def run(options: Any) -> None:
    """Read scores and labels, fit, and write calibrated scores."""
    inputs = [name for name in (options.table, options.new) if name is not None]
    check_table_writable(options.out, inputs)
    if options.save is not None:
        check_writable(options.save, "--save", [*inputs, options.out])
    table = read_with(options, options.table)
    scores = _read_scores(table, options)
    y = _read_labels(table, options)
    out = table if options.new is None else read_with(options, options.new)
    if _NAME in out.columns:
        refuse(f"{out.path} has a column {_NAME!r} already; rename it")
    calibrator = _make_calibrator(options)
    with refusing(f"cannot calibrate by {options.table}", TypeError, ValueError):
        fitted = clone(calibrator).fit(scores, y)
    if options.new is None:
        answers = _out_of_fold(calibrator, scores, y, options)
    else:
        scores = _read_scores(out, options)
        what = f"cannot calibrate the scores of {options.new}"
        with refusing(what, TypeError, ValueError):
            answers = fitted.predict(scores)
    dialect = Dialect(options.decimal)
    columns = {name: copy_column(out, name, dialect) for name in out.columns}
    write_table(options.out, {**columns, _NAME: OutColumn(answers)}, "row")
    if options.save is not None:
        save_object(fitted, options.save, "--save")
        note(f"saved {options.save}, fitted on all {count(len(y), 'row')}")


def _read_scores(table: RawTable, options: Any) -> Float64Array:
    scores = table.numbers(options.score, "score", Dialect(options.decimal))
    score = f"score {options.score!r} must"
    table.refuse_if(np.isnan(scores), options.score, f"{score} not have gaps")
    if options.scale == "probability":
        rule = f"{score} lie in [0, 1] unless --scale says logit or real"
        table.refuse_if((scores < 0.0) | (scores > 1.0), options.score, rule)
    return scores


def _read_labels(table: RawTable, options: Any) -> NDArray[np.intp]:
    """Return 1 for the positive class and 0 for the other, shape (n,)."""
    texts = table.words(options.label, "label", Dialect(options.decimal))
    classes = sorted(set(texts))
    if len(classes) != 2:
        refuse(
            f"label {options.label!r} of {table.path} must hold two different values, "
            f"got {len(classes)}: {list_names(classes)}"
        )
    positive = options.positive
    if positive is None:
        positive = _greater(classes)
    if positive not in classes:
        refuse(f"--positive must be one of {list_names(classes)}, got {positive!r}")
    return np.asarray(texts == positive, dtype=np.intp)


def _greater(classes: list[str]) -> str:
    """Return the greater number, or the later word."""
    try:
        return max(classes, key=Decimal)
    except InvalidOperation:
        return classes[-1]


def _make_calibrator(options: Any) -> ScoreCalibrator:
    calibrator = _METHODS[options.method](scale=options.scale)
    if "random_state" in calibrator.get_params():
        calibrator.set_params(random_state=options.random_state)
    return calibrator


def _out_of_fold(
    calibrator: ScoreCalibrator,
    scores: Float64Array,
    y: NDArray[np.intp],
    options: Any,
) -> Float64Array:
    """Return probabilities by calibrators that have not seen the row, shape (n,).

    What calibration changes is said on stderr, where scores can be scored.
    """
    path, rarer = options.table, int(min(y.sum(), len(y) - y.sum()))
    if rarer < 2:
        refuse(
            f"{path} must hold each label at least twice to be calibrated out of fold"
        )
    n_folds = min(options.folds, rarer)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=options.random_state)
    with refusing(f"cannot calibrate by {path}", TypeError, ValueError):
        answers: Float64Array = cross_val_predict(calibrator, scores, y, cv=folds)
    note(
        f"{_NAME!r} is out of fold: each row by a calibrator fitted on the other "
        f"{n_folds - 1} of {n_folds} parts of {path}"
    )
    if options.scale == "probability":
        for name, loss in _LOSSES.items():
            before, after = loss(y, scores), loss(y, answers)
            note(f"{name} {before:.5f} before, {after:.5f} after")
    return answers


COMMAND = Command(
    run,
    "turn a classifier's scores into probabilities",
    "Turn scores of a two-class classifier into probabilities.",
    _EPILOG,
    (
        ("table", "rows with a score and a label", {}),
        ("--score", "greater means likelier", COLUMN | REQUIRED),
        ("--label", "two different values", COLUMN | REQUIRED),
        (
            "--positive",
            "the class whose probability is meant (default: the greater of the two)",
            {"metavar": "LABEL"},
        ),
        ("--new", "rows to calibrate instead", {"metavar": "TABLE"}),
        (
            "--method",
            "see below (default: auto, which tries several and may do nothing)",
            {"choices": tuple(_METHODS), "default": "auto", "metavar": "METHOD"},
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
            "keep it, for `calibration` in Python",
            {"metavar": "CALIBRATOR.zip"},
        ),
        (
            "--folds",
            "parts of the rows without --new (default: 10)",
            whole_number(2, default=10),
        ),
        ("--seed", "another seed, another answer (default: 0)", SEED),
    ),
    decimal=".",
)
