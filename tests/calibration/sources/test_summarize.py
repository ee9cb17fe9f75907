"""`summarize`: the summary of all rows at once, from any parts in any order."""

import itertools

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from calibration import BetaCalibrator, PlattCalibrator, ScoreSummary, summarize
from tests.calibration.test_summary import assert_same


@pytest.fixture
def frame(rng):
    """Scores that mean less than they say, labels, weights with zeros."""
    s = rng.beta(1.5, 2.0, 6000)
    y = (rng.uniform(size=6000) < s**2).astype(np.int8)
    return pd.DataFrame({"s": s, "y": y, "w": rng.integers(0, 4, 6000)})


def in_parts(frame, ends):
    """Return frames of the rows between ends, some without rows."""
    edges = [0, *ends, len(frame)]
    return [frame.iloc[a:b] for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("max_cells", [None, 64])
def test_any_parts_in_any_order_are_the_whole(rng, frame, weight, max_cells):
    counts = None if weight is None else frame["w"]
    whole = ScoreSummary.from_scores(
        frame["s"], frame["y"], counts, max_cells=max_cells
    )
    for _ in range(4):
        ends = np.sort(rng.integers(0, 6000, rng.integers(1, 30)))
        parts = in_parts(frame.sample(frac=1.0, random_state=1), ends)
        rng.shuffle(parts)
        got = summarize(lambda p=parts: iter(p), "s", "y", weight, max_cells=max_cells)
        assert_same(got, whole)


def test_files_threads_and_partitions_agree(tmp_path, frame):
    frame.iloc[:3000].to_parquet(tmp_path / "a.parquet", row_group_size=500)
    frame.iloc[3000:].to_parquet(tmp_path / "b.parquet", row_group_size=500)
    frame.to_csv(tmp_path / "c.csv", index=False)
    whole = summarize(frame, "s", "y", max_cells=64)
    for source in (tmp_path, tmp_path / "c.csv", dd.from_pandas(frame, npartitions=9)):
        assert_same(summarize(source, "s", "y", max_cells=64, n_jobs=2), whole)
    known = da.from_array(frame["s"].to_numpy(), chunks=700)
    labels = da.from_array(frame["y"].to_numpy(), chunks=900)
    assert_same(summarize((known, labels), max_cells=64), whole)
    table = dd.from_map(lambda i: frame.iloc[600 * i : 600 * i + 600], range(11))
    unknown = [table[name].to_dask_array() for name in ("s", "y", "w")]
    assert_same(summarize(unknown[:2], max_cells=64), whole)
    weighted = ScoreSummary.from_scores(*frame.to_numpy().T, max_cells=64)
    assert_same(summarize(unknown, weight="w", max_cells=64), weighted)


@pytest.mark.parametrize("method", [BetaCalibrator, PlattCalibrator])
def test_a_smooth_map_lies_within_the_displacement_of_the_exact_one(frame, method):
    bounded = summarize(frame, "s", "y", max_cells=256)
    assert 0.0 < bounded.max_displacement <= 1.0 / 128
    exact = method().fit(frame["s"], frame["y"])
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
def test_bad_rows_are_named_with_their_part(tmp_path, frame, source, change, message):
    parts = in_parts(frame.astype(float), [2000, 4000])
    ((column, value),) = change.items()
    parts[1] = parts[1].copy()
    parts[1].iloc[5, parts[1].columns.get_loc(column)] = value
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
        (
            {},
            "py",
            ValueError,
            "`score` must be .* got 'p'; the frame has 's'",
        ),
        ({}, ["s", 3], TypeError, "`label` must be the name of a column, got 3"),
    ],
)
def test_what_cannot_be_summarised(frame, change, given, error, message):
    with pytest.raises(error, match=message):
        summarize(frame.assign(**change), *given)


def test_blocks_and_settings_are_named(frame):
    s = da.ones(6, chunks=3)
    with pytest.raises(ValueError, match=r"rows in partition [23], columns 'score'"):
        summarize((da.concatenate([s, s * np.nan]), da.ones(12, chunks=6)))
    with pytest.raises(ValueError, match="`max_cells` must be at least 2, got 1"):
        summarize(frame, "s", "y", max_cells=1)
    with pytest.raises(ValueError, match="`n_jobs` must not be 0"):
        summarize(frame, "s", "y", n_jobs=0)
