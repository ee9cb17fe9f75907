"""Every way a large table comes in, and the summary of all of its rows."""

import itertools
from itertools import chain

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calibration import BetaCalibrator, PlattCalibrator, ScoreSummary, summarize
from calibration.sources import open_parts
from tests.calibration.test_summary import assert_same


@pytest.fixture
def frame(rng):
    texts = ["plain", 'a "quoted"\nline', "one, two", "007"]
    return pd.DataFrame(
        {
            "a": rng.normal(size=1000).astype(np.float32),
            "text": rng.choice(texts, 1000),
            "y": rng.normal(size=1000),
        }
    )


class Gather:
    """A job that returns all parts, and the names of all."""

    def __call__(self, name, frame):
        return [name], frame

    def merge(self, parts):
        names, frames = zip(*parts, strict=True)
        return list(chain(*names)), pd.concat(frames, ignore_index=True)


def read_all(parts, **how):
    """Return names and rows of all parts; twice, which must be the same."""
    opened = open_parts(parts, **how)
    (names, once), (again, twice) = (opened.ask(Gather()) for _ in range(2))
    assert names == again
    pd.testing.assert_frame_equal(once, twice)
    return names, once


WAYS = {
    "a frame": lambda f, _: f,
    "frames": lambda f, _: [f[:0], f[:300], f[300:]],
    "a function": lambda f, _: lambda: iter([f[:300], f[300:300], f[300:]]),
    "Dask": lambda f, _: dd.from_pandas(f, npartitions=7),
    "hollow Dask": lambda f, _: dd.concat(
        [(d := dd.from_pandas(f, npartitions=3))[d["a"] > 1e9], d]
    ),
    **{
        suffix: lambda f, folder, s=suffix: (
            f.to_csv(folder / f"t{s}", index=False) or folder / f"t{s}"
        )
        for suffix in (".csv", ".csv.gz", ".csv.zip", ".csv.bz2", ".csv.xz")
    },
    "Parquet": lambda f, folder: (
        f.to_parquet(folder / "t.parquet", row_group_size=90) or [folder / "t.parquet"]
    ),
    "a folder": lambda f, folder: (
        f[:700].to_parquet(folder / "1.parquet", row_group_size=100)
        or (folder / "2.parquet").mkdir()
        or f[700:].to_parquet(folder / "2.parquet" / "0.parquet")
        or (
            [
                (folder / name).mkdir() or f.to_parquet(folder / name / "1.parquet")
                for name in ("_temporary", ".ipynb_checkpoints")
            ]
            and ((folder / "_metadata.parquet").write_text("no table") and folder)
        )
    ),
}


@pytest.mark.parametrize("rows", [250, 10_000])
@pytest.mark.parametrize("way", WAYS)
def test_all_rows_come_in_order_at_each_pass(tmp_path, frame, way, rows):
    parts = WAYS[way](frame, tmp_path)
    _, found = read_all(parts, rows_per_part=rows)
    pd.testing.assert_frame_equal(
        found.astype({"text": object, "a": np.float32}), frame.astype({"text": object})
    )
    _, some = read_all(parts, columns={"label": "y", "score": "a"}, rows_per_part=rows)
    assert list(some) == ["y", "a"]


def test_parts_are_named(tmp_path, frame):
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=100)
    frame[:300].to_csv(tmp_path / "b.csv", index=False)
    names, _ = read_all(sorted(tmp_path.iterdir()), rows_per_part=350)
    of_a = [f"a.parquet, row groups {k}" for k in ("0-2", "3-5", "6-8", "9-9")]
    assert names == [*of_a, "b.csv"]
    names, _ = read_all(str(tmp_path / "b.csv"), rows_per_part=200)
    assert names == ["b.csv, rows from 1", "b.csv, rows from 201"]
    frame.attrs["name"] = "January"
    assert read_all(lambda: iter([frame]))[0] == ["January"]


def test_digits_of_texts_stay(tmp_path):
    (tmp_path / "a.csv").write_text("zip\nx1\nx2\n007\n008\n")
    _, found = read_all(tmp_path / "a.csv", rows_per_part=2)
    assert found["zip"].to_list() == ["x1", "x2", "007", "008"]


def test_truths_with_gaps_are_truths_whatever_the_parts_are(tmp_path):
    (tmp_path / "t.csv").write_text("n,t\n1,True\n2,\n3,False\n4,True\n")
    for most in (1, 2, 3, 4):
        held = read_all(tmp_path / "t.csv", rows_per_part=most)[1]["t"]
        assert held.dropna().tolist() == [True, False, True]


def test_an_index_of_pandas_is_no_column(tmp_path, frame):
    frame.index = pd.Index(np.arange(1000) + 5, name="row")
    frame.to_parquet(tmp_path / "a.parquet")
    assert list(read_all(tmp_path)[1]) == ["a", "text", "y"]


def test_no_rows_have_no_answer(frame):
    assert open_parts(lambda: iter([])).ask(Gather()) is None
    assert open_parts([frame[:0]] * 9).ask(Gather()) is None
    assert open_parts(dd.from_pandas(frame[:0], npartitions=1)).ask(Gather()) is None


def _cut(name):
    def write(folder):
        frame = pd.DataFrame({"y": np.random.default_rng(0).normal(size=5000)})
        path = folder / name
        parquet = name.endswith("parquet")
        (frame.to_parquet if parquet else frame.to_csv)(path, index=False)
        path.write_bytes(path.read_bytes()[:-60])
        return path

    return write


def _damaged(folder):
    path = folder / "a.parquet"
    pd.DataFrame({"y": np.arange(1000.0)}).to_parquet(path, compression=None)
    data = bytearray(path.read_bytes())
    data[4:60] = bytes(56)
    path.write_bytes(bytes(data))
    return path


def _twice(folder):
    table = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], ["y", "y"])
    pq.write_table(table, folder / "a.parquet")
    return folder


def _csv(text):
    return lambda folder: (folder / "bad.csv").write_text(text) and folder / "bad.csv"


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (_cut("a.parquet"), ValueError, r"must be whole files, got a\.parquet, which"),
        (_damaged, ValueError, r"must be whole files, got a\.parquet"),
        *(
            (_cut(f"a.csv.{kind}"), ValueError, rf"whole files, got a\.csv\.{kind}, wh")
            for kind in ("gz", "zip", "bz2", "xz")
        ),
        (_csv("\n"), ValueError, r"whole files, got bad\.csv, .* No columns"),
        (_csv('a,y\n1,2\n"3,'), ValueError, r"bad\.csv, .* EOF inside string"),
        (_csv("a,y\n1,2\n1,2,3\n"), ValueError, r"bad\.csv, .* Error tokenizing data"),
        (_csv("a,y\n1,2,\n1,3,\n"), ValueError, r"bad\.csv, whose first row below th"),
        (_csv("y,a,y\n1,2,3\n"), ValueError, r"names, got 'y' twice in bad\.csv"),
        (_twice, ValueError, r"different names, got 'y' twice in a\.p"),
        (lambda folder: folder, ValueError, "folder with Parquet files, got .* with"),
        (lambda _: [], ValueError, "at least one file or frame, got an empty list"),
        (lambda f: f / "table.xlsx", ValueError, r"that end in one of .*, got .*xlsx"),
        (lambda f: f / "none.csv", FileNotFoundError, r"exist, got .*none\.csv"),
        (lambda _: 3, TypeError, "must be a path, .* got int"),
        (lambda _: [3], TypeError, "must list paths or frames alone, got int"),
        (lambda _: lambda: iter([1]), TypeError, "data frames, got int as frame 0"),
        (lambda _: lambda: 5, TypeError, "iterator of pandas data frames, got int"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, make, error, message):
    with pytest.raises(error, match=f"`parts` .*{message}") as caught:
        read_all(make(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_column_that_a_part_lacks(frame):
    with pytest.raises(ValueError, match=r"`label` must .* got 'y'; frame 1 has 'a'"):
        read_all([frame, frame[["a"]]], columns={"label": "y"})


def test_errors_name_the_part(frame):
    class Divide(Gather):
        def __call__(self, name, frame):
            return [name], len(frame) // (len(frame) - 5)

    with pytest.raises(ZeroDivisionError, match="by zero") as caught:
        open_parts([frame[:0], frame[:5]]).ask(Divide())
    assert caught.value.__notes__ == ["This is said of frame 1."]


# Scores that mean less than they say, labels, and weights with zeros.
RNG = np.random.default_rng(1)
SCORED = pd.DataFrame({"s": RNG.beta(1.5, 2.0, 6000), "w": RNG.integers(0, 4, 6000)})
SCORED["y"] = (RNG.uniform(size=6000) < SCORED["s"] ** 2).astype(np.int8)


def in_parts(frame, ends):
    """Return frames of the rows between ends, some without rows."""
    edges = [0, *ends, len(frame)]
    return [frame.iloc[a:b] for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize("kind", ["float64", "Float64", "Int64", "object"])
def test_a_gap_among_weights_is_no_weight_of_zero(kind):
    frame = pd.DataFrame({"score": [0.1, 0.2, 0.3], "label": [0, 1, 1]})
    frame["w"] = pd.Series([1, 0, None]).astype(kind)
    with pytest.raises(ValueError, match="`sample_weight` must be finite, got nan"):
        summarize(frame, weight="w")


@pytest.mark.parametrize("kind", ["float64", "Float64", "object"])
def test_rows_of_weight_0_count_among_places_alone(kind):
    frame = pd.DataFrame({"score": [None, 0.2, 0.3], "label": [None, 1, 0]})
    frame = frame.astype(kind).assign(w=[0, 1, 2])
    held = ScoreSummary.from_scores([0.2, 0.3, 0.3], [1, 0, 0])
    assert_same(summarize(frame, weight="w"), held)
    frame.loc[2, "score"] = np.inf
    with pytest.raises(ValueError, match="finite, got inf at position 2"):
        summarize(frame, weight="w")


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("max_cells", [None, 64])
def test_any_parts_in_any_order_are_the_whole(rng, weight, max_cells):
    counts = None if weight is None else SCORED["w"]
    rows = SCORED["s"], SCORED["y"], counts
    whole = ScoreSummary.from_scores(*rows, max_cells=max_cells)
    for _ in range(4):
        ends = np.sort(rng.integers(0, 6000, rng.integers(1, 30)))
        parts = in_parts(SCORED.sample(frac=1.0, random_state=1), ends)
        rng.shuffle(parts)
        got = summarize(lambda p=parts: iter(p), "s", "y", weight, max_cells=max_cells)
        assert_same(got, whole)


@pytest.mark.parametrize("method", [BetaCalibrator, PlattCalibrator])
def test_a_smooth_map_lies_within_the_displacement_of_the_exact_one(method):
    bounded = summarize(SCORED, "s", "y", max_cells=256)
    assert 0.0 < bounded.max_displacement <= 1.0 / 128
    exact = method().fit(SCORED["s"], SCORED["y"])
    merged = method().fit_summary(bounded)
    grid = np.linspace(0.0, 1.0, 2001)
    gap = np.abs(merged.predict(grid) - exact.predict(grid)).max()
    assert gap <= bounded.max_displacement


@pytest.mark.parametrize("source", ["files", "dask"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"s": np.nan}, "part_1.*'s' and 'y': `scores` must be finite, got nan"),
        ({"s": np.inf}, "part_1.*: `scores` must be finite, got inf"),
        ({"y": 2.0}, "part_1.*: `y` must hold the two classes coded 0 and 1, got 2"),
        ({"y": np.nan}, "part_1.*: `y` must be finite, got nan"),
    ],
)
def test_bad_rows_are_named_with_their_part(tmp_path, source, change, message):
    parts = in_parts(SCORED.astype(float), [2000, 4000])
    ((column, value),) = change.items()
    parts[1] = parts[1].copy()
    parts[1].loc[parts[1].index[5], column] = value
    if source == "files":
        for number, part in enumerate(parts):
            part.to_parquet(tmp_path / f"part_{number}.parquet")
        given = tmp_path
    else:
        given = dd.from_map(lambda i: parts[i], range(3), meta=parts[0].iloc[:0])
        message = message.replace("part_1", "partition 1")
    with pytest.raises(ValueError, match=f"`parts` has no sound rows in {message}"):
        summarize(given, "s", "y", n_jobs=2)


@pytest.mark.parametrize(
    ("change", "given", "error", "message"),
    [
        ({"w": -1}, "syw", ValueError, "in the frame.*must not be negative, got -1"),
        ({"s": "high"}, "sy", TypeError, "in the frame.*`scores` must be numeric"),
        ({"w": 0}, "syw", ValueError, "at least one row that counts, got the frame"),
        ({}, "py", ValueError, "`score` must be .* got 'p'; the frame has 's'"),
        ({}, "sys", ValueError, "`weight` must be different, got s, y, s"),
    ],
)
def test_what_cannot_be_summarised(change, given, error, message):
    with pytest.raises(error, match=message):
        summarize(SCORED.assign(**change), *given)
