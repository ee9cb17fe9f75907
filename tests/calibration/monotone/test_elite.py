"""ELiTE as a calibrator: its average, its weights, its cells."""

import numpy as np
import pytest
from scipy.special import logsumexp

from calibration import ELiTECalibrator, ScoreSummary
from calibration._kernels.trend_filter import trend_filter_path


@pytest.fixture
def data(rng):
    scores = np.round(rng.uniform(size=400), 2)
    return scores, (rng.uniform(size=400) < scores**2).astype(int)


def naive_elite(summary, lambdas, price=0.0, criterion="aicc"):
    """Values at the cells and weights, by the formulas, with plain numpy."""
    # A copy: a kernel is compiled anew for arrays that cannot be written to.
    x, weight, n = summary.scores.copy(), summary.weight, summary.n
    target = summary.weight1 / weight
    paths, marks, _, _ = trend_filter_path(x, weight, target, lambdas, n * price)
    log_weights = []
    for p, kinks in zip(paths, marks, strict=True):
        inside = np.clip(p, 1 / (2 * n + 2), 1 - 1 / (2 * n + 2))
        log_likelihood = summary.weight1 @ np.log(inside)
        log_likelihood += summary.weight0 @ np.log(1 - inside)
        df = np.count_nonzero(kinks) + 2
        charge = {
            "aic": 2 * df,
            "aicc": 2 * df + 2 * df * (df + 1) / (n - df - 1),
            "bic": df * np.log(n),
        }
        log_weights.append((2 * log_likelihood - charge[criterion]) / 2)
    weights = np.exp(log_weights - logsumexp(log_weights))
    return weights @ np.clip(paths, 0.0, 1.0), weights


@pytest.mark.parametrize("criterion", ["aicc", "aic", "bic"])
def test_is_the_average_of_the_path_by_a_criterion(data, criterion):
    summary = ScoreSummary.from_scores(*data)
    fitted = ELiTECalibrator(criterion=criterion).fit_summary(summary)
    values, weights = naive_elite(summary, fitted.lambdas_, criterion=criterion)
    np.testing.assert_allclose(fitted.weights_, weights, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(fitted.predict(summary.scores), values, atol=1e-9)
    assert 2 < len(fitted.map_) < summary.n_cells
    assert fitted.duality_gaps_.max() < 1e-8


def test_path_runs_from_lambda_max_evenly_in_the_logarithm(data):
    # Slopes of 64 times as wide scores are less, so their penalty is more.
    scores, y = 64.0 * data[0], data[1]
    fitted = ELiTECalibrator(9, 1e-2, scale="real").fit(scores, y)
    summary = ScoreSummary.from_scores(scores, y)
    x, weight = summary.scores, summary.weight
    bends = np.diff(np.diff(np.eye(len(x)), axis=0) / np.diff(x)[:, None], axis=0)
    dual = np.linalg.solve(bends / weight @ bends.T, bends @ (summary.weight1 / weight))
    expected = np.abs(dual).max() * np.logspace(0, -2, 9)
    np.testing.assert_allclose(fitted.lambdas_, expected, rtol=1e-8)
    assert fitted.degrees_of_freedom_[0] == 2
    assert len(ELiTECalibrator().fit(*data).lambdas_) == 50


def test_isotonic_penalty_lessens_falls_until_there_are_none(rng):
    scores = rng.uniform(size=600)
    y = rng.uniform(size=600) < 0.4 + 0.2 * np.sin(7.0 * scores)
    grid = np.linspace(0.0, 1.0, 1001)
    fits = [
        ELiTECalibrator(isotonic_penalty=price).fit(scores, y)
        for price in (0.0, 0.003, 0.01, np.inf)
    ]
    falls = [np.maximum(-np.diff(fit.predict(grid)), 0.0).sum() for fit in fits]
    assert falls[0] > falls[1] > falls[2] > 0.05
    assert falls[3] == 0.0
    assert fits[3].map_.is_increasing
    assert max(fit.duality_gaps_.max() for fit in fits) < 1e-8


def test_flat_pieces_take_no_degree_of_freedom():
    """A falling map held increasing is the constant: one free parameter."""
    scores = np.linspace(0.0, 1.0, 30)
    y = scores < 0.5
    fitted = ELiTECalibrator(5, isotonic_penalty=np.inf).fit(scores, y)
    np.testing.assert_array_equal(fitted.degrees_of_freedom_, np.ones(5))
    np.testing.assert_allclose(fitted.predict(scores), 0.5)


def test_close_cells_are_joined_and_many_cells_merged(rng):
    scores = rng.uniform(size=3000)
    y = rng.uniform(size=3000) < scores
    fine = ELiTECalibrator().fit(scores, y)
    coarse = ELiTECalibrator(max_cells=300).fit(scores, y)
    grid = np.linspace(0.02, 0.98, 50)
    assert np.abs(fine.predict(grid) - coarse.predict(grid)).max() < 0.01
    # Pairs 1e-9 apart are as good as ties.
    pairs = np.concatenate([scores[:500], np.minimum(scores[:500] + 1e-9, 1.0)])
    labels = np.concatenate([y[:500], y[500:1000]])
    ties = np.tile(scores[:500], 2)
    apart = ELiTECalibrator().fit(pairs, labels).predict(grid)
    tied = ELiTECalibrator().fit(ties, labels).predict(grid)
    np.testing.assert_allclose(apart, tied, atol=1e-5)


def test_two_cells_are_joined_by_a_line():
    fitted = ELiTECalibrator().fit([0.2, 0.2, 0.8, 0.8, 0.8], [0, 1, 1, 1, 0])
    np.testing.assert_allclose(fitted.predict([0.2, 0.5, 0.8]), [1 / 2, 7 / 12, 2 / 3])
    assert fitted.lambdas_.tolist() == [0.0]
    assert fitted.weights_.tolist() == [1.0]
    np.testing.assert_array_equal(fitted.duality_gaps_, [0.0])


@pytest.mark.parametrize("n", [2, 3])
def test_the_map_of_lambda_max_stands_alone_where_none_has_an_aicc(rng, n):
    for _ in range(10):
        scores = np.append(rng.uniform(size=n - 2), [0.0, 1.0])
        y = np.append(rng.integers(0, 2, n - 2), rng.permutation([0, 1]))
        fitted = ELiTECalibrator().fit(scores, y)
        assert fitted.weights_.tolist() == [1.0, *np.zeros(len(fitted.weights_) - 1)]


def test_an_exactly_affine_map_needs_one_penalty_only():
    scores = np.repeat([0.0, 0.25, 0.5, 0.75, 1.0], 4)
    y = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1]
    fitted = ELiTECalibrator().fit(scores, y)
    np.testing.assert_allclose(fitted.predict(scores), scores, atol=1e-12)
    assert len(fitted.lambdas_) == 1


def test_weights_over_many_decades_come_to_an_end():
    scores, weight = [-0.92, -0.06, 0.06, 0.07, 1.42], [1e-30, 0.0, 1e15, 1.0, 1e-30]
    fitted = ELiTECalibrator(isotonic_penalty=np.inf, scale="real")
    p = fitted.fit(scores, [0, 0, 1, 1, 1], weight).predict(scores)
    assert ((p >= 0.0) & (p <= 1.0)).all()
