"""LightGBM's models as text: their tables of trees, which its own reader trusts.

Where a number in the text is wrong that reader, which is not Python, ends the whole
program or reads memory that is not its own. So the tables are checked first.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.storage.archive import refusing
from calibration.typing import Float64Array, Int64Array

_INTEGER = r"-?\d{1,10}"
_INTEGERS = re.compile(rf"({_INTEGER}( +{_INTEGER})*)?")
_NUMBER = r"-?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|inf|nan)"
_NUMBERS = re.compile(rf"({_NUMBER}( +{_NUMBER})*)?")
_KEY = re.compile(r"[a-z_0-9]+")
_PARAMETER = re.compile(r"\[[a-z_0-9]+: [^\]]*\]")
_CLASSES = re.compile(r"num_class:(\S*)")
_MOST_CLASSES = 10_000
_CATEGORY = 1
_END = "end of trees\n"
_OF_LEAVES = "leaf_value leaf_weight leaf_count"
_OF_NODES = (
    "split_gain threshold internal_value internal_weight internal_count "
    "split_feature decision_type left_child right_child"
)
_WHOLE = "leaf_count internal_count split_feature decision_type left_child right_child"


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
        self, name: str, length: int | None = None, limit: int = 2**31
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
        return self.integers("cat_threshold", limit=2**32)

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
    with refusing("it holds a model of LightGBM that is not sound ({error})."):
        # Its reader ends lines at these, too.
        _require(not {"\r", "\0"} & {*text}, "its lines")
        # Sizes of trees are in bytes: one letter each.
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
    """Lines are as long as they say, and children come after their parents."""
    n_leaves, n_runs = tree.integer("num_leaves"), tree.integer("num_cat")
    _require(n_leaves >= 1 and n_runs >= 0, "a tree's numbers of leaves")
    _require(tree.lines.get("is_linear", "0") == "0", "a tree's linear leaves")
    tree.numbers("shrinkage", 1)
    tree.numbers("leaf_value", n_leaves)
    for names, length in ((_OF_LEAVES, n_leaves), (_OF_NODES, n_leaves - 1)):
        for name in names.split():
            read = tree.integers if name in _WHOLE.split() else tree.numbers
            # Of a tree that is one leaf some lines are empty or missing.
            read(name, length if n_leaves > 1 else None)
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
        words = tree.words()
        _require(len(words) == bounds[-1] and bool((words >= 0).all()), "categories")


def _within(values: Int64Array, limit: int) -> bool:
    return bool(((values >= 0) & (values < limit)).all())


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise ValueError(what)
