import numpy as np
import pytest

from calibration.measures import (
    expected_calibration_error,
    maximum_calibration_error,
)
from calibration.measures.binned_errors import bin_starts, summarise_forecasts


def gaps_by_loop(y, p, w, bin_of):
    """Return (weight share, |event rate - mean forecast|) of every bin that is held."""
    bins = {}
    for yi, pi, wi in zip(y, p, w, strict=True):
        total = bins.setdefault(bin_of(pi), [0.0, 0.0, 0.0])
        total[0] += wi
        total[1] += wi * yi
        total[2] += wi * pi
    return [(t[0] / sum(w), abs(t[1] - t[2]) / t[0]) for t in bins.values()]


def check(y, p, w, bin_of, **options):
    gaps = gaps_by_loop(y, p, w, bin_of)
    ece = expected_calibration_error(y, p, sample_weight=w, **options)
    mce = maximum_calibration_error(y, p, sample_weight=w, **options)
    assert ece == pytest.approx(sum(share * gap for share, gap in gaps), rel=1e-12)
    assert mce == pytest.approx(max(gap for _, gap in gaps), rel=1e-12)


@pytest.mark.parametrize("n_bins", [1, 3, 10, 25])
def test_width_against_a_loop(rng, n_bins):
    y, p = rng.integers(0, 2, size=300), rng.uniform(size=300)
    w = rng.uniform(size=300)
    check(
        y,
        p,
        w,
        lambda q: min(int(q * n_bins), n_bins - 1),
        n_bins=n_bins,
        binning="width",
    )


@pytest.mark.parametrize("n_bins", [1, 3, 10, 25])
def test_frequency_against_a_loop(rng, n_bins):
    y = rng.integers(0, 2, size=300)
    p = np.round(rng.beta(0.5, 1.0, size=300), 2)
    w = rng.integers(1, 5, size=300).astype(float)

    def bin_of(q):
        before, on = w[p < q].sum(), w[p == q].sum()
        return min(int(n_bins * (before + on / 2.0) / w.sum()), n_bins - 1)

    check(y, p, w, bin_of, n_bins=n_bins)


@pytest.mark.parametrize("n_bins", [10, 20, 100])
def test_decimals_fall_in_the_bin_that_starts_with_them(n_bins):
    # D24: [.3, .4) holds the float that .3 reads as, although 3 * .1 is another one.
    starts = [float(f"{k / n_bins:.2f}") for k in range(n_bins)]
    below = np.nextafter(starts[1:], 0.0)
    p = np.sort(np.concatenate([starts, below]))
    summary = summarise_forecasts(np.zeros(len(p)), p, None)
    first = bin_starts(summary, n_bins, "width")
    np.testing.assert_array_equal(p[first], starts)


@pytest.mark.parametrize("k", range(10))
def test_deciles_one_by_one(k):
    # A row on the decile and one just inside the same bin: their gaps cancel.
    p = [k / 10, k / 10 + 0.05]
    ece = expected_calibration_error([0, 1], p, binning="width")
    assert ece == pytest.approx(abs(0.5 - (k / 10 + 0.025)), abs=1e-15)
    # A row just below the decile is in another bin.
    if k:
        p = [float(np.nextafter(k / 10, 0.0)), k / 10]
        ece = expected_calibration_error([0, 1], p, binning="width")
        assert ece == pytest.approx(0.5)


def test_a_forecast_of_one_is_in_the_last_bin():
    # D16: no bin of its own beyond the last.
    p = [0.9, 0.95, 1.0]
    summary = summarise_forecasts([0, 1, 1], p, None)
    assert bin_starts(summary, 10, "width").tolist() == [0]
    ece = expected_calibration_error([0, 1, 1], p, binning="width")
    assert ece == pytest.approx((2.85 - 2.0) / 3.0)


def test_hand_values():
    # Bins {.1, .2} and {.6, .8}: gaps |.5 - .15| and |.5 - .7|.
    y, p = [0, 1, 0, 1], [0.1, 0.2, 0.6, 0.8]
    assert expected_calibration_error(y, p, n_bins=2) == pytest.approx(0.275)
    assert maximum_calibration_error(y, p, n_bins=2) == pytest.approx(0.35)


def test_ties_are_never_split():
    # Split, the tied rows would come out as 0 0 1 1 1 or 1 0 1 0 1, as they stand.
    for y in ([0, 0, 1, 1, 1, 1], [1, 0, 1, 0, 1, 1]):
        p = [0.5] * 5 + [0.9]
        assert maximum_calibration_error(y, p, n_bins=6) == pytest.approx(0.1)


def test_calibrated_bins_have_no_error():
    y, p = [0, 1, 0, 0, 0, 1], [0.5, 0.5, 0.25, 0.25, 0.25, 0.25]
    assert expected_calibration_error(y, p) == 0.0
    assert maximum_calibration_error(y, p) == 0.0


def rank_gaps_by_loop(y, p, n_bins):
    """Return gaps of bins of n / n_bins sorted rows, of distinct forecasts."""
    order = np.argsort(p)
    parts = np.split(order, n_bins)
    return np.array([abs(y[rows].mean() - p[rows].mean()) for rows in parts])


@pytest.mark.parametrize("n_bins", [1, 4, 10])
def test_rank_is_the_thesis_literally(rng, n_bins):
    y, p = rng.integers(0, 2, size=200), rng.uniform(size=200)
    gaps = rank_gaps_by_loop(y, p, n_bins)
    options = {"n_bins": n_bins, "binning": "rank"}
    ece = expected_calibration_error(y, p, **options)
    assert ece == pytest.approx(gaps.mean(), rel=1e-12)
    mce = maximum_calibration_error(y, p, **options)
    assert mce == pytest.approx(gaps.max(), rel=1e-12)


def test_rank_cuts_through_equal_forecasts(rng):
    """Equal rows share their labels, as if each were all of them in small."""
    p = np.repeat([0.2, 0.7], [30, 70])
    y = np.r_[np.repeat([1, 0], [12, 18]), np.repeat([1, 0], [35, 35])]
    # 50 rows: 30 at .2 with a rate of .4, and 20 at .7 with one of .5.
    low = abs(30 * (0.4 - 0.2) + 20 * (0.5 - 0.7)) / 50
    high = abs(0.5 - 0.7)
    found = expected_calibration_error(y, p, n_bins=2, binning="rank")
    assert found == pytest.approx((low + high) / 2)
    order = rng.permutation(100)
    again = expected_calibration_error(y[order], p[order], n_bins=2, binning="rank")
    assert again == found


def test_rank_has_all_bins_of_one_forecast():
    worst = maximum_calibration_error([0, 1, 1], [0.5] * 3, n_bins=7, binning="rank")
    assert worst == pytest.approx(2 / 3 - 0.5)
