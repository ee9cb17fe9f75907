"""The description of a model that skops writes, read without trust.

skops imports what a description names, and calls some of it. So every node in it is
held against the lists below first, and nothing else is ever named to skops.
"""

from __future__ import annotations

import inspect
import io
import json
import math
import sys
from typing import Any

import numpy as np
from numpy.lib import format as npy

from calibration.storage.budget import Budget
from calibration.storage.errors import refuse, refusing
from calibration.storage.nodes import read_schema, walk_nodes, weigh_nodes
from calibration.storage.registry import Registry

# Of what is found by its hash, which for other keys than texts can be forged so that
# the time taken is the square of this. We write larger ones as stand-ins.
_MOST_KEYS = 100
# Of a type of arrays. Empty arrays, whose bytes tell nothing, stand for it.
_MOST_ITEM = 2**12
# Nodes that make a value of copies of the arrays below them.
_COPYING = (
    "ConstructorFromReduceNode",
    "LossNode",
    "MaskedArrayNode",
    "RandomGeneratorNode",
    "RandomStateNode",
)
# Bases of scikit-learn's objects that hold numbers and parameters: no other class of
# it is trusted, for some do things when they are made.
_BASES = (
    "sklearn.base.BaseEstimator sklearn.model_selection.BaseCrossValidator "
    "sklearn.model_selection.BaseShuffleSplit "
    "sklearn.model_selection._split._RepeatedSplits "
    "sklearn.gaussian_process.kernels.Kernel "
    "sklearn.gaussian_process.kernels.Hyperparameter "
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor "
    "sklearn.neural_network._stochastic_optimizers.BaseOptimizer "
    "sklearn.neighbors.BallTree sklearn.neighbors.KDTree "
    "sklearn.metrics.DistanceMetric sklearn.metrics._dist_metrics.DistanceMetric32 "
    "sklearn.metrics._dist_metrics.DistanceMetric64 "
    "sklearn._loss.loss.BaseLoss sklearn._loss.link.BaseLink "
    "sklearn._loss.link.Interval sklearn.compose.make_column_selector "
    "sklearn.metrics._scorer._BaseScorer sklearn.metrics._scorer._MultimetricScorer "
    "sklearn.metrics._scorer._PassthroughScorer "
    "sklearn.utils._metadata_requests.MetadataRequest "
    "sklearn.utils._metadata_requests.MethodMetadataRequest"
)
# Items of the states of compiled classes.
_STATES = {"KDTree": 13, "BallTree": 13}
_METRICS, _OF_METRIC = "sklearn.metrics._dist_metrics", 3
# Public functions of these turn numbers into numbers: searches and selections of
# columns hold them.
_MEASURES = ("sklearn.metrics", "sklearn.feature_selection")
_LOSSES = "_loss sklearn._loss._loss sklearn.linear_model._sgd_fast"
_KEYS = "builtins.str builtins.int builtins.float builtins.bool"
_CONTAINERS = "builtins.dict collections.OrderedDict builtins.list"
# What each kind of node may name, besides what the methods of `Schema` say.
_NODES = {
    "JsonNode": "builtins.str",
    "SliceNode": "builtins.slice",
    "ListNode": "builtins.list",
    "SetNode": "builtins.set",
    "TupleNode": "builtins.tuple",
    "DictNode": f"{_CONTAINERS} sklearn.utils._bunch.Bunch",
    "DefaultDictNode": "collections.defaultdict",
    "BytesNode": "builtins.bytes",
    "BytearrayNode": "builtins.bytearray",
    "NdArrayNode": "numpy.ndarray",
    "MaskedArrayNode": "numpy.ma.MaskedArray numpy.ma.core.MaskedArray",
    "DTypeNode": "numpy.dtype",
    "RandomStateNode": "numpy.random.mtrand.RandomState",
    "RandomGeneratorNode": "numpy.random._generator.Generator",
    "TypeNode": (
        f"{_KEYS} {_CONTAINERS} builtins.bytes builtins.complex builtins.object "
        "builtins.set builtins.tuple"
    ),
    "ObjectNode": (
        "lightgbm.sklearn.LGBMClassifier lightgbm.sklearn.LGBMModel "
        "lightgbm.sklearn.LGBMRanker lightgbm.sklearn.LGBMRegressor "
        "xgboost.core.Booster xgboost.sklearn.XGBClassifier xgboost.sklearn.XGBModel "
        "xgboost.sklearn.XGBRFClassifier xgboost.sklearn.XGBRFRegressor "
        "xgboost.sklearn.XGBRegressor"
    ),
    "ConstructorFromReduceNode": (
        "datetime.date datetime.datetime datetime.time datetime.timedelta "
        "datetime.timezone decimal.Decimal zoneinfo.ZoneInfo"
    ),
}


class Schema:
    """Nodes of a description, and which of them may be read.

    Parameters
    ----------
    members : dict of str to bytes
        Of the file.
    registry : Registry
        Of our own classes. Those that have moved get their new names.
    budget : Budget
        Of the memory that reading them takes.
    """

    def __init__(self, members: dict[str, bytes], registry: Registry, budget: Budget):
        self.members = members
        self.registry = registry
        self.budget = budget
        self.root = read_schema(members, budget)
        #: All names in it.
        self.names: set[str] = set()
        self._nodes: dict[Any, dict[str, Any]] = {}

    def refused(self) -> set[str]:
        """Return the names that are not allowed where they stand."""
        refused = set()
        for node in walk_nodes(self.root):
            if node.keys() == {"__id__"}:
                continue
            # skops takes the first node of a number for all others of that number.
            if self._nodes.setdefault(node.get("__id__"), node) is not node:
                refuse(f"its description has two nodes {node.get('__id__')!r:.40}.")
            loader, module, name = self._read_names(node)
            self.names.add(full := f"{module}.{name}")
            known = full in _NODES.get(loader, "").split()
            if not known and not self._may_name(loader, module, name):
                refused.add(full)
        return refused

    def check(self) -> None:
        """Refuse what skops or numpy would take on trust, once all names are known."""
        self._check_memory()
        for node in self._nodes.values():
            if node["__loader__"] == "NdArrayNode" and node["type"] == "numpy":
                _check_array(self._member(node))
            elif node["__loader__"] == "DictNode":
                self._check_keys(node)
            elif node["__loader__"] == "SetNode" and len(node["content"]) > _MOST_KEYS:
                refuse(f"a set has more than {_MOST_KEYS} items.")
            elif node["__loader__"] == "RandomGeneratorNode":
                self._check_optional_seeds(node)
            elif node["__loader__"] == "ObjectNode":
                self._check_state(node)

    def _check_memory(self) -> None:
        """Spend what the nodes take, and what is made of them."""
        sizes = {n: len(self._member(x)) for n, x in self._nodes.items() if "file" in x}
        weights: dict[Any, tuple[int, int]] = {}
        n_visits, _ = weigh_nodes(self.root, sizes, weights)
        self.budget.spend_nodes(len(self._nodes), n_visits)
        for number, node in self._nodes.items():
            loader = node["__loader__"]
            if loader in _COPYING:
                self.budget.spend_copies(weights[number][1])
            elif loader in ("BytesNode", "BytearrayNode"):
                self.budget.spend_bytes(sizes[number])
            elif number in sizes:
                self.budget.spend_array(sizes[number])
            elif loader == "NdArrayNode" and len(node["shape"]["content"]) != 1:
                refuse("it holds a table of objects.")

    def _member(self, node: dict[str, Any]) -> bytes:
        if node["file"] not in self.members:
            refuse(f"the member {node['file']!r:.80} is missing.")
        return self.members[node["file"]]

    def text(self) -> bytes:
        """Return the description with classes of ours where they are now."""
        return json.dumps(self.root).encode("ascii")

    def _read_names(self, node: dict[str, Any]) -> tuple[str, str, str]:
        """Return loader, module and name of a node, of a class of ours where it is."""
        keys = ("__loader__", "__module__", "__class__")
        names: list[Any] = [node.get(key) for key in keys]
        loader, module, name = names
        if not all(isinstance(each, str) for each in names):
            refuse("its description has a node without a name.")
        if (cls := self.registry.find(module, name)) is not None:
            node["__module__"] = module = cls.__module__
        return loader, module, name

    def _check_keys(self, node: dict[str, Any]) -> None:
        """Refuse types of keys that are none: skops calls them."""
        n_others = 0
        for key in self._nodes[node["key_types"]["__id__"]]["content"]:
            kind = self._nodes[key["__id__"]]
            n_others += kind["__class__"] != "str"
            module, name = kind["__module__"], kind["__class__"]
            known = f"{module}.{name}" in _KEYS.split() or _is_number(module, name)
            if kind["__loader__"] != "TypeNode" or not known:
                refuse(f"its description has keys of the type {module}.{name}.")
        if n_others > _MOST_KEYS:
            refuse(f"a dict has more than {_MOST_KEYS} keys that are no texts.")

    def _check_state(self, node: dict[str, Any]) -> None:
        """Refuse states that are too short: compiled classes read beyond their end."""
        least = _STATES.get(node["__class__"], 0)
        if node["__module__"] == _METRICS:
            least = _OF_METRIC
        if not least:
            return
        held = node.get("content")
        state = self._nodes.get(held.get("__id__")) if isinstance(held, dict) else None
        state = state or {"__loader__": None}
        if state.get("__loader__") != "TupleNode" or len(state["content"]) < least:
            refuse(f"the state of a {node['__class__']:.40} is too short.")

    def _check_optional_seeds(self, node: dict[str, Any]) -> None:
        """Refuse large pools: they are memory, and mixing takes the square of them."""
        seeds = self._nodes[node["content"]["seed_seq"]["__id__"]]
        size = self._nodes[seeds["content"]["pool_size"]["__id__"]]["content"]
        if not 4 <= int(size) <= 1024:
            refuse(f"a seed has a pool of {size!r:.20} words.")

    def _may_name(self, loader: str, module: str, name: str) -> bool:
        """Say whether a kind of node may name a class of some kind."""
        own, cls = self.registry.find(module, name), find_loaded(module, name)
        is_number = _is_number(module, name)
        if loader == "TupleNode":
            return hasattr(own, "_fields")
        if loader == "ConstructorFromReduceNode":
            bases = [c for c in getattr(own, "__mro__", ()) if c in self.registry]
            return any("__reduce__" in vars(base) for base in bases)
        if loader == "FunctionNode":
            known = module.partition(".")[0] in ("numpy", "scipy")
            return (known and isinstance(cls, np.ufunc)) or _is_measure(name, cls)
        if loader == "LossNode":
            return module in _LOSSES.split() and inspect.isclass(cls)
        if loader == "NdArrayNode":
            return is_number
        if loader in ("ObjectNode", "TypeNode"):
            known = own is not None or _is_of_sklearn(module, cls)
            return known or (is_number and loader == "TypeNode")
        return False


def find_loaded(module: str, name: str) -> Any:
    """Return what is there already, or None: nothing is imported.

    Parameters
    ----------
    module, name : str

    Returns
    -------
    object
    """
    return getattr(sys.modules.get(module), name, None)


def _is_number(module: str, name: str) -> bool:
    cls = find_loaded(module, name)
    return module == "numpy" and inspect.isclass(cls) and issubclass(cls, np.generic)


def _is_measure(name: str, function: Any) -> bool:
    packages = [sys.modules.get(package) for package in _MEASURES]
    public = [p for p in packages if name in getattr(p, "__all__", ())]
    same = any(getattr(package, name) is function for package in public)
    return same and inspect.isfunction(function)


def _is_of_sklearn(module: str, cls: Any) -> bool:
    # skops has imported all modules of scikit-learn that have estimators.
    bases = (find_loaded(*base.rsplit(".", 1)) for base in _BASES.split())
    known = tuple(base for base in bases if base is not None)
    ours = module.startswith("sklearn.") and inspect.isclass(cls)
    return ours and issubclass(cls, known)


def _check_array(data: bytes) -> None:
    """Refuse an array whose header does not fit the bytes after it."""
    buffer = io.BytesIO(data)
    # The header is a literal of any kind, and numpy raises what comes of it.
    with refusing("an array has no sound header ({kind}: {error}).", Exception):
        version = npy.read_magic(buffer)
        read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        shape, _, dtype = read[version](buffer)
    count, n_bytes = math.prod(shape), len(data) - buffer.tell()
    odd = any(type(length) is not int or length < 0 for length in shape)
    odd |= dtype.hasobject or (dtype.itemsize > _MOST_ITEM and not count)
    if odd or count * dtype.itemsize != n_bytes or count > n_bytes:
        refuse(f"an array of shape {shape} and dtype {dtype} has {n_bytes} bytes.")
