"""A risk analyst's work in the shell: fit, inspect, predict, evaluate, report."""

import numpy as np
import pandas as pd
import pytest

from localexpert import load
from localexpert.cli.main import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with two tables and a model of the first."""
    place = tmp_path_factory.mktemp("claims")
    rng = np.random.default_rng(0)
    for name, n in (("train", 160), ("test", 60)):
        insured = rng.uniform(800.0, 45_000.0, n).round()
        table = pd.DataFrame({
            "insured": np.where(rng.uniform(size=n) < 0.05, np.nan, insured),
            "branch": rng.choice(["north", "south"], n),
            "sold": np.datetime64("2021-01-01") + rng.integers(0, 900, n),
            "loss": (insured * np.exp(0.3 * rng.normal(size=n) - 1.0)).round(2),
        })  # fmt: skip
        table.to_csv(place / f"{name}.csv", index=False)
    words = f"fit {place}/train.csv --target loss --fast --out {place}/model.zip"
    assert main(words.split()) == 0
    return place


@pytest.fixture
def run(capsys):
    """Return a function that runs a command to its end: its output and its lines."""

    def run_main(words):
        capsys.readouterr()
        assert main(words.split()) == 0
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return out, err

    return run_main


def test_fit_tells_what_was_read_and_of_losses_below_zero(folder, run):
    words = f"fit {folder}/train.csv --target loss --fast --out {folder}/again.zip"
    _, said = run(words)
    for name in ("insured", "branch", "sold"):
        assert name in said
    assert "out of fold" in said
    assert "'loss' is never below 0, and neither is a forecast" in said
    again, first = (load(folder / f"{name}.zip") for name in ("again", "model"))
    rows = pd.read_csv(folder / "test.csv", parse_dates=["sold"])
    for name in ("again", "model"):
        out = f"predict {folder}/{name}.zip {folder}/test.csv --out {folder}/{name}.csv"
        run(out)
    a, b = ((folder / f"{name}.csv").read_bytes() for name in ("again", "model"))
    assert a == b  # the same command makes the same model
    assert len(rows) == 60
    assert type(again) is type(first)


def test_forecasts_go_to_parquet_with_their_types(folder, run):
    pytest.importorskip("pyarrow")
    run(
        f"predict {folder}/model.zip {folder}/test.csv --quantiles 0.1,0.9 "
        f"--exceed 10000 --out {folder}/out.parquet"
    )
    table = pd.read_parquet(folder / "out.parquet")
    assert len(table) == 60
    assert all(kind == np.float64 for kind in table.dtypes)
    run(
        f"predict {folder}/model.zip {folder}/test.csv --quantiles 0.1,0.9 "
        f"--exceed 10000 --out {folder}/out.csv.gz"
    )
    written = pd.read_csv(folder / "out.csv.gz")
    np.testing.assert_allclose(written.to_numpy(), table.to_numpy(), rtol=1e-4)


def test_new_branches_are_told_and_forecast(folder, run):
    table = pd.read_csv(folder / "test.csv")
    table.loc[3, "branch"] = "abroad"
    table.to_csv(folder / "abroad.csv", index=False)
    _, said = run(
        f"predict {folder}/model.zip {folder}/abroad.csv --out {folder}/abroad_out.csv"
    )
    assert "'branch'" in said
    assert len(pd.read_csv(folder / "abroad_out.csv")) == 60


def test_a_model_is_evaluated_inspected_and_reported(folder, run):
    out, _ = run(f"evaluate {folder}/model.zip {folder}/test.csv")
    assert "CRPS" in out
    out, _ = run(f"inspect {folder}/model.zip")
    for word in ("loss", "insured", "branch", "sold"):
        assert word in out
    run(f"report {folder}/model.zip {folder}/test.csv --out {folder}/page.html")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "loss" in page
    assert len(page) < 1_000_000


def test_a_cell_that_is_no_number_is_refused_in_one_line(folder, capsys):
    table = pd.read_csv(folder / "test.csv").astype({"insured": object})
    table.loc[5, "insured"] = "about 900"
    table.to_csv(folder / "odd.csv", index=False)
    capsys.readouterr()
    words = f"predict {folder}/model.zip {folder}/odd.csv --out {folder}/odd_out.csv"
    code = main(words.split())
    said = capsys.readouterr().err
    assert "about 900" in said
    assert "Traceback" not in said
    assert code in (0, 2)
    assert (folder / "odd_out.csv").exists() == (code == 0)
