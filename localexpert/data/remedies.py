"""What to do about a table that a learner of the user's refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from localexpert.data.table import Table

# A learner whose own text is longer than this is named by its class.
_LONGEST_REPR = 60


def suggest_pipeline(given: Any, learner: Any) -> str:
    """Return the pipeline that reads a table for a learner, "" if none is needed.

    Parameters
    ----------
    given : array or data frame of shape (n, p)
        As the user gave it, and as the learner got it.
    learner : estimator

    Returns
    -------
    str
        The rest of a sentence, from "; " on.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from localexpert.data.remedies import suggest_pipeline
    >>> suggest_pipeline(np.array([[1.0, np.nan], [2.0, 3.0]]), Ridge())
    '; column 1 has missing values, so take make_pipeline(SimpleImputer(), Ridge())'
    """
    table = Table.of(given)
    reader = table.reader
    names = reader.columns.names or tuple(range(reader.columns.n_columns))
    owner = reader.column_of
    categories = [names[owner[j]] for j in reader.categories]
    dates = [names[j] for j, parts in enumerate(reader.dates) if parts]
    try:
        missing = np.isnan(table.codes).any(axis=0)
    except (TypeError, ValueError):
        # Columns that are neither numbers nor categories: they are for the user.
        return ""
    gaps = list(dict.fromkeys(names[owner[j]] for j in np.flatnonzero(missing)))
    told = [
        f"{_list(columns)} {_has(columns, what)}"
        for columns, what in (
            (categories, "categories"),
            (gaps, "missing values"),
            (dates, "dates, of which `date_features` makes numbers"),
        )
        if columns
    ]
    if not told:
        return ""
    problem = f"; {' and '.join(told)}"
    if dates or isinstance(learner, Pipeline):
        # What a pipeline does about them is for its owner to see.
        return problem
    imputer = "SimpleImputer()"
    rest = imputer if set(gaps) - set(categories) else "'passthrough'"
    first = imputer
    if categories:
        # Not sparse: many learners, and some columns of polars, cannot be beside it.
        encoder = "OneHotEncoder(handle_unknown='ignore', sparse_output=False)"
        first = f"make_column_transformer(({encoder}, {categories}), remainder={rest})"
    return f"{problem}, so take make_pipeline({first}, {_name(learner)})"


def _list(columns: list[Any]) -> str:
    word = "column" if len(columns) == 1 else "columns"
    return f"{word} {', '.join(repr(name) for name in columns)}"


def _has(columns: list[Any], what: str) -> str:
    return f"{'has' if len(columns) == 1 else 'have'} {what}"


def _name(learner: Any) -> str:
    text = repr(learner)
    return text if len(text) <= _LONGEST_REPR else f"{type(learner).__name__}(...)"
