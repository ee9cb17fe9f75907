"""Calibrators by their names."""

import pytest

from calibration import (
    AutoCalibrator,
    BaggedIsotonicCalibrator,
    OneVsRestCalibrator,
    ScoreCalibrator,
    ShallowNetCalibrator,
    SoftmaxCalibrator,
    calibrator_names,
    make_calibrator,
)

OF_TABLES = {
    "auto": AutoCalibrator,
    "matrix": SoftmaxCalibrator,
    "shallow_net": ShallowNetCalibrator,
    "temperature": SoftmaxCalibrator,
    "vector": SoftmaxCalibrator,
}


@pytest.mark.parametrize("name", calibrator_names())
def test_each_name_is_a_calibrator_with_its_defaults(name):
    made = make_calibrator(name)
    assert isinstance(made, ScoreCalibrator)
    default = type(made)().get_params() | {"random_state": 0}
    assert made.get_params() == {key: default[key] for key in made.get_params()}
    assert made is not make_calibrator(name)


def test_names_of_tables_are_those_of_scores_and_more():
    assert calibrator_names(3) == tuple(sorted({*OF_TABLES, *calibrator_names()}))


@pytest.mark.parametrize("name", calibrator_names(3))
def test_each_name_is_a_calibrator_of_tables(name):
    made = make_calibrator(name, n_classes=3, random_state=7)
    assert type(made) is OF_TABLES.get(name, OneVsRestCalibrator)
    parameters = made.get_params()
    seeds = [value for key, value in parameters.items() if key.endswith("random_state")]
    assert set(seeds) <= {7}
    if type(made) is SoftmaxCalibrator:
        assert made.structure == name


def test_the_seed_goes_where_it_is_of_use():
    bagged = make_calibrator("bagged_isotonic", random_state=3)
    assert isinstance(bagged, BaggedIsotonicCalibrator)
    assert bagged.random_state == 3


def test_other_names_are_refused():
    for n_classes, name in ((2, "matrix"), (3, "best")):
        with pytest.raises(ValueError, match=rf"`name` must be one of .* got '{name}'"):
            make_calibrator(name, n_classes=n_classes)
    with pytest.raises(ValueError, match="`n_classes` must be at least 2, got 1"):
        calibrator_names(1)
