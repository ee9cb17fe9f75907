"""Nodes of the description that skops writes: each once, and numbered in order."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from calibration.storage.budget import Budget
from calibration.storage.errors import refuse, refusing

SCHEMA = "schema.json"

# The protocol of skops whose nodes we know.
_PROTOCOL = 2
# skops reads these parts of a node before the others, which it reads as they stand.
_ORDER = {"key_types": 0, "content": 1}


# Nodes whose same bytes are kept once: more, and a small file would make much.
_MOST_SHARES = 16


def read_schema(members: dict[str, bytes], budget: Budget) -> dict[str, Any]:
    """Return the description among the members of a file.

    Parameters
    ----------
    members : dict of str to bytes
    budget : Budget
        Of the memory that it takes.

    Returns
    -------
    dict
    """
    if SCHEMA not in members:
        refuse(f"the member {SCHEMA!r} is missing.")
    budget.spend_text(members[SCHEMA])
    message = "its description is no sound JSON ({error})."
    with refusing(message, ValueError, RecursionError):
        root = json.loads(members[SCHEMA].decode("ascii"))
    if not isinstance(root, dict) or root.get("protocol") != _PROTOCOL:
        refuse("its description is of no protocol of skops that is read here.")
    return root


def walk_nodes(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all that skops may take for a node, in the order in which it reads them.

    Parameters
    ----------
    root : dict

    Yields
    ------
    dict
        May be changed, but for the parts that are nodes themselves.
    """
    waiting: list[Any] = [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if not value.keys().isdisjoint(("__id__", "__loader__", "__class__")):
                yield value
            parts = sorted(value, key=lambda name: _ORDER.get(name, 2))
            waiting.extend(value[name] for name in reversed(parts))
        elif isinstance(value, list):
            waiting.extend(reversed(value))


def weigh_nodes(
    value: Any, sizes: Mapping[Any, int], known: dict[Any, tuple[int, int]]
) -> tuple[int, int]:
    """Return how many nodes there were if each stood wherever its number stands.

    Parameters
    ----------
    value : object
        A node, or a part of one.
    sizes : mapping of int to int
        Bytes of the members of nodes, by number.
    known : dict of int to tuple
        By number, what is found so far.

    Returns
    -------
    n_nodes, n_bytes : int
        Of nodes and of their members.
    """
    if isinstance(value, dict):
        number: Any = value.get("__id__")
        if value.keys() == {"__id__"}:
            return known.get(number, (1, 0))
        parts = [value[part] for part in sorted(value, key=lambda p: _ORDER.get(p, 2))]
        n_nodes, n_bytes = 1, sizes.get(number, 0)
    elif isinstance(value, list):
        number, parts, n_nodes, n_bytes = None, value, 0, 0
    else:
        return 0, 0
    for part in parts:
        more_nodes, more_bytes = weigh_nodes(part, sizes, known)
        n_nodes, n_bytes = n_nodes + more_nodes, n_bytes + more_bytes
    if number is not None:
        known[number] = n_nodes, n_bytes
    return n_nodes, n_bytes


def share_nodes(members: dict[str, bytes]) -> dict[str, bytes]:
    """Return members whose description has each node once, and its number after that.

    skops writes an object as often as it occurs, numbered by its place in memory.

    Parameters
    ----------
    members : dict of str to bytes
        As skops has written them.

    Returns
    -------
    dict of str to bytes
    """
    root = read_schema(members, Budget(math.inf))
    numbers: dict[int, int] = {}
    # The same bytes are kept once, whatever they are the bytes of.
    files: dict[tuple[bytes, int], str] = {}
    uses: Counter[bytes] = Counter()
    for node in walk_nodes(root):
        place = node.get("__id__")
        if type(place) is not int:
            refuse("it holds a dict with a key that skops has for its own use")
        if place in numbers:
            node.clear()
        node["__id__"] = number = numbers.setdefault(place, len(numbers) + 1)
        if "file" in node:
            name = f"{number}.{node['file'].rpartition('.')[2]}"
            data = members[node["file"]]
            node["file"] = files.setdefault((data, uses[data] // _MOST_SHARES), name)
            uses[data] += 1
    text = json.dumps(root, separators=(",", ":")).encode("ascii")
    return {SCHEMA: text, **{name: data for (data, _), name in files.items()}}
