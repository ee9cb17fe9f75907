"""Nodes of the description that skops writes: each once, and numbered in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from calibration.storage.errors import refuse, refusing

SCHEMA = "schema.json"

# The protocol of skops whose nodes we know.
_PROTOCOL = 2
# skops reads these parts of a node before the others, which it reads as they stand.
_ORDER = {"key_types": 0, "content": 1}


def read_schema(members: dict[str, bytes]) -> dict[str, Any]:
    """Return the description among the members of a file.

    Parameters
    ----------
    members : dict of str to bytes

    Returns
    -------
    dict
    """
    if SCHEMA not in members:
        refuse(f"the member {SCHEMA!r} is missing.")
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


def count_expanded(value: Any, known: dict[int, int]) -> int:
    """Return how many nodes there were if each stood wherever its number stands.

    Parameters
    ----------
    value : object
        A node, or a part of one.
    known : dict of int to int
        By number, what is counted so far.

    Returns
    -------
    int
    """
    if isinstance(value, list):
        return sum(count_expanded(item, known) for item in value)
    if not isinstance(value, dict):
        return 0
    number: Any = value.get("__id__")
    if value.keys() == {"__id__"}:
        return known.get(number, 1)
    parts = sorted(value, key=lambda name: _ORDER.get(name, 2))
    known[number] = 1 + sum(count_expanded(value[name], known) for name in parts)
    return known[number]


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
    root = read_schema(members)
    numbers: dict[int, int] = {}
    # The same bytes are kept once, whatever they are the bytes of.
    files: dict[bytes, str] = {}
    for node in walk_nodes(root):
        place = node.get("__id__")
        if type(place) is not int:
            refuse("it holds a dict with a key that skops has for its own use")
        if place in numbers:
            node.clear()
        node["__id__"] = number = numbers.setdefault(place, len(numbers) + 1)
        if "file" in node:
            name = f"{number}.{node['file'].rpartition('.')[2]}"
            node["file"] = files.setdefault(members[node["file"]], name)
    text = json.dumps(root, separators=(",", ":")).encode("ascii")
    return {SCHEMA: text, **{name: data for data, name in files.items()}}
