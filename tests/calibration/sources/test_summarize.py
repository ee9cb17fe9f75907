"""`summarize`: the summary of all rows at once, from any parts in any order."""

import itertools

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask import delayed
from distributed import Client

from calibration import (
    BetaCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    ScoreSummary,
    summarize,
)
from calibration.sources.score_reader import merge_stream, merge_summaries, merge_tree
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
    assert_same(summarize(unknown, max_cells=64), weighted)


def test_real_weights_are_the_same_here_and_there(tmp_path, rng, frame):
    frame["w"] = rng.exponential(size=6000)
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=350)
    here = summarize(tmp_path, "s", "y", "w", max_cells=64)
    with Client(processes=False, dashboard_address=":0", n_workers=1) as client:
        there = summarize(tmp_path, "s", "y", "w", max_cells=64, client=client)
    assert_same(here, there)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 17, 63, 64, 65, 72, 513])
def test_sums_of_both_trees_have_the_same_bits(rng, n):
    leaves = list(rng.normal(size=n))
    assert merge_stream(iter(leaves)) == merge_tree(leaves, merge_summaries)


def test_parts_without_rows_merge_to_nothing():
    assert merge_stream(iter([])) is None
    assert merge_stream(iter([None] * 9)) is None
    assert merge_stream(iter([None, 1.0, None])) == 1.0


@pytest.mark.parametrize("method", [BetaCalibrator, PlattCalibrator])
def test_a_smooth_map_lies_within_the_displacement_of_the_exact_one(frame, method):
    bounded = summarize(frame, "s", "y", max_cells=256)
    assert 0.0 < bounded.max_displacement <= 1.0 / 128
    exact = method().fit(frame["s"], frame["y"])
    merged = method().fit_summary(bounded)
    grid = np.linspace(0.0, 1.0, 2001)
    gap = np.abs(merged.predict(grid) - exact.predict(grid)).max()
    assert gap <= bounded.max_displacement


def test_an_isotonic_map_adds_up_to_the_exact_one_but_for_a_cell(frame):
    bounded = summarize(frame, "s", "y", max_cells=256)
    exact = IsotonicCalibrator().fit(frame["s"], frame["y"])
    merged = IsotonicCalibrator().fit_summary(bounded)
    # Slopes of convex minorants, of which one sees the ends of cells alone.
    width = bounded.max_displacement
    ends = (np.floor(bounded.scores / width) + 1.0) * width
    rows = np.sort(frame["s"])
    upto = np.searchsorted(rows, ends)
    sums = np.cumsum(exact.predict(rows))[upto - 1]
    gap = np.cumsum(bounded.weight * merged.predict(bounded.scores)) - sums
    assert np.abs(gap).max() <= bounded.weight.max()
    assert abs(gap[-1]) < 1e-6


def test_one_class_only_and_parts_of_one_class(frame):
    parts = [frame[frame["y"] == 0], frame[frame["y"] == 1]]
    got = summarize(lambda: iter(parts), "s", "y", max_cells=64)
    assert_same(got, summarize(frame, "s", "y", max_cells=64))
    assert summarize(lambda: iter(parts[:1]), "s", "y").n1 == 0.0


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
    with pytest.raises(ValueError, match=f"`source` has no sound rows in {message}"):
        summarize(given, "s", "y", n_jobs=2)


def test_negative_weights_texts_and_missing_columns(tmp_path, frame):
    with pytest.raises(ValueError, match=r"in the frame.*must not be negative, got -1"):
        summarize(frame.assign(w=-1), "s", "y", "w")
    with pytest.raises(TypeError, match=r"in the frame.*`scores` must be numeric"):
        summarize(frame.assign(s="high"), "s", "y")
    with pytest.raises(
        ValueError, match="`score` must be a column of the frame, which"
    ):
        summarize(frame, "p", "y")
    with pytest.raises(ValueError, match=r"`label` must be a column .* got 'label'"):
        summarize(frame, "s")
    with pytest.raises(ValueError, match=r"`weight` must be a column .* got 'v'"):
        summarize(frame, "s", "y", "v")
    with pytest.raises(ValueError, match="at least one row that counts, got none"):
        summarize(frame.assign(w=0), "s", "y", "w")
    frame.to_parquet(tmp_path / "a.parquet")
    frame[["y"]].to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"got b.parquet without the column 's' of a"):
        summarize(tmp_path, "s", "y")
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"whole files, got b.parquet, which is cut"):
        summarize(tmp_path, "s", "y")


def test_arrays_that_do_not_fit_and_others(frame):
    s = da.ones(6, chunks=3)
    with pytest.raises(ValueError, match="Dask arrays of one length, got 6 and 5"):
        summarize((s, da.ones(5, chunks=3)))
    with pytest.raises(
        ValueError, match=r"two or three Dask .*got shape \(6,\), ndarr"
    ):
        summarize((s, np.ones(6)))
    with pytest.raises(ValueError, match=r"got shape \(2, 3\), shape \(2, 3\)"):
        summarize((s.reshape(2, 3), s.reshape(2, 3)))
    cut = [da.from_delayed(delayed(np.ones)(3), (np.nan,), float) for _ in range(2)]
    with pytest.raises(ValueError, match="same blocks where their sizes are unknown"):
        summarize((da.concatenate(cut), cut[0]))
    with pytest.raises(ValueError, match=r"rows in block [23], columns 'scores'"):
        summarize((da.concatenate([s, s * np.nan]), da.ones(12, chunks=6)))
    with pytest.raises(TypeError, match="`client` must be a Client of Dask, got str"):
        summarize(frame, "s", "y", client="localhost")
    with pytest.raises(ValueError, match="`max_cells` must be at least 2, got 1"):
        summarize(frame, "s", "y", max_cells=1)
    with pytest.raises(ValueError, match="`n_jobs` must not be 0"):
        summarize(frame, "s", "y", n_jobs=0)


@pytest.mark.parametrize("cells", [4, 16, 256])
def test_sums_of_steps_differ_by_a_quarter_of_a_cell_at_most(rng, cells):
    for n in (30, 400, 5000):
        s, w = rng.uniform(size=n), rng.integers(1, 4, n).astype(float)
        y = rng.uniform(size=n) < 0.5 + 0.3 * np.sin(9.0 * s)
        summary = ScoreSummary.from_scores(s, y, w, max_cells=cells)
        exact = IsotonicCalibrator().fit(s, y, w).predict(s)
        held = summary.weight0 + summary.weight1
        steps = IsotonicCalibrator().fit_summary(summary).predict(summary.scores)
        # Cells hold runs of the sorted scores, which their weights part.
        order = np.argsort(s)
        upto = np.cumsum((w * exact)[order])
        ends = np.searchsorted(np.cumsum(w[order]), np.cumsum(held) - 0.5)
        more = np.cumsum(held * steps) - upto[ends]
        most = (summary.weight0 * summary.weight1 / held).max()
        assert (more >= -1e-8 * n).all()
        assert (more <= most + 1e-8 * n).all()
        assert most <= 0.25 * held.max()
