"""`FitCheck`: figures against brute force; a warning only where there is a reason."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import gamma

from calibration import CalibrationWarning
from localexpert import LocalExpertRegressor
from localexpert.regressor.fit_check import FitCheck, one_draw_each
from tests.forecasts import normal, of_values


def checked(dist, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return FitCheck.of(dist.__getitem__, y, weight, 0)


def test_the_log_score_of_the_targets_own_law(rng):
    y = rng.gamma(2.0, size=60)
    found = checked(normal(np.full(60, 2.0), 1.5), y)
    assert (found.n, found.mean) == (60, pytest.approx(2.0))
    # Their own law is some smooth one: the true one is hardly better or worse.
    assert found.log_climatology == pytest.approx(-gamma(2.0).logpdf(y).mean(), abs=0.1)
    values = np.array([0.0, 1.0, 4.0])
    y, rows = np.repeat(values, [20, 8, 2]), np.full((30, 3), 1.0 / 3.0)
    found = checked(of_values(values, rows), y)
    share = (np.array([20.0, 8.0, 2.0]) + 1.0 / 3.0) / 31.0
    own = -np.repeat(np.log(share / [1.0, 2.0, 3.0]), [20, 8, 2]).mean()
    assert found.log_climatology == pytest.approx(own)


def test_good_forecasts_have_no_problems(rng):
    for _ in range(20):
        center = rng.normal(size=400)
        y = center + rng.normal(size=400)
        assert checked(normal(center), y).problems == []
    values = np.arange(3.0)
    rows = rng.dirichlet([2.0, 1.0, 1.0], size=400)
    y = np.array([rng.choice(values, p=row) for row in rows])
    assert checked(of_values(values, rows), y).problems == []


def test_each_problem_is_told(rng):
    center = rng.normal(size=400)
    y = center + rng.normal(size=400)
    narrow = checked(normal(center, 0.4), y).problems
    assert len(narrow) == 1
    assert "90 % intervals hold" in narrow[0]
    lost = checked(normal(-2.0 * center, 2.5), y).problems
    assert any("knows no features" in told for told in lost)
    few = checked(normal(center[:20]), y[:20]).problems
    assert few == ["20 rows tell little"]


@pytest.mark.parametrize(
    ("crps", "told"), [(0.8, "20% less"), (1.04, "4% more"), (1.001, "0% less")]
)
def test_a_loss_to_climatology_is_said_as_one(crps, told, rng):
    y = rng.normal(size=40)
    found = replace(checked(normal(np.zeros(40)), y), crps=crps, climatology=1.0)
    assert f"{crps:.4g}, {told} than climatology (1)" in str(found)


def test_rows_count_by_their_weights(rng):
    y = np.append(rng.normal(size=500), np.full(500, 50.0))
    weight = np.append(np.ones(500), np.zeros(500))
    found = checked(normal(np.zeros(1000)), y, weight)
    assert (found.n, found.problems) == (500, [])
    heavy = checked(normal(np.zeros(1000)), y, np.where(y == 50.0, 1e-9, 1.0))
    assert heavy.n == pytest.approx(500, abs=1)


@pytest.mark.parametrize("equal", [True, False])
def test_figures_are_those_of_brute_force(rng, equal):
    y, weight = rng.gamma(2.0, size=60), rng.exponential(size=60)
    weight, alone = np.ones(60) if equal else weight, []
    for i in range(60):
        other, share = np.delete(y, i), np.delete(weight, i)
        share = share / share.sum()
        pairs = share @ np.abs(np.subtract.outer(other, other)) @ share
        alone.append(share @ np.abs(other - y[i]) - 0.5 * pairs)
    dist = normal(np.full(60, 2.0), 1.5)
    found = checked(dist, y, weight)
    n = weight.sum() ** 2 / (weight @ weight)
    gain = dist.crps(y) - alone
    spread = np.average((gain - np.average(gain, weights=weight)) ** 2, weights=weight)
    assert found.n == np.ceil(n)
    assert found.error == pytest.approx(np.sqrt(spread / (n - 1.0)))
    for got, of_rows in (
        (found.crps, dist.crps(y)),
        (found.climatology, alone),
        (found.coverage_50, dist.covered(y, 0.5)),
        (found.coverage_90, dist.covered(y, 0.9)),
        (found.log_score, -dist.logpdf(y)),
        (found.target, y),
    ):
        assert got == pytest.approx(np.average(of_rows, weights=weight))


def test_right_forecasts_of_weighted_rows_are_seldom_called_wrong(rng):
    levels = []
    for _ in range(100):
        center, weight = rng.normal(size=400), np.exp(rng.normal(size=400))
        y = center + rng.normal(size=400)
        levels.append(checked(normal(center), y, weight).pit)
    assert np.mean(np.array(levels) < 0.01) < 0.05
    # Many rows are drawn by their weights.
    many = checked(normal(np.zeros(5000)), rng.normal(size=5000), np.arange(5000.0))
    assert 1000 < many.n < 2000
    assert many.problems == []


def test_draws_of_a_row_count_as_one(rng):
    rows, weight = np.repeat(np.arange(4000), 2), np.tile([1.0, 3.0], 4000)
    order = rng.permutation(8000)
    alone = one_draw_each(rows[order], weight[order], 0)
    np.testing.assert_array_equal(np.bincount(rows[order], alone), 4.0)
    chosen = weight[order][alone > 0.0]
    assert len(chosen) == 4000
    assert (chosen == 3.0).mean() == pytest.approx(0.75, abs=0.03)


def test_fit_warns_once_and_keeps_the_figures(rng, reload):
    X, y = rng.normal(size=(25, 1)), rng.normal(size=25)
    quick = {"strategy": "joint", "n_thresholds": 3, "random_state": 0}
    model = LocalExpertRegressor(frame=None, **quick)
    with pytest.warns(CalibrationWarning, match="25 rows tell little") as caught:
        model.fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CalibrationWarning):
            model.fit(X, y + 1.0)
    assert model.check_.target == pytest.approx(1.0 + y.mean())
    assert str(model.check_).startswith("rows         25\ncoverage     50 %: ")
    assert reload(model).check_ == model.check_
