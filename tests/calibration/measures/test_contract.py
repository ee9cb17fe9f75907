"""What every measure promises, whatever it measures."""

from functools import partial

import numpy as np
import pytest

from calibration.measures import (
    brier_decomposition,
    brier_score,
    corp_decomposition,
    expected_calibration_error,
    log_loss,
    maximum_calibration_error,
    proper_score,
    reliability_curve,
    spherical_score,
)


def linear(e):
    return 1.0 + e


def every_part(decomposition):
    """Return a function of forecasts whose value is an array of the parts."""

    def measure(*args, **kwargs):
        return np.array(list(vars(decomposition(*args, **kwargs)).values()))

    return measure


def every_point(**options):
    """Return a function of forecasts whose value is an array of the curve."""

    def measure(*args, **kwargs):
        curve = reliability_curve(*args, **kwargs, **options)
        return np.stack(
            [curve.mean_prob, curve.event_rate, curve.weight, curve.lower, curve.upper]
        )

    return measure


MEASURES = {
    "brier": brier_score,
    "log": log_loss,
    "log clipped": partial(log_loss, clip=0.1),
    "spherical": spherical_score,
    "proper density": partial(proper_score, weight=linear),
    "proper masses": partial(proper_score, weight={0.2: 0.3, 0.5: 0.5}),
    "ece": expected_calibration_error,
    "ece width": partial(expected_calibration_error, binning="width"),
    "ece rank": partial(expected_calibration_error, binning="rank", n_bins=4),
    "mce": maximum_calibration_error,
    "mce width": partial(maximum_calibration_error, binning="width", n_bins=4),
    "brier parts": every_part(brier_decomposition),
    "brier parts, 4 bins": every_part(partial(brier_decomposition, n_bins=4)),
    "corp parts": every_part(corp_decomposition),
    "corp parts, log": every_part(partial(corp_decomposition, score=log_loss)),
    "curve": every_point(),
    "curve, width, confidence": every_point(binning="width", bands="confidence"),
    "curve, isotonic": every_point(binning="isotonic", random_state=0, n_resamples=5),
}
SCALARS = [name for name in MEASURES if not name.startswith(("curve", "brier p", "c"))]


@pytest.fixture(params=MEASURES)
def measure(request):
    return MEASURES[request.param]


def draw(rng, n=200):
    """Labels and forecasts in hundredths, so that there are ties."""
    y_prob = np.round(rng.beta(0.8, 1.2, size=n) * 0.98 + 0.01, 2)
    return (rng.uniform(size=n) < y_prob**1.5).astype(int), y_prob


def test_a_weight_is_a_number_of_repetitions(measure, rng):
    y_true, y_prob = draw(rng)
    weight = rng.integers(0, 4, size=len(y_true))
    repeated = measure(np.repeat(y_true, weight), np.repeat(y_prob, weight))
    weighted = measure(y_true, y_prob, sample_weight=weight)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-12, atol=1e-15)


def test_unit_weights_are_no_weights(measure, rng):
    y_true, y_prob = draw(rng)
    ones = np.ones(len(y_true), dtype=int)
    np.testing.assert_allclose(
        measure(y_true, y_prob, sample_weight=ones),
        measure(y_true, y_prob),
        rtol=1e-13,
        atol=1e-15,
    )


def test_rows_have_no_order(measure, rng):
    y_true, y_prob = draw(rng)
    weight = rng.integers(0, 4, size=len(y_true))
    order = rng.permutation(len(y_true))
    np.testing.assert_allclose(
        measure(y_true[order], y_prob[order], sample_weight=weight[order]),
        measure(y_true, y_prob, sample_weight=weight),
        rtol=1e-12,
        atol=1e-15,
    )


def test_inputs_are_read_only(measure, rng, frozen):
    y_true, y_prob = draw(rng)
    weight = rng.uniform(0.5, 2.0, size=len(y_true))
    before = y_prob.copy()
    measure(frozen(y_true), frozen(y_prob), sample_weight=frozen(weight))
    measure(y_true, y_prob, sample_weight=weight)
    np.testing.assert_array_equal(y_prob, before)


def test_kinds_of_input_agree(measure, rng):
    y_true, y_prob = draw(rng, 40)
    expected = measure(y_true, y_prob)
    for labels, forecasts in [
        (y_true.tolist(), y_prob.tolist()),
        (y_true.astype(bool), y_prob[:, None]),
        (y_true.astype(float), np.repeat(y_prob, 2)[::2]),
    ]:
        np.testing.assert_array_equal(measure(labels, forecasts), expected)


def test_integer_forecasts(measure):
    result = measure([1, 0, 1], [1, 0, 1])
    np.testing.assert_array_equal(result, measure([1, 0, 1], [1.0, 0.0, 1.0]))


@pytest.mark.parametrize("y", [0, 1])
def test_one_row_and_one_class_are_finite(measure, y):
    assert np.isfinite(measure([y], [0.3])).all()
    assert np.isfinite(measure([y] * 4, [0.1, 0.3, 0.3, 0.9])).all()


@pytest.mark.parametrize("name", SCALARS)
def test_scalars_are_losses(name):
    measure = MEASURES[name]
    good, bad = measure([0, 1], [0.0, 1.0]), measure([0, 1], [0.9, 0.1])
    assert type(good) is float
    assert 0.0 <= good < bad
    if name != "log clipped":
        assert good == 0.0


def test_no_floating_point_state_is_touched(measure):
    before = np.geterr()
    with np.errstate(all="raise"):
        measure([0, 1, 1], [0.2, 0.7, 0.7])
        measure([0, 1, 1], [0.0, 1.0, 1.0])
    assert np.geterr() == before


@pytest.mark.parametrize(
    ("y_true", "y_prob", "weight", "message"),
    [
        ([], [], None, "`y_true` must hold at least one value, got an empty array"),
        ([0, 2], [0.1, 0.2], None, "`y_true` must hold the two classes .* got 2 at"),
        ([0, 1], [0.1, 1.2], None, r"`y_prob` must lie in \[0, 1\], got 1.2"),
        ([0, 1], [0.1, np.nan], None, "`y_prob` must be finite, got nan at position 1"),
        ([0, 1], [0.1], None, "`y_prob` must be as long as y_true, got 1 and 2"),
        ([0, 1], [0.1, 0.2], [1.0, -1.0], "`sample_weight` must not be negative"),
        ([0, 1], [0.1, 0.2], [0.0, 0.0], "`sample_weight` must not be zero everywhere"),
        ([0, 1], [0.1, 0.2], [1.0], "`sample_weight` must be as long as"),
    ],
)
def test_bad_input_is_named(measure, y_true, y_prob, weight, message):
    with pytest.raises(ValueError, match=message):
        measure(y_true, y_prob, sample_weight=weight)


def test_text_is_refused(measure):
    with pytest.raises(
        TypeError, match="`y_prob` must be numeric, got 'a' at position 0"
    ):
        measure([0, 1], ["a", "b"])
