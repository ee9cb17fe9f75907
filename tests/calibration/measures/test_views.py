import numpy as np
import pytest

from calibration.measures import (
    expected_calibration_error,
    maximum_calibration_error,
)

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
    parts, shares = [], []
    for label in range(3):
        rows = top == label
        parts.append(binary(y[rows] == label, p[rows].max(axis=1), w[rows]))
        shares.append(w[rows].sum() / w.sum())
    if measure is expected_calibration_error:
        expected = np.dot(shares, parts)
    else:
        expected = max(parts)
    assert found("top_label") == pytest.approx(expected)


def test_by_hand():
    y, p = [0, 1], [[0.7, 0.2, 0.1], [0.4, 0.4, 0.2]]
    # Forecasts .1 .2 .2 .4 .4 .7 with hits 0 0 0 0 1 1, in two bins that hold three and
    # three: |0 - .5| and |2 - 1.5|, over six.
    assert expected_calibration_error(y, p, n_bins=2) == pytest.approx(1.0 / 6.0)
    assert maximum_calibration_error(y, p, n_bins=2) == pytest.approx(0.5 / 3.0)
    # Columns .7 .4 with 1 0, .2 .4 with 0 1, .1 .2 with 0 0, in one bin each.
    gaps = [abs(1 - 1.1) / 2, abs(1 - 0.6) / 2, 0.3 / 2]
    found = expected_calibration_error(y, p, n_bins=1, view="classwise")
    assert found == pytest.approx(np.mean(gaps))
    found = maximum_calibration_error(y, p, n_bins=1, view="classwise")
    assert found == pytest.approx(max(gaps))
    # Tops .7 (right) and, of equals the first, .4 (wrong); both of label 0.
    for view in ("confidence", "top_label"):
        found = expected_calibration_error(y, p, n_bins=1, view=view)
        assert found == pytest.approx(abs(1 - 1.1) / 2)


def test_labels_apart_show_what_confidence_hides():
    # Label 0 is right more often than it says, label 1 less often.
    p = np.array([[0.7, 0.3]] * 10 + [[0.3, 0.7]] * 10)
    y = np.array([0] * 9 + [1] * 1 + [1] * 5 + [0] * 5)
    assert expected_calibration_error(y, p, view="confidence") == pytest.approx(0.0)
    assert expected_calibration_error(y, p, view="top_label") == pytest.approx(0.2)


def test_calibrated_forecasts_have_small_errors(rng):
    p = rng.dirichlet(np.ones(4), size=20_000)
    y = (rng.uniform(size=(20_000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    for view in ("micro", "classwise", "top_label", "confidence"):
        assert expected_calibration_error(y, p, view=view) < 0.02


@pytest.mark.parametrize("measure", BOTH)
@pytest.mark.parametrize("view", ["micro", "classwise", "top_label", "confidence"])
def test_one_row_certain_and_right(measure, view):
    assert measure([2], [[0.0, 0.0, 1.0]], view=view) == 0.0
    assert measure([1], [[0.0, 0.0, 1.0]], view=view) > 0.3


def test_weights_whose_sum_is_all_that_floats_count(rng):
    y, p = draw(rng, 20)
    heavy = np.full(20, 2.0**48)
    for measure in BOTH:
        assert measure(y, p, sample_weight=heavy) == pytest.approx(measure(y, p))
