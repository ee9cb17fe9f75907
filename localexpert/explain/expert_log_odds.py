"""`explain_boosting`: exact contributions to the log-odds of the boosted expert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calibration.typing import Float64Array, Int64Array
from localexpert._kernels.tree_shapley import tree_shapley, turn_left
from localexpert._validation import check_number, make_rng
from localexpert.coordinate import Frame
from localexpert.data.table import Table
from localexpert.experts.shared_boosting import SharedBoosting, grid_knots
from localexpert.experts.threshold_trees import ThresholdTrees
from localexpert.explain.explanation import Explanation
from localexpert.explain.mixing import check_same_columns, read_table
from localexpert.explain.players import Players
from localexpert.explain.shapley import draw_background

# What a frame adds to the columns of X, in this order.
_FRAME_FEATURES = ("center(x)", "log scale(x)")


def explain_boosting(
    model: Any,
    X: Any,
    background: Any,
    *,
    threshold: float,
    groups: Mapping[str, Sequence[Any]] | None = None,
    n_background: int = 100,
    random_state: int | None = None,
) -> Explanation:
    r"""Return exact contributions to the boosted expert's log-odds of r <= threshold.

    Read from the trees, without asking the model; what is explained is the expert
    alone, before pooling, calibration and spline, not the forecast. For that see
    `explain_forecast`.

    Parameters
    ----------
    model : LocalExpertRegressor or SharedBoosting
        Fitted; of a regressor one that kept `shared` boosting among its experts.
    X : array or data frame of shape (n, p)
        Rows to explain.
    background : array or data frame of shape (m, p)
        Rows that features are compared with.
    threshold : float
        In the coordinate of `thresholds_`.
    groups : dict of str to list, optional
        Features that enter together; see `explain_forecast`.
    n_background : int
        Most background rows; see `explain_forecast`.
    random_state : int, optional
        Seed of the draw from a larger background.

    Returns
    -------
    Explanation
        Its standard errors are 0. In a frame the expert's features are those of `X`
        and two more, ``center(x)`` and ``log scale(x)``.

    Raises
    ------
    ValueError
        If no boosted expert was kept, or the target is smooth beside heavy values.

    Notes
    -----
    Log-odds are those of the trees, averaged over the models of the folds. They are a
    sum of trees, so by linearity contributions are sums over trees; in a tree, a leaf
    reached by the coalitions that hold A and nothing of B adds
    :math:`(|A|-1)!\,|B|!/(|A|+|B|)!` of its value to each of A, and takes
    :math:`|A|!\,(|B|-1)!/(|A|+|B|)!` of it off each of B. The game is that of
    `explain_forecast`, not the one of paths that LightGBM's `pred_contrib` plays.
    The forecast itself has no such road: probabilities of the folds' models are
    averaged, calibrated and made a spline, and none of this is linear in log-odds.

    References
    ----------
    Lundberg et al. (2020), From local explanations to global understanding with
    explainable AI for trees.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import SharedBoosting, make_folds
    >>> from localexpert.explain import explain_boosting
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> experts = SharedBoosting(max_rounds=20, random_state=0)
    >>> folds = make_folds(200, 2, random_state=0)
    >>> experts = experts.fit(X, X[:, 0], [0.25, 0.5, 0.75], folds)
    >>> told = explain_boosting(experts, X[:1], X, threshold=0.5, random_state=0)
    >>> bool(np.abs(told.values[0, 0]) > 5 * np.abs(told.values[0, 1]))
    True
    """
    v = check_number(threshold, "threshold", -np.finfo(float).max, np.finfo(float).max)
    rng = make_rng(random_state)
    rows = read_table(X, "X")
    against = draw_background(read_table(background, "background"), n_background, rng)
    check_same_columns(rows, against)
    experts, frame = _find_expert(model)
    adds = frame is not None and frame.kind_ is not None
    rows = model.reader_.read(rows, tells=True)
    against = model.reader_.read(against)
    if frame is not None:
        rows, against = (
            frame.add_features(table, *frame.locate(table)) for table in (rows, against)
        )
    players = Players.of(rows.reader.columns, groups, _FRAME_FEATURES if adds else ())
    knots = grid_knots(experts.thresholds_)
    place = float(np.interp(v, knots, np.arange(len(knots), dtype=np.float64)))
    owner = players.of_column[rows.reader.column_of]
    told, total, base = _explain_trees(
        experts, _encode(rows, place), _encode(against, place), owner, len(players)
    )
    of, names = f"log-odds of r <= {v:g}, boosted expert", players.names
    exact, inputs = np.zeros(told.shape), players.describe(rows.given)
    return Explanation(of, names, told, exact, base, total, inputs)


def _find_expert(model: Any) -> tuple[SharedBoosting, Frame | None]:
    """Return the boosted expert, and the frame that adds to the features it reads."""
    check_is_fitted(model)
    if isinstance(model, SharedBoosting):
        return model, None
    # Of several roads the heaviest one.
    forecaster = getattr(getattr(model, "forecaster_", None), "heaviest", None)
    members = getattr(getattr(forecaster, "experts", None), "fitted_", {})
    boosted = [e for e in members.values() if isinstance(e, SharedBoosting)]
    if not boosted:
        found = sorted(members) or type(forecaster or model).__name__
        msg = (
            "`model` must hold a boosted expert of one target "
            f'(strategy "shared", or "auto" that kept it), got {found}.'
        )
        raise ValueError(msg)
    return boosted[0], getattr(forecaster, "frame", None)


def _encode(table: Table, place: float) -> Float64Array:
    """Return rows as the trees read them, the threshold last."""
    return np.column_stack([table.codes, np.full(len(table), place)])


def _explain_trees(
    experts: SharedBoosting,
    X: Float64Array,
    background: Float64Array,
    owner: Int64Array,
    size: int,
) -> tuple[Float64Array, Float64Array, float]:
    """Return contributions, log-odds of the rows, and the background's mean."""
    # No row differs from another in the threshold: it may have any player's number.
    owner = np.append(owner, 0)
    n_models = len(experts.trees_)
    values = np.zeros((len(X), size))
    total, base = np.zeros(len(X)), 0.0
    for trees, start in zip(experts.trees_, experts.starts_, strict=True):
        arrays, owners = trees.arrays, owner[trees.feature]
        left, other = turn_left(X, arrays), turn_left(background, arrays)
        told = tree_shapley(left, other, owners, size, arrays)
        values += told / n_models
        total += _log_odds(trees, start, X) / n_models
        base += float(_log_odds(trees, start, background).mean()) / n_models
    return values, total, base


def _log_odds(
    trees: ThresholdTrees, start: Float64Array, X: Float64Array
) -> Float64Array:
    """Return one model's log-odds of rows that end with the threshold."""
    place = X[0, -1:]
    offset = np.interp(place, np.arange(len(start)), start)
    return (trees.sum(np.ascontiguousarray(X[:, :-1]), place) + offset)[:, 0]
