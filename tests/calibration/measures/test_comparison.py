"""Methods compared: published figures, plain loops, scipy."""

from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from calibration import compare_methods, compare_pair

# Demsar (2006), table 6: AUC of four variants of C4.5 on 14 data sets.
NAMES = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],  # adult
        [0.599, 0.591, 0.590, 0.569],  # breast cancer
        [0.954, 0.971, 0.968, 0.967],  # breast cancer wisconsin
        [0.628, 0.661, 0.654, 0.657],  # cmc
        [0.882, 0.888, 0.886, 0.898],  # ionosphere
        [0.936, 0.931, 0.916, 0.931],  # iris
        [0.661, 0.668, 0.609, 0.685],  # liver disorders
        [0.583, 0.583, 0.563, 0.625],  # lung cancer
        [0.775, 0.838, 0.866, 0.875],  # lymphography
        [1.000, 1.000, 1.000, 1.000],  # mushroom
        [0.940, 0.962, 0.965, 0.962],  # primary tumor
        [0.619, 0.666, 0.614, 0.669],  # rheum
        [0.972, 0.981, 0.975, 0.975],  # voting
        [0.957, 0.978, 0.946, 0.970],  # wine
    ]
)
VOTING = 12


@pytest.fixture
def published():
    """Losses with the ranks of the paper.

    It ranks the two .975 of "voting" 2 and 3, so they are equal as printed only;
    as printed, two average ranks differ from the paper's by .036.
    """
    losses = 1.0 - AUC
    losses[VOTING, 2] -= 1e-4
    return losses


def test_published_friedman_and_iman_davenport(published):
    tests = compare_methods(published, names=NAMES)
    assert_allclose(tests.average_ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    assert tests.friedman_chi2 == pytest.approx(9.28, abs=0.005)
    assert tests.iman_davenport_f == pytest.approx(3.69, abs=0.005)
    # Critical value of F(3, 39) at 5 %: 2.85, so equality is rejected.
    assert tests.p_value == tests.iman_davenport_p < 0.05
    assert tests.control == "C4.5+m+cf"


def test_published_comparison_with_a_control(published):
    tests = compare_methods(published, names=NAMES, control="C4.5")
    # The paper divides rounded differences: 2.416 is 2.4154 in full.
    assert_allclose(np.abs(tests.z), [0, 2.342, 0.512, 2.416], atol=1e-3)
    assert_allclose(tests.p_values, [1, 0.019, 0.607, 0.016], atol=2e-3)
    assert (tests.z <= 0.0).all()  # all rank better than the control
    # Holm: .016 < .05/3 and .019 < .05/2, .607 > .05; Bonferroni-Dunn's CD is 1.168.
    assert tests.different.tolist() == [False, True, False, True]
    # 3 * .0157; 2 * .0192 is less, and an adjusted p-value never falls.
    assert_allclose(tests.p_holm, [1, 0.0472, 0.608, 0.0472], atol=5e-4)
    assert tests.critical_difference == pytest.approx(1.168, abs=2e-3)


def test_pairwise_wilcoxon_against_scipy_and_a_loop(rng):
    losses = rng.normal([0.0, 0.5, 1.0], size=(9, 3))
    tests = compare_methods(losses)
    raw = []
    for i, j in combinations(range(3), 2):
        p = stats.wilcoxon(losses[:, i], losses[:, j]).pvalue
        assert tests.wilcoxon_p[i, j] == pytest.approx(p, rel=1e-9)
        raw.append(p)
    assert_array_equal(tests.wilcoxon_p, tests.wilcoxon_p.T)
    assert_array_equal(np.diag(tests.wilcoxon_p), 1.0)
    adjusted = [tests.wilcoxon_p_holm[i, j] for i, j in combinations(range(3), 2)]
    assert_allclose(adjusted, holm_by_loop(raw), rtol=1e-9)
    assert_array_equal(tests.wilcoxon_p_holm, tests.wilcoxon_p_holm.T)


def holm_by_loop(p_values):
    """Each p-value is the least level at which the step-down procedure rejects it."""
    steps = [(p, p * sum(q >= p for q in p_values)) for p in p_values]
    return [min(max(s for q, s in steps if q <= p), 1.0) for p in p_values]


def test_two_methods_have_wilcoxons_test_only(rng):
    losses = rng.normal([0.0, 1.0], size=(15, 2))
    tests = compare_methods(losses)
    assert np.isnan([tests.friedman_chi2, tests.iman_davenport_p, *tests.z]).all()
    expected = stats.wilcoxon(losses[:, 0], losses[:, 1]).pvalue
    assert tests.p_value == pytest.approx(expected)
    assert_allclose(tests.p_holm, [1.0, expected])
    assert tests.different.tolist() == [False, expected < 0.05]
    assert "Wilcoxon signed-rank: p =" in str(tests)
    assert "Friedman" not in str(tests)


def test_without_a_difference_none_is_found():
    tests = compare_methods(np.ones((5, 3)))
    assert tests.friedman_chi2 == tests.iman_davenport_f == 0.0
    assert tests.friedman_p == tests.iman_davenport_p == 1.0
    assert (tests.wilcoxon_p == 1.0).all()
    assert not tests.different.any()


def test_holm_does_not_speak_where_the_main_test_is_silent(rng):
    # As the thesis: post-hoc only after equality of all has been rejected.
    losses = np.tile(rng.normal(size=(6, 1)), (1, 3))
    losses[:5, 2] += 1.0
    losses[5, 2] -= 1.0
    tests = compare_methods(losses, level=1e-6)
    assert not tests.different.any()


def test_infinite_losses_rank_last():
    losses = [[0.1, 0.2, np.inf], [0.1, np.inf, np.inf], [0.2, 0.1, 0.3]]
    tests = compare_methods(losses)
    assert_allclose(tests.average_ranks, [4 / 3, 5.5 / 3, 8.5 / 3])
    assert np.isfinite(tests.wilcoxon_p).all()


def test_data_frame_names_its_methods():
    frame = pd.DataFrame(1.0 - AUC, columns=NAMES)
    tests = compare_methods(frame, control="C4.5")
    assert tests.names == tuple(NAMES)
    array = compare_methods(1.0 - AUC, names=NAMES, control="C4.5")
    assert_array_equal(tests.z, array.z)
    assert compare_methods(1.0 - AUC).names[0] == "method 1"
    years = compare_methods(1.0 - AUC[:, :2], names=[2021, 2022], control=2022)
    assert years.names == ("2021", "2022")
    assert "2022" in str(years)


def test_table(published):
    text = str(compare_methods(published, names=NAMES, control="C4.5"))
    lines = text.splitlines()
    assert lines[0] == "4 methods on 14 data sets"
    assert lines[1] == "Friedman chi2 = 9.279, p = 0.02581"
    assert lines[5].split() == ["C4.5+m+cf", "1.964", "-2.415", "0.0157", "0.0472", "*"]
    assert lines[8].split() == ["C4.5", "3.143", "control"]
    assert lines[-1] == "* differs from C4.5 at level 0.05"


def test_all_figures_against_scipy(rng):
    b = rng.uniform(0.1, 1.0, size=30)
    a = b * rng.uniform(0.6, 1.2, size=30)
    a[:4] = b[:4]
    found = compare_pair(a, b, level=0.9)
    change = (a - b) / b
    wanted = stats.ttest_1samp(change, 0.0).confidence_interval(0.9)
    assert_allclose(found.interval, wanted, rtol=1e-12)
    assert found.relative_change == pytest.approx(change.mean())
    wins = int((a < b).sum())
    assert (found.n_sets, found.wins, found.ties) == (30, wins, 4)
    assert found.sign_p == pytest.approx(stats.binomtest(wins, 26).pvalue)
    assert found.t_p == pytest.approx(stats.ttest_rel(a, b).pvalue)
    wilcoxon = stats.wilcoxon(a, b, zero_method="zsplit").pvalue
    assert found.wilcoxon_p == pytest.approx(wilcoxon)


def test_equal_losses_are_no_difference():
    found = compare_pair([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    assert (found.sign_p, found.wilcoxon_p, found.t_p) == (1.0, 1.0, 1.0)
    assert found.interval == (0.0, 0.0)
    assert "equal on 3" in str(found)


def named(*names):
    return partial(compare_methods, names=names)


PAIR = [[0.1, 0.2], [0.3, 0.4]]


@pytest.mark.parametrize(
    ("compare", "given", "message"),
    [
        (compare_methods, [[0.1, 0.2]], r"`losses` must have shape .* shape \(2,\)"),
        (compare_methods, [[[0.1, 0.2]]], r"at least 2 of each, got shape \(1, 2\)"),
        (compare_methods, [[[0.1], [0.2]]], r"at least 2 of each, got shape \(2, 1\)"),
        (compare_methods, [[[0.1, np.nan], [1, 1]]], "or .inf, got nan for set 0, met"),
        (compare_methods, [[[-np.inf, 0.2], [1, 1]]], "got -inf for set 0, method 0"),
        (named("a"), [PAIR], "`names` must hold 2 different names,"),
        (named("a", "a"), [PAIR], "`names` must hold 2 different names,"),
        (named("a", "b", "c"), [PAIR], "must hold 2 different names,"),
        (compare_pair, [[1, 1], [0.1, 0.0]], "`reference` .* got 0.0 for set 1"),
        (compare_pair, [[1, np.nan], [1, 1]], "`losses` must be positive and finite,"),
        (compare_pair, [[1, 1], [1]], "the same data sets, two or more, got 2 and 1"),
        (compare_pair, [[0.1], [0.1]], "two or more, got 1 and 1"),
        (compare_pair, [[[1, 1]], [1, 1]], r"`losses` must have shape \(n_sets,\)"),
    ],
)
def test_bad_arguments_are_named(compare, given, message):
    with pytest.raises(ValueError, match=message):
        compare(*given)
