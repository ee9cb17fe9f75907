"""`run_jobs`: parallel work whose progress is told as results arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.utils.parallel import Parallel

from localexpert.progress.progress import SILENT, current_progress


def run_jobs(
    jobs: Sequence[Any], costs: Sequence[float] | None = None, **options: Any
) -> list[Any]:
    """Return the results of joblib jobs in their order.

    Each is a part of the open stage of the current progress.

    Parameters
    ----------
    jobs : sequence of delayed calls
    costs : sequence of float, optional
        Rough relative times of the jobs; the same by default.
    **options
        Of `joblib.Parallel`.

    Returns
    -------
    list

    Examples
    --------
    >>> from sklearn.utils.parallel import delayed
    >>> from localexpert.progress.jobs import run_jobs
    >>> run_jobs([delayed(abs)(-k) for k in range(3)], n_jobs=None)
    [0, 1, 2]
    """
    progress = current_progress()
    if progress is SILENT:
        results: list[Any] = Parallel(**options)(jobs)
        return results
    return list(progress.track(_make_pool(options)(jobs), costs or [1.0] * len(jobs)))


def _make_pool(options: dict[str, Any]) -> Parallel:
    """Return a pool that gives results as they arrive, where its backend can."""
    try:
        return Parallel(return_as="generator", **options)
    except ValueError:  # such as multiprocessing: all results arrive together
        return Parallel(**options)
