"""`Progress`: how much of a fit is done, and how long the rest may take."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TextIO, TypeVar

import numpy as np

from localexpert.progress.line import (
    DrawnLine,
    PlainLines,
    ProgressLine,
    can_redraw,
    format_seconds,
)

# An estimate made before a stage began counts as much as this share of the stage.
_TRUST = 0.05
_MOST_COLUMNS = 100

Item = TypeVar("Item")


class SilentProgress:
    """The progress that nobody wants to see: does nothing, at no cost."""

    def plan(self, costs: Mapping[str, float]) -> None:
        """Announce the stages inside the open one, with rough relative times."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Return a context in which an announced stage is open; it ends done."""
        del name
        return nullcontext()

    def track(self, items: Iterable[Item], costs: Sequence[float]) -> Iterable[Item]:
        """Return items, of which each is a part of the open stage, of some cost."""
        del costs
        return items

    def reach(self, share: float) -> None:
        """Say that a share of the open stage is done; less than before is ignored."""


SILENT = SilentProgress()


@dataclass
class _Stage:
    """A part of the work: how much of it is done, and the stages inside."""

    name: str
    cost: float
    start: float
    done: float = 0.0
    costs: Mapping[str, float] = field(default_factory=dict)
    # What was done when the stages inside were announced.
    done_before: float = 0.0
    # Cost and seconds of the stages inside that have ended.
    paid: float = 0.0
    spent: float = 0.0

    @property
    def total(self) -> float:
        """Cost of all stages inside."""
        return sum(self.costs.values())

    def width(self, cost: float) -> float:
        """Return the share of this stage that a cost inside stands for."""
        return (1.0 - self.done_before) * cost / self.total if self.total else 0.0

    def rate(self, expected: float | None) -> float | None:
        """Return the seconds that a unit of cost inside takes, None if unknown."""
        paid, spent = self.paid, self.spent
        if expected is not None:
            paid, spent = paid + _TRUST * self.total, spent + _TRUST * expected
        return spent / paid if paid > 0.0 else None


class Progress(SilentProgress):
    """Stages within stages, each with a rough cost, on one line.

    Whoever does the work announces the stages it consists of (`plan`), opens them one
    after the other (`stage`), and in those without stages of their own says how far
    it is (`track`, `reach`). Costs are relative times; of stages that are announced
    together only the ratios matter.

    The time left of the open stage is told by its own pace, that of later ones by
    the seconds that a unit of cost took so far: a wrong guess of the costs does no
    harm once the stage is under way.

    Parameters
    ----------
    line : ProgressLine
    clock : function without arguments
        Returns seconds.

    Examples
    --------
    >>> import sys
    >>> from localexpert.progress.progress import Progress
    >>> from localexpert.progress.line import PlainLines
    >>> seconds = [0.0]
    >>> line = PlainLines(sys.stdout, "fit")
    >>> with Progress(line, clock=lambda: seconds[0]) as progress:
    ...     progress.plan({"experts": 3.0, "spline": 1.0})
    ...     with progress.stage("experts"):
    ...         for _ in progress.track(range(3), [1, 1, 1]):
    ...             seconds[0] += 30.0
    fit  25 % 1 min 30 s left, experts
    fit  50 % 1 min 0 s left, experts
    fit  75 % 30 s left, experts
    fit 100 % done in 1 min 30 s
    """

    def __init__(self, line: ProgressLine, clock: Callable[[], float] = time.monotonic):
        self.line = line
        self.clock = clock
        # Only the thread of the process that shows the line may move it.
        self.owner = _whereabouts()
        self._open: list[_Stage] = []

    def __enter__(self) -> Self:
        self._open = [_Stage("", 1.0, self.clock())]
        self._exits = ExitStack()
        self._exits.enter_context(self.line.watched())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._exits.close()
        spent = format_seconds(self.clock() - self._open[0].start)
        if kind is None:
            self.line.close(1.0, f"done in {spent}")
        else:
            self.line.close(self.share(), f"stopped after {spent}")

    def plan(self, costs: Mapping[str, float]) -> None:
        """Announce the stages inside the open one, with rough relative times."""
        stage = self._open[-1]
        stage.costs, stage.paid, stage.spent = costs, 0.0, 0.0
        stage.done_before = stage.done

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Open an announced stage; where nothing fails it ends done."""
        outer = self._open[-1]
        inner = _Stage(name, outer.costs[name], self.clock())
        self._open.append(inner)
        self._show()
        try:
            yield
            inner.done = 1.0
        finally:
            self._open.pop()
            outer.done = min(1.0, outer.done + outer.width(inner.cost) * inner.done)
            outer.paid += inner.cost
            outer.spent += self.clock() - inner.start
        self._show()

    def track(self, items: Iterable[Item], costs: Sequence[float]) -> Iterable[Item]:
        """Yield items; when the next is asked for, one more is done."""
        before = self._open[-1].done
        shares = np.cumsum(costs) / np.sum(costs)
        for item, share in zip(items, shares.tolist(), strict=True):
            yield item
            self.reach(before + (1.0 - before) * share)

    def reach(self, share: float) -> None:
        """Say that a share of the open stage is done; less than before is ignored."""
        stage = self._open[-1]
        if share > stage.done:
            stage.done = min(1.0, share)
            self._show()

    def share(self) -> float:
        """Return how much of the work is done, in [0, 1]."""
        inside, cost = 0.0, 0.0
        for stage in reversed(self._open):
            inside = stage.done + stage.width(cost) * inside
            cost = stage.cost
        return min(1.0, inside)

    def seconds_left(self) -> float | None:
        """Return how long the rest may take, None as long as nothing is done."""
        return self._left(0, self.clock(), None)

    def _left(self, depth: int, now: float, expected: float | None) -> float | None:
        """Return the seconds left of an open stage that was to take `expected`."""
        stage = self._open[depth]
        if depth + 1 == len(self._open):
            spent = now - stage.start
            if expected is not None:
                total = (spent + _TRUST * expected) / (stage.done + _TRUST)
            elif stage.done > 0.0:
                total = spent / stage.done
            else:
                return None
            return total * (1.0 - stage.done)
        inner = self._open[depth + 1]
        rate = stage.rate(expected)
        left = self._left(depth + 1, now, None if rate is None else rate * inner.cost)
        if left is None or stage.total == 0.0:
            return left
        if rate is None and inner.cost > 0.0:
            rate = (now - inner.start + left) / inner.cost
        later = max(0.0, stage.total - stage.paid - inner.cost)
        return left + later * (rate or 0.0)

    def _show(self) -> None:
        left = self.seconds_left()
        parts = [] if left is None else [f"{format_seconds(left)} left"]
        names = [stage.name for stage in self._open[1:]]
        if names:
            # The whole way down to what is being done is too long for a line.
            parts.append(": ".join(names[-2:]))
        self.line.show(self.share(), ", ".join(parts), self.clock())


_CURRENT: ContextVar[SilentProgress] = ContextVar("progress", default=SILENT)


def current_progress() -> SilentProgress:
    """Return the progress of the fit that is under way.

    Silent outside of `show_progress`, and in threads and processes of workers:
    whoever collects their results tells how many there are.
    """
    progress = _CURRENT.get()
    if isinstance(progress, Progress) and progress.owner != _whereabouts():
        return SILENT
    return progress


@contextmanager
def show_progress(
    verbose: bool | int,
    title: str,
    *,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[SilentProgress]:
    """Make the progress of what is done inside current.

    A fit inside a fit that shows its progress is silent.

    Parameters
    ----------
    verbose : bool or int
        0: silent.
    title : str
        What stands before the bar.
    stream : text stream, optional
        `sys.stderr` by default, where there is one.
    clock : function without arguments
        Returns seconds.
    """
    stream = stream or sys.stderr
    if not verbose or stream is None or current_progress() is not SILENT:
        progress = SILENT
    else:
        progress = Progress(_make_line(stream, title), clock)
    token = _CURRENT.set(progress)
    try:
        with progress if isinstance(progress, Progress) else nullcontext():
            yield progress
    finally:
        _CURRENT.reset(token)


def _make_line(stream: TextIO, title: str) -> ProgressLine:
    if not can_redraw(stream):
        return PlainLines(stream, title)
    columns = shutil.get_terminal_size().columns - 1
    return DrawnLine(stream, title, min(columns, _MOST_COLUMNS))


def _whereabouts() -> tuple[int, int]:
    """Return the process and the thread."""
    return os.getpid(), threading.get_ident()
