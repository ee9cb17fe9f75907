"""Resumable records of benchmark runs: one JSON line each."""

from __future__ import annotations

import json
import platform
import resource
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Calls are not repeated once they have taken so long together.
ENOUGH_SECONDS = 20.0
RESULTS = Path(__file__).parent / "results"


class Records:
    """The lines of one named run in `results/<benchmark>.jsonl`.

    A key that the run already holds is not measured again, so an interrupted run
    goes on where it stopped; `fresh` starts the named run anew.
    """

    def __init__(self, benchmark: str, run: str, *, fresh: bool) -> None:
        self.path = RESULTS / f"{benchmark}.jsonl"
        self.run = run
        RESULTS.mkdir(exist_ok=True)
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        kept = [json.loads(line) for line in lines]
        if fresh:
            kept = [row for row in kept if row["run"] != run]
            self.path.write_text("".join(json.dumps(row) + "\n" for row in kept))
        self.rows = {row["key"]: row for row in kept if row["run"] == run}

    def measure(self, key: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the row of `key`, made by `work` unless the run has it."""
        if key not in self.rows:
            row = {"run": self.run, "key": key, "machine": platform.machine(), **work()}
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            self.rows[key] = row
        return self.rows[key]


def median_seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Median wall time of `call` in seconds; slow calls are repeated less often."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < ENOUGH_SECONDS:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def peak_extra_bytes(call: Callable[[], object]) -> int | None:
    """How much `call` raises the peak resident memory (Linux; else None).

    Unlike tracemalloc this sees what compiled code allocates.
    """
    reset = Path("/proc/self/clear_refs")
    if not reset.exists():
        return None
    reset.write_text("5")
    before = _status("VmRSS")
    call()
    return max(0, _status("VmHWM") - before)


def peak_bytes() -> int:
    """Peak resident memory of this process so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return 1024 * int(line.split()[1])
    msg = f"`/proc/self/status` must have {field}, got none."
    raise RuntimeError(msg)
