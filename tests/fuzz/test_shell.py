"""The shell on tables of all kinds, from file to file, in one process."""

import contextlib
import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from localexpert.cli.main import main
from tests.fuzz.cases import NAMED, pick
from tests.fuzz.test_fits import draw_target

SHARE = 0.005
pytestmark = pytest.mark.slow

# Above 2^53: a float cannot tell it from its neighbours.
FIRST_ID = 1234567890123456789
GAPS = ("", "NA", "null", "?")
STRANGE = (b'"', b"\n", b",", b";", b"\0", b"\xff", b"1e999", b"nan", b"-inf")
WORDS = ["flat", "a,b", 'say "x"', "ü", "two\nlines", "1_0", "007", "=1+1"]


def run(*words):
    """Return the code, the output, and the lines that stand on stderr."""
    # With the buffer that bytes are written to, as a stream of the system's has.
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="")
    err = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(word) for word in words])
    lines = err.getvalue().splitlines()
    assert code in (0, 2)
    # At the end `fit` tells what it has read and learned, as a table.
    told = lines[: lines.index("")] if words[0] == "fit" and "" in lines else lines
    assert all(line.startswith("localexpert: ") for line in told), lines
    assert sum(line.startswith("localexpert: error: ") for line in lines) == (code == 2)
    out.flush()
    return code, out.buffer.getvalue().decode(), lines


def draw_frame(rng, n):
    """Return a table as pandas holds it: an id, a target and features with gaps."""
    z = rng.normal(size=n)
    y, _ = draw_target(rng, z)
    gaps = rng.uniform(size=n) < 0.1
    columns = {
        "id": FIRST_ID + rng.permutation(n),
        "y": y,
        "number": pd.Series(z + rng.normal(size=n)).mask(gaps),
        "big": pd.array((1e17 * np.round(z, 2)).astype(np.int64), "Int64"),
        "word": pd.Series(rng.choice(WORDS, n), dtype="str").mask(gaps),
        "flag": pd.array(z > 0.0, "boolean"),
        "day": pd.Series(np.datetime64("2024-01-01") + rng.integers(0, 900, n)),
        "weight": rng.integers(0, 3, n),
        "group": rng.integers(0, 9, n) + FIRST_ID,
        "score": (rng.uniform(size=n)).round(2),
        "label": np.where(rng.uniform(size=n) < 0.5, "yes", "no"),
    }
    useful = rng.permutation(["number", "big", "word", "flag", "day"])
    dropped = useful[: rng.integers(4)].tolist()
    return pd.DataFrame(columns).drop(columns=dropped)


def write(rng, frame, path):
    """Write a table as delimited text, and return the options that it is read with."""
    mark = pick(rng, ",", ";", "\t")
    table = frame.copy()
    if "day" in table:
        table["day"] = table["day"].dt.strftime("%Y-%m-%d")
    table.to_csv(path, sep=mark, index=False, na_rep=pick(rng, *GAPS))
    return path


def split(text):
    """Return the rows of a table that is written with the mark of the input."""
    head = text.partition("\n")[0]
    mark = max(",;\t", key=head.count)
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=mark))


def read(path):
    header, *rows = split(path.read_bytes().decode())
    return {name: [row[j] for row in rows] for j, name in enumerate(header)}


def test_model(seed, tmp_path):
    rng = np.random.default_rng(seed)
    frame = draw_frame(rng, int(rng.integers(15, 60)))
    table = write(rng, frame, tmp_path / "train.csv")
    packed = tmp_path / "train.parquet"
    frame.to_parquet(packed)
    model = tmp_path / "model.zip"
    words = ["--target", "y", "--fast", "--seed", "0", "--thresholds-count", "3"]
    words += ["--drop", "id,score,label", "--folds", "2", "--jobs", "1"]
    if rng.uniform() < 0.3:
        words += ["--weight", "weight"]
    if rng.uniform() < 0.3:
        words += ["--group", "group"]
    code, out, lines = run("fit", table, *words, "--out", model)
    assert out == ""
    assert model.exists() == (code == 0)
    if code:
        assert NAMED.search(lines[-1]), lines[-1]
        return
    forecasts = predict(model, table, tmp_path)
    check_forecasts(forecasts, frame)
    assert predict(model, packed, tmp_path) == forecasts
    order = rng.permutation(len(frame))
    other = write(rng, frame.iloc[order].drop(columns="y"), tmp_path / "other.csv")
    moved = {name: [cells[i] for i in order] for name, cells in forecasts.items()}
    assert predict(model, other, tmp_path) == moved
    code, out, _ = run("evaluate", model, table, "--json")
    assert code == 0
    # Rows that count for nothing are new to the model, and scored alone.
    assert 0 < json.loads(out)["rows"] <= len(frame)
    check_mutants(rng, model, table)


def predict(model, table, folder):
    out = folder / "forecasts.csv"
    words = ["--keep", "id", "--quantiles", ".1,.5,.9", "--exceed", "0"]
    code, _, lines = run("predict", model, table, *words, "--out", out)
    assert code == 0, lines
    return read(out)


def check_forecasts(forecasts, frame):
    """Keys keep their digits; forecasts are finite, in range and in order."""
    assert forecasts["id"] == frame["id"].astype(str).tolist()
    names = ("mean", "std", "q0.1", "q0.5", "q0.9", "p_above_0")
    values = {name: np.array(forecasts[name], dtype=float) for name in names}
    assert all(np.isfinite(column).all() for column in values.values())
    assert (values["q0.1"] <= values["q0.5"]).all()
    assert (values["q0.5"] <= values["q0.9"]).all()
    assert ((values["p_above_0"] >= 0.0) & (values["p_above_0"] <= 1.0)).all()


def check_mutants(rng, model, table):
    """A file with strange characters is forecast or refused in one line."""
    content = bytearray(table.read_bytes())
    for _ in range(3):
        place = int(rng.integers(len(content)))
        content[place : place + 1] = pick(rng, *STRANGE)
        table.write_bytes(content)
        code, out, _ = run("predict", model, table, "--quantiles", ".5")
        rows = split(out)[1:]
        assert (len(rows) > 0) == (code == 0)
        assert np.isfinite(np.array(rows, dtype=float)).all()
