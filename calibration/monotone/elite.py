"""ELiTE: the ensemble of linear trend estimates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration._kernels.cells import join_close_cells
from calibration._kernels.trend_filter import largest_bend, trend_filter_path
from calibration._validation import (
    check_choice,
    check_integer,
    check_number,
    check_span,
)
from calibration.base.calibrators import Criterion, MapCalibrator, Scale, criterion_logs
from calibration.maps import CalibrationMap
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array, Int64Array

# Cells that are closer than this share of the range of scores are joined.
_LEAST_GAP = 1e-5
# If the greatest penalty is below this share of n, it is the rounding of an affine fit.
_ROUNDING = 1e-13


class ELiTECalibrator(MapCalibrator):
    r"""ELiTE: continuous piecewise-linear maps averaged along a trend-filtering path.

    Parameters
    ----------
    n_lambdas : int
        Number of penalties. They are spaced evenly in the logarithm.
    lambda_ratio : float
        Least penalty as a share of the greatest. It is in (0, 1].
    isotonic_penalty : float
        Cost, per row, if a map falls by one in total. 0 means no cost. inf means that
        the maps increase. In between, falls with little support from the data are
        levelled.
    criterion : {"aicc", "aic", "bic"}
        The criterion that weighs the maps. AIC follows the training rows too closely.
    max_cells : int
        Greatest number of cells to work on. Beyond it, neighbours are merged to equal
        weights.
    scale : {"probability", "logit", "real"}
        What a score is. The map is piecewise linear in the scores as they are given.

    Attributes
    ----------
    map_ : CalibrationMap
        The average of the maps. It is linear between knots, and flat beyond the outer
        cells.
    lambdas_ : ndarray of shape (n_lambdas,)
        The penalties, from lambda_max down. There is only one if lambda_max is 0.
    weights_ : ndarray of shape (n_lambdas,)
        Weight of each map in the average.
    degrees_of_freedom_ : ndarray of shape (n_lambdas,)
        Free parameters of each map.
    duality_gaps_ : ndarray of shape (n_lambdas,)
        Bound on how far the objective of each map lies above the optimum, relative to
        the objective. It holds up to rounding (about 1e-10).

    Notes
    -----
    For cells :math:`x_1 < \dots < x_m` with weights :math:`w` and event rates
    :math:`z`, a map minimises

    .. math::

        \frac{1}{2} \sum_i w_i (p_i - z_i)^2
        + \lambda \sum_i |s_{i+1} - s_i|
        + n \kappa \sum_i (p_i - p_{i+1})_+ ,
        \qquad s_i = \frac{p_{i+1} - p_i}{x_{i+1} - x_i},

    (eq. 3.23 of the thesis, with the weights of its footnote 10). The last term is the
    near-isotonic penalty that the thesis suggests, and :math:`\kappa` is
    `isotonic_penalty`. On a piecewise-linear map it charges the decrease of each piece,
    whatever cells lie inside. It is solved exactly together with the other penalty. The
    grid of :math:`\lambda` does not depend on it.

    :math:`\lambda_{max} = \|(D W^{-1} D')^{-1} D z\|_\infty` is the least penalty that
    gives the weighted affine fit (if falls cost nothing). Values are clipped to [0, 1].

    The weights are proportional to :math:`\exp(-AICc / 2)`, or to that of another
    criterion. The likelihoods are Bernoulli, with probabilities clipped to
    :math:`[1/(2n+2), 1 - 1/(2n+2)]`. A map has kinks + 2 degrees of freedom, less one
    for every piece that the isotonic penalty holds flat. A map with n <= degrees of
    freedom + 1 has no AICc and no weight. If no map has one (n <= 3 rows), the map of
    lambda_max stands alone.

    Scores that are closer than 1e-5 of their range are joined before the fit.

    References
    ----------
    Pakdaman Naeini (2016), Obtaining accurate probabilities using classifier
    calibration, section 3.4. Kim, Koh, Boyd & Gorinevsky (2009), l1 trend filtering.
    Tibshirani, Hoefling & Tibshirani (2011), Nearly-isotonic regression.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.monotone.elite import ELiTECalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=2000)
    >>> y = rng.uniform(size=2000) < scores**2
    >>> elite = ELiTECalibrator().fit(scores, y)
    >>> np.abs(elite.predict([0.2, 0.5, 0.8]) - [0.04, 0.25, 0.64]).max() < 0.05
    np.True_
    >>> elite.duality_gaps_.max() < 1e-8
    np.True_
    """

    lambdas_: Float64Array
    weights_: Float64Array
    degrees_of_freedom_: Int64Array
    duality_gaps_: Float64Array

    def __init__(
        self,
        n_lambdas: int = 50,
        lambda_ratio: float = 1e-4,
        *,
        isotonic_penalty: float = 0.0,
        criterion: Criterion = "aicc",
        max_cells: int = 4096,
        scale: Scale = "probability",
    ):
        self.n_lambdas = n_lambdas
        self.lambda_ratio = lambda_ratio
        self.isotonic_penalty = isotonic_penalty
        self.criterion = criterion
        self.max_cells = max_cells
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer(self.n_lambdas, "n_lambdas", 1)
        check_number(self.lambda_ratio, "lambda_ratio", 0.0, 1.0, open_low=True)
        price = self.isotonic_penalty
        check_number(price, "isotonic_penalty", 0.0, open_high=False)
        check_choice(self.criterion, "criterion", ("aicc", "aic", "bic"))
        check_integer(self.max_cells, "max_cells", 2)

    def _fit(self, summary: ScoreSummary) -> None:
        cells = _thin(summary, self.max_cells)
        weight = cells.weight0 + cells.weight1
        target = cells.weight1 / weight
        n = weight.sum()
        largest = largest_bend(cells.unit, weight, target)
        bends = np.array([largest])
        if largest > _ROUNDING * n:
            steps = np.linspace(0.0, 1.0, self.n_lambdas)
            # The penalties are even in the logarithm, because the number of kinks grows
            # about as a power of 1 / lambda.
            bends = largest * self.lambda_ratio**steps
        paths, marks, freedom, gaps = trend_filter_path(
            cells.unit, weight, target, bends, n * self.isotonic_penalty
        )
        # The penalties were on slopes per unit interval. On the given scale, slopes are
        # 1 / length of those.
        self.lambdas_ = bends * cells.length
        self.degrees_of_freedom_ = freedom
        self.duality_gaps_ = gaps
        self.weights_ = _model_weights(self.criterion, paths, cells, freedom)
        self.map_ = _average(cells.scores, paths, marks, self.weights_)


class _Cells(NamedTuple):
    """Cells with their scores, on the given scale and mapped to the unit interval."""

    scores: Float64Array
    unit: Float64Array
    length: float
    weight0: Float64Array
    weight1: Float64Array


def _thin(summary: ScoreSummary, max_cells: int) -> _Cells:
    """Join cells that nearly coincide, then merge cells down to `max_cells`."""
    check_span(summary.scores[0], summary.scores[-1])
    # Divide by a power of two. Then differences of huge and of tiny scores are ordinary
    # floats.
    power = int(np.frexp(np.abs(summary.scores[[0, -1]]).max())[1])
    scores = np.ldexp(summary.scores, -power)
    low, length = scores[0], scores[-1] - scores[0]
    unit = (scores - low) / length
    joined = join_close_cells(unit, summary.weight0, summary.weight1, _LEAST_GAP)
    cells = ScoreSummary(*joined).condense(max_cells)
    # Joining moves the outer cells inwards. From here on the range is between these.
    places = np.ldexp(low + length * cells.scores, power)
    start, extent = cells.scores[0], cells.scores[-1] - cells.scores[0]
    return _Cells(
        places,
        (cells.scores - start) / extent,
        float(np.ldexp(length * extent, power)),
        cells.weight0,
        cells.weight1,
    )


def _model_weights(
    criterion: Criterion, paths: Float64Array, cells: _Cells, freedom: Int64Array
) -> Float64Array:
    """Return the weights (n_lambdas,) of maps of shape (n_lambdas, m)."""
    n = float(cells.weight0.sum() + cells.weight1.sum())
    # A map may say 0 or 1. Its likelihood would be 0 after one surprise.
    edge = 1.0 / (2.0 * n + 2.0)
    p = np.clip(paths, edge, 1.0 - edge)
    log_likelihood = np.log(p) @ cells.weight1 + np.log1p(-p) @ cells.weight0
    logs = criterion_logs(criterion, log_likelihood, freedom, n)
    # Take Akaike weights (Burnham & Anderson 2002), less the best, so that none
    # overflows.
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _average(
    scores: Float64Array,
    paths: Float64Array,
    marks: Float64Array,
    weights: Float64Array,
) -> CalibrationMap:
    """Average the clipped maps. Knots are cells where a map that counts may bend."""
    # Other maps are below the rounding of the average, and change no digit of it.
    counts = weights > np.finfo(np.float64).eps
    clipped = np.clip(paths, 0.0, 1.0)
    mean = np.clip(weights @ clipped, 0.0, 1.0)
    knots: NDArray[np.bool_] = (marks[counts] != 0.0).any(axis=0)
    # If a map leaves [0, 1], clipping makes a kink between two cells. Both are knots.
    outside = clipped[counts] != paths[counts]
    turns = (outside[:, 1:] != outside[:, :-1]).any(axis=0)
    knots[1:] |= turns
    knots[:-1] |= turns
    knots[[0, -1]] = True
    return CalibrationMap.linear(scores[knots], mean[knots])
