"""`TableModel`, and files of models: whole or not at all, refused with one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibration.storage import StorageError
from localexpert.cli.console import refuse, refusing
from localexpert.cli.origin import Origin
from localexpert.cli.read_file import read_bytes
from localexpert.cli.schema import Schema
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.climatology import Climatology
from localexpert.storage.load import load, save


@dataclass(frozen=True, eq=False)
class TableModel:
    """A fitted regressor with what it takes to use it on files.

    What `localexpert fit` saves. In Python `predict_dist(frame)` takes what
    `schema.frame(table)` returns.

    Parameters
    ----------
    schema : Schema
    model : LocalExpertRegressor
        Fitted.
    climatology : Climatology
        Distribution of the training target.
    origin : Origin or None
        Where it comes from; models of earlier versions do not know.
    """

    schema: Schema
    model: LocalExpertRegressor
    climatology: Climatology
    origin: Origin | None = None

    def predict_dist(self, frame: Any) -> PredictiveDistribution:
        """Return the predictive distribution of every row of features."""
        return self.model.predict_dist(frame)


def save_object(thing: Any, path: str, option: str) -> None:
    """Write a table model or a calibrator to a file."""
    with (
        refusing(f"cannot write {option} {path!r}", OSError),
        refusing(f"cannot save to {path!r}", StorageError),
    ):
        save(thing, path)


def load_object(path: str, what: str = "model of this package") -> Any:
    """Return whatever was saved to a file."""
    read_bytes(path)  # says why a file cannot be opened in the words of other files
    with refusing(f"{path} is no sound {what}", StorageError):
        return load(path)


def load_table_model(path: str) -> TableModel:
    """Return what `localexpert fit` saved."""
    thing = load_object(path, "model of `localexpert fit`")
    if not isinstance(thing, TableModel):
        refuse(
            f"{path} holds a {type(thing).__name__}, not a model of `localexpert fit`"
        )
    return thing
