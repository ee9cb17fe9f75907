"""What every measure promises, whatever it measures: of two classes, or of more."""

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

from calibration import (
    auc_score,
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


def every_part(decomposition):
    """Return a function of forecasts whose value is an array of the parts."""

    def measure(*args, **kwargs):
        return np.array(list(vars(decomposition(*args, **kwargs)).values()))

    return measure


def every_point(**options):
    """Return a function of forecasts whose value is an array of the curve."""

    def measure(*args, **kwargs):
        curve = reliability_curve(*args, **kwargs, **options)
        names = ("mean_prob", "event_rate", "weight", "lower", "upper")
        return np.stack([getattr(curve, name) for name in names])

    return measure


MEASURES = {
    "brier": brier_score,
    "log": log_loss,
    "log clipped": partial(log_loss, clip=0.1),
    "spherical": spherical_score,
    "proper density": partial(proper_score, weight=lambda e: 1.0 + e),
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


VIEWS = ("micro", "classwise", "top_label", "confidence")


CLASS_MEASURES = {
    "brier": brier_score,
    "log": log_loss,
    "log clipped": partial(log_loss, clip=0.1),
    "spherical": spherical_score,
    "auc": auc_score,
    **{f"ece {v}": partial(expected_calibration_error, view=v) for v in VIEWS},
    **{f"mce {v}": partial(maximum_calibration_error, view=v) for v in VIEWS},
    "ece width": partial(expected_calibration_error, binning="width", view="classwise"),
}


@pytest.fixture(params=CLASS_MEASURES)
def class_measure(request):
    return CLASS_MEASURES[request.param]


def draw_table(rng, n=150, k=4):
    """Labels and forecasts in twentieths, so that there are ties, 0 and 1."""
    y_prob = rng.multinomial(20, rng.dirichlet(np.ones(k), size=n)) / 20.0
    mixed = 0.8 * y_prob + 0.2 / k
    y_true = (rng.uniform(size=(n, 1)) > mixed.cumsum(axis=1)).sum(axis=1)
    return np.minimum(y_true, k - 1), y_prob


CASES = {
    **{name: (one, draw) for name, one in MEASURES.items()},
    **{f"{name}, 4 classes": (one, draw_table) for name, one in CLASS_MEASURES.items()},
}


@pytest.fixture(params=CASES)
def case(request, rng):
    """A measure of two classes or of four, labels and forecasts."""
    measure, draw_rows = CASES[request.param]
    return measure, *draw_rows(rng)


def test_a_weight_is_a_number_of_repetitions_in_any_order(case, rng):
    measure, y_true, y_prob = case
    weight = rng.integers(0, 4, size=len(y_true))
    rows = rng.permutation(np.repeat(np.arange(len(y_true)), weight))
    repeated = measure(y_true[rows], y_prob[rows])
    weighted = measure(y_true, y_prob, sample_weight=weight)
    np.testing.assert_allclose(weighted, repeated, rtol=1e-11, atol=1e-14)


def test_inputs_are_read_only(case, rng, frozen):
    measure, y_true, y_prob = case
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


def test_names_of_columns(class_measure, rng):
    y_true, y_prob = draw_table(rng, 60)
    expected = class_measure(y_true, y_prob)
    for names in (["d", "b", "a", "c"], [10, -1, 7, 3], [0.5, 0.25, 2.0, 1.0]):
        labels = np.array(names, dtype=object)[y_true]
        found = class_measure(labels, y_prob, classes=names)
        np.testing.assert_array_equal(found, expected)
    frame = pd.DataFrame(y_prob, columns=list("dbac"))
    series = pd.Series(np.array(list("dbac"))[y_true], dtype="category")
    found = class_measure(series, frame, classes=frame.columns)
    np.testing.assert_array_equal(found, expected)
    match = r"`y_prob` must have its columns in the order .*, got 'd' in the place of "
    with pytest.raises(ValueError, match=match + "'a'"):
        class_measure(series, frame, classes=list("abcd"))
    with pytest.raises(ValueError, match=match + "'a'"):
        class_measure(series, pl.from_pandas(frame), classes=list("abcd"))
    with pytest.raises(ValueError, match="'1' in the place of '0'"):
        class_measure(y_true, frame.set_axis(np.array([1, 0, 2, 3]), axis=1))
    frame.columns = [f"p_{name}" for name in "badc"]  # names of their own
    found = class_measure(series, frame, classes=list("dbac"))
    np.testing.assert_array_equal(found, expected)


def test_a_class_without_rows_and_the_state_of_floats(class_measure, rng):
    y_true, y_prob = draw_table(rng)
    before = np.geterr()
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        for rows in (y_true != 2, slice(None)):
            found = class_measure(y_true[rows], 0.9 * y_prob[rows] + 0.025)
            assert np.isfinite(found).all()
    assert np.geterr() == before


THIRDS = [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("y_true", "y_prob", "options", "message"),
    [
        ([0, 3], THIRDS, {}, "`y_true` must hold column numbers from 0 to 2.* got 3"),
        ([0, -1], THIRDS, {}, "`y_true` must hold column numbers .* got -1 at"),
        ([0, 0.5], THIRDS, {}, "`y_true` must hold column numbers .* got 0.5 at"),
        ([0, 1, 1], THIRDS, {}, "`y_prob` must be as long as y_true, got 2 and 3"),
        ([0, 1], [[0.5, 0.6], [0.5, 0.5]], {}, "rows that sum to 1, got 1.1 in row 0"),
        ([0, 1], [[0.5, 0.5], [1.5, -0.5]], {}, r"`y_prob` must lie in \[0, 1\], got"),
        ([0, 1], [[0.5, np.nan], [0.5, 0.5]], {}, "finite, got nan in row 0, column 1"),
        ([], np.empty((0, 3)), {}, "`y_prob` must hold at least one row"),
        ([0, 1], np.zeros((2, 2, 2)), {}, r"`y_prob` must have shape \(n, k\)"),
        ([0, 1], THIRDS, {"classes": ["a", "b"]}, "`classes` must name each of the 3"),
        ([0, 1], THIRDS, {"classes": "aab"}, "`classes` must be a list of names"),
        ([0, 1], THIRDS, {"classes": ["a", "a", "b"]}, "each of the 3 columns once"),
        (["a", "d"], THIRDS, {"classes": list("abc")}, "that `classes` names, got 'd'"),
        ([b"a", "b"], THIRDS, {"classes": list("abc")}, "kind, got b'a' and 'b'"),
        ([1, "1"], THIRDS, {"classes": list("123")}, "`y_true` must .* got 1 and '1'"),
        ([1, 2], THIRDS, {"classes": list("123")}, "that `classes` names, got 1"),
        (["1", "2"], THIRDS, {"classes": [1, 2, 3]}, "`classes` names, got '1'"),
        (["a", np.nan], THIRDS, {"classes": ["a", "b", "nan"]}, "gaps, got nan at pos"),
        (["a", "b"], THIRDS, {"classes": ["a", "b", 1]}, "`classes` .* got 'b' and 1"),
        ([0, 1], THIRDS, {"sample_weight": [1, -1]}, "`sample_weight` must not be neg"),
        ([0, 1], THIRDS, {"sample_weight": [1]}, "`sample_weight` must be as long as"),
    ],
)
def test_bad_classes_are_named(class_measure, y_true, y_prob, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        class_measure(y_true, y_prob, **options)


def test_names_of_two_classes_of_which_the_second_is_forecast(rng):
    y = rng.integers(0, 2, size=50)
    p = rng.uniform(0.01, 0.99, size=50)
    names = np.array(["no", "yes"])
    rows = np.column_stack([1.0 - p, p])
    for measure in (
        log_loss,
        spherical_score,
        auc_score,
        partial(expected_calibration_error, view="classwise"),
        partial(maximum_calibration_error, view="classwise"),
    ):
        found = measure(names[y], p, classes=names)
        assert found == measure(y, p)
        assert found == pytest.approx(measure(y, rows), rel=1e-12)
    assert brier_score(y, rows) == pytest.approx(2.0 * brier_score(y, p), rel=1e-12)


def test_float32_forecasts_of_many_classes(rng):
    p = rng.dirichlet(np.ones(1000), size=20).astype(np.float32)
    assert np.isfinite(log_loss(np.arange(20), p, clip=1e-12))
