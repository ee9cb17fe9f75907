"""Whatever the packages define can be saved, without a line of code for it."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import calibration
import localexpert
from calibration.storage import StorageError
from calibration.storage.names import Names, name_of
from localexpert.storage import load, save
from tests.forecasts import of_values

NAMES = Names(("calibration", "localexpert"))
MODULES = [
    importlib.import_module(info.name)
    for package in (calibration, localexpert)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if "__main__" not in info.name
]
CLASSES = [
    value
    for module in MODULES
    for value in vars(module).values()
    if inspect.isclass(value) and value.__module__ == module.__name__
]


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


def test_classes_are_found_by_one_rule():
    for cls in CLASSES:
        assert NAMES.find("object", name_of(cls)) is cls
    for name in ("localexpert.__main__.main", "calibration.nowhere.CalibrationMap"):
        assert NAMES.find("object", name) is None
    # Where it is defined alone, and in no other package.
    assert NAMES.find("object", "calibration.CalibrationMap") is None
    assert Names(("calibration",)).find("object", name_of(CLASSES[-1])) is None


def test_what_is_shared_is_written_once_and_stays_shared(rng, tmp_path):
    scores = rng.uniform(size=20_000)
    summary = calibration.ScoreSummary.from_scores(scores, scores < 0.5)
    law = of_values([0.0, 1.0], np.tile([0.25, 0.75], (1000, 1)))
    stage = localexpert.ExpertCalibration()
    stage.a, stage.b, stage.c, stage.d = summary, [law, law], scores, {"c": scores}
    save(stage, tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    assert again.b[0] is again.b[1]
    assert again.c is again.d["c"]
    # Scores and the summary's: the numbers once each, and weights that pack well.
    assert (tmp_path / "model.zip").stat().st_size < 2.2 * scores.nbytes


def test_what_holds_itself_is_refused(tmp_path):
    stage = localexpert.ExpertCalibration()
    stage.a = [stage]
    with pytest.raises(StorageError, match=r"`model` is nested too deeply, or holds"):
        save(stage, tmp_path / "model.zip")
