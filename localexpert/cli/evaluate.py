"""`localexpert evaluate`: scores of forecasts beside those of climatology."""

from __future__ import annotations

import json
from typing import Any

from localexpert.cli.command import Command
from localexpert.cli.console import count
from localexpert.cli.known_rows import KNOWN_ROWS, read_known, target_name
from localexpert.cli.model_files import load_table_model
from localexpert.cli.options import FLAG
from localexpert.cli.output import write_out
from localexpert.cli.read_file import name_input
from localexpert.cli.scores import (
    ExpectedSums,
    ScoreSums,
    lay_out_expected,
    lay_out_scores,
    without_infinities,
)
from localexpert.cli.tables import find_tables, name_tables

_EPILOG = """\
Prints scores on rows that the model has not seen, beside those of climatology: the
training target's own distribution as the forecast of every row. Smaller is better
for all but coverage, the share of targets in the central 50 and 90 % intervals (of
a value with probability of its own, the share of it that the interval takes).
CRPS is the error of a whole forecast in the units of the target, and the absolute
error if forecasts are single numbers. RMSE is that of the mean, MAE of the median.
Below stand the CRPS and MAE that the forecasts expected of themselves, without the
targets, and the range of 95 % of such means: chance does not explain what is beyond.

Several files, and the Parquet files of folders, are one table. Parquet is read part by
part, so a table may be larger than memory; of CSV one file must fit.

examples:
  localexpert evaluate houses.zip test.csv
  localexpert evaluate houses.zip january.csv february.csv
  localexpert evaluate houses.zip folder_of_parquet
  localexpert evaluate houses.zip test.csv --target sold_for --json > scores.json
"""

# Rows that are forecast at once.
_BATCH = 10_000


def run(options: Any) -> None:
    """Load the model, read the tables part by part, print the scores of both."""
    paths = find_tables(options.table)
    model = load_table_model(options.model)
    schema = model.schema
    options.decimal = options.decimal or schema.decimal
    sums, expected = ScoreSums(model.climatology), ExpectedSums()
    for rows in read_known(options, schema, paths, target_name(options, schema)):
        for start in range(0, len(rows), _BATCH):
            part = slice(start, start + _BATCH)
            dist = model.predict_dist(rows.frame.iloc[part])
            sums.add(rows.y[part], dist)
            expected.add(dist)
    if options.json:
        told = {"rows": sums.n_rows, **sums.means(), "expected": expected.means()}
        write_out(f"{json.dumps(without_infinities(told))}\n")
        return
    one = len(options.table) == 1
    name = name_input(options.table[0]) if one else name_tables(options.table)
    scores, own = lay_out_scores(sums.means()), lay_out_expected(expected.means())
    write_out(f"{count(sums.n_rows, 'row')} of {name}\n\n{scores}\n\n{own}\n")


COMMAND = Command(
    run,
    "score a model on rows it has not seen",
    "Score the forecasts of a model on tables with known targets.",
    _EPILOG,
    (*KNOWN_ROWS, ("--json", "one JSON object; null is not finite", FLAG)),
)
