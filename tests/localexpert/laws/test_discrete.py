"""The discrete law against loops over its values and scipy's rv_discrete."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from scipy.stats import rv_discrete

from localexpert.laws import DiscreteLaw

VALUES = np.array([-1.0, 0.0, 0.5, 2.0, 7.0])


@pytest.fixture
def law(rng):
    probabilities = rng.dirichlet(np.ones(5), size=20)
    probabilities[0] = [0.0, 0.0, 1.0, 0.0, 0.0]
    probabilities[1] = [0.5, 0.0, 0.0, 0.0, 0.5]
    return DiscreteLaw(VALUES, probabilities)


@pytest.fixture
def points(rng):
    inner = rng.uniform(-3.0, 9.0, size=(20, 15))
    return np.hstack([inner, np.tile(VALUES, (20, 1)), np.tile([-50.0, 50.0], (20, 1))])


def test_probabilities_up_to_and_before_a_value(law, points):
    held = law.probabilities[:, None, :]
    at_most = (held * (points[:, :, None] >= VALUES)).sum(axis=2)
    before = (held * (points[:, :, None] > VALUES)).sum(axis=2)
    np.testing.assert_allclose(law.cdf(points), at_most, atol=1e-15)
    np.testing.assert_allclose(law.cdf_left(points), before, atol=1e-15)
    np.testing.assert_allclose(law.sf(points), 1.0 - at_most, atol=1e-15)
    ends = np.tile([-np.inf, np.inf], (20, 1))
    assert (law.cdf(ends) == [0.0, 1.0]).all()
    assert (law.sf(ends) == [1.0, 0.0]).all()


def test_quantiles_and_moments_equal_scipy(law, rng):
    q = rng.uniform(size=(20, 9))
    got, moments = law.ppf(q), law.moments()
    for i, row in enumerate(law.probabilities):
        other = rv_discrete(values=(np.arange(5), row))
        np.testing.assert_array_equal(got[i], VALUES[other.ppf(q[i]).astype(int)])
        mean = row @ VALUES
        expected = [mean] + [row @ (VALUES - mean) ** k for k in (2, 3, 4)]
        np.testing.assert_allclose(moments[i], expected, atol=1e-12)
    at = np.full((20, 1), VALUES[2])
    np.testing.assert_array_equal(law.ppf(law.cdf(at))[2:], 0.5)


def test_crps_and_partial_means_equal_their_definitions(law, points):
    held = law.probabilities[:, None, :]
    away = np.abs(VALUES[:, None] - VALUES)
    spread = np.einsum("ij,jk,ik->i", law.probabilities, away, law.probabilities)
    distance = (held * np.abs(points[:, :, None] - VALUES)).sum(axis=2)
    expected = distance - 0.5 * spread[:, None]
    np.testing.assert_allclose(law.crps(points), expected, atol=1e-12)
    np.testing.assert_allclose(law.crps(points[:, 3:4]), expected[:, 3:4], atol=1e-12)
    below, above = law.partial_means(points)
    gap = points[:, :, None] - VALUES
    expected = (held * np.maximum(gap, 0.0)).sum(axis=2)
    np.testing.assert_allclose(below, expected, atol=1e-12)
    expected = (held * np.maximum(-gap, 0.0)).sum(axis=2)
    np.testing.assert_allclose(above, expected, atol=1e-12)


def test_density_is_a_histogram_over_cells(law):
    edges = np.array([-1.5, -0.5, 0.25, 1.25, 4.5, 9.5])
    np.testing.assert_allclose(law.widths, np.diff(edges))
    density = law.probabilities / np.diff(edges)
    np.testing.assert_allclose(law.pdf(np.tile(VALUES, (20, 1))), density)
    np.testing.assert_allclose(law.pdf(np.full((20, 1), 3.0)), density[:, 3:4])
    np.testing.assert_allclose(law.pdf(np.full((20, 1), 9.5)), density[:, 4:])
    assert (law.pdf(np.tile([-1.6, 9.6], (20, 1))) == 0.0).all()
    assert (law.logpdf(np.full((20, 1), np.inf)) == -np.inf).all()
    total = (law.pdf(np.tile(VALUES, (20, 1))) * law.widths).sum(axis=1)
    np.testing.assert_allclose(total, 1.0)


def test_entropy_is_the_expected_log_score(law):
    scores = -law.logpdf(np.tile(VALUES, (20, 1)))
    expected = (law.probabilities * np.where(np.isfinite(scores), scores, 0.0)).sum(1)
    np.testing.assert_allclose(law.entropy(), expected)


def test_mode_nodes_and_regions(law):
    likeliest = law.probabilities.max(axis=1)
    at_mode = law.probabilities[np.arange(20), np.searchsorted(VALUES, law.mode())]
    np.testing.assert_array_equal(at_mode, likeliest)
    values, weights = law.nodes()
    np.testing.assert_allclose((values * weights).sum(axis=1), law.moments()[:, 0])
    for coverage in (0.3, 0.9):
        for row, region in zip(
            law.probabilities, law.densest_regions(np.full(20, coverage)), strict=True
        ):
            inside = (
                (VALUES[:, None] >= region[:, 0]) & (VALUES[:, None] <= region[:, 1])
            ).any(axis=1)
            assert row[inside].sum() >= coverage
            assert row[inside].sum() - row[inside].min() < coverage
            assert row[inside].min() >= row[~inside].max(initial=0.0)


def test_regions_are_runs_of_values():
    law = DiscreteLaw(VALUES, [[0.3, 0.3, 0.0, 0.1, 0.3]])
    (region,) = law.densest_regions(np.array([0.85]))
    np.testing.assert_array_equal(region, [[-1.0, 0.0], [7.0, 7.0]])
    np.testing.assert_array_equal(law.shortest_interval(0.6), [[-1.0, 0.0]])


def test_quantiles_at_scores_and_one_value(law):
    ends = law.ppf_scores(np.tile([-40.0, 40.0], (20, 1)))
    assert (ends[2:] == [-1.0, 7.0]).all()
    one = DiscreteLaw([4.0], [[1.0], [1.0]])
    y = np.array([[4.0, 3.0], [5.5, 4.0]])
    assert one.cdf(y).tolist() == [[1.0, 0.0], [1.0, 1.0]]
    assert one.crps(y).tolist() == [[0.0, 1.0], [1.5, 0.0]]
    assert one.logpdf(y)[:, 0].tolist() == [0.0, -np.inf]
    np.testing.assert_array_equal(one.moments(), [[4.0, 0.0, 0.0, 0.0]] * 2)
    np.testing.assert_array_equal(one.shortest_interval(0.9), [[4.0, 4.0]] * 2)
    assert one.support == (4.0, 4.0)


def test_take_pickle_and_frozen(law, rng):
    y = rng.uniform(-1.0, 7.0, (20, 1))
    for rows in (slice(2, 9), [3], np.arange(20) % 3 == 0):
        np.testing.assert_array_equal(law.take(rows).crps(y[rows]), law.crps(y)[rows])
    copy = pickle.loads(pickle.dumps(law))
    np.testing.assert_array_equal(copy.crps(y), law.crps(y))
    assert copy.has_jumps
    assert len(law.take(slice(0, 0)).cdf(y[:0])) == 0
    with pytest.raises(FrozenInstanceError, match="values"):
        law.values = VALUES
    with pytest.raises(ValueError, match="read-only"):
        law.probabilities[0, 0] = 1.0


def test_rounded_sums_are_made_exact():
    law = DiscreteLaw([0.0, 1.0, 2.0], np.full((1, 3), 0.3333333))
    assert law.cdf(np.array([[2.0]])) == 1.0
    assert law.probabilities.sum() == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize(
    ("values", "probabilities", "message"),
    [
        ([1.0, 1.0], [[0.5, 0.5]], "`values` must increase strictly"),
        ([], np.ones((1, 0)), "`values` must hold at least one value"),
        (
            [1.0, 2.0],
            [[0.5, 0.4]],
            r"`probabilities` must sum to 1 in every row, got 0\.9",
        ),
        ([1.0, 2.0], [[1.5, -0.5]], r"`probabilities` must lie in \[0, 1\], got -0\.5"),
        ([1.0, 2.0], [0.5, 0.5], r"`probabilities` must have shape \(any, 2\)"),
        ([1.0, np.inf], [[0.5, 0.5]], "`values` must be finite"),
    ],
)
def test_refusals(values, probabilities, message):
    with pytest.raises(ValueError, match=message):
        DiscreteLaw(values, probabilities)


def test_entropy_of_probabilities_that_underflow_as_densities():
    rare = DiscreteLaw([-1e200, 0.0, 1e200], [[1e-300, 0.5, 0.5]])
    even = DiscreteLaw([-1e200, 0.0, 1e200], [[0.0, 0.5, 0.5]])
    assert rare.entropy() == pytest.approx(even.entropy(), rel=1e-12)
    assert np.isfinite(even.entropy()).all()
