r"""Forecast the rows of a table.

The output has a row for each of the table, in its order: mean, std, and a column for
each thing that is asked for: q0.05 (a quantile), low_0.9 and high_0.9 (an interval),
p_above_100 (the probability of a greater value), var_0.95 and es_0.95 (the value at
risk, and the expected shortfall: the mean of what lies beyond it). With --total there
is a row for each value of a column instead: the law of the sum over its rows, as if
rows were independent of each other once their columns are known.

Columns are matched by name, whatever their order. Categories that were not met in
training count as gaps. Several files, and the Parquet files of folders, are one table.
Parquet is read and written part by part, so a table may be larger than memory. A text
is written as the input is, with its delimiter and its decimal mark; --delimiter and
--decimal name those of both. The name after --out says the kind: .csv, .tsv, both
packed as .csv.gz and .tsv.gz, .parquet or .xlsx. Columns to copy keep every digit.

for example:
  localexpert predict houses.zip new.csv --out forecasts.csv
  localexpert predict houses.zip new.csv --keep id --quantiles .05,.5,.95 \
      --interval .9 --exceed 100,200 --digits 4 --out forecasts.xlsx
  localexpert predict claims.zip new.csv --var .95,.99 --es .95 --out risks.csv
  localexpert predict claims.zip new.csv --total sector --var .99 --out sums.csv
  localexpert predict houses.zip folder_of_parquet --keep id --out forecasts.parquet
  localexpert predict houses.zip new.csv | head
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from localexpert.cli import args
from localexpert.cli.output import Conventions, check_table, write_table
from localexpert.cli.table_model import load_table_model, read_features
from localexpert.distribution.frame import DEFAULT_LEVELS, Questions
from localexpert.distribution.predictive import PredictiveDistribution, concatenate
from localexpert.reading.files import Frame, find_tables
from localexpert.reading.labels import read_words
from localexpert.reading.messages import load_pandas, refuse

#: A table as it was read, and its forecasts.
Part: TypeAlias = tuple[Frame, PredictiveDistribution]

_OPTIONS = f"""\
model
table+  rows with the columns of the training file: files, or folders of Parquet
--quantiles P,P  levels between 0 and 1 (default, if nothing else is asked for: \
{",".join(map(str, DEFAULT_LEVELS))})
--interval P  central interval of mass P
--exceed V,V  probabilities of more than these values
--var P,P  values at risk, with these confidences
--es P,P  expected shortfalls, with these confidences
--tail upper|lower  which end is the risk of --var and --es (default: upper, as of \
losses)
--total COLUMN  forecast sums of the rows of each value of it
--keep A,B  columns to copy
--digits 1..  digits of forecasts that count (default: all, to the last bit)
"""


def add_options(parser: args.Parser) -> None:
    """Add the arguments of the command."""
    args.add_out(parser, "FORECASTS.csv")
    args.add_options(parser, _OPTIONS, tail={"default": "upper"})
    args.add_table_options(parser, "that of each file")


def run(options: Any) -> None:
    """Load the model, read the tables part by part, write their forecasts."""
    check_table(options.out, [options.model, *options.table])
    paths = find_tables(options.table)
    check_table(options.out, [options.model, *paths])
    if options.total is not None and options.keep:
        refuse("--keep copies columns of rows, and --total has sums of them: say one")
    model = load_table_model(options.model)
    clash = sorted(set(options.keep) & set(_ask(options, None)))
    if clash:
        refuse(f"--keep {clash[0]!r} has the name of a column of forecasts")
    named = dict.fromkeys(options.keep, "column to keep")
    if options.total is not None:
        named[options.total] = "column to sum by"
    parts = (
        (frame, model.model.predict_dist(features))
        for frame, features in read_features(options, model, paths, named)
    )
    lay_out = _tell_rows if options.total is None else _tell_totals
    told = (
        (told, Conventions.of(options, frame, options.digits))
        for told, frame in lay_out(options, parts)
    )
    write_table(options.out, "forecast", told)


def _tell_rows(options: Any, parts: Iterator[Part]) -> Iterator[tuple[Frame, Frame]]:
    """Yield the forecasts of each part, beside the columns that are kept."""
    for frame, dist in parts:
        told = load_pandas().DataFrame(_ask(options, dist), index=frame.index)
        yield load_pandas().concat([frame[list(options.keep)], told], axis=1), frame


def _tell_totals(options: Any, parts: Iterator[Part]) -> Iterator[tuple[Frame, Frame]]:
    """Yield a row for each group: its name, its number of rows, the law of its sum."""
    found, dists, frame = [], [], None
    for frame, dist in parts:
        found.append(read_words(frame, options.total, "column to sum by"))
        dists.append(dist)
    groups = np.concatenate(found).astype(str)
    names, counts = np.unique(groups, return_counts=True)
    sums = concatenate(dists).total(groups=groups)
    told = {options.total: names.astype(object), "rows": counts, **_ask(options, sums)}
    yield load_pandas().DataFrame(told), frame


def _ask(options: Any, dist: PredictiveDistribution | None) -> dict[str, Any]:
    """Return the columns of answers, or None for each as long as nobody is asked."""
    risks = options.var or options.es
    asked = {
        "quantiles": sorted(set(options.quantiles)) or (() if risks else None),
        "interval": options.interval,
        "exceed": options.exceed or None,
    }
    questions = Questions.of(**asked)
    told: dict[str, Any] = dict.fromkeys(questions.names)
    if dist is not None:
        told = questions.answers(dist)
    for name, method in (("var", "value_at_risk"), ("es", "expected_shortfall")):
        for level in sorted(set(getattr(options, name))):
            answer = dist and getattr(dist, method)(level, options.tail)
            told[f"{name}_{level:.10g}"] = answer
    return told
