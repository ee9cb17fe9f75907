"""Measures on hostile forecasts and weights: what each of them promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from calibration import (
    auc_score,
    brier_decomposition,
    brier_score,
    corp_decomposition,
    cumulative_calibration_test,
    expected_calibration_error,
    maximum_calibration_error,
)
from tests.calibration.measures.test_contract import MEASURES, SCALARS
from tests.fuzz.cases import examples
from tests.fuzz.labelled import HOSTILE, REPEATS, labelled
from tests.fuzz.refusals import answer_or_refusal

SHARE = 0.1
# What is no loss, or refuses some rows that losses take.
FURTHER = {
    "auc": auc_score,
    "cumulative": lambda *args, **kwargs: (
        cumulative_calibration_test(*args, **kwargs).p_value
    ),
}
HELD = {**MEASURES, **FURTHER}
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", MEASURES)
@given(rows=labelled("probability", REPEATS), data=st.data())
@examples(0.4 * SHARE / len(MEASURES))
def test_repetitions(name, rows, data):
    """Weights are repetitions, and the order of rows is nothing."""
    y_prob, y_true, weight = rows
    order = np.array(data.draw(st.permutations(range(len(y_true)))))
    measure, count = MEASURES[name], weight.astype(int)
    value = answer_or_refusal(lambda: measure(y_true, y_prob, sample_weight=weight))
    if isinstance(value, Exception):
        assert not weight.any()
        return
    repeated = measure(np.repeat(y_true, count), np.repeat(y_prob, count))
    moved = measure(y_true[order], y_prob[order], sample_weight=weight[order])
    assert_allclose(repeated, value, rtol=1e-9, atol=1e-12)
    assert_allclose(moved, value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", HELD)
@given(rows=labelled("probability", HOSTILE))
@examples(0.4 * SHARE / len(HELD))
def test_hostile_weights(name, rows):
    """A number in its range, or an error that names an argument."""
    y_prob, y_true, weight = rows
    measure = HELD[name]
    value = answer_or_refusal(lambda: measure(y_true, y_prob, sample_weight=weight))
    if isinstance(value, Exception):
        return
    assert not np.isnan(value).any()
    if name in SCALARS:
        assert value >= 0.0
    if name in ("auc", "cumulative"):
        assert 0.0 <= value <= 1.0 + 1e-12


@given(rows=labelled("probability", HOSTILE), n_bins=st.integers(1, 8))
@examples(0.2 * SHARE)
def test_parts(rows, n_bins):
    """Parts add up to the whole, and errors are no greater than they can be."""
    y_prob, y_true, weight = rows
    options = {"sample_weight": weight}
    brier = answer_or_refusal(lambda: brier_score(y_true, y_prob, **options))
    if isinstance(brier, Exception):
        return
    near = {"rtol": 1e-9, "atol": 1e-12}
    parts = brier_decomposition(y_true, y_prob, n_bins=n_bins, **options)
    total = parts.calibration + parts.refinement + parts.within_bin
    assert_allclose([parts.brier, total], brier, **near)
    assert_allclose(parts.refinement, parts.uncertainty - parts.resolution, **near)
    corp = corp_decomposition(y_true, y_prob, **options)
    total = corp.miscalibration - corp.discrimination + corp.uncertainty
    assert_allclose([corp.score, total], brier, **near)
    assert min(corp.miscalibration, corp.discrimination) >= 0.0
    mean = expected_calibration_error(y_true, y_prob, n_bins=n_bins, **options)
    most = maximum_calibration_error(y_true, y_prob, n_bins=n_bins, **options)
    assert 0.0 <= mean <= most + 1e-12
    assert most <= 1.0 + 1e-12
