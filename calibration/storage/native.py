"""Objects whose methods are not Python, and trust the tables that they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibration.storage.errors import refuse

# Words of a Mersenne twister's state, and of what Philox makes at once.
_POSITIONS = {"MT19937": 624, "Philox": 4}


def check_native(value: Any) -> None:
    """Refuse an object whose methods would read memory that is not its own.

    Parameters
    ----------
    value : object
        As skops has read it.
    """
    if isinstance(value, np.random.RandomState):
        _check_position(value.get_state(legacy=False))
    elif isinstance(value, np.random.Generator):
        _check_position(value.bit_generator.state)
    elif type(value).__name__ in ("KDTree", "BallTree"):
        _check_neighbours(value)
    elif "support_vectors_" in (state := getattr(value, "__dict__", {})):
        _check_vectors(state, value._impl)
    elif "_fit_X" in state:
        _check_columns(state["_fit_X"], state)
        if "classes_" in state:
            _check_classes(state["_y"], state["classes_"])
    elif "cluster_centers_" in state:
        _check_columns(state["cluster_centers_"], state)


def _check_position(state: Any) -> None:
    """Numbers are drawn from the place where the last was left."""
    inner = state["state"]
    position = state.get("buffer_pos", inner.get("pos", 0))
    if not 0 <= position <= _POSITIONS.get(state["bit_generator"], 0):
        refuse("it holds a random generator whose place is none.")


def _check_neighbours(tree: Any) -> None:
    """Nodes are numbered from the root, and hold rows from one place to another."""
    data, rows, nodes, bounds, _, _, n_nodes, *_, metric, _ = tree.__getstate__()
    metric._validate_data(data)
    n, n_features = data.shape
    start, end = nodes["idx_start"], nodes["idx_end"]
    inner = np.flatnonzero(nodes["is_leaf"] == 0)
    n_bounds = 2 if type(tree).__name__ == "KDTree" else 1
    if not (
        bounds.shape == (n_bounds, n_nodes, n_features)
        and nodes.shape == (n_nodes,)
        and rows.shape == (n,)
        and ((rows >= 0) & (rows < n)).all()
        and ((start >= 0) & (start <= end) & (end <= n)).all()
        and (2 * inner + 2 < n_nodes).all()
    ):
        refuse("it holds a tree of neighbours whose nodes lead nowhere.")


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
