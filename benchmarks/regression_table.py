"""Tables of the regression benchmark: ours beside other methods, set by set.

A row is one run: its set `ds`, `split`, `method` (none: ours), `crps`, `cov90` and,
where the method has a density, `nll`. Sets are what the rank tests count, so the
splits of a set are averaged first, over those that every method was run on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from calibration import compare_methods

Row = dict[str, Any]
OURS = "ours"
# Names of the peers' rows, short enough for a column.
SHORT = {
    "catboost_quantiles": "cat quant",
    "catboost_unc": "catboost",
    "chimera_quantiles": "chimera",
    "crepes_cps": "crepes",
    "distribution_regressor": "distreg",
    "lgb_few": "lgb few",
    "lgb_quantiles": "lgb quant",
    "quantile_forest": "q forest",
}


def losses(rows: list[Row], others: list[Row], measure: str) -> pd.DataFrame:
    """Return a measure by set (rows) and method (columns), ours first.

    "miss" is the distance of the coverage of 90 % intervals from .9. Methods without
    the measure are left out, and so are runs that one of the others lacks.
    """
    table = pd.DataFrame([row | {"method": OURS} for row in rows] + others)
    table["miss"] = (table["cov90"] - 0.9).abs()
    runs = table.pivot_table(measure, ["ds", "split"], "method").dropna()
    means = runs.groupby("ds").mean().rename(columns=SHORT)
    return means[[OURS, *means.columns.drop(OURS)]]


def print_ours(rows: list[Row]) -> None:
    """Print every run of ours."""
    print(
        f"{'set':12s} {'split':>5s} {'CRPS':>10s} {'NLL':>8s} {'cov90':>6s} "
        f"{'RMSE':>10s} {'fit s':>6s} {'pred s':>6s} {'CPU s':>6s}"
    )
    for row in sorted(rows, key=lambda row: (row["ds"], row["split"])):
        print(
            f"{row['ds']:12s} {row['split']:5d} {row['crps']:10.4g} {row['nll']:8.3f} "
            f"{row['cov90']:6.3f} {row['rmse']:10.4g} "
            f"{row['fit_s']:6.1f} {row['pred_s']:6.2f} {row['cpu_s']:6.1f}"
        )
    coverage = np.mean([abs(row["cov90"] - 0.9) for row in rows])
    print(f"\nmean |coverage - .9| of {len(rows)} runs {coverage:.4f}")


def print_ratios(crps: pd.DataFrame) -> None:
    """Print CRPS over that of the best of the others on the set."""
    ratios = crps.div(crps.drop(columns=OURS).min(axis=1), axis=0)
    print("\nCRPS / best of the others on the set\n")
    print_columns(ratios, "9.3f")
    for name, line in (
        ("mean", ratios.mean()),
        ("worst", ratios.max()),
        ("best on", crps.rank(axis=1, method="min").eq(1).sum()),
    ):
        form = "9d" if name == "best on" else "9.3f"
        print(f"{name:12s} " + " ".join(f"{value:{form}}" for value in line))


def print_columns(table: pd.DataFrame, form: str) -> None:
    """Print a table of sets and methods, the least of each line with a star."""
    print(f"{'set':12s} " + " ".join(f"{name:>9s}" for name in table))
    for name, line in table.iterrows():
        best = line.min()
        cells = [f"{x:{form}}{'*' if x == best else ' '}" for x in line]
        print(f"{name:12s} " + "".join(cells).rstrip())
    print()


def print_ranks(title: str, table: pd.DataFrame) -> None:
    """Print average ranks, the tests of equality, and each method against ours."""
    print(f"\nranks in {title}\n")
    if min(table.shape) < 2:
        print(f"at least 2 sets and 2 methods are needed, got {table.shape}")
    else:
        print(compare_methods(table, control=OURS))


def print_tables(rows: list[Row], others: list[Row]) -> None:
    """Print ours, and where there are other methods the comparison with them."""
    print_ours(rows)
    # As many training rows: of another share nothing could be compared.
    keys = {(row["ds"], row["split"], row["n"]) for row in rows}
    others = [r for r in others if (r["ds"], r["split"], r["n"]) in keys]
    if not others:
        print("no rows of other methods on these sets and splits")
        return
    crps, nll, miss = (losses(rows, others, name) for name in ("crps", "nll", "miss"))
    print_ratios(crps)
    print_ranks("CRPS", crps)
    if nll.shape[1] > 1:
        print("\nNLL of the methods that have a density\n")
        print_columns(nll, "9.3f")
        print_ranks("NLL", nll)
    print("\n|coverage of 90 % intervals - .9|, mean over sets\n")
    print("   ".join(f"{name} {value:.4f}" for name, value in miss.mean().items()))
    print_ranks("|coverage - .9|", miss)
