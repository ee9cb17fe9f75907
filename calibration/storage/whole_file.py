"""Files that are written whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing_file(path: Path) -> Iterator[Path]:
    """Yield a path beside the given one, which takes its place if all goes well.

    A link stays, and what it names is replaced; a file that is replaced hands on its
    permissions.

    Parameters
    ----------
    path : Path

    Yields
    ------
    Path
        Where nothing is yet.
    """
    target = path.resolve()
    name = f".{target.name[:100]}.{secrets.token_hex(8)}.tmp"
    temporary = target.with_name(name)
    try:
        yield temporary
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o777)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
