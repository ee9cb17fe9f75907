"""Calibrators of several classes by their names."""

import pytest

from calibration import (
    MulticlassAutoCalibrator,
    OneVsRestCalibrator,
    ShallowNetCalibrator,
    SoftmaxCalibrator,
    calibrator_names,
    make_multiclass_calibrator,
    multiclass_calibrator_names,
)
from tests.calibration.multiclass.draws import check_simplex, draw

OWN = {
    "auto": MulticlassAutoCalibrator,
    "matrix": SoftmaxCalibrator,
    "shallow_net": ShallowNetCalibrator,
    "temperature": SoftmaxCalibrator,
    "vector": SoftmaxCalibrator,
}


def test_names_are_those_of_all_at_once_and_of_one_for_each():
    assert set(multiclass_calibrator_names()) == {*OWN, *calibrator_names()}
    assert list(multiclass_calibrator_names()) == sorted(multiclass_calibrator_names())


@pytest.mark.parametrize("name", multiclass_calibrator_names())
def test_each_name_is_a_new_calibrator(name, rng):
    made = make_multiclass_calibrator(name, random_state=7)
    assert type(made) is OWN.get(name, OneVsRestCalibrator)
    assert made is not make_multiclass_calibrator(name)
    parameters = made.get_params()
    seeds = [value for key, value in parameters.items() if key.endswith("random_state")]
    assert set(seeds) <= {7}
    if type(made) is SoftmaxCalibrator:
        assert made.structure == name
    if name in ("matrix", "shallow_net", "isotonic"):
        p, y = draw(rng, 100, 3)
        check_simplex(made.fit(p, y).predict(p), p.shape)


def test_bad_names_are_named():
    with pytest.raises(ValueError, match=r"`name` must be one of .* got 'softmax'"):
        make_multiclass_calibrator("softmax")
    with pytest.raises(ValueError, match="`random_state` must be"):
        make_multiclass_calibrator("matrix", random_state=-1)
