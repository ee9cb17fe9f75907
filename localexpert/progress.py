"""Where a fit stands: one tqdm bar, moved by stages that count what they have done."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TextIO, TypeVar

from sklearn.utils.parallel import Parallel

from calibration._jobs import each_result
from calibration._kernels._jit import telling

_COUNTED = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}]"
_UNCOUNTED = "{desc} [{elapsed}]"
# A log gets a line for a stage and for the stages right inside it, not for deeper ones.
_LOGGED_DEPTH = 2

Item = TypeVar("Item")


class SilentProgress:
    """The progress that nobody wants to see: does nothing, at no cost."""

    def stage(self, name: str) -> AbstractContextManager[None]:
        """Return a context in which a stage is open, inside the one that is."""
        del name
        return nullcontext()

    def track(self, items: Iterable[Item], total: int) -> Iterator[Item]:
        """Yield items of the open stage; when the next is asked for, one is done."""
        self.reach(0, total)
        for done, item in enumerate(items, start=1):
            yield item
            self.reach(done, total)

    def reach(self, done: int, total: int) -> None:
        """Say how much of the open stage is done; the total may change."""

    def say(self, text: str) -> None:
        """Show a line of its own."""

    def close(self, word: str) -> None:
        """Show a last word and how long everything took."""


SILENT = SilentProgress()


@dataclass
class _Stage:
    """A part of the work that is under way, by tqdm's clock."""

    name: str
    start: float = field(default_factory=time.time)
    done: int = 0
    total: int | None = None


class Progress(SilentProgress):
    """A bar that is drawn anew, or in a log a line for each stage that has ended."""

    def __init__(self, title: str, stream: TextIO):
        # Here, not above: only those who want to see a bar wait for the import.
        from tqdm.auto import tqdm

        self.stream = stream
        # A notebook's stream denies that its lines can be drawn anew.
        is_notebook = type(stream).__module__.startswith("ipykernel.")
        self.redraws = stream.isatty() or is_notebook
        # Only the thread of the process that made the bar may move it.
        self.owner = _whereabouts()
        self._open = [_Stage(title)]
        # Without smoothing the time left follows from the mean pace of the stage.
        self.bar = tqdm(
            desc=title,
            file=stream,
            bar_format=_UNCOUNTED,
            miniters=1,
            smoothing=0.0,
            disable=not self.redraws,
        )

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Open a stage inside the one that is open."""
        self._open.append(_Stage(name))
        self._draw()
        try:
            yield
            self._log()
        finally:
            self._open.pop()
            self._draw()

    def reach(self, done: int, total: int) -> None:
        """Say how much of the open stage is done; the total may change."""
        stage = self._open[-1]
        stage.done, stage.total = done, total
        if total != self.bar.total:
            self._draw()
        else:
            self.bar.update(done - self.bar.n)

    def say(self, text: str) -> None:
        """Show a line above the bar."""
        self.bar.write(f"{self._open[0].name}: {text}", file=self.stream)

    def close(self, word: str) -> None:
        """Show a last word and how long everything took."""
        whole = self._open[0]
        whole.name, whole.total = f"{whole.name}: {word}", None
        self._draw()
        self.bar.close()
        self._log()

    def _describe(self) -> str:
        """Return the title and the innermost names: all would be long for a line."""
        title, *names = [stage.name for stage in self._open]
        return ": ".join([title, *names[-2:]])

    def _draw(self) -> None:
        """Draw the open stage, which has a clock of its own."""
        stage, bar = self._open[-1], self.bar
        bar.desc, bar.bar_format = self._describe(), _COUNTED
        if stage.total is None:  # which `reset` takes for "as before"
            bar.total, bar.bar_format = None, _UNCOUNTED
        # A notebook's bar learns its length by `reset` only, which forgets the rest.
        bar.reset(stage.total)
        bar.n, bar.start_t = stage.done, stage.start
        bar.refresh()

    def _log(self) -> None:
        """Print a line on the stage that ends, where there is no bar."""
        if not self.redraws and len(self._open) <= 1 + _LOGGED_DEPTH:
            spent = self.bar.format_interval(time.time() - self._open[-1].start)
            print(f"{self._describe()} [{spent}]", file=self.stream, flush=True)


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
def show_progress(verbose: bool | int, title: str) -> Iterator[SilentProgress]:
    """Show the progress of what is done inside, on stderr, unless `verbose` is 0.

    A fit inside a fit that shows its progress is silent.
    """
    is_shown = verbose and sys.stderr is not None and current_progress() is SILENT
    progress = Progress(title, sys.stderr) if is_shown else SILENT
    token = _CURRENT.set(progress)
    word = "stopped"
    try:
        with telling(progress.say) if is_shown else nullcontext():
            yield progress
        word = "done"
    finally:
        _CURRENT.reset(token)
        progress.close(word)


def run_jobs(jobs: Sequence[Any], **options: Any) -> list[Any]:
    """Return the results of joblib jobs in their order; each counts as it arrives.

    Parameters
    ----------
    jobs : sequence of delayed calls
    **options
        Of `joblib.Parallel`.

    Returns
    -------
    list

    Examples
    --------
    >>> from sklearn.utils.parallel import delayed
    >>> from localexpert.progress import run_jobs
    >>> run_jobs([delayed(abs)(-k) for k in range(3)], n_jobs=None)
    [0, 1, 2]
    """
    progress = current_progress()
    if progress is SILENT:
        return list(Parallel(**options)(jobs))
    return list(progress.track(each_result(jobs, **options), len(jobs)))


def _whereabouts() -> tuple[int, int]:
    """Return the process and the thread."""
    return os.getpid(), threading.get_ident()
