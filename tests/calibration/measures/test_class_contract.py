"""What every measure of forecasts (n, k) promises."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from calibration import TemperatureCalibrator
from calibration.measures import (
    auc_score,
    brier_score,
    cross_fitted_decomposition,
    expected_calibration_error,
    kernel_calibration_error,
    kernel_calibration_test,
    log_loss,
    maximum_calibration_error,
    spherical_score,
)

VIEWS = ("micro", "classwise", "top_label", "confidence")


class Halfway(BaseEstimator):
    """A recalibrator that mixes forecasts with the rates of the classes."""

    def fit(self, scores, y, sample_weight=None):
        counts = np.bincount(y, sample_weight, scores.shape[1])
        self.rates_ = counts / counts.sum()
        return self

    def predict(self, scores):
        return 0.5 * (scores + self.rates_)


def every_part(y_true, y_prob, **options):
    """Return the parts of a cross-fitted decomposition as an array."""
    parts = cross_fitted_decomposition(y_true, y_prob, Halfway(), **options)
    return np.array([parts.calibration, parts.refinement, parts.score])


def every_value(y_true, y_prob, **options):
    """Return what the kernel test says but for its p-value, which draws labels."""
    test = kernel_calibration_test(
        y_true, y_prob, n_resamples=3, random_state=0, **options
    )
    return np.array([test.error, test.statistic])


MEASURES = {
    "brier": brier_score,
    "log": log_loss,
    "log clipped": partial(log_loss, clip=0.1),
    "spherical": spherical_score,
    "auc": auc_score,
    "skce": kernel_calibration_error,
    "skce test": every_value,
    "parts": every_part,
    **{f"ece {v}": partial(expected_calibration_error, view=v) for v in VIEWS},
    **{f"mce {v}": partial(maximum_calibration_error, view=v) for v in VIEWS},
    "ece width": partial(expected_calibration_error, binning="width", view="classwise"),
}


@pytest.fixture(params=MEASURES)
def measure(request):
    return MEASURES[request.param]


def draw(rng, n=150, k=4):
    """Labels and forecasts in twentieths, so that there are ties, 0 and 1."""
    y_prob = rng.multinomial(20, rng.dirichlet(np.ones(k), size=n)) / 20.0
    mixed = 0.8 * y_prob + 0.2 / k
    y_true = (rng.uniform(size=(n, 1)) > mixed.cumsum(axis=1)).sum(axis=1)
    return np.minimum(y_true, k - 1), y_prob


def test_a_weight_is_a_number_of_repetitions(measure, rng):
    y_true, y_prob = draw(rng)
    weight = rng.integers(0, 4, size=len(y_true))
    repeated = measure(np.repeat(y_true, weight), np.repeat(y_prob, weight, axis=0))
    weighted = measure(y_true, y_prob, sample_weight=weight)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-11, atol=1e-14)


def test_rows_have_no_order(measure, rng):
    y_true, y_prob = draw(rng)
    weight = rng.integers(0, 4, size=len(y_true))
    order = rng.permutation(len(y_true))
    np.testing.assert_allclose(
        measure(y_true[order], y_prob[order], sample_weight=weight[order]),
        measure(y_true, y_prob, sample_weight=weight),
        rtol=1e-11,
        atol=1e-14,
    )


def test_names_of_columns(measure, rng):
    y_true, y_prob = draw(rng, 60)
    expected = measure(y_true, y_prob)
    for names in (["d", "b", "a", "c"], [10, -1, 7, 3], [0.5, 0.25, 2.0, 1.0]):
        labels = np.array(names, dtype=object)[y_true]
        found = measure(labels, y_prob, classes=names)
        np.testing.assert_array_equal(found, expected)
    frame = pd.DataFrame(y_prob, columns=list("dbac"))
    series = pd.Series(np.array(list("dbac"))[y_true], dtype="category")
    found = measure(series, frame, classes=frame.columns)
    np.testing.assert_array_equal(found, expected)


def test_inputs_are_read_only(measure, rng, frozen):
    y_true, y_prob = draw(rng)
    before = y_prob.copy()
    measure(frozen(y_true), frozen(y_prob), sample_weight=frozen(np.ones(len(y_true))))
    measure(y_true, y_prob)
    np.testing.assert_array_equal(y_prob, before)


def test_a_class_without_rows(measure, rng):
    y_true, y_prob = draw(rng)
    kept = y_true != 2
    assert np.isfinite(measure(y_true[kept], 0.9 * y_prob[kept] + 0.025)).all()


def test_no_floating_point_state_is_touched(measure, rng):
    y_true, y_prob = draw(rng)
    before = np.geterr()
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        measure(y_true, 0.9 * y_prob + 0.025)
    assert np.geterr() == before


THIRDS = [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("y_true", "y_prob", "options", "message"),
    [
        (
            [0, 3],
            THIRDS,
            {},
            "`y_true` must hold column numbers from 0 to 2.* got 3 at",
        ),
        ([0, -1], THIRDS, {}, "`y_true` must hold column numbers .* got -1 at"),
        ([0, 0.5], THIRDS, {}, "`y_true` must hold column numbers .* got 0.5 at"),
        ([0, 1, 1], THIRDS, {}, "`y_prob` must be as long as y_true, got 2 and 3"),
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], {}, "rows that sum to 1, got 1.1 in row 0"),
        (
            [0, 1],
            [[0.5, 0.5], [1.5, -0.5]],
            {},
            r"`y_prob` must lie in \[0, 1\], got -",
        ),
        ([0, 1], [[0.5, np.nan], [0.5, 0.5]], {}, "finite, got nan in row 0, column 1"),
        ([], np.empty((0, 3)), {}, "`y_prob` must hold at least one row"),
        ([0, 1], np.zeros((2, 2, 2)), {}, r"`y_prob` must have shape \(n, k\)"),
        ([0, 1], THIRDS, {"classes": ["a", "b"]}, "`classes` must name each of the 3"),
        ([0, 1], THIRDS, {"classes": "aab"}, "`classes` must be a list of names"),
        ([0, 1], THIRDS, {"classes": ["a", "a", "b"]}, "each of the 3 columns once"),
        (["a", "d"], THIRDS, {"classes": list("abc")}, "that `classes` names, got 'd'"),
        ([0, 1], THIRDS, {"sample_weight": [1, -1]}, "`sample_weight` must not be neg"),
        ([0, 1], THIRDS, {"sample_weight": [1]}, "`sample_weight` must be as long as"),
    ],
)
def test_bad_input_is_named(measure, y_true, y_prob, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        measure(y_true, y_prob, **options)


def test_names_of_two_classes_of_which_the_second_is_forecast(rng):
    y = rng.integers(0, 2, size=50)
    p = rng.uniform(0.01, 0.99, size=50)
    names = np.array(["no", "yes"])
    rows = np.column_stack([1.0 - p, p])
    for measure in (
        log_loss,
        spherical_score,
        auc_score,
        kernel_calibration_error,
        partial(expected_calibration_error, view="classwise"),
        partial(maximum_calibration_error, view="classwise"),
    ):
        found = measure(names[y], p, classes=names)
        assert found == measure(y, p)
        assert found == pytest.approx(measure(y, rows), rel=1e-12)
    assert brier_score(y, rows) == pytest.approx(2.0 * brier_score(y, p), rel=1e-12)
    parts = cross_fitted_decomposition(
        names[y], p, TemperatureCalibrator(), classes=names
    )
    assert parts == cross_fitted_decomposition(y, p, TemperatureCalibrator())


def test_float32_forecasts_of_many_classes(rng):
    p = rng.dirichlet(np.ones(1000), size=20).astype(np.float32)
    assert np.isfinite(log_loss(np.arange(20), p, clip=1e-12))
