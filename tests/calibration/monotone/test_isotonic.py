"""Isotonic regression: plain, centred, bagged, and with honest ends."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import isotonic_regression, minimize_scalar
from scipy.special import expit
from sklearn import datasets, model_selection
from sklearn.isotonic import IsotonicRegression
from sklearn.naive_bayes import GaussianNB

from calibration import (
    BaggedIsotonicCalibrator,
    CalibratedClassifier,
    CalibrationWarning,
    CenteredIsotonicCalibrator,
    ELiTECalibrator,
    IsotonicCalibrator,
    VennAbersCalibrator,
)
from tests.calibration.measures.test_reliability import FAMILY


@pytest.mark.parametrize("score", FAMILY.values(), ids=FAMILY)
@pytest.mark.parametrize("m", [2, 4])
def test_pav_minimises_every_proper_rule_against_brute_force(rng, m, score):
    """Seeds 002, theorem: one solution for all regular binary proper scoring rules.

    A minimiser takes values of means of runs of cells (or anywhere between jumps of
    a point-mass rule), so all increasing sequences over those values plus a grid are
    tried.
    """
    for _ in range(6):
        weight = rng.integers(0, 3, (2, m)).astype(float)
        weight[0, weight.sum(axis=0) == 0.0] = weight[1, 0] = 1.0
        cells, labels = np.tile(np.arange(m), 2), np.repeat([0, 1], m)
        pav = IsotonicCalibrator(scale="real").fit(cells, labels, weight.ravel())
        found = score(labels, pav.predict(cells), sample_weight=weight.ravel())
        ends = itertools.combinations(range(m + 1), 2)
        runs = [weight[1, i:j].sum() / weight[:, i:j].sum() for i, j in ends]
        levels = np.unique([*runs, *np.linspace(0, 1, 6)])
        losses = np.array([[score([k], [q]) for q in levels] for k in (0, 1)])
        # A class without weight in a cell may have an infinite loss there.
        sizes = [(k, i, w) for (k, i), w in np.ndenumerate(weight) if w]
        places = itertools.combinations_with_replacement(range(len(levels)), m)
        least = min(sum(w * losses[k, at[i]] for k, i, w in sizes) for at in places)
        assert found <= least / weight.sum() + 1e-8


@pytest.mark.parametrize("ties", [1, 6])
def test_is_the_isotonic_regression_with_the_weights_of_its_blocks(rng, ties):
    scores, weight = np.round(rng.normal(size=300), ties), rng.uniform(size=300)
    y = (rng.uniform(size=300) < expit(scores)).astype(int)
    pav = IsotonicCalibrator(scale="real").fit(scores, y, weight)
    truth = IsotonicRegression().fit(scores, y, weight).predict(scores)
    assert_allclose(pav.predict(scores), truth, atol=1e-12)
    weight0, weight1 = pav.map_.block_weights()
    rates = np.unique(truth.round(12))
    blocks = [truth.round(12) == rate for rate in rates]
    assert_allclose(weight1, [weight[b] @ y[b] for b in blocks])
    assert_allclose(weight0, [weight[b] @ (1 - y[b]) for b in blocks])


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
    assert_allclose(inside.predict([-8e307, 0.0, 8e307]), [0.0, 0.5, 1.0])


def test_adjacent_floats_keep_their_own_values():
    scores = [0.5, np.nextafter(0.5, 1)]
    assert IsotonicCalibrator().fit(scores, [0, 1]).predict(scores).tolist() == [0, 1]


@pytest.mark.parametrize("ratio", [0.01, 1.0, 30.0])
def test_llr_does_not_depend_on_the_prior(rng, ratio):
    """Seeds 002, section 5: reweighting a class moves the prior only."""
    scores = rng.normal(size=500)
    y = (rng.uniform(size=500) < 1 / (1 + np.exp(-scores))).astype(int)
    points = rng.normal(size=200)
    plain = IsotonicCalibrator(scale="real").fit(scores, y).llr(points)
    weight = np.where(y == 1, ratio, 1.0)
    shifted = IsotonicCalibrator(scale="real").fit(scores, y, weight)
    assert_allclose(shifted.llr(points), plain, atol=1e-9)
    base = np.log(weight @ y) - np.log(weight @ (1 - y))
    p = shifted.predict(points)
    with np.errstate(divide="ignore"):
        logit = np.log(p) - np.log1p(-p)
    assert_allclose(logit, plain + base, atol=1e-9)


def test_centred_isotonic_joins_block_means(rng):
    scores = np.round(rng.uniform(size=200), 2)
    y = (rng.uniform(size=200) < scores).astype(int)
    fitted = IsotonicRegression().fit(scores, y).predict(scores)
    values = np.unique(np.round(fitted, 12))
    centers = [scores[np.round(fitted, 12) == v].mean() for v in values]
    points = rng.uniform(size=100)
    ours = CenteredIsotonicCalibrator().fit(scores, y).predict(points)
    assert_allclose(ours, np.interp(points, centers, values), atol=1e-9)


@pytest.fixture
def data(rng):
    scores = np.round(rng.uniform(size=500), 2)
    return scores, (rng.uniform(size=500) < scores**2).astype(int)


def test_agrees_with_refitting_bootstrap_samples(data, rng):
    """The talk's five steps done naively; agreement within Monte Carlo noise."""
    scores, y = data
    cells = np.unique(scores)
    fits = []
    for _ in range(600):
        rows = rng.integers(0, 500, 500)
        isotonic = IsotonicRegression(out_of_bounds="clip")
        fits.append(isotonic.fit(scores[rows], y[rows]).predict(cells))
    naive, noise = np.mean(fits, axis=0), np.std(fits, axis=0) / np.sqrt(600)
    ours = BaggedIsotonicCalibrator(600, random_state=1).fit(scores, y)
    # Besides noise, scores that a bag misses are stepped over here, joined there.
    assert (np.abs(ours.predict(cells) - naive) < 6 * noise + 0.004).all()


def test_does_not_depend_on_the_number_of_threads(data):
    one = BaggedIsotonicCalibrator(50, random_state=3, n_jobs=1).fit(*data)
    two = BaggedIsotonicCalibrator(50, random_state=3, n_jobs=2).fit(*data)
    assert_array_equal(one.map_.at, two.map_.at)


def test_random_state_decides(data):
    def values(seed):
        fitted = BaggedIsotonicCalibrator(5, random_state=seed).fit(*data)
        return fitted.predict(data[0]).tolist()

    assert values(0) == values(0)
    assert values(0) != values(1)
    generator = np.random.RandomState(0)
    assert values(generator) != values(generator)


def refit(scores, y, weight, point):
    """p0 and p1 by definition: isotonic regression with (point, 0), (point, 1)."""
    answers = []
    for label in (0, 1):
        cells, place = np.unique(np.append(scores, point), return_inverse=True)
        total = np.bincount(place, np.append(weight, 1.0))
        ones = np.bincount(place, np.append(weight * y, label))
        fitted = isotonic_regression(ones / total, weights=total).x
        answers.append(fitted[np.searchsorted(cells, point)])
    return answers


def random_rows(rng, n, kind):
    """Scores with many ties or none, and labels of both classes."""
    scores = rng.uniform(size=n)
    if kind != "distinct":
        scores = np.round(scores, 1)
    y = (rng.uniform(size=n) < rng.uniform(size=n)).astype(int)
    y[:2], scores[:2] = [0, 1], [0.31, 0.62]
    weight = rng.uniform(0.05, 3.0, n) if kind == "weighted" else np.ones(n)
    return scores, y, weight


@pytest.mark.parametrize("kind", ["distinct", "ties", "weighted"])
@pytest.mark.parametrize("n", [2, 5, 30])
def test_interval_is_that_of_a_refit_at_and_between_scores(rng, kind, n):
    for _ in range(10):
        scores, y, weight = random_rows(rng, n, kind)
        cells = np.unique(scores)
        points = np.concatenate([[0.0, 1.0], cells, 0.5 * (cells[1:] + cells[:-1])])
        va = VennAbersCalibrator().fit(scores, y, weight)
        expected = [refit(scores, y, weight, point) for point in points]
        assert_allclose(va.predict_interval(points), expected, atol=1e-13)


def test_merged_value_has_least_regret_in_log_loss(rng):
    scores, y, weight = random_rows(rng, 40, "weighted")
    va = VennAbersCalibrator().fit(scores, y, weight)
    for point in (0.1, 0.45, 0.83):
        p0, p1 = va.predict_interval([point])[0]

        def regret(p, p0=p0, p1=p1):
            return max(np.log((1 - p0) / (1 - p)), np.log(p1 / p))

        best = minimize_scalar(regret, bounds=(1e-6, 1 - 1e-6), method="bounded")
        assert va.predict([point])[0] == pytest.approx(best.x, abs=1e-4)


@pytest.mark.parametrize(
    ("scores", "y"), [([0.2, 0.4, 0.9], [1, 1, 1]), ([0.4, 0.4, 0.4], [0, 1, 1])]
)
def test_no_map_to_learn_counts_as_one_cell_of_ties(scores, y):
    with pytest.warns(CalibrationWarning, match="predicts the constant"):
        va = VennAbersCalibrator().fit(scores, y)
    expected = refit(np.full(3, 0.5), np.array(y), np.ones(3), 0.5)
    assert_allclose(va.predict_interval([0.0, 0.4, 1.0]), [expected] * 3)
    p0, p1 = expected
    assert va.predict([0.7])[0] == pytest.approx(p1 / (1 - p0 + p1))


def test_ensemble_of_folds_is_the_cross_predictor():
    X, y = datasets.make_classification(300, flip_y=0.2, random_state=0)
    folds = model_selection.StratifiedKFold(4, shuffle=True, random_state=1)
    cross = CalibratedClassifier(
        GaussianNB(), VennAbersCalibrator(), cv=folds, ensemble=True
    ).fit(X, y)
    p0, p1 = [], []
    for train, test in folds.split(X, y):
        bayes = GaussianNB().fit(X[train], y[train])
        va = VennAbersCalibrator().fit(bayes.predict_proba(X[test])[:, 1], y[test])
        interval = va.predict_interval(bayes.predict_proba(X)[:, 1])
        p0.append(interval[:, 0])
        p1.append(interval[:, 1])
    ones = np.prod(p1, axis=0) ** 0.25
    zeros = np.prod(1 - np.array(p0), axis=0) ** 0.25
    assert_allclose(cross.predict_proba(X)[:, 1], ones / (ones + zeros), rtol=1e-12)
