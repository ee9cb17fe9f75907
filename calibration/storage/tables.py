"""What compiled code would take on trust: tables that a file made up are refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import BallTree, KDTree

from calibration.storage.errors import refuse

# Different values that may have one hash: -1 and -2 do, 2**61 - 1 and 0 as well.
_MOST_ALIKE = 16
# Attributes that hold rows of as many columns as are asked about.
_ROWS = ("_fit_X", "cluster_centers_")
#: Trees of neighbours, which are not written: they are grown again from their rows.
GROWN = {"kd_tree": KDTree, "ball_tree": BallTree}


def check_hashes(values: Iterable[Any]) -> None:
    """Refuse values many of which have one hash: finding them takes forever.

    Parameters
    ----------
    values : iterable
        Of a set, keys of a dict, or categories. What has no hash is passed over.
    """
    alike: dict[int, list[Any]] = {}
    for value in values:
        # The hash of a text is not to be foreseen.
        if type(value) is str:
            continue
        try:
            found = alike.setdefault(hash(value), [])
        except TypeError:
            continue
        # Most are the first of their hash; a value may be there many times.
        if not any(value is one or value == one for one in found):
            found.append(value)
            if len(found) > _MOST_ALIKE:
                refuse("it holds many values that have the same hash.")


def check_nodes(
    children: NDArray[Any],
    feature: NDArray[Any],
    inner: NDArray[Any],
    n_features: float,
) -> None:
    """Refuse nodes whose children do not come after them: one may walk in circles.

    Parameters
    ----------
    children : ndarray of shape (2, n_nodes)
    feature, inner : ndarrays of shape (n_nodes,)
        Where a node splits, and whether it does.
    n_features : int
    """
    n = len(inner)
    below = children[:, inner]
    used = feature[inner]
    ahead = (below > np.flatnonzero(inner)) & (below < n)
    if n == 0 or not (ahead.all() and ((used >= 0) & (used < n_features)).all()):
        refuse("it holds a tree whose nodes lead nowhere.")


def check_tables(value: Any) -> None:
    """Refuse an object whose tables do not fit each other; grow its tree again.

    Parameters
    ----------
    value : object
        Just read; all that it holds has been checked before.
    """
    state = getattr(value, "__dict__", {})
    for rows in (state[name] for name in _ROWS if name in state):
        if rows.shape[0] == 0 or rows.shape[1] != state["n_features_in_"]:
            refuse(f"it holds rows of shape {rows.shape} where others are asked for.")
    if "support_vectors_" in state:
        _check_vectors(state, value._impl)
    elif "_fit_X" in state:
        _check_neighbours(state)
    elif "tree_" in state:
        _check_features(value, state)
    elif "_predictors" in state:
        _check_predictors(state)
    elif "estimators_" in state:
        _check_ensemble(state)


def _check_ensemble(state: dict[str, Any]) -> None:
    """Ensembles check the table themselves, and then ask trees without checks."""
    members = np.array(state["estimators_"], dtype=object)
    for member in members.ravel():
        if "tree_" in getattr(member, "__dict__", {}):
            _check_features(member, state)
    # Boosting adds up a column of trees in each column of a table.
    n_columns = state.get("n_trees_per_iteration_", 0)
    if n_columns and members.size and members.shape[1:] != (n_columns,):
        refuse(f"it holds trees of the shape {members.shape} for {n_columns} sums.")


def _check_features(tree: Any, state: dict[str, Any]) -> None:
    # Bagging gives each tree some of the features, and says which.
    n_features = tree.tree_.n_features
    limit = state.get("n_features_in_", n_features)
    if n_features > limit:
        refuse(f"it holds a tree of {n_features} features for tables of {limit}.")


def _check_predictors(state: dict[str, Any]) -> None:
    """Trees of histograms: categories go left whose bits are set."""
    known = state["_bin_mapper"].is_categorical_
    for predictor in np.ravel(np.array(state["_predictors"], dtype=object)):
        nodes = predictor.nodes
        children = np.stack([nodes["left"], nodes["right"]]).astype(np.int64)
        inner = nodes["is_leaf"] == 0
        check_nodes(children, nodes["feature_idx"], inner, state["n_features_in_"])
        split = nodes[inner & (nodes["is_categorical"] != 0)]
        sets = predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets
        bits = split["bitset_idx"] < min(map(len, sets))
        if not (bits & known[split["feature_idx"]]).all():
            refuse("it holds a tree whose categories are none.")


def _check_vectors(state: dict[str, Any], kind: str) -> None:
    """The tables of a support vector machine are as long as each other says."""
    counts, rows, vectors = (
        state[name] for name in ("_n_support", "support_", "support_vectors_")
    )
    n_classes, n_vectors, n_rows = len(counts), len(rows), state["shape_fit_"][0]
    n_pairs = n_classes * (n_classes - 1) // 2
    # Of kernels that are given only places of rows are kept.
    is_given = callable(state["kernel"]) or state["kernel"] == "precomputed"
    shape = (0, 0) if is_given else (n_vectors, state["n_features_in_"])
    # Those that tell no classes count their vectors twice.
    of_classes = kind in ("c_svc", "nu_svc")
    if not (
        vectors.shape == shape
        and state["_dual_coef_"].shape == (max(n_classes - 1, 1), n_vectors)
        and state["_intercept_"].shape == (n_pairs,)
        and {len(state["_probA"]), len(state["_probB"])} <= {0, n_pairs}
        and ((rows >= 0) & (rows < n_rows)).all()
        and (state["kernel"] != "precomputed" or n_rows <= state["n_features_in_"])
        and (counts >= 0).all()
        and (counts.sum() == n_vectors or not of_classes)
    ):
        refuse("it holds a support vector machine whose tables do not fit.")


def _check_neighbours(state: dict[str, Any]) -> None:
    """Labels are places among the classes; trees are grown."""
    rows, classes = state["_fit_X"], state.get("classes_", [])
    # Of several targets a list of classes.
    limits = [
        len(known) for known in (classes if isinstance(classes, list) else [classes])
    ]
    if limits:
        labels = state["_y"].reshape(rows.shape[0], -1)
        if (labels < 0).any() or (labels >= limits).any():
            refuse("it holds rows of classes that are none.")
    if state["_fit_method"] in GROWN:
        metric = state["effective_metric_"], state["effective_metric_params_"]
        grow = GROWN[state["_fit_method"]]
        state["_tree"] = grow(rows, state["leaf_size"], metric=metric[0], **metric[1])
