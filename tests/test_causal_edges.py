"""The graphs of examples/causal_edges.py: against brute force, and bad ones refused."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from examples import causal_edges


def colliders(dag):
    """Unshielded ones, as triples."""
    joined = dag | dag.T
    triples = itertools.product(range(len(dag)), repeat=3)
    return {
        (a, b, c)
        for a, b, c in triples
        if a < b and dag[a, c] and dag[b, c] and not joined[a, b]
    }


def is_acyclic(dag):
    steps = dag.astype(int)
    powers = (np.linalg.matrix_power(steps, k) for k in range(1, len(dag) + 1))
    return not any(np.trace(power) for power in powers)


def slow_cpdag(dag):
    """Union of all graphs with the same skeleton and the same colliders."""
    union = np.zeros_like(dag)
    edges = np.argwhere(np.triu(dag | dag.T))
    for ways in itertools.product((0, 1), repeat=len(edges)):
        other = np.zeros_like(dag)
        for (a, b), way in zip(edges, ways, strict=True):
            other[(b, a) if way else (a, b)] = True
        if is_acyclic(other) and colliders(other) == colliders(dag):
            union |= other
    return union


def test_cpdag_is_what_equivalent_graphs_share(rng):
    for _ in range(60):
        v = int(rng.integers(2, 6))
        order = rng.permutation(v)
        dag = np.triu(rng.uniform(size=(v, v)) < rng.uniform(0.2, 0.9), 1)
        dag = dag[np.ix_(order, order)]
        found = causal_edges.to_cpdag(dag)
        assert_array_equal(found, slow_cpdag(dag))
        causal_edges.check_graph(found, v)


def graph_of(*edges, v=3):
    graph = np.zeros((v, v), dtype=bool)
    for edge in edges:
        graph[edge] = True
    return graph


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (graph_of((0, 1), (1, 2), (2, 0)), "without directed cycles, got one through"),
        # 0 -> 1 -- 2 -> 0 is one as well.
        (graph_of((0, 1), (1, 2), (2, 1), (2, 0)), "without directed cycles"),
        (graph_of((1, 1)), "no loops, got an edge from 1"),
        (graph_of((0, 1), v=4), r"boolean matrix \(3, 3\).*got bool \(4, 4\)"),
        (np.zeros((3, 3)), "got float64"),
        (None, "got object"),
    ],
)
def test_graphs_that_are_none_are_refused(graph, said):
    with pytest.raises(ValueError, match="`learner` must return .*" + said):
        causal_edges.edge_shares(np.zeros((9, 3)), lambda _: graph, 2)


@pytest.mark.parametrize(("resample", "size"), [("bootstrap", 20), ("subsample", 10)])
def test_shares_are_counts_over_replicates(resample, size):
    data = np.arange(20)[:, None] * np.ones(2, dtype=int)
    seen = []

    def learn(table):
        seen.append(table[:, 0])
        return graph_of((0, 1), v=2) if len(seen) % 4 == 0 else graph_of(v=2)

    shares = causal_edges.edge_shares(data, learn, 8, resample)
    assert shares.tolist() == [[0.75, 0.25, 0.0, 0.0]]
    assert {len(one) for one in seen} == {size}
    repeats = [len(np.unique(one)) < len(one) for one in seen]
    assert all(repeats) if resample == "bootstrap" else not any(repeats)
    again = list(causal_edges.draw_replicates(data, 3, resample, 0))
    assert all((a[:, 0] == b).all() for a, b in zip(again, seen, strict=False))


@pytest.fixture
def pairs(rng):
    """Shares of 3000 pairs that are off: most edges are missed half of the time."""
    classes = rng.choice(4, size=3000, p=[0.9, 0.04, 0.04, 0.02])
    p = np.full((3000, 4), 0.01) + 0.15 * rng.dirichlet(np.ones(4), size=3000)
    p[np.arange(3000), classes] += rng.uniform(0.0, 0.8, size=3000)
    p[:, 0] += 0.3
    return p / p.sum(axis=1, keepdims=True), classes


def test_calibration_does_not_mind_the_order_of_a_pair(pairs):
    shares, classes = pairs
    known = causal_edges.KnownPairs.draw(shares, classes, 80, 0)
    assert np.bincount(classes[known.rows]).tolist() == [20, 20, 20, 20]
    p = causal_edges.calibrate(shares, classes, known)
    assert_allclose(p.sum(axis=1), 1.0)
    turned = np.array([0, 2, 1, 3])[classes]
    other = causal_edges.calibrate(causal_edges.mirror(shares), turned, known)
    assert_allclose(other, causal_edges.mirror(p), atol=1e-9)


def test_calibration_gains(pairs):
    shares, classes = pairs
    known = causal_edges.KnownPairs.draw(shares, classes, 120, 0)
    rest = np.delete(np.arange(len(classes)), known.rows)
    p = causal_edges.calibrate(shares, classes, known)[rest]
    raw = shares[rest]
    before = causal_edges.judge(classes[rest], raw, raw.argmax(axis=1))
    after = causal_edges.judge(classes[rest], p, causal_edges.decide(p))
    assert after["log_loss"] < 0.8 * before["log_loss"]
    assert after["mce"] < before["mce"]


def test_a_class_without_pairs_keeps_a_small_probability(pairs):
    shares, classes = pairs
    classes = np.where(classes == 3, 0, classes)
    known = causal_edges.KnownPairs.draw(shares, classes, 80, 0)
    assert np.bincount(classes[known.rows], minlength=4)[3] == 0
    p = causal_edges.calibrate(shares, classes, known)
    assert p.min() > 0.0
    assert p[:, 3].mean() < shares[:, 3].mean()
    with pytest.raises(ValueError, match="`classes` must hold two classes"):
        causal_edges.KnownPairs.draw(shares, np.zeros(3000, dtype=int), 80, 0)


def test_measures_are_those_of_the_table():
    true = np.array([0, 1, 2, 3, 1, 2, 1, 3])
    told = np.array([1, 1, 1, 3, 0, 3, 1, 0])
    p = causal_edges.fill_zeros(np.eye(4)[told], 10)
    many = np.tile(true, 50), np.tile(p, (50, 1)), np.tile(told, 50)
    found = causal_edges.judge(*many)
    # 4 arrows told, 2 right; of 5 true ones 2 found, 2 missed, one turned round.
    assert found["directed_precision"] == 0.5
    assert found["directed_recall"] == 0.5
    assert found["undirected_precision"] == 0.5
    assert found["undirected_recall"] == 0.5
