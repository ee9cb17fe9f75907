import numpy as np
import pytest
from scipy import stats

from calibration import compare_pair


def test_all_figures_against_scipy(rng):
    b = rng.uniform(0.1, 1.0, size=30)
    a = b * rng.uniform(0.6, 1.2, size=30)
    a[:4] = b[:4]
    found = compare_pair(a, b, level=0.9)
    change = (a - b) / b
    wanted = stats.ttest_1samp(change, 0.0).confidence_interval(0.9)
    np.testing.assert_allclose(found.interval, wanted, rtol=1e-12)
    assert found.relative_change == pytest.approx(change.mean())
    wins = int((a < b).sum())
    assert (found.n_sets, found.wins, found.ties) == (30, wins, 4)
    assert found.sign_p == pytest.approx(stats.binomtest(wins, 26).pvalue)
    assert found.t_p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    wilcoxon = stats.wilcoxon(a, b, zero_method="zsplit").pvalue
    assert found.wilcoxon_p == pytest.approx(wilcoxon)


def test_the_interval_covers_the_true_change_as_often_as_it_says(rng):
    held = []
    for _ in range(1000):
        b = rng.uniform(0.5, 2.0, size=12)
        low, high = compare_pair(b * rng.normal(0.8, 0.1, size=12), b).interval
        held.append(low <= -0.2 <= high)
    assert np.mean(held) == pytest.approx(0.95, abs=0.015)


def test_equal_losses_are_no_difference():
    found = compare_pair([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    assert (found.sign_p, found.wilcoxon_p, found.t_p) == (1.0, 1.0, 1.0)
    assert found.interval == (0.0, 0.0)
    assert "equal on 3" in str(found)


def test_gaps_that_are_all_alike_leave_no_doubt():
    assert compare_pair([0.5, 1.0, 1.5], [1.0, 1.5, 2.0]).t_p == 0.0


@pytest.mark.parametrize(
    ("losses", "reference", "message"),
    [
        ([0.1, 0.2], [0.1, 0.0], "`reference` must be positive .* got 0.0 for set 1"),
        ([0.1, np.nan], [0.1, 0.2], "`losses` must be positive and finite, got nan"),
        ([0.1, 0.2], [0.1], "the same data sets, two or more, got 2 and 1"),
        ([0.1], [0.1], "two or more, got 1 and 1"),
        ([[0.1, 0.2]], [0.1, 0.2], r"`losses` must have shape \(n_sets,\)"),
    ],
)
def test_refusals(losses, reference, message):
    with pytest.raises(ValueError, match=message):
        compare_pair(losses, reference)
