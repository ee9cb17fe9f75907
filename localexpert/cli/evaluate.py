"""Score the forecasts of a model on tables with known targets.

Prints scores on rows that the model has not seen, beside those of climatology: the
training target's own distribution as the forecast of every row. Smaller is better,
except for coverage. Coverage is the share of targets in the central 50 and 90 %
intervals. Where a value has probability of its own, a part of it may lie inside.
CRPS is the error of a whole forecast in the units of the target, and the absolute
error if forecasts are single numbers. RMSE is that of the mean, MAE of the median.
Below stand the CRPS and MAE that the forecasts expected of themselves, without the
targets, and the range of 95 % of such means: chance does not explain what is beyond.
It says how many of the rows the model has learned from; of those no score is honest.

Several files, and the Parquet files of folders, are one table. Files are scored part
by part, so a table of Parquet may be larger than memory; of CSV one file must fit.

for example:
  localexpert evaluate houses.zip test.csv
  localexpert evaluate houses.zip january.csv february.csv
  localexpert evaluate houses.zip folder_of_parquet
  localexpert evaluate houses.zip test.csv --target sold_for --json > scores.json
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from localexpert.cli import args, scores
from localexpert.cli.output import warn, write_out
from localexpert.cli.table_model import load_table_model, read_known
from localexpert.data.training_rows import SeenRows
from localexpert.reading import files
from localexpert.reading.messages import count
from localexpert.regressor.seen_rows import seen_rows


def add_options(parser: args.Parser) -> None:
    """Add the arguments of the command."""
    table = (
        "rows with known targets, not used in training: files, or folders of Parquet"
    )
    args.add_options(parser, f"model\ntable+  {table}\n--target\n--json")
    args.add_table_options(parser, "that of each file")


def run(options: Any) -> None:
    """Load the model, read the tables part by part, print the scores of both."""
    paths = files.find_tables(options.table)
    model = load_table_model(options.model)
    # Of new rows, and of those that were learned from: losses, and what was expected.
    sums: list[Any] = [0.0, 0.0]
    expected: list[Any] = [0.0, 0.0]
    answers = []
    for _, features, y in read_known(options, model, paths):
        answers.append(seen_rows(model.model, features, y))
        learned = answers[-1].learned
        dist = model.model.predict_dist(features)
        if learned is None:
            learned = np.zeros(len(y), dtype=bool)
        for k in (0, 1):
            rows = np.flatnonzero(learned == k)
            sums[k] += scores.sum_losses(y[rows], dist[rows], model.climatology)
            expected[k] += scores.sum_expected(dist[rows])
    seen, n_new = SeenRows.join(answers), int(sums[0][0, 0])
    k, n_rows = (0, n_new) if n_new else (1, seen.n)
    if k or (seen.found and n_new == seen.n):
        warn(f"{seen} Scores are too good: new rows tell the truth")
    told, own = scores.name_means(sums[k]), scores.name_expected(expected[k])
    if options.json:
        facts = {"rows": n_rows, "training_rows": str(seen), **told, "expected": own}
        write_out(f"{json.dumps(scores.without_infinities(facts))}\n")
        return
    named = options.table
    name = files.name_tables(named) if named[1:] else files.name_input(named[0])
    new = count(n_rows, "new row" if n_rows < seen.n else "row")
    promised = {
        kind: {f"expected {name}": table[kind] for name, table in own.items()}
        for kind in ("mean", "low", "high")
    }
    tables = f"{scores.lay_out(told)}\n\n{scores.lay_out(promised)}"
    write_out(f"{new} of {name}\n{seen}\n\n{tables}\n")
