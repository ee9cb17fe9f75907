"""How work is shared: jobs of joblib, and the threads of libraries below them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from sklearn.utils.parallel import Parallel
from threadpoolctl import ThreadpoolController

# With fewer rows, an answer takes less time than starting threads or finding libraries.
FEW_ROWS = 100


def each_result(jobs: Iterable[Any], **options: Any) -> Iterator[Any]:
    """Yield the results of joblib jobs in their order, as soon as they arrive.

    Parameters
    ----------
    jobs : iterable of delayed calls
    **options
        Options of `joblib.Parallel`.

    Yields
    ------
    object
    """
    try:
        pool = Parallel(return_as="generator", **options)
    except ValueError:  # such as multiprocessing: all results arrive together
        pool = Parallel(**options)
    yield from pool(jobs)


@contextmanager
def one_thread(
    user_api: str | None = None, n_rows: int | None = None
) -> Iterator[None]:
    """Give libraries one thread each.

    Parameters
    ----------
    user_api : {"blas", "openmp"}, optional
        Kind of libraries. The default is all.
    n_rows : int, optional
        Number of rows that are predicted inside. If there are few, libraries are not
        looked up again.
    """
    few = n_rows is not None and n_rows <= FEW_ROWS
    libraries = _known_libraries() if few else ThreadpoolController()
    with _KEEPER.keep(libraries), libraries.limit(limits=1, user_api=user_api):
        yield


# Return the libraries that are loaded at the first call. The search for them takes
# longer than the forecast of a row.
_known_libraries = cache(ThreadpoolController)


class _Keeper:
    """Keeps the numbers of threads of BLAS, which all threads of a process share.

    A thread that enters while another one is inside finds 1. If it leaves last, it
    restores 1. So the last one to leave also restores what the first one found.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.n_inside = 0
        self.found: Any = None

    @contextmanager
    def keep(self, libraries: Any) -> Iterator[None]:
        """Restore the numbers when nobody is inside any more."""
        with self.lock:
            if not self.n_inside:
                self.found = libraries.select(user_api="blas").limit()
            self.n_inside += 1
        try:
            yield
        finally:
            with self.lock:
                self.n_inside -= 1
                if not self.n_inside:
                    # The end of the block restores. It also lets other threads set
                    # OpenBLAS again.
                    with self.found:
                        pass


_KEEPER = _Keeper()
