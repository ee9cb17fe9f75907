"""Bins of features: in order, of values or of about as many rows, and their cuts."""

import numpy as np
import pytest

from localexpert.experts.feature_codes import FeatureCodes


def learn(column, rows=None):
    X = np.asarray(column, dtype=np.float64)[:, None]
    features = FeatureCodes.learn(X, np.arange(len(X)) if rows is None else rows)
    return features.codes[0], features.cuts[0]


def test_few_values_get_a_bin_each():
    codes, cuts = learn([3.0, 1.0, np.nan, 1.0, 10.0])
    np.testing.assert_array_equal(codes, [1, 0, 255, 0, 2])
    np.testing.assert_array_equal(cuts[:3], [2.0, 6.5, np.inf])
    assert np.isinf(cuts[2:]).all()


def test_many_values_get_bins_of_as_many_rows(rng):
    column = rng.lognormal(size=4000)
    codes, _ = learn(column)
    sizes = np.bincount(codes, minlength=256)
    assert sizes[255] == 0
    assert sizes[:255].min() >= 15
    assert sizes[:255].max() <= 16


def test_frequent_values_take_no_bins_from_the_rest(rng):
    column = rng.normal(size=4000)
    column[:2000] = 0.0
    codes, _ = learn(column)
    assert np.unique(codes[2000:]).size > 240
    assert (codes == codes[0]).sum() <= 2000 + 20


@pytest.mark.parametrize("n_values", [2, 255, 256, 3000])
def test_codes_are_the_number_of_cuts_below(rng, n_values):
    column = rng.integers(0, n_values, 4000) / 7.0
    codes, cuts = learn(column)
    np.testing.assert_array_equal(codes, (column[:, None] > cuts).sum(axis=1))
    assert (np.diff(cuts[np.isfinite(cuts)]) > 0.0).all()
    # A cut lies midway between two values that were seen.
    values = np.unique(column)
    assert np.isin(cuts[np.isfinite(cuts)], 0.5 * values[:-1] + 0.5 * values[1:]).all()


def test_bins_come_from_the_given_rows():
    codes, cuts = learn([0.0, 1.0, 2.0, 0.4, -9.0, 9.0], rows=np.arange(3))
    np.testing.assert_array_equal(cuts[:3], [0.5, 1.5, np.inf])
    np.testing.assert_array_equal(codes, [0, 1, 2, 0, 0, 2])


def test_a_feature_without_values():
    codes, cuts = learn([np.nan, np.nan])
    np.testing.assert_array_equal(codes, 255)
    assert np.isinf(cuts).all()
