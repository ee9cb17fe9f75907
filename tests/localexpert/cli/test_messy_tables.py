"""A table as offices write them, from the first command to the last."""

import numpy as np
import pandas as pd


def write_claims(path, n, seed):
    """Write a table as offices write them: marks, currencies, percent, dates, gaps."""
    rng = np.random.default_rng(seed)
    insured, branch = rng.uniform(800.0, 45_000.0, n), rng.choice(["n", "s"], n)
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    loss = insured * np.exp(0.3 * rng.normal(size=n) - 1.0)
    lines = ["id;insured;deductible;share;sold;branch;loss"] + [
        f"{i + 1};{insured[i]:,.0f};${100 * rng.integers(1, 9)};"
        f"{'' if rng.uniform() < 0.05 else f'{rng.integers(5, 95)}%'};"
        f"{days[i]:%d.%m.%y};{branch[i] if i or not seed else 'abroad'};{loss[i]:.2f}"
        for i in range(n)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_claims_are_forecast_from_the_first_command_to_the_last(
    ok, tmp_path, monkeypatch
):
    def run(words):
        out, lines = ok(*words.split())
        return out, "\n".join(lines)

    monkeypatch.chdir(tmp_path)
    write_claims(tmp_path / "train.csv", 150, 0)
    write_claims(tmp_path / "new.csv", 20, 1)
    _, said = run("fit train.csv --target loss --fast --seed 0 --out model.zip")
    for name, read in (
        ("insured", "thousands"),
        ("deductible", "$"),
        ("share", "percent"),
        ("sold", "two digits"),
        ("'id'", ""),  # it numbers the rows
        ("'loss' is never below 0, and neither is a forecast", ""),
    ):
        assert any(name in line and read in line for line in said.splitlines()), name
    out, said = run("predict model.zip new.csv --quantiles 0.1,0.9 --exceed 10000")
    assert len(out.splitlines()) == 21
    # A value that training never saw is told, and its row is forecast.
    assert "in 'branch': 'abroad' (1 row, first " in said
    assert "CRPS" in run("evaluate model.zip new.csv")[0]
    run("report model.zip new.csv --out page.html")
    assert "loss" in (tmp_path / "page.html").read_text(encoding="utf-8")
