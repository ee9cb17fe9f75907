"""Tables in files, and one saved model for all tests of the command line."""

import csv
import datetime as dt

import numpy as np
import pytest

from localexpert.cli.main import main


def write_csv(path, rows, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return str(path)


def house_rows(n, seed):
    """Header and n rows: an id, gaps, a category, dates, a boolean, useless columns."""
    rng = np.random.default_rng(seed)
    rows = [["id", "area", "kind", "sold", "garden", "empty", "const", "price"]]
    for i in range(n):
        area, kind = rng.uniform(30, 200), str(rng.choice(["flat", "house", "hut"]))
        sold = dt.date(2023, 1, 1) + dt.timedelta(days=int(rng.integers(700)))
        price = np.exp(rng.normal(0, 0.2)) * area * (10 if kind == "house" else 7)
        known = "NA" if rng.uniform() < 0.05 else f"{area:.1f}"
        garden = str(rng.choice(["True", "False", ""]))
        rows.append(
            [f"A{i}", known, kind, sold.isoformat(), garden, "", "x", f"{price:.2f}"]
        )
    return rows


@pytest.fixture
def write(tmp_path):
    """Return a function that writes rows, or text, to a file and names it."""

    def write_file(rows, name="table.csv", **options):
        path = tmp_path / name
        if isinstance(rows, str):
            path.write_text(rows, encoding="utf-8", newline="")
            return str(path)
        return write_csv(path, rows, **options)

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
    write_csv(folder / "train.csv", house_rows(200, 0))
    write_csv(folder / "test.csv", house_rows(80, 1))
    words = ["fit", folder / "train.csv", "--target", "price", "--fast", "--seed", 0]
    assert main([*map(str, words), "--out", str(folder / "model.zip")]) == 0
    return folder
