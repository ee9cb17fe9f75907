"""`predict`, `evaluate`, `report` and `inspect`: commands that use a fitted model."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator

from calibration.typing import Float64Array
from localexpert.cli.output import (
    check_file,
    check_table,
    note,
    warn,
    write_out,
    write_table,
)
from localexpert.cli.table_model import (
    Known,
    TableModel,
    beside,
    load_object,
    load_table_model,
    read_features,
    read_known,
    read_whole,
)
from localexpert.distribution.answers import (
    expected_by_loss,
    loss_variances,
    mean_of_sums,
)
from localexpert.distribution.frame import Questions
from localexpert.distribution.predictive import PredictiveDistribution, concatenate
from localexpert.reading import files
from localexpert.reading.reader import find_gaps, read_words
from localexpert.reading.texts import count, load_pandas, refuse, refusing
from localexpert.regressor.recalibrated import RowsInParts
from localexpert.reporting import report as write_report
from localexpert.reporting import report_figures
from localexpert.reporting.groups import MISSING
from localexpert.reporting.scores import climatology_of

#: A table as it was read, and its forecasts.
Part: TypeAlias = tuple[files.Frame, PredictiveDistribution]

# Labels of scores in print, by their names in JSON.
_LABELS = {
    "crps": "CRPS",
    "log_score": "log score",
    "coverage_50": "coverage of 50 %",
    "coverage_90": "coverage of 90 %",
    "rmse": "RMSE",
    "mae": "MAE",
}
# The same, and those of targets that are known in part.
_MORE_LABELS = {"pit_test": "p of PIT test", "d_calibration": "p of D-calibration"}
_MORE_LABELS |= _LABELS | {"width": "width of 90 %"}


# predict


def predict(options: Any) -> None:
    """Load the model, read the tables part by part, write their forecasts."""
    paths = files.find_tables(options.table)
    check_table(options.out, [options.model, *options.table, *paths])
    if options.total is not None and options.keep:
        refuse("--keep copies columns of rows, and --total has sums of them: say one")
    model = load_table_model(options.model)
    options.keep = list(dict.fromkeys(options.keep))
    taken = [*_ask(options).names, *([] if options.total is None else ["rows"])]
    for option, names in (("keep", options.keep), ("total", [options.total])):
        if clash := [name for name in names if name in taken]:
            refuse(f"--{option} {clash[0]!r} has the name of a column of forecasts")
    named = dict.fromkeys(options.keep, "column to keep")
    if options.total is not None:
        named[options.total] = "column to sum by"
    parts = (
        (frame, model.forecast(features, frame.attrs["path"]))
        for frame, features in read_features(options, model, paths, named)
    )
    rows = _tell_rows(options, parts)
    if options.total is not None:
        rows = _tell_totals(options, parts, model.reader.missing)
    write_table(options, "forecast", rows)


def _tell_rows(options: Any, parts: Iterator[Part]) -> Iterator[files.Frame]:
    """Yield the forecasts of each part, beside the columns that are kept."""
    marks: dict[str, str | None] = {}
    for frame, dist in parts:
        if options.keep:
            marks[frame.attrs["path"]] = frame.attrs.get("decimal")
            files.check_marks(marks)
        yield beside(frame[list(options.keep)], _ask(options).answers(dist))


def _tell_totals(
    options: Any, parts: Iterator[Part], missing: Collection[str]
) -> Iterator[files.Frame]:
    """Yield a row for each group: its name, its number of rows, the law of its sum."""
    found: list[Any] = []
    dists: list[PredictiveDistribution] = []
    frame: files.Frame = None
    for frame, dist in parts:
        role = "column to sum by"
        found.append(read_words(frame, options.total, role, missing))
        dists.append(dist)
    groups = np.concatenate(found).astype(str)
    names, counts = np.unique(groups, return_counts=True)
    sums = concatenate(dists).total(groups=groups)
    columns = {options.total: names.astype(object), "rows": counts}
    table = load_pandas().DataFrame(columns | _ask(options).answers(sums))
    table.attrs = frame.attrs
    yield table


def _ask(options: Any) -> Questions:
    """Return what the options ask of every row."""
    risks = options.var or options.es
    questions = Questions.of(
        quantiles=sorted(set(options.quantiles)) or (() if risks else None),
        interval=options.interval,
        exceed=options.exceed or None,
    )
    more: dict[str, Any] = {}
    for name in ("var", "es"):
        levels = sorted(set(getattr(options, name)))
        asked = Questions.of(risk=levels, tail=options.tail).asked
        more |= {key: one for key, one in asked.items() if key.startswith(f"{name}_")}
    return Questions(questions.asked | more)


# evaluate


def evaluate(options: Any) -> None:
    """Load the model, read the tables, print its scores and those of climatology."""
    paths = files.find_tables(options.table)
    model = load_table_model(options.model)
    score = _score_partial if model.partial else _score_known
    seen, facts, scores, expected = score(options, model, paths)
    if seen.found and facts["rows"] == seen.n:
        warn(f"{seen} Scores are too good: new rows tell the truth")
    if options.json:
        facts |= {"training_rows": str(seen), **scores, "expected": expected}
        write_out(f"{json.dumps(without_infinities(facts))}\n")
        return
    named = options.table
    name = files.name_tables(named) if named[1:] else files.name_input(named[0])
    new = count(facts["rows"], "new row" if facts["rows"] < seen.n else "row")
    if model.partial:
        name += f", {facts['known_in_part']} with a target known in part"
    promised = load_pandas().DataFrame(expected).T.rename(index="expected {}".format)
    tables = "\n\n".join(_lay_out(one) for one in (scores, promised) if len(one))
    write_out(f"{new} of {name}\n{seen}\n\n{tables}\n")


def _score_known(options: Any, model: TableModel, paths: list[str]) -> Any:
    """Return which rows were learned from, counts, mean scores, and expected ones."""
    climate = climatology_of(model.learner)
    # Sums of new rows, and of rows that the model has learned from.
    sums: list[Any] = [0.0, 0.0]
    rows, equal, held = RowsInParts(model.model), [], []
    for frame, features, y in read_known(options, model, paths):
        equal.append(rows.add(features, y))
        dist = model.forecast(features, frame.attrs["path"])
        losses = _losses(y, dist, climate)
        sums[0] += losses[:, ~equal[-1]].sum(axis=1)
        held.append(losses[:, equal[-1]])
    # Only all rows show whether some are equal by chance.
    seen, losses = rows.find_seen(), np.concatenate(held, axis=1)
    learned = np.zeros(losses.shape[1], dtype=bool)
    if seen.learned is not None:
        learned = seen.learned[np.concatenate(equal)]
    for k in (0, 1):
        sums[k] += losses[:, learned == k].sum(axis=1)
    n_new = int(sums[0][0])
    return seen, {"rows": n_new or seen.n}, *_name_means(sums[0 if n_new else 1])


def _score_partial(options: Any, model: TableModel, paths: list[str]) -> Any:
    """Return the same of targets that are known in part, whose scores need all rows."""
    found = report_figures(model.model, *read_whole(options, model, paths)[1:])
    scores = {name.lower(): asdict(one) for name, one in found.scores.items() if one}
    for held in scores.values():
        held["coverage_90"] = held.pop("coverage")
    counts = {"rows": len(found), "known_in_part": int((~found.is_known).sum())}
    return found.seen, counts, scores, {}


def _losses(
    y: Float64Array, dist: PredictiveDistribution, climate: PredictiveDistribution
) -> Float64Array:
    """Return for each row a one, its losses by two forecasts, and expected losses.

    Shape (17, n), so that scores of a table are sums of its parts.
    """
    rows = [np.ones(len(y))]
    for one in (dist, climate):
        rows += [one.crps(y), -one.logpdf(y), one.covered(y, 0.5), one.covered(y, 0.9)]
        rows += [(y - one.mean()) ** 2, np.abs(y - one.median())]
    for loss, means in expected_by_loss(dist.law).items():
        rows += [means, loss_variances(dist.law, loss, means)]
    return np.stack(rows)


def _name_means(sums: Float64Array) -> Any:
    """Return the mean scores of all rows in the sums, and the expected ones."""
    n, size = sums[0], len(_LABELS)
    scores = {}
    for k, who in enumerate(("model", "climatology")):
        means = (sums[1 + k * size :][:size] / n).tolist()
        scores[who] = dict(zip(_LABELS, means, strict=True))
        scores[who]["rmse"] = math.sqrt(scores[who]["rmse"])
    pairs = np.reshape(sums[1 + 2 * size :], (-1, 2)).tolist()
    expected = [mean_of_sums(mean, spread, round(n), 0.95) for mean, spread in pairs]
    names = ("mean", "low", "high")
    return scores, {
        loss: {name: getattr(one, name) for name in names}
        for loss, one in zip(("crps", "mae"), expected, strict=True)
    }


def _lay_out(table: Any) -> str:
    """Return scores as a table for people, a line for each."""
    frame = load_pandas().DataFrame(table, dtype=float).rename(index=_MORE_LABELS)
    return str(frame.dropna(how="all").to_string(float_format="{:.5g}".format))


def without_infinities(tree: Any) -> Any:
    """Return nested figures as JSON can hold them: None is not finite."""
    if isinstance(tree, Mapping):
        return {str(name): without_infinities(value) for name, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [without_infinities(value) for value in tree]
    return None if isinstance(tree, float) and not math.isfinite(tree) else tree


# report


def report(options: Any) -> None:
    """Load the model, read the tables, write the report."""
    train = [] if options.train is None else [options.train]
    if files.STDIN in options.table and files.STDIN in train:
        refuse("standard input can be one table only: give a file after --train")
    paths, learned = files.find_tables(options.table), files.find_tables(train)
    given = [options.model, *options.table, *train, *paths, *learned]
    check_file(options.out, "--out", given)
    model = load_table_model(options.model)
    if learned and model.partial:
        rule = "--train is for a boosted baseline, which learns from known targets"
        refuse(f"{rule}: {options.model} was fitted with {model.partial}")
    kept = [*options.groups, *([options.id] if options.id else [])]
    (frame, features, y), n = _draw(options, model, paths, kept)
    source = files.name_tables(options.table)
    if len(y) < n:
        source += f" (drawn from {n:,})"
    named = "coverage", "title", "unit", "pdf_friendly", "verbose"
    more: dict[str, Any] = {name: getattr(options, name) for name in named}
    if learned:
        options.target = model.target
        (_, more["X_train"], more["y_train"]), _ = _draw(options, model, learned)
    if options.groups:
        more["groups"] = {
            name: _group(model, frame, features, name) for name in options.groups
        }
    if options.id is not None:
        more["row_names"] = frame[options.id].astype(str)
    with (
        refusing(f"cannot write --out {options.out!r}", OSError),
        refusing(f"cannot report on {source}", TypeError, ValueError),
    ):
        write_report(
            model.model,
            features,
            y,
            options.out,
            target_name=model.target,
            source=source,
            odd_cells=model.reader.odd_cells_,
            var_levels=sorted(set(options.var)),
            **more,
        )
    note(f"wrote {options.out}")


def _draw(
    options: Any, model: TableModel, paths: list[str], kept: Collection[str] = ()
) -> tuple[Known, int]:
    """Return rows of files, some of them if there are more than a page takes."""
    frame, features, y = read_whole(options, model, paths, kept)
    n, most = len(y), options.max_rows
    if n > most:
        note(f"drew {most} (--max-rows) of {n} rows of {files.name_tables(paths)}")
        rows = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
        frame, features, y = frame.iloc[rows], features.iloc[rows], y[rows]
    return (frame, features, y), n


def _group(model: TableModel, frame: Any, features: Any, name: str) -> Any:
    """Return a feature as the model reads it, or any other column as texts."""
    if name in features and features[name].dtype.kind in "biuf":
        return features[name]
    gaps = find_gaps(frame, name, "group", model.reader.missing)
    return np.where(gaps, MISSING, frame[name].astype(str).str.strip())


# inspect


def inspect(options: Any) -> None:
    """Load the model and print what is known of it."""
    thing = load_object(options.model)
    facts: dict[str, Any] = {"type": type(thing).__name__}
    tables, model = {}, thing
    if isinstance(thing, TableModel):
        model = thing.learner
        facts |= {"target": thing.target, "known in part": thing.partial}
        facts |= thing.origin
        facts["columns"] = [asdict(rule) for rule in thing.reader.rules_]
        facts["others"] = list(thing.reader.others)
        tables["columns"] = thing.reader.lay_out()
    else:
        names = getattr(thing, "feature_names_in_", None)
        known = getattr(thing, "n_features_in_", None)
        facts["features"] = known if names is None else [str(name) for name in names]
    is_known = isinstance(model, BaseEstimator)
    facts["parameters"] = " ".join(repr(model).split()) if is_known else None
    facts["scale"] = getattr(thing, "scale", None)
    if (check := getattr(model, "check_", None)) is not None:
        facts["check"], tables["check"] = asdict(check), f"out of fold\n{check}"
    if (chosen := getattr(model, "report_", None)) is not None:
        tables["chosen"] = f"chosen on the way\n{chosen}"
        if hasattr(chosen, "summary"):
            facts["chosen"] = chosen.summary()
    if options.json:
        write_out(f"{json.dumps(without_infinities(facts), default=str)}\n")
        return
    lines = [f"{options.model}: a saved {facts.pop('type')}"]
    lines += [
        f"{name}: {', '.join(value) if isinstance(value, list) else value}"
        for name, value in facts.items()
        if value and name not in tables
    ]
    write_out("\n".join([*lines, *(f"\n{text}" for text in tables.values()), ""]))
