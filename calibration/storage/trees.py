"""Trees of scikit-learn that a file made up: their tables are read without checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.storage.errors import refuse
from calibration.storage.hashes import check_hashes

_ATOMS = (type(None), type, str, bytes, int, float)


def check_tables(holder: Any) -> None:
    """Refuse trees in the attributes of an object whose nodes or features are none.

    Parameters
    ----------
    holder : object
        As skops has read it.
    """
    state = getattr(holder, "__dict__", {})
    if "tree_" in state:
        _check_features(state["tree_"].n_features, holder)
    elif "_predictors" in state:
        _check_predictors(holder)
    elif "estimators_" in state:
        # Ensembles check the table themselves, and then ask trees without checks.
        members = np.array(state["estimators_"], dtype=object)
        for member in members.ravel():
            if "tree_" in getattr(member, "__dict__", {}):
                _check_features(member.tree_.n_features, holder)
        # Boosting adds up a column of trees in each column of a table.
        n_columns = state.get("n_trees_per_iteration_", 0)
        if n_columns and members.size and members.shape[1:] != (n_columns,):
            refuse(f"it holds trees of the shape {members.shape} for {n_columns} sums.")


def _check_predictors(holder: Any) -> None:
    """Trees of histograms: categories go left whose bits are set."""
    known = holder._bin_mapper.is_categorical_
    for predictor in np.ravel(np.array(holder._predictors, dtype=object)):
        nodes = predictor.nodes
        children = np.stack([nodes["left"], nodes["right"]]).astype(np.int64)
        inner = nodes["is_leaf"] == 0
        check_nodes(children, nodes["feature_idx"], inner, holder.n_features_in_)
        split = nodes[inner & (nodes["is_categorical"] != 0)]
        n_sets = min(
            len(predictor.raw_left_cat_bitsets), len(predictor.binned_left_cat_bitsets)
        )
        if (
            not known[split["feature_idx"]].all()
            or (split["bitset_idx"] >= n_sets).any()
        ):
            refuse("it holds a tree whose categories are none.")


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
    """Yield all that is no atom or container inside an object, each once.

    What it is made of comes before it.

    Parameters
    ----------
    root : object

    Yields
    ------
    object
    """
    seen: set[int] = set()
    waiting: list[tuple[Any, bool]] = [(root, False)]
    while waiting:
        value, is_done = waiting.pop()
        if is_done:
            yield value
        elif id(value) not in seen and not isinstance(value, _ATOMS):
            seen.add(id(value))
            parts: Iterable[Any] = ()
            if isinstance(value, dict):
                parts = value.values()
            elif isinstance(value, list | tuple | set):
                parts = value
            elif isinstance(value, np.ndarray):
                if value.dtype == object:
                    parts = value.ravel().tolist()
                    check_hashes(parts)
            else:
                waiting.append((value, True))
                parts = getattr(value, "__dict__", {}).values()
            waiting.extend((part, False) for part in parts)
