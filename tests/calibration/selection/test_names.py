"""Calibrators by their names."""

import pytest

from calibration import (
    BaggedIsotonicCalibrator,
    IsotonicCalibrator,
    ScoreCalibrator,
    calibrator_names,
    make_calibrator,
)


@pytest.mark.parametrize("name", calibrator_names())
def test_each_name_is_a_calibrator_with_its_defaults(name):
    made = make_calibrator(name)
    assert isinstance(made, ScoreCalibrator)
    default = type(made)().get_params() | {"random_state": 0}
    assert made.get_params() == {key: default[key] for key in made.get_params()}
    assert made is not make_calibrator(name)


def test_the_seed_goes_where_it_is_of_use():
    assert isinstance(make_calibrator("isotonic", random_state=3), IsotonicCalibrator)
    bagged = make_calibrator("bagged_isotonic", random_state=3)
    assert isinstance(bagged, BaggedIsotonicCalibrator)
    assert bagged.random_state == 3


def test_other_names_are_refused():
    with pytest.raises(
        ValueError, match=r"`name` must be one of 'auto', .* got 'best'"
    ):
        make_calibrator("best")
