"""Calibration errors and the cumulative test, against loops and known laws."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest

from calibration import (
    cumulative_calibration_test,
    expected_calibration_error,
    maximum_calibration_error,
)
from calibration.measures.calibration_errors import (
    _range_tail,
    bin_starts,
    summarise_forecasts,
)


@pytest.mark.parametrize("binning", ["width", "frequency"])
@pytest.mark.parametrize("n_bins", [1, 3, 10, 25])
def test_bins_against_a_loop(rng, n_bins, binning):
    y = rng.integers(0, 2, size=300)
    p = np.round(rng.beta(0.5, 1.0, size=300), 2 if binning == "frequency" else 9)
    p[:3] = 0.0, 1.0, 1.0  # D16: 1 has no bin of its own beyond the last.
    w = rng.integers(1, 5, size=300).astype(float)

    def bin_of(q):
        before, on = w[p < q].sum(), w[p == q].sum()
        share = (before + on / 2.0) / w.sum() if binning == "frequency" else q
        return min(int(n_bins * share), n_bins - 1)

    bins = np.array([bin_of(q) for q in p])
    rows = [bins == b for b in np.unique(bins)]
    gaps = [abs(np.average((y - p)[held], weights=w[held])) for held in rows]
    shares = [w[held].sum() / w.sum() for held in rows]
    given = {"sample_weight": w, "n_bins": n_bins, "binning": binning}
    ece = expected_calibration_error(y, p, **given)
    mce = maximum_calibration_error(y, p, **given)
    assert ece == pytest.approx(np.dot(shares, gaps), rel=1e-12)
    assert mce == pytest.approx(max(gaps), rel=1e-12)


@pytest.mark.parametrize("n_bins", [10, 20, 100])
def test_decimals_fall_in_the_bin_that_starts_with_them(n_bins):
    # D24: [.3, .4) holds the float that .3 reads as, although 3 * .1 is another one.
    starts = [float(f"{k / n_bins:.2f}") for k in range(n_bins)]
    below = np.nextafter(starts[1:], 0.0)
    p = np.sort(np.concatenate([starts, below]))
    summary = summarise_forecasts(np.zeros(len(p)), p, None)
    first = bin_starts(summary, n_bins, "width")
    np.testing.assert_array_equal(p[first], starts)


@pytest.mark.parametrize("digits", [0, 1, 9])
@pytest.mark.parametrize("n_bins", [1, 4, 7])
def test_rank_is_the_thesis_literally(rng, n_bins, digits):
    """Equal rows share their labels, as if each were all of them in small."""
    y, p = rng.integers(0, 2, size=200), rng.uniform(size=200).round(digits)
    surplus = np.array([y[p == q].mean() - q for q in np.sort(p)])
    # Of as many copies of a row as there are bins no bin gets a part.
    bins = surplus.repeat(n_bins).reshape(n_bins, -1)
    gaps = np.abs(bins.mean(axis=1))
    options = {"n_bins": n_bins, "binning": "rank"}
    ece = expected_calibration_error(y, p, **options)
    assert ece == pytest.approx(gaps.mean(), rel=1e-12)
    mce = maximum_calibration_error(y, p, **options)
    assert mce == pytest.approx(gaps.max(), rel=1e-12)


BOTH = (expected_calibration_error, maximum_calibration_error)


def draw(rng, n=300, k=3):
    p = rng.dirichlet(np.ones(k), size=n)
    return rng.integers(0, k, size=n), p


@pytest.mark.parametrize("measure", BOTH)
@pytest.mark.parametrize("binning", ["frequency", "width"])
@pytest.mark.parametrize("weighted", [False, True])
def test_views_are_sets_of_binary_forecasts(measure, binning, weighted, rng):
    y, p = draw(rng)
    w = rng.integers(0, 4, size=len(y)) if weighted else np.ones(len(y))
    options = {"n_bins": 7, "binning": binning}

    def binary(hits, chances, weight):
        return measure(hits, chances, sample_weight=weight, **options)

    def found(view):
        given = {"sample_weight": w} if weighted else {}
        return measure(y, p, view=view, **given, **options)

    # micro: rows of the table one after the other, as the thesis stacks them.
    stacked = np.concatenate([p[:, c] for c in range(3)])
    hits = np.concatenate([y == c for c in range(3)])
    assert found("micro") == pytest.approx(binary(hits, stacked, np.tile(w, 3)))
    columns = [binary(y == c, p[:, c], w) for c in range(3)]
    joined = np.mean if measure is expected_calibration_error else np.max
    assert found("classwise") == pytest.approx(joined(columns))
    top = p.argmax(axis=1)
    assert found("confidence") == pytest.approx(binary(y == top, p.max(axis=1), w))
    groups = [top == label for label in range(3)]
    parts = [binary((y == top)[g], p[g].max(axis=1), w[g]) for g in groups]
    shares = [w[g].sum() / w.sum() for g in groups]
    mean = measure is expected_calibration_error
    expected = np.dot(shares, parts) if mean else max(parts)
    assert found("top_label") == pytest.approx(expected)


def test_weights_whose_sum_is_all_that_floats_count(rng):
    y, p = draw(rng, 20)
    heavy = np.full(20, 2.0**48)
    for measure in BOTH:
        assert measure(y, p, sample_weight=heavy) == pytest.approx(measure(y, p))


def test_the_error_is_the_worst_interval_of_forecasts(rng):
    p = rng.uniform(size=40).round(1)
    y = rng.integers(0, 2, size=40)
    w = rng.integers(0, 3, size=40)
    worst = 0.0
    for low, high in combinations_with_replacement(np.unique(p), 2):
        inside = (p >= low) & (p <= high)
        worst = max(worst, abs((w * (y - p))[inside].sum()) / w.sum())
    test = cumulative_calibration_test(y, p, sample_weight=w)
    assert test.error == pytest.approx(worst, rel=1e-12)
    sigma = math.sqrt((w * p * (1.0 - p)).sum()) / w.sum()
    assert test.statistic == pytest.approx(worst / sigma, rel=1e-12)


@pytest.mark.parametrize("x", [0.2, 0.7, 1.0, 1.9, 2.0, 2.1, 2.5, 4.0])
def test_the_range_of_brownian_motion(x):
    squares = ((np.arange(400) + 0.5) * np.pi) ** 2
    terms = (8.0 / x**2 + 2.0 / squares) * np.exp(-2.0 * squares / x**2)
    assert _range_tail(x) == pytest.approx(1.0 - terms.sum(), abs=1e-13)


def test_the_tail_of_the_range():
    # Its 95 % point, and a tail far beyond what 1 - P resolves.
    assert _range_tail(2.4977) == pytest.approx(0.05, abs=1e-5)
    assert _range_tail(12.0) == pytest.approx(8.0 * 1.776482112077679e-33, rel=1e-9)
    assert _range_tail(0.0) == _range_tail(1e-200) == _range_tail(0.0501) == 1.0


def test_the_level_of_the_cumulative_test(rng):
    p = np.sort(rng.beta(1.0, 2.0, size=1000))
    rejected = [
        cumulative_calibration_test(rng.uniform(size=1000) < p, p).p_value <= 0.05
        for _ in range(4000)
    ]
    assert 0.037 < np.mean(rejected) < 0.051


def test_certain_forecasts():
    test = cumulative_calibration_test([0, 1], [0.0, 1.0])
    assert (test.error, test.statistic, test.p_value) == (0.0, 0.0, 1.0)
    test = cumulative_calibration_test([0, 0], [0.0, 1.0])
    assert (test.error, test.statistic, test.p_value) == (0.5, math.inf, 0.0)
