"""Rows to label: chances against a slow rule and counted draws, and what they earn."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

from calibration import draw_rows_to_label


def slow_chances(column, n_rows, n_bins):
    """Share of each row where bins get their draws one by one, in equal parts."""
    low, high = min(column), max(column)
    bins = [
        min(int((s - low) / (high - low) * n_bins), n_bins - 1) if high > low else 0
        for s in column
    ]
    held = {b: bins.count(b) for b in set(bins)}
    quota = dict.fromkeys(held, 0.0)
    for _ in range(10_000):
        open_bins = [b for b in held if quota[b] < held[b] - 1e-12]
        left = n_rows - sum(quota.values())
        if left < 1e-9:
            break
        # No bin is filled beyond what it holds.
        step = min([left / len(open_bins), *(held[b] - quota[b] for b in open_bins)])
        for b in open_bins:
            quota[b] += step
    return np.array([quota[b] / held[b] for b in bins])


def chances(scores, n_rows, **given):
    """Return every row's chance, put together from many draws."""
    found = np.full(len(scores), np.nan)
    for seed in range(400):
        drawn = draw_rows_to_label(scores, n_rows, random_state=seed, **given)
        found[drawn.rows] = drawn.chance
    return found


@pytest.mark.parametrize("n_rows", [1, 7, 20, 39, 40])
@pytest.mark.parametrize("n_bins", [1, 3, 10])
def test_chances_are_those_of_equal_draws(n_rows, n_bins, rng):
    scores = np.round(rng.beta(0.3, 2.0, size=40), 2)
    found = chances(scores, n_rows, n_bins=n_bins)
    wanted = slow_chances(scores.tolist(), n_rows, n_bins)
    seen = ~np.isnan(found)
    assert seen.mean() > 0.9 or n_rows == 1
    np.testing.assert_allclose(found[seen], wanted[seen], atol=1e-12)
    assert wanted.sum() == pytest.approx(n_rows)


def test_rows_are_drawn_with_their_chances(rng):
    scores = rng.beta(0.3, 2.0, size=30)
    counts, n_draws = np.zeros(30), 4000
    for seed in range(n_draws):
        counts[draw_rows_to_label(scores, 9, random_state=seed).rows] += 1
    wanted = slow_chances(scores.tolist(), 9, 10)
    error = np.sqrt(wanted * (1 - wanted) / n_draws)
    assert (np.abs(counts / n_draws - wanted) <= 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("k", [1, 2, 3, 5])
@pytest.mark.parametrize("n_rows", [1, 10, 199, 200])
def test_sample_is_of_the_size_asked_for(k, n_rows, rng):
    scores = softmax(3.0 * rng.normal(size=(200, k)), axis=1)
    drawn = draw_rows_to_label(scores[:, 0] if k == 1 else scores, n_rows)
    assert len(np.unique(drawn.rows)) == len(drawn.rows) == n_rows
    assert (np.diff(drawn.rows) > 0).all()
    assert ((drawn.chance > 0) & (drawn.chance <= 1)).all()
    assert drawn.weight.sum() == pytest.approx(n_rows)
    assert np.ptp(drawn.weight * drawn.chance) < 1e-9


def test_every_column_is_spread(rng):
    """A class that is never the likeliest has its share of the draws."""
    scores = rng.dirichlet([40.0, 8.0, 0.5], size=5000)
    drawn = draw_rows_to_label(scores, 90)
    high = scores[drawn.rows, 2] > 0.5 * scores[:, 2].max()
    assert high.any()
    assert drawn.chance[high].min() > 10 * 90 / 5000


def test_scales_tell_the_same(rng):
    column, table = rng.normal(-3.0, 2.0, size=400), rng.normal(size=(400, 3))
    for z, p in ((column, expit(column)), (table, softmax(table, axis=1))):
        as_logit = draw_rows_to_label(z, 40, scale="logit")
        assert as_logit.rows.tolist() == draw_rows_to_label(p, 40).rows.tolist()


def test_a_column_of_scores_is_that_of_one_class(rng):
    scores = rng.uniform(size=50)
    for scale in ("probability", "logit", "real"):
        column = draw_rows_to_label(pd.DataFrame({"s": scores}), 9, scale=scale)
        plain = draw_rows_to_label(scores, 9, scale=scale)
        assert column.rows.tolist() == plain.rows.tolist()


def test_scores_that_are_all_equal_are_one_bin():
    drawn = draw_rows_to_label(np.full(50, 0.3), 10)
    np.testing.assert_allclose(drawn.chance, 0.2)


def test_what_is_wrong_is_refused():
    with pytest.raises(ValueError, match="`n_rows` must be at most the 3 rows"):
        draw_rows_to_label([0.1, 0.2, 0.3], 4)
    with pytest.raises(ValueError, match=r"`scores` must .*\[0, 1\]"):
        draw_rows_to_label([0.1, 1.2], 1)
    with pytest.raises(ValueError, match="`scores` must have shape"):
        draw_rows_to_label([[0.1, 0.2]], 1, scale="real")
