"""`StandIn`: what skops writes in the place of values that it does not know."""

from __future__ import annotations

import importlib
from collections import OrderedDict
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from numbers import Rational
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from calibration.storage.errors import refuse, refusing
from calibration.storage.hashes import check_hashes
from calibration.storage.lightgbm_text import check_booster_text
from calibration.storage.trees import check_nodes

# Without a public name.
_TREE = importlib.import_module("sklearn.tree._tree").Tree
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


class StandIn:
    """A value as a kind and parts, which skops calls to have the value again.

    Parameters
    ----------
    kind : str
        One of the makers below.
    *parts : object
        What its maker takes.
    """

    parts: tuple[Any, ...]

    def __new__(cls, kind: str, *parts: Any) -> Any:
        """Return the value itself."""
        return _MAKERS[kind](*parts)

    def __reduce__(self) -> tuple[type[StandIn], tuple[Any, ...]]:
        return StandIn, self.parts


def stand_in(kind: str, *parts: Any) -> StandIn:
    """Return a stand-in, which `StandIn(kind, *parts)` turns into a value.

    Parameters
    ----------
    kind : str
    *parts : object

    Returns
    -------
    StandIn
    """
    out = object.__new__(StandIn)
    out.parts = (kind, *parts)
    return out


def take_parts(value: Any) -> tuple[Any, ...] | None:
    """Return the kind and the parts of a value, or None if skops knows it.

    Parameters
    ----------
    value : object

    Returns
    -------
    tuple or None
    """
    if type(value) is complex:
        return "complex", value.real, value.imag
    if type(value) is _TREE:
        return "tree", *value.__reduce__()[1], value.__getstate__()
    if isinstance(value, range):
        parts = value.start, value.stop, value.step
        _make_range(*parts)
        return "range", *parts
    if isinstance(value, Fraction):
        return "fraction", value.numerator, value.denominator
    cls = type(value)
    library = cls.__module__.partition(".")[0]
    if library == "pandas":
        return _take_pandas(value, cls.__name__)
    if library == "lightgbm" and cls.__name__ == "Booster":
        text = value.model_to_string(num_iteration=-1).encode()
        scores = {key: dict(score) for key, score in value.best_score.items()}
        return "lightgbm", text, value.best_iteration, scores
    return None


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
    with refusing("it holds values of pandas, which is not installed.", ImportError):
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
    if name == "RangeIndex":
        _make_range(*parts[:3])
    if name == "Index":
        _check_values(parts[0], parts[1])
    makers = (
        pd.Timedelta,
        pd.Interval,
        pd.CategoricalDtype,
        pd.DatetimeTZDtype,
        pd.RangeIndex,
        pd.Index,
    )
    return {maker.__name__: maker for maker in makers}[name](*parts)


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


def _make_set(kind: type, values: list[Any]) -> Any:
    check_hashes(values)
    return kind(values)


def _make_range(start: int, stop: int, step: int) -> range:
    out = range(start, stop, step)
    if len(out) > _MOST_IN_RANGE:
        refuse(f"it holds a range of more than {_MOST_IN_RANGE} numbers.")
    return out


def _make_fraction(above: Rational, below: Rational) -> Fraction:
    # Not of a text, whose exponent may be of any size.
    return Fraction(above, below)


def _make_frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _make_dict(ordered: bool, pairs: list[list[Any]]) -> dict[Any, Any]:
    check_hashes(key for key, _ in pairs)
    return OrderedDict(pairs) if ordered else dict(pairs)


def _make_tree(
    n_features: int, n_classes: NDArray[np.intp], n_outputs: int, state: dict[str, Any]
) -> Any:
    """Return a tree of scikit-learn, which trusts all that it is made of."""
    nodes = state["nodes"]
    left, right = nodes["left_child"], nodes["right_child"]
    if n_classes.shape != (n_outputs,) or state["node_count"] != len(nodes):
        refuse("it holds a tree whose tables do not fit.")
    check_nodes(np.stack([left, right]), nodes["feature"], left != -1, n_features)
    tree = _TREE(n_features, n_classes, n_outputs)
    tree.__setstate__(state)
    return tree


def _make_booster(text: bytes, best_iteration: int, best_score: dict[str, Any]) -> Any:
    """Return a booster of LightGBM, which has no training data any more."""
    import lightgbm

    model = text.decode()
    check_booster_text(model)
    booster = lightgbm.Booster(model_str=model)
    booster.best_iteration = best_iteration
    booster.best_score = best_score
    return booster


_MAKERS: dict[str, Callable[..., Any]] = {
    "scalar": lambda array: array[()],
    "shaped": lambda items, shape: items.reshape(shape),
    "frozen": _make_frozen,
    "complex": complex,
    "set": partial(_make_set, set),
    "frozenset": partial(_make_set, frozenset),
    "range": _make_range,
    "fraction": _make_fraction,
    "pairs": _make_dict,
    "tree": _make_tree,
    "lightgbm": _make_booster,
    "pandas": _make_pandas,
}
