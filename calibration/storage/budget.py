"""`Budget`: how much memory reading a file may take, counted before it is taken."""

from __future__ import annotations

from typing import NoReturn

from calibration.storage.errors import refuse

# A sound file of any size may take this, and so many times its own size. What is
# written keeps within it, if need be by not being packed.
_FREE_BYTES = 2**28
_MOST_RATIO = 100
# About what Python and skops take: for a character of a description that opens a dict
# or list, ends a string or parts two items; for a node; for seeing it once more.
_OF_TEXT = {b"{": 300, b"[": 128, b'"': 16, b",": 40}
_OF_NODE = 2500
_OF_VISIT = 256
_OF_MEMBER = 2000
# The description is read twice, members are held packed, unpacked and packed again.
_READS = 2
_COPIES = 3
# As they were read and as an array; texts of models are taken apart line by line.
_OF_ARRAY = 2
_OF_BYTES = 20


def default_limit(size: int) -> int:
    """Return the bytes that a file of some size may take."""
    return _FREE_BYTES + _MOST_RATIO * size


class Budget:
    """Bytes of memory, spent before they are taken.

    Parameters
    ----------
    limit : float
        Most bytes to spend.
    """

    def __init__(self, limit: float):
        self.limit = limit
        self.spent = 0

    def spend(self, n_bytes: int, what: str) -> None:
        """Refuse the file if the bytes are more than are left."""
        self.spent += n_bytes
        if self.spent > self.limit:
            self._refuse(what)

    def spend_members(self, data: bytes) -> None:
        """Spend what listing the members of a zip archive takes."""
        # Each has this mark; others of the kind do not matter among so many bytes.
        self.spend(data.count(b"PK\x01\x02") * _OF_MEMBER, "members")

    def spend_unpacking(self, size: int) -> None:
        """Spend what members of some size take."""
        self.spend(_COPIES * size, f"{size} bytes in members")

    def spend_text(self, text: bytes) -> None:
        """Spend what reading a description in JSON takes."""
        parts = sum(text.count(mark) * cost for mark, cost in _OF_TEXT.items())
        self.spend(_READS * (len(text) + parts), "items in its description")

    def spend_nodes(self, n_nodes: int, n_visits: int) -> None:
        """Spend what nodes take, which are visited wherever their number stands."""
        self.spend(_OF_NODE * n_nodes + _OF_VISIT * n_visits, f"{n_visits:.3g} nodes")

    def spend_array(self, size: int) -> None:
        """Spend what an array of some bytes takes."""
        self.spend(_OF_ARRAY * size, "arrays")

    def spend_bytes(self, size: int) -> None:
        """Spend what bytes take that are the text of a model, say."""
        self.spend(_OF_BYTES * size, "bytes")

    def spend_copies(self, size: int) -> None:
        """Spend what a value takes that is made of arrays of some bytes."""
        self.spend(size, "values made of arrays")

    def _refuse(self, what: str) -> NoReturn:
        refuse(
            f"it would take more than {self.limit:.0f} bytes of memory ({what}). If "
            "you know who wrote the file, load it with a greater `max_memory`."
        )
