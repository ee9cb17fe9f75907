"""LightGBM's models as text, which its own reader takes on trust.

Where a number in the text is wrong the reader, which is not Python, ends the whole
program or reads memory that is not its own. So the tables of trees are checked first.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.storage.errors import StorageError

_INTEGER = re.compile(r"-?\d{1,9}")
_NUMBER = re.compile(r"-?(\d+(\.\d+)?([eE][-+]?\d+)?|inf|nan)")
_KEY = re.compile(r"[a-z_0-9]+")
_PARAMETER = re.compile(r"\[[a-z_0-9]+: [^\]]*\]")
_MOST_CLASSES = 10_000
_CATEGORY = 1
_END = "end of trees\n"
# Lines of numbers, by how many there are: one per leaf, or one per node.
_OF_LEAVES = {"leaf_value": float, "leaf_weight": float, "leaf_count": int}
_OF_NODES = {
    "split_feature": int,
    "split_gain": float,
    "threshold": float,
    "decision_type": int,
    "left_child": int,
    "right_child": int,
    "internal_value": float,
    "internal_weight": float,
    "internal_count": int,
}
_OTHERS = {
    "num_leaves",
    "num_cat",
    "cat_boundaries",
    "cat_threshold",
    "is_linear",
    "leaf_const",
    "num_features",
    "leaf_features",
    "leaf_coeff",
    "shrinkage",
}


def check_booster_text(text: str) -> None:
    """Refuse a text whose trees are not sound.

    Parameters
    ----------
    text : str
        As `model_to_string` writes it.
    """
    try:
        _check_text(text)
    except (ValueError, KeyError, IndexError) as error:
        msg = f"it holds a model of LightGBM that is not sound ({error})."
        raise StorageError(msg) from error


def _check_text(text: str) -> None:
    # Sizes of trees are in bytes: one letter each.
    text = text.encode().decode("latin-1")
    head, _, rest = text.partition("\n\n")
    _require(rest.count(_END) == 1, "its trees have no end")
    lines = head.split("\n")
    header = _read_lines([line for line in lines[1:] if "=" in line])
    _require(lines[0] == "tree" and header["version"] in ("v3", "v4"), "its version")
    n_features = _integers(header, "max_feature_idx", 1)[0] + 1
    n_classes = _integers(header, "num_class", 1)[0]
    n_each = _integers(header, "num_tree_per_iteration", 1)[0]
    sizes: list[int] = []
    if "tree_sizes" in header:
        sizes = _integers(header, "tree_sizes", None).tolist()
    _require(1 <= n_classes <= _MOST_CLASSES, "its number of classes")
    _require(n_each == n_classes and len(sizes) % n_each == 0, "its number of trees")
    for name in ("feature_names", "feature_infos"):
        _require(len(header[name].split(" ")) == n_features, f"its {name}")
    trees, _, tail = rest.partition(_END)
    block = tail.partition("\nparameters:")[2].partition("\nend of parameters")[0]
    parameters = [line for line in block.split("\n") if line]
    _require(all(map(_PARAMETER.fullmatch, parameters)), "its parameters")
    _require(sum(sizes) <= len(trees) and min(sizes, default=1) > 0, "its tree_sizes")
    start = 0
    for number, size in enumerate(sizes):
        _check_tree(trees[start : start + size], number, n_features)
        start += size
    _require(not trees[start:].strip(), "it has more trees than it says")


def _check_tree(block: str, number: int, n_features: int) -> None:
    lines = block.split("\n")
    _require(lines[0] == f"Tree={number}" and block.endswith("\n\n\n"), "a tree's size")
    tree = _read_lines([line for line in lines[1:] if line])
    _require(tree.keys() <= {*_OF_LEAVES, *_OF_NODES, *_OTHERS}, "a tree's lines")
    n_leaves = int(_integers(tree, "num_leaves", 1)[0])
    n_runs = int(_integers(tree, "num_cat", 1)[0])
    _require(n_leaves >= 1 and n_runs >= 0, "a tree's numbers of leaves")
    _numbers(tree, "shrinkage", 1)
    _numbers(tree, "leaf_value", n_leaves)
    for table, length in ((_OF_LEAVES, n_leaves), (_OF_NODES, n_leaves - 1)):
        for name, kind in table.items():
            # Of a tree that is one leaf some lines are empty or missing.
            if n_leaves > 1 or tree.get(name, "").strip():
                read = _integers if kind is int else _numbers
                read(tree, name, length if n_leaves > 1 else None)
    if n_leaves > 1:
        _check_nodes(tree, n_leaves, n_runs, n_features)
    _check_linear(tree, n_leaves, n_features)


def _check_nodes(
    tree: dict[str, str], n_leaves: int, n_runs: int, n_features: int
) -> None:
    """Children come after their parents; features and sets of categories exist."""
    feature = _integers(tree, "split_feature", None)
    _require(_within(feature, n_features), "a split's feature")
    place = np.arange(n_leaves - 1)
    for name in ("left_child", "right_child"):
        child = _integers(tree, name, None)
        ahead = (child > place) & (child < n_leaves - 1)
        leaf = (child < 0) & (child >= -n_leaves)
        _require(bool((ahead | leaf).all()), "a node's child")
    kinds = _integers(tree, "decision_type", None)
    _require(_within(kinds, 16), "a split's type")
    runs = _numbers(tree, "threshold", None)[kinds & _CATEGORY > 0]
    _require(bool(np.isin(runs, np.arange(n_runs)).all()), "a split's categories")
    if n_runs:
        bounds = _integers(tree, "cat_boundaries", n_runs + 1)
        _require(bounds[0] == 0 and bool((np.diff(bounds) > 0).all()), "cat_boundaries")
        words = tree["cat_threshold"].split()
        _require(len(words) == bounds[-1], "the number of categories")
        _require(all(re.fullmatch(r"\d{1,10}", word) for word in words), "categories")


def _check_linear(tree: dict[str, str], n_leaves: int, n_features: int) -> None:
    """Leaves that hold linear functions name features that exist."""
    linear = _integers(tree, "is_linear", 1)[0] if "is_linear" in tree else 0
    _require(linear in (0, 1), "is_linear")
    if linear:
        _numbers(tree, "leaf_const", n_leaves)
        counts = _integers(tree, "num_features", n_leaves)
        _require(bool((counts >= 0).all()), "num_features")
        used = _integers(tree, "leaf_features", int(counts.sum()))
        _require(_within(used, n_features), "a leaf's feature")
        _numbers(tree, "leaf_coeff", int(counts.sum()))


def _read_lines(lines: list[str]) -> dict[str, str]:
    pairs = [line.partition("=") for line in lines]
    out = {key: value for key, sign, value in pairs if sign and _KEY.fullmatch(key)}
    _require(len(out) == len(lines), "its lines")
    return out


def _integers(tree: dict[str, str], name: str, length: int | None) -> NDArray[Any]:
    return _parse(tree, name, length, _INTEGER).astype(np.int64)


def _numbers(tree: dict[str, str], name: str, length: int | None) -> NDArray[Any]:
    return _parse(tree, name, length, _NUMBER)


def _parse(
    tree: dict[str, str], name: str, length: int | None, pattern: re.Pattern[str]
) -> NDArray[Any]:
    words = tree[name].split()
    _require(all(pattern.fullmatch(word) for word in words), f"a number of {name}")
    _require(length is None or len(words) == length, f"the length of {name}")
    return np.array(words, dtype=np.float64)


def _within(values: NDArray[Any], limit: int) -> bool:
    return bool(((values >= 0) & (values < limit)).all())


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise ValueError(what)
