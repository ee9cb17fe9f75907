"""`SkopsParts`: objects of other libraries, written and read by skops."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import re
import sys
import zipfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from calibration.storage.archive import read_json
from calibration.storage.arrays import unpack_array
from calibration.storage.errors import StorageError
from calibration.storage.lightgbm_text import check_booster_text
from calibration.storage.parts import Part
from calibration.storage.registry import Registry
from calibration.storage.trees import check_trees

_SCHEMA = "schema.json"
_FILE = re.compile(r"schema\.json|[0-9a-f-]+\.(npy|bin)")
# How a tree starts in a model of LightGBM.
_TREE = re.compile(r"^Tree=", re.MULTILINE)
# Bases of scikit-learn's objects that hold numbers and parameters: no other class of
# it is trusted, for some do things when they are made.
_BASES = {
    "sklearn.base": ("BaseEstimator",),
    "sklearn.model_selection": ("BaseCrossValidator", "BaseShuffleSplit"),
    "sklearn.model_selection._split": ("_RepeatedSplits",),
    "sklearn.gaussian_process.kernels": ("Kernel", "Hyperparameter"),
    "sklearn.tree._tree": ("Tree",),
    "sklearn.ensemble._hist_gradient_boosting.predictor": ("TreePredictor",),
    "sklearn.neural_network._stochastic_optimizers": ("BaseOptimizer",),
    "sklearn.neighbors": ("BallTree", "KDTree"),
    "sklearn.metrics": ("DistanceMetric",),
    "sklearn.metrics._dist_metrics": ("DistanceMetric32", "DistanceMetric64"),
    "sklearn.utils": ("Bunch",),
    "sklearn._loss.loss": ("BaseLoss",),
    "sklearn._loss.link": ("BaseLink", "Interval"),
}
# Wrappers that are scikit-learn estimators, what they hold, and who has them.
_BOOSTERS = (
    "collections.defaultdict",
    "collections.OrderedDict",
    "lightgbm.basic.Booster",
    "lightgbm.sklearn.LGBMClassifier",
    "lightgbm.sklearn.LGBMModel",
    "lightgbm.sklearn.LGBMRanker",
    "lightgbm.sklearn.LGBMRegressor",
    "sklearn.preprocessing._label.LabelEncoder",
    "xgboost.core.Booster",
    "xgboost.sklearn.XGBClassifier",
    "xgboost.sklearn.XGBModel",
    "xgboost.sklearn.XGBRFClassifier",
    "xgboost.sklearn.XGBRFRegressor",
    "xgboost.sklearn.XGBRegressor",
)


class SkopsParts:
    """The last resort of an `Encoder`: anything that skops can write.

    Parameters
    ----------
    registry : Registry
        Of our own classes, which other libraries' objects may hold.
    trusted : sequence of str or type
        Further types that may be loaded.
    """

    name = "skops"

    def __init__(self, registry: Registry, trusted: Iterable[str | type] = ()):
        self.registry = registry
        self.trusted = [one if isinstance(one, str) else _name(one) for one in trusted]

    def holds(self, value: object) -> bool:
        """Say yes: what cannot be written will say so itself."""
        del value
        return True

    def dump(self, value: Any) -> Part:
        """Return the members of what skops writes."""
        from skops import io as skops

        with zipfile.ZipFile(io.BytesIO(skops.dumps(value))) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        part = Part(files)
        for name in sorted(self._untrusted(_zip(files))):
            module, _, own = name.rpartition(".")
            if not hasattr(sys.modules.get(module), own):
                msg = f"it holds {name}, which cannot be found by its name"
                raise StorageError(msg)
        return part

    def load(self, part: Part) -> Any:
        """Return the object, if all its types are trusted."""
        from skops import io as skops

        for name, data in part.files.items():
            if not _FILE.fullmatch(name):
                msg = f"a part holds the file {name[:80]!r}, which is none of ours."
                raise StorageError(msg)
            if name.endswith(".npy"):
                array = unpack_array(data)
                if array.dtype.kind in "SU":
                    _check_texts(array.astype(str).ravel().tolist())
        _check_texts(read_json(part.files[_SCHEMA], _SCHEMA))
        data = _zip(part.files)
        untrusted = self._untrusted(data)
        if untrusted:
            names = sorted(untrusted)
            msg = (
                f"it holds {', '.join(names)}, which are not trusted. If you know who "
                f"wrote the file, load it with `trusted={names!r}`."
            )
            raise StorageError(msg)
        known = [*self.trusted, *_trusted_names(), *self._own_names()]
        value = skops.loads(data, trusted=known)
        check_trees(value)
        return value

    def _untrusted(self, data: bytes) -> set[str]:
        from skops import io as skops

        known = {*self.trusted, *_trusted_names(), *self._own_names()}
        return set(skops.get_untrusted_types(data=data)) - known

    def _own_names(self) -> list[str]:
        return [name.replace(":", ".") for name in self.registry.names()]


def _name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _check_texts(root: Any) -> None:
    """Refuse models of LightGBM that are not sound, wherever they stand.

    skops keeps strings as JSON in JSON.
    """
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and _TREE.search(value):
            check_booster_text(value)
        elif isinstance(value, str) and value[:1] in ('"', "[", "{"):
            with suppress(ValueError):
                waiting.append(json.loads(value))


def _zip(files: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@cache
def _trusted_names() -> Sequence[str]:
    """Return the names of types of scikit-learn and boosters that are trusted."""
    from sklearn.utils import all_estimators

    all_estimators()  # imports the modules of all of them
    bases = tuple(
        getattr(importlib.import_module(module), name)
        for module, names in _BASES.items()
        for name in names
    )
    found = {
        _name(value)
        for module in list(sys.modules)
        if module.startswith("sklearn.")
        for value in vars(sys.modules[module]).values()
        if inspect.isclass(value)
        and issubclass(value, bases)
        and value.__module__.startswith("sklearn.")
    }
    return sorted(found | set(_BOOSTERS))
