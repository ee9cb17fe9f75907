"""`MonitorState`: what `localexpert monitor` keeps from batch to batch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration import CalibrationMonitor
from localexpert.cli.table_model import load_object
from localexpert.data.training_rows import SeenRows
from localexpert.monitor.forecast import ForecastMonitor
from localexpert.reading.labels import Labels
from localexpert.reading.messages import refuse

Monitor: TypeAlias = ForecastMonitor | CalibrationMonitor

# Options of the first call, which later ones may only repeat, by the parameters.
_SETTINGS = {
    "alpha": "--alpha",
    "tolerance": "--tolerance",
    "thresholds": "--thresholds",
    "n_fit": "--fitted-rows",
}


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows that are to be added.

    Parameters
    ----------
    forecast : PredictiveDistribution of n rows, or ndarray of shape (n,)
    outcomes : ndarray of shape (n,)
    labels : Labels or None
        What outcomes of two classes are called.
    seen : SeenRows or None
        Which rows a model has learned from.
    """

    forecast: Any
    outcomes: NDArray[Any]
    labels: Labels | None = None
    seen: SeenRows | None = None


@dataclass(frozen=True, eq=False)
class MonitorState:
    """A monitor with the model that it belongs to.

    Parameters
    ----------
    model : str
        Hash of the model's file.
    monitor : ForecastMonitor or CalibrationMonitor
    labels : Labels or None
        Of a calibrator's outcomes.
    """

    model: str
    monitor: Monitor
    labels: Labels | None = None

    @classmethod
    def open(cls, options: Any, make: Callable[[], Monitor]) -> MonitorState:
        """Return the state in the file of the options, or one of a new monitor."""
        told = {name: getattr(options, name) for name in _SETTINGS}
        said = {name: one for name, one in told.items() if one is not None}
        if not os.path.exists(options.state):
            return cls(_hash_file(options.model), make().set_params(**said))
        state, where = cls.load(options), f"--state {options.state!r}"
        for name, wanted in said.items():
            held = getattr(state.monitor, name)
            if not np.array_equal(wanted, held):
                refuse(
                    f"{_SETTINGS[name]} differs from that of {where}, {held}: another "
                    "one needs a new state"
                )
        return state

    @classmethod
    def load(cls, options: Any) -> MonitorState:
        """Return the state in a file, which must be that of the model."""
        state = load_object(options.state, "state of `localexpert monitor`")
        where = f"--state {options.state!r}"
        if not isinstance(state, cls):
            kind = type(state).__name__
            refuse(f"{where} holds a {kind}, not a state of `localexpert monitor`")
        if state.model != _hash_file(options.model):
            refuse(
                f"{where} is that of another model than {options.model!r}: a model has "
                "a state of its own, from its first batch on"
            )
        return state

    def add(self, batch: Batch) -> MonitorState:
        """Return the state with a batch; itself if the monitor has it already."""
        n_before = getattr(self.monitor, "n_batches_", 0)
        seen: dict[str, Any] = {} if batch.seen is None else {"seen": batch.seen}
        self.monitor.partial_fit(batch.forecast, batch.outcomes, **seen)
        if self.monitor.n_batches_ == n_before:
            return self
        return replace(self, labels=batch.labels)


def _hash_file(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
