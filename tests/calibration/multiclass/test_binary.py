"""Several classes by binary calibrators: for each class, and for each pair."""

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, log_softmax

from calibration import (
    AllPairsCalibrator,
    IsotonicCalibrator,
    OneVsRestCalibrator,
    PlattCalibrator,
    QuadraticCalibrator,
)
from calibration.multiclass.binary import couple_pairs
from tests.calibration.multiclass.draws import check_simplex, draw
from tests.simplex import least_on_simplex


@pytest.mark.parametrize("binary", [IsotonicCalibrator(), QuadraticCalibrator(5.0)])
def test_is_binary_calibrators_and_their_sum(binary, rng):
    p, y = draw(rng)
    w = rng.integers(1, 4, size=len(y))
    columns = [
        type(binary)(**binary.get_params()).fit(p[:, j], y == j, w).predict(p[:, j])
        for j in range(4)
    ]
    raw = np.column_stack(columns)
    if isinstance(binary, IsotonicCalibrator):
        edge = 0.5 / (w.sum() + 1)
        raw = np.clip(raw, edge, 1 - edge)
    found = OneVsRestCalibrator(binary).fit(p, y, w).predict(p)
    assert_allclose(found, raw / raw.sum(axis=1, keepdims=True), rtol=1e-9)


def test_least_squares_is_the_nearest_point_of_the_simplex(rng):
    p, y = draw(rng, 200, 4)
    fitted = OneVsRestCalibrator("platt", "least_squares").fit(p, y)
    new = np.vstack([p[:12], np.eye(4), np.full((1, 4), 0.25)])
    each = enumerate(fitted.calibrators_)
    raw = np.column_stack([one.predict(new[:, j]) for j, one in each])
    found = fitted.predict(new)
    check_simplex(found, new.shape)
    for answer, target in zip(found, raw, strict=True):
        best = least_on_simplex(lambda q, to=target: ((q - to) ** 2).sum(), 4)
        assert_allclose(answer, best, atol=1e-6)
    # Some classes end at 0, where none is when answers are divided by their sum.
    assert found.min() < 1e-300 < raw.min()


CLIP = 1e-7


def couple(pairs):
    """Couple pairs r (n, k, k), r_ij the probability of i against j."""
    first, second = np.triu_indices(pairs.shape[1], 1)
    return couple_pairs(pairs[:, second, first].T, pairs.shape[1])


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_is_what_its_definition_says(weighted, k, rng):
    p, y = draw(rng, 600, k)
    w = rng.integers(0, 4, size=len(y)) if weighted else np.ones(len(y))
    new = draw(rng, 50, k)[0]
    chances = []
    for i, j in combinations(range(k), 2):
        rows = np.flatnonzero((y == i) | (y == j))
        binary = IsotonicCalibrator().fit(
            p[rows, j] / (p[rows, i] + p[rows, j]), y[rows] == j, w[rows]
        )
        chances.append(binary.predict(new[:, j] / (new[:, i] + new[:, j])))
    calibrator = AllPairsCalibrator(IsotonicCalibrator())
    found = calibrator.fit(p, y, w if weighted else None).predict(new)
    assert_allclose(found, couple_pairs(chances, k), rtol=1e-10)


def test_two_classes_are_the_binary_calibrator_of_log_odds(rng):
    z = np.column_stack([np.zeros(600), rng.normal(size=600)])
    y = rng.uniform(size=600) < expit(0.5 * z[:, 1])
    expected = IsotonicCalibrator(scale="logit").fit(z[:, 1], y).predict(z[:, 1])
    pairs = AllPairsCalibrator("isotonic", scale="logit").fit(z + 3.0, y)
    assert_allclose(pairs.predict(z)[:, 1], expected, rtol=0, atol=1e-6)


def test_classes_without_rows_keep_a_small_probability(rng):
    p, y = draw(rng, 600, 5)
    kept = y < 3
    calibrator = AllPairsCalibrator(PlattCalibrator()).fit(p[kept], y[kept])
    of_pairs = zip(combinations(range(5), 2), calibrator.calibrators_, strict=True)
    assert all((one is None) == (pair[1] >= 3) for pair, one in of_pairs)
    found = calibrator.predict(p)
    assert (found[:, 3:] > 0.0).all()
    assert (found[:, 3:] < 0.02).all()
    # Of two that are both without rows none is the likelier.
    assert_allclose(found[:, 3], found[:, 4], rtol=1e-6)


def test_forecasts_of_0_and_1(rng):
    p = np.eye(3)[rng.integers(0, 3, size=200)]
    y = np.where(rng.uniform(size=200) < 0.7, p.argmax(axis=1), 0)
    found = AllPairsCalibrator(IsotonicCalibrator()).fit(p, y).predict(p)
    # Where both are 0 neither is the likelier: the score is 1/2.
    assert found[p[:, 2] == 1.0, 2].min() > 0.3


def test_memory_does_not_grow_with_rows_times_pairs(rng, monkeypatch):
    k, n = 20, 10_000
    p = rng.dirichlet(np.ones(k), n)
    calibrator = AllPairsCalibrator().fit(p[:400], np.arange(400) % k)
    some = calibrator.predict(p[:700])
    monkeypatch.setattr("calibration.multiclass.binary._CHUNK", 1 << 14)
    tracemalloc.start()
    found = calibrator.predict(p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_allclose(found[:700], some, rtol=1e-9)
    # All answers to all pairs would take as much.
    assert peak < 8 * n * k * (k - 1) / 2


def draw_pairs(rng, n, k, shape=2.0):
    """Pairs that no rows imply; a small shape makes them 0 or 1."""
    upper = np.triu(rng.beta(shape, shape, size=(n, k, k)), 1)
    return upper + np.tril(1.0 - upper.transpose(0, 2, 1), -1)


def iterate_libsvm(r):
    """Its multiclass_probability of one row, run until nothing moves."""
    k = len(r)
    Q = np.empty((k, k))
    for t in range(k):
        Q[t, t] = sum(r[j, t] ** 2 for j in range(k) if j != t)
        for j in range(k):
            if j != t:
                Q[t, j] = -r[j, t] * r[t, j]
    p = np.full(k, 1.0 / k)
    for _ in range(100_000):
        Qp = Q @ p
        pQp = p @ Qp
        if np.abs(Qp - pQp).max() < 1e-14:
            break
        for t in range(k):
            diff = (-Qp[t] + pQp) / Q[t, t]
            p[t] += diff
            pQp = (pQp + diff * (diff * Q[t, t] + 2.0 * Qp[t])) / (1.0 + diff) ** 2
            for j in range(k):
                Qp[j] = (Qp[j] + diff * Q[t, j]) / (1.0 + diff)
                p[j] /= 1.0 + diff
    return p


@pytest.mark.parametrize("k", [3, 4, 7])
def test_coupling_is_libsvms_iteration(k, rng):
    pairs = draw_pairs(rng, 10, k)
    truth = [iterate_libsvm(r) for r in np.clip(pairs, CLIP, 1.0 - CLIP)]
    assert_allclose(couple(pairs), truth, rtol=0, atol=1e-6)


@pytest.mark.parametrize("k", [2, 3, 6, 20])
def test_pairs_of_0_and_1_rule_nothing_out(k, rng):
    p = couple(np.round(draw_pairs(rng, 50, k, 0.01)))
    assert (p > 0.0).all()
    assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    # Someone who wins all pairs is all but certain; a circle is a draw.
    assert couple(np.triu(np.ones((1, k, k)), 1))[0, 0] > 1.0 - 1e-5
    circle = np.array([[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]])
    assert_allclose(couple(circle), 1.0 / 3.0, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_votes_are_ties_whatever_the_other_columns_hold(kind, rng):
    p = rng.multinomial(10, [0.5, 0.3, 0.2], 300).astype(kind) / kind(10)
    y = rng.integers(3, size=300)
    model = OneVsRestCalibrator("isotonic").fit(p, y)
    for one, column in zip(model.calibrators_, p.T, strict=True):
        assert len(one.map_.knots) <= len(np.unique(column))
    turned = OneVsRestCalibrator("isotonic").fit(p[:, ::-1], 2 - y)
    expected = model.predict(p)
    assert_allclose(turned.predict(p[:, ::-1])[:, ::-1], expected, rtol=1e-12)


def test_pairs_of_sure_rows_do_not_depend_on_the_order_of_columns(rng):
    y, z = rng.integers(3, size=300), 32.0 * rng.normal(size=(300, 3))
    z[np.arange(300), y] += 32.0
    p = np.exp(log_softmax(z, axis=1))
    one, other = (AllPairsCalibrator("isotonic") for _ in range(2))
    turned = other.fit(p[:, ::-1], 2 - y).predict(p[:, ::-1])[:, ::-1]
    assert_allclose(one.fit(p, y).predict(p), turned, atol=1e-9)
