"""Columns of every type: numbers, categories, or a refusal that names the column."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from localexpert.data.table import Table

DAYS = pd.date_range("2020-01-01", periods=3)
NAT = pd.Series([pd.NaT, *DAYS[1:]])


def objects(values):
    return pd.Series(list(values), dtype=object)


def arrow(values, dtype):
    return pd.Series(values, dtype=pd.ArrowDtype(dtype))


@pytest.mark.parametrize(
    "column",
    [
        objects([1, 2.5, None]),
        objects([np.int8(1), np.float32(2.5), np.nan]),
        objects([Decimal(1), Fraction(5, 2), pd.NA]),
        objects([True, Decimal("2.5"), pd.NaT]),
        pd.array([1.0, 2.5, pd.NA], dtype="Float64"),
        arrow([1.0, 2.5, None], pa.float64()),
        arrow([Decimal(1), Decimal("2.5"), None], pa.decimal128(4, 2)),
        pl.Series([Decimal(1), Decimal("2.5"), None]),
        pl.Series([1, Fraction(5, 2), None], dtype=pl.Object),
    ],
    ids=lambda column: str(column.dtype),
)
def test_numbers_are_numbers_in_any_wrapping(column):
    kind = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    table = Table.of(kind({"a": column}))
    assert table.reader.categories == []
    np.testing.assert_array_equal(table.codes[:, 0], [1.0, 2.5, np.nan])


@pytest.mark.parametrize(
    "column",
    [
        ["7", "12", None],
        objects(["7", "12", None]),
        pd.array(["7", "12", None], dtype="string"),
        arrow(["7", "12", None], pa.large_string()),
        arrow(["7", "12", None], pa.dictionary(pa.int32(), pa.string())),
        pl.Series(["7", "12", None]),
        pl.Series(["7", "12", None], dtype=pl.Categorical),
        pl.Series(["7", "12", None], dtype=pl.Object),
    ],
    ids=lambda column: str(getattr(column, "dtype", "list")),
)
def test_texts_are_categories_even_those_of_digits(column):
    kind = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    table = Table.of(kind({"a": column}))
    assert table.reader.categories == [0]
    np.testing.assert_array_equal(table.codes[:, 0], [1.0, 0.0, np.nan])


@pytest.mark.parametrize(
    "X",
    [
        DAYS.to_numpy()[:, None],
        NAT.to_numpy()[:, None],
        (DAYS - DAYS[0]).to_numpy()[:, None],
        DAYS.to_pydatetime()[:, None],
    ],
    ids=["dates", "NaT", "durations", "objects"],
)
def test_dates_in_arrays_are_refused(X):
    with pytest.raises(TypeError, match=r"`X` must be numeric, got .* to hold dates"):
        _ = Table.of(X).codes


@pytest.mark.parametrize(
    ("cells", "got"),
    [
        ([1.5, "u", None], r"'u' \(row 1\) in column 'a'; a column is all numbers"),
        ([[1], [2], [3]], r"\[1\] \(row 0\)"),
        ([{"b": 1}, {}, {}], r"{'b': 1} \(row 0\)"),
        ([np.zeros(2)] * 3, r"array\(\[0., 0.\]\) \(row 0\)"),
        ([(1, 2), (1, 3), None], r"\(1, 2\) \(row 0\)"),
        ([1j, 1, 2], r"1j \(row 0\)"),
        ([b"u", b"v", b"u"], r"b'u' \(row 0\)"),
    ],
)
def test_cells_of_no_kind_are_refused_by_name(cells, got):
    table = Table.of(pd.DataFrame({"a": objects(cells)}))
    with pytest.raises(TypeError, match=rf"or dates, got {got}"):
        _ = table.codes


@pytest.mark.parametrize(
    "dtype", [pl.Struct({"b": pl.Int8}), pl.List(pl.Int8), pl.Binary]
)
def test_nested_types_are_refused_by_name(dtype):
    table = Table.of(pl.DataFrame({"a": pl.Series([None], dtype=dtype)}))
    with pytest.raises(TypeError, match=r"got dtype .* in column 'a'"):
        _ = table.codes


@pytest.mark.parametrize(
    "row",
    [
        pd.DataFrame([{"size": None, "town": None}]),
        pd.DataFrame([{"size": pd.NA, "town": pd.NA}]),
        pd.DataFrame([{"size": np.nan, "town": np.nan}]),
        pl.DataFrame([{"size": None, "town": None}]),
    ],
    ids=["None", "NA", "nan", "null"],
)
def test_a_row_of_gaps(row):
    train = pd.DataFrame({"size": [1.0, 2.0], "town": ["Ulm", "Bonn"]})
    codes = Table.of(train).reader.read(row).codes
    np.testing.assert_array_equal(codes, [[np.nan, np.nan]])


@pytest.mark.parametrize(
    ("known", "given"),
    [
        (["7", "12"], [7, 12]),
        (["7", "12"], pd.Categorical([7, 12])),
        (["7", "12"], [7.0, np.nan]),
        (["True", "False"], [True, False]),
        (pd.Categorical([7, 12]), ["7", "12"]),
        (["7", "12"], DAYS[:2]),
        (["7", "12"], objects([["7"], ["12"]])),
    ],
)
def test_categories_of_another_kind_are_refused(known, given):
    # They would all be missing without a word.
    reader = Table.of(pd.DataFrame({"zip": known})).reader
    with pytest.raises(TypeError, match=r"`X` must hold categories .* column 'zip'"):
        _ = reader.read(pd.DataFrame({"zip": given})).codes
    if isinstance(given, list):
        with pytest.raises(TypeError, match=r"`X` must hold categories .* 'zip'"):
            _ = reader.read(pl.DataFrame({"zip": given})).codes


@pytest.mark.parametrize(
    ("known", "given"),
    [
        (pd.Categorical([7, 12]), [7.0, 12.0]),
        (pd.Categorical([False, True]), objects([False, True])),
        (pd.Categorical([False, True]), np.array([0, 1])),
        (pd.Categorical(["b", "c"]), pd.Categorical(["b", "c"], ["c", "a", "b"])),
    ],
)
def test_equal_categories_are_known_whatever_their_type(known, given):
    reader = Table.of(pd.DataFrame({"a": known})).reader
    codes = reader.read(pd.DataFrame({"a": given})).codes
    np.testing.assert_array_equal(codes, [[0.0], [1.0]])


def test_gaps_and_wrappings_of_arrays():
    cells = np.array([[1, None], [Decimal("2.5"), pd.NA]], dtype=object)
    np.testing.assert_array_equal(Table.of(cells).codes, [[1, np.nan], [2.5, np.nan]])
    masked = np.ma.masked_array([[1, 9], [2, 9]], mask=[[False, True], [False, True]])
    np.testing.assert_array_equal(Table.of(masked).codes, [[1, np.nan], [2, np.nan]])
    with pytest.raises(ValueError, match="`X` must be numeric: setting an array"):
        Table.of(np.zeros((1, 1))).reader.encode([[1.0], [2.0, 3.0]])
