"""Values that are found by their hashes, which whoever makes up a file can choose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from calibration.storage.errors import refuse

# Different values that may have one hash: -1 and -2 do, 2**61 - 1 and 0 as well.
_MOST_ALIKE = 16


def check_hashes(values: Iterable[Any]) -> None:
    """Refuse values many of which have one hash: finding them takes forever.

    Parameters
    ----------
    values : iterable
        Of a set, keys of a dict, or categories. What has no hash is passed over.
    """
    alike: dict[int, list[Any]] = {}
    for value in values:
        # The hash of a text is not to be foreseen.
        if type(value) is str or getattr(type(value), "__hash__", None) is None:
            continue
        try:
            found = alike.setdefault(hash(value), [])
        except TypeError:
            continue
        # Most are the first of their hash; a value may be there many times.
        if not any(value is one or value == one for one in found):
            found.append(value)
            if len(found) > _MOST_ALIKE:
                refuse("it holds many values that have the same hash.")
