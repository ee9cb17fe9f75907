"""Values that are not all in their attributes: a kind with parts, and made of them."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from sklearn.neighbors import BallTree, KDTree

from calibration.storage.budget import Budget
from calibration.storage.errors import refuse
from calibration.storage.lightgbm_text import check_booster_text
from calibration.storage.tables import check_hashes, check_nodes, check_position

# Without public names.
_TREE = importlib.import_module("sklearn.tree._tree").Tree
_METRICS = importlib.import_module("sklearn.metrics").DistanceMetric
# Indices that `pandas.Index` makes again from values and a dtype.
_INDICES = {
    "Index",
    "DatetimeIndex",
    "TimedeltaIndex",
    "PeriodIndex",
    "IntervalIndex",
    "CategoricalIndex",
}
# Of numbers that a range stands for: something may make them all.
_MOST_IN_RANGE = 10**6
# Texts of boosters are taken apart line by line; other values copy their arrays.
_OF_TEXT = 20
_GENERATORS = ("MT19937", "Philox", "PCG64", "PCG64DXSM", "SFC64")


def take_apart(value: Any) -> tuple[Any, ...] | None:
    """Return the kind and the parts of a value, None if it has no kind here.

    Parameters
    ----------
    value : object

    Returns
    -------
    tuple or None
        What `make_value` makes an equal value of.
    """
    cls = type(value)
    library = cls.__module__.partition(".")[0]
    if isinstance(value, np.generic):
        return "scalar", np.asarray(value)
    if isinstance(value, np.dtype):
        return "dtype", np.empty(0, value)
    if library == "pandas":
        return _take_pandas(value, cls.__name__)
    if library == "lightgbm" and cls.__name__ == "Booster":
        text = value.model_to_string(num_iteration=-1)
        scores = {key: dict(score) for key, score in value.best_score.items()}
        return "lightgbm", text.encode(), value.best_iteration, scores
    if isinstance(value, _METRICS):
        return _take_metric(value, cls.__name__)
    for known, take in _TAKERS.items():
        if cls is known:
            return take(value)
    return None


def make_value(kind: str, parts: list[Any], size: int, budget: Budget) -> Any:
    """Return the value that `take_apart` has taken apart.

    Parameters
    ----------
    kind : str
    parts : list
    size : int
        Bytes of arrays in the parts, which the value copies.
    budget : Budget
    """
    factor = _OF_TEXT if kind == "lightgbm" else 1
    budget.spend(factor * size, "values made of arrays")
    return _MAKERS[kind](*parts)


def _take_range(value: range) -> tuple[Any, ...]:
    parts = value.start, value.stop, value.step
    _make_range(*parts)
    return "range", *parts


def _make_range(start: int, stop: int, step: int) -> range:
    out = range(start, stop, step)
    if len(out) > _MOST_IN_RANGE:
        refuse(f"it holds a range of more than {_MOST_IN_RANGE} numbers.")
    return out


def _make_fraction(above: int, below: int) -> Fraction:
    # Not of a text, whose exponent may be of any size.
    if type(above) is not int or type(below) is not int:
        refuse("it holds a fraction of what are no integers.")
    return Fraction(above, below)


def _take_tree(tree: Any) -> tuple[Any, ...]:
    return "tree", *tree.__reduce__()[1], tree.__getstate__()


def _make_tree(n_features: int, n_classes: Any, n_outputs: int, state: Any) -> Any:
    """Return a tree of scikit-learn, which trusts all that it is made of."""
    nodes = state["nodes"]
    left, right = nodes["left_child"], nodes["right_child"]
    if n_classes.shape != (n_outputs,) or state["node_count"] != len(nodes):
        refuse("it holds a tree whose tables do not fit.")
    check_nodes(np.stack([left, right]), nodes["feature"], left != -1, n_features)
    tree = _TREE(n_features, n_classes, n_outputs)
    tree.__setstate__(state)
    return tree


def _take_neighbours(tree: Any) -> tuple[Any, ...]:
    state = tree.__getstate__()
    weight = None if state[12] is None else np.asarray(state[12])
    return type(tree).__name__, np.asarray(state[0]), state[4], state[11], weight


def _take_metric(metric: Any, name: str) -> tuple[Any, ...]:
    name = name.removesuffix("64").removesuffix("Distance").lower()
    p, vector, matrix = metric.__getstate__()
    parts = name, float(p), np.asarray(vector), np.asarray(matrix)
    twin = _make_metric(*parts)
    same = all(map(np.array_equal, twin.__getstate__(), metric.__getstate__()))
    if not same or type(twin) is not type(metric):
        refuse("what is read would not equal it")
    return "metric", *parts


def _make_metric(name: str, p: float, vector: Any, matrix: Any) -> Any:
    known = {"minkowski": {"p": p}, "seuclidean": {"V": vector}}
    known["mahalanobis"] = {"VI": matrix}
    return _METRICS.get_metric(name, **known.get(name, {}))


def _take_random_state(value: Any) -> tuple[Any, ...]:
    return "RandomState", value.get_state(legacy=False)


def _make_random_state(state: dict[str, Any]) -> Any:
    check_position(state)
    out = np.random.RandomState()
    out.set_state(state)
    return out


def _take_generator(value: Any) -> tuple[Any, ...]:
    seeds = value.bit_generator.seed_seq
    known = {
        "entropy": seeds.entropy,
        "spawn_key": seeds.spawn_key,
        "n_children_spawned": seeds.n_children_spawned,
    }
    return "Generator", value.bit_generator.state, known


def _make_generator(state: dict[str, Any], seeds: dict[str, Any]) -> Any:
    check_position(state)
    name = state["bit_generator"]
    if name not in _GENERATORS:
        refuse(f"it holds a random generator {name!r:.40}.")
    bits = getattr(np.random, name)(np.random.SeedSequence(**seeds))
    bits.state = state
    return np.random.Generator(bits)


def _take_masked(value: Any) -> tuple[Any, ...]:
    return "masked", value.data, np.asarray(value.mask), value.fill_value


def _make_booster(text: bytes, best_iteration: int, best_score: dict[str, Any]) -> Any:
    """Return a booster of LightGBM, which has no training data any more."""
    import lightgbm

    model = text.decode()
    check_booster_text(model)
    booster = lightgbm.Booster(model_str=model)
    booster.best_iteration = best_iteration
    booster.best_score = best_score
    return booster


def _take_pandas(value: Any, name: str) -> tuple[Any, ...] | None:
    parts: tuple[Any, ...]
    if name == "Timestamp":
        zone = None if value.tz is None else str(value.tz)
        parts = (name, value.to_datetime64(), zone)
    elif name == "Timedelta":
        parts = (name, value.to_timedelta64())
    elif name == "Interval":
        parts = (name, value.left, value.right, value.closed)
    elif name == "CategoricalDtype":
        parts = (name, value.categories, value.ordered)
    elif name == "DatetimeTZDtype":
        # pandas 2 would make a zone of another kind of its name.
        kept = value.tz if isinstance(value.tz, ZoneInfo) else str(value.tz)
        parts = (name, value.unit, kept)
    elif name.endswith("Dtype"):
        parts = ("dtype", str(value))
    elif name == "RangeIndex":
        parts = (name, value.start, value.stop, value.step, None, False, value.name)
    elif name in _INDICES:
        plain = isinstance(value.dtype, np.dtype)
        values = value.to_numpy() if plain else list(value)
        parts = ("Index", values, value.dtype, False, value.name)
    else:
        return None
    twin = _make_pandas(*parts)
    same = value.equals(twin) if hasattr(value, "equals") else value == twin
    if not same or getattr(twin, "dtype", None) != getattr(value, "dtype", None):
        refuse(f"{value!r:.120}: what is read would not equal it")
    return "pandas", *parts


def _make_pandas(name: str, *parts: Any) -> Any:
    import pandas as pd

    if name == "Timestamp":
        instant, zone = parts
        _check_zone(zone)
        stamp = pd.Timestamp(instant)
        return stamp if zone is None else stamp.tz_localize("UTC").tz_convert(zone)
    if name == "dtype":
        _check_zone(*parts)
        return pd.api.types.pandas_dtype(*parts)
    if name == "DatetimeTZDtype":
        _check_zone(parts[1])
    elif name == "RangeIndex":
        _make_range(*parts[:3])
    elif name == "Index":
        _check_values(parts[0], parts[1])
    elif name not in ("Timedelta", "Interval", "CategoricalDtype"):
        refuse(f"it holds a value of pandas of the kind {name!r:.40}.")
    return getattr(pd, name)(*parts)


def _check_zone(text: Any) -> None:
    """Refuse zones, and types with one, that pandas would read from any file."""
    if "dateutil" in str(text):
        refuse(f"it holds a time zone of dateutil: {text!r:.80}.")


def _check_values(values: Any, dtype: Any) -> None:
    """Refuse an index of what would be counted out, or made longer by its type."""
    known = isinstance(values, list | np.ndarray) or type(values).__name__ in _INDICES
    if not known or (isinstance(dtype, np.dtype) and dtype.kind in "SUV"):
        refuse(f"it holds an index of {type(values).__name__} as {dtype!r:.80}.")
    if getattr(values, "dtype", None) in (None, np.dtype(object)):
        check_hashes(values)


_TAKERS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    complex: lambda value: ("complex", value.real, value.imag),
    bytes: lambda value: ("bytes", np.array(bytearray(value), np.uint8)),
    bytearray: lambda value: ("bytearray", np.array(value, np.uint8)),
    slice: lambda value: ("slice", value.start, value.stop, value.step),
    range: _take_range,
    Fraction: lambda value: ("fraction", value.numerator, value.denominator),
    ZoneInfo: lambda value: ("zone", value.key),
    _TREE: _take_tree,
    KDTree: _take_neighbours,
    BallTree: _take_neighbours,
    np.random.RandomState: _take_random_state,
    np.random.Generator: _take_generator,
    np.ma.MaskedArray: _take_masked,
    defaultdict: lambda value: ("defaultdict", value.default_factory, dict(value)),
}
_MAKERS: dict[str, Callable[..., Any]] = {
    "scalar": lambda array: array[()],
    "dtype": lambda array: array.dtype,
    "complex": complex,
    "bytes": lambda array: array.tobytes(),
    "bytearray": lambda array: bytearray(array.tobytes()),
    "slice": slice,
    "range": _make_range,
    "fraction": _make_fraction,
    "zone": ZoneInfo,
    "defaultdict": defaultdict,
    "tree": _make_tree,
    "KDTree": lambda X, leaf, metric, w: KDTree(X, leaf, metric, sample_weight=w),
    "BallTree": lambda X, leaf, metric, w: BallTree(X, leaf, metric, sample_weight=w),
    "metric": _make_metric,
    "RandomState": _make_random_state,
    "Generator": _make_generator,
    "masked": lambda data, mask, fill: np.ma.MaskedArray(data, mask, fill_value=fill),
    "lightgbm": _make_booster,
    "pandas": _make_pandas,
}
