"""A risk analyst with tables as offices write them: oddities are lines on stderr."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest

from localexpert.cli.main import main

FAST = ["--fast", "--seed", "0"]


def write_claims(path, n, seed, *, odd=False):
    """Write a table as offices write them: marks, currencies, percent, dates, gaps."""
    rng = np.random.default_rng(seed)
    sum_insured = rng.uniform(800.0, 45_000.0, n)
    sold = [
        dt.date(2021, 1, 1) + dt.timedelta(int(day)) for day in rng.integers(0, 900, n)
    ]
    branch = rng.choice(["north", "south"], n)
    loss = sum_insured * np.exp(0.3 * rng.normal(size=n) - 1.0)
    lines = ["id;insured;deductible;share;sold;branch;loss"]
    for i in range(n):
        gap = rng.uniform() < 0.05
        lines.append(
            f"{i + 1};{sum_insured[i]:,.0f};${rng.integers(1, 9) * 100};"
            f"{'' if gap else f'{rng.integers(5, 95)}%'};{sold[i]:%d.%m.%y};"
            f"{branch[i]};{loss[i]:.2f}"
        )
    if odd:
        lines[1] = lines[1].replace("north", "abroad").replace("south", "abroad")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def run(capsys):
    """Return a function that runs a command and returns its exit code and its lines."""

    def run_main(*words):
        code = main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run_main


def test_odd_columns_are_told_and_nothing_is_dropped_in_silence(tmp_path, run):
    train = write_claims(tmp_path / "claims.csv", 150, 0)
    model = tmp_path / "claims.zip"
    words = ["fit", train, "--target", "loss", "--bounds", "0", "inf", *FAST]
    code, _, said = run(*words, "--out", model)
    assert code == 0
    for name, read in (
        ("insured", "thousands"),
        ("deductible", "$"),
        ("share", "percent"),
        ("sold", "two digits"),
    ):
        told = [line for line in said.splitlines() if name in line]
        assert any(read in line for line in told), (name, said)
    assert "'id'" in said  # it numbers the rows
    new = write_claims(tmp_path / "new.csv", 20, 1, odd=True)
    out = tmp_path / "out.csv"
    code, _, said = run("predict", model, new, "--quantiles", "0.1,0.9", "--out", out)
    assert code == 0
    assert (
        "in 'branch': 'abroad' (1 row, first " in said
    )  # whose value training never saw
    assert len(pd.read_csv(out)) == 20
