"""The mass of forecasts below zero, of targets that never were."""

import pytest

from localexpert.distribution.predictive import mass_below_zero
from tests.forecasts import of_values

_DIST = of_values([-1.0, 0.0, 2.0], [[0.2, 0.6, 0.2], [0.1, 0.1, 0.8]])


def test_zero_itself_is_not_below() -> None:
    assert mass_below_zero(_DIST, [0.0, 2.0]) == pytest.approx(0.15)
    at_zero = of_values([0.0, 1.0], [[0.5, 0.5]])
    assert mass_below_zero(at_zero, [0.0]) == 0.0


def test_targets_below_zero_have_no_answer() -> None:
    assert mass_below_zero(_DIST, [-1.0, 2.0]) is None


def test_weights_are_repetitions() -> None:
    twice = mass_below_zero(_DIST[[0, 1, 1]], [0.0, 2.0, 2.0])
    assert mass_below_zero(_DIST, [0.0, 2.0], [1.0, 2.0]) == pytest.approx(twice)
    # A row that stands for none does not count, wherever its target is.
    assert mass_below_zero(_DIST, [-1.0, 2.0], [0.0, 1.0]) == pytest.approx(0.1)


def test_a_forecast_of_each_row_is_needed() -> None:
    with pytest.raises(ValueError, match=r"`y` must be as long as dist, got 3 and 2"):
        mass_below_zero(_DIST, [0.0, 1.0, 2.0])
