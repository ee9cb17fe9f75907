"""Sources: every way a large table comes in, and what is refused by name."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from calibration.sources.source import Source, open_source


@pytest.fixture
def frame(rng: np.random.Generator) -> pd.DataFrame:
    texts = ["plain", 'a "quoted"\nline', "one, two"]
    return pd.DataFrame(
        {
            "a": rng.normal(size=1000).astype(np.float32),
            "text": rng.choice(texts, 1000),
            "y": rng.normal(size=1000),
        }
    )


def read_all(source: Source, columns: list[str] | None = None) -> pd.DataFrame:
    """Return all parts, pickled on the way, as one frame."""
    parts = [pickle.loads(pickle.dumps(part)) for part in source.parts]
    return pd.concat([part.read(columns) for part in parts], ignore_index=True)


def test_a_folder_of_parquet_is_runs_of_row_groups(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=100)
    frame.to_parquet(tmp_path / "b.parquet")
    (tmp_path / "_metadata.parquet").touch()
    source = open_source(tmp_path, rows_per_part=250)
    names = [part.name for part in source.parts]
    assert names[0] == "a.parquet, row groups 0-1"
    assert names[-1] == "b.parquet"
    assert source.n_rows == 2000
    assert source.n_parts == len(names) == 6
    pd.testing.assert_frame_equal(
        read_all(source), pd.concat([frame, frame], ignore_index=True)
    )
    some = read_all(source, ["y", "a"])
    assert list(some) == ["y", "a"]
    assert len({part.identity() for part in source.parts}) == 6


def test_an_index_of_pandas_is_kept_and_is_no_column(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    frame.index = pd.Index(np.arange(1000) + 5, name="row")
    frame.to_parquet(tmp_path / "a.parquet")
    source = open_source(tmp_path / "a.parquet")
    (part,) = source.parts
    assert source.columns == list(frame)
    assert part.read(["a"]).index.equals(frame.index)


@pytest.mark.parametrize("rows", [1, 250, 999, 1000, 5000])
def test_csv_is_parted_between_lines_not_within_quotes(
    tmp_path: Path, frame: pd.DataFrame, rows: int
) -> None:
    frame = frame[:60] if rows == 1 else frame
    path = tmp_path / "a.csv"
    frame.to_csv(path, index=False)
    source = open_source([path], rows_per_part=rows)
    assert source.n_parts == -(-len(frame) // rows)
    got = read_all(source, ["a", "text", "y"])
    want = pd.read_csv(path)[["a", "text", "y"]]
    pd.testing.assert_frame_equal(got, want)


def test_a_text_keeps_numbers_of_later_lines_as_written(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("k\nx\n007\n12\n")
    got = read_all(open_source(path, rows_per_part=1))
    assert got["k"].tolist() == ["x", "007", "12"]


def test_a_file_without_a_last_newline_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("k,y\n1,2\n3,4")
    assert read_all(open_source(path))["y"].tolist() == [2, 4]


def test_dask_partitions_may_be_empty(frame: pd.DataFrame) -> None:
    whole = dd.from_pandas(frame, npartitions=3)
    some = whole[whole["a"] > 100.0]
    source = open_source(dd.concat([some, whole]))
    assert source.n_parts == 6
    pd.testing.assert_frame_equal(read_all(source), frame, check_dtype=False)
    assert read_all(source, ["y"]).shape == (1000, 1)


def test_a_function_is_called_anew_at_each_pass(frame: pd.DataFrame) -> None:
    source = open_source(lambda: iter([frame[:0], frame[:400], frame[400:]]))
    assert source.in_order
    assert source.n_parts is None
    assert source.n_rows is None
    for _ in range(2):
        pd.testing.assert_frame_equal(read_all(source), frame, check_dtype=False)


def test_a_frame_is_one_part(frame: pd.DataFrame) -> None:
    source = open_source(frame)
    (part,) = source.parts
    assert part.read() is frame
    assert source.n_rows == 1000
    assert part.identity() != next(iter(open_source(frame[::-1]).parts)).identity()
    assert open_source(source) is source


def test_gaps_go_with_any_kind(tmp_path: Path) -> None:
    for name, held in [("a", ""), ("b", "x"), ("c", "")]:
        (tmp_path / f"{name}.csv").write_text(f"t,y\n{held},1\n{held},2\n")
    source = open_source(sorted(tmp_path.glob("*.csv")))
    assert source.kinds == {"t": "text", "y": "number"}
    assert read_all(source)["t"].notna().sum() == 2


def _two(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Path], Any]:
    def write(folder: Path) -> Any:
        frame = pd.DataFrame({"a": [1.0, 2.0], "y": [3.0, 4.0]})
        frame.to_parquet(folder / "first.parquet")
        change(frame).to_parquet(folder / "second.parquet")
        return folder

    return write


def _cut(folder: Path) -> Path:
    path = _two(lambda frame: frame)(folder) / "second.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    return folder


def _damaged(folder: Path) -> Path:
    path = folder / "a.parquet"
    pd.DataFrame({"y": np.arange(1000.0)}).to_parquet(path, compression=None)
    data = bytearray(path.read_bytes())
    data[4:60] = bytes(56)
    path.write_bytes(bytes(data))
    return path


def _csv(text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / "bad.csv"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_two(lambda f: f[["a"]]), r"second\.parquet without the column 'y' of first"),
        (_two(lambda f: f.assign(z=1)), r"second\.parquet with a column 'z' that"),
        (_two(lambda f: f.assign(a=["x", "y"])), r"'a' as text in second\.parquet, as"),
        (_cut, r"second\.parquet, which is cut short or no Parquet file"),
        (_damaged, r"whole files, got a\.parquet: "),
        (_csv(""), r"got bad\.csv, which is empty"),
        (_csv("a,y\n"), "at least one row"),
        (_csv("a,y\n1,2\n3"), r"bad\.csv, which is cut short: its last line has 1 of"),
        (_csv('a,y\n1,2\n"3,'), "cut short: it ends within quotes"),
        (_csv("a,y\n1,2\n1,2,3\n"), r"got bad\.csv: Error tokenizing data"),
        (lambda folder: folder, r"folder with \*\.parquet files, got .* with none"),
        (lambda _: [], "at least one file, got an empty list"),
        (
            lambda folder: folder / "table.xlsx",
            r"end in \.parquet or \.csv, got .*xlsx",
        ),
        (lambda _: pd.DataFrame({"y": []}), "at least one row, got a frame"),
        (lambda _: lambda: iter([]), "a function of no rows"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    tmp_path: Path, make: Callable[[Path], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        read_all(open_source(make(tmp_path)))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "must be a path, .* got int"),
        ([3], "must list paths, got int"),
        (lambda: iter([1]), "pandas data frames, got int as frame 0"),
    ],
)
def test_what_is_no_table(source: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        open_source(source)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_file_that_is_written_to_between_passes(
    frame: pd.DataFrame, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / f"sales.{kind}"

    def write(rows: pd.DataFrame) -> None:
        if kind == "csv":
            rows.to_csv(path, index=False)
        else:
            rows.to_parquet(path, row_group_size=3)

    write(frame)
    *_, last = open_source(path, rows_per_part=3).parts
    assert len(last.read())
    write(frame[: len(frame) // 2])
    with pytest.raises(ValueError, match=r"stay as it is .* got sales\..* written to"):
        last.read()


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"exists, got .*none\.csv"):
        open_source(tmp_path / "none.csv")


def test_a_type_that_changes_within_a_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n2\nx\n")
    source = open_source(path, rows_per_part=2)
    with pytest.raises(ValueError, match=r"'a' as text in a\.csv, part 1, as number"):
        read_all(source)


def test_columns_that_are_missing(frame: pd.DataFrame) -> None:
    source = open_source(frame)
    source.check_columns(["a", "y"])
    with pytest.raises(ValueError, match="must have the column 'z', got the frame wi"):
        source.check_columns(["a", "z"])


def test_a_changed_frame_of_a_function_is_named(frame: pd.DataFrame) -> None:
    source = open_source(lambda: iter([frame, frame[["a"]]]))
    with pytest.raises(ValueError, match="frame 1 without the column 'text' of what"):
        read_all(source)
