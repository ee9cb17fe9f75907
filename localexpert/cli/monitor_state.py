"""`MonitorState`: what `localexpert monitor` keeps from batch to batch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from calibration import CalibrationMonitor
from localexpert.cli.console import note, warn
from localexpert.cli.table_model import load_object
from localexpert.monitor.forecast import ForecastMonitor
from localexpert.reading.files import name_input
from localexpert.reading.labels import Labels
from localexpert.reading.messages import load_pandas, refuse

Monitor: TypeAlias = ForecastMonitor | CalibrationMonitor

# Options of the first call, which later ones may only repeat, by the parameters.
_SETTINGS = {
    "alpha": "--alpha",
    "tolerance": "--tolerance",
    "thresholds": "--thresholds",
    "n_fit": "--fitted-rows",
}
# Chance of equal batches, in logarithms, below which nobody takes them for chance.
_NO_CHANCE = np.log(1e-6)


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows that are to be added.

    Parameters
    ----------
    frame : pandas.DataFrame of shape (n, p)
        What the forecasts are made of.
    outcomes : ndarray of shape (n,)
    forecast : callable
        Returns what was forecast of the n rows: it takes a while.
    labels : Labels or None
        What outcomes of two classes are called.
    """

    frame: Any
    outcomes: NDArray[Any]
    forecast: Callable[[], Any]
    labels: Labels | None = None

    def digest(self) -> tuple[str, float]:
        """Return a hash of the rows in any order, and the chance of equal ones.

        The chance, in logarithms, is that of n draws from these rows to have each of
        them as often again: of rows that all differ it is n! / n^n.
        """
        table = self.frame.reset_index(drop=True).assign(
            **{"its outcome": self.outcomes}
        )
        rows = load_pandas().util.hash_pandas_object(table, index=False).to_numpy()
        counts = np.unique(rows, return_counts=True)[1]
        n = len(rows)
        chance = (
            gammaln(n + 1) - gammaln(counts + 1).sum() + xlogy(counts, counts / n).sum()
        )
        names = repr(list(table.columns)).encode()
        return hashlib.sha256(names + np.sort(rows).tobytes()).hexdigest(), float(
            chance
        )


@dataclass(frozen=True, eq=False)
class MonitorState:
    """A monitor with the model and the batches that it belongs to.

    Parameters
    ----------
    model : str
        Hash of the model's file.
    batches : tuple of str
        Hashes of the rows of all batches so far.
    monitor : ForecastMonitor or CalibrationMonitor
    labels : Labels or None
        Of a calibrator's outcomes.
    """

    model: str
    batches: tuple[str, ...]
    monitor: Monitor
    labels: Labels | None = None

    @classmethod
    def open(cls, options: Any, make: Callable[[], Monitor]) -> MonitorState:
        """Return the state in the file of the options, or one of a new monitor."""
        with open(options.model, "rb") as file:
            model = hashlib.file_digest(file, "sha256").hexdigest()
        told = {name: getattr(options, name) for name in _SETTINGS}
        said = {name: one for name, one in told.items() if one is not None}
        if not os.path.exists(options.state):
            return cls(model, (), make().set_params(**said))
        state = load_object(options.state, "state of `localexpert monitor`")
        where = f"--state {options.state!r}"
        if not isinstance(state, cls):
            kind = type(state).__name__
            refuse(f"{where} holds a {kind}, not a state of `localexpert monitor`")
        if state.model != model:
            refuse(
                f"{where} is that of another model than {options.model!r}: a model has "
                "a state of its own, from its first batch on"
            )
        for name, wanted in said.items():
            held = getattr(state.monitor, name)
            if not np.array_equal(wanted, held):
                refuse(
                    f"{_SETTINGS[name]} differs from that of {where}, {held}: another "
                    "one needs a new state"
                )
        return state

    def add(self, batch: Batch, path: str) -> MonitorState:
        """Return the state with a batch; itself if it has the batch already."""
        digest, chance = batch.digest()
        if digest in self.batches:
            if chance < _NO_CHANCE:
                note(f"{name_input(path)} is in the state already: not counted again")
                return self
            warn(
                f"{name_input(path)} has the same rows as a batch before, which may be "
                "chance: counted"
            )
        self.monitor.partial_fit(batch.forecast(), batch.outcomes)
        batches = (*self.batches, digest)
        return replace(self, batches=batches, labels=batch.labels)
