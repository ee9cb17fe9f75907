"""The table holds what the measures say, under names a reader understands."""

import sys

import numpy as np
import pandas as pd
import pytest

from localexpert.risk import expected_shortfall, risk_table, value_at_risk


def test_columns_and_their_values(forecast):
    table = risk_table(forecast, levels=[0.9, 0.995], thresholds=[0, 1.25])
    low, high = forecast.interval(0.9).T
    expected = {
        "mean": forecast.mean(),
        "std": forecast.std(),
        "median": forecast.median(),
        "90% low": low,
        "90% high": high,
        "VaR 90%": value_at_risk(forecast, 0.9),
        "ES 90%": expected_shortfall(forecast, 0.9),
        "VaR 99.5%": value_at_risk(forecast, 0.995),
        "ES 99.5%": expected_shortfall(forecast, 0.995),
        "P(Y > 0)": forecast.sf(0.0),
        "P(Y > 1.25)": forecast.sf(1.25),
    }
    assert list(table.columns) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(table[name], values)
    assert list(table.index) == list(range(5))


def test_lower_tail(forecast):
    table = risk_table(
        forecast, levels=0.07, thresholds=2.0, tail="lower", coverage=0.5
    )
    assert list(table.columns)[3:] == [
        "50% low",
        "50% high",
        "lower VaR 7%",
        "lower ES 7%",
        "P(Y <= 2)",
    ]
    np.testing.assert_array_equal(
        table["lower VaR 7%"], value_at_risk(forecast, 0.07, "lower")
    )
    np.testing.assert_array_equal(
        table["lower ES 7%"], expected_shortfall(forecast, 0.07, "lower")
    )
    np.testing.assert_array_equal(table["P(Y <= 2)"], forecast.cdf(2.0))


def test_defaults_index_and_no_levels(make):
    ours = make("normal")
    names = pd.Index(list("abcde"), name="house")
    table = risk_table(ours, index=names)
    assert list(table.columns)[5:] == ["VaR 95%", "ES 95%"]
    pd.testing.assert_index_equal(table.index, names)
    assert risk_table(ours, levels=()).shape == (5, 5)
    assert risk_table(ours[:0]).shape == (0, 7)


def test_large_thresholds_keep_their_digits(make):
    table = risk_table(make("normal"), thresholds=[1234567.0, 1234568.0, 0.1])
    shown = ["P(Y > 1234567)", "P(Y > 1234568)", "P(Y > 0.1)"]
    assert list(table.columns)[-3:] == shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": 1.0}, r"`levels` must lie in \(0, 1\), got 1.0"),
        ({"levels": [0.9, -0.1]}, r"`levels` must lie in \(0, 1\), got -0.1"),
        ({"levels": [0.9, 0.9]}, r"`levels` must be distinct, got \[0.9, 0.9\]"),
        ({"levels": [[0.9]]}, r"`levels` must have shape \(any,\)"),
        ({"thresholds": [1, 1]}, r"`thresholds` must be distinct, got \[1.0, 1.0\]"),
        ({"thresholds": [np.nan]}, "`thresholds` must be finite"),
        ({"tail": "both"}, "`tail` must be one of 'upper', 'lower', got 'both'"),
        ({"coverage": 90}, r"`coverage` must lie in \(0, 1\), got 90"),
        ({"index": ["a"]}, "`index` must have a label for each of the 5 rows, got 1"),
    ],
)
def test_bad_arguments_are_named(make, options, message):
    with pytest.raises(ValueError, match=message):
        risk_table(make("normal"), **options)


def test_what_is_no_forecast_is_refused():
    with pytest.raises(TypeError, match=r"`dist` must be a Pred.*, got DataFrame"):
        risk_table(pd.DataFrame({"y": [1.0]}))


def test_without_pandas_it_says_how_to_get_it(make, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    message = r"`risk_table` needs pandas: pip install localexpert\[io\]"
    with pytest.raises(ImportError, match=message):
        risk_table(make("normal"))
