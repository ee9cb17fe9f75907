"""`TableModel`: a model with what it takes to use it on tables, and rows for it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.frozen import FrozenEstimator

from calibration import __version__
from calibration.storage import StorageError, load, save
from calibration.typing import Float64Array
from localexpert.cli.output import note, warn
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.reading import ColumnReader
from localexpert.reading.files import STDIN, Frame, read_bytes, read_tables
from localexpert.reading.reader import check_column, has_target, tell_odd_cells
from localexpert.reading.texts import (
    count,
    join_few,
    list_names,
    load_pandas,
    refuse,
    refusing,
)
from localexpert.regressor.recalibrated import RecalibratedRegressor
from localexpert.regressor.regressor import LocalExpertRegressor

#: A table as it is read, its features, and its targets (n,) or their ends (n, 2).
Known: TypeAlias = tuple[Frame, Any, Float64Array]

# Rows that are read and forecast at once.
BATCH = 20_000


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted regressor with what it takes to use it on tables.

    What `localexpert fit` saves, and `localexpert.load` returns.

    Parameters
    ----------
    reader : ColumnReader
        Makes features of a table as people have it.
    model : DistributionRegressor
        Fitted to such features.
    origin : dict of str to object
        "rows": number of training rows that have a target; of a model of the shell also
        "table": the training file without its folder, "fitted": the day (UTC) as
        YYYY-MM-DD, "version": of the package, "corrected": by what, and
        "corrected_rows": number of rows of the last correction.
    """

    reader: ColumnReader
    model: Any
    origin: dict[str, Any]

    @classmethod
    def of(cls, reader: ColumnReader, model: Any, table: str, n_rows: int) -> Self:
        """Return a model that was fitted to so many rows of a table today."""
        origin: dict[str, Any] = {"table": table, "rows": n_rows, "fitted": today()}
        return cls(reader, model, {**origin, "version": __version__, "corrected": ""})

    @property
    def target(self) -> str | None:
        """Name of the target, if it is known."""
        return self.reader.target_name

    @property
    def partial(self) -> str:
        """The options of targets that are known in part; "" if they are known."""
        return " ".join(f"--{role} {n}" for n, role in self.reader.told_by.items())

    @property
    def learner(self) -> Any:
        """The regressor that was fitted, inside of what corrects it."""
        inner = self.model
        while isinstance(inner, RecalibratedRegressor | FrozenEstimator):
            corrected = isinstance(inner, RecalibratedRegressor)
            inner = inner.model if corrected else inner.estimator
        return inner

    def predict_dist(self, frame: Any) -> PredictiveDistribution:
        """Return the predictive distribution of every row of a table.

        Parameters
        ----------
        frame : pandas.DataFrame or polars.DataFrame of shape (n, p)
            With the columns of the training file, by their names: texts as they stand
            in a file, or values with types.

        Returns
        -------
        PredictiveDistribution
        """
        dist: PredictiveDistribution = self.model.predict_dist(
            self.reader.transform(frame)
        )
        return dist

    def forecast(self, features: Any, path: str) -> PredictiveDistribution:
        """Return forecasts of features of a file; refuse rows that have none."""
        with refusing(f"cannot forecast {path}", TypeError, ValueError):
            dist: PredictiveDistribution = self.model.predict_dist(features)
        return dist


def today() -> str:
    """Return the day (UTC); the time would make two files of one model differ."""
    return dt.datetime.now(dt.UTC).date().isoformat()


def save_object(thing: Any, path: str, option: str) -> None:
    """Write a table model or a calibrator to a file."""
    with (
        refusing(f"cannot write {option} {path!r}", OSError),
        refusing(f"cannot save to {path!r}", StorageError),
    ):
        save(thing, path)


def load_object(path: str, what: str = "model of this package") -> Any:
    """Return whatever was saved to a file."""
    if path == STDIN:
        refuse("a model must be a file: only tables are read from standard input")
    read_bytes(path)  # says why a file cannot be opened in the words of other files
    with refusing(f"{path} is no sound {what}", StorageError):
        return load(path)


def load_table_model(path: str) -> TableModel:
    """Return what `localexpert fit` saved, or a regressor of Python with a frame."""
    return as_table_model(load_object(path, "model of `localexpert fit`"), path)


def as_table_model(thing: Any, path: str) -> TableModel:
    """Return what was loaded from a file, if it is a model of tables."""
    if isinstance(thing, LocalExpertRegressor):
        rows = {"rows": len(thing.oof_targets_)}
        return TableModel(ColumnReader.of_model(thing), thing, rows)
    if not isinstance(thing, TableModel):
        refuse(
            f"{path} holds a {type(thing).__name__}, not a model of `localexpert fit`"
        )
    return thing


def read_features(
    options: Any,
    model: TableModel,
    paths: Sequence[str],
    roles: Mapping[str, str],
    odd: list[Any] | None = None,
) -> Iterator[tuple[Frame, Any]]:
    """Yield parts of files, and their features; what is odd is said after the last.

    Further columns are wanted for the roles that they have.
    """
    reader, found = model.reader, [] if odd is None else odd
    columns, is_first = {*reader.feature_names_, *roles}, True
    for frame in read_tables(paths, options.format, columns, BATCH):
        for name, role in roles.items():
            check_column(frame, name, role)
        if is_first and (unknown := reader.find_unknown(frame, roles)):
            note(
                f"columns that training did not have are ignored: {list_names(unknown)}"
            )
        is_first = False
        yield frame, reader.transform(frame, odd=found)
    tell_odd_cells(found)


def read_known(
    options: Any, model: TableModel, paths: Sequence[str], kept: Collection[str] = ()
) -> Iterator[Known]:
    """Yield the rows of files that have a target; what was left out is said at last."""
    target = model.target if options.target is None else options.target
    if target is None:
        refuse(f"--target must name a column: {options.model} was fitted in Python")
    if model.reader.ends is not None and options.target is not None:
        refuse(f"--target says nothing: {options.model} has {model.partial}")
    n_rows, n_found = 0, 0
    odd: list[Any] = []
    roles = dict.fromkeys(kept, "column") | model.reader.told_by
    roles |= {} if model.reader.ends else {target: "target"}
    for frame, features in read_features(options, model, paths, roles, odd):
        y = model.reader.read_target(frame, target, odd)
        known = has_target(y)
        n_rows, n_found = n_rows + len(y), n_found + int(known.sum())
        if known.any():
            yield frame[known], features[known], y[known]
        else:
            warn(f"{frame.attrs['path']} has no row with a target {target!r}")
    if not n_found:
        refuse(f"{join_few(list(paths))} has no row with a target {target!r}")
    if n_found < n_rows:
        warn(f"left out {count(n_rows - n_found, 'row')} without a target {target!r}")


def read_whole(
    options: Any, model: TableModel, paths: Sequence[str], kept: Collection[str] = ()
) -> Known:
    """Return the rows of files that have a target."""
    parts = zip(*read_known(options, model, paths, kept), strict=True)
    (frames, features, targets), join = parts, load_pandas().concat
    return join(frames), join(features), np.concatenate(targets)


def beside(frame: Frame, answers: Mapping[str, Any]) -> Frame:
    """Return a frame with more columns (n,), which knows what it knew."""
    more = load_pandas().DataFrame(answers, index=frame.index)
    whole = load_pandas().concat([frame, more], axis=1)
    whole.attrs = frame.attrs
    return whole
