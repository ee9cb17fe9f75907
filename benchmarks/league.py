"""A league of methods that forecast distributions, on any folder of tables.

    python benchmarks/league.py --data DIR                      # every method, split 0
    python benchmarks/league.py --data DIR --methods ours-quick ngboost --splits 0 1
    python benchmarks/league.py --data DIR --share 0.7          # fewer to train on
    python benchmarks/league.py --data DIR --standard           # the published splits
    python benchmarks/league.py --short                         # needs no files
    python benchmarks/league.py --write                         # the manual's section

DIR holds NAME.csv.gz tables, the target last, and NAME.splits.npz with the published
test rows of some. `open_tables.py` makes such a folder. Ours are "ours-quick",
"ours-default" and "ours-best", by their effort; the others are in `peers.py`, and need
the `bench` extra. Rows go to `results/league.jsonl`, which is under version control:
`--write` makes the manual's tables and its picture of these rows. Rerun to resume.

CRPS is twice the mean pinball loss over the levels .005, .010, ..., .995, for all
methods. Coverage and interval score (Gneiting & Raftery 2007, eq. 43) are those of the
central 90 % interval. Seconds are of processor time, of one thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from records import RESULTS, Records
from regression import LEVELS, load, rows_of_split, splits_path
from scipy.stats import studentized_range

from calibration import compare_methods

Row = dict[str, Any]
DOCS = Path(__file__).parents[1] / "docs"
OURS = ("ours-", "localexpert")
BEGIN, END = ".. league begins\n", ".. league ends\n"
NAMES = {
    "ours-quick": 'localexpert, effort="quick"',
    "ours-default": "localexpert",
    "ours-best": 'localexpert, effort="best"',
    "chimera_quantiles": "ChimeraBoost, 23 quantiles",
    "catboost_quantiles": "CatBoost MultiQuantile, 23 quantiles",
    "quantile_forest": "quantile forest",
    "lgb_quantiles": "LightGBM, one model per quantile",
    "lgb_few": "LightGBM, 19 models of 200 trees",
    "ngboost": "NGBoost",
    "crepes_cps": "crepes, normalised",
    "catboost_unc": "CatBoost with uncertainty",
    "distribution_regressor": "DistributionRegressor",
    "localexpert": "localexpert",
    "ngboost_gaussian": "NGBoost, normal",
    "xgblss_gaussian": "XGBoostLSS, normal",
    "xgb_vector_quantile": "XGBoost, 50 quantiles",
    "catboost_quantile": "CatBoost MultiQuantile, 99 quantiles",
    "tabpfn": "TabPFN",
    "tabicl": "TabICL",
    "boosted_quantiles": "LightGBM, 21 small models",
    "constant": "training quantiles",
}
BENCHES = {
    "shared": "Nineteen tables, of which some served to choose the defaults",
    "open": "Tables that chose nothing: 47 that come with packages of R",
}
# What is run on every table in ScoringBench's protocol.
WITHOUT_WEIGHTS = {
    "localexpert",
    "ngboost_gaussian",
    "xgblss_gaussian",
    "xgb_vector_quantile",
    "catboost_quantile",
    "quantile_forest",
}
# CRPS of five folds in that protocol, as jxucoder/openboost has published them.
PUBLISHED = {
    "1027_ESL": {"OpenBoost": 0.3005, "XGBoostLSS": 0.3043, "CatBoost": 0.3249},
    "197_cpu_act": {"HistogramBoost": 1.2872, "CatBoost": 1.3262, "XGBoost": 1.6201},
}
MEASURES = {
    "crps": "CRPS",
    "interval90": "interval",
    "rmse": "RMSE",
}


def quantile_scores(y: np.ndarray, quantiles: np.ndarray) -> dict[str, float]:
    """Return what the quantiles (n, 199) of any method are compared by."""
    miss = y[:, None] - quantiles
    pinball = np.maximum(LEVELS * miss, (LEVELS - 1.0) * miss)
    low, high = quantiles[:, 9], quantiles[:, 189]
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return {
        "crps": float(2.0 * pinball.mean()),
        "cov90": float(((low <= y) & (y <= high)).mean()),
        "width90": float((high - low).mean()),
        "interval90": float((high - low + 20.0 * outside).mean()),
    }


def run_ours(
    effort: str, X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, y_new: np.ndarray
) -> Row:
    """Return the scores and seconds of ours."""
    from localexpert import LocalExpertRegressor, interval_coverage

    began = time.process_time()
    model = LocalExpertRegressor(effort=effort, random_state=0, n_jobs=1).fit(X, y)
    fitted = time.process_time()
    dist = model.predict_dist(X_new)
    quantiles, mean = dist.quantiles(LEVELS), dist.mean()
    asked = time.process_time()
    row = quantile_scores(y_new, quantiles)
    # Exact where forecasts jump; of the others quantiles are all there is.
    row["cov90"] = interval_coverage(y_new, dist, coverage=0.9)
    row["nll"] = float(-np.mean(dist.logpdf(y_new)))
    row["rmse"] = float(np.sqrt(np.mean((mean - y_new) ** 2)))
    return row | {"cpu_s": fitted - began, "pred_s": asked - fitted}


def run_peer(
    method: Callable[..., Any],
    X: pd.DataFrame,
    y: np.ndarray,
    X_new: pd.DataFrame,
    y_new: np.ndarray,
) -> Row:
    """Return the scores and seconds of another method."""
    began = time.process_time()
    told = method(X, y, X_new)
    row: Row = {"cpu_s": time.process_time() - began}
    row |= quantile_scores(y_new, told.quantiles)
    if told.logpdf is not None:
        row["nll"] = float(-told.logpdf(y_new).mean())
    # Levels are spread evenly, so the mean of quantiles is nearly that of the law.
    mean = told.quantiles.mean(axis=1) if told.mean is None else told.mean
    return row | {"rmse": float(np.sqrt(np.mean((mean - y_new) ** 2)))}


def run(method: str, data: Sequence[Any]) -> Row:
    """Return the row of a method on one split, with six digits."""
    if method.startswith("ours-"):
        row = run_ours(method.removeprefix("ours-"), *data)
    else:
        from peers import METHODS, ON_DEMAND

        row = run_peer((METHODS | ON_DEMAND)[method], *data)
    row = {name: float(f"{value:.6g}") for name, value in row.items()}
    return {"method": method, "n": len(data[1]), **row}


def run_tables(records: Records, options: argparse.Namespace) -> list[Row]:
    """Return the rows of all methods, tables and splits asked for."""
    from peers import METHODS
    from regression_short import BASELINES, short_tables

    if options.short:
        tables = {name: lambda t=table: t for name, table in short_tables().items()}
    else:
        paths = {p.name.split(".")[0]: p for p in sorted(options.data.glob("*.csv.gz"))}
        tables = {name: lambda p=path: load(p) for name, path in paths.items()}
    others = BASELINES if options.short else METHODS
    methods = options.methods or ["ours-quick", "ours-default", *others]
    rows = []
    for name in options.sets or tables:
        path = Path(options.data or "") / f"{name}.csv.gz"
        if options.standard and not splits_path(path).exists():
            continue
        X, y = tables[name]()
        for split in options.splits:
            share = 0.5 if options.short else options.share
            train, test = rows_of_split(
                path, split, len(y), standard=options.standard, share=share
            )
            data = X.iloc[train], y[train], X.iloc[test], y[test]
            for method in methods:
                key = f"{name}-{split}-{method}"
                head = {"ds": name, "split": split}
                row = records.measure(
                    key, lambda h=head, m=method, d=data: h | run(m, d)
                )
                print(f"{key:40} CRPS {row['crps']:.5g}, {row['cpu_s']:.1f} s")
                rows.append(row)
    return rows


def table_of(rows: list[Row], measure: str) -> pd.DataFrame:
    """Return a measure by set and method; methods that lack some sets are left out."""
    frame = pd.DataFrame(rows)
    if measure not in frame:
        return pd.DataFrame()
    wide = frame.pivot_table(measure, ["ds", "split"], "method")
    return wide.dropna(axis=1).groupby("ds").mean()


def to_best_peer(losses: pd.DataFrame) -> pd.DataFrame:
    """Return the losses over that of the best of the others on each set."""
    ours = [name for name in losses if name.startswith(OURS)]
    peers = losses.columns.drop(ours if len(ours) < losses.shape[1] else [])
    return losses.div(losses[peers].min(axis=1), axis=0)


def critical_difference(n_sets: int, n_methods: int, level: float = 0.05) -> float:
    r"""Return the difference of mean ranks that is significant (Nemenyi's test).

    :math:`q \sqrt{k (k + 1) / (6 N)}`, where q is the quantile of the Studentized
    range for k groups and infinitely many degrees of freedom, over the root of two.
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets.
    """
    q = studentized_range.ppf(1.0 - level, n_methods, np.inf) / np.sqrt(2.0)
    return float(q * np.sqrt(n_methods * (n_methods + 1.0) / (6.0 * n_sets)))


def summarize(rows: list[Row]) -> pd.DataFrame:
    """Return a line per method, the best mean rank first, with text in its cells."""
    crps = table_of(rows, "crps")
    ratios, ranks = to_best_peer(crps), crps.rank(axis=1).mean().sort_values()
    frame = pd.DataFrame(rows)
    misses = [row | {"miss": abs(row["cov90"] - 0.9)} for row in rows]
    seconds = frame.pivot_table("cpu_s", "method", aggfunc="median", dropna=False)
    seconds = seconds["cpu_s"].reindex(crps.columns)
    log_scores = table_of(rows, "nll")
    others = {name: to_best_peer(table_of(rows, name)).mean() for name in MEASURES}
    out = pd.DataFrame(index=ranks.index)
    out["CRPS"] = others.pop("crps").map("{:.3f}".format)
    out["worst"] = ratios.max().map("{:.3f}".format)
    out["best on"] = crps.rank(axis=1, method="min").eq(1).sum().map(str)
    out["rank"] = ranks.map("{:.2f}".format)
    off = table_of(misses, "miss").mean()
    out["coverage"] = off.map(lambda value: f"{value:.3f}"[1:])
    reference = log_scores.get("ours-default", log_scores.min(axis=1))
    apart = log_scores.sub(reference, axis=0).mean()
    out["log score"] = apart.reindex(out.index).map("{:+.2f}".format)
    for name, ratio in others.items():
        if ratio.notna().any():
            out[MEASURES[name]] = ratio.map("{:.3f}".format)
    out["seconds"] = seconds.map("{:.1f}".format)
    out = out.fillna("").replace({"+nan": "", "nan": "", "-0.00": "0", "+0.00": "0"})
    return out.rename(index=NAMES).rename_axis("method").reset_index()


def as_rst(table: pd.DataFrame) -> str:
    """Return a simple table of reStructuredText."""
    lines = [list(table), *table.to_numpy().tolist()]
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]
    rule = "  ".join("=" * width for width in widths)
    body = [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([rule, body[0], rule, *body[1:], rule, ""])


def section(title: str, rows: list[Row]) -> str:
    """Return a table with a heading, and what its ranks say."""
    crps = table_of(rows, "crps")
    found = compare_methods(crps)
    least = critical_difference(*crps.shape)
    return (
        f"{title}\n{'~' * len(title)}\n\n{as_rst(summarize(rows))}\n"
        f"Friedman's test of equal mean ranks over {len(crps)} sets: p = "
        f"{found.friedman_p:.1g}. Two ranks differ at the level\n"
        f".05 if they are {least:.2f} apart (Nemenyi's test).\n"
    )


def read_rows(file: str) -> list[Row]:
    """Return the rows of a file that is under version control."""
    lines = (RESULTS / file).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def by_run(rows: list[Row]) -> dict[str, list[Row]]:
    """Return the rows of each bench, and those of the tables with every effort."""
    runs = {name: [row for row in rows if row["run"] == name] for name in BENCHES}
    small = {row["ds"] for row in runs["shared"] if row["method"] == "ours-best"}
    runs["small"] = [row for row in runs["shared"] if row["ds"] in small]
    return runs


def scoringbench(rows: list[Row]) -> str:
    """Return the section of another benchmark's protocol, and what others published."""
    first = [row | {"split": 0} for row in rows if row["fold"] == 0]
    ran: dict[str, set[str]] = {}
    for row in first:
        ran.setdefault(row["ds"], set()).add(row["method"])
    sets = {name for name, methods in ran.items() if methods >= WITHOUT_WEIGHTS}
    whole = [row for row in first if row["ds"] in sets]
    lines = []
    for name, others in PUBLISHED.items():
        ours = [
            row["crps"]
            for row in rows
            if row["ds"] == name and row["method"] == "localexpert"
        ]
        told = ", ".join(f"{other} {crps}" for other, crps in others.items())
        lines.append(
            f"- ``{name}``: CRPS {np.mean(ours):.4f} in the mean of {len(ours)} folds; "
            f"published: {told}."
        )
    title = f"ScoringBench's protocol: {len(sets)} of its tables, first fold"
    return section(title, whole) + "\n" + "\n".join(lines) + "\n"


def write_section(league: list[Row], others: list[Row]) -> str:
    """Return the manual's section, all of it from the rows."""
    runs = by_run(league)
    parts = [section(title, runs[name]) for name, title in BENCHES.items()]
    if runs["small"]:
        names = ", ".join(sorted({row["ds"] for row in runs["small"]}))
        parts.append(section(f"Every effort: {names}", runs["small"]))
    return "\n" + "\n".join([*parts, scoringbench(others)]) + "\n"


def draw(league: list[Row], path: Path) -> None:
    """Draw CRPS against seconds, and mean ranks with their critical difference."""
    import matplotlib.pyplot as plt

    rows = by_run(league)
    fig, axes = plt.subplots(2, 2, figsize=(12.0, 9.0), layout="constrained")
    for name, (ax, below) in zip(BENCHES, axes.T, strict=True):
        crps = table_of(rows[name], "crps")
        means, ranks = to_best_peer(crps).mean(), crps.rank(axis=1).mean()
        seconds = pd.DataFrame(rows[name]).groupby("method")["cpu_s"].median()
        colors = ["C3" if method.startswith(OURS) else "C0" for method in crps]
        ax.scatter(seconds[crps.columns], means, c=colors)
        for method in crps:
            at = seconds[method], means[method]
            label = (
                NAMES[method].split(",")[0] if method[:4] != "ours" else NAMES[method]
            )
            note = ax.annotate(label, at, (5, 3), textcoords="offset points", size=7)
            note.set_in_layout(False)
        ax.set(xscale="log", xlabel="seconds of a fit (median)")
        ax.set_ylabel("CRPS over that of the best peer")
        ax.set_title(f"{name}: {len(crps)} tables", fontsize=10)
        ax.margins(x=0.45)
        reach = critical_difference(*crps.shape)
        ranks = ranks.sort_values(ascending=False)
        below.errorbar(ranks, range(len(ranks)), xerr=reach / 2.0, fmt="o", capsize=3)
        below.set_yticks(range(len(ranks)), [NAMES[name] for name in ranks.index])
        below.set_xlabel(
            f"mean rank\nbars that do not touch differ ({reach:.2f} apart)"
        )
    fig.savefig(path, dpi=100)
    plt.close(fig)


def write() -> None:
    """Write the manual's section and its picture."""
    page = DOCS / "benchmarks.rst"
    league, others = read_rows("league.jsonl"), read_rows("scoringbench.jsonl")
    text = page.read_text(encoding="utf-8")
    head, rest = text.split(BEGIN)
    tail = rest.split(END)[1]
    page.write_text(
        head + BEGIN + write_section(league, others) + END + tail, encoding="utf-8"
    )
    draw(league, DOCS / "images" / "league.png")


def main() -> None:
    """Run or resume the league, and print a line per method; or write its section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of CSV files")
    parser.add_argument("--short", action="store_true", help="three small tables")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--splits", nargs="*", type=int, default=[0])
    parser.add_argument("--standard", action="store_true", help="published splits")
    parser.add_argument("--share", type=float, default=0.9, help="rows to train on")
    parser.add_argument("--methods", nargs="*", help="some of them, by name")
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    parser.add_argument("--write", action="store_true", help="the manual's section")
    options = parser.parse_args()
    if options.write:
        write()
        return
    if options.data is None and not options.short:
        parser.error("--data is needed without --short")
    file = "league" if options.run in BENCHES else "league_runs"
    records = Records(file, options.run, fresh=options.fresh)
    print(summarize(run_tables(records, options)).to_string(index=False))


if __name__ == "__main__":
    main()
