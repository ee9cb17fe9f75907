"""Saved models changed at random, with right checksums: damage that is not told."""

import io
import json

import numpy as np

from tests.calibration.storage.archives import SCHEMA, describe, with_description

# What may stand where a number or text stood.
_ATOMS = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    7,
    255,
    2**31,
    2**63,
    -(2**63),
    10**30,
    0.5,
    1e300,
    float("nan"),
    float("inf"),
    "",
    "x",
    "1",
    [],
    {},
]
_NUMBERS = [0, 1, -1, 2, 3, 7, 100, 2**31 - 1, -(2**31), 2**40, -(2**62), 2**63 - 1]
_REALS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    1e-300,
    1e300,
    -1e300,
    np.nan,
    np.inf,
    -np.inf,
    0.5,
]
_DTYPES = ["<f8", "<f4", "<i8", "<i4", "<u1", "?", "<U3", "<M8[ns]", "<c16", ">f8"]


def mutate(members, rng):
    """Return other members, and what has been done to them.

    Parameters
    ----------
    members : dict of str to bytes
        Of a saved model; see `archives.take_apart`.
    rng : numpy.random.Generator

    Returns
    -------
    members : dict of str to bytes
    kind : str
    """
    kinds = [_change_values, _change_values, _reshape, _recast, _change_json]
    kinds += [_swap_members, _swap_nodes, _repeat_node, _change_text]
    kind = kinds[rng.integers(len(kinds))]
    changed = dict(members)
    for _ in range(rng.integers(1, 3)):
        changed = kind(changed, rng)
    return changed, kind.__name__


def _pick(rng, items):
    items = list(items)
    return items[rng.integers(len(items))] if items else None


def _pick_array(members, rng):
    """Return the name and the values of an array."""
    name = _pick(rng, [name for name in members if name.endswith(".npy")])
    return name, np.load(io.BytesIO(members[name])).copy() if name else None


def _with_array(members, name, array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return {**members, name: buffer.getvalue()}


def _change_values(members, rng):
    """Put others in the place of some numbers of an array."""
    name, array = _pick_array(members, rng)
    if name is None or not array.size:
        return members
    part = array
    if array.dtype.names:
        part = array[_pick(rng, array.dtype.names)]
    flat = part.reshape(-1)
    many = [1, 1, len(flat)][rng.integers(3)]
    for place in rng.integers(len(flat), size=min(many, 50)):
        if flat.dtype.kind == "f":
            flat[place] = _pick(rng, _REALS)
        elif flat.dtype.kind in "iu":
            wrapped = np.array(_pick(rng, _NUMBERS), dtype=np.int64)
            flat[place] = wrapped.astype(flat.dtype)
        else:
            flat[place] = _pick(rng, flat)
    if not array.dtype.names:
        array = flat.reshape(array.shape)
    return _with_array(members, name, array)


def _reshape(members, rng):
    """Cut, lengthen, turn or flatten an array."""
    name, array = _pick_array(members, rng)
    if name is None:
        return members
    ways = [
        lambda a: a[: len(a) // 2],
        lambda a: a[:0],
        lambda a: np.concatenate([a, a]),
        lambda a: a.T,
        lambda a: a.ravel(),
        lambda a: a[None],
        lambda a: a[..., :-1],
        lambda a: a[::-1],
        lambda a: a.reshape(-1)[:1].reshape(()) if a.size else a,
    ]
    return _with_array(members, name, _pick(rng, ways)(np.atleast_1d(array)))


def _recast(members, rng):
    """Give an array another type."""
    name, array = _pick_array(members, rng)
    if name is None or array.dtype.names:
        return members
    with np.errstate(all="ignore"):
        try:
            return _with_array(members, name, array.astype(_pick(rng, _DTYPES)))
        except (TypeError, ValueError):
            return members


def _list_places(tree):
    """Return all places of values in a tree of lists and dicts."""
    places, waiting = [], [tree]
    while waiting:
        value = waiting.pop()
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            places.append((value, key))
            if isinstance(value[key], dict | list):
                waiting.append(value[key])
    return places


def _change_json(members, rng):
    """Put another value in the place of one of the description."""
    description = describe(members)
    places = _list_places(description)
    contents = [
        (value, key)
        for value, key in places
        if key == "content" and value.get("__loader__") == "JsonNode"
    ]
    if contents and rng.random() < 0.8:
        value, key = _pick(rng, contents)
        value[key] = json.dumps(_pick(rng, _ATOMS))
    else:
        value, key = _pick(rng, places)
        value[key] = _pick(rng, _ATOMS)
    return with_description(members, description)


def _swap_nodes(members, rng):
    """Exchange two values of the description."""
    description = describe(members)
    places = _list_places(description)
    (one, key), (other, name) = _pick(rng, places), _pick(rng, places)
    one[key], other[name] = other[name], one[key]
    try:
        return with_description(members, description)
    except (ValueError, RecursionError):  # one holds the other
        return members


def _repeat_node(members, rng):
    """Put a number of a node in the place of another, or drop an item."""
    description = describe(members)
    places = _list_places(description)
    numbers = [value[key] for value, key in places if key == "__id__"]
    value, key = _pick(rng, places)
    if rng.random() < 0.3:
        del value[key]
    else:
        value[key] = {"__id__": _pick(rng, numbers)}
    return with_description(members, description)


def _swap_members(members, rng):
    """Exchange two members."""
    names = [name for name in members if name != SCHEMA]
    one, other = _pick(rng, names), _pick(rng, names)
    if one is None:
        return members
    return {**members, one: members[other], other: members[one]}


def _change_text(members, rng):
    """Change numbers in the text of a booster, or bytes anywhere."""
    name = _pick(rng, [name for name in members if name.endswith(".bin")])
    name = name or _pick(rng, members)
    text = bytearray(members[name])
    for _ in range(rng.integers(1, 4)):
        digits = [i for i, c in enumerate(text) if chr(c).isdigit()] or [0]
        place = _pick(rng, digits)
        new = _pick(rng, [b"9", b"-", b"99999", b"", b" ", b"1", b"0", b"nan", b"1e9"])
        text[place : place + 1] = new
    return {**members, name: bytes(text)}
