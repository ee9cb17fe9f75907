"""Passes over the parts of a table: here, or by the workers of a Dask client."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, TypeVar

from calibration.sources.dask_part import DaskPart
from calibration.sources.part import Part
from calibration.sources.source import Source
from localexpert.large.checkpoint import Checkpoint
from localexpert.progress import current_progress

Result = TypeVar("Result")

# Results of parts that wait to be joined.
_MOST_WAITING = 4
# Parts that are under way for each of a client's threads, and tries of each.
_AHEAD, _TRIES = 2, 3
# Seconds that a client may take to forget a task; somebody else may want it as well.
_PATIENCE = 5.0
# A model is larger than what Dask warns of.
_LARGE = "distributed.admin.large-graph-warning-threshold"


class Pass(Protocol[Result]):
    """What is asked of every part.

    `Result` has a method `arrays` that returns all of it as a dict of arrays, for
    `load` to make it again.
    """

    @property
    def name(self) -> str:
        """What progress and messages call it."""
        ...

    def __call__(self, part: Part, frame: Any = None) -> Result:
        """Return what one part tells; `frame` is the part, if it is read already."""
        ...

    def join(self, parts: Sequence[Result]) -> Result:
        """Return what parts tell together, in any order."""
        ...

    def load(self, arrays: Mapping[str, Any]) -> Result:
        """Return a result from the arrays that its `arrays` returned."""
        ...


@dataclass(frozen=True)
class Runner:
    """Runs passes.

    Parameters
    ----------
    source : Source
    client : distributed.Client, optional
        Whose workers read the parts.
    checkpoint : Checkpoint
        Keeps what each part told.
    """

    source: Source
    client: Any
    checkpoint: Checkpoint
    _rows: dict[int, str] = field(default_factory=dict, init=False)

    def run(self, job: Pass[Any], n_parts: int | None = None) -> tuple[Any, int]:
        """Run a pass over all parts.

        Parameters
        ----------
        job : Pass
        n_parts : int, optional
            Of which a pass before has told.

        Returns
        -------
        result : object
            What all parts tell together.
        n_parts : int
        """
        waiting: list[Any] = []
        done = 0
        for result in self.stream(job, n_parts):
            waiting.append(result)
            if len(waiting) > _MOST_WAITING:
                waiting = [job.join(waiting)]
            done += 1
        return job.join(waiting), done

    def stream(self, job: Pass[Any], n_parts: int | None = None) -> Iterator[Any]:
        """Yield what each part tells in a pass, in the order they end.

        Parameters
        ----------
        job : Pass
        n_parts : int, optional
            Of which a pass before has told.

        Yields
        ------
        object
        """
        progress = current_progress()
        total = n_parts if n_parts is not None else self.source.n_parts
        done = 0
        with progress.stage(job.name):
            for result in self._results(job):
                yield result
                done += 1
                progress.reach(done, max(total or done, done))
        if done == 0 or (n_parts is not None and done != n_parts):
            before = "at least one frame" if n_parts is None else f"{n_parts} frames"
            msg = (
                f"`source` must give the same rows at each pass, {before}, got {done} "
                f"in the pass {job.name!r}: a function must return a new iterator."
            )
            raise ValueError(msg)

    def _results(self, job: Pass[Any]) -> Iterator[Any]:
        """Yield what the parts tell; finished ones first."""
        kept = self.checkpoint.open(job.name, job.load)
        todo: list[tuple[int, Part]] = []
        for number, part in enumerate(self.source.parts):
            if self.source.in_order:
                self._check_same(number, part, part.identity(), job.name)
            if (held := kept.load(number, part)) is not None:
                yield held
            elif self.client is None:
                result, rows = _ask(job, part, self._rows.get(number))
                self._check_same(number, part, rows, job.name)
                yield kept.save(number, part, result)
            else:
                todo.append((number, part))
                if self.source.in_order and len(todo) >= self._ahead:
                    yield from self._ask_workers(job, todo, kept.save)
                    todo = []
        if todo:
            yield from self._ask_workers(job, todo, kept.save)

    def _check_same(self, number: int, part: Part, rows: str | None, name: str) -> None:
        """Refuse rows that are known not to be those of a pass before."""
        if rows is None or self._rows.setdefault(number, rows) == rows:
            return
        remedy = (
            "`persist` the Dask data frame"
            if isinstance(part, DaskPart)
            else "a function must return the same frames in the same order"
        )
        msg = (
            "`source` must give the same rows at each pass, got another "
            f"{part.name} in the pass {name!r}: {remedy}."
        )
        raise ValueError(msg)

    @property
    def _ahead(self) -> int:
        """How many parts are asked for at a time."""
        threads = sum(self.client.nthreads().values())
        return max(_AHEAD * int(threads), 1)

    def _ask_workers(
        self,
        job: Pass[Any],
        todo: Iterable[tuple[int, Part]],
        keep: Callable[[int, Part, Any], Any],
    ) -> Iterator[Any]:
        """Yield what the client's workers say of parts, in the order they end.

        A part that workers fail at, or die of, is asked for once more here.
        """
        import dask
        import distributed

        client: Any = self.client
        # Sent once, not with each part; as a task's answer, for what is scattered is
        # lost with the worker that has it.
        with dask.config.set({_LARGE: "64GiB"}):
            sent = client.submit(_hold, job, pure=False, retries=_TRIES)
        asked: dict[str, tuple[int, Part, Any]] = {}
        waiting = iter(todo)

        def submit(number: int, part: Part) -> Any:
            frame, shell = None, part
            if isinstance(part, DaskPart):
                frame = client.compute(part.delayed, retries=_TRIES)
                shell = part.without_data()
            known = self._rows.get(number)
            future = client.submit(
                _call, sent, shell, known, frame, pure=False, retries=_TRIES
            )
            asked[future.key] = number, part, frame
            return future

        first = [submit(*one) for one in islice(waiting, self._ahead)]
        under_way: Any = distributed.as_completed(first)
        for future in under_way:
            number, part, frame = asked.pop(future.key)
            try:
                result, rows = future.result()
            except Exception:
                _forget(client, future, frame)
                result, rows = _ask(job, part, self._rows.get(number))
            else:
                future.release()
            self._check_same(number, part, rows, job.name)
            for one in islice(waiting, 1):
                under_way.add(submit(*one))
            yield keep(number, part, result)


def _forget(client: Any, *futures: Any) -> None:
    """Let a cluster forget tasks, so that what died with a worker is computed again.

    A client hears of it in a thread of its own; until then it answers for a partition
    what it was told before, that workers died of it.
    """
    held = [future for future in futures if future is not None]
    for future in held:
        future.release()
    last = time.monotonic() + _PATIENCE
    while any(f.key in client.futures for f in held) and time.monotonic() < last:
        time.sleep(0.001)


def _hold(job: Pass[Any]) -> Pass[Any]:
    """Return a pass, which workers hand on to each other."""
    return job


def _call(
    job: Pass[Any], part: Part, known: str | None, frame: Any = None
) -> tuple[Any, str | None]:
    """Return what a part tells, in a worker, and which rows Dask gave.

    Its partitions are computed anew in each pass, and need not come out the same.
    A pass is not asked about rows other than the `known` ones, which may not fit it.
    """
    if not isinstance(part, DaskPart):
        return job(part, frame), None
    frame = part.read() if frame is None else part.taken(frame)
    rows = part.digest(frame)
    return (job(part, frame) if known in (None, rows) else None), rows


def _ask(job: Pass[Any], part: Part, known: str | None) -> tuple[Any, str | None]:
    """Return what `_call` does, in this process, with errors that name the part."""
    try:
        return _call(job, part, known)
    except Exception as error:
        if part.name in str(error):
            raise
        msg = f"`source` failed at {part.name} in the pass {job.name!r}: {error}"
        raise RuntimeError(msg) from error
