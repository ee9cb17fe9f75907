"""Kinds of values: how each is taken apart, and how it is made from its parts.

Compiled code trusts some tables, so they are checked first. If a number is wrong,
LightGBM or scikit-learn ends the program, or reads memory that is not its own.
"""

from __future__ import annotations

import importlib
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import BallTree, KDTree
from sklearn.utils import Bunch

from calibration.storage.archive import refuse, refusing
from calibration.typing import Int64Array

_NUMBERS: dict[type, str] = {
    np.int64: r"-?\d{1,10}",
    np.float64: r"-?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|inf|nan)",
}
_KEY = re.compile(r"[a-z_0-9]+")
_PARAMETER = re.compile(r"\[[a-z_0-9]+: [^\]]*\]")
_CLASSES = re.compile(r"num_class:(\S*)")
_MOST_CLASSES = 10_000
_CATEGORY = 1
_END = "end of trees\n"
_OF_TREES = {
    np.float64: (
        "leaf_value leaf_weight split_gain threshold internal_value internal_weight"
    ),
    np.int64: (
        "leaf_count internal_count split_feature decision_type left_child right_child"
    ),
}


class TextTable:
    """Lines `name=value` of a model's text, read number by number.

    Parameters
    ----------
    lines : list of str
    """

    def __init__(self, lines: list[str]):
        self.lines = dict(line.split("=", 1) for line in lines)
        known = len(self.lines) == len(lines) and all(map(_KEY.fullmatch, self.lines))
        _require(known, "its lines")

    def numbers(
        self, name: str, length: int | None = None, kind: type = np.float64
    ) -> NDArray[Any]:
        """Return the numbers of a line, or none if the line is missing."""
        text, one = self.lines.get(name, "").strip(), _NUMBERS[kind]
        known = re.fullmatch(rf"({one}( +{one})*)?", text) is not None
        _require(known, f"a number of {name}")
        values: NDArray[Any] = np.fromstring(text, dtype=kind, sep=" ")
        _require(length is None or len(values) == length, f"the length of {name}")
        # A word holds 32 bits of categories.
        limit = 2**32 if name == "cat_threshold" else 2**31
        within = kind is np.float64 or (np.abs(values) < limit).all()
        _require(bool(within), f"a number of {name}")
        return values

    def integers(self, name: str, length: int | None = None) -> Int64Array:
        """Return the integers of a line, or none if the line is missing."""
        return self.numbers(name, length, np.int64)

    def integer(self, name: str) -> int:
        """Return the only integer of a line."""
        return int(self.integers(name, 1)[0])


def read_trees(text: str) -> list[TextTable]:
    """Return the tables of all trees in a text that is known to be sound.

    Parameters
    ----------
    text : str
        Text that `model_to_string` has written.

    Returns
    -------
    list of TextTable
    """
    blocks = text.partition(_END)[0].split("\nTree=")[1:]
    return [TextTable(block.split("\n")[1:]) for block in map(str.strip, blocks)]


def check_booster_text(text: str) -> None:
    """Refuse a text whose trees are not sound.

    Parameters
    ----------
    text : str
        Text that `model_to_string` has written.
    """
    with refusing("it holds a model of LightGBM that is not sound ({error})."):
        # The reader of LightGBM ends lines at these too.
        _require(not {"\r", "\0"} & {*text}, "its lines")
        # Sizes of trees are in bytes, so there is one letter for each byte.
        _check_text(text.encode().decode("latin-1"))


def _check_text(text: str) -> None:
    head, _, rest = text.partition("\n\n")
    trees, _, tail = rest.partition(_END)
    _require(rest.count(_END) == 1, "its trees have no end")
    lines = head.split("\n")
    header = TextTable([line for line in lines[1:] if "=" in line])
    known = lines[0] == "tree" and header.lines["version"] in ("v3", "v4")
    _require(known, "its version")
    n_features = header.integer("max_feature_idx") + 1
    n_classes = header.integer("num_class")
    sizes = header.integers("tree_sizes").tolist()
    _require(1 <= n_classes <= _MOST_CLASSES, "its number of classes")
    n_each = header.integer("num_tree_per_iteration")
    _require(n_each == n_classes and len(sizes) % n_each == 0, "its number of trees")
    # Answers are written to as many places as the objective says.
    claimed = _CLASSES.findall(header.lines.get("objective", ""))
    _require({*claimed} <= {str(n_classes)}, "the classes of its objective")
    for name in ("feature_names", "feature_infos"):
        _require(len(header.lines[name].split(" ")) == n_features, f"its {name}")
    block = tail.partition("\nparameters:")[2].partition("\nend of parameters")[0]
    parameters = [line for line in block.split("\n") if line]
    _require(all(map(_PARAMETER.fullmatch, parameters)), "its parameters")
    start = 0
    for number, size in enumerate(sizes):
        block = trees[start : start + size]
        named = block.startswith(f"Tree={number}\n") and block.endswith("\n\n\n")
        _require(named and len(block) == size, "a tree's size")
        _check_tree(TextTable(block.split("\n")[1:-3]), n_features)
        start += size
    _require(not trees[start:].strip(), "it has more trees than it says")


def _check_tree(tree: TextTable, n_features: int) -> None:
    """Check that lines have their lengths, and that children come after parents."""
    n_leaves, n_runs = tree.integer("num_leaves"), tree.integer("num_cat")
    _require(n_leaves >= 1 and n_runs >= 0, "a tree's numbers of leaves")
    _require(tree.lines.get("is_linear", "0") == "0", "a tree's linear leaves")
    tree.numbers("shrinkage", 1)
    tree.numbers("leaf_value", n_leaves)
    for kind, names in _OF_TREES.items():
        for name in names.split():
            length = n_leaves - (not name.startswith("leaf"))
            # If a tree is one leaf, some lines are empty or missing.
            tree.numbers(name, length if n_leaves > 1 else None, kind)
    if n_leaves == 1:
        return
    _require(_within(tree.integers("split_feature"), n_features), "a split's feature")
    for name in ("left_child", "right_child"):
        child = tree.integers(name)
        ahead = (child > np.arange(n_leaves - 1)) & (child < n_leaves - 1)
        leaf = (child < 0) & (child >= -n_leaves)
        _require(bool((ahead | leaf).all()), "a node's child")
    kinds = tree.integers("decision_type")
    _require(_within(kinds, 16), "a split's type")
    runs = tree.numbers("threshold")[kinds & _CATEGORY > 0]
    _require({*runs.tolist()} <= {*range(n_runs)}, "a split's categories")
    if n_runs:
        bounds = tree.integers("cat_boundaries", n_runs + 1)
        _require(bounds[0] == 0 and bool((np.diff(bounds) > 0).all()), "cat_boundaries")
        words = tree.integers("cat_threshold")
        _require(len(words) == bounds[-1] and bool((words >= 0).all()), "categories")


def _within(values: NDArray[Any], limit: Any) -> bool:
    return bool(((values >= 0) & (values < limit)).all())


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise ValueError(what)


#: Different values that may have one hash, as -1 and -2 have, or 2**61 - 1 and 0.
MOST_ALIKE = 16
# Attributes that hold rows. They must have as many columns as new rows.
_ROWS = ("_fit_X", "cluster_centers_")
#: Trees of neighbours. They are not written, but grown again from their rows.
GROWN = {"kd_tree": KDTree, "ball_tree": BallTree}


def check_hashes(values: Iterable[Any]) -> None:
    """Refuse values if many have one hash, because a search among them never ends.

    Parameters
    ----------
    values : iterable
        Items of a set, keys of a dict, or categories. Those without a hash are passed
        over.
    """
    alike: dict[int, list[Any]] = {}
    for value in values:
        # Nobody can foresee the hash of a text.
        if type(value) is str:
            continue
        try:
            found = alike.setdefault(hash(value), [])
        except TypeError:
            continue
        # Most values are the first of their hash. A value may be there many times.
        if not any(value is one or value == one for one in found):
            found.append(value)
            if len(found) > MOST_ALIKE:
                refuse("it holds many values that have the same hash.")


def check_nodes(
    children: NDArray[Any],
    feature: NDArray[Any],
    inner: NDArray[Any],
    n_features: float,
) -> None:
    """Refuse nodes whose children do not come after them, so that no walk is a circle.

    Parameters
    ----------
    children : ndarray of shape (2, n_nodes)
    feature, inner : ndarrays of shape (n_nodes,)
        Where a node splits, and whether it does.
    n_features : int
    """
    below = children[:, inner]
    ahead = (below > np.flatnonzero(inner)) & (below < len(inner))
    if not (len(inner) and ahead.all() and _within(feature[inner], n_features)):
        refuse("it holds a tree whose nodes lead nowhere.")


def check_tables(value: Any) -> None:
    """Refuse an object whose tables do not fit each other, and grow its tree again.

    Parameters
    ----------
    value : object
        An object that was just read. All that it holds has been checked before.
    """
    state = getattr(value, "__dict__", {})
    for rows in (state[name] for name in _ROWS if name in state):
        if rows.shape[0] == 0 or rows.shape[1] != state["n_features_in_"]:
            refuse(f"it holds rows of shape {rows.shape} where others are asked for.")
    # Check each of these. One attribute too many must not replace the check of another.
    if "support_vectors_" in state:
        _check_vectors(state, value._impl)
    # An imputer by neighbours has rows, but no method.
    if "_fit_method" in state:
        _check_neighbours(state)
    if "tree_" in state:
        _check_features(state["tree_"], state["n_features_in_"])
    if "_predictors" in state:
        _check_predictors(state)
    if "estimators_" in state:
        _check_ensemble(value, state)


def _check_features(tree: Any, limit: float) -> None:
    if tree.n_features > limit:
        refuse(f"it holds a tree of {tree.n_features} features for tables of {limit}.")


def _check_ensemble(value: Any, state: dict[str, Any]) -> None:
    """Check the trees, because an ensemble asks them without any checks."""
    held = state["estimators_"]
    # Go item by item. A list of few arrays may stand for more than fits into memory.
    members = held if isinstance(held, np.ndarray) else np.fromiter(held, dtype=object)
    # Boosting adds up a column of trees for each column of its table.
    n_columns = state.get("n_trees_per_iteration_")
    if n_columns not in (None, *members.shape[1:]):
        refuse(f"it holds trees of the shape {members.shape} for {n_columns} sums.")
    # An ensemble that votes asks its first member for the number, and each tree checks.
    votes = hasattr(type(value), "n_features_in_")
    limit = np.inf if votes else state.get("n_features_in_", 0)
    for member in members.ravel():
        if "tree_" in getattr(member, "__dict__", {}):
            _check_features(member.tree_, limit)


def _check_predictors(state: dict[str, Any]) -> None:
    """Check trees of histograms. A category goes left if its bit is set."""
    known = state["_bin_mapper"].is_categorical_
    for predictor in chain.from_iterable(state["_predictors"]):
        nodes = predictor.nodes
        children = np.stack([nodes["left"], nodes["right"]]).astype(np.int64)
        inner = nodes["is_leaf"] == 0
        check_nodes(children, nodes["feature_idx"], inner, state["n_features_in_"])
        split = nodes[inner & (nodes["is_categorical"] != 0)]
        sets = predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets
        bits = split["bitset_idx"] < min(map(len, sets))
        if not (bits & known[split["feature_idx"]]).all():
            refuse("it holds a tree whose categories are none.")


def _check_vectors(state: dict[str, Any], kind: str) -> None:
    """Check that the tables of a support vector machine have the right lengths."""
    counts, rows = state["_n_support"], state["support_"]
    n_classes, n_vectors, n_rows = len(counts), len(rows), state["shape_fit_"][0]
    n_pairs = n_classes * (n_classes - 1) // 2
    # If a kernel is given, only the places of rows are kept.
    is_given = callable(state["kernel"]) or state["kernel"] == "precomputed"
    shape = (0, 0) if is_given else (n_vectors, state["n_features_in_"])
    # Machines that are no classifiers count their vectors twice.
    of_classes = kind in ("c_svc", "nu_svc")
    if not (
        state["support_vectors_"].shape == shape
        and state["_dual_coef_"].shape == (max(n_classes - 1, 1), n_vectors)
        and state["_intercept_"].shape == (n_pairs,)
        and {len(state["_probA"]), len(state["_probB"])} <= {0, n_pairs}
        and _within(rows, n_rows)
        and (state["kernel"] != "precomputed" or n_rows <= state["n_features_in_"])
        and (counts >= 0).all()
        and (counts.sum() == n_vectors or not of_classes)
    ):
        refuse("it holds a support vector machine whose tables do not fit.")


def _check_neighbours(state: dict[str, Any]) -> None:
    """Check that labels are places among the classes, and grow trees."""
    rows, classes = state["_fit_X"], state.get("classes_", [])
    # If there are several targets, there is a list of classes.
    limits = list(map(len, classes if isinstance(classes, list) else [classes]))
    if limits and not _within(state["_y"].reshape(rows.shape[0], -1), limits):
        refuse("it holds rows of classes that are none.")
    if state["_fit_method"] in GROWN:
        how = {"metric": state["effective_metric_"]} | state["effective_metric_params_"]
        state["_tree"] = GROWN[state["_fit_method"]](rows, state["leaf_size"], **how)


# Words of the state of a Mersenne twister, and words that Philox makes at once.
_POSITIONS = {"MT19937": 624, "Philox": 4}
_GENERATORS = ("MT19937", "Philox", "PCG64", "PCG64DXSM", "SFC64")


def kind_of(value: Any) -> str:
    """Return the name of the kind of a value, whether there is such a kind or not."""
    bases = (base for base in (np.generic, np.dtype) if isinstance(value, base))
    cls = next(bases, type(value))
    return f"{cls.__module__.partition('.')[0]}.{cls.__name__}"


def take_pairs(value: dict[Any, Any]) -> list[Any]:
    """Return a flat list of key, value, key, value and so on."""
    return [part for pair in value.items() for part in pair]


def _list(kind: Callable[[Any], Any]) -> tuple[Any, Any]:
    return list, lambda *parts: kind(parts)


def _dict(kind: type) -> tuple[Any, Any]:
    def make(*parts: Any) -> Any:
        out = kind()
        out.update(zip(parts[::2], parts[1::2], strict=True))
        return out

    return take_pairs, make


def _take_bytes(value: bytes | bytearray) -> tuple[Any, ...]:
    return (np.array(bytearray(value), np.uint8),)


def _take_objects(value: NDArray[Any]) -> tuple[Any, ...]:
    return not value.flags.writeable, value.ndim, *value.shape, *value.ravel().tolist()


def _make_objects(frozen: bool, n_axes: int, *rest: Any) -> NDArray[Any]:
    out = np.fromiter(rest[n_axes:], dtype=object).reshape(rest[:n_axes])
    out.setflags(write=not frozen)
    return out


def _check_position(state: Any) -> str:
    """Return a generator's name. Refuse one that would read from beyond its state."""
    name = str(state["bit_generator"])
    position = state.get("buffer_pos", state["state"].get("pos", 0))
    if name not in _GENERATORS or not 0 <= position <= _POSITIONS.get(name, 0):
        refuse(f"it holds a random generator {name!r:.40} whose place is none.")
    return name


def _make_random_state(state: dict[str, Any]) -> Any:
    _check_position(state)
    out = np.random.RandomState()
    out.set_state(state)
    return out


def _take_generator(value: Any) -> tuple[Any, ...]:
    seeds = value.bit_generator.seed_seq
    children = seeds.n_children_spawned
    return value.bit_generator.state, seeds.entropy, seeds.spawn_key, children


def _make_generator(state: Any, entropy: Any, key: Any, children: int) -> Any:
    of = getattr(np.random, _check_position(state))
    seeds = np.random.SeedSequence(entropy, spawn_key=key, n_children_spawned=children)
    bits = of(seeds)
    bits.state = state
    return np.random.Generator(bits)


def _make_tree(n_features: int, n_classes: Any, n_outputs: int, state: Any) -> Any:
    """Return a tree of scikit-learn, which trusts all parts, so they are checked."""
    nodes = state["nodes"]
    left, right = nodes["left_child"], nodes["right_child"]
    if n_classes.shape != (n_outputs,) or state["node_count"] != len(nodes):
        refuse("it holds a tree whose tables do not fit.")
    check_nodes(np.stack([left, right]), nodes["feature"], left != -1, n_features)
    # This class has no public name.
    of = importlib.import_module("sklearn.tree._tree").Tree
    tree = of(n_features, n_classes, n_outputs)
    tree.__setstate__(state)
    return tree


def _take_booster(value: Any) -> tuple[Any, ...]:
    text = value.model_to_string(num_iteration=-1)
    _require("\nis_linear=1" not in text, "leaves that are lines are not read again")
    scores = {key: dict(score) for key, score in value.best_score.items()}
    return text.encode(), value.best_iteration, scores


def _make_booster(text: bytes, best_iteration: int, best_score: dict[str, Any]) -> Any:
    """Return a booster of LightGBM. It has no training data any more."""
    import lightgbm

    check_booster_text(text.decode())
    booster = lightgbm.Booster(model_str=text.decode())
    booster.best_iteration = best_iteration
    booster.best_score = best_score
    return booster


def _take_interval(value: Any) -> tuple[Any, ...]:
    import pandas as pd

    # The ends become numbers and dates as arrays have them.
    held = pd.IntervalIndex([value])
    return held.left.to_numpy(), held.right.to_numpy(), value.closed


def _make_interval(left: Any, right: Any, closed: str) -> Any:
    import pandas as pd

    return pd.IntervalIndex.from_arrays(left, right, closed)[0]


#: For each kind, what takes a value apart, and what makes it from the parts.
KINDS: dict[str, tuple[Callable[[Any], Iterable[Any]], Callable[..., Any]]] = {
    "builtins.list": _list(list),
    "builtins.tuple": _list(tuple),
    "builtins.set": _list(set),
    "builtins.frozenset": _list(frozenset),
    "builtins.dict": _dict(dict),
    "collections.OrderedDict": _dict(OrderedDict),
    "sklearn.Bunch": _dict(Bunch),
    "collections.defaultdict": (lambda it: (it.default_factory, dict(it)), defaultdict),
    "builtins.slice": (lambda it: (it.start, it.stop, it.step), slice),
    "builtins.bytes": (_take_bytes, np.ndarray.tobytes),
    "builtins.bytearray": (_take_bytes, lambda it: bytearray(np.ndarray.tobytes(it))),
    "numpy.ndarray": (_take_objects, _make_objects),
    "numpy.generic": (lambda it: (np.asarray(it),), lambda array: array[()]),
    "numpy.dtype": (lambda it: (np.empty(0, it),), lambda array: array.dtype),
    "numpy.MaskedArray": (
        lambda it: (it.data, np.asarray(it.mask), it.fill_value),
        lambda data, mask, fill: np.ma.MaskedArray(data, mask, fill_value=fill),
    ),
    "numpy.RandomState": (lambda it: (it.get_state(legacy=False),), _make_random_state),
    "numpy.Generator": (_take_generator, _make_generator),
    "pandas.Interval": (_take_interval, _make_interval),
    "sklearn.Tree": (lambda it: (*it.__reduce__()[1], it.__getstate__()), _make_tree),
    "lightgbm.Booster": (_take_booster, _make_booster),
}
