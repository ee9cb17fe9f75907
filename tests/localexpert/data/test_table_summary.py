"""What a model keeps of its features is counted exactly, whatever they hold."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from localexpert.data.table import Table
from localexpert.data.training_rows import ColumnSummary, TableSummary


@pytest.mark.parametrize("n", [1, 2, 33, 34, 500])
def test_counts_are_those_of_the_cells(n, rng):
    values = rng.normal(size=n).round(2)
    told = ColumnSummary.of(values, None)
    assert len(told.edges) <= 33
    assert (told.edges[0], told.edges[-1]) == (values.min(), values.max())
    for j, edge in enumerate(told.edges):
        assert told.counts[2 * j + 1] == np.sum(values == edge)
        after = told.edges[j + 1] if j + 1 < len(told.edges) else np.inf
        assert told.counts[2 * j + 2] == np.sum((values > edge) & (values < after))
    np.testing.assert_array_equal(told.sample(), np.sort(told.place(values)))


def test_few_distinct_values_are_compared_as_they_are(rng):
    old, new = rng.poisson(3.0, size=400) + 0.0, rng.poisson(4.0, size=90) + 0.5
    told = ColumnSummary.of(old, None)
    want = ks_2samp(old, new)
    got = ks_2samp(told.sample(), told.place(new))
    assert got.statistic == pytest.approx(want.statistic)
    assert got.pvalue == pytest.approx(want.pvalue)


def test_of_a_table_of_all_kinds_without_rows_that_do_not_count():
    frame = pd.DataFrame(
        {
            "kind": pd.Categorical(["a", "b", None, "b"], categories=["a", "b", "c"]),
            "size": [1.0, 2.0, 3.0, np.nan],
            "nothing": [np.nan] * 4,
            "flag": [True, False, True, True],
        }
    )
    told = TableSummary.of(Table.of(frame), np.array([1.0, 5.0, 0.0, 1.0]))
    kind, size, nothing, flag = told.columns
    assert told.n_rows == 3
    assert kind.edges is None
    assert kind.counts.tolist() == [1, 2, 0]
    assert size.edges.tolist() == [1.0, 2.0]
    assert size.counts.tolist() == [0, 1, 0, 1, 0]
    assert flag.counts.tolist() == [0, 1, 0, 2, 0]
    assert [c.n_missing for c in told.columns] == [0, 1, 3, 0]
    assert nothing.counts.tolist() == [0]


def test_a_table_that_is_not_for_us_has_none():
    lists = pd.DataFrame({"bag": [[1], [2], [3]]})
    assert TableSummary.of(Table.of(lists), np.ones(3)) is None
