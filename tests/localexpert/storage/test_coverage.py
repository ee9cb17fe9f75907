"""Whatever the packages define can be saved, without a line of code for it."""

import dataclasses
import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import calibration
import localexpert
from calibration.storage import StorageError
from calibration.storage.registry import Registry, name_of
from calibration.storage.stand_ins import StandIn
from calibration.storage.upgrades import complete_state
from localexpert.storage import load, save
from tests.forecasts import of_values

REGISTRY = Registry(("calibration", "localexpert"))
CLASSES = [cls for cls in REGISTRY.classes.values() if cls is not StandIn]


def is_default_made(cls):
    """Say whether it is an estimator that needs no arguments."""
    if not issubclass(cls, BaseEstimator) or inspect.isabstract(cls):
        return False
    parameters = inspect.signature(cls).parameters.values()
    return all(p.default is not p.empty for p in parameters)


@pytest.mark.parametrize(
    "cls", [cls for cls in CLASSES if is_default_made(cls)], ids=name_of
)
def test_estimators_with_their_defaults(cls, tmp_path):
    save(cls(), tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    assert type(again) is cls
    assert repr(again) == repr(cls())


def test_public_estimators_have_the_method():
    for package in (calibration, localexpert):
        for name in package.__all__:
            cls = getattr(package, name)
            if inspect.isclass(cls) and (
                hasattr(cls, "predict_dist") or hasattr(cls, "fit_summary")
            ):
                assert callable(getattr(cls, "save", None)), name


def test_no_class_hides_its_state():
    """Attributes are read and written; a class with ways of its own needs a look."""
    for cls in CLASSES:
        for method in ("__getstate__", "__setstate__", "__reduce_ex__", "__new__"):
            if issubclass(cls, tuple):
                continue
            assert method not in vars(cls), f"{cls.__name__}.{method}"


def test_registered_classes_are_found_after_a_move():
    found = REGISTRY.find("calibration.somewhere.else", "CalibrationMap")
    assert found is calibration.CalibrationMap
    assert REGISTRY.find("calibration.somewhere.else", "NoSuchClass") is None
    assert REGISTRY.find("elsewhere", "CalibrationMap") is None


def test_parameters_and_fields_of_later_versions_get_their_defaults():
    state = complete_state(localexpert.LocalExpertRegressor, {"expert": 1})
    assert state["expert"] == 1
    assert state["n_thresholds"] == 25

    @dataclasses.dataclass
    class Grown:
        old: int
        new: list = dataclasses.field(default_factory=list)
        fitted: int = dataclasses.field(init=False)

        @classmethod
        def _read_saved(cls, state):
            return {**state, "fitted": 2 * state["fitted"]}

    assert complete_state(Grown, {"old": 1, "fitted": 2}) == {
        "old": 1,
        "new": [],
        "fitted": 4,
    }


def test_shared_arrays_are_written_once_and_stay_shared(rng, tmp_path):
    scores = rng.uniform(size=20_000)
    summary = calibration.ScoreSummary.from_scores(scores, scores < 0.5)
    law = of_values([0.0, 1.0], np.tile([0.25, 0.75], (1000, 1)))
    stage = localexpert.ExpertCalibration()
    stage.a = stage.b = summary
    stage.c, stage.d = [law, law], scores
    stage.e, stage.f = scores, scores.copy()
    save(stage, tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    assert again.a is again.b
    assert again.c[0] is again.c[1]
    assert again.d is again.e
    assert again.d is not again.f
    np.testing.assert_array_equal(again.f, scores)
    # Scores and weights: the numbers once each, not five times.
    assert (tmp_path / "model.zip").stat().st_size < 2.2 * scores.nbytes


def test_what_holds_itself_is_refused(tmp_path):
    stage = localexpert.ExpertCalibration()
    stage.a = [stage]
    with pytest.raises(StorageError, match=r"`model` is nested too deeply, or holds"):
        save(stage, tmp_path / "model.zip")
