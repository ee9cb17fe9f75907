"""Probabilities of pairs of classes, joined to one probability for each class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from scipy.special import expit

from calibration._validation import as_numbers, check_choice, check_in_unit, show
from calibration.typing import Float64Array

Coupling: TypeAlias = Literal["least_squares", "log_loss", "pkpd"]

# Pairs are clipped to [_CLIP, 1 - _CLIP], as in libsvm: whatever they say, the answer
# is then unique and finite.
_CLIP = 1e-7
# Of r_ij + r_ji = 1.
_ROUNDING = 1e-6
# Numbers that the matrices of the rows solved at once hold; bounds the memory.
_CHUNK = 1 << 22
# Newton's method on log p ends where slope or step is 0 but for rounding.
_MOST_STEPS = 200
_TOLERANCE = 1e-13
# Of the greatest weight of a pair.
_LEAST_WEIGHT = 1e-6


def couple_pairs(
    pairs: ArrayLike,
    method: Coupling = "least_squares",
    *,
    pair_weight: ArrayLike | None = None,
) -> Float64Array:
    r"""Join the probabilities of all pairs of classes.

    Parameters
    ----------
    pairs : array-like of shape (n, k, k)
        ``pairs[:, i, j]`` is the probability of class i where it is known to be i or
        j; ``pairs[:, i, j] + pairs[:, j, i]`` is 1. The diagonal is not read.
    method : {"least_squares", "log_loss", "pkpd"}
        See the notes.
    pair_weight : array-like of shape (k, k), optional
        Used by "log_loss": how much each pair counts, as a rule the number of rows it
        was learned on. Symmetric; pairs of weight above 0 must connect all classes, and
        count as a millionth of the heaviest at least. Default: all pairs alike.

    Returns
    -------
    ndarray of shape (n, k)
        Rows that sum to 1.

    Notes
    -----
    With :math:`r_{ij}` the pairs, clipped to [1e-7, 1 - 1e-7], and
    :math:`\mu_{ij} = p_i / (p_i + p_j)`, the answers are

    - "least_squares": the minimum of :math:`\sum_{i \ne j} (r_{ji} p_i - r_{ij}
      p_j)^2` over p that sum to 1, the second method of Wu, Lin & Weng and libsvm's.
      It is one linear system (their equation 21), solved directly.
    - "log_loss": the minimum of :math:`\sum_{i<j} n_{ij} \{r_{ij} \log (r_{ij} /
      \mu_{ij}) + r_{ji} \log (r_{ji} / \mu_{ji})\}`, Hastie & Tibshirani's: the model
      of Bradley and Terry, in which :math:`\log p` is found by Newton's method.
    - "pkpd": :math:`p_i \propto 1 / \{\sum_{j \ne i} 1 / r_{ij} - (k - 2)\}`, in
      closed form.

    All return p from pairs that are consistent with some p. Of calibrated pairs of one
    classifier's output, least squares has had the least log loss of the three.

    References
    ----------
    Price, Knerr, Personnaz & Dreyfus (1995), Pairwise neural network classifiers with
    probabilistic outputs. Hastie & Tibshirani (1998), Classification by pairwise
    coupling. Wu, Lin & Weng (2004), Probability estimates for multi-class
    classification by pairwise coupling. Bach (2010), Self-concordant analysis for
    logistic regression.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import couple_pairs
    >>> p = np.array([0.5, 0.3, 0.2])
    >>> pairs = p[:, None] / (p[:, None] + p)
    >>> couple_pairs(pairs[None])
    array([[0.5, 0.3, 0.2]])
    """
    check_choice(method, "method", get_args(Coupling))
    clipped = _check_pairs(pairs)
    k = clipped.shape[1]
    weight = _check_pair_weight(pair_weight, k)
    out = np.empty(clipped.shape[:2])
    rows = max(1, _CHUNK // k**2)
    for start in range(0, len(out), rows):
        some = slice(start, start + rows)
        if method == "least_squares":
            out[some] = _solve_squares(clipped[some])
        elif method == "log_loss":
            out[some] = _solve_log_loss(clipped[some], weight)
        else:
            out[some] = _solve_pkpd(clipped[some])
    return out


def square_pairs(chances: Iterable[Float64Array], k: int) -> Float64Array:
    """Return pairs (n, k, k) of the chances of j against i, in the order of pairs.

    Parameters
    ----------
    chances : iterable of k (k - 1) / 2 ndarrays of shape (n,)
        Of (i, j) = (0, 1), (0, 2), ..., (k - 2, k - 1): the probability of class j.
    k : int

    Returns
    -------
    ndarray of shape (n, k, k)
        1/2 on the diagonal.
    """
    above = np.stack(list(chances), axis=1)
    pairs = np.full((len(above), k, k), 0.5)
    first, second = np.triu_indices(k, 1)
    pairs[:, second, first], pairs[:, first, second] = above, 1.0 - above
    return pairs


def _check_pairs(pairs: ArrayLike) -> Float64Array:
    """Return clipped pairs (n, k, k) whose upper and lower halves agree."""
    r = as_numbers(pairs, "pairs")
    if r.ndim != 3 or r.shape[1] != r.shape[2] or r.shape[1] < 2:
        msg = f"`pairs` must have shape (n, k, k), k >= 2, got shape {r.shape}."
        raise ValueError(msg)
    upper = np.triu_indices(r.shape[1], 1)
    above, below = r[:, upper[0], upper[1]], r[:, upper[1], upper[0]]
    for half in (above, below):
        if not np.isfinite(half).all():
            msg = f"`pairs` must be finite, got {half[~np.isfinite(half)][0]}."
            raise ValueError(msg)
        if half.size:
            check_in_unit(float(half.min()), float(half.max()), "pairs")
    gaps = np.abs(above + below - 1.0)
    if gaps.size and gaps.max() > _ROUNDING:
        row, pair = np.unravel_index(int(np.argmax(gaps)), gaps.shape)
        i, j = int(upper[0][pair]), int(upper[1][pair])
        msg = (
            "`pairs` must hold r[i, j] + r[j, i] = 1, "
            f"got {show(r[row, i, j] + r[row, j, i])} in row {row} for {i}, {j}."
        )
        raise ValueError(msg)
    return np.clip(r, _CLIP, 1.0 - _CLIP)


def _check_pair_weight(pair_weight: ArrayLike | None, k: int) -> Float64Array:
    """Return symmetric weights (k, k) without a diagonal, the mean of those held 1."""
    if pair_weight is None:
        weight = np.ones((k, k))
    else:
        weight = as_numbers(pair_weight, "pair_weight").copy()
        if weight.shape != (k, k):
            msg = (
                f"`pair_weight` must have shape (k, k) = ({k}, {k}), "
                f"got shape {weight.shape}."
            )
            raise ValueError(msg)
    np.fill_diagonal(weight, 0.0)
    bad = ~(np.isfinite(weight) & (weight >= 0.0) & (weight == weight.T))
    if bad.any():
        i, j = np.argwhere(bad)[0].tolist()
        msg = (
            "`pair_weight` must be finite, not negative and symmetric, "
            f"got {weight[i, j]} and {weight[j, i]} for {i}, {j}."
        )
        raise ValueError(msg)
    n_parts = int(connected_components(weight > 0.0, directed=False)[0])
    if n_parts > 1:
        msg = (
            "`pair_weight` must connect all classes by pairs of weight above 0, "
            f"got {n_parts} groups of classes without a pair between them."
        )
        raise ValueError(msg)
    held = weight > 0.0
    # Of a link that is weaker still, Newton's method would see nothing.
    weight[held] = np.maximum(weight[held], _LEAST_WEIGHT * weight.max())
    relative: Float64Array = weight / weight[held].mean()
    return relative


def _solve_squares(r: Float64Array) -> Float64Array:
    """Minimum of the squares: [[Q, 1], [1', 0]] [p; b] = [0; 1], row by row."""
    n, k = r.shape[:2]
    # Wu, Lin & Weng, equation 19: Q_ij = -r_ji r_ij and Q_ii = sum_s r_si^2.
    system = np.ones((n, k + 1, k + 1))
    system[:, :k, :k] = -r * r.transpose(0, 2, 1)
    places = np.arange(k)
    own = r[:, places, places] ** 2
    system[:, places, places] = (r**2).sum(axis=1) - own
    system[:, k, k] = 0.0
    right = np.zeros((n, k + 1, 1))
    right[:, k] = 1.0
    return _normalise(np.linalg.solve(system, right)[:, :k, 0])


def _solve_pkpd(r: Float64Array) -> Float64Array:
    """Price et al.: p_i = 1 / (sum of 1 / r_ij - (k - 2)), normalised."""
    k = r.shape[1]
    inverse = 1.0 / r
    inverse[:, np.arange(k), np.arange(k)] = 0.0
    return _normalise(1.0 / (inverse.sum(axis=2) - (k - 2)))


def _solve_log_loss(r: Float64Array, weight: Float64Array) -> Float64Array:
    """Bradley and Terry's model by Newton's method on u = log p, all rows at once."""
    # Half a pair each where the two halves differ by rounding.
    wins = weight * 0.5 * (r + 1.0 - r.transpose(0, 2, 1))
    u = np.log(_solve_pkpd(r))
    held = np.arange(len(u))
    for _ in range(_MOST_STEPS):
        step, slope = _newton_step(u[held], wins[held], weight)
        length = np.ptp(step, axis=1, keepdims=True)
        # log(1 + x) / x of the way surely lowers the loss, for a change of log-odds by
        # x changes the curvature by e^x at most (Bach 2010, proposition 1).
        u[held] -= step * np.log1p(length) / np.maximum(length, _TOLERANCE)
        held = held[(slope > _TOLERANCE * len(weight)) & (length[:, 0] > _TOLERANCE)]
        if len(held) == 0:
            break
    return _normalise(np.exp(u - u.max(axis=1, keepdims=True)))


def _newton_step(
    u: Float64Array, wins: Float64Array, weight: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Newton's step in u = log p (n, k), and the greatest slope of each row (n,)."""
    chance = expit(u[:, :, None] - u[:, None, :])
    gradient = (weight * chance - wins).sum(axis=2)
    hessian = -weight * chance * chance.transpose(0, 2, 1)
    places = np.arange(u.shape[1])
    own = -hessian.sum(axis=2)
    hessian[:, places, places] = own
    # A constant added to u changes nothing: this makes its direction steep as well.
    hessian += own.mean(axis=1)[:, None, None] / u.shape[1]
    step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
    return step, np.abs(gradient).max(axis=1)


def _normalise(p: Float64Array) -> Float64Array:
    """Return rows that sum to 1; what rounding has made negative is 0."""
    held = np.maximum(p, 0.0)
    rows: Float64Array = held / held.sum(axis=1, keepdims=True)
    return rows
