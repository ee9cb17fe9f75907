"""Tables in files, and one saved model for all tests of the command line."""

import itertools

import numpy as np
import pandas as pd
import pytest

from localexpert import load
from localexpert.cli.main import main

# A fit in a moment; of the sample alone where rows are many.
QUICK = ["--fast", "--strategy", "shared", "--folds", 2, "--thresholds-count", 3]


def draw_houses(n, seed):
    """Return n houses: an id, gaps, a category, dates, a boolean, useless columns."""
    rng = np.random.default_rng(seed)
    area, kind = rng.uniform(30, 200, n), rng.choice(["flat", "house", "hut"], n)
    price = np.exp(rng.normal(0, 0.2, n)) * area * np.where(kind == "house", 10, 7)
    days = np.datetime64("2023-01-01") + rng.integers(700, size=n)
    return pd.DataFrame(
        {
            "id": [f"A{i}" for i in range(n)],
            "area": np.where(rng.uniform(size=n) < 0.05, "NA", area.round(1)),
            "kind": kind,
            "sold": days.astype(str),
            "garden": rng.choice(["True", "False", ""], n),
            "empty": "",
            "const": "x",
            "price": price.round(2),
        }
    )


def save_frame(frame, path, **how):
    """Write a table as CSV or Parquet."""
    save = frame.to_csv if path.suffix == ".csv" else frame.to_parquet
    save(path, index=False, **how)


@pytest.fixture
def write(tmp_path):
    """Return a function that writes columns to a file and names it."""

    def write_file(columns, name="table.csv", **how):
        save_frame(pd.DataFrame(columns), tmp_path / name, **how)
        return str(tmp_path / name)

    return write_file


@pytest.fixture
def run(capsys):
    """Return a function that runs the command: exit code, output, lines of stderr."""

    def run_main(*argv):
        code = main([str(word) for word in argv])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err.splitlines()

    return run_main


@pytest.fixture
def ok(run):
    """Return a function that runs a command that must do well: output, stderr."""

    def run_well(*argv):
        code, out, lines = run(*argv)
        assert code == 0, lines
        return out, lines

    return run_well


@pytest.fixture
def refused(run):
    """Return a function that runs a command to its one-line error."""

    def run_refused(*argv):
        code, out, lines = run(*argv)
        errors = [line for line in lines if line.startswith("localexpert: error: ")]
        assert code == 2
        assert out == ""
        assert errors == lines[-1:]
        return errors[0].removeprefix("localexpert: error: ")

    return run_refused


@pytest.fixture(scope="session")
def houses(tmp_path_factory):
    """Return a folder with train.csv, test.csv and model.zip."""
    folder = tmp_path_factory.mktemp("houses")
    save_frame(draw_houses(200, 0), folder / "train.csv")
    save_frame(draw_houses(80, 1), folder / "test.csv")
    words = ["fit", folder / "train.csv", "--target", "price", "--seed", 0, *QUICK]
    assert main([*map(str, words), "--out", str(folder / "model.zip")]) == 0
    return folder


def write_parts(folder, frame, n_parts, suffix="csv"):
    """Write a table as several files and name them."""
    folder.mkdir(exist_ok=True)
    paths = []
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), n_parts)):
        path = folder / f"part{number}.{suffix}"
        save_frame(frame.iloc[rows].reset_index(drop=True), path)
        paths.append(str(path))
    return paths


@pytest.fixture
def fitted(ok, tmp_path):
    """Return a function that fits, and returns the model and what was said."""
    numbers = itertools.count()

    def fit(*words):
        out = tmp_path / f"model{next(numbers)}.zip"
        said, lines = ok("fit", "--target", "price", *QUICK, "--out", out, *words)
        assert said == ""
        return load(out), [line.removeprefix("localexpert: ") for line in lines]

    return fit
