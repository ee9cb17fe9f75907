"""
Causal arrows with probabilities that are right
===============================================

A structure learner says that an arrow is there, or not. It can be run on many bootstrap
samples. The share of graphs with the arrow looks like a probability, but it is none: a
greedy search gets stuck, and a bootstrap sample repeats rows. Each pair of variables
has four shares (no edge, ->, <-, undirected). Here they are calibrated from 37 pairs
whose truth is known, as Naeini (2016, section 6.2) does with published results of
biologists.

Such pairs are not drawn at random, since nearly all pairs have no edge. A quarter of
them is drawn from each class, spread over its shares. Each counts by the inverse of its
chance of being drawn. On all other pairs:

.. code-block:: text

                 log loss     MCE  F1 of ->  F1 of --
   shares          0.0488   0.145      0.83      0.75
   calibrated      0.0230   0.032      0.81      0.71

.. image:: /images/causal_edges.png
   :alt: Reliability of the four shares of a pair before and after calibration

The learner may be any function of a table (n, v) of small whole numbers that returns a
graph: a boolean matrix (v, v), row -> column, with both entries of an undirected edge.
This one is pyAgrum's (``pip install pyagrum``, in the extra ``bench``).
"""

# sphinx_gallery_thumbnail_path = "images/causal_edges.png"

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from calibration import (
    MulticlassCalibrator,
    SoftmaxCalibrator,
    draw_rows_to_label,
    log_loss,
    maximum_calibration_error,
    plot_class_reliability,
)

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Graph = NDArray[np.bool_]
Learner = Callable[[Rows], ArrayLike]

CLASSES = ("none", "->", "<-", "--")
MIRRORED = np.array([0, 2, 1, 3])
# An edge is reported if its probability is above this.
LEAST = 0.4
# Forecasts in a bin of the maximum calibration error.
BIN = 100
# Rows that a known pair counts for, on average.
TOTAL = 10.0


def check_graph(graph: ArrayLike, n_variables: int) -> Graph:
    """Return a partially directed graph; refuse other nodes, loops and cycles."""
    edges = np.asarray(graph)
    if edges.dtype != bool or edges.shape != (n_variables, n_variables):
        msg = (
            f"`learner` must return a boolean matrix ({n_variables}, {n_variables}), a "
            f"row and a column for each variable, got {edges.dtype} {edges.shape}."
        )
        raise ValueError(msg)
    if edges.diagonal().any():
        place = int(np.argmax(edges.diagonal()))
        msg = f"`learner` must return no loops, got an edge from {place} to itself."
        raise ValueError(msg)
    # A cycle with at least one arrow, its other edges walked along or undirected.
    strong = connected_components(csr_array(edges), connection="strong")[1]
    tails, heads = np.nonzero(edges & ~edges.T & (strong[:, None] == strong))
    if len(tails):
        msg = (
            "`learner` must return a graph without directed cycles, "
            f"got one through {tails[0]} -> {heads[0]}."
        )
        raise ValueError(msg)
    return edges


def to_cpdag(dag: Graph) -> Graph:
    """Return the graph of all that the Markov-equivalent graphs of a DAG agree on.

    Arrows of unshielded colliders, then Meek's rules 1 to 3 (Meek 1995).
    """
    apart = ~(dag | dag.T)
    np.fill_diagonal(apart, False)
    arrows = dag & _joins(apart, dag)
    while True:
        lines = (dag | dag.T) & ~arrows & ~arrows.T
        found = _joins(arrows.T, apart) | _joins(arrows, arrows)
        found |= _third_rule(arrows, lines, apart)
        found &= lines
        if not found.any():
            return arrows | lines
        arrows = arrows | found


def _joins(first: Graph, second: Graph) -> Graph:
    """Say which a and c have a b with first[a, b] and second[b, c]."""
    return np.asarray(first.astype(np.float32) @ second.astype(np.float32) > 0.5)


def _third_rule(arrows: Graph, lines: Graph, apart: Graph) -> Graph:
    """Say where a -- b -> d and a -- c -> d, with b and c apart, ask for a -> d."""
    found = np.zeros_like(lines)
    for a, d in zip(*np.nonzero(lines), strict=True):
        middle = np.flatnonzero(lines[a] & arrows[:, d])
        found[a, d] = len(middle) > 1 and apart[np.ix_(middle, middle)].any()
    return found


def read_pairs(graph: Graph) -> Rows:
    """Return the class of every pair i < j, shape (v (v - 1) / 2,)."""
    i, j = np.triu_indices(len(graph), 1)
    return graph[i, j] + 2 * graph[j, i].astype(np.int64)


def draw_replicates(
    data: Rows, n_replicates: int, resample: str, random_state: int | None
) -> Iterator[Rows]:
    """Yield tables of as many rows with replacement, or of half of them without."""
    n = len(data)
    size = n if resample == "bootstrap" else n // 2
    # A seed of each, so that they are the same however many are drawn.
    for seed in np.random.SeedSequence(random_state).spawn(n_replicates):
        rng = np.random.default_rng(seed)
        yield data[rng.choice(n, size, replace=resample == "bootstrap")]


def edge_shares(
    data: ArrayLike,
    learner: Learner,
    n_replicates: int = 200,
    resample: Literal["bootstrap", "subsample"] = "bootstrap",
    random_state: int | None = 0,
) -> Array:
    """Return how often each pair i < j has each class, shape (v (v - 1) / 2, 4).

    Shares of bootstrap replicates (Friedman, Goldszmidt & Wyner 1999) and of subsamples
    are off in different ways (Kummerfeld et al. 2019): calibrate each by itself.
    """
    table = np.asarray(data)
    if n_replicates < 2:
        msg = f"`n_replicates` must be at least 2, got {n_replicates}."
        raise ValueError(msg)
    if resample not in ("bootstrap", "subsample"):
        msg = f"`resample` must be 'bootstrap' or 'subsample', got {resample!r}."
        raise ValueError(msg)
    v = table.shape[1]
    counts = np.zeros((v * (v - 1) // 2, len(CLASSES)))
    places = np.arange(len(counts))
    for replicate in draw_replicates(table, n_replicates, resample, random_state):
        counts[places, read_pairs(check_graph(learner(replicate), v))] += 1.0
    return counts / n_replicates


def learn_by_pyagrum(data: Rows) -> Graph:
    """Return the graph of pyAgrum's hill climbing with the BDeu score."""
    with warnings.catch_warnings():
        # Of its wrappers; as errors they end the interpreter.
        warnings.simplefilter("ignore")
        import pyagrum

    names = [str(place) for place in range(data.shape[1])]
    states = pyagrum.BayesNet()
    for name, most in zip(names, data.max(axis=0), strict=True):
        states.add(pyagrum.RangeVariable(name, name, 0, max(int(most), 1)))
    learner = pyagrum.BNLearner(pd.DataFrame(data, columns=names), states)
    learner.setNumberOfThreads(1)
    learner.useScoreBDeu()
    learner.useGreedyHillClimbing()
    dag = np.zeros((len(names), len(names)), dtype=bool)
    for tail, head in learner.learnDAG().arcs():
        dag[tail, head] = True
    return to_cpdag(dag)


@dataclass(frozen=True)
class Network:
    """A random discrete network: its graph, and a table of rows drawn from it."""

    dag: Graph
    data: Rows

    @classmethod
    def draw(cls, n_variables: int, n_edges: int, n_rows: int, seed: int) -> Network:
        """Draw a graph, two or three states a variable, uniform tables, and rows."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(n_variables)
        i, j = np.triu_indices(n_variables, 1)
        edges = rng.choice(len(i), n_edges, replace=False)
        dag = np.zeros((n_variables, n_variables), dtype=bool)
        dag[order[i[edges]], order[j[edges]]] = True
        sizes = rng.integers(2, 4, n_variables)
        data = np.zeros((n_rows, n_variables), dtype=np.int64)
        for one in order:
            parents = np.flatnonzero(dag[:, one])
            code = np.zeros(n_rows, dtype=np.int64)
            for parent in parents:
                code = code * sizes[parent] + data[:, parent]
            law = rng.dirichlet(np.ones(sizes[one]), int(sizes[parents].prod()))
            steps = law[code].cumsum(axis=1)[:, :-1]
            data[:, one] = (rng.uniform(size=(n_rows, 1)) > steps).sum(axis=1)
        return cls(dag, data)


@dataclass(frozen=True)
class KnownPairs:
    """Pairs whose class is known, and the chance that each had of being among them."""

    rows: Rows
    chance: Array

    @classmethod
    def draw(
        cls, shares: Array, classes: Rows, n_pairs: int, random_state: int
    ) -> KnownPairs:
        """Draw a quarter from each class, spread over the class's share.

        Of a class with few pairs half are drawn at most, of one without pairs none:
        its probability stays small.
        """
        rows, chance = [], []
        for one in range(len(CLASSES)):
            held = np.flatnonzero(classes == one)
            size = min(n_pairs // len(CLASSES), len(held) // 2)
            if size > 0:
                seed = len(CLASSES) * random_state + one
                drawn = draw_rows_to_label(
                    shares[held, one], size, 5, random_state=seed
                )
                rows.append(held[drawn.rows])
                chance.append(drawn.chance)
        if len(rows) < 2:
            msg = "`classes` must hold two classes with two pairs or more, got fewer."
            raise ValueError(msg)
        return cls(np.concatenate(rows), np.concatenate(chance))


def mirror(table: Array) -> Array:
    """Return what is said of the pairs (j, i): -> and <- change places."""
    return table[:, [0, 2, 1, 3]]


def weigh(known: KnownPairs) -> Array:
    """Return what a known pair counts for, each of the two ways round.

    The inverse of its chance: drawn by its class, it says too much of rare classes. The
    weights add up to `TOTAL` rows for each known pair: with one, the few edges would
    weigh less than a row together, and with the number of all pairs ten known ones
    without an edge would be thousands.
    """
    inverse = 1.0 / known.chance
    weight: Array = inverse * (0.5 * TOTAL * len(inverse) / inverse.sum())
    return weight


def calibrate(
    shares: Array,
    classes: Rows,
    known: KnownPairs,
    calibrator: MulticlassCalibrator | None = None,
) -> Array:
    """Return probabilities of all pairs, learned from the known ones, shape (m, 4).

    The default is a matrix held to doing nothing by a ridge. Which variable of a pair
    comes first means nothing, so each is learned from, and asked, both
    ways round.
    """
    some = shares[known.rows]
    if calibrator is None:
        calibrator = SoftmaxCalibrator("matrix", 1.0)
    calibrator.fit(
        np.concatenate([some, mirror(some)]),
        np.concatenate([classes[known.rows], MIRRORED[classes[known.rows]]]),
        np.tile(weigh(known), 2),
    )
    p = calibrator.predict(shares) + mirror(calibrator.predict(mirror(shares)))
    return p / 2.0


def fill_zeros(shares: Array, n_replicates: int, zero: float = 0.5) -> Array:
    """Return shares to be scored by: one of 0 counts as half a replicate."""
    p = np.maximum(shares, zero / n_replicates)
    filled: Array = p / p.sum(axis=1, keepdims=True)
    return filled


def decide(p: Array) -> Rows:
    """Return an edge of the likeliest kind where one is likelier than `LEAST`.

    Log loss asks for probabilities that are right, F1 for classes that are found: half
    of an F1 of .8 is where its best threshold lies (Lipton, Elkan & Naryanaswamy 2014).
    """
    return np.where(1.0 - p[:, 0] > LEAST, 1 + p[:, 1:].argmax(axis=1), 0)


def judge(classes: Rows, p: Array, decided: Rows) -> dict[str, float]:
    """Return the measures of the thesis, and the log loss a pair."""
    told, true = (np.isin(some, (1, 2)) for some in (decided, classes))
    right = int(np.sum(told & (decided == classes)))
    # A true arrow that is told the wrong way round is false, but not missed.
    missed = int(np.sum(true & ~told))
    lines, true_lines = decided == 3, classes == 3
    found = int(np.sum(lines & true_lines))
    return {
        "log_loss": log_loss(classes, p, clip=1e-15),
        "mce": maximum_calibration_error(
            classes, p, n_bins=p.size // BIN, binning="rank"
        ),
        **_f1("directed", right, int(np.sum(told)), right + missed),
        **_f1("undirected", found, int(np.sum(lines)), int(np.sum(true_lines))),
    }


def _f1(name: str, right: int, told: int, true: int) -> dict[str, float]:
    """Return precision, recall and their harmonic mean; 0 where nothing is told."""
    precision, recall = right / max(told, 1), right / max(true, 1)
    f1 = 2.0 * precision * recall / max(precision + recall, 1e-15)
    return {
        f"{name}_precision": float(precision),
        f"{name}_recall": float(recall),
        f"{name}_f1": float(f1),
    }


def main() -> None:
    """Learn 60 graphs, calibrate from 40 known pairs, judge by all others."""
    n_replicates = 60
    network = Network.draw(80, 80, 1000, seed=1)
    classes = read_pairs(to_cpdag(network.dag))
    shares = edge_shares(network.data, learn_by_pyagrum, n_replicates)
    known = KnownPairs.draw(shares, classes, 40, random_state=0)
    p = calibrate(shares, classes, known)

    rest = np.ones(len(classes), dtype=bool)
    rest[known.rows] = False
    y = classes[rest]
    forecasts = {
        "shares": fill_zeros(shares, n_replicates)[rest],
        "calibrated": p[rest],
    }
    decided = {"shares": shares[rest].argmax(axis=1), "calibrated": decide(p[rest])}
    print(f"{len(known.rows)} pairs are known, of {len(y)} others {np.sum(y > 0)} have")
    print("an edge.\n")
    print(f"{'':12}{'log loss':>10}{'MCE':>8}{'F1 of ->':>10}{'F1 of --':>10}")
    for name, forecast in forecasts.items():
        found = judge(y, forecast, decided[name])
        losses = f"{found['log_loss']:10.4f}{found['mce']:8.3f}"
        f1 = f"{found['directed_f1']:10.2f}{found['undirected_f1']:10.2f}"
        print(f"{name:12}{losses}{f1}")
    print("Log loss and maximum calibration error: smaller is better.\n")

    # Of thousands of pairs that few graphs join there is nothing to see.
    joined = shares[rest, 0] < 0.9
    panels = plot_class_reliability(
        y[joined],
        {name: forecast[joined] for name, forecast in forecasts.items()},
        classes=CLASSES,
        n_bins=5,
    )
    panels[0].figure.savefig("causal_edges.png", dpi=110)
    print("Wrote causal_edges.png")
    plt.close("all")


if __name__ == "__main__":
    main()
