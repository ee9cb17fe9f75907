"""Learners: how they take weights, which tables they refuse, and their threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from joblib import effective_n_jobs
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from calibration._jobs import FEW_ROWS, one_thread
from calibration.typing import Float64Array
from localexpert.data.folds import seed_splitter
from localexpert.data.table import Table, read_codes

Item = TypeVar("Item")
Answer = TypeVar("Answer")


@contextmanager
def thread_pool(n_jobs: int | None) -> Iterator[Parallel]:
    """Yield a pool of threads. Libraries inside get one thread each.

    It uses threads with any joblib backend. Boosters and trees release the
    interpreter's lock, and rows need no copies in other processes.
    """
    with one_thread(), Parallel(n_jobs=n_jobs, require="sharedmem") as pool:
        yield pool


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
    >>> from localexpert.data.learners import ask_each
    >>> ask_each(abs, [-2, 3], n_rows=1, n_jobs=2)
    [2, 3]
    """
    # Avoid even a pool of one thread. scikit-learn's jobs set the process's warning
    # filters, so several pools that the caller's threads open together would lose them.
    if n_rows <= FEW_ROWS or len(items) < 2 or effective_n_jobs(n_jobs) == 1:
        return [ask(item) for item in items]
    pool = Parallel(n_jobs=n_jobs, require="sharedmem")
    return list(pool(delayed(ask)(item) for item in items))


# A learner whose repr is longer than this is named by its class.
_LONGEST_REPR = 60


def name_of_argument(estimator: Any, argument: str = "sample_weight") -> str | None:
    """Return the name under which `fit` takes an argument. Wrappers pass it on.

    Parameters
    ----------
    estimator : estimator
        An estimator, or a Pipeline, search or TransformedTargetRegressor around it.
    argument : str
        Name of the argument in the innermost `fit`.

    Returns
    -------
    str or None

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from localexpert.data.learners import name_of_argument
    >>> name_of_argument(make_pipeline(StandardScaler(), Ridge()))
    'ridge__sample_weight'
    """
    if has_fit_parameter(estimator, argument):
        return argument
    if get_config()["enable_metadata_routing"]:
        request = get_routing_for_object(estimator)
        return argument if argument in request.consumes("fit", [argument]) else None
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = name_of_argument(last, argument)
        return None if inner is None else f"{name}__{inner}"
    if isinstance(estimator, TransformedTargetRegressor):
        return name_of_argument(estimator.regressor, argument)
    if hasattr(estimator, "estimator") and hasattr(estimator, "refit"):  # a search
        return name_of_argument(estimator.estimator, argument)
    return None


def say_unweighted(estimator: Any) -> str:
    """Say why the `fit` of an estimator gets no weights."""
    with config_context(enable_metadata_routing=False):
        takes = name_of_argument(estimator) is not None
    why = "is not asked to take" if takes else "takes no"
    how = " (set_fit_request)" if takes else ""
    return f"{type(estimator).__name__}.fit {why} `sample_weight`{how}"


def seeded(estimator: Any, seed: int, *, deep: bool = True) -> Any:
    """Return a clone whose parts have a seed.

    Parameters
    ----------
    estimator : estimator
    seed : int
        For every `random_state` that is None, also that of a splitter.
    deep : bool
        Whether parts of parts get it as well. Our own estimators seed theirs in `fit`.

    Returns
    -------
    estimator

    Examples
    --------
    >>> from sklearn.ensemble import ExtraTreesRegressor
    >>> from sklearn.preprocessing import QuantileTransformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from localexpert.data.learners import seeded
    >>> seeded(make_pipeline(QuantileTransformer(), ExtraTreesRegressor()), 7)[-1]
    ExtraTreesRegressor(random_state=7)
    """
    fresh = clone(estimator)
    changes = dict[str, Any]()
    for name, value in fresh.get_params(deep=deep).items():
        if value is None and name.rpartition("__")[-1] == "random_state":
            changes[name] = seed
        elif hasattr(value, "split") and getattr(value, "random_state", 0) is None:
            changes[name] = seed_splitter(value, seed)
    if changes:
        fresh.set_params(**changes)
    return fresh


def fit_weighted(estimator: Any, X: Any, y: Any, weight: Float64Array) -> Any:
    """Fit an estimator and return it. Pass the weights if it takes them."""
    name = name_of_argument(estimator)
    return estimator.fit(X, y, **({} if name is None else {name: weight}))


@contextmanager
def blaming(parameter: str, learner: Any, X: Any) -> Iterator[None]:
    """Let an error of a user's learner name its parameter, and a pipeline as a cure."""
    try:
        yield
    except Exception as error:
        cure = suggest_pipeline(X, learner)
        msg = f"`{parameter}`: {type(learner).__name__} failed: {error}{cure}"
        raise RuntimeError(msg) from error


def suggest_pipeline(given: Any, learner: Any) -> str:
    """Suggest a pipeline that reads a table for a learner, or "" if none is needed.

    Parameters
    ----------
    given : array or data frame of shape (n, p)
        The table as the user gave it. The learner got the same.
    learner : estimator

    Returns
    -------
    str
        The rest of a sentence. It starts with "; ".

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from localexpert.data.learners import suggest_pipeline
    >>> suggest_pipeline(np.array([[1.0, np.nan], [2.0, 3.0]]), Ridge())
    '; column 1 has missing values, so take make_pipeline(SimpleImputer(), Ridge())'
    """
    table = Table.of(given)
    reader = table.reader
    names = reader.columns.names or tuple(range(reader.columns.n_columns))
    owner = reader.column_of
    categories = [names[owner[j]] for j in reader.categories]
    dates = [names[j] for j, parts in enumerate(reader.dates) if parts]
    codes = read_codes(table)
    if codes is None:
        # Some columns are neither numbers nor categories. The user must handle them.
        return ""
    missing = np.flatnonzero(np.isnan(codes).any(axis=0))
    gaps = list(dict.fromkeys(names[owner[j]] for j in missing))
    found = {
        "categories": categories,
        "missing values": gaps,
        "dates, of which `date_features` makes numbers": dates,
    }
    problems = [_say(columns, what) for what, columns in found.items() if columns]
    if not problems:
        return ""
    problem = f"; {' and '.join(problems)}"
    if dates or isinstance(learner, Pipeline):
        # The learner is already a pipeline, so its owner must decide what to do.
        return problem
    imputer = "SimpleImputer()"
    rest = imputer if set(gaps) - set(categories) else "'passthrough'"
    first = imputer
    if categories:
        # Many learners, and some columns of polars, do not work with a sparse result.
        encoder = "OneHotEncoder(handle_unknown='ignore', sparse_output=False)"
        first = f"make_column_transformer(({encoder}, {categories}), remainder={rest})"
    name = repr(learner)
    if len(name) > _LONGEST_REPR:
        name = f"{type(learner).__name__}(...)"
    return f"{problem}, so take make_pipeline({first}, {name})"


def _say(columns: list[Any], what: str) -> str:
    """Say what columns have."""
    word, has = ("column", "has") if len(columns) == 1 else ("columns", "have")
    return f"{word} {', '.join(map(repr, columns))} {has} {what}"
