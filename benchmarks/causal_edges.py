"""Edges of random networks: shares of bootstrap graphs, raw and calibrated.

    python benchmarks/causal_edges.py
    python benchmarks/causal_edges.py --edges 200 --graphs 0 --resample subsample
    python benchmarks/causal_edges.py --time-learners

As in section 6.2 of Naeini's thesis, but for 200 variables: discrete networks of two or
three states, 1000 rows, 200 replicates, 40, 80 or 120 known pairs, a quarter from each
class. Measured on all other pairs. The learner is that of `hill_climbing.py`;
`--time-learners` times it beside pyAgrum's on one replicate (learners of the packages
that are not installed are left out). Raw shares that are 0 count as half a replicate in
the log loss; "best zero" is the raw log loss had one known what they should count as.
Raw classes are the likeliest ones. "automatic" chooses between doing nothing, a
temperature and the matrix by held-out trials; "nets" are `ShallowNetCalibrator`, and
"nets, thesis" the same trained as the thesis trains them; "degrees" are nets that see,
beside the shares, how many edges the two variables have, and how many arrows into them.

Calibrated classes are those of `decide`; "argmax" rows are the likeliest classes of the
same probabilities, as the thesis has it. A star is a difference from the raw shares by
Wilcoxon's signed-rank test over the graphs, two-sided at .05.

A graph is one JSON line, and so is what is learned from it: a broken run goes on.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from hill_climbing import learn_parents
from records import Records
from scipy.stats import wilcoxon

import calibration as cal
from examples.causal_edges import (
    BIN,
    CLASSES,
    MIRRORED,
    KnownPairs,
    Network,
    calibrate,
    decide,
    edge_shares,
    fill_zeros,
    judge,
    learn_by_pyagrum,
    mirror,
    read_pairs,
    to_cpdag,
    weigh,
)

V, ROWS, REPLICATES = 200, 1000, 200
EDGES, KNOWN = (200, 400, 600), (40, 80, 120)
ZEROS = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02)
LEVEL = 0.05
# Ridge of the nets with degrees, of 3 and 0.3 the better on networks of 100 variables.
NET_PENALTY = 3.0
METHODS = ("raw", "matrix", "automatic", "nets", "nets, thesis", "degrees")
# Columns of the shares that are one kind of edge.
KINDS = {"none": [0], "directed": [1, 2], "undirected": [3]}
# Beside doing nothing.
MENU = {
    "temperature": cal.SoftmaxCalibrator("temperature"),
    "matrix": cal.SoftmaxCalibrator("matrix", 1.0),
}
SHOWN = (
    "log_loss",
    "mce",
    "mce_none",
    "mce_directed",
    "mce_undirected",
    "directed_precision",
    "directed_recall",
    "directed_f1",
    "undirected_precision",
    "undirected_recall",
    "undirected_f1",
)


def draw_network(n_edges: int, graph: int) -> Network:
    """Return a network of its own for each number of edges and of graph."""
    return Network.draw(V, n_edges, ROWS, 1000 * n_edges + graph)


def learn(data: np.ndarray) -> np.ndarray:
    """Return the completed graph of a table."""
    return to_cpdag(learn_parents(data))


def learn_shares(n_edges: int, graph: int, resample: Any) -> dict[str, Any]:
    """Return pairs that some replicate joins, their counts, and the seconds taken."""
    start, clock = time.process_time(), time.perf_counter()
    data = draw_network(n_edges, graph).data
    shares = edge_shares(data, learn, REPLICATES, resample, graph)
    counts = np.rint(REPLICATES * shares).astype(int)
    seen = np.flatnonzero(counts[:, 0] < REPLICATES)
    return {
        "cpu": round(time.process_time() - start, 1),
        "s": round(time.perf_counter() - clock, 1),
        "pairs": seen.tolist(),
        "counts": counts[seen].tolist(),
    }


def read_shares(row: dict[str, Any]) -> np.ndarray:
    """Return the shares of a record, shape (v (v - 1) / 2, 4)."""
    shares = np.zeros((V * (V - 1) // 2, len(CLASSES)))
    shares[:, 0] = 1.0
    shares[row["pairs"]] = np.array(row["counts"]) / REPLICATES
    return shares


def judge_graph(shares: np.ndarray, n_edges: int, graph: int, n_pairs: int) -> Any:
    """Return the measures on the pairs that are not known, by method."""
    classes = read_pairs(to_cpdag(draw_network(n_edges, graph).dag))
    known = KnownPairs.draw(shares, classes, n_pairs, graph)
    rest = np.ones(len(classes), dtype=bool)
    rest[known.rows] = False
    y, raw = classes[rest], shares[rest]
    # Calibration errors of the shares are those of the shares as they are.
    found = {"raw": judge(y, raw, raw.argmax(axis=1)) | kind_errors(y, raw)}
    losses = [
        cal.log_loss(y, fill_zeros(raw, REPLICATES, zero), clip=1e-15) for zero in ZEROS
    ]
    found["raw"] |= {"log_loss": losses[ZEROS.index(0.5)], "best_zero": min(losses)}
    automatic = cal.AutoCalibrator(candidates=MENU, max_harm=0.5)
    forecasts = {
        "matrix": calibrate(shares, classes, known),
        "automatic": calibrate(shares, classes, known, automatic),
        "nets": calibrate(shares, classes, known, cal.ShallowNetCalibrator()),
        "nets, thesis": calibrate(
            shares, classes, known, cal.ShallowNetCalibrator(solver="adagrad")
        ),
        "degrees": calibrate_by_degrees(shares, classes, known),
    }
    for name, p in forecasts.items():
        found[name] = judge(y, p[rest], decide(p[rest])) | kind_errors(y, p[rest])
        found[f"{name}/argmax"] = judge(y, p[rest], p[rest].argmax(axis=1))
    return {f"{name}/{one}": v for name, row in found.items() for one, v in row.items()}


def kind_errors(y: np.ndarray, p: np.ndarray) -> dict[str, float]:
    """Return the maximum calibration error of each kind of edge, in bins of 100."""
    return {
        f"mce_{kind}": cal.maximum_calibration_error(
            np.concatenate([y == one for one in columns]),
            np.concatenate([p[:, one] for one in columns]),
            n_bins=len(columns) * len(p) // BIN,
            binning="rank",
        )
        for kind, columns in KINDS.items()
    }


def calibrate_by_degrees(
    shares: np.ndarray, classes: np.ndarray, known: KnownPairs
) -> np.ndarray:
    """Return probabilities by nets that see degrees as well."""
    side = count_degrees(shares)
    swapped = side[:, [1, 0, 3, 2]]
    some = known.rows
    nets = cal.ShallowNetCalibrator(5, penalty=NET_PENALTY)
    nets.fit(
        np.concatenate([shares[some], mirror(shares[some])]),
        np.concatenate([classes[some], MIRRORED[classes[some]]]),
        np.tile(weigh(known), 2),
        side=np.concatenate([side[some], swapped[some]]),
    )
    p = nets.predict(shares, side) + mirror(nets.predict(mirror(shares), swapped))
    return p / 2.0


def count_degrees(shares: np.ndarray) -> np.ndarray:
    """Return expected edges of i and j, and arrows into them, shape (m, 4).

    The pair's own edge is left out.
    """
    i, j = np.triu_indices(V, 1)
    edges, arrows = np.zeros((2, V, V))
    edges[i, j] = edges[j, i] = 1.0 - shares[:, 0]
    arrows[i, j], arrows[j, i] = shares[:, 1], shares[:, 2]
    near, into = edges.sum(axis=1), arrows.sum(axis=0)
    own = edges[i, j]
    columns = (near[i] - own, near[j] - own, into[i] - arrows[j, i])
    return np.column_stack([*columns, into[j] - arrows[i, j]])


def time_learners() -> None:
    """Print the seconds of processor that one replicate takes."""
    learners: dict[str, Callable[..., Any]] = {
        "own, 20 candidates": learn,
        "own, all pairs": lambda data: to_cpdag(learn_parents(data, None)),
        "pyAgrum": learn_by_pyagrum,
    }
    learn(draw_network(EDGES[0], 0).data)
    for (name, learner), n_edges in product(learners.items(), EDGES):
        data = draw_network(n_edges, 0).data
        rows = np.random.default_rng(0).integers(0, ROWS, ROWS)
        start = time.process_time()
        try:
            graph = learner(data[rows])
        except ModuleNotFoundError:
            continue
        seconds = time.process_time() - start
        print(f"{name:20}{n_edges:5}{seconds:8.2f} s{np.triu(graph | graph.T).sum():6}")


def print_table(rows: list[dict[str, Any]], resample: str) -> None:
    """Print means over the graphs, by number of edges, known pairs and method."""
    frame = pd.DataFrame(rows)
    print(f"means over the graphs, {resample}; log loss times 1000; *: other than raw")
    heads = [one.replace("directed", "d").replace("_", " ") for one in SHOWN]
    width = "".join(f"{head:>14}" for head in heads)
    print(f"{'E':>4}{'known':>6}{'graphs':>7} {'method':20}{width}{'best zero':>14}")
    for (n_edges, n_pairs), some in frame.groupby(["edges", "known"]):
        for name in (*METHODS, *(f"{one}/argmax" for one in METHODS[1:])):
            cells = [show_cell(some, name, one) for one in SHOWN]
            best = 1000.0 * some["raw/best_zero"].mean()
            last = f"{best:13.3f}" if name == "raw" else ""
            line = "".join(f"{cell:>14}" for cell in cells)
            print(f"{n_edges:4}{n_pairs:6}{len(some):7} {name:20}{line}{last}")


def show_cell(some: pd.DataFrame, name: str, measure: str) -> str:
    """Return a mean over graphs, with a star if it is not that of the raw shares."""
    if f"{name}/{measure}" not in some:
        return ""
    values, raw = some[f"{name}/{measure}"], some[f"raw/{measure}"]
    differ = len(some) > 5 and (values != raw).any()
    star = "*" if differ and wilcoxon(values, raw).pvalue < LEVEL else " "
    return f"{(1000.0 if measure == 'log_loss' else 1.0) * values.mean():.3f}{star}"


def main() -> None:
    """Learn and calibrate what is not recorded yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, nargs="+", default=list(EDGES))
    parser.add_argument("--graphs", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--resample", default="bootstrap")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--time-learners", action="store_true")
    given = parser.parse_args()
    if given.time_learners:
        time_learners()
        return
    records = Records("causal_edges", "default", fresh=given.fresh)
    rows = []
    for graph, n_edges in product(given.graphs, given.edges):
        key = (n_edges, graph, given.resample)
        name = "/".join(map(str, key))
        learned = records.measure(name, lambda key=key: learn_shares(*key))
        shares = read_shares(learned)
        for n_pairs in KNOWN:
            row = records.measure(
                f"{name}/{n_pairs}",
                lambda s=shares, e=n_edges, g=graph, n=n_pairs: judge_graph(s, e, g, n),
            )
            rows.append({**row, "edges": n_edges, "known": n_pairs})
    print_table(rows, given.resample)


if __name__ == "__main__":
    main()
