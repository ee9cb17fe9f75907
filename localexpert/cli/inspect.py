"""Tell what a saved model is, and where it comes from.

Tells of a model of `localexpert fit` its target and columns, when and on what it was
fitted, its scores out of fold beside those of climatology, and what it chose on the
way. Of regressors and calibrators that were saved in Python, or by `localexpert
calibrate`, it tells what they know of themselves.

for example:
  localexpert inspect houses.zip
  localexpert inspect houses.zip --json | python -m json.tool
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from localexpert.cli import args, calibrated, scores
from localexpert.cli.output import write_out
from localexpert.cli.table_model import Origin, TableModel, load_object
from localexpert.reading.messages import count
from localexpert.reporting.climatology import Climatology
from localexpert.reporting.evidence import recall_training

# By the scale of a calibrator; others have no scores of a meaning.
_SCORES = {
    "probability": (0.05, 0.25, 0.5, 0.75, 0.95),
    "logit": (-3.0, -1.0, 0.0, 1.0, 3.0),
}


def add_options(parser: args.Parser) -> None:
    """Add the arguments of the command."""
    args.add_options(parser, "model  a file that was saved by this package\n--json")


def run(options: Any) -> None:
    """Load the model and print what is known of it."""
    thing = load_object(options.model)
    tell: Any = _tell_object
    if isinstance(thing, TableModel) and thing.origin is not None:
        tell = _tell_table_model
    told, parts = tell(thing, options.model)
    model = getattr(thing, "model", thing)
    report = getattr(model, "report_", None)
    if told["out_of_fold"] is not None:
        parts.append(scores.lay_out_scores(told["out_of_fold"], "out of fold"))
    if report is not None:
        if hasattr(report, "summary"):
            told["chosen"] = report.summary()
        parts.append(f"chosen on the way\n{report}")
    text = "\n\n".join(parts)
    if options.json:
        text = json.dumps(scores.without_infinities(told), default=str)
    write_out(f"{text}\n")


def _tell_table_model(model: TableModel, path: str) -> tuple[dict[str, Any], list[str]]:
    reader, origin = model.reader, model.origin
    assert isinstance(origin, Origin)
    told: dict[str, Any] = {
        **asdict(origin),
        "type": "TableModel",
        "target": model.target,
        "corrected": origin.corrected or None,
        "columns": reader.describe(model.model),
        "others": list(reader.others),
        "parameters": _parameters(model.model),
    }
    told["out_of_fold"] = told.pop("scores")
    lines = [
        f"{path}: a model of `localexpert fit` that forecasts {model.target!r}",
        f"fitted on {origin.fitted} by version {origin.version} to "
        f"{count(origin.rows, 'row')} of {origin.table}",
        *([origin.corrected] if origin.corrected else []),
        f"parameters: {_show(told['parameters']) or 'all by default'}",
    ]
    return told, ["\n".join(lines), reader.lay_out(model.model)]


def _tell_object(thing: Any, path: str) -> tuple[dict[str, Any], list[str]]:
    # A regressor of Python that was corrected is one without an origin.
    if isinstance(thing, TableModel):
        thing = thing.model
    names = getattr(thing, "feature_names_in_", None)
    n_features = getattr(thing, "n_features_in_", None)
    told: dict[str, Any] = {
        "type": type(thing).__name__,
        "parameters": _parameters(thing),
        "features": n_features if names is None else [str(name) for name in names],
        "out_of_fold": _recall_scores(thing),
    }
    lines = [f"{path}: a saved {type(thing).__name__}"]
    lines.append(f"parameters: {_show(told['parameters']) or 'all by default'}")
    if names is not None:
        lines.append(f"{count(len(names), 'feature')}: {', '.join(told['features'])}")
    elif n_features is not None:
        lines.append(f"{count(int(n_features), 'feature')} without names")
    if calibrated.is_of_scores(thing):
        asked = np.array(_SCORES.get(thing.scale, ()))
        answers = thing.predict(asked) if len(asked) else asked
        told["scale"] = thing.scale
        told["calibrated"] = list(zip(asked.tolist(), answers.tolist(), strict=True))
        lines.append(f"scores: {thing.scale}")
        lines += [f"{score:8g}  {p:.4f}" for score, p in told["calibrated"]]
    return told, ["\n".join(lines)]


def _recall_scores(model: Any) -> scores.ScoreTable | None:
    """Return the scores out of fold that a regressor still knows of itself."""
    known = recall_training(model)
    if known is None or known.oof is None:
        return None
    climatology = Climatology.of(model, known.y, known.weight)
    return scores.score_both(known.y, known.oof, climatology, known.weight)


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
