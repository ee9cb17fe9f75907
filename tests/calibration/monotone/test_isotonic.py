"""PAV as a calibrator: optimal for proper scores, prior-free, the ROC's hull."""

import itertools

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import roc_auc_score, roc_curve

from calibration import (
    CalibrationWarning,
    CenteredIsotonicCalibrator,
    ELiTECalibrator,
    IsotonicCalibrator,
)


def log_loss(q):
    with np.errstate(divide="ignore"):
        return -np.log1p(-q), -np.log(q)


def brier(q):
    return q**2, (1 - q) ** 2


def spherical(q):
    norm = np.hypot(q, 1 - q)
    return 1 - (1 - q) / norm, 1 - q / norm


def beta_family(alpha, beta):
    """L1(q) = int_q^1 w(e)/e de with w = e^alpha (1-e)^beta, by a fine sum."""
    edges = np.linspace(0, 1, 20_001)
    e = 0.5 * (edges[1:] + edges[:-1])
    w = e**alpha * (1 - e) ** beta / 20_000
    up = np.concatenate([[0], np.cumsum(w / (1 - e))])
    down = np.concatenate([np.cumsum((w / e)[::-1])[::-1], [0]])
    return lambda q: (np.interp(q, edges, up), np.interp(q, edges, down))


def point_masses(costs, masses):
    """Weighted error counts: discontinuous, not convex, not strict."""

    def rule(q):
        decide1 = q[..., None] >= costs
        loss0 = (decide1 * masses / (1 - costs)).sum(axis=-1)
        loss1 = (~decide1 * masses / costs).sum(axis=-1)
        return loss0, loss1

    return rule


def proper_rules(rng):
    costs = rng.uniform(0.05, 0.95, (4, 3))
    return [
        log_loss,
        brier,
        spherical,
        *(beta_family(*rng.uniform(-0.5, 3, 2)) for _ in range(3)),
        *(point_masses(c, rng.uniform(0.2, 1, 3)) for c in costs),
        point_masses(np.array([0.5]), np.ones(1)),
    ]


def total_loss(rule, q, weight0, weight1):
    loss0, loss1 = rule(q)
    with np.errstate(invalid="ignore"):
        return np.where(weight0 > 0, weight0 * loss0, 0.0).sum(axis=-1) + np.where(
            weight1 > 0, weight1 * loss1, 0.0
        ).sum(axis=-1)


@pytest.mark.parametrize("m", [2, 4, 6])
def test_pav_minimises_every_proper_rule_against_brute_force(rng, m):
    """Seeds 002, theorem: one solution for all regular binary proper scoring rules.

    A minimiser takes values of means of runs of cells (or anywhere between jumps of
    a point-mass rule), so all increasing sequences over those values plus a grid are
    tried.
    """
    for _ in range(6):
        weight0, weight1 = rng.integers(0, 3, (2, m)).astype(float)
        empty = weight0 + weight1 == 0
        weight0[empty] = 1.0
        if weight0.sum() == 0 or weight1.sum() == 0:
            continue
        scores = np.repeat(np.arange(m), 2)
        weights = np.column_stack([weight0, weight1]).ravel()
        pav = IsotonicCalibrator(scale="real").fit(scores, np.tile([0, 1], m), weights)
        fitted = pav.predict(np.arange(m))
        runs = [
            weight1[i:j].sum() / (weight0 + weight1)[i:j].sum()
            for i, j in itertools.combinations(range(m + 1), 2)
        ]
        levels = np.unique(np.concatenate([runs, np.linspace(0, 1, 6)]))
        tuples = itertools.combinations_with_replacement(levels, m)
        candidates = np.array(list(itertools.islice(tuples, 60_000)))
        for rule in proper_rules(rng):
            best = total_loss(rule, candidates, weight0, weight1).min()
            assert total_loss(rule, fitted, weight0, weight1) <= best + 1e-9


def test_steps_lie_midway_and_hold_beyond_the_ends():
    """D9: the step map of PAV, finite and in range for any new score."""
    pav = IsotonicCalibrator().fit([0.2, 0.4, 0.8], [0, 1, 1])
    below = np.nextafter(0.3, 0)
    assert pav.predict([0.0, below, 0.3000001, 1.0]).tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize("cls", [CenteredIsotonicCalibrator, ELiTECalibrator])
def test_no_line_is_drawn_over_a_range_that_overflows(cls):
    message = r"`scores` must span a finite range, got -1.7e\+308 to 1.7e\+308"
    with pytest.raises(ValueError, match=message):
        cls(scale="real").fit([-1.7e308, 1.7e308], [0, 1])
    inside = cls(scale="real").fit([-8e307, 8e307], [0, 1])
    np.testing.assert_allclose(inside.predict([-8e307, 0.0, 8e307]), [0.0, 0.5, 1.0])


def test_adjacent_floats_keep_their_own_values():
    low = 0.5
    high = np.nextafter(low, 1)
    pav = IsotonicCalibrator().fit([low, high], [0, 1])
    assert pav.predict([low, high]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("ratio", [0.01, 1.0, 30.0])
def test_llr_does_not_depend_on_the_prior(rng, ratio):
    """Seeds 002, section 5: reweighting a class moves the prior only."""
    scores = rng.normal(size=500)
    y = (rng.uniform(size=500) < 1 / (1 + np.exp(-scores))).astype(int)
    points = rng.normal(size=200)
    plain = IsotonicCalibrator(scale="real").fit(scores, y).llr(points)
    weight = np.where(y == 1, ratio, 1.0)
    shifted = IsotonicCalibrator(scale="real").fit(scores, y, weight)
    np.testing.assert_allclose(shifted.llr(points), plain, atol=1e-9)
    base = np.log(weight @ y) - np.log(weight @ (1 - y))
    p = shifted.predict(points)
    with np.errstate(divide="ignore"):
        logit = np.log(p) - np.log1p(-p)
    np.testing.assert_allclose(logit, plain + base, atol=1e-9)


def test_llr_of_one_class_is_no_evidence():
    with pytest.warns(CalibrationWarning, match="class 1 only"):
        pav = IsotonicCalibrator().fit([0.1, 0.2], [1, 1])
    assert pav.llr([0.1, 0.9]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("ties", [2, 6])
def test_blocks_are_the_faces_of_the_roc_hull(rng, ties):
    scores = np.round(rng.normal(size=300), ties)
    y = (rng.uniform(size=300) < 1 / (1 + np.exp(-scores))).astype(int)
    pav = IsotonicCalibrator(scale="real").fit(scores, y)
    weight0, weight1 = pav.map_.block_weights()
    false_alarms = np.concatenate([[0], np.cumsum(weight0[::-1])]) / weight0.sum()
    hits = np.concatenate([[0], np.cumsum(weight1[::-1])]) / weight1.sum()
    fpr, tpr, _ = roc_curve(y, scores, drop_intermediate=False)
    roc = np.column_stack([np.append(fpr, 1.0), np.append(tpr, 0.0)])
    corners = roc[ConvexHull(roc).vertices]
    corners = corners[corners[:, 1] >= corners[:, 0] - 1e-12]
    ours = np.column_stack([false_alarms, hits])
    for corner in corners:
        assert np.abs(ours - corner).sum(axis=1).min() < 1e-9
    p = pav.predict(scores)
    assert roc_auc_score(y, p) >= roc_auc_score(y, scores)
    area = np.trapezoid(hits, false_alarms)
    assert roc_auc_score(y, p) == pytest.approx(area)


def test_centred_isotonic_joins_block_means(rng):
    scores = np.round(rng.uniform(size=200), 2)
    y = (rng.uniform(size=200) < scores).astype(int)
    fitted = IsotonicRegression().fit(scores, y).predict(scores)
    values = np.unique(np.round(fitted, 12))
    centers = [scores[np.round(fitted, 12) == v].mean() for v in values]
    points = rng.uniform(size=100)
    ours = CenteredIsotonicCalibrator().fit(scores, y).predict(points)
    np.testing.assert_allclose(ours, np.interp(points, centers, values), atol=1e-9)
