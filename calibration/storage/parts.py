"""Parts: how objects of other libraries are written, each kind in its own format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class Part:
    """An object of another library as files, and what is to be known besides.

    Parameters
    ----------
    files : mapping of str to bytes
        By name; those that end in `.npy` are arrays of numpy's own format.
    state : dict
        Of values that can themselves be saved.
    """

    files: Mapping[str, bytes]
    state: dict[str, Any] = field(default_factory=dict)


class PartKind(Protocol):
    """One library's objects: told from others, written, and read."""

    @property
    def name(self) -> str:
        """The name in the file."""

    def holds(self, value: object) -> bool:
        """Say whether a value is of this kind; the library may not be installed."""

    def dump(self, value: Any) -> Part:
        """Return a value as files."""

    def load(self, part: Part) -> Any:
        """Return the value; whatever is wrong with the part is an exception."""
