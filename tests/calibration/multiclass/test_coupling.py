import math
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from calibration import couple_pairs

METHODS = ["least_squares", "log_loss", "pkpd"]
CLIP = 1e-7


def consistent_pairs(p):
    """Pairs that rows p (n, k) imply."""
    return p[:, :, None] / (p[:, :, None] + p[:, None, :])


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


def sum_losses(u, r, weight):
    """Hastie and Tibshirani's criterion at log p = u, pair by pair."""
    p = np.exp(u)
    total = 0.0
    for i, j in combinations(range(len(p)), 2):
        mu = p[i] / (p[i] + p[j])
        total += weight[i, j] * (
            r[i, j] * math.log(r[i, j] / mu) + r[j, i] * math.log(r[j, i] / (1.0 - mu))
        )
    return total


@pytest.mark.parametrize("k", range(2, 21))
@pytest.mark.parametrize("method", METHODS)
def test_consistent_pairs_return_their_rows(method, k, rng):
    p = rng.dirichlet(np.ones(k), size=100)
    np.testing.assert_allclose(
        couple_pairs(consistent_pairs(p), method), p, rtol=0, atol=1e-10
    )


def test_weights_do_not_matter_to_consistent_pairs(rng):
    p = rng.dirichlet(np.ones(5), size=20)
    weight = rng.integers(1, 1000, size=(5, 5))
    found = couple_pairs(consistent_pairs(p), "log_loss", pair_weight=weight + weight.T)
    np.testing.assert_allclose(found, p, rtol=0, atol=1e-10)


@pytest.mark.parametrize("k", [3, 4, 7])
def test_least_squares_is_libsvms_iteration(k, rng):
    pairs = draw_pairs(rng, 10, k)
    truth = [iterate_libsvm(r) for r in np.clip(pairs, CLIP, 1.0 - CLIP)]
    np.testing.assert_allclose(couple_pairs(pairs), truth, rtol=0, atol=1e-6)


def test_least_squares_is_the_least(rng):
    r = draw_pairs(rng, 1, 4)[0]

    def squares(p):
        return sum(
            (r[j, i] * p[i] - r[i, j] * p[j]) ** 2
            for i in range(4)
            for j in range(4)
            if i != j
        )

    p = couple_pairs(r[None])[0]
    for _ in range(100):
        other = rng.dirichlet(1000.0 * p)
        assert squares(other) >= squares(p)


@pytest.mark.parametrize("shape", [2.0, 0.3])
def test_log_loss_is_the_minimum_of_the_criterion(shape, rng):
    k = 4
    weight = rng.integers(1, 30, size=(k, k)).astype(float)
    weight += weight.T
    for r in np.clip(draw_pairs(rng, 5, k, shape), 0.01, 0.99):
        ours = np.log(couple_pairs(r[None], "log_loss", pair_weight=weight)[0])
        best = minimize(sum_losses, np.zeros(k), (r, weight), tol=1e-12).fun
        assert sum_losses(ours, r, weight) <= best + 1e-9


def test_hastie_and_tibshiranis_iteration_stands_still(rng):
    pairs = draw_pairs(rng, 10, 5)
    weight = rng.integers(1, 30, size=(5, 5)).astype(float)
    weight += weight.T
    np.fill_diagonal(weight, 0.0)
    p = couple_pairs(pairs, "log_loss", pair_weight=weight)
    mu = consistent_pairs(p)
    ratio = (weight * pairs).sum(axis=2) / (weight * mu).sum(axis=2)
    np.testing.assert_allclose(ratio, 1.0, rtol=0, atol=1e-12)


def test_pkpd_by_hand():
    pairs = np.array([[0.0, 0.5, 0.8], [0.5, 0.0, 0.5], [0.2, 0.5, 0.0]])
    raw = np.array([1 / (2 + 1.25 - 1), 1 / (2 + 2 - 1), 1 / (5 + 2 - 1)])
    np.testing.assert_allclose(
        couple_pairs(pairs[None], "pkpd")[0], raw / raw.sum(), rtol=1e-14
    )


@pytest.mark.parametrize("method", METHODS)
def test_two_classes_are_their_pair(method, rng):
    p = rng.uniform(0.001, 0.999, size=50)
    rows = np.column_stack([p, 1.0 - p])
    np.testing.assert_allclose(
        couple_pairs(consistent_pairs(rows), method), rows, rtol=1e-12
    )


@pytest.mark.parametrize("k", [2, 3, 6, 20])
@pytest.mark.parametrize("method", METHODS)
def test_pairs_of_0_and_1_have_finite_answers(method, k, rng):
    pairs = np.round(draw_pairs(rng, 50, k, 0.01))
    p = couple_pairs(pairs, method)
    assert (p >= 0.0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    # Someone who wins all pairs is all but certain.
    winner = np.zeros((1, k, k))
    winner[:] = np.triu(np.ones((k, k)), 1)
    assert couple_pairs(winner, method)[0, 0] > 1.0 - 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_a_circle_is_a_draw(method):
    pairs = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(couple_pairs(pairs[None], method), 1.0 / 3.0, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_classes_have_no_order_and_rows_stand_alone(method, rng):
    pairs = draw_pairs(rng, 30, 5)
    order = rng.permutation(5)
    p = couple_pairs(pairs, method)
    shuffled = couple_pairs(pairs[:, order][:, :, order], method)
    np.testing.assert_allclose(shuffled, p[:, order], rtol=1e-9)
    alone = np.concatenate([couple_pairs(row[None], method) for row in pairs])
    np.testing.assert_allclose(alone, p, rtol=1e-12)


def test_a_pair_without_weight_says_nothing(rng):
    p = rng.dirichlet(np.ones(4), size=20)
    pairs = consistent_pairs(p)
    pairs[:, 0, 1] = pairs[:, 1, 0] = 0.5
    weight = np.ones((4, 4))
    weight[0, 1] = weight[1, 0] = 0.0
    found = couple_pairs(pairs, "log_loss", pair_weight=weight)
    np.testing.assert_allclose(found, p, rtol=0, atol=1e-10)


def test_weights_of_all_sizes(rng):
    # A chain whose middle link weighs next to nothing, and light weights throughout.
    r = np.round(draw_pairs(rng, 200, 4, 0.05), 1)
    weight = np.zeros((4, 4))
    for (i, j), w in {(0, 1): 1e12, (1, 2): 1e-12, (2, 3): 1.0}.items():
        weight[i, j] = weight[j, i] = w
    for unit in (1.0, 1e-200):
        p = couple_pairs(r, "log_loss", pair_weight=unit * weight)
        # In a chain each link is met.
        for i in range(3):
            found = p[:, i] / np.maximum(p[:, i] + p[:, i + 1], 1e-300)
            clear = p[:, i] + p[:, i + 1] > 1e-6
            expected = np.clip(r[:, i, i + 1], CLIP, 1.0 - CLIP)
            np.testing.assert_allclose(found[clear], expected[clear], atol=1e-7)


def test_rows_beyond_one_chunk(rng, monkeypatch):
    pairs = draw_pairs(rng, 30, 5)
    whole = couple_pairs(pairs)
    monkeypatch.setattr("calibration.multiclass.coupling._CHUNK", 200)
    np.testing.assert_array_equal(couple_pairs(pairs), whole)


def test_inputs_are_read_only_and_no_rows_are_none(rng, frozen):
    pairs = draw_pairs(rng, 3, 3)
    couple_pairs(frozen(pairs), "log_loss", pair_weight=frozen(np.ones((3, 3))))
    assert couple_pairs(pairs[:0]).shape == (0, 3)


HALF = np.full((1, 3, 3), 0.5)


@pytest.mark.parametrize(
    ("pairs", "options", "message"),
    [
        (HALF[0], {}, r"`pairs` must have shape \(n, k, k\), k >= 2, got shape"),
        (HALF[:, :2], {}, r"`pairs` must have shape \(n, k, k\)"),
        (0.7 * HALF, {}, r"`pairs` must hold r\[i, j\] \+ r\[j, i\] = 1, got 0.7"),
        (np.nan * HALF, {}, "`pairs` must be finite, got nan"),
        (3.0 * HALF, {}, r"`pairs` must lie in \[0, 1\], got 1.5"),
        (HALF, {"method": "sum"}, "`method` must be one of .* got 'sum'"),
        (HALF, {"pair_weight": [1.0]}, r"`pair_weight` must have shape \(k, k\)"),
        (HALF, {"pair_weight": -np.ones((3, 3))}, "`pair_weight` must be finite, not"),
        (HALF, {"pair_weight": np.zeros((3, 3))}, "must connect all classes .* got 3"),
    ],
)
def test_bad_input_is_named(pairs, options, message):
    with pytest.raises(ValueError, match=message):
        couple_pairs(pairs, **options)
