"""Venn-Abers intervals against isotonic regressions refitted for every test row."""

import warnings

import numpy as np
import pytest
from scipy.optimize import isotonic_regression, minimize_scalar
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from calibration.classifier.classifier import CalibratedClassifier
from calibration.exceptions import CalibrationWarning
from calibration.monotone.isotonic import VennAbersCalibrator, merge_intervals
from calibration.summary import ScoreSummary


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
        np.testing.assert_allclose(va.predict_interval(points), expected, atol=1e-13)


@pytest.mark.parametrize("kind", ["distinct", "ties"])
def test_equals_the_package_venn_abers(rng, kind):
    with np.errstate():  # D13: the package switches numpy's warnings off for good
        peer = pytest.importorskip("venn_abers", reason="a peer to compare with")
    scores, y, weight = random_rows(rng, 300, kind)
    points = rng.uniform(size=200)
    ours = VennAbersCalibrator().fit(scores, y, weight)
    theirs = peer.VennAbers()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit(np.column_stack([1 - scores, scores]), y)
        both = np.column_stack([1 - points, points])
        merged, interval = theirs.predict_proba(both)
    np.testing.assert_allclose(ours.predict_interval(points), interval, atol=1e-12)
    np.testing.assert_allclose(ours.predict(points), merged[:, 1], atol=1e-12)


def test_merged_value_has_least_regret_in_log_loss(rng):
    scores, y, weight = random_rows(rng, 40, "weighted")
    va = VennAbersCalibrator().fit(scores, y, weight)
    for point in (0.1, 0.45, 0.83):
        p0, p1 = va.predict_interval([point])[0]

        def regret(p, p0=p0, p1=p1):
            return max(np.log((1 - p0) / (1 - p)), np.log(p1 / p))

        best = minimize_scalar(regret, bounds=(1e-6, 1 - 1e-6), method="bounded")
        assert va.predict([point])[0] == pytest.approx(best.x, abs=1e-4)


def test_one_of_the_two_is_calibrated_at_any_n(rng):
    """Vovk & Petej (2014): E(y - p_y) = 0, whatever the scores; here n = 10."""
    differences = []
    for _ in range(4000):
        scores = rng.uniform(size=11)
        y = (rng.uniform(size=11) < 0.3 + 0.4 * scores).astype(int)
        if y[:10].min() == y[:10].max():  # refit covers one class as well
            interval = refit(scores[:10], y[:10], np.ones(10), scores[10])
        else:
            va = VennAbersCalibrator().fit(scores[:10], y[:10])
            interval = va.predict_interval(scores[10:])[0]
        differences.append(y[10] - interval[y[10]])
    error = np.std(differences) / np.sqrt(len(differences))
    assert abs(np.mean(differences)) < 3.0 * error


@pytest.mark.parametrize(
    ("scores", "y"), [([0.2, 0.4, 0.9], [1, 1, 1]), ([0.4, 0.4, 0.4], [0, 1, 1])]
)
def test_no_map_to_learn_counts_as_one_cell_of_ties(scores, y):
    with pytest.warns(CalibrationWarning, match="predicts the constant"):
        va = VennAbersCalibrator().fit(scores, y)
    expected = refit(np.full(3, 0.5), np.array(y), np.ones(3), 0.5)
    np.testing.assert_allclose(va.predict_interval([0.0, 0.4, 1.0]), [expected] * 3)
    p0, p1 = expected
    assert va.predict([0.7])[0] == pytest.approx(p1 / (1 - p0 + p1))


def test_merging_intervals_is_the_geometric_mean():
    intervals = np.array([[[0.2, 0.3]], [[0.1, 0.5]]])
    ones, zeros = np.sqrt(0.3 * 0.5), np.sqrt(0.8 * 0.9)
    expected = ones / (ones + zeros)
    assert merge_intervals(list(intervals))[0] == pytest.approx(expected, rel=1e-15)
    assert merge_intervals([intervals[0]])[0] == pytest.approx(0.3 / (0.8 + 0.3))


def test_ensemble_of_folds_is_the_cross_predictor():
    X, y = make_classification(300, flip_y=0.2, random_state=0)
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
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
    np.testing.assert_allclose(
        cross.predict_proba(X)[:, 1], ones / (ones + zeros), rtol=1e-12
    )
    pooled = CalibratedClassifier(GaussianNB(), VennAbersCalibrator(), cv=folds)
    pooled.fit(X, y)
    np.testing.assert_array_equal(
        pooled.predict_proba(X)[:, 1],
        pooled.calibrator_.predict(pooled.estimator_.predict_proba(X)[:, 1]),
    )


def test_a_condensed_summary_will_do(rng):
    scores = rng.uniform(size=20_000)
    summary = ScoreSummary.from_scores(scores, rng.uniform(size=20_000) < scores**2)
    exact = VennAbersCalibrator().fit_summary(summary)
    coarse = VennAbersCalibrator().fit_summary(summary.condense(2000))
    points = np.linspace(0.05, 0.95, 50)
    assert np.abs(exact.predict(points) - coarse.predict(points)).mean() < 0.01


def test_refused(rng):
    va = VennAbersCalibrator()
    with pytest.raises(NotFittedError, match="not fitted"):
        va.predict_interval([0.5])
    va.fit(*random_rows(rng, 30, "ties"))
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\], got -2"):
        va.predict_interval([-2.0])
    with pytest.raises(ValueError, match="`scores` must be finite, got nan"):
        va.predict_interval([np.nan])
