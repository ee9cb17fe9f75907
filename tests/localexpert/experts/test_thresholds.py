"""Thresholds: levels, ties, weights, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from localexpert.experts.thresholds import (
    cuts_between,
    find_atoms,
    is_discrete,
    lattice_step,
    place_thresholds,
    threshold_widths,
)


@pytest.mark.parametrize("method", ["quantile", "uniform"])
@given(
    values=st.lists(
        st.one_of(st.integers(-3, 3), st.floats(-1e9, 1e9)), min_size=2, max_size=60
    ),
    n_thresholds=st.integers(1, 30),
)
def test_no_task_is_empty_or_twice(method, values, n_thresholds):
    if len(set(map(float, values))) < 2:
        values = [*values, max(values) + 1.0]
    thresholds = place_thresholds(values, n_thresholds, method)
    assert thresholds.dtype == np.float64
    assert len(thresholds) <= n_thresholds
    counts = (np.array(values)[:, None] <= thresholds).sum(axis=0)
    # Every task has both classes, and no two tasks are the same.
    assert ((counts > 0) & (counts < len(values))).all()
    assert (np.diff(counts) > 0).all()
    assert (np.diff(thresholds) > 0).all()
    if method == "quantile":
        assert len(thresholds) >= 1


def test_quantiles_are_the_nearest_cuts_by_brute_force(rng):
    r = rng.integers(0, 12, 80).astype(float)
    weight = rng.uniform(0.0, 2.0, 80) * (rng.random(80) < 0.8)
    present = np.unique(r[weight > 0])
    gaps = 0.5 * (present[1:] + present[:-1])
    shares = np.array([weight[r <= gap].sum() for gap in gaps]) / weight.sum()
    levels = np.arange(1, 8) / 8
    nearest = {float(gaps[np.argmin(np.abs(shares - level))]) for level in levels}
    assert_array_equal(place_thresholds(r, 7, sample_weight=weight), sorted(nearest))


def test_uniform_is_equally_spaced_and_does_not_follow_an_outlier(rng):
    r = rng.uniform(size=1000)
    thresholds = place_thresholds(r, 9, "uniform")
    ends = np.quantile(r, [0.02, 0.98], method="inverted_cdf")
    assert_allclose(thresholds, np.linspace(*ends, 9), rtol=1e-12)
    middle = place_thresholds(r, 1, "uniform")
    assert_allclose(middle, [ends.mean()], rtol=1e-12)
    r[0] = 1e6
    assert_allclose(place_thresholds(r, 9, "uniform"), thresholds, atol=0.01)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ([1.0, 9.5, 12.0], r"\[0, 9\), got 9.5, 12"),
        ([-1.0, 1.0], r"\[0, 9\), got -1"),
        ([9.0], r"\[0, 9\), got 9"),
        ([3.0, 2.0], "increase strictly, got 3 before 2"),
        ([3.0, 3.0], "increase strictly, got 3 before 3"),
        ([3.0, np.nan], "finite, got nan at position 1"),
        ("median", "must be one of 'quantile', 'uniform', got 'median'"),
    ],
)
def test_wrong_methods_are_refused(method, message):
    with pytest.raises(ValueError, match=message):
        place_thresholds(np.arange(10), method=method)


def test_weights_decide_as_repetitions_do(rng):
    for values in (rng.integers(0, 45, 60), rng.normal(size=30), np.arange(60.0)):
        weight = rng.integers(0, 6, len(values))
        for power in (1, 2):
            y = np.asarray(values, dtype=float) ** power
            copies = np.repeat(y, weight)
            assert is_discrete(y, sample_weight=weight) == is_discrete(copies)
            found = find_atoms(y, 0.03, sample_weight=weight)
            assert_array_equal(found, find_atoms(copies, 0.03))
    assert is_discrete(np.arange(9.0), sample_weight=np.full(9, 2.0))
    assert not is_discrete(np.arange(9.0) ** 2, sample_weight=np.full(9, 1.9))


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0, 1, 2, 5], 1.0),
        ([0, 1, 2, 14], None),
        ([0.1, 0.2, 0.1 + 0.2, 0.5], 0.1),
        ([0.0, 1.0, 2.5], None),
        (np.float32([19.99, 20.0, 20.01, 20.03]), 0.01),
        ([3.0, 8.0], 5.0),
        ([3.0], None),
    ],
)
def test_lattice_step(values, step):
    got = lattice_step(np.asarray(values, dtype=float))
    assert got == (None if step is None else pytest.approx(step, rel=1e-4))


def test_cuts_part_all_values(rng):
    near = 0.3 + np.arange(9) * np.spacing(0.3)
    for values in (near, np.sort(rng.normal(size=9)), np.array([-1.7e308, 1.7e308])):
        cuts = cuts_between(values)
        assert (cuts >= values[:-1]).all()
        assert (cuts < values[1:]).all()


def test_find_atoms(rng):
    y = np.concatenate([np.zeros(20), np.full(19, 5.0), rng.normal(size=961)])
    # Below the share, but more often than a smooth target repeats a value.
    assert_array_equal(find_atoms(y), [0.0, 5.0])
    assert_array_equal(find_atoms(np.append(y[:29], y[39:])), [0.0])
    # Four rows of ten are a large share and no atom all the same.
    assert len(find_atoms([1.0] * 4 + [2, 3, 4, 5, 6, 7])) == 0
    weight = np.where(y == 5.0, 10.0, 1.0)
    assert_array_equal(find_atoms(y, sample_weight=weight), [0.0, 5.0])
    with pytest.raises(ValueError, match=r"`share` must lie in \(0, 1\], got 0"):
        find_atoms(y, 0)


def test_widths_are_half_of_the_way_to_either_neighbour():
    r, weight = np.linspace(-1.0, 6.0, 100), np.ones(100)
    for cuts, widths in (
        ([0.0, 1.0, 3.0], [1.0, 1.5, 2.0]),
        ([5.0], [1.0]),
        ([0.0, 2.0], [2.0, 2.0]),
    ):
        assert threshold_widths(np.array(cuts), r, weight).tolist() == widths


@pytest.mark.parametrize("method", ["quantile", "uniform"])
@pytest.mark.parametrize("fill", [9.97e36, -999999.0])
def test_values_far_out_draw_no_threshold_to_them(rng, method, fill):
    r = rng.normal(size=1000)
    r[:15] = fill
    cuts = place_thresholds(r, 199, method)
    rest = r[15:]
    assert rest.min() - 1.0 < cuts[0] < cuts[-1] < rest.max() + 1.0
    # Whether a value is far out is still asked, by the cut between.
    if method == "quantile":
        far = r <= cuts[0] if fill < 0.0 else r > cuts[-1]
        assert far.sum() == 15


def test_explicit_numbers_are_kept_where_they_differ(rng):
    r = rng.integers(0, 10, 100)
    r[:2] = 0, 9
    assert_array_equal(place_thresholds(r, method=[0, 2.5, 8]), [0, 2.5, 8])
    with pytest.warns(UserWarning, match=r"left out: 2.7, 2.9"):
        kept = place_thresholds(r, method=[2.5, 2.7, 2.9, 4.0])
    assert_array_equal(kept, [2.5, 4.0])


def test_is_discrete(rng):
    assert is_discrete(rng.integers(0, 50, 500))
    assert not is_discrete(rng.integers(0, 52, 900))
    assert is_discrete(rng.integers(0, 52, 5000))
    assert not is_discrete(rng.normal(size=40))
    assert not is_discrete(rng.integers(0, 52, 5000), max_values=51)
    assert not is_discrete(rng.integers(0, 101, 50_000))
    with pytest.raises(ValueError, match="`max_values` must be at least 1, got 0"):
        is_discrete([1.0, 1.0], 0)
