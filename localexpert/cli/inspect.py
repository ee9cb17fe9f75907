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
    origin = getattr(thing, "origin", None)
    if isinstance(thing, TableModel) and origin is None:
        # A regressor of Python that was corrected.
        thing = thing.model
    model = getattr(thing, "model", thing)
    report: Any = getattr(model, "report_", None)
    told: dict[str, Any] = {"type": type(thing).__name__}
    told |= _tell_object(thing) if origin is None else _tell_table_model(thing)
    if hasattr(report, "summary"):
        told["chosen"] = report.summary()
    if options.json:
        write_out(f"{json.dumps(scores.without_infinities(told), default=str)}\n")
        return
    tables = {name: told.pop(name, None) for name in ("columns", "out_of_fold")}
    told.pop("chosen", None)
    parts = [
        f"{options.model}: a saved {told.pop('type')}",
        *(f"{name}: {_show(value)}" for name, value in told.items() if value),
    ]
    if tables["columns"] is not None:
        parts.append(f"\n{thing.reader.lay_out()}")
    if tables["out_of_fold"] is not None:
        parts.append(f"\nout of fold\n{scores.lay_out(tables['out_of_fold'])}")
    if report is not None:
        parts.append(f"\nchosen on the way\n{report}")
    write_out("\n".join([*parts, ""]))


def _tell_table_model(model: TableModel) -> dict[str, Any]:
    assert isinstance(model.origin, Origin)
    told = {"target": model.target, **asdict(model.origin)}
    told["out_of_fold"] = told.pop("scores")
    told["parameters"] = _parameters(model.model)
    rules = [asdict(rule) for rule in model.reader.rules_]
    return {**told, "columns": rules, "others": list(model.reader.others)}


def _tell_object(thing: Any) -> dict[str, Any]:
    names = getattr(thing, "feature_names_in_", None)
    told: dict[str, Any] = {"parameters": _parameters(thing)}
    told["features"] = getattr(thing, "n_features_in_", None)
    if names is not None:
        told["features"] = [str(name) for name in names]
    if calibrated.is_of_scores(thing):
        asked = np.array(_SCORES.get(thing.scale, ()))
        answers = thing.predict(asked) if len(asked) else asked
        said = dict(zip(asked.tolist(), answers.tolist(), strict=True))
        told |= {"scale": thing.scale, "calibrated": said}
    known = recall_training(thing)
    if known is not None and known.oof is not None:
        climatology = Climatology.of(thing, known.y, known.weight)
        sums = scores.sum_losses(known.y, known.oof, climatology, known.weight)
        told["out_of_fold"] = scores.name_means(sums)
    return told


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


def _show(value: Any) -> str:
    """Return a value as text, of several a list."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={one!r:.60}" for name, one in value.items())
    return ", ".join(value) if isinstance(value, list) else str(value)
