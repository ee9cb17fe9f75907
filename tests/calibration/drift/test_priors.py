"""Priors moved, found without labels, and put to a test."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit
from scipy.stats import chi2, f
from sklearn.model_selection import cross_val_predict

from calibration import (
    IsotonicCalibrator,
    PlattCalibrator,
    estimate_prior,
    prior_shift_test,
    shift_prior,
)

P, FOUR = [0.2, 0.7], {"p_old": [0.2, 0.7] * 2, "y_old": [0, 1] * 2}


def draw_scores(rng, n, prior, gap=1.5):
    """Scores of two normal classes, and their labels."""
    y = rng.uniform(size=n) < prior
    return rng.normal(gap * y), y.astype(int)


def climb_by_em(p, old, n_steps=2000):
    """Saerens's algorithm as it is written: shift, take the mean, and so on."""
    prior, ratios = np.array(old), p / old
    for _ in range(n_steps):
        posterior = ratios * prior
        prior = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
    return prior


def draw_table(rng, n, old, spread=2.0):
    """Forecasts of k classes, some of them certain."""
    logs = rng.normal(scale=spread, size=(n, len(old))) + np.log(old)
    p = np.exp(logs - logs.max(axis=1, keepdims=True))
    p[: n // 10] = np.eye(len(old))[rng.integers(0, len(old), n // 10)]
    return p / p.sum(axis=1, keepdims=True)


def test_shifted_forecasts_are_bayes_rule(rng):
    p = rng.uniform(size=50)
    odds = p / (1 - p) * (0.02 / 0.98) / (0.4 / 0.6)
    np.testing.assert_allclose(shift_prior(p, 0.4, 0.02), odds / (1 + odds), rtol=1e-12)
    old, new = np.array([0.2, 0.3, 0.5]), np.array([0.7, 0.2, 0.1])
    table = rng.dirichlet(np.ones(3), 50)
    by_hand = table * new / old
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shift_prior(table, old, new), by_hand, rtol=1e-12)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_estimate_is_the_limit_of_em(rng, k):
    old = rng.dirichlet(np.full(k, 3.0))
    p = draw_table(rng, 300, old)
    found = estimate_prior(p, old)
    np.testing.assert_allclose(found.most_likely, climb_by_em(p, old), atol=1e-6)
    assert found.prior.sum() == pytest.approx(1.0)
    assert found.interval.shape == (k, 2)
    assert (found.interval[:, 0] <= found.prior).all()
    assert (found.prior <= found.interval[:, 1]).all()


def test_a_class_that_is_not_there_has_a_prior_of_zero(rng):
    scores, _ = draw_scores(rng, 2000, 0.0, gap=3.0)
    found = estimate_prior(expit(3.0 * scores - 4.5), 0.5)
    assert found.most_likely < 0.01
    assert 0.0 < found.prior < 0.01
    assert found.interval[0] == 0.0


def test_the_interval_is_where_the_likelihood_is_high(rng):
    scores, _ = draw_scores(rng, 200, 0.2)
    p = expit(1.5 * scores - 1.125)
    found = estimate_prior(p, 0.5, coverage=0.8)
    grid = np.linspace(0.0, 1.0, 100_001)[1:-1]
    total = np.zeros(len(grid))
    for one in p:
        total += np.log(grid * one / 0.5 + (1 - grid) * (1 - one) / 0.5)
    held = grid[total >= total.max() - 0.5 * chi2.ppf(0.8, 1)]
    np.testing.assert_allclose(found.interval, held[[0, -1]], atol=2e-5)
    assert found.most_likely == pytest.approx(grid[np.argmax(total)], abs=2e-5)
    # Log-odds of priors are normal about 0, whose density in the prior has a factor.
    law = np.exp(-0.125 * logit(grid) ** 2) / (grid * (1.0 - grid))
    weights = np.exp(total - total.max()) * law
    mean = grid @ weights / weights.sum()
    assert found.prior == pytest.approx(mean, abs=2e-4)


def test_the_profile_of_three_classes_is_that_of_a_grid(rng):
    old = np.array([0.5, 0.3, 0.2])
    p = draw_table(rng, 60, old)
    found = estimate_prior(p, old)
    steps = np.linspace(0.0, 1.0, 201)
    first, second = (part.ravel() for part in np.meshgrid(steps, steps))
    inside = first + second <= 1.0
    grid = np.column_stack([first, second, 1.0 - first - second])[inside].clip(0.0)
    with np.errstate(divide="ignore"):
        total = np.log(p / old @ grid.T).sum(axis=0)
    held = grid[total >= total.max() - 0.5 * chi2.ppf(0.95, 1)]
    np.testing.assert_allclose(found.interval[:, 0], held.min(axis=0), atol=0.01)
    np.testing.assert_allclose(found.interval[:, 1], held.max(axis=0), atol=0.01)


@pytest.mark.parametrize("k", [2, 3])
def test_weights_of_rows_without_labels_are_repetitions(rng, k):
    old = rng.dirichlet(np.full(k, 3.0))
    p, p_old = draw_table(rng, 60, old), draw_table(rng, 80, old)
    y_old = rng.integers(0, k, 80)
    weight, weight_old = rng.integers(0, 4, 60), rng.integers(0, 4, 80)
    rows, rows_old = np.repeat(p, weight, axis=0), np.repeat(p_old, weight_old, axis=0)
    labels = np.repeat(y_old, weight_old)
    for weighted, repeated in (
        ({}, {}),
        (
            {"p_old": p_old, "y_old": y_old, "sample_weight_old": weight_old},
            {"p_old": rows_old, "y_old": labels},
        ),
    ):
        found = estimate_prior(p, old, sample_weight=weight, **weighted)
        wanted = estimate_prior(rows, old, **repeated)
        for name in ("most_likely", "prior", "interval"):
            one, other = getattr(found, name), getattr(wanted, name)
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
        assert found.n_rows == wanted.n_rows == weight.sum()
    light = estimate_prior(p, old, sample_weight=1e-12 * weight)
    found = estimate_prior(p, old, sample_weight=weight)
    np.testing.assert_allclose(light.most_likely, found.most_likely, atol=1e-6)


def test_labelled_rows_widen_the_interval_by_what_they_do_not_know(rng):
    scores, _ = draw_scores(rng, 20_000, 0.1)
    p = expit(1.5 * scores - 1.125)
    old, y_old = draw_scores(rng, 1000, 0.5)
    known = estimate_prior(p, 0.5)
    honest = estimate_prior(p, 0.5, p_old=expit(1.5 * old - 1.125), y_old=y_old)
    # By the delta method: the score function's variances in the classes.
    share = honest.most_likely
    near = 0.98 * share + 0.01
    qs = p, expit(1.5 * old - 1.125)
    g, h = ((2.0 * q - 1.0) / (near * q + (1.0 - near) * (1.0 - q)) for q in qs)
    zeros, ones = h[y_old == 0], h[y_old == 1]
    variance = g.var() / len(g) + share**2 * ones.var() / len(ones)
    variance += (1.0 - share) ** 2 * zeros.var() / len(zeros)
    apart = ones.mean() - zeros.mean()
    assert share == pytest.approx((g.mean() - zeros.mean()) / apart, abs=1e-3)
    width = 2.0 * 1.96 * np.sqrt(variance) / apart
    assert np.ptp(honest.interval) == pytest.approx(width, rel=0.1)
    assert np.ptp(honest.interval) > 2.0 * np.ptp(known.interval)


@pytest.mark.parametrize("n", [1, 4])
def test_a_few_new_rows_do_not_tell_more_than_they_know(rng, n):
    held = 0
    for _ in range(20):
        old, y_old = draw_scores(rng, 300, 0.5)
        new, _ = draw_scores(rng, n, 0.4)
        told = estimate_prior(expit(new), 0.5, p_old=expit(old), y_old=y_old)
        held += told.interval[0] <= 0.4 <= told.interval[1]
    assert held >= 17


def test_three_classes_are_told_with_labelled_rows(rng):
    old, new = np.array([0.4, 0.3, 0.3]), np.array([0.7, 0.05, 0.25])
    places = 1.8 * np.eye(3)

    def draw(n, prior):
        y = rng.choice(3, n, p=prior)
        x = places[y] + rng.normal(size=(n, 3))
        logs = 1.8 * x + np.log(old)
        return np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True), y

    p_old, y_old = draw(3000, old)
    told = estimate_prior(draw(3000, new)[0], old, p_old=p_old, y_old=y_old)
    assert told.prior.sum() == pytest.approx(1.0)
    assert (np.abs(told.prior - new) < 0.04).all()
    assert (told.interval[:, 0] < told.prior).all()
    assert (told.prior < told.interval[:, 1]).all()
    assert (np.diff(told.interval, axis=1) < 0.12).all()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PlattCalibrator, IsotonicCalibrator])
@pytest.mark.parametrize(("n", "new"), [(5000, 0.03), (2000, 0.3)])
def test_the_interval_covers_with_fitted_calibrators(kind, n, new):
    """In 91 to 99 % of samples at 95 %, with labelled rows out of fold."""
    hits = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scores, y = draw_scores(rng, 1000, 0.5)
        fitted = kind(scale="real").fit(scores, y)
        p = fitted.predict(draw_scores(rng, n, new)[0])
        p_old = cross_val_predict(fitted, scores, y)
        told = estimate_prior(p, fitted.base_rate_, p_old=p_old, y_old=y)
        hits.append(told.interval[0] <= new <= told.interval[1])
    assert 0.91 <= np.mean(hits) <= 0.99


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, np.nan])
def test_certain_priors_are_refused(bad):
    with pytest.raises(ValueError, match=r"`new` must lie in \(0, 1\), got"):
        shift_prior([0.5], 0.5, bad)
    with pytest.raises(ValueError, match=r"`old` must lie in \(0, 1\), got"):
        estimate_prior([[0.5, 0.5]], [bad, 1.0 - bad])


def test_priors_must_fit_the_forecasts():
    table = [[0.2, 0.3, 0.5]]
    with pytest.raises(ValueError, match="`old` must hold a prior for each of the 3"):
        shift_prior(table, [0.5, 0.5], [0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match=r"`new` must sum to 1, got a sum of 0\.9"):
        shift_prior(table, [0.2, 0.3, 0.5], [0.2, 0.3, 0.4])
    with pytest.raises(TypeError, match="`old` must be a real number"):
        shift_prior([0.2], [0.5, 0.5], 0.5)
    # Sorted by size, as `value_counts` has it.
    named = pd.DataFrame(table, columns=list("abc"))
    for p, names in ((table, [2, 1, 0]), (named, list("cba"))):
        prior = pd.Series([0.5, 0.3, 0.2], index=names)
        with pytest.raises(ValueError, match="`new` must have its columns in the ord"):
            shift_prior(p, [0.2, 0.3, 0.5], prior)
        told = shift_prior(p, [0.3, 0.4, 0.3], prior[::-1])
        by_number = shift_prior(table, [0.3, 0.4, 0.3], [0.2, 0.3, 0.5])
        np.testing.assert_array_equal(told, by_number)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"p_old": P}, "`y_old` must be given with `p_old`"),
        ({"y_old": [0, 1]}, "`p_old` must be given with `y_old`"),
        ({"p_old": P, "y_old": [0, 1]}, "`y_old` must hold every class twice"),
        ({**FOUR, "sample_weight_old": [1, 0] * 2}, "twice or more, got 0 of 1"),
        ({"sample_weight_old": [1, 1]}, "`p_old` must be given with `sample_weight_"),
        ({**FOUR, "sample_weight_old": [1]}, "`sample_weight_old` must be as long as"),
        ({"sample_weight": [1, -1]}, "`sample_weight` must not be negative"),
        ({**FOUR, "p_old": np.full((4, 3), 1 / 3)}, "must have the columns of `p`"),
    ],
)
def test_labelled_rows_must_be_whole(given, message):
    with pytest.raises(ValueError, match=message):
        estimate_prior(P, 0.5, **given)


def test_labelled_rows_have_the_columns_and_labels_of_the_new():
    table = pd.DataFrame(np.full((6, 3), 1 / 3), columns=["ox", "hen", "cat"])
    other, y = table[["hen", "ox", "cat"]], [0, 1, 2] * 2
    with pytest.raises(ValueError, match="`p_old` must have its columns in the order"):
        estimate_prior(table, np.full(3, 1 / 3), p_old=other, y_old=y)
    with pytest.raises(ValueError, match="`p_old` must have its columns in the order"):
        prior_shift_test(table, other, y)
    thirds = np.full((4, 3), 1 / 3)  # `classes` is no parameter here
    with pytest.raises(ValueError, match=r"numbers from 0 to 2, got 3 at position 3\."):
        prior_shift_test(thirds, thirds, [0, 1, 2, 3])
    with pytest.raises(TypeError, match="`y_old` must be numeric, got 'a'"):
        prior_shift_test(thirds, thirds, list("abca"))


def test_the_statistic_is_the_least_squared_distance(rng):
    """Beside a search over the prior, with the covariance at the best one."""
    scores, y = draw_scores(rng, 400, 0.5)
    p_old, p = expit(scores), expit(draw_scores(rng, 300, 0.2)[0])
    found = prior_shift_test(p, p_old, y, n_bins=5)
    edges = np.quantile(np.concatenate([p, p_old]), [0.2, 0.4, 0.6, 0.8])
    new, zeros, ones = (
        np.eye(5)[np.searchsorted(edges, part)][:, :4]
        for part in (p, p_old[y == 0], p_old[y == 1])
    )

    def spreads(at):
        """Of old rows as such, and where they stand for new ones."""
        for part, s in ((ones, at), (zeros, 1 - at)):
            yield np.cov(part.T, ddof=0) * (s**2 / len(part) + s / len(new))

    def distance(share, at=None):
        at = share if at is None else at
        away = new.mean(0) - share * ones.mean(0) - (1 - share) * zeros.mean(0)
        apart = ones.mean(0) - zeros.mean(0)
        spread = at * (1 - at) * np.outer(apart, apart) / len(new) + sum(spreads(at))
        return away @ np.linalg.solve(spread, away)

    best = minimize_scalar(distance, (0, 1), (0, 1), (found.prior,), "bounded")
    assert found.prior == pytest.approx(best.x, abs=1e-4)
    assert found.statistic == pytest.approx(distance(best.x, found.prior), rel=1e-4)
    assert found.dof == 3
    apart, share = ones.mean(0) - zeros.mean(0), found.prior
    between = share * (1 - share) * np.outer(apart, apart) / len(new)
    inverse = np.linalg.inv(between + sum(spreads(share)))
    unsure = 0.0
    for part, spread in zip((ones, zeros), spreads(share), strict=True):
        one = spread @ inverse
        unsure += (np.trace(one @ one) + np.trace(one) ** 2) / (len(part) - 1)
    rest = (4 + 4**2) / unsure - 2
    ratio = found.statistic * rest / (rest + 2) / 3
    assert found.p_value == pytest.approx(f.sf(ratio, 3, rest))


def test_a_share_of_zero_is_a_degree_of_freedom(rng):
    p_old, y = rng.uniform(size=(400, 3)), np.arange(400) % 3
    p_old[np.arange(400), y] += 2.0
    p_old /= p_old.sum(axis=1, keepdims=True)
    with_all = prior_shift_test(p_old, p_old, y, n_bins=4)
    two = prior_shift_test(p_old[y < 2], p_old, y, n_bins=4)
    assert two.prior[2] == pytest.approx(0.0, abs=0.02)
    assert with_all.prior.sum() == pytest.approx(1.0)
    assert with_all.dof <= 9 - 2


@pytest.mark.slow
@pytest.mark.parametrize(("n", "new"), [(1000, 0.02), (1000, 0.5), (300, 0.1)])
def test_the_level_is_held_and_a_move_is_found(n, new):
    """At level .05; 3 errors of 400 samples are .033."""
    p_values, moved = [], []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        scores, y = draw_scores(rng, n, 0.5)
        fresh = draw_scores(rng, n, new)[0]
        p_values.append(prior_shift_test(expit(fresh), expit(scores), y).p_value)
        other = prior_shift_test(expit(1.4 * fresh + 0.4), expit(scores), y)
        moved.append(other.p_value)
    assert abs(np.mean(np.array(p_values) < 0.05) - 0.05) < 0.033
    assert np.mean(np.array(moved) < 0.05) > (0.6 if n == 1000 else 0.25)


@pytest.mark.parametrize("n", [1, 5, 30, 500])
def test_few_new_rows_and_maps_of_steps_hold_the_level(n):
    """At level .05, where .11 are 3 errors of 120 samples too many.

    The steps have learned from the old rows, which are sorted.
    """
    rejected = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        scores, y = draw_scores(rng, 400, 0.5)
        fresh, order = draw_scores(rng, n, 0.1)[0], np.argsort(y)
        steps = IsotonicCalibrator(scale="real").fit(scores[order], y[order])
        ask = steps.predict if n == 500 else expit
        rejected.append(prior_shift_test(ask(fresh), ask(scores), y).p_value < 0.05)
    assert np.mean(rejected) < 0.11


def test_what_cannot_be_told_is_refused():
    y = [0, 1, 0, 1]
    with pytest.raises(ValueError, match="`p` must take values in more than 2 bins"):
        prior_shift_test([0.5, 0.5], [0.5, 0.5, 0.5, 0.5], y)
    with pytest.raises(ValueError, match="`y_old` must be as long as p_old"):
        prior_shift_test([0.5], [0.1, 0.2, 0.3], y)


def test_new_rows_that_are_all_of_one_class():
    p_old, y = np.repeat([0.1, 0.3, 0.5, 0.9], [20, 20, 20, 40]), np.arange(100) >= 60
    for share in (0.95, 1.0):
        p = np.append(np.full(round(20 * share), 0.9), np.full(20, 0.1))[:20]
        found = prior_shift_test(p, p_old, y, n_bins=10)
        assert found.prior == pytest.approx(share, abs=0.01)
        assert found.p_value > 0.1


def test_few_rows_of_three_classes_have_an_interval():
    p_old = [[22, 18, 60], [10, 21, 69], [73, 5, 22], [63, 18, 19], [23, 75, 2]]
    p_old = np.array([*p_old, [17, 63, 20], [10, 9, 81], [32, 48, 20]]) / 100
    y = [0, 0, 1, 1, 2, 2, 2, 0]
    new, prior = [[0.51, 0.48, 0.01]], [0.26, 0.41, 0.33]
    found = estimate_prior(new, prior, p_old=p_old, y_old=y)
    assert (found.interval[:, 0] <= found.most_likely).all()
    assert (found.most_likely <= found.interval[:, 1]).all()
