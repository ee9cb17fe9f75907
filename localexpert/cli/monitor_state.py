"""`MonitorState`: what `localexpert monitor` keeps from batch to batch."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.cli.cells import load_pandas
from localexpert.cli.console import refuse
from localexpert.cli.model_files import TableModel, load_object
from localexpert.monitor.forecast import ForecastMonitor

# Options of the first call, which later ones may only repeat.
_SETTINGS = ("alpha", "tolerance", "thresholds")


@dataclass(frozen=True, eq=False)
class MonitorState:
    """A monitor with the model and the batches that it belongs to.

    Parameters
    ----------
    model : str
        Hash of the model's file.
    batches : tuple of str
        Hashes of the features and targets of all batches so far.
    monitor : ForecastMonitor
    """

    model: str
    batches: tuple[str, ...]
    monitor: ForecastMonitor

    @classmethod
    def open(cls, options: Any, model: TableModel) -> MonitorState:
        """Return the state in the file of the options, or a new one."""
        name = _hash_file(options.model)
        if not os.path.exists(options.state):
            return cls(name, (), _new_monitor(options, model))
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
        for option in _SETTINGS:
            wanted = getattr(options, option)
            if wanted is not None and not np.array_equal(
                wanted, getattr(state.monitor, option)
            ):
                refuse(
                    f"--{option} differs from that of --state {options.state!r}, "
                    f"{getattr(state.monitor, option)}: another one needs a new state"
                )
        return state

    def add(self, frame: Any, y: Float64Array, model: TableModel) -> MonitorState:
        """Return the state with a batch; itself if it has the batch already."""
        batch = _hash_batch(frame, y)
        if batch in self.batches:
            return self
        self.monitor.partial_fit(model.predict_dist(frame), y)
        return replace(self, batches=(*self.batches, batch))


def _new_monitor(options: Any, model: TableModel) -> ForecastMonitor:
    if model.origin is None:
        rows = len(model.model.oof_distribution_)
    else:
        rows = model.origin.rows
    monitor = ForecastMonitor(rows)
    told = {name: getattr(options, name) for name in _SETTINGS}
    monitor.set_params(**{name: one for name, one in told.items() if one is not None})
    return monitor


def _hash_file(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash_batch(frame: Any, y: Float64Array) -> str:
    """Return a hash of what the rows hold, in their order, however it is written."""
    found = hashlib.sha256(repr(list(frame.columns)).encode())
    rows = load_pandas().util.hash_pandas_object(frame, index=False)
    found.update(np.ascontiguousarray(rows.to_numpy()).tobytes())
    found.update(np.ascontiguousarray(y).tobytes())
    return found.hexdigest()
