"""LightGBM's models as text: their tables of trees, which its own reader trusts.

Where a number in the text is wrong that reader, which is not Python, ends the whole
program or reads memory that is not its own. So the tables are checked first.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.storage.errors import refusing
from calibration.typing import Float64Array, Int64Array

_INTEGER = r"-?\d{1,10}"
_INTEGERS = re.compile(rf"({_INTEGER}( +{_INTEGER})*)?")
_NUMBER = r"-?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|inf|nan)"
_NUMBERS = re.compile(rf"({_NUMBER}( +{_NUMBER})*)?")
_KEY = re.compile(r"[a-z_0-9]+")
_PARAMETER = re.compile(r"\[[a-z_0-9]+: [^\]]*\]")
_CLASSES = re.compile(r"num_class:(\S*)")
_MOST_CLASSES = 10_000
_MOST_INTEGER = 2**31
_MOST_WORD = 2**32
_CATEGORY = 1
_KINDS = 16
_END = "end of trees\n"
_OF_LEAVES = "leaf_value leaf_weight leaf_count"
_OF_NODES = (
    "split_feature split_gain threshold decision_type left_child right_child "
    "internal_value internal_weight internal_count"
)
_OTHERS = (
    "num_leaves num_cat cat_boundaries cat_threshold is_linear leaf_const "
    "num_features leaf_features leaf_coeff shrinkage"
)
_KNOWN = set(f"{_OF_LEAVES} {_OF_NODES} {_OTHERS}".split())


class TextTable:
    """Lines `name=value` of a model's text, read number by number.

    Parameters
    ----------
    lines : list of str
    """

    def __init__(self, lines: list[str]):
        self.lines = dict(line.split("=", 1) for line in lines)
        _require(len(self.lines) == len(lines), "its lines")
        _require(all(map(_KEY.fullmatch, self.lines)), "its lines")

    def integers(
        self, name: str, length: int | None = None, limit: int = _MOST_INTEGER
    ) -> Int64Array:
        """Return the integers of a line, none where it is missing."""
        values = self._read(name, length, _INTEGERS, np.int64)
        _require(bool((np.abs(values) < limit).all()), f"a number of {name}")
        return values

    def integer(self, name: str) -> int:
        """Return the only integer of a line."""
        return int(self.integers(name, 1)[0])

    def numbers(self, name: str, length: int | None = None) -> Float64Array:
        """Return the numbers of a line, none where it is missing."""
        return self._read(name, length, _NUMBERS, np.float64)

    def words(self) -> Int64Array:
        """Return the bits of categories, 32 in a word."""
        return self.integers("cat_threshold", limit=_MOST_WORD)

    def _read(
        self, name: str, length: int | None, pattern: re.Pattern[str], dtype: type
    ) -> NDArray[Any]:
        text = self.lines.get(name, "").strip()
        _require(pattern.fullmatch(text) is not None, f"a number of {name}")
        values: NDArray[Any] = np.fromstring(text, dtype=dtype, sep=" ")
        _require(length is None or len(values) == length, f"the length of {name}")
        return values


def read_trees(text: str) -> list[TextTable]:
    """Return the tables of all trees in a text that is known to be sound.

    Parameters
    ----------
    text : str
        As `model_to_string` writes it.

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
        As `model_to_string` writes it.
    """
    message = "it holds a model of LightGBM that is not sound ({error})."
    with refusing(message):
        _check_text(text)


def _check_text(text: str) -> None:
    # Sizes of trees are in bytes: one letter each.
    text = text.encode().decode("latin-1")
    head, _, rest = text.partition("\n\n")
    _require(rest.count(_END) == 1, "its trees have no end")
    lines = head.split("\n")
    header = TextTable([line for line in lines[1:] if "=" in line])
    version = header.lines["version"]
    _require(lines[0] == "tree" and version in ("v3", "v4"), "its version")
    n_features = header.integer("max_feature_idx") + 1
    n_classes = header.integer("num_class")
    n_each = header.integer("num_tree_per_iteration")
    sizes = header.integers("tree_sizes").tolist()
    _require(1 <= n_classes <= _MOST_CLASSES, "its number of classes")
    _require(n_each == n_classes and len(sizes) % n_each == 0, "its number of trees")
    # Answers are written to as many places as the objective says.
    claimed = _CLASSES.findall(header.lines.get("objective", ""))
    _require({*claimed} <= {str(n_classes)}, "the classes of its objective")
    for name in ("feature_names", "feature_infos"):
        _require(len(header.lines[name].split(" ")) == n_features, f"its {name}")
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
    tree = TextTable([line for line in lines[1:] if line])
    _require(tree.lines.keys() <= _KNOWN, "a tree's lines")
    n_leaves, n_runs = tree.integer("num_leaves"), tree.integer("num_cat")
    _require(n_leaves >= 1 and n_runs >= 0, "a tree's numbers of leaves")
    tree.numbers("shrinkage", 1)
    tree.numbers("leaf_value", n_leaves)
    for names, length in ((_OF_LEAVES, n_leaves), (_OF_NODES, n_leaves - 1)):
        for name in names.split():
            # Of a tree that is one leaf some lines are empty or missing.
            tree.numbers(name, length if n_leaves > 1 else None)
            if name.endswith("_count"):
                tree.integers(name)
    if n_leaves > 1:
        _check_nodes(tree, n_leaves, n_runs, n_features)
    _check_linear(tree, n_leaves, n_features)


def _check_nodes(tree: TextTable, n_leaves: int, n_runs: int, n_features: int) -> None:
    """Children come after their parents; features and sets of categories exist."""
    _require(_within(tree.integers("split_feature"), n_features), "a split's feature")
    place = np.arange(n_leaves - 1)
    for name in ("left_child", "right_child"):
        child = tree.integers(name)
        ahead = (child > place) & (child < n_leaves - 1)
        leaf = (child < 0) & (child >= -n_leaves)
        _require(bool((ahead | leaf).all()), "a node's child")
    kinds = tree.integers("decision_type")
    _require(_within(kinds, _KINDS), "a split's type")
    runs = tree.numbers("threshold")[kinds & _CATEGORY > 0]
    _require({*runs.tolist()} <= {*range(n_runs)}, "a split's categories")
    if n_runs:
        bounds = tree.integers("cat_boundaries", n_runs + 1)
        _require(bounds[0] == 0 and bool((np.diff(bounds) > 0).all()), "cat_boundaries")
        words = tree.words()
        _require(len(words) == bounds[-1] and bool((words >= 0).all()), "categories")


def _check_linear(tree: TextTable, n_leaves: int, n_features: int) -> None:
    """Leaves that hold linear functions name features that exist."""
    linear = tree.integer("is_linear") if "is_linear" in tree.lines else 0
    _require(linear in (0, 1), "is_linear")
    if linear:
        tree.numbers("leaf_const", n_leaves)
        counts = tree.integers("num_features", n_leaves)
        _require(bool((counts >= 0).all()), "num_features")
        used = tree.integers("leaf_features", int(counts.sum()))
        _require(_within(used, n_features), "a leaf's feature")
        tree.numbers("leaf_coeff", int(counts.sum()))


def _within(values: Int64Array, limit: int) -> bool:
    return bool(((values >= 0) & (values < limit)).all())


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise ValueError(what)
