"""Tables and splits of the benchmarks of regression.

A folder holds NAME.csv.gz files whose last column is the target, and NAME.splits.npz
with the published test rows of some. Split i: `default_rng([7, i]).permutation(n)`, the
first 90 % train, at most 12 000 rows of a table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

LEVELS = np.arange(1, 200) / 200.0
MOST_ROWS = 12_000


def load(path: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features, with strings as categories, and the target."""
    table = pd.read_csv(path)
    y = table.pop("target").to_numpy(float)
    for name in table.columns:
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = table[name].astype("category")
    if len(y) > MOST_ROWS:
        rows = np.random.default_rng(0).choice(len(y), MOST_ROWS, replace=False)
        rows.sort()
        table, y = table.iloc[rows].reset_index(drop=True), y[rows]
    return table, y


def split_rows(n: int, split: int, share: float = 0.9) -> list[np.ndarray]:
    """Return training and test rows."""
    order = np.random.default_rng([7, split]).permutation(n)
    return np.split(order, [round(share * n)])


def rows_of_split(
    path: Path, split: int, n: int, *, standard: bool, share: float = 0.9
) -> Any:
    """Return training and test rows, of the published splits if `standard`."""
    if not standard:
        return split_rows(n, split, share)
    test = np.load(splits_path(path))[f"test_{split}"]
    return np.setdiff1d(np.arange(n), test), test


def splits_path(path: Path) -> Path:
    """Return where the published splits of a set would be."""
    return path.with_name(path.name.replace(".csv.gz", ".splits.npz"))
