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
from localexpert.cli.cells import load_pandas
from localexpert.cli.console import refuse
from localexpert.cli.model_files import load_object
from localexpert.cli.two_labels import TwoLabels
from localexpert.monitor.forecast import ForecastMonitor

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
    digest : str
        Of what the rows hold.
    forecast : callable
        Returns what was forecast of the n rows: it takes a while.
    outcomes : ndarray of shape (n,)
    labels : TwoLabels or None
        What outcomes of two classes are called.
    """

    digest: str
    forecast: Callable[[], Any]
    outcomes: NDArray[Any]
    labels: TwoLabels | None = None


@dataclass(frozen=True, eq=False)
class MonitorState:
    """A monitor with the model and the batches that it belongs to.

    Parameters
    ----------
    model : str
        Hash of the model's file.
    batches : tuple of str
        Hashes of the features and targets, or scores and labels, of all batches so far.
    monitor : ForecastMonitor or CalibrationMonitor
    labels : TwoLabels or None
        Of a calibrator's outcomes.
    """

    model: str
    batches: tuple[str, ...]
    monitor: Monitor
    labels: TwoLabels | None = None

    @classmethod
    def open(cls, options: Any, make: Callable[[], Monitor]) -> MonitorState:
        """Return the state in the file of the options, or one of a new monitor."""
        name = _hash_file(options.model)
        if not os.path.exists(options.state):
            monitor = make()
            told = {name: getattr(options, name) for name in _SETTINGS}
            said = {name: one for name, one in told.items() if one is not None}
            monitor.set_params(**said)
            return cls(name, (), monitor)
        state = load_object(options.state, "state of `localexpert monitor`")
        if not isinstance(state, cls):
            refuse(
                f"--state {options.state!r} holds a {type(state).__name__}, not a "
                "state of `localexpert monitor`"
            )
        if state.model != name:
            refuse(
                f"--state {options.state!r} is that of another model than "
                f"{options.model!r}: a model has a state of its own, from its first "
                "batch on"
            )
        for setting, option in _SETTINGS.items():
            wanted = getattr(options, setting)
            if wanted is not None and not np.array_equal(
                wanted, getattr(state.monitor, setting)
            ):
                refuse(
                    f"{option} differs from that of --state {options.state!r}, "
                    f"{getattr(state.monitor, setting)}: another one needs a new state"
                )
        return state

    def add(self, batch: Batch) -> MonitorState:
        """Return the state with a batch; itself if it has the batch already."""
        if batch.digest in self.batches:
            return self
        self.monitor.partial_fit(batch.forecast(), batch.outcomes)
        batches = (*self.batches, batch.digest)
        return replace(self, batches=batches, labels=batch.labels)


def hash_batch(frame: Any, outcomes: NDArray[Any]) -> str:
    """Return a hash of what n rows hold, in their order, however it is written."""
    found = hashlib.sha256(repr(list(frame.columns)).encode())
    rows = load_pandas().util.hash_pandas_object(frame, index=False)
    found.update(np.ascontiguousarray(rows.to_numpy()).tobytes())
    found.update(np.ascontiguousarray(outcomes).tobytes())
    return found.hexdigest()


def _hash_file(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
