"""What compiled code would take on trust: tables that a file made up are refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.storage.errors import refuse

# Different values that may have one hash: -1 and -2 do, 2**61 - 1 and 0 as well.
_MOST_ALIKE = 16
# Words of a Mersenne twister's state, and of what Philox makes at once.
_POSITIONS = {"MT19937": 624, "Philox": 4}


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


def check_position(state: Any) -> None:
    """Refuse a generator that would draw numbers from beyond its state."""
    position = state.get("buffer_pos", state["state"].get("pos", 0))
    if not 0 <= position <= _POSITIONS.get(state["bit_generator"], 0):
        refuse("it holds a random generator whose place is none.")


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
    if (
        n == 0
        or (below <= np.flatnonzero(inner)).any()
        or (below >= n).any()
        or (used < 0).any()
        or (used >= n_features).any()
    ):
        refuse("it holds a tree whose nodes lead nowhere.")


def check_tables(value: Any) -> None:
    """Refuse an object whose tables do not fit each other.

    Parameters
    ----------
    value : object
        Just read; all that it holds has been checked before.
    """
    state = getattr(value, "__dict__", {})
    if "support_vectors_" in state:
        _check_vectors(state, value._impl)
    elif "_fit_X" in state:
        _check_columns(state["_fit_X"], state)
        if "classes_" in state:
            _check_classes(state["_y"], state["classes_"])
    elif "cluster_centers_" in state:
        _check_columns(state["cluster_centers_"], state)
    elif "tree_" in state:
        _check_features(state["tree_"].n_features, state)
    elif "_predictors" in state:
        _check_predictors(state)
    elif "estimators_" in state:
        _check_ensemble(state)


def _check_ensemble(state: dict[str, Any]) -> None:
    """Ensembles check the table themselves, and then ask trees without checks."""
    members = np.array(state["estimators_"], dtype=object)
    for member in members.ravel():
        if "tree_" in getattr(member, "__dict__", {}):
            _check_features(member.tree_.n_features, state)
    # Boosting adds up a column of trees in each column of a table.
    n_columns = state.get("n_trees_per_iteration_", 0)
    if n_columns and members.size and members.shape[1:] != (n_columns,):
        refuse(f"it holds trees of the shape {members.shape} for {n_columns} sums.")


def _check_features(n_features: int, state: dict[str, Any]) -> None:
    # Bagging gives each tree some of the features, and says which.
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
        if (
            not known[split["feature_idx"]].all()
            or (split["bitset_idx"] >= min(map(len, sets))).any()
        ):
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


def _check_columns(rows: Any, state: dict[str, Any]) -> None:
    """Distances are taken over as many columns as there are asked about."""
    if not len(rows) or rows.shape[1] != state["n_features_in_"]:
        refuse(f"it holds rows of shape {rows.shape} where others are asked for.")


def _check_classes(labels: Any, classes: Any) -> None:
    """Labels are places among the classes; of several targets a list of them."""
    several = classes if isinstance(classes, list) else [classes]
    limits = [len(known) for known in several]
    if (labels < 0).any() or (labels.reshape(len(labels), -1) >= limits).any():
        refuse("it holds rows of classes that are none.")
