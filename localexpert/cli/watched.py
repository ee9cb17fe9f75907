"""What `localexpert monitor` watches: forecasts, or what a calibrator answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from calibration import CalibrationMonitor, ScoreCalibrator
from localexpert.cli.cells import load_pandas
from localexpert.cli.console import list_names, refuse
from localexpert.cli.known_rows import KnownRows, read_known, target_name
from localexpert.cli.labelled import read_scores
from localexpert.cli.model_files import TableModel, load_object
from localexpert.cli.monitor_state import Batch, Monitor, MonitorState, hash_batch
from localexpert.cli.options import read_with
from localexpert.cli.two_labels import TwoLabels, read_known_labels
from localexpert.monitor.forecast import ForecastMonitor

# Options of the one and of the other.
_OF_MODELS = {"target": "--target", "thresholds": "--thresholds"}
_OF_CALIBRATORS = {
    "score": "--score",
    "label": "--label",
    "positive": "--positive",
    "n_fit": "--fitted-rows",
}


class Watched(ABC):
    """What is watched."""

    #: What an offset is told in.
    unit: str
    #: What the other number of an advice is called, in JSON and in print.
    scale: tuple[str, str]

    @abstractmethod
    def make_monitor(self, options: Any) -> Monitor:
        """Return a monitor that has seen nothing."""

    @abstractmethod
    def read(self, options: Any, state: MonitorState) -> Batch:
        """Read the table of the options."""


@dataclass(frozen=True, eq=False)
class WatchedModel(Watched):
    """A model of `localexpert fit`."""

    model: TableModel

    unit = "standard deviations of a forecast"
    scale = "scale", "spread"

    def make_monitor(self, options: Any) -> Monitor:
        """Return a monitor of forecasts by so many training rows."""
        del options
        origin = self.model.origin
        if origin is None:
            return ForecastMonitor(len(self.model.model.oof_distribution_))
        return ForecastMonitor(origin.rows)

    def read(self, options: Any, state: MonitorState) -> Batch:
        """Read features and targets."""
        del state
        schema = self.model.schema
        options.decimal = options.decimal or schema.decimal
        how = options, schema, [options.table], target_name(options, schema)
        rows = KnownRows.join(list(read_known(*how)))
        digest = hash_batch(rows.frame, rows.y)
        return Batch(digest, lambda: self.model.predict_dist(rows.frame), rows.y)


@dataclass(frozen=True, eq=False)
class WatchedCalibrator(Watched):
    """A calibrator of two classes, of `localexpert calibrate --save`."""

    calibrator: ScoreCalibrator

    unit = "log-odds"
    scale = "slope", "slope"

    def make_monitor(self, options: Any) -> Monitor:
        """Return a monitor of probabilities by so many rows fitted on."""
        known = getattr(self.calibrator, "n_fit_", None)
        if known is None and options.n_fit is None:
            refuse(
                f"{options.model} does not tell how many rows it was fitted on: say it "
                "by --fitted-rows"
            )
        return CalibrationMonitor(max(round(known), 1) if known is not None else 1)

    def read(self, options: Any, state: MonitorState) -> Batch:
        """Read scores and labels of the rows that have one."""
        options.decimal = options.decimal or "."
        whole = read_with(options, options.table)
        table, texts = read_known_labels(whole, options.label, options.decimal)
        hint = "as those that the calibrator was fitted to"
        scores = read_scores(table, options, self.calibrator.scale, hint)
        held, what = set(texts), f"label {options.label!r} of {table.path}"
        known = state.labels
        find = TwoLabels.of if known is None else known.meet
        labels = find(held, options.positive, what)
        y = labels.code(texts)
        digest = hash_batch(load_pandas().DataFrame({"score": scores}), y)
        return Batch(digest, lambda: self.calibrator.predict(scores), y, labels)


def open_watched(options: Any) -> Watched:
    """Return what the file of the options holds, and refuse options of the other."""
    thing = load_object(options.model, "model or calibrator")
    if isinstance(thing, TableModel):
        _refuse_any(options, _OF_CALIBRATORS, "of a calibrator, not of a model")
        return WatchedModel(thing)
    if not isinstance(thing, ScoreCalibrator):
        refuse(
            f"{options.model} holds a {type(thing).__name__}, not a model of "
            "`localexpert fit` or a calibrator of two classes"
        )
    _refuse_any(options, _OF_MODELS, "of a model, not of a calibrator")
    for name in ("score", "label"):
        if getattr(options, name) is None:
            refuse(f"--{name} must name a column: {options.model} is a calibrator")
    if len(options.score) != 1:
        refuse(
            "--score must name one column for a calibrator of two classes, got "
            f"{list_names(options.score)}"
        )
    return WatchedCalibrator(thing)


def _refuse_any(options: Any, others: dict[str, str], what: str) -> None:
    """Refuse options that mean nothing here."""
    for stored, name in others.items():
        if getattr(options, stored) is not None:
            refuse(f"{name} is {what}, got {options.model}")
