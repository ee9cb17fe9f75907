"""`ColumnReader`: other tables are read as the training table was, in any dress."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pytest

from calibration import CalibrationWarning
from localexpert import LocalExpertRegressor
from localexpert.reading import ColumnReader, OddCell, TableError
from localexpert.reading.files import FileFormat, read_table
from localexpert.reading.reader import tell_odd_cells

TEXTS = pd.DataFrame(
    {
        "x": ["1.5", "2.25", "NA", "-4"],
        "kind": ["a", "b", "a", ""],
        "day": ["2024-01-01", "2024-02-01 06:00", "", "2023-05-05"],
        "garden": ["yes", "no", "", "yes"],
        "flat": ["q", "q", "q", "q"],
        "w": ["1", "2", "3", "4"],
        "y": ["1", "2", "3", "5"],
    }
)


@pytest.fixture
def reader():
    with pytest.warns(CalibrationWarning, match="dropped .constant.: 'flat'|'NA'"):
        return ColumnReader("y", others=["w"]).fit(TEXTS)


def test_features(reader):
    got = reader.transform(TEXTS)
    assert got["x"].tolist() == pytest.approx([1.5, 2.25, np.nan, -4.0], nan_ok=True)
    assert got["kind"].cat.codes.tolist() == [0, 1, 0, -1]
    days = ["2024-01-01", "2024-02-01T06", "NaT", "2023-05-05"]
    np.testing.assert_array_equal(got["day"], np.array(days, "datetime64[us]"))
    np.testing.assert_array_equal(got["garden"], [1.0, 0.0, np.nan, 1.0])
    assert reader.feature_names_ == ["x", "kind", "day", "garden"]
    np.testing.assert_array_equal(reader.read_target(TEXTS), [1, 2, 3, 5])


def dressed():
    """Yield the same table in every dress that it may come in."""
    typed = pd.DataFrame(
        {
            "garden": [True, False, None, True],
            "x": [1.5, 2.25, np.nan, -4.0],
            "day": pd.to_datetime(
                ["2024-01-01", "2024-02-01 06:00", None, "2023-05-05"], format="ISO8601"
            ),
            "kind": ["a", "b", "a", None],
        }
    )
    yield "typed", typed
    yield "arrow", typed.convert_dtypes(dtype_backend="pyarrow")
    yield "nullable", typed.convert_dtypes()
    yield "categories", typed.assign(kind=typed["kind"].astype("category"))
    zoned = typed["day"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    yield "zones", typed.assign(day=zoned)
    yield "polars", pl.from_pandas(typed)
    yield "0 and 1", typed.assign(garden=[1, 0, np.nan, 1])
    yield "objects", typed.astype(object)
    yield "texts", TEXTS.astype("string[pyarrow]")
    yield "gaps", TEXTS.replace("", np.nan).replace("NA", None)
    yield "commas", TEXTS.replace({"x": {"1.5": "1,5", "2.25": "2,25"}})
    yield "other names of gaps", TEXTS.replace("NA", "k.A.")


@pytest.mark.parametrize("case", list(dressed()), ids=lambda case: case[0])
def test_any_dress_gives_the_same_features(reader, case):
    want = reader.transform(TEXTS)
    got = reader.transform(case[1])
    for name in want:
        pd.testing.assert_series_equal(got[name], want[name])


def test_odd_cells_of_new_rows_are_told_or_collected(reader):
    new = TEXTS.assign(x=["1", "u", "u", "inf"], kind=["c", "a", "c", "b"])
    new.index = pd.Index([4, 5, 6, 9], name="line")
    new.attrs["path"] = "new.csv"
    found: list[OddCell] = []
    frame = reader.transform(new, odd=found)
    np.testing.assert_array_equal(frame["x"], [1.0, np.nan, np.nan, np.nan])
    assert frame.index.tolist() == [4, 5, 6, 9]
    told = {(c.column, c.text, c.count, c.where) for c in found}
    assert told == {
        ("x", "u", 2, "line 5 of new.csv"),
        ("x", "inf", 1, "line 9 of new.csv"),
        ("kind", "c", 2, "line 4 of new.csv"),
    }
    with pytest.warns(CalibrationWarning) as caught:
        tell_odd_cells(found * 2)
    assert str(caught[0].message) == (
        "odd cells in 'x': 'u' (4 rows, first in line 5 of new.csv), 'inf' (2 rows, "
        "first in line 9 of new.csv) not numbers as in training, taken as a gap; "
        "'kind': 'c' (4 rows, first in line 4 of new.csv) not met in training, taken "
        "as a gap"
    )
    with pytest.warns(CalibrationWarning, match=r"'u' \(2 rows, first in line 5"):
        reader.transform(new)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": ["", "one", "two", ""]}, "column 'x' must hold numbers as in training"),
        ({"day": "soon"}, r"hold dates .year-month-day. as in training, got 'soon'"),
        ({"day": 7.0}, r"must hold dates .year-month-day. as in training, got '7'"),
        ({"x": pd.Timestamp("2024-01-01")}, "column 'x' must hold numbers as in train"),
        ({"garden": 7}, "column 'garden' must hold yes or no as in training, got '7'"),
    ],
)
def test_columns_of_another_kind_are_refused(reader, changed, message):
    new = TEXTS.assign(**changed).set_index(pd.Index([2, 3, 4, 5], name="line"))
    with pytest.raises(TableError, match=message):
        reader.transform(new)


def test_columns_are_matched_by_name(reader):
    shuffled = TEXTS[TEXTS.columns[::-1]].assign(new="1")
    pd.testing.assert_frame_equal(reader.transform(shuffled), reader.transform(TEXTS))
    assert reader.find_unknown(shuffled) == ["new"]
    assert reader.find_unknown(shuffled, ["new"]) == []
    with pytest.raises(TableError, match=r"lacks 2 columns that .*: 'x', 'day'"):
        reader.transform(TEXTS.drop(columns=["x", "day", "flat", "y"]))
    message = "has no target 'z'; its columns are 'x', 'kind'"
    with pytest.raises(TableError, match=message):
        reader.read_target(TEXTS, "z")
    twice = pd.concat([TEXTS, TEXTS[["x"]]], axis=1)
    with pytest.raises(TableError, match="has several columns of one name: 'x'"):
        reader.transform(twice)
    with pytest.raises(TableError, match="must be a data frame, got ndarray"):
        reader.transform(np.zeros((2, 2)))


def test_a_file_with_the_other_decimal_mark(tmp_path):
    path = str(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("a;b\n1.250,5;7\n2,25;1.234\n")
    german = ColumnReader().fit(read_table(path))
    (tmp_path / "t.csv").write_text('a,b\n"1,250.5",7\n2.25,"1,234"\n')
    want = pd.DataFrame({"a": [1250.5, 2.25], "b": [7.0, 1234.0]})
    for frame in (read_table(path), read_table(path, FileFormat(decimal="."))):
        got = german.transform(frame).reset_index(drop=True)
        pd.testing.assert_frame_equal(got, want)
    # Where a table does not tell, training does.
    (tmp_path / "t.csv").write_text("a;b\n2.500;1.234\n")
    assert german.transform(read_table(path)).to_numpy().tolist() == [[2500, 1234]]


# Models of the shell in Python, and the reverse


@pytest.fixture(scope="module")
def houses():
    """Return a table of 120 houses with types, and the CSV of it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "area": np.where(
                rng.uniform(size=120) < 0.1, np.nan, rng.uniform(9, 99, 120)
            ),
            "kind": rng.choice(["hut", "house"], 120),
            "size": pd.Categorical(rng.choice([3, 1, 2], 120), [3, 1, 2]),
            "sold": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.integers(0, 900, 120), "D"),
            "garden": rng.uniform(size=120) < 0.5,
        }
    )
    y = frame["area"].fillna(50) * (1 + frame["garden"]) + rng.normal(size=120)
    return frame, y.rename("price")


def fit(X, y):
    quick = {"strategy": "shared", "cv": 2, "n_thresholds": 3, "frame": None}
    return LocalExpertRegressor(**quick, random_state=0).fit(X, y)


def read_csv(frame, **how):
    file = io.StringIO()
    frame.to_csv(file, index=False, **how)
    return pd.read_csv(io.StringIO(file.getvalue()), sep=how.get("sep", ","), dtype=str)


def forecasts(model, frame):
    return model.predict_dist(frame).quantiles([0.1, 0.5, 0.9])


def test_a_model_of_python_reads_files(houses):
    frame, y = houses
    model = fit(frame, y)
    reader = ColumnReader.of_model(model)
    want = forecasts(model, frame)
    shuffled = read_csv(frame[frame.columns[::-1]])
    np.testing.assert_array_equal(forecasts(model, reader.transform(shuffled)), want)
    german = read_csv(frame, sep=";", decimal=",", date_format="%d.%m.%Y")
    np.testing.assert_array_equal(forecasts(model, reader.transform(german)), want)
    assert reader.read_target(read_csv(y.to_frame()), "price").tolist() == y.tolist()
    with pytest.raises(TableError, match="was fitted to an array"):
        ColumnReader.of_model(fit(np.zeros((20, 1)) + np.arange(20)[:, None], y[:20]))


def test_a_model_of_files_reads_data_frames(houses):
    frame, y = houses
    texts = read_csv(pd.concat([frame, y], axis=1))
    reader = ColumnReader("price", categories=["size"]).fit(texts)
    model = fit(reader.transform(texts), reader.read_target(texts))
    want = forecasts(model, reader.transform(texts))
    for raw in (
        frame,
        frame.convert_dtypes(),
        pl.from_pandas(frame.astype({"size": int})),
    ):
        np.testing.assert_array_equal(forecasts(model, reader.transform(raw)), want)


def test_columns_are_laid_out():
    frame = TEXTS.assign(share=["5 %", "7 %", "", "6 %"])
    with pytest.warns(CalibrationWarning, match="dropped .constant.: 'flat'|'NA'"):
        reader = ColumnReader("y", others=["w"]).fit(frame)
    assert reader.lay_out().splitlines() == [
        "y       target, numbers",
        "x       numbers",
        "kind    2 words: a, b",
        "day     dates (year-month-day)",
        "garden  yes or no",
        "flat    dropped (constant)",
        "share   numbers in percent (50 % is 50)",
        "no features: 'w'",
    ]
    many = pd.DataFrame({f"x{j}": ["1", "2"] for j in range(45)})
    assert ColumnReader().fit(many).lay_out().endswith("\nand 5 columns more")
