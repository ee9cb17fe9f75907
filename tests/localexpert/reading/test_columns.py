"""Columns: what nearly all cells are, and other tables read as that of training."""

import datetime as dt
import io
import re
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from calibration import CalibrationWarning
from localexpert import LocalExpertRegressor
from localexpert.reading import ColumnReader, TableError
from localexpert.reading.files import FileFormat, read_table
from localexpert.reading.reader import read_flags, read_numbers, tell_odd_cells
from localexpert.reading.texts import GAPS


def learn(cells, name="c", **options):
    """Return rule, values, odd cells and warnings of a column of texts or types."""
    frame = pd.DataFrame({name: cells, "other": np.arange(len(cells)) % 3})
    frame.index = pd.Index(np.arange(2, len(cells) + 2), name="line")
    frame.attrs["path"] = "t.csv"
    reader = ColumnReader(**options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        learned = reader.fit_transform(frame)
    rule, read = reader.rules_[0], reader.transform(frame, odd=[])
    pd.testing.assert_frame_equal(learned, read)
    got = None if rule.kind == "dropped" else read[name]
    return rule, got, reader.odd_cells_, [str(one.message) for one in caught]


def numbers(*cells, **options):
    rule, got, _, _ = learn(list(cells), **options)
    assert rule.kind == "number"
    return got.tolist()


NAN = pytest.approx(np.nan, nan_ok=True)
YES_NO = [("yes", "no"), ("Ja", "Nein"), ("oui", "non"), ("TRUE", "false")]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2", ""], "number"),
        *((list(pair) + ["NA"], "boolean") for pair in YES_NO),
        ([True, False, None], "boolean"),
        (["a", "b", "a"], "category"),
        (["2024-01-01", "", "2024-01-02"], "date"),
        (["13/01/2024", "01/02/2024"], "date"),
        (["2024-01-01", "soon", "late"], "category"),
        ([f"n{i}" for i in range(19)], "category"),
        ([1.0, np.nan, 2.0], "number"),
        (pd.array([1, None, 3], dtype="Int64"), "number"),
        (pd.Categorical(["a", "b", "a"]), "category"),
    ],
)
def test_kinds(cells, kind):
    rule, got, _, said = learn(cells)
    assert rule.kind == kind
    assert said == [] or "read as a gap" in said[0]
    dtype = {"category": "category", "date": "datetime64[us]"}.get(kind, "float64")
    assert str(got.dtype).replace("object", "datetime64[us]") == dtype


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["", "NA", "-"], "holds no value"),
        ([np.inf, np.nan, np.nan], "holds no value"),
        (["7", "7.0", "7"], "constant"),
        (["2024-01-01", "2024-01-01"], "constant"),
        ([f"n{i}" for i in range(30)], "a different text in each row"),
    ],
)
def test_dropped(cells, reason):
    rule, _, _, said = learn(cells)
    assert (rule.kind, rule.reason) == ("dropped", reason)
    assert f"dropped ({reason}): 'c'" in said


def test_the_index_of_a_saved_data_frame_is_dropped():
    assert learn(["7", "1", "3"], "column 1")[0].kind == "dropped"
    assert learn(["0", "1", "1"], "column 1")[0].kind == "number"
    assert learn(["0", "1", "1.5"], "column 1")[0].kind == "number"


@pytest.mark.parametrize("mark", sorted(GAPS - {""}))
@pytest.mark.parametrize("case", [str, str.upper, lambda text: f" {text.title()} "])
def test_usual_marks_of_gaps_are_known_and_listed(mark, case):
    rule, got, odd, _ = learn(["1", case(mark), "", "3"])
    assert rule.kind == "number"
    assert np.isnan(got.to_numpy()[1:3]).all()
    (cell,) = odd
    assert (cell.text, cell.count) == (case(mark).strip(), 1)
    assert cell.where == "line 3 of t.csv"
    assert cell.why == "read as a gap"


class TestNumbers:
    @pytest.mark.parametrize(
        ("words", "values", "written"),
        [
            (["$34000", "-$5", "$-7.5", "12"], [34000, -5, -7.5, 12], "in $"),
            (["1.234,50 EUR", "7 EUR"], [1234.5, 7], "in EUR"),
            (["USD1,234.5", "5 USD"], [1234.5, 5], "in USD with thousands marks"),
            (["50%", "7.5 %", "-1%"], [50, 7.5, -1], "in percent (50 % is 50)"),
            (["12 km", "7.25km", "8"], [12, 7.25, 8], "in km"),
            (["1'234", "1\u2019234'567.5"], [1234, 1234567.5], "thousands marks"),
            (["1\u2019234", "7"], [1234, 7], "thousands marks"),
            (["0,123", "1,456"], [0.123, 1.456], ""),
            (["1e3", " -.5 ", "+7."], [1000, -0.5, 7], ""),
        ],
    )
    def test_of_one_format(self, words, values, written):
        rule, got, odd, _ = learn(words)
        assert rule.kind == "number"
        np.testing.assert_array_equal(got, values)
        assert written in rule.written.text
        assert odd == ()

    @pytest.mark.parametrize(
        "words",
        ["12B;7B;12", "3k;4k;1200", "3k;1.2M;5k", "2XL;3XL;38", "3 Mio. €;4 Mio. €;5"],
    )
    def test_numbers_that_lack_a_multiplier_or_a_letter_are_words(self, words):
        assert learn(words.split(";"))[0].kind == "category"
        # All alike they are numbers, and plain ones do not count among them.
        unit = re.sub("[0-9]", "", words.split(";")[0])
        frame = pd.DataFrame({"c": [f"{k * k}{unit}" for k in range(9)]})
        reader, odd = ColumnReader().fit(frame), []
        got = reader.transform(pd.DataFrame({"c": [f"7{unit}", "7"]}), odd)["c"]
        assert got.tolist() == [7.0, NAN]
        with pytest.raises(TableError, match=f"must hold numbers in {unit.strip()} as"):
            reader.transform(pd.DataFrame({"c": [7.0]}))

    @pytest.mark.parametrize(
        "words", ["12 34;1,2,3", "$5;€6", "5%;6", "1_000;2_000", "1.2.3;4"]
    )
    def test_what_is_not_guessed_is_words(self, words):
        assert learn(words.split(";"))[0].kind == "category"

    def test_a_cell_of_two_units_does_not_count_as_one_without(self):
        words = ["$5 km", *map(str, range(19)), *(f"{x} km" for x in range(20))]
        rule, _, odd, _ = learn(words)
        found = rule.kind, rule.written.unit, [cell.text for cell in odd]
        assert found == ("number", "km", ["$5 km"])

    def test_marks_that_may_be_decimal_ones_are_named(self):
        _, got, _, said = learn(["1,234", "5,678"])
        assert got.tolist() == [1234, 5678]
        assert said == [
            "marks of thousands are read in 'c'; if they are decimal marks, say "
            "--decimal ,"
        ]
        _, got, _, said = learn(["1,234", "5,678"], decimal=",")
        assert (got.tolist(), said) == ([1.234, 5.678], [])
        assert learn(["1,234", "12345"])[0].kind == "number"
        assert numbers("1,234", "12345", thousands=",", decimal=".") == [1234, 12345]

    def test_repetitions_of_all_formats(self, rng):
        """What is written with any marks is read back to the last bit."""
        given = np.round(rng.normal(size=200) * 10.0 ** rng.integers(0, 9, 200), 2)
        for mark, decimal in ([*",."], [*".,"], [*" ."], [*"',"], ["", ","]):
            swap = str.maketrans({",": mark, ".": decimal})
            words = [f"{x:,.2f}".translate(swap) for x in given]
            for unit in ("", "%", "$", " km"):
                found = [unit + w if unit == "$" else w + unit for w in words]
                np.testing.assert_array_equal(numbers(*found), given)

    def test_infinite_ones_are_odd(self):
        cells = ["1e400", "inf", *map(str, range(60))]
        _, got, odd, _ = learn(cells)
        assert np.isnan(got[:2]).all()
        assert {cell.text for cell in odd} == {"1e400", "inf"}
        assert numbers(np.inf, 1.0, 2.0) == [NAN, 1.0, 2.0]

    @pytest.mark.parametrize(
        ("cells", "found"),
        [
            ([*range(40), 99999999, 99999999, 999999, 999999], {"99999999", "999999"}),
            ([*range(40), -999, -999], {"-999"}),
            ([*range(40), 99999999], set()),  # once
            ([*range(60, 200), 999, 999], set()),  # not far
            ([99999999, 99999999, 99999999], set()),
            ([*range(40), 88888888, 88888888], set()),
        ],
    )
    def test_nines_that_stand_for_nothing(self, cells, found):
        for given in (cells, list(map(str, cells))):
            rule, got, odd, _ = learn(given)
            assert {cell.text for cell in odd} == found
            if rule.kind != "dropped":
                assert set(rule.sentinels) == set(map(float, found))
                kept = [np.nan if str(c) in found else c for c in cells]
                np.testing.assert_array_equal(got, kept)

    def test_nines_are_targets_and_weights_like_others(self):
        cells = ["1", "2", "3", "-9999", "-9999"]
        frame = pd.DataFrame({"y": cells, "x": [1, 2, 4, 8, 7]})
        want = list(map(float, cells))
        assert ColumnReader("y").fit(frame).read_target(frame).tolist() == want
        assert read_numbers(frame, "y", "weight").tolist() == want

    def test_that_are_marks_of_gaps(self):
        whole, texts = [1, 2, 3, -1, 5], ["1", "2", "3", "-1", "5"]
        for cells in (whole, list(map(float, whole)), texts, [*texts, "NA"]):
            rule, got, odd, _ = learn(cells, missing=["-1"])
            assert (rule.kind, got.isna().sum()) == ("number", len(cells) - 4)
            assert {cell.text for cell in odd} == {"-1", *cells[5:]}
        for cells in (["1 km", "2 km", "99 km"], ["1,234", "2,345", "9,999"]):
            mark, how = cells[-1].split()[0], {"thousands": ","}
            _, got, odd, _ = learn(4 * cells, missing=[mark], **how)
            assert (got.isna().sum(), [cell.text for cell in odd]) == (4, cells[-1:])
        for flags in (["yes", "no", "no"], [True, False, False]):
            assert learn(flags, missing=["0"])[1].tolist() == [1.0, 0.0, 0.0]
        frame = pd.DataFrame({"y": texts, "x": ["7", "8", "-1", "-1", "9"]})
        with pytest.warns(CalibrationWarning, match="'-1' .1 row.* read as a gap|left"):
            reader = ColumnReader("y", missing=["-1"]).fit(frame)
        assert np.isnan(reader.read_target(frame)).tolist() == [0, 0, 0, 1, 0]
        for cells in (["-1", "2"], ["-1", "NA"], ["-1.0", "2 "], [-1, 2]):
            new, found = pd.DataFrame({"x": cells}), []
            assert np.isnan(reader.transform(new, odd=found)["x"].iloc[0])
            assert found == []

    def test_that_are_names(self):
        said = learn([str(i) for i in range(5, 11)])[3]
        assert "column 'c' numbers the rows" in said[0]
        assert learn([str(2 * i) for i in range(6)])[3] == []
        said = learn(["0", "07", "501", "10"])[3]
        assert "column 'c' holds digits that begin with zeros, first '07'" in said[0]
        rule, _, _, said = learn(["0", "07", "501", "10"], categories=["c"])
        assert (rule.categories, said) == (("0", "07", "10", "501"), [])

    def test_the_decimal_mark_is_found_in_all_columns(self):
        frame = pd.DataFrame({"a": ["1.234", "2.500"], "b": ["1,5", "2"]})
        got = ColumnReader().fit(frame).transform(frame)
        assert got["a"].tolist() == [1234, 2500]


class TestDurations:
    """Of any type, or texts of a CSV: training and forecasts agree on the unit."""

    @staticmethod
    def dress(gaps, texts):
        frame = pd.DataFrame({"w": gaps, "x": np.arange(len(gaps)) % 3})
        yield frame
        yield frame.astype({"w": object})
        yield pl.from_pandas(frame)
        yield frame.astype({"w": "timedelta64[us]"}).convert_dtypes(
            dtype_backend="pyarrow"
        )
        yield frame.assign(w=texts)

    @pytest.mark.parametrize("unit", ["s", "D"])
    def test_are_one_way_in_training_and_in_forecasts(self, rng, unit):
        gaps = pd.Series(pd.to_timedelta(rng.integers(-9, 90_000, 30), unit))
        gaps[7] = pd.NaT
        texts = read_csv(gaps.to_frame())["0"].fillna("")
        for seen in self.dress(gaps, texts):
            reader = ColumnReader().fit(seen)
            want = gaps.dt.total_seconds()
            if reader.rules_[0].written.unit == "days":
                want = want / 86_400
            for new in self.dress(gaps, texts):
                np.testing.assert_array_equal(reader.transform(new)["w"], want)

    def test_a_model_of_python_reads_their_texts(self):
        gaps = pd.Series(pd.to_timedelta(np.arange(1, 60), "D"))
        model = fit(gaps.to_frame("w"), np.arange(59.0))
        reader = ColumnReader.of_model(model)
        texts = pd.DataFrame({"w": ["3 days", "4 days 01:00:00", "-1 days +23:00:00"]})
        got = reader.transform(texts)["w"]
        assert got.tolist() == [259_200, 349_200, -3600]

    def test_are_no_plain_numbers(self):
        reader = ColumnReader().fit(pd.DataFrame({"c": ["1", "2", "3"]}))
        for cells in (pd.to_timedelta(["2D"]), ["2 days"]):
            with pytest.raises(TableError, match="must hold numbers as in training"):
                reader.transform(pd.DataFrame({"c": cells}))


class TestDates:
    @pytest.mark.parametrize(
        "form",
        [
            *("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y"),
            *("%d %b %Y", "%d. %B %Y", "%B %d, %Y", "%d-%b-%Y", "%Y-%m-%dT%H:%M:%S"),
            *("%d.%m.%Y %H:%M", "%Y-%m-%d %H:%M:%S.%f"),
        ],
    )
    def test_are_read_in_every_format(self, rng, form):
        seconds = rng.integers(-(10**9), 2 * 10**9, 60)
        unit = 60 if "%M" in form and "%S" not in form else 1 if "%S" in form else 86400
        moments = [
            dt.datetime(1970, 1, 1) + dt.timedelta(seconds=int(s) // unit * unit)
            for s in seconds
        ]
        rule, got, odd, _ = learn([m.strftime(form) for m in moments])
        assert (rule.kind, odd) == ("date", ())
        assert got.tolist() == [pd.Timestamp(m) for m in moments]

    def test_with_zones_are_utc(self):
        cells = ["2024-01-01 10:00+02:00", "2024-01-01 10:00Z"]
        got = learn(cells)[1]
        assert [t.hour for t in got] == [8, 10]
        # No time has the zone of the one before it.
        cells = ["2024-03-31T02:30:00+02:00", "2024-03-31 01:30", "2024-4-1"]
        assert [t.isoformat()[:16] for t in learn(cells)[1]] == [
            *("2024-03-31T00:30", "2024-03-31T01:30", "2024-04-01T00:00")
        ]
        assert [t.month for t in learn(["2024-05", "2024-11"])[1]] == [5, 11]
        assert [t.month for t in learn(["3. Mai 2024", "4. Okt. 2024"])[1]] == [5, 10]

    def test_without_a_zone_among_others_are_named(self):
        zoned = [
            "2024-01-01T00:00+01:00",
            "2024-01-01T00:00+00:00",
            "2024-01-02 03:00Z",
        ]
        rule, got, odd, _ = learn(zoned)
        assert (rule.kind, odd) == ("date", ())
        assert [t.hour for t in got] == [23, 0, 3]
        bare = ["2024-01-03T05:00", "2024-01-04", ""]
        rule, got, odd, said = learn([*zoned, *bare])
        assert (rule.kind, got.isna().sum()) == ("date", 1)
        assert [cell.text for cell in odd] == bare[:2]
        why = "without a time zone, unlike others in training, read in UTC"
        assert {cell.why for cell in odd} == {why}
        assert "'2024-01-03T05:00' (1 row, first in line 5 of t.csv)" in said[-1]
        assert learn(bare[:2])[2] == ()
        moments = [pd.Timestamp(text) for text in [*zoned, *bare[:2]]]
        assert len(learn(pd.Series(moments, dtype=object))[2]) == 2

    @pytest.mark.parametrize("typed", [False, True])
    def test_with_a_zone_where_training_had_none(self, typed):
        known = ["2024-01-01 05:00:00", "2024-02-03 07:00:00", "2024-03-01 00:00:00"]

        def odd(zone, reader):
            cells = pd.to_datetime(known, utc=True).tz_convert(zone).to_series()
            new, found = pd.DataFrame({"c": cells if typed else cells.astype(str)}), []
            got = reader.transform(new, odd=found)["c"]
            assert got.dt.hour.tolist() == [5, 7, 0]
            assert [cell.text for cell in found] in ([], cells.astype(str).tolist())
            return {cell.why for cell in found}

        bare, zoned = (
            ColumnReader().fit(pd.DataFrame({"c": times}))
            for times in (known, [f"{time}+05:30" for time in known])
        )
        why = "with a time zone, unlike others in training, read in UTC"
        assert odd("Asia/Tokyo", bare) == odd("-05:00", bare) == {why}
        assert odd(None, zoned) == {f"without{why[4:]}"}
        # UTC is that of training.
        assert odd("UTC", bare) == odd("UTC", zoned) == odd(None, bare) == set()
        assert odd("Asia/Tokyo", zoned) == set()
        empty = zoned.transform(pd.DataFrame({"c": [np.nan]}))
        assert empty["c"].isna().all()

    def test_of_either_order_are_not_guessed(self):
        cells = ["03/04/2025", "05/06/2025"]
        assert learn(cells, date_order="dmy")[0].date_format == "day/month/year"
        assert learn(cells, date_order="mdy")[0].date_format == "month/day/year"
        found = learn([*cells, "31/12/2025"], date_order="mdy")[0].date_format
        assert found == "day/month/year"

    @pytest.mark.parametrize(
        "kind", [object, "date32[pyarrow]", "timestamp[us][pyarrow]"]
    )
    def test_with_types_are_of_any_year(self, kind):
        days = [dt.datetime(1066, 10, 14), dt.datetime(9999, 12, 31), None]
        rule, got, odd, _ = learn(pd.Series(days, dtype=object).astype(kind))
        assert (rule.kind, odd) == ("date", ())
        np.testing.assert_array_equal(got, np.array(days, "datetime64[us]"))

    def test_in_texts_are_of_any_year(self):
        for cells in (
            ["2024-01-01", "9999-12-31", "0001-1-1", "1600-02-29T00:00:00+00:00"],
            ["1.1.2024", "31.12.9999", "1.1.0001", "29.02.1600"],
        ):
            rule, got, odd, _ = learn(cells)
            assert (rule.kind, odd) == ("date", ())
            want = ["2024-01-01", "9999-12-31", "0001-01-01", "1600-02-29"]
            np.testing.assert_array_equal(got, np.array(want, "datetime64[us]"))
        odd = ["9999-12-31 23:00-05:00", "1900-02-29", "0000-01-01"]
        rule, got, _, _ = learn(["2024-01-01"] * 60 + odd)
        assert (rule.kind, got.isna().sum()) == ("date", 3)
        assert learn(["4711-3", "4712-10"])[0].kind == "category"

    @pytest.mark.parametrize("odd", ["2024-02-30", "soon", "2024-01-01 25:00", "2024"])
    def test_that_are_none_are_odd(self, odd):
        days = [f"2024-{m:02d}-{d:02d}" for m in (1, 3) for d in range(1, 29)]
        rule, got, cells, _ = learn([*days, odd])
        assert rule.kind == "date"
        assert pd.isna(got.iloc[-1])
        (cell,) = cells
        assert (cell.text, cell.where) == (odd, "line 58 of t.csv")
        assert cell.why == "not dates (year-month-day), taken as a gap"


class TestOddCells:
    @pytest.mark.parametrize(
        ("cell", "others"),
        [
            ("1,5x", [str(i / 7) for i in range(38)]),
            ("soon", [f"{1 + i % 28}.3.2024" for i in range(38)]),
            ("perhaps", ["yes", "no"] * 19),
            ("5 mi", [f"{i} km" for i in range(38)]),
            ("0.5", [f"{i} %" for i in range(38)]),
        ],
    )
    def test_of_one_in_twenty_become_gaps(self, cell, others):
        rule, got, odd, said = learn([cell, *others, cell])
        assert rule.kind not in ("category", "dropped")
        assert pd.isna(got.iloc[[0, -1]]).all()
        assert got.iloc[1:-1].notna().all()
        (one,) = odd
        assert (one.text, one.count, one.where) == (cell, 2, "line 2 of t.csv")
        assert any(f"{cell!r} (2 rows, first in line 2 of t.csv)" in s for s in said)
        # One more is too many.
        rule = learn([cell, cell, cell, *others])[0]
        assert rule.kind in ("category", "dropped")

    def test_numbers_among_words_stay_words(self):
        words = ["Bonn", "Köln", "Ulm"] * 20
        rule, got, odd, said = learn([*words, "99999999"])
        assert rule.categories == ("99999999", "Bonn", "Köln", "Ulm")
        assert got.iloc[-1] == "99999999"
        assert odd[0].why == "a number among words, kept as a word"
        assert "--missing" not in "".join(said)

    def test_are_listed_up_to_a_limit(self):
        cells = [*map(str, range(1000)), *(f"odd{i:02d}" for i in range(45))]
        odd, said = learn(cells)[2:]
        assert len(odd) == 45
        assert "'odd39' (1 row" in said[-1]
        assert said[-1].endswith("and 5 more")

    def test_are_short_in_messages(self):
        cells = ["1", "2"] * 30 + ["x" * 100_000]
        (cell,), said = learn(cells)[2:]
        assert cell.text == "x" * 80
        assert max(map(len, said)) < 300


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("03/04/2025;05/06/2025", "dates that may have the day or the month first"),
        ("03.04.25;05.06.24", "years of two digits, as '03.04.25' (write four)"),
        ("1;;many;2", "67 % numbers, and what is none, first 'many' in line 4"),
    ],
)
def test_what_is_taken_as_words_is_said(cells, said):
    rule, _, _, found = learn(cells.split(";"))
    assert rule.categories == tuple(sorted(filter(None, cells.split(";"))))
    assert f"column 'c' holds {said}" in found[0]
    assert found[0].endswith("; it is taken as words")


def test_blanks_around_words_do_not_count():
    rule, got, _, _ = learn(["Rome", "Rome ", "Oslo"])
    assert rule.categories == ("Oslo", "Rome")
    assert got.tolist() == ["Rome", "Rome", "Oslo"]


def test_a_target_must_hold_numbers():
    frame = pd.DataFrame({"x": ["1", "2", "4"], "y": ["1", "cheap", "3"]})
    frame.attrs["path"] = "t.csv"
    message = "target 'y' must hold finite numbers, got 'cheap' in row 1 of t.csv"
    with pytest.raises(TableError, match=message):
        ColumnReader("y").fit(frame)
    frame["y"] = ["7", "7", ""]
    with pytest.warns(CalibrationWarning, match="left out 1 row without a target 'y'"):
        reader = ColumnReader("y").fit(frame)
    np.testing.assert_array_equal(reader.read_target(frame), [7, 7, np.nan])


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
    yield "csv", TEXTS
    yield "arrow", typed.convert_dtypes(dtype_backend="pyarrow")
    yield "nullable", typed.convert_dtypes()
    yield "categories", typed.assign(kind=typed["kind"].astype("category"))
    yield "zones", typed.assign(day=typed["day"].dt.tz_localize("UTC"))
    yield "polars", pl.from_pandas(typed)
    yield "0 and 1", typed.assign(garden=[1, 0, np.nan, 1])
    yield "objects", typed.astype(object)
    yield "texts", TEXTS.astype("string[pyarrow]")
    yield "gaps", TEXTS.replace("", np.nan).replace("NA", None)
    yield "commas", TEXTS.replace({"x": {"1.5": "1,5", "2.25": "2,25"}})
    yield "other names of gaps", TEXTS.replace("NA", "k.A.")


@pytest.mark.parametrize("case", list(dressed()), ids=lambda case: case[0])
def test_any_dress_gives_the_same_features(reader, case):
    got = reader.transform(case[1])
    assert list(got) == reader.feature_names_ == ["x", "kind", "day", "garden"]
    np.testing.assert_array_equal(got["x"], [1.5, 2.25, np.nan, -4.0])
    assert got["kind"].cat.codes.tolist() == [0, 1, 0, -1]
    days = ["2024-01-01", "2024-02-01T06", "NaT", "2023-05-05"]
    np.testing.assert_array_equal(got["day"], np.array(days, "datetime64[us]"))
    np.testing.assert_array_equal(got["garden"], [1.0, 0.0, np.nan, 1.0])
    assert set(map(str, got.dtypes)) == {"float64", "category", "datetime64[us]"}


def test_odd_cells_of_new_rows_are_told_or_collected(reader):
    new = TEXTS.assign(x=["1", "u", "u", "inf"], kind=["c", "a", "c", "b"])
    new.index = pd.Index([4, 5, 6, 9], name="line")
    new.attrs["path"] = "new.csv"
    found = []
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
    assert reader.read_target(shuffled).tolist() == [1, 2, 3, 5]
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


@pytest.mark.parametrize(
    "names",
    [[0, 1, 2], ["x", None, "y"], pd.MultiIndex.from_product([["a"], [1, 2, 3]])],
)
def test_columns_may_be_called_by_anything(names):
    frame = pd.DataFrame({"x": [1, 2, 4], "word": ["u", "v", "u"], "y": [5, 6, 8]})
    frame.columns = names
    x, word, y = frame.columns
    reader = ColumnReader(y, categories=[word]).fit(frame)
    assert reader.transform(frame).columns.tolist() == [x, word]
    assert reader.read_target(frame).tolist() == [5, 6, 8]
    assert len(ColumnReader().fit(frame).rules_) == 3
    held = ColumnReader(ends=(x, y)).fit(frame)
    assert (held.feature_names_, held.target_name) == ([word], f"{x} to {y}")
    lacking = re.escape(f"lacks 1 column that the model was trained on: {x!r}")
    with pytest.raises(TableError, match=lacking):
        reader.transform(frame.iloc[:, 1:])


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
    # Whoever parts fields by commas may have meant decimal points.
    (tmp_path / "t.csv").write_text("a,b\n2.500,7\n")
    with pytest.warns(CalibrationWarning, match="read in 'a'; if .* say --decimal ."):
        assert german.transform(read_table(path)).to_numpy().tolist() == [[2500, 7]]
    with pytest.warns(CalibrationWarning, match="read in 'a'; if .* say --decimal ."):
        assert german.read_target(read_table(path), "a").tolist() == [2500]
    frame = read_table(path, FileFormat(decimal="."))
    assert german.transform(frame).to_numpy().tolist() == [[2.5, 7]]


def test_marks_of_thousands_tell_the_decimal_mark(tmp_path):
    path = str(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("a;y\n1,234;2,500\n7;1,300\n9,125;4\n")
    want = [[1234, 2500], [7, 1300], [9125, 4]]
    for how in (FileFormat(), FileFormat(thousands=",")):
        frame = read_table(path, how)
        reader = ColumnReader("y", thousands=",").fit(frame)
        got = np.column_stack([reader.transform(frame), reader.read_target(frame)])
        assert (reader.decimal_, got.tolist()) == (".", want)
    assert read_numbers(frame, "y").tolist() == [2500, 1300, 4]
    # What is told of one table says nothing of others.
    (tmp_path / "t.csv").write_text("a;y\n1.234;2\n9,5;1\n")
    for how in (FileFormat(), FileFormat(thousands=".")):
        got = reader.transform(read_table(path, how))
        assert got["a"].tolist() == [1234, 9.5]
    with pytest.raises(TableError, match="--thousands must differ, got ',' for both"):
        ColumnReader(thousands=",").fit(read_table(path))


THOUSANDS, DECIMAL = "marks of thousands", "decimal marks"


@pytest.mark.parametrize(
    ("cells", "values", "kind", "other"),
    [
        ("1.234;5.678", [1234, 5678], THOUSANDS, DECIMAL),
        ("1,250;-2,500", [1.25, -2.5], DECIMAL, THOUSANDS),
    ],
)
def test_a_mark_that_only_semicolons_tell(tmp_path, cells, values, kind, other):
    path = str(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("c;n\n" + cells.replace(";", ";7\n") + ";9\n")
    frame = read_table(path)
    columns = SimpleNamespace(names=["c"])
    held = SimpleNamespace(columns=columns, category_codes={}, dates=None)
    python = ColumnReader.of_model(SimpleNamespace(reader_=held))
    ways = (
        lambda: ColumnReader().fit(frame).transform(frame)["c"],
        lambda: ColumnReader("c").fit(frame).read_target(frame),
        lambda: python.transform(frame)["c"],
        lambda: read_numbers(frame, "c"),
    )
    with pytest.warns(CalibrationWarning) as caught:
        got = [list(read()) for read in ways]
    assert got == [values] * 4
    said = f"{kind} are read in 'c'; if they are {other}, say --decimal ."
    assert [str(one.message) for one in caught] == [said] * 4
    assert read_numbers(read_table(path, FileFormat(decimal=".")), "c")[0] != values[0]


@pytest.mark.parametrize(
    ("met", "new"), [("3", "3.0"), ("3.0", "3"), ("3", "3,0"), ("-3.0", "-3")]
)
def test_whole_numbers_are_the_same_categories_beside_gaps(met, new):
    frame = pd.DataFrame({"c": [met, "4.5", "a"]})
    reader = ColumnReader(categories=["c"]).fit(frame)
    got = reader.transform(pd.DataFrame({"c": [new, ""]}))["c"]
    assert got.iloc[0] == met


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


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_model_of_python_reads_files(houses, zone):
    frame, y = houses
    frame = frame.assign(sold=frame["sold"].dt.tz_localize(zone))
    model = fit(frame, y)
    reader = ColumnReader.of_model(model)
    want = forecasts(model, frame)
    shuffled = read_csv(frame[frame.columns[::-1]])
    np.testing.assert_array_equal(forecasts(model, reader.transform(shuffled)), want)
    german = read_csv(frame, sep=";", decimal=",", date_format="%d.%m.%Y %H:%M%z")
    np.testing.assert_array_equal(forecasts(model, reader.transform(german)), want)
    assert reader.read_target(read_csv(y.to_frame()), "price").tolist() == y.tolist()
    with pytest.raises(TableError, match="was fitted to an array"):
        ColumnReader.of_model(fit(np.zeros((20, 1)) + np.arange(20)[:, None], y[:20]))


def test_what_a_model_of_python_knows_as_a_word_is_no_gap(houses):
    words = np.array(["none", "-", "hut", "hut "], dtype=object)
    kinds = words[np.arange(len(houses[1])) % 4]
    model = fit(pd.DataFrame({"kind": pd.Categorical(kinds)}), houses[1])
    new = pd.DataFrame({"kind": [*words, " none", "NA", ""]})
    got = ColumnReader.of_model(model).transform(new)["kind"]
    assert got.isna().sum() == 2
    assert got.tolist()[:5] == [*words, "none"]


def test_a_model_of_files_reads_data_frames(houses):
    frame, y = houses
    texts = read_csv(pd.concat([frame, y], axis=1))
    reader = ColumnReader("price", categories=["size"]).fit(texts)
    model = fit(reader.transform(texts), reader.read_target(texts))
    want = forecasts(model, reader.transform(texts))
    polars = pl.from_pandas(frame.astype({"size": int}))
    for raw in (frame, frame.convert_dtypes(), polars):
        np.testing.assert_array_equal(forecasts(model, reader.transform(raw)), want)


INF = np.inf


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (
            ["1 km", "-9 km", "UNK", "9999", "9999 km"],
            ["1", "2.5", "-9", "-9.0", "unk"],
        ),
        (["1", "", "", "9999", "9999"], ["1", "2.5", "NA", "", "inf"]),
        (["1", "-inf", "-inf", "9999", "9999"], ["1", "2.5", "inf", "+inf", "INF"]),
        ([1.0, -INF, -INF, 9999, 9999], [1.0, 2.5, INF, np.nan, INF]),
        (["1", "", "", "9,999", "9,999"], ["1", "2.5", "", "", ""]),
        (["1 km", "", "", "9999 km", "9999"], ["1", "2.5", "", "", ""]),
    ],
)
def test_ends_of_targets(lower, upper):
    frame = pd.DataFrame({"a": lower, "x": [1, 2, 3, 4, 5], "b": upper})
    with pytest.warns(CalibrationWarning, match="left out 1 row without a target 'a t"):
        reader = ColumnReader(ends=("a", "b"), missing=["-9", "unk"]).fit(frame)
    want = [[1, 1], [-INF, 2.5], [np.nan, np.nan], [9999, INF], [9999, INF]]
    np.testing.assert_array_equal(reader.read_target(frame), want)
    assert (reader.feature_names_, reader.target_name) == (["x"], "a to b")
    assert reader.find_unknown(frame) == []
    assert reader.lay_out().splitlines()[:2] == ["a  lower", "b  upper"]


@pytest.mark.parametrize(
    ("ends", "more", "message"),
    [
        (("x", "x"), {}, "upper 'x' cannot have another role as well"),
        (("x", "w"), {"others": ["w"]}, "upper 'w' cannot have another role as well"),
        (("x", "w"), {"categories": ["x"]}, "columns to learn from, got 'x'"),
        (("x", "day"), {}, "upper 'day' must hold finite numbers, got '2024-01-01'"),
        (("garden", "x"), {}, "lower 'garden' must hold finite numbers, got 'yes'"),
        (("far", "x"), {}, "lower 'far' must hold finite numbers, got 'inf' in row 0"),
        (("w", "x"), {}, "'w' must not be above upper 'x', got '5' and '1' in row 0"),
        (("x", "z"), {}, "has no upper 'z'; its columns are 'x', 'kind'"),
        (("no", "none"), {}, "at least 2 rows with a target 'no to none', got 0"),
    ],
)
def test_ends_that_are_refused(ends, more, message):
    frame = TEXTS.assign(x=[1, 2, 3, 4], w=5, garden="yes", day="2024-01-01")
    frame = frame.assign(far="inf", no="", none="")
    with pytest.raises(TableError, match=message):
        ColumnReader(ends=ends, **more).fit(frame)


@pytest.mark.parametrize(
    "cells", [["yes", "No", "1.0", "0"], [True, False, True, False], [1.0, 0.0, 1, 0]]
)
def test_flags(cells):
    assert read_flags(pd.DataFrame({"a": cells}), "a", "event").tolist() == [1, 0, 1, 0]


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
