"""Fits of more rows than memory: to a sample, calibrated by all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from localexpert.cli.cells import Dialect
from localexpert.cli.columns import ColumnRule
from localexpert.cli.console import count, join_few, note, refuse, refusing, warn
from localexpert.cli.large_rows import LargeRows, look_at
from localexpert.cli.model_files import TableModel
from localexpert.cli.origin import Origin
from localexpert.cli.read_file import name_input
from localexpert.cli.row_counts import is_stream
from localexpert.cli.schema import Schema
from localexpert.cli.training_rows import TrainingRows, tell_of_commas
from localexpert.large.fit_large import fit_large
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.climatology import Climatology
from localexpert.reporting.training import recall_training


def check_large(options: Any, paths: Sequence[str], why: str) -> None:
    """Refuse what only a fit in memory can do; `why` says that there are too many."""
    for path in filter(is_stream, paths):
        refuse(
            f"more rows than are learned from must be in files, which are read several "
            f"times, got {name_input(path)} among {why}"
        )
    if options.recalibrate == "conformal":
        refuse(
            f"--recalibrate conformal needs a fit in memory, got {why}; say "
            "--recalibrate pit or a larger --max-train-rows"
        )


def fit_large_rows(
    model: LocalExpertRegressor,
    options: Any,
    paths: Sequence[str],
    name: str,
    n_rows: int,
    most: int,
    dialect: Dialect,
) -> TableModel:
    """Fit a model to at most so many rows of files, and calibrate it by the others."""
    seen = TrainingRows.learn(
        look_at(options, paths, name, n_rows), options, dialect, tells=False
    )
    note(f"learned what the columns are from {count(len(seen.y), 'row')} of all files")
    tell_of_commas(seen.schema)
    rows = LargeRows(options, paths, seen)
    with refusing(f"cannot learn from {name}", TypeError, ValueError, OSError):
        fitted = fit_large(
            model,
            rows.parts,
            rows.target,
            max_train_rows=most,
            weight=rows.weight,
            key=rows.key,
            learning_curve=not options.fast,
        )
    schema = _keep_met(seen.schema, fitted)
    training = recall_training(fitted)
    assert training is not None
    assert training.oof is not None
    # They are put together from what the model keeps, and miss by rounding.
    y, weight = np.clip(training.y, rows.low, rows.high), training.weight
    climatology = Climatology.of(fitted, y, weight)
    told = training.oof, y, weight, climatology
    origin = Origin.of_forecasts(name, rows.n_rows, *told)
    _tell(fitted)
    return TableModel(schema, fitted, climatology, origin)


def _keep_met(schema: Schema, model: LocalExpertRegressor) -> Schema:
    """Return a schema of those categories that the sample has: others are missing."""
    names, codes = model.reader_.columns.names or (), model.reader_.category_codes
    rules: list[ColumnRule] = []
    lost: list[str] = []
    place = 0
    for rule in schema.rules:
        if rule.kind == "category":
            met = codes.get(place, {})
            kept = tuple(value for value in rule.categories if value in met)
            if len(kept) < len(rule.categories):
                n_lost = count(len(rule.categories) - len(kept), "value")
                lost.append(f"{rule.name!r} ({n_lost})")
            rules.append(replace(rule, categories=kept))
        else:
            rules.append(rule)
        if rule.kind != "dropped":
            place += len(rule.features(np.empty(0)))
    assert place == len(names)
    if lost:
        warn(f"categories not in the sample, taken as missing: {join_few(lost)}")
    return replace(schema, rules=tuple(rules))


def _tell(model: LocalExpertRegressor) -> None:
    """Say how many rows were used for what, and what more of them would gain."""
    report = getattr(model, "report_", None)
    choices = {} if report is None else report.choices
    for of in ("large", "learning curve"):
        if of in choices:
            note(f"{of}: {choices[of]['chosen']}")
    note("scores out of fold are of the sample")
