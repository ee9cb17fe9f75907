"""Which classes and functions a file may name: one rule for all kinds of nodes."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

# Classes of scikit-learn that hold numbers and parameters. No other class of it is
# trusted, for some do things when they are made.
_BASES = (
    "sklearn.base.BaseEstimator sklearn.model_selection.BaseCrossValidator "
    "sklearn.model_selection.BaseShuffleSplit "
    "sklearn.model_selection._split._RepeatedSplits "
    "sklearn.gaussian_process.kernels.Kernel "
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor "
    "sklearn.neural_network._stochastic_optimizers.BaseOptimizer "
    "sklearn._loss.loss.BaseLoss sklearn._loss.link.BaseLink "
    "sklearn._loss.link.Interval sklearn.compose.make_column_selector "
    "sklearn.metrics._scorer._BaseScorer sklearn.metrics._scorer._MultimetricScorer "
    "sklearn.metrics._scorer._PassthroughScorer "
    "sklearn.utils._metadata_requests.MetadataRequest "
    "sklearn.utils._metadata_requests.MethodMetadataRequest"
)
# Packages of scikit-learn that are not imported because a file asks for them.
_CLOSED = {"datasets", "experimental", "externals"}
_BESIDE = {"base", "utils", "_loss"}
# Names that nodes of a kind may have. Those that are called get what their own
# `__reduce__` has said.
_KNOWN = {
    "call": (
        "datetime.date datetime.datetime datetime.time datetime.timedelta "
        "datetime.timezone decimal.Decimal"
    ),
    "type": (
        "builtins.str builtins.int builtins.float builtins.bool builtins.dict "
        "builtins.list builtins.bytes builtins.complex builtins.object builtins.set "
        "builtins.tuple collections.OrderedDict"
    ),
    "object": "xgboost.core.Booster",
}
_BOOSTERS = ("lightgbm.sklearn", "xgboost.sklearn")
# Compiled losses, which in some versions do not know which package they are in.
_LOSSES = ("sklearn._loss._loss", "sklearn.linear_model._sgd_fast")
# Their public functions turn numbers into numbers, as ufuncs do.
_MEASURES = ("sklearn.metrics", "sklearn.feature_selection")
_UFUNCS = ("numpy", "scipy.special")


def name_of(thing: Any) -> str:
    """Return the name of a class or function: where it is found, and its own."""
    own = getattr(thing, "__qualname__", getattr(thing, "__name__", repr(thing)))
    homes = _LOSSES if inspect.isclass(thing) else (*_UFUNCS, *_MEASURES)
    for module in (*homes, getattr(thing, "__module__", None)):
        if find_loaded(f"{module}.{own}") is thing:
            return f"{module}.{own}"
    return f"{module}.{own}"


def find_loaded(name: str) -> Any:
    """Return what is there already, or None: nothing is imported."""
    module, _, own = name.rpartition(".")
    return getattr(sys.modules.get(module), own, None)


class Names:
    """Find what a name stands for, if nodes of a kind may name it.

    Classes of our packages are found by one rule, that they are defined there. Those
    of scikit-learn have a base that holds numbers; others stand in a list.

    Parameters
    ----------
    packages : sequence of str
        Ours.
    trusted : iterable of str
        Names that nodes of every kind may have.
    """

    def __init__(self, packages: Sequence[str], trusted: Iterable[str] = ()):
        self.packages = tuple(packages)
        self.trusted = frozenset(trusted)

    def find(self, kind: str, name: str) -> Any:
        """Return the class or function, None where the kind may not name it.

        Parameters
        ----------
        kind : {"object", "call", "type", "function"}
        name : str

        Returns
        -------
        object
        """
        module, _, own = name.rpartition(".")
        if name in self.trusted or name in _KNOWN.get(kind, "").split():
            return getattr(importlib.import_module(module), own)
        if kind == "function":
            return _find_function(module, own)
        if kind == "call" and module in _LOSSES:
            return _if_class(getattr(importlib.import_module(module), own), object)
        ours = self._find_own(module, own)
        if kind == "call":
            # The last base is `object`, which has the method as well.
            bases = inspect.getmro(ours)[:-1] if ours else ()
            return ours if any("__reduce__" in vars(base) for base in bases) else None
        if kind == "type" and module == "numpy":
            return _if_class(find_loaded(name), np.generic)
        if module in _BOOSTERS:
            home = importlib.import_module(module)
            return _if_class(getattr(home, own, None), BaseEstimator)
        return ours or _find_in_sklearn(name)

    def _find_own(self, module: str, own: str) -> type | None:
        """Return a class that a module of our packages defines."""
        if module.partition(".")[0] not in self.packages or "__" in module:
            return None
        try:
            found = getattr(importlib.import_module(module), own, None)
        except ImportError:
            return None
        is_own = inspect.isclass(found) and found.__module__ == module
        return found if is_own else None


def _if_class(found: Any, base: type | tuple[type, ...]) -> Any:
    return found if inspect.isclass(found) and issubclass(found, base) else None


def _find_in_sklearn(name: str) -> Any:
    import sklearn

    library, part = [*name.split("."), ""][:2]
    if library != "sklearn" or part not in {*sklearn.__all__, *_BESIDE} - _CLOSED:
        return None
    importlib.import_module(f"sklearn.{part}")
    bases = tuple(filter(None, map(find_loaded, _BASES.split())))
    return _if_class(find_loaded(name), bases)


def _find_function(module: str, own: str) -> Any:
    if module not in (*_UFUNCS, *_MEASURES):
        return None
    home = importlib.import_module(module)
    found = getattr(home, own, None)
    if module in _UFUNCS:
        return found if isinstance(found, np.ufunc) else None
    return found if own in home.__all__ and inspect.isfunction(found) else None
