"""A Dask cluster, by the address of its scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from localexpert.cli.cells import load_module
from localexpert.cli.console import count, note, refuse, refusing

_NEED = '--client needs Dask: pip install "localexpert[dask]"'
# Seconds that a scheduler may take to answer.
_PATIENCE = 10


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Yield a client of the scheduler at an address, None without one."""
    if address is None:
        yield None
        return
    distributed = load_module("distributed", _NEED)
    where = f"--client {address!r}"
    with refusing(f"cannot reach {where}", OSError, ValueError, TypeError):
        client = distributed.Client(address, timeout=_PATIENCE)
    lost = load_module("distributed.comm", _NEED).CommClosedError
    with refusing(f"lost {where}", lost), client:
        threads = client.nthreads()
        if not threads:
            refuse(f"{where} must have workers, got a scheduler without any")
        workers = count(len(threads), "worker")
        note(f"passes are made by {workers} of {where}")
        yield client
