"""`TableModel`: a model with what it takes to use it on tables, and its origin."""

from __future__ import annotations

import datetime as dt
import os
from dataclasses import dataclass
from typing import Any, Self

from calibration import __version__
from calibration.storage import StorageError
from localexpert.cli.scores import ScoreTable, score_both
from localexpert.distribution.predictive import PredictiveDistribution, mass_below_zero
from localexpert.reading import ColumnReader
from localexpert.reading.files import STDIN, read_bytes
from localexpert.reading.messages import refuse, refusing
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.climatology import Climatology
from localexpert.reporting.evidence import recall_training
from localexpert.storage import load, save


@dataclass(frozen=True)
class Origin:
    """What `localexpert fit` notes of a fit.

    Parameters
    ----------
    table : str
        Name of the training file, without its folder.
    rows : int
        Training rows that have a target.
    fitted : str
        Day (UTC) as YYYY-MM-DD; the variable SOURCE_DATE_EPOCH overrides the clock.
    version : str
        Of the package.
    scores : ScoreTable
        Out of fold, beside climatology.
    below_zero : float or None
        Mean probability of values below zero out of fold, if no target is there.
    corrected : str
        By what `localexpert recalibrate` has corrected the model since.
    """

    table: str
    rows: int
    fitted: str
    version: str
    scores: ScoreTable
    below_zero: float | None
    corrected: str = ""

    @classmethod
    def of(
        cls, table: str, n_rows: int, model: Any, climatology: Climatology
    ) -> Origin:
        """Note a fit to so many rows of a table."""
        known = recall_training(model)
        assert known is not None
        assert known.oof is not None
        scores = score_both(known.y, known.oof, climatology, known.weight)
        below = mass_below_zero(known.oof, known.y, known.weight)
        return cls(table, n_rows, today(), __version__, scores, below)


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
    climatology : Climatology
        Distribution of the training target.
    origin : Origin or None
        Where it comes from; None of a model that was fitted in Python.
    """

    reader: ColumnReader
    model: Any
    climatology: Climatology
    origin: Origin | None = None

    @classmethod
    def of_python(cls, model: LocalExpertRegressor) -> Self:
        """Return a regressor that was fitted in Python to a data frame."""
        known = recall_training(model)
        assert known is not None
        climatology = Climatology.of(model, known.y, known.weight)
        return cls(ColumnReader.of_model(model), model, climatology)

    @property
    def target(self) -> str | None:
        """Name of the target, if it is known."""
        return self.reader.target

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        if self.origin is None:
            return len(self.model.oof_targets_)
        return self.origin.rows

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
        return TableModel.of_python(thing)
    if not isinstance(thing, TableModel):
        refuse(
            f"{path} holds a {type(thing).__name__}, not a model of `localexpert fit`"
        )
    return thing


def today() -> str:
    """Return the day; the time would make two files of one model differ."""
    told = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = dt.datetime.now(dt.UTC)
    if told.isdecimal():
        now = dt.datetime.fromtimestamp(int(told), dt.UTC)
    return now.date().isoformat()
