"""Training rows are known again, and what a model keeps of them is counted exactly."""

import numpy as np
import pandas as pd
import pytest

from localexpert.data.table import Table, TableReader
from localexpert.data.training_rows import (
    ColumnSummary,
    TableSummary,
    TrainingSketch,
    hash_rows,
)


@pytest.mark.parametrize("n", [1, 2, 33, 34, 500])
def test_counts_are_those_of_the_cells(n, rng):
    values = rng.normal(size=n).round(2)
    told = ColumnSummary.of(values, np.ones(n), None)
    assert len(told.edges) <= 33
    assert (told.edges[0], told.edges[-1]) == (values.min(), values.max())
    for j, edge in enumerate(told.edges):
        assert told.counts[2 * j + 1] == np.sum(values == edge)
        after = told.edges[j + 1] if j + 1 < len(told.edges) else np.inf
        assert told.counts[2 * j + 2] == np.sum((values > edge) & (values < after))
    np.testing.assert_array_equal(told.sample(), np.sort(told.place(values)))


def test_counts_of_weighted_rows_are_of_as_many_as_they_tell():
    values, weight = np.array([7.0, 1.0, np.nan, 2.0, 3.0]), np.ones(5)
    weight[1] = 3.0
    # 7^2 / 13 = 3.8 rows: at the levels 1/8, 3/8, ... are 1, 1, 3 and nothing.
    told = ColumnSummary.of(values, weight, None)
    assert told.edges.tolist() == [1.0, 2.0, 3.0, 7.0]
    assert told.counts[1::2].tolist() == [2, 0, 1, 0]
    assert told.n_missing == 1
    codes = ColumnSummary.of(values, weight, 8)
    assert codes.counts.tolist() == [0, 2, 0, 1, 0, 0, 0, 0]


def test_of_a_table_of_all_kinds_without_rows_that_do_not_count():
    kinds = pd.Categorical(["a", "b", None, "b"], ["a", "b", "c"], ordered=True)
    frame = pd.DataFrame({"kind": kinds, "size": [1.0, 2.0, 3.0, np.nan]})
    frame = frame.assign(nothing=np.nan, flag=[True, False, True, True])
    told = TableSummary.of(Table.of(frame), np.array([5.0, 5.0, 0.0, 5.0]))
    kind, size, nothing, flag = told.columns
    assert told.n_rows == 3
    assert kind.edges is None
    assert kind.counts.tolist() == [1, 2, 0]
    assert size.edges.tolist() == [1.0, 2.0]
    assert size.counts.tolist() == [0, 1, 0, 1, 0]
    assert flag.counts.tolist() == [0, 1, 0, 2, 0]
    assert [c.n_missing for c in told.columns] == [0, 1, 3, 0]
    assert nothing.counts.tolist() == [0]


def test_new_gaps_take_values_of_training(rng):
    days = pd.Timestamp("2020-02-28") + pd.to_timedelta(rng.integers(0, 999, 600), "D")
    kind = np.append("rare", rng.choice(["a", "z"], 599, p=[0.3, 0.7]))
    x, gap = rng.normal(size=600), np.append(np.nan, np.ones(599))
    table = Table.of(pd.DataFrame({"x": x, "day": days, "kind": kind, "gap": gap}))
    # One light row with a gap is a gap.
    weight = np.append(1e-6, np.full(599, 1.0))
    summary = TableSummary.of(table, weight)
    new = np.where(np.eye(2, table.codes.shape[1]), 0.5, np.nan)
    assert not summary.find_new_gaps(new)[:, -1].any()
    assert summary.find_new_gaps(new).sum() == new[:, :-1].size - 2
    copies = np.stack(list(summary.fill(new, ordered=False)))
    assert np.isnan(copies[:, :, -1]).all()
    assert (copies[:, 0, 0] == 0.5).all()
    assert np.isin(copies[:, 1, 0], x).all()
    assert abs(copies[:, 1, 0].mean() - x.mean()) < 0.15
    assert abs(copies[:, 1, 0].std() - 1.0) < 0.2
    # The features of a date agree, as in some training row.
    held = {tuple(row) for row in table.codes[:, 1:-2].tolist()}
    assert all(tuple(row) in held for row in copies[:, 0, 1:-2].tolist())
    assert sorted(set(copies[:, 0, -2].tolist())) == [0.0, 2.0]
    (usual,) = summary.fill(new, ordered=True)
    assert abs(usual[1, 0] - np.median(x)) < 0.01
    assert usual[0, -2] == 2.0


def test_a_table_that_is_not_for_us_has_none():
    lists = pd.DataFrame({"bag": [[1], [2], [3]]})
    assert TableSummary.of(Table.of(lists), np.ones(3)) is None


def smooth(rng, n, p=3):
    X = rng.normal(size=(n, p))
    return X, X[:, 0] + rng.normal(size=n)


def sketch_of(X, y):
    return TrainingSketch.of(hash_rows(Table.of(X), y))


def test_of_many_rows_a_share_is_known(rng):
    X, y = smooth(rng, 30_000)
    sketch = sketch_of(X[:20_000], y[:20_000])
    assert (len(sketch.hashes), sketch.is_whole) == (8192, False)
    seen = sketch.find(hash_rows(Table.of(X[10_000:]), y[10_000:]))
    # Four deviations of a share of about 8200 rows.
    assert seen.share == pytest.approx(0.5, abs=0.022)
    assert seen.learned is None
    assert f"judged by {seen.n_checked:,} of them" in str(seen)
    new = sketch.find(hash_rows(Table.of(X[20_000:]), y[20_000:]))
    assert (new.found, new.share) == (False, 0.0)
    few = sketch.find(hash_rows(Table.of(X[:30]), y[:30]))
    assert (few.share, few.found) == (None, False)
    assert "cannot be told" in str(few)


def test_new_rows_of_a_table_of_few_cells_are_not_taken_for_old_ones(rng):
    for n in (60, 800, 20_000):
        X, y = rng.integers(2, size=(n, 3)).astype(float), rng.poisson(2.0, n) * 1.0
        assert TrainingSketch.learn([(Table.of(X), y, np.ones(n))]) is None
        seen = sketch_of(X, y).find(hash_rows(Table.of(X), y))
        assert (seen.share, seen.found) == (None, False)


def test_chance_is_allowed_for(rng):
    # One of 4000 cells each: some ten in a hundred training rows have an equal.
    claims = 0
    for _ in range(60):
        cells = rng.integers(4000, size=(700, 1)).astype(float)
        sketch = sketch_of(cells[:400], np.zeros(400))
        if sketch.recognises:
            seen = sketch.find(hash_rows(Table.of(cells[400:]), np.zeros(300)))
            claims += seen.found
            equal = np.isin(cells[400:], cells[:400]).sum()
            assert seen.n_equal == equal
            if not seen.found:
                none = "None of the 300 rows seems to be a training row"
                said = f"{none}: {equal} equal one, which may be by chance."
                assert str(seen) == said
            assert sketch.find(hash_rows(Table.of(cells[:300]), np.zeros(300))).found
    assert claims <= 1


def test_rows_are_the_same_in_any_order_container_and_precision(rng):
    polars = pytest.importorskip("polars", reason="a data frame of polars")
    cells = rng.normal(size=(60, 2)).astype(np.float32)
    frame = pd.DataFrame(cells, columns=["a", "b"])
    frame["town"] = rng.choice(["x", "y", None], 60)
    frame.loc[:5, "a"] = np.nan
    y = rng.normal(size=60)
    reader = TableReader.learn(frame)
    want = hash_rows(reader.read(frame), y)
    doubled = frame.astype({"a": np.float64, "town": "category"})
    turned = frame[["town", "b", "a"]]
    other = TableReader.learn(turned)
    again = reader.read(polars.from_pandas(frame))
    for table in (reader.read(doubled), other.read(turned), again):
        np.testing.assert_array_equal(hash_rows(table, y), want)
    swapped = frame.rename(columns={"a": "b", "b": "a"})
    assert not sketch_of(swapped, y).find(want).found


def test_hashes_are_those_of_other_processes_and_versions():
    # Saved models hold such numbers: they are the same everywhere, and for good.
    X = np.array([[0.0, 1.5], [-7.25, np.nan]])
    for_good = [1346240360053358926, 16540310798438014154]
    assert sketch_of(X, X[:, 0]).hashes.tolist() == for_good


def test_it_does_not_depend_on_how_a_table_is_parted(rng):
    X, y = smooth(rng, 25_000)
    X[-500:], y[-500:] = X[:500], y[:500]
    whole = sketch_of(X, y)
    cuts = np.split(np.arange(25_000), [100, 12_000, 21_000])
    joined = TrainingSketch.learn(
        (Table.of(X[part]), y[part], np.ones(len(part))) for part in cuts
    )
    np.testing.assert_array_equal(joined.hashes, whole.hashes)
    np.testing.assert_array_equal(joined.counts, whole.counts)
    assert joined.n_rows == 25_000
