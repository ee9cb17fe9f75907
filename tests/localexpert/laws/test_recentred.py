"""Recentred laws have the means asked for and stay what they were otherwise."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from localexpert.laws import DiscreteLaw, MixedLaw
from localexpert.laws.recalibrated import RecalibratedLaw, recalibrate_law
from localexpert.laws.recentred import _solve_increasing, recentre
from tests.localexpert.laws.test_recalibrated import bent_map, mixed_law, spline_law


def discrete_law():
    rows = [[0.2, 0.5, 0.3], [0.05, 0.05, 0.9], [0.0, 1.0, 0.0]]
    return DiscreteLaw([0.0, 1.0, 5.0], rows)


LAWS = {
    "smooth": lambda: spline_law("skewed"),
    "bounded": lambda: spline_law("gaussian", (-1.5, 9.0)),
    "mixed": mixed_law,
    "recalibrated": lambda: recalibrate_law(spline_law("skewed"), bent_map()),
    "recalibrated mixed": lambda: recalibrate_law(mixed_law(), bent_map()),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("step", [-0.4, 0.0, 0.3])
def test_means_are_those_asked_for(name, step):
    law = LAWS[name]()
    mean, variance = law.moments()[:, :2].T
    goal = mean + step * np.sqrt(variance)
    if name == "bounded":
        goal = np.clip(goal, -1.4, 8.9)
    moved = recentre(law, goal)
    assert moved.moments()[:, 0] == pytest.approx(goal, abs=1e-6)
    assert moved.support == law.support


def test_a_row_beside_one_that_is_moved_far_is_as_if_alone():
    law = LAWS["bounded"]()
    mean = law.moments()[:, 0]
    moved = recentre(law, np.append(mean[:-1] + 0.1, 8.8))
    sums = moved.moments()
    for i in range(len(law)):
        alone = recentre(
            law.take(slice(i, i + 1)), np.append(mean[:-1] + 0.1, 8.8)[[i]]
        )
        np.testing.assert_allclose(alone.moments()[0], sums[i], rtol=1e-9, atol=1e-12)


def test_a_smooth_law_is_shifted():
    law = spline_law("bimodal")
    shift = np.array([1.0, -2.0, 0.1, 0.0])
    moved = recentre(law, law.moments()[:, 0] + shift)
    q = np.full((4, 3), [0.01, 0.5, 0.99])
    assert moved.ppf(q) == pytest.approx(law.ppf(q) + shift[:, None], abs=1e-9)
    assert moved.moments()[:, 1:] == pytest.approx(law.moments()[:, 1:], rel=1e-9)


def test_a_discrete_law_is_tilted_in_normal_scores():
    law = discrete_law()
    goal = np.array([3.0, 4.0, 1.0])
    moved = recentre(law, goal)
    assert moved.moments()[:, 0] == pytest.approx(goal, abs=1e-8)
    assert isinstance(moved, DiscreteLaw)
    before, after = (np.cumsum(one.probabilities[:2], axis=1) for one in (law, moved))
    shifts = ndtri(after[:, :2]) - ndtri(before[:, :2])
    assert shifts[:, 0] == pytest.approx(shifts[:, 1], abs=1e-6)
    assert shifts[:, 0] == pytest.approx([-0.57, 0.50], abs=0.01)  # up, and down


def test_what_cannot_be_reached_is_approached():
    law = discrete_law()
    moved = recentre(law, np.array([9.0, -9.0, 3.0]))
    assert moved.moments()[:2, 0] == pytest.approx([5.0, 0.0], abs=1e-3)
    assert moved.moments()[2, 0] == 1.0  # one value is all there is


def test_atoms_stay_where_they_are():
    law = mixed_law()
    moved = recentre(law, law.moments()[:, 0] + 0.2)
    assert isinstance(moved, MixedLaw)
    assert moved.atoms.tolist() == law.atoms.tolist()
    assert (moved.masses[:, 0] <= law.masses[:, 0]).all()
    assert ((moved.masses > 0.0) == (law.masses > 0.0)).all()


@pytest.mark.parametrize("name", ["smooth", "mixed"])
def test_a_map_after_a_map_is_their_composition(name):
    law = LAWS[name]()
    first, second = bent_map(), bent_map(7, 5, 0.2)
    both = recalibrate_law(recalibrate_law(law, first), second)
    y = np.linspace(-3.0, 9.0, 41) * np.ones((4, 1))
    assert both.cdf(y) == pytest.approx(second(first(law.cdf(y))), abs=1e-7)
    q = np.linspace(0.02, 0.98, 25) * np.ones((4, 1))
    own = ndtr(first.inverse(second.inverse(ndtri(q))))
    assert both.ppf(q) == pytest.approx(law.ppf(own), abs=1e-7)


def test_moments_after_two_maps_are_sums_over_quantiles():
    law = spline_law("skewed")
    both = recalibrate_law(recalibrate_law(law, bent_map()), bent_map(7, 5, 0.2))
    assert isinstance(both, RecalibratedLaw)
    nodes, weights = np.polynomial.legendre.leggauss(4000)
    draws = both.ppf(0.5 * (nodes + 1.0) * np.ones((4, 1)))
    mean = draws @ (0.5 * weights)
    assert both.moments()[:, 0] == pytest.approx(mean, rel=1e-4)


def test_few_evaluations_find_the_means(monkeypatch):
    rows, law = [], spline_law("gaussian", (-1.5, 9.0))
    real = RecalibratedLaw.moments

    def counted(self):
        rows.append(len(self))
        return real(self)

    monkeypatch.setattr(RecalibratedLaw, "moments", counted)
    mean, variance = law.moments()[:, :2].T
    for step in (-0.3, 0.1, 0.3):
        rows.clear()
        recentre(law, np.clip(mean + step * np.sqrt(variance), -1.4, 8.9))
        assert sum(rows) <= 8 * len(law)


def heavy_law(shape):
    """Rows beside an atom with tails that have few moments."""
    heavy = spline_law("gaussian", shape=shape).take([0, 0])
    return MixedLaw([0.0], np.full((2, 1), 0.3), heavy, [1.0])


def test_an_infinite_variance_is_no_hindrance():
    law = heavy_law(0.75)
    assert np.isfinite(law.moments()[:, 0]).all()
    assert not np.isfinite(law.moments()[:, 1]).any()
    moved = recentre(law, np.array([0.2, -0.2]))
    assert moved.moments()[:, 0] == pytest.approx([0.2, -0.2], abs=1e-6)


def test_a_mean_that_is_not_defined_stays_so():
    law = heavy_law(9.0)
    assert not np.isfinite(law.moments()[:, 0]).any()
    moved = recentre(law, np.zeros(2))
    assert moved.masses == pytest.approx(law.masses, abs=1e-12)


def test_the_search_ends_beside_a_jump():
    places = np.linspace(-3.0, 3.0, 50)
    zeros = np.zeros(50)

    def jump(rows, x):
        return np.where(x > places[rows], 1.0, -1.0)

    found = _solve_increasing(jump, zeros, jump(np.arange(50), zeros), zeros + 1e-3)
    np.testing.assert_allclose(found, places, atol=1e-6)
