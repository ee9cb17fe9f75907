"""Odd files: whatever the bytes, they are read, or refused in one way."""

import csv
import io
import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from localexpert.reading import ColumnReader, FileFormat, TableError
from localexpert.reading.files import read_table

WORDS = st.one_of(
    st.sampled_from(["", "y", "NA", "1", "-2.5", "1e400", "inf", "1_0", "\u0661"]),
    st.sampled_from(["2024-01-01", "31.12.2024", "03/04/2025", '"', "a\nb", "\0", ";"]),
    st.floats().map(str),
    st.text(max_size=6),
)
ROWS = st.lists(st.lists(WORDS, min_size=1, max_size=5), max_size=9)
NAMES = st.lists(WORDS, min_size=1, max_size=4)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("odd") / "t.csv"


def read(path, data, decimal=None, order=None):
    """Return whether bytes can be learned from; features and targets are sound."""
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            frame = read_table(str(path), FileFormat(decimal=decimal))
            reader = ColumnReader("y", date_order=order).fit(frame)
        except TableError:
            return False
        features, y = reader.transform(frame), reader.read_target(frame)
        assert reader.lay_out()
    assert len(features) == len(y) == len(frame)
    assert not np.isinf(y).any()
    assert np.isfinite(y).sum() > 1
    assert not np.isinf(features.select_dtypes(np.float64)).to_numpy().any()
    return True


@given(st.binary(max_size=200))
@example(b"\xff\xfey\x00")
@example(b"PAR1")
@example(b"\x1f\x8b\x08")
def test_bytes(path, data):
    read(path, data)


@given(NAMES, ROWS, st.sampled_from(",;\t"), st.sampled_from(["\n", "\r\n", "\r"]))
def test_tables(path, names, rows, mark, end):
    even = [(row * 5)[: len(names) + 1] for row in rows]
    text = end.join(mark.join(row) for row in [["y", *names], *even])
    for options in ((None, None), (",", "dmy")):
        read(path, text.encode("utf-8", "surrogatepass"), *options)


@given(st.lists(st.lists(WORDS, min_size=3, max_size=3), min_size=2, max_size=9))
def test_sound_targets_with_odd_features(path, rows):
    """Quoted as they should be, and the target a number."""
    buffer = io.StringIO(newline="")
    numbered = ([str(i), *row] for i, row in enumerate(rows))
    csv.writer(buffer).writerows([["y", "a", "b", "c"], *numbered])
    read(path, buffer.getvalue().encode("utf-8", "surrogatepass"))
