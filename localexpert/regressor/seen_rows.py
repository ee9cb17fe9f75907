"""`seen_rows` tells which rows a fitted model has learned from."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from localexpert._validation import check_same_length, check_vector
from localexpert.data.training_rows import SeenRows, TrainingSketch
from localexpert.data.unseen import unseen_silently
from localexpert.distribution.predictors import check_predicts, open_same
from localexpert.regressor.base import DistributionRegressor


@unseen_silently()
def seen_rows(model: Any, X: Any, y: ArrayLike) -> SeenRows:
    """Tell which rows a fitted model has learned from, as far as the model knows.

    Scores of such rows are too good. A correction learned from them makes forecasts too
    sure. A `LocalExpertRegressor` keeps hashes of its training rows with their targets,
    if nearly all rows differ. It knows every row if there are up to 8192, and a share
    of them if there are more.

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
    X : array or data frame of shape (n, p)
        Rows in the columns that `model` expects.
    y : array-like of shape (n,)

    Returns
    -------
    SeenRows
        `found`, the `share` of rows that the model has learned from, and which rows
        they are (`learned`). The share is None if the model does not know. It prints as
        a sentence.

    Notes
    -----
    A row is recognised by all of its features and its target, in single precision. So a
    row that was changed counts as new. If chance alone explains the number of equal
    rows, then no row counts as learned from.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import LocalExpertRegressor, seen_rows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(150, 1))
    >>> y = X[:, 0] + rng.normal(size=150)
    >>> model = LocalExpertRegressor(effort="quick", random_state=0)
    >>> model = model.fit(X[:100], y[:100])
    >>> print(seen_rows(model, X, y))
    The model has learned from 100 of the 150 rows.
    """
    check_predicts(model)
    target = check_vector(y, "y")
    found = _ask(model, X, target)
    return SeenRows.unknown(len(target)) if found is None else found


def _ask(model: Any, X: Any, y: Any) -> SeenRows | None:
    """Ask the regressor inside the wrappers. Return None if it knows nothing."""
    model = open_same(model)
    if isinstance(model, Pipeline):
        for _, step in model.steps[:-1]:
            if hasattr(step, "transform"):
                X = step.transform(X)
        return _ask(model.steps[-1][1], X, y)
    sketch = getattr(model, "training_sketch_", None)
    if isinstance(sketch, TrainingSketch):
        table = model.reader_.read(X)
        check_same_length(len(table), "`X`", len(y), "y")
        return sketch.compare(table, y)
    if not isinstance(model, DistributionRegressor):
        return None
    # The model may be a corrected or an adapted one, or an ensemble with members. All
    # of these get the same rows.
    names = "model", "estimator_"
    inside = [getattr(model, name, None) for name in names]
    answers = (
        _ask(one, X, y) for one in [*inside, *getattr(model, "members_", {}).values()]
    )
    return next((one for one in answers if one is not None), None)
