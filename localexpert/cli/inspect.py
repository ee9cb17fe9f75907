"""`localexpert inspect`: what a saved model is, and where it comes from."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from calibration import ScoreCalibrator
from localexpert.cli.column_table import describe_columns, lay_out_columns
from localexpert.cli.command import Command
from localexpert.cli.console import count
from localexpert.cli.model_files import TableModel, load_object
from localexpert.cli.options import FLAG
from localexpert.cli.origin import recall_scores
from localexpert.cli.output import write_out
from localexpert.cli.scores import lay_out_scores, without_infinities

_EPILOG = """\
Tells of a model of `localexpert fit` its target and columns, when and on what it was
fitted, its scores out of fold beside those of climatology, and what it chose on the
way. Of regressors and calibrators that were saved in Python, or by `localexpert
calibrate`, what they know of themselves.

examples:
  localexpert inspect houses.zip
  localexpert inspect houses.zip --json | python -m json.tool
"""


# By the scale of a calibrator; others have no scores of a meaning.
_SCORES = {
    "probability": (0.05, 0.25, 0.5, 0.75, 0.95),
    "logit": (-3.0, -1.0, 0.0, 1.0, 3.0),
}


def run(options: Any) -> None:
    """Load the model and print what is known of it."""
    thing = load_object(options.model)
    if isinstance(thing, TableModel):
        told, text = _tell_table_model(thing, options.model)
    else:
        told, text = _tell_object(thing, options.model)
    if options.json:
        text = json.dumps(without_infinities(told), default=str)
    write_out(f"{text}\n")


def _tell_table_model(model: TableModel, path: str) -> tuple[dict[str, Any], str]:
    schema, origin = model.schema, model.origin
    summary = getattr(model.model, "table_summary_", None)
    scores = recall_scores(model.model) if origin is None else origin.scores
    told: dict[str, Any] = {
        "type": "TableModel",
        "target": schema.target,
        "fitted": origin and origin.fitted,
        "version": origin and origin.version,
        "table": origin and origin.table,
        "rows": origin and origin.rows,
        "below_zero": origin and origin.below_zero,
        "columns": describe_columns(schema, summary),
        "others": list(schema.others),
        "parameters": _parameters(model.model),
        "out_of_fold": scores,
    }
    lines = [f"{path}: a model of `localexpert fit` that forecasts {schema.target!r}"]
    if origin is None:
        lines.append("fitted by an earlier version, which noted neither day nor table")
    else:
        lines.append(
            f"fitted on {origin.fitted} by version {origin.version} to "
            f"{count(origin.rows, 'row')} of {origin.table}"
        )
    lines.append(f"parameters: {_show(told['parameters']) or 'all by default'}")
    parts = ["\n".join(lines), lay_out_columns(schema, summary)]
    return _with_fit(model.model, told, parts)


def _tell_object(thing: Any, path: str) -> tuple[dict[str, Any], str]:
    names = getattr(thing, "feature_names_in_", None)
    n_features = getattr(thing, "n_features_in_", None)
    told: dict[str, Any] = {
        "type": type(thing).__name__,
        "parameters": _parameters(thing),
        "features": n_features if names is None else [str(name) for name in names],
        "out_of_fold": recall_scores(thing),
    }
    lines = [f"{path}: a saved {type(thing).__name__}"]
    lines.append(f"parameters: {_show(told['parameters']) or 'all by default'}")
    if names is not None:
        lines.append(f"{count(len(names), 'feature')}: {', '.join(told['features'])}")
    elif n_features is not None:
        lines.append(f"{count(int(n_features), 'feature')} without names")
    if isinstance(thing, ScoreCalibrator):
        told["scale"] = thing.scale
        told["calibrated"] = _ask(thing)
        lines.append(f"scores: {thing.scale}")
        lines += [f"{score:8g}  {p:.4f}" for score, p in told["calibrated"]]
    return _with_fit(thing, told, ["\n".join(lines)])


def _ask(calibrator: Any) -> list[tuple[float, float]]:
    """Return some scores that mean something, and what becomes of them."""
    scores = np.array(_SCORES.get(calibrator.scale, ()))
    answers = calibrator.predict(scores) if len(scores) else scores
    return list(zip(scores.tolist(), answers.tolist(), strict=True))


def _with_fit(
    model: Any, told: dict[str, Any], parts: list[str]
) -> tuple[dict[str, Any], str]:
    """Add scores and choices to the description of a model."""
    if told["out_of_fold"] is not None:
        parts.append(lay_out_scores(told["out_of_fold"], "out of fold"))
    report = getattr(model, "report_", None)
    if report is not None:
        if hasattr(report, "summary"):
            told["chosen"] = report.summary()
        parts.append(f"chosen on the way\n{report}")
    return told, "\n\n".join(parts)


def _parameters(thing: Any) -> dict[str, Any]:
    """Return the parameters that are not as they are by default."""
    if not isinstance(thing, BaseEstimator):
        return {}
    told = thing.get_params(deep=False)
    try:
        usual = type(thing)().get_params(deep=False)
    except TypeError:  # of ensembles, say, members must be given
        usual = {}
    return {
        name: value
        for name, value in told.items()
        if name != "verbose" and repr(value) != repr(usual.get(name, told))
    }


def _show(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r:.60}" for name, value in parameters.items())


COMMAND = Command(
    run,
    "tell what a saved model is",
    "Tell what a saved model is, and where it comes from.",
    _EPILOG,
    (
        ("model", "a file that was saved by this package", {"metavar": "model"}),
        ("--json", "one JSON object; null is unknown or not finite", FLAG),
    ),
    reads_tables=False,
)
