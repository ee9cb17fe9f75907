"""`Budget`: how much memory reading a file may take, counted before it is taken."""

from __future__ import annotations

from calibration.storage.errors import refuse

# A sound file of any size may take this, and so many times its own size. What is
# written keeps within it, if need be by not being packed.
_FREE_BYTES = 2**28
_MOST_RATIO = 100
# About what Python takes for the character of a description that opens a list, ends a
# text or parts two items; for the others; for a member of an archive.
_OF_TEXT = {b"[": 150, b"{": 300, b'"': 16, b",": 50}
_OF_LETTER = 4
_OF_MEMBER = 2000
# Arrays are held as read and unpacked, and once more each.
_COPIES = 3


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
            refuse(
                f"it would take more than {self.limit:.0f} bytes of memory ({what}). "
                "If you know who wrote the file, load it with a greater `max_memory`."
            )

    def spend_members(self, data: bytes) -> None:
        """Spend what listing the members of a zip archive takes."""
        self.spend(data.count(b"PK\x01\x02") * _OF_MEMBER, "members")

    def spend_unpacking(self, size: int) -> None:
        """Spend what members of some size take."""
        self.spend(_COPIES * size, f"{size} bytes in members")

    def spend_text(self, text: bytes) -> None:
        """Spend what reading a description takes, and the nodes that it lists."""
        parts = sum(text.count(mark) * cost for mark, cost in _OF_TEXT.items())
        self.spend(_OF_LETTER * len(text) + parts, "items in its description")
