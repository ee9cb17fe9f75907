"""Odd files: whatever the bytes, code 0 or 2, no traceback, nothing half-written."""

import contextlib
import csv
import io
import os
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from localexpert.cli import fit
from localexpert.cli.main import main


class QuickRegressor:
    """Takes what the regressor takes, and learns nothing."""

    table_summary_ = None

    def __init__(self, **parameters):
        self.parameters = parameters

    def fit(self, frame, y, sample_weight, groups):
        assert frame.shape[0] == len(y)
        assert np.isfinite(y).all()
        for name in frame.columns:
            column = frame[name]
            if column.dtype != "category":
                assert not np.isinf(column.to_numpy(dtype=float)).any()
        assert sample_weight is None or (sample_weight >= 0).all()
        assert groups is None or len(groups) == len(y)
        self.bounds_ = (0.0 if y.min() >= 0.0 else -np.inf), np.inf


class QuickOrigin:
    """Notes figures that are always the same."""

    def __init__(self):
        self.below_zero = None
        self.scores = {who: defaultdict(float) for who in ("model", "climatology")}

    @classmethod
    def of(cls, *_):
        return cls()


def save_bytes(thing, path, option):
    assert thing.reader.feature_names_
    assert option == "--out"
    Path(path).write_bytes(b"model")


@pytest.fixture(scope="module", autouse=True)
def quick():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "LocalExpertRegressor", QuickRegressor)
        patch.setattr(fit, "Origin", QuickOrigin)
        patch.setattr(fit, "save_object", save_bytes)
        yield


WORDS = st.one_of(
    st.sampled_from(
        ["", "y", "NA", "1", "-2.5", "1e400", "inf", "1_0", "True", "\u0661"]
    ),
    st.sampled_from(["2024-01-01", "31.12.2024", "03/04/2025", '"', "a\nb", "\0", ";"]),
    st.floats().map(str),
    st.text(max_size=6),
)
TABLES = st.tuples(
    st.lists(WORDS, min_size=1, max_size=4).map(lambda names: ["y", *names]),
    st.lists(st.lists(WORDS, min_size=1, max_size=5), max_size=6),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
)


def run_fit(data, *options):
    """Fit a file of these bytes; check code, output and what is left behind."""
    with tempfile.TemporaryDirectory() as folder:
        table, out = os.path.join(folder, "t.csv"), os.path.join(folder, "m.zip")
        Path(table).write_bytes(data)
        err = io.StringIO()
        with contextlib.redirect_stderr(err):
            code = main(["fit", table, "--target", "y", "--out", out, *options])
        left = sorted(os.listdir(folder))
    # What is told of the columns follows after an empty line.
    lines = err.getvalue().partition("\n\n")[0].splitlines()
    assert code in (0, 2)
    assert all(line.startswith("localexpert: ") for line in lines)
    n_errors = sum(line.startswith("localexpert: error: ") for line in lines)
    assert n_errors == (code == 2)
    assert left == (["t.csv"] if code else ["m.zip", "t.csv"])
    return code


@given(st.binary(max_size=200))
@example(b"y,x\n1,2\n3,4\n")
@example(b"\xff\xfey\x00")
@example(b"PAR1")
@example(b"\x1f\x8b\x08")
def test_bytes(data):
    run_fit(data)


@given(TABLES, st.sampled_from([[], ["--decimal", ","], ["--date-order", "dmy"]]))
def test_tables(table, options):
    names, rows, mark, end = table
    width = len(names)
    even = [(row * width)[:width] for row in rows]
    text = end.join(mark.join(row) for row in [names, *even])
    run_fit(text.encode("utf-8", "surrogatepass"), *options)


@given(st.lists(st.lists(WORDS, min_size=3, max_size=3), min_size=2, max_size=9))
def test_sound_targets_with_odd_features(rows):
    """Quoted as they should be, and the target a number."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(["y", "a", "b", "c"])
    writer.writerows([str(i), *row] for i, row in enumerate(rows))
    run_fit(buffer.getvalue().encode("utf-8", "surrogatepass"))


def test_the_quick_fit_is_reached():
    assert run_fit(b"y,x\n1,2\n3,4\n") == 0
    assert run_fit(b"y,x\n1,2\n3,word\n") == 0
    assert run_fit(b"y,x\n1,2\nword,4\n") == 2
