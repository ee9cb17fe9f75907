"""What constraints cost: CRPS of monotone forecasts beside the same road without them.

    python benchmarks/monotone.py --data DIR                 # split 0 of both sets
    python benchmarks/monotone.py --data DIR --splits 0 1 2 3 4

DIR holds kc_house.csv.gz and auto_mpg.csv.gz, as for `regression.py`, which says how
rows are split. A road is thresholds on y, or on its logarithm, and shared boosting;
then all that is chosen by default. Of the constrained model pairs of rows are compared
besides that differ in the constrained columns alone, one of them at a time, inside the
range of the table and beyond: the greatest violation of the order by CDFs at 50 values,
by means and by quantiles, these in units of the deviation of y. Rerun to resume.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from records import Records
from regression import load, split_rows

from localexpert import FrameRoad, LocalExpertRegressor, Transformed

CONSTRAINTS = {
    "auto_mpg": {"displacement": -1, "horsepower": -1, "weight": -1, "model": 1},
    "kc_house": {
        **{"sqft_living": 1, "grade": 1, "condition": 1, "view": 1},
        **{"waterfront": 1, "sqft_living15": 1},
    },
}
ROADS = {
    "frame": FrameRoad(None, strategy="shared"),
    "log": Transformed(FrameRoad(None, strategy="shared")),
    "auto": "auto",
}
CHUNK = 5_000


def fit(table: pd.DataFrame, y: np.ndarray, road: str, monotone: Any) -> Any:
    """Return a model with or without constraints."""
    model = LocalExpertRegressor(roads=ROADS[road], monotone=monotone, random_state=0)
    return model.fit(table, y)


def draw_pairs(
    table: pd.DataFrame, signs: dict[str, int], n: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return rows, and the same with one constrained column changed for greater y."""
    rng = np.random.default_rng(0)
    # Columns are drawn each on its own: rows that no table would hold.
    low = pd.DataFrame(
        {c: table[c].to_numpy()[rng.integers(len(table), size=n)] for c in table}
    )
    low = low.astype(dict.fromkeys(signs, float))
    for name in table.columns:
        if isinstance(table[name].dtype, pd.CategoricalDtype):
            low[name] = pd.Categorical(low[name], table[name].cat.categories)
    high = low.copy()
    column = rng.integers(len(signs), size=n)
    for number, (name, sign) in enumerate(signs.items()):
        span = float(np.ptp(table[name].dropna()))
        # From a rounding to ten times the range.
        step = sign * span * 10.0 ** rng.uniform(-9.0, 1.0, size=n)
        rows = column == number
        start = rng.choice([0.0, -span, span], size=n, p=[0.8, 0.1, 0.1])
        low.loc[rows, name] += start[rows]
        high.loc[rows, name] = low.loc[rows, name] + step[rows]
    return low, high


def violation(model: Any, table: pd.DataFrame, y: np.ndarray, n: int) -> dict[str, Any]:
    """Return the worst violations of the order by pairs of rows."""
    both = draw_pairs(table, model.monotone, n)
    values = np.quantile(y, np.linspace(0.0, 1.0, 46)).tolist()
    values = np.array([*values, 0.0, -1.0, 2.0 * y.max(), 10.0 * y.max()])
    levels = np.linspace(0.01, 0.99, 25)
    worst = {"cdf": 0.0, "mean": 0.0, "quantile": 0.0, "moved": 0.0}
    for first in range(0, n, CHUNK):
        parts = [side.iloc[first : first + CHUNK] for side in both]
        low, high = (model.predict_dist(part) for part in parts)
        rise = high.cdf_at(values) - low.cdf_at(values)
        means = low.mean() - high.mean()
        falls = low.quantiles(levels) - high.quantiles(levels)
        worst["cdf"] = max(worst["cdf"], float(rise.max()))
        worst["mean"] = max(worst["mean"], float(means.max() / y.std()))
        worst["quantile"] = max(worst["quantile"], float(falls.max() / y.std()))
        worst["moved"] += float((means != 0.0).sum()) / n
    return worst


def run(path: Path, split: int, road: str, n_pairs: int) -> dict[str, Any]:
    """Return the scores of one set, split and road."""
    table, y = load(path)
    train, test = split_rows(len(y), split)
    name = path.name.split(".")[0]
    row: dict[str, Any] = {"ds": name, "split": split, "road": road}
    for kind, monotone in (("free", None), ("monotone", CONSTRAINTS[name])):
        start = time.perf_counter()
        model = fit(table.iloc[train], y[train], road, monotone)
        row[f"{kind}_s"] = time.perf_counter() - start
        dist = model.predict_dist(table.iloc[test])
        row[kind] = float(dist.crps(y[test]).mean())
    if split == 0:
        row |= violation(model, table.iloc[train], y[train], n_pairs)
    return row


def main() -> None:
    """Run or resume the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sets", nargs="*", default=sorted(CONSTRAINTS))
    parser.add_argument("--roads", nargs="*", default=["frame", "log"])
    parser.add_argument("--splits", nargs="*", type=int, default=[0])
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    records = Records("monotone", options.run, fresh=options.fresh)
    rows = [
        records.measure(
            f"{name}-{road}-{split}",
            lambda name=name, road=road, split=split: run(
                options.data / f"{name}.csv.gz", split, road, options.pairs
            ),
        )
        for split in options.splits
        for name in options.sets
        for road in options.roads
    ]
    table = pd.DataFrame(rows)
    table["ratio"] = table["monotone"] / table["free"]
    print(table.drop(columns=["run", "key", "machine"]).to_string(index=False))
    print(table.groupby(["ds", "road"])[["free", "monotone", "ratio"]].mean())


if __name__ == "__main__":
    main()
