"""Trees of scikit-learn that a file made up: their tables are read without checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.storage.errors import refuse


def check_tables(holder: Any) -> None:
    """Refuse trees in the attributes of an object whose nodes or features are none.

    Parameters
    ----------
    holder : object
        As skops has read it.
    """
    state = vars(holder)
    if "tree_" in state:
        _check_features(state["tree_"].n_features, holder)
    elif "_predictors" in state:
        for predictor in np.ravel(np.array(state["_predictors"], dtype=object)):
            nodes = predictor.nodes
            children = np.stack([nodes["left"], nodes["right"]]).astype(np.int64)
            inner = nodes["is_leaf"] == 0
            check_nodes(children, nodes["feature_idx"], inner, holder.n_features_in_)
    elif hasattr(holder, "estimator_params"):
        # Ensembles check the table themselves, and then ask trees without checks.
        for member in np.ravel(np.array(state.get("estimators_", ()), dtype=object)):
            if "tree_" in getattr(member, "__dict__", {}):
                _check_features(member.tree_.n_features, holder)


def _check_features(n_features: int, holder: Any) -> None:
    # Bagging gives each tree some of the features, and says which.
    limit = getattr(holder, "n_features_in_", n_features)
    if n_features > limit:
        refuse(f"it holds a tree of {n_features} features for tables of {limit}.")


def check_nodes(
    children: NDArray[Any],
    feature: NDArray[Any],
    inner: NDArray[Any],
    n_features: float = np.inf,
) -> None:
    """Refuse nodes whose children do not come after them: one may walk in circles.

    Parameters
    ----------
    children : ndarray of shape (2, n_nodes)
    feature, inner : ndarrays of shape (n_nodes,)
        Where a node splits, and whether it does.
    n_features : int, optional
    """
    n = len(inner)
    below = children[:, inner]
    used = feature[inner]
    if (
        n == 0
        or (below <= np.flatnonzero(inner)).any()
        or (below >= n).any()
        or (used < 0).any()
        or (used >= n_features).any()
    ):
        refuse("it holds a tree whose nodes lead nowhere.")


def walk_objects(root: object) -> Iterator[Any]:
    """Yield all objects with attributes inside an object, each once.

    Parameters
    ----------
    root : object

    Yields
    ------
    object
    """
    seen: set[int] = set()
    waiting: list[Any] = [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, type | str | bytes):
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple | set):
            waiting.extend(value)
        elif isinstance(value, np.ndarray):
            waiting.extend(value.ravel().tolist() if value.dtype == object else ())
        elif hasattr(value, "__dict__"):
            yield value
            waiting.extend(vars(value).values())
