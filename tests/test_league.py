"""The manual's league follows from the records, and its figures from formulas."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def league(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("league")


@pytest.fixture
def protocol(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS / "scoringbench"))
    return importlib.import_module("run")


def test_page_is_what_the_records_say(league):
    rows = (league.read_rows(f"{name}.jsonl") for name in ("league", "scoringbench"))
    page = (league.DOCS / "benchmarks.rst").read_text(encoding="utf-8")
    held = page.split(league.BEGIN)[1].split(league.END)[0]
    assert held == league.write_section(*rows)


def test_records_are_small(league):
    files = [league.RESULTS / f"{name}.jsonl" for name in ("league", "scoringbench")]
    assert sum(file.stat().st_size for file in files) < 1_000_000


# Demsar (2006), table 5: q at the level .05 for k methods.
@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (4, 2.569), (7, 2.949), (10, 3.164)])
def test_critical_difference(league, k, q):
    expected = q * np.sqrt(k * (k + 1) / (6 * 14))
    assert league.critical_difference(14, k) == pytest.approx(expected, abs=6e-4)


def test_scores_of_quantiles(league):
    levels = league.LEVELS
    found = league.quantile_scores(np.array([0.5, 2.0]), np.tile(levels, (2, 1)))
    # CRPS of a uniform law at .5 and at 2: 1/12 and 2 - 1 + 1/3.
    assert found["crps"] == pytest.approx((1.0 / 12.0 + 4.0 / 3.0) / 2.0, abs=6e-3)
    assert found["cov90"] == 0.5
    assert found["interval90"] == pytest.approx(0.9 + 20.0 * 1.05 / 2.0)


@pytest.mark.parametrize("y", [-1.0, 0.3, 1.0, 2.6])
def test_crps_of_bins_is_the_integral(protocol, y):
    edges, p = np.array([0.0, 1.0, 1.0, 3.0]), np.array([0.3, 0.5, 0.2])

    def cdf(x):
        return np.interp(x, [0.0, 1.0], [0.0, 0.3]) + (
            (x >= 1.0) * (0.5 + 0.2 * np.clip((x - 1.0) / 2.0, 0.0, 1.0))
        )

    whole, _ = quad(lambda x: (cdf(x) - (x >= y)) ** 2, -2.0, 4.0, points=[0.0, 1.0, y])
    found = protocol.crps_of_bins(p[None], edges[None], np.array([y]))
    assert found == pytest.approx(whole, abs=1e-6)


def test_draws_are_those_of_the_other_benchmark(protocol):
    few = list(protocol.folds_of(100))
    assert [len(train) for _, train, _ in few] == [80] * 5
    assert sorted(np.concatenate([test for *_, test in few])) == list(range(100))
    fold, train, test = list(protocol.folds_of(5000))[3]
    assert (fold, len(train), len(test)) == (3, 2400, 600)
    assert not set(train) & set(test)
