"""Distributions of functions, joined ones, and data frames of what they say."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from localexpert import concatenate
from localexpert.distribution.frame import Questions
from tests.forecasts import normal, of_values

NORMAL = normal(np.arange(5.0) - 1.0, np.linspace(0.5, 3.0, 5))


def test_frames_hold_what_methods_say():
    assert list(NORMAL.to_frame().columns) == ["mean", "std", "q0.05", "q0.5", "q0.95"]
    asked = {"quantiles": [0.1], "interval": (0.5, 0.9), "exceed": 1e-3}
    told = NORMAL.to_frame(**asked, risk=[0.9, 0.995], tail="lower")
    want = {
        "mean": NORMAL.mean(),
        "std": NORMAL.std(),
        "q0.1": NORMAL.ppf(0.1),
        "low_0.5": NORMAL.interval(0.5)[:, 0],
        "high_0.5": NORMAL.interval(0.5)[:, 1],
        "low_0.9": NORMAL.interval(0.9)[:, 0],
        "high_0.9": NORMAL.interval(0.9)[:, 1],
        "p_above_0.001": NORMAL.sf(1e-3),
        "var_0.9": NORMAL.value_at_risk(0.9, "lower"),
        "es_0.9": NORMAL.expected_shortfall(0.9, "lower"),
        "var_0.995": NORMAL.value_at_risk(0.995, "lower"),
        "es_0.995": NORMAL.expected_shortfall(0.995, "lower"),
    }
    assert list(told) == list(want)
    assert_array_equal(told, np.column_stack([*want.values()]))
    assert NORMAL[:0].to_frame(exceed=1).shape == (0, 3)
    assert len(Questions.of([0.1, 0.1 + 1e-15]).answers(NORMAL)) == 4


def test_concatenated_rows_of_unlike_kinds():
    counts = of_values([0.0, 1.0, 2.0], [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])
    grown, y = NORMAL[2:].transform(np.sinh, np.arcsinh), np.linspace(-1.0, 2.0, 10)
    joined = concatenate([NORMAL, counts, grown])
    want = [NORMAL.crps(y[:5]), counts.crps(y[5:7]), grown.crps(y[7:])]
    assert_allclose(joined.crps(y), np.concatenate(want), rtol=1e-6)
    rows = [6, 0, 9, 5]
    assert_allclose(joined[rows].crps(y[rows]), joined.crps(y)[rows])
    assert_allclose(joined.pmf(1.0), [0.0] * 5 + [0.5, 0.1] + [0.0] * 3)


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        ("transform", (np.negative, np.negative), "`func` must increase strictly"),
        ("transform", (np.exp, "log"), "`inverse` must be callable, got str"),
        ("transform", (None, np.log), "`func` must be callable, got NoneType"),
        ("transform", (np.exp, np.log1p), "`inverse` must undo `func`, got func"),
        ("transform", (np.sqrt, np.square), "`func` must be finite wherever the dist"),
        ("transform", (lambda y: y[0], np.log), "an array of the shape it is given"),
        ("transform", (float, np.log), "`func` must take an array and return one of"),
        (
            "to_frame",
            {"quantiles": [1.5]},
            r"`quantiles` must lie in \[0, 1\], got 1.5",
        ),
        ("to_frame", {"interval": 1.0}, r"`interval` must lie in \(0, 1\), got 1"),
        ("to_frame", {"exceed": np.nan}, "`exceed` must be finite"),
        ("to_frame", {"risk": [0.9, 95]}, r"`risk` must lie in \(0, 1\), got 95"),
        ("to_frame", {"tail": "both"}, "`tail` must be one of 'upper', 'lower', got"),
        ("to_frame", {"index": [1]}, "`index` must have a label for each of the 5 "),
        (concatenate, ([],), "`dists` must hold at least one"),
        (concatenate, (NORMAL,), "`dists` must be a list of Predictive"),
        (concatenate, ([NORMAL, np.zeros(3)],), "got ndarray at position 1"),
    ],
)
def test_refusals(call, given, message):
    function = call if callable(call) else getattr(NORMAL, call)
    named, given = (given, ()) if isinstance(given, dict) else ({}, given)
    with pytest.raises((TypeError, ValueError), match=message):
        function(*given, **named)
