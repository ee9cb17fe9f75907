"""Fits of more rows than memory: to a sample, calibrated by all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.cli.args import format_of
from localexpert.cli.console import note
from localexpert.cli.table_model import Origin, TableModel
from localexpert.large.fit_large import fit_large
from localexpert.reading import ColumnReader
from localexpert.reading.files import Frame, join_tables, read_tables
from localexpert.reading.labels import read_numbers, read_words, refuse_if
from localexpert.reading.messages import count, refusing
from localexpert.reading.reader import tell_odd_cells
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.climatology import Climatology
from localexpert.reporting.evidence import recall_training

# Rows that columns are learned from.
_MOST_LOOKED_AT = 100_000
# And rows that are read at once.
_PART = 100_000


def fit_large_rows(
    model: LocalExpertRegressor,
    reader: ColumnReader,
    options: Any,
    paths: list[str],
    name: str,
    n_rows: int,
    most: int,
) -> TableModel:
    """Fit a model to at most so many rows of files, and calibrate it by the others."""
    seen = _look_at(options, paths, n_rows)
    reader.fit(seen)
    rows = _Rows(options, paths, reader)
    note(f"learned what the columns are from {count(len(seen), 'row')} of all files")
    with refusing(f"cannot learn from {name}", TypeError, ValueError, OSError):
        fitted = fit_large(
            model,
            rows.parts,
            rows.names["target"],
            max_train_rows=most,
            weight=rows.names.get("weight"),
            key=rows.names.get("group"),
            learning_curve=not options.fast,
        )
    choices = getattr(getattr(fitted, "report_", None), "choices", {})
    for of in ("large", "learning curve"):
        if of in choices:
            note(f"{of}: {choices[of]['chosen']}")
    note("scores out of fold are of the sample")
    known = recall_training(fitted)
    assert known is not None
    climatology = Climatology.of(fitted, known.y, known.weight)
    origin = Origin.of(name, rows.n_rows, fitted, climatology)
    return TableModel(reader, fitted, climatology, origin)


def _look_at(options: Any, paths: list[str], n_rows: int) -> Frame:
    """Return rows from all over files; the first of each part is among them."""
    rng = np.random.default_rng(0)
    share = min(_MOST_LOOKED_AT / n_rows, 1.0)
    found = []
    for frame in read_tables(paths, format_of(options), n_rows=_PART):
        drawn = rng.random(len(frame)) < share
        drawn[0] = True
        part = frame[drawn]
        part.attrs = frame.attrs
        found.append(part)
    return join_tables(found, options.drop)


class _Rows:
    """Rows of files that have a target, as often as they are asked for.

    Parameters
    ----------
    options : Namespace
        Of `localexpert fit`.
    paths : list of str
    reader : ColumnReader
        Fitted.
    """

    def __init__(self, options: Any, paths: list[str], reader: ColumnReader) -> None:
        self.options, self.paths, self.reader = options, paths, reader
        roles = {role: getattr(options, role) for role in ("target", "weight", "group")}
        self.columns = {role: name for role, name in roles.items() if name is not None}
        # Names that no feature has.
        beside = max(map(len, reader.feature_names_)) * "'"
        self.names = {role: role + beside for role in self.columns}
        self.n_rows, self._is_known = 0, False

    def parts(self) -> Iterator[Frame]:
        """Yield the rows part by part; the first pass tells what is odd."""
        tells, self._is_known, n_rows = not self._is_known, True, 0
        odd: list[Any] = []
        wanted = {*self.reader.feature_names_, *self.columns.values()}
        for frame in read_tables(self.paths, format_of(self.options), wanted, _PART):
            y = self.reader.read_target(frame, odd=odd)
            known = np.isfinite(y)
            part = self.reader.transform(frame, odd=odd)
            for role, values in self._read_others(frame).items():
                part[self.names[role]] = values
            part[self.names["target"]] = y
            n_rows += int(known.sum())
            part = part[known]
            place = f"{frame.index.names[-1]}s from {frame.index[0]} on"
            part.attrs["name"] = f"{frame.attrs['path']}, {place}"
            yield part
        self.n_rows = n_rows
        if tells:
            tell_odd_cells(odd)

    def _read_others(self, frame: Frame) -> dict[str, Any]:
        """Return weights and groups of rows, as far as they are asked for."""
        told: dict[str, Any] = {}
        if "weight" in self.columns:
            told["weight"] = read_weight(self.options, self.reader, frame)
        if "group" in self.columns:
            told["group"] = read_words(frame, self.columns["group"], "group")
        return told


def read_weight(options: Any, reader: ColumnReader, frame: Frame) -> Float64Array:
    """Return the weights of rows (n,), of which none is missing or below zero."""
    how = reader.decimal_, options.thousands, options.missing
    weight = read_numbers(frame, options.weight, "weight", *how)
    rule = f"weight {options.weight!r} must hold numbers from 0 on"
    refuse_if(~(weight >= 0.0), frame, options.weight, rule)
    return weight
