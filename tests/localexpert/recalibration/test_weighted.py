"""The weighted map: its guarantee by enumeration, its coverage by simulation."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from localexpert import PredictiveDistribution, WeightedConformal
from localexpert.recalibration.conformal import ConformalRecalibration
from tests.forecasts import of_values


def normal(mean, sd=1.0):
    """Normal forecasts of these means."""
    return PredictiveDistribution.from_scipy(stats.norm(mean, sd + 0.0 * mean))


def through(fitted, scores, weight):
    """G at the normal scores of new rows of such a weight."""
    maps = fitted.map_of(np.full(1, weight))
    return ndtr(maps.forward(np.asarray(scores, dtype=float)[None, :])[0])[0]


def test_knots_are_at_the_sums_of_weights(rng):
    y, weight = rng.normal(size=300), rng.gamma(1.0, size=300)
    fitted = WeightedConformal().fit(normal(np.zeros(300)), y, weight)
    for new in (0.0, 1.0, 30.0):
        got = through(fitted, fitted.knots_, new)
        want = [
            (
                weight[y < z - 1e-9].sum()
                + 0.5 * (weight[np.abs(y - z) < 1e-9].sum() + new)
            )
            / (weight.sum() + new)
            for z in fitted.knots_
        ]
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_equal_weights_are_conformal_recalibration(rng):
    y = 1.3 * rng.normal(size=399)
    said, ones = normal(np.zeros(399)), np.ones(399)
    mine = WeightedConformal().fit(said, y, 7.0 * ones)
    other = ConformalRecalibration().fit(said, y)
    assert mine.effective_rows_ == pytest.approx(399.0)
    np.testing.assert_allclose(mine.bound(np.array([7.0])), other.bound_, atol=1e-3)
    levels = np.arange(1, 20) / 20
    np.testing.assert_allclose(
        through(mine, np.sort(y)[20 * np.arange(1, 20) - 1], 7.0), levels
    )


@pytest.mark.parametrize("heavy", [0.0, 0.3, 0.8])
def test_the_guarantee_holds_whichever_row_is_the_new_one(rng, heavy):
    # Given the rows, the new one is row i with probability w_i / sum(w): all cases.
    m = 150
    z = np.sort(rng.normal(size=m + 1) + 0.5)
    weight = np.exp(heavy * rng.normal(size=m + 1))
    share = weight / weight.sum()
    place, bounds = np.empty(m + 1), np.empty(m + 1)
    for i in range(m + 1):
        rest = np.arange(m + 1) != i
        said = normal(np.zeros(m))
        fitted = WeightedConformal().fit(said, z[rest], weight[rest])
        place[i] = through(fitted, [z[i]], weight[i])[0]
        bounds[i] = fitted.bound(weight[[i]])[0]
    for level in np.linspace(0.01, 0.99, 99):
        assert abs(share @ (place <= level) - level) <= bounds.max() + 1e-9
    assert bounds.max() < 0.5


def test_ties_are_one_knot_and_jumps_are_drawn_in(rng):
    y = rng.choice(3, size=600, p=[0.1, 0.2, 0.7])
    said = of_values([0, 1, 2], np.tile([0.3, 0.4, 0.3], (600, 1)))
    fitted = WeightedConformal(random_state=0).fit(said, y, np.ones(600))
    got = fitted.apply(said[:2], np.array([1.0, 1.0])).cdf_at([0.0, 1.0])
    np.testing.assert_allclose(got, [[0.1, 0.3]] * 2, atol=0.06)
    same = WeightedConformal().fit(normal(np.zeros(100)), np.zeros(100), np.ones(100))
    assert len(same.knots_) == 1


def test_few_effective_rows_are_refused(rng):
    weight = np.ones(500)
    weight[:3] = 500.0
    found = weight.sum() ** 2 / (weight @ weight)
    with pytest.raises(ValueError, match=rf"`X_cal` .* got {found:.1f} of 500"):
        WeightedConformal().fit(normal(np.zeros(500)), rng.normal(size=500), weight)
