"""Share work among threads, unless it is too small."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from joblib import effective_n_jobs
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import (  # type: ignore[import-untyped, unused-ignore]
    ThreadpoolController,
    threadpool_limits,
)

# For fewer rows, starting threads and looking up libraries takes longer than answering.
_FEW_ROWS = 100

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@contextmanager
def thread_pool(n_jobs: int | None) -> Iterator[Parallel]:
    """Yield a pool of threads. Libraries inside get one thread each.

    It uses threads with any joblib backend. Boosters and trees release the
    interpreter's lock, and rows need no copies in other processes.
    """
    with (
        threadpool_limits(limits=1),
        Parallel(n_jobs=n_jobs, require="sharedmem") as pool,
    ):
        yield pool


@contextmanager
def one_thread(n_rows: int, user_api: str | None = None) -> Iterator[None]:
    """Give libraries one thread each while rows are predicted.

    Parameters
    ----------
    n_rows : int
        For a few rows, libraries are not looked up again.
    user_api : {"blas", "openmp"}, optional
        Kind of libraries. The default is all.
    """
    few = n_rows <= _FEW_ROWS
    with (_known_libraries().limit if few else threadpool_limits)(
        limits=1, user_api=user_api
    ):
        yield


@cache
def _known_libraries() -> Any:
    """Return the libraries that are loaded at the first call."""
    # Finding them takes longer than a row's forecast.
    return ThreadpoolController()


def ask_each(
    ask: Callable[[Item], Answer],
    items: Sequence[Item],
    n_rows: int,
    n_jobs: int | None,
) -> list[Answer]:
    """Return a function's answers for items. Use threads if there is enough to do.

    Parameters
    ----------
    ask : callable
    items : sequence
        Models, or pieces of work.
    n_rows : int
        Number of rows that each item answers.
    n_jobs : int, optional

    Returns
    -------
    list

    Examples
    --------
    >>> from localexpert.data.threads import ask_each
    >>> ask_each(abs, [-2, 3], n_rows=1, n_jobs=2)
    [2, 3]
    """
    # Avoid even a pool of one thread. scikit-learn's jobs set the process's warning
    # filters, so several pools that the caller's threads open together would lose them.
    if n_rows <= _FEW_ROWS or len(items) < 2 or effective_n_jobs(n_jobs) == 1:
        return [ask(item) for item in items]
    pool = Parallel(n_jobs=n_jobs, require="sharedmem")
    return list(pool(delayed(ask)(item) for item in items))
