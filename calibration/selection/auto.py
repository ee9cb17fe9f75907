"""`AutoCalibrator`: calibrators tried on held-out rows, doing nothing among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from sklearn.base import clone

from calibration._kernels.cells import collapse_ties
from calibration._validation import (
    check_choice,
    check_integer,
    check_number,
    check_optional_seed,
)
from calibration.base.calibrators import Scale, ScoreCalibrator
from calibration.base.log_odds import LogOddsCalibrator
from calibration.logistic.beta import BetaCalibrator
from calibration.logistic.identity import IdentityCalibrator
from calibration.logistic.piecewise import PiecewiseLogisticCalibrator
from calibration.logistic.polynomial import (
    PlattCalibrator,
    QuadraticCalibrator,
    TemperatureCalibrator,
)
from calibration.monotone.elite import ELiTECalibrator
from calibration.monotone.venn_abers import VennAbersCalibrator
from calibration.selection.decision import decide, decide_blindly
from calibration.selection.report import AutoReport
from calibration.selection.trials import (
    HeldOut,
    check_candidates,
    hold_trials,
    read_log_odds,
    set_menu,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# From so many rows on the menu holds the formulas that extrapolate badly from fewer.
_ROWS_FOR_CURVES = 1_000
# Weights of a stack are held to doing nothing as if by this many squared log-odds.
_STACK_RIDGE = 10.0


class AutoCalibrator(LogOddsCalibrator):
    r"""Choose or join calibrators by held-out log loss; do nothing if that is safer.

    Parameters
    ----------
    method : {"stack", "select"}
        "stack": log-odds of all candidates are summed with non-negative weights that
        minimise the held-out log loss. "select": the simplest candidate within one
        standard error of the best.
    candidates : mapping of names to ScoreCalibrator, optional
        The simplest first; their `scale` is set here. Doing nothing, "identity", is
        put before them where scores are probabilities or log-odds. Default: a menu
        that grows with n, see the notes.
    max_harm : float
        The answer is the reference (doing nothing; for real scores the first
        candidate) unless the probability of being worse than it is below this. 1
        takes every proposal.
    n_folds : int
        Folds that yield the held-out rows.
    random_state : int or None
        Seed of the folds and of candidates that draw; None draws one.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    report_ : AutoReport
        What each candidate scored: mean, standard error, probability of harm and
        weight in the answer. Not there for one class or one distinct score.
    calibrators_ : dict of str to ScoreCalibrator
        The candidates in the answer, fitted on all rows, in log-odds (or in real
        scores).
    weights_ : ndarray of shape (k,)
        Weights of the log-odds of these k.
    bound_ : float
        The answer's log-odds lie within -+ `bound_`.

    Notes
    -----
    Default menu: doing nothing, temperature, Platt, quadratic, ELiTE, Venn-Abers
    (isotonic regression with honest ends); from 1000 rows on also beta and three-piece
    logistic. On real scores without those that need a probability, and Platt first.

    All candidates work in the log-odds x of the scores; a score of exactly 0 or 1
    counts as half of the least positive one, and likewise, so that doing nothing has
    a finite loss. The folds are taken from one summary, and fits on the others are
    fits on its difference to a fold: nothing is sorted again.

    With held-out log-odds :math:`z_{ik}` of row i by candidate k, a stack minimises

    .. math:: \sum_i \log(1 + e^{-(2 y_i - 1) \sum_k w_k z_{ik}})
        + \frac{10}{2} \|w - e_1\|^2, \qquad w \ge 0,

    :math:`e_1` being the reference alone: few rows stay close to it. The answer's
    probabilities are clipped to :math:`[1/(2n+2), 1 - 1/(2n+2)]`; those of the
    reference at twice these log-odds, for n rows without a surprise are no grounds
    to trust a probability of 1e-16. The probability of harm is the smaller of
    :math:`\Phi(\bar d / se(\bar d))` and :math:`\exp(n \bar d)`, d being the paired
    differences of held-out losses to those of the reference. The second bounds the
    chance of such a likelihood ratio if the reference were right, and decides where a
    few rows, impossible by the reference, make the mean and its error alike. The
    proposal's own is a little optimistic, since it was made on the same rows.

    References
    ----------
    Breiman (1996), Stacked regressions. Breiman et al. (1984), Classification and
    regression trees (the rule of one standard error).

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.selection.auto import AutoCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=3000)
    >>> y = rng.uniform(size=3000) < scores**2
    >>> auto = AutoCalibrator().fit(scores, y)
    >>> np.abs(auto.predict([0.2, 0.5, 0.8]) - [0.04, 0.25, 0.64]).max() < 0.03
    np.True_
    >>> honest = rng.uniform(size=3000) < scores
    >>> AutoCalibrator().fit(scores, honest).report_.chosen  # nothing to do
    ('identity',)
    """

    report_: AutoReport
    calibrators_: dict[str, ScoreCalibrator]
    weights_: Float64Array
    bound_: float

    def __init__(
        self,
        method: Literal["stack", "select"] = "stack",
        candidates: Mapping[str, ScoreCalibrator] | None = None,
        *,
        max_harm: float = 0.1,
        n_folds: int = 5,
        random_state: int | None = 0,
        scale: Scale = "probability",
    ):
        self.method = method
        self.candidates = candidates
        self.max_harm = max_harm
        self.n_folds = n_folds
        self.random_state = random_state
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.method, "method", ("stack", "select"))
        check_number(self.max_harm, "max_harm", 0.0, 1.0)
        check_integer(self.n_folds, "n_folds", 2)
        check_optional_seed(self.random_state)
        if self.candidates is not None:
            check_candidates(self.candidates, ScoreCalibrator, IdentityCalibrator)

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        cells = ScoreSummary(*collapse_ties(x, summary.weight0, summary.weight1))
        if cells.n_cells == 1:
            # Scores that differ by less than a logit can tell.
            self.constant_ = float(np.log((cells.n1 + 1.0) / (cells.n0 + 1.0)))
            return
        menu = self._menu(cells.n)
        trials = hold_trials(menu, cells, self.n_folds, self.random_state)
        # logit(1 - 1 / (2 n + 2)).
        bound = float(np.log(2.0 * cells.n + 1.0))
        weights, self.report_ = self._decide(list(menu), trials, bound)
        self.bound_ = bound if self.report_.accepted else 2.0 * bound
        self.weights_ = weights[weights > 0.0]
        self.calibrators_ = {
            name: clone(menu[name]).fit_summary(cells) for name in self.report_.chosen
        }
        self._n = cells.n

    def _log_odds(self, x: Float64Array) -> Float64Array:
        total = np.zeros(len(x))
        for weight, one in zip(self.weights_, self.calibrators_.values(), strict=True):
            total += weight * read_log_odds(one, x, self._n)
        return np.clip(total, -self.bound_, self.bound_)

    def _menu(self, n: float) -> dict[str, ScoreCalibrator]:
        """Return the candidates for n rows by name, the reference first."""
        real = self.scale == "real"
        menu = self.candidates
        if menu is None:
            menu = _default_menu(n, real, self.random_state)
        found = set_menu(menu, "real" if real else "logit")
        for one in found.values():
            # A method without a meaning on real scores says so itself.
            one._check_parameters()
        return found

    def _decide(
        self, names: list[str], trials: HeldOut | None, bound: float
    ) -> tuple[Float64Array, AutoReport]:
        """Return the candidates' weights, shape (k,), and the report."""
        if trials is None:
            return decide_blindly(self.method, names)
        if self.method == "stack":
            weights = trials.stack(_STACK_RIDGE)
        else:
            weights = np.eye(len(names))[trials.simplest_of_best()]
        candidates = [trials.losses(row) for row in trials.log_odds]
        proposal = candidates[0]
        if not (weights == np.eye(1, len(names))).all():
            odds = np.clip(weights @ trials.log_odds, -bound, bound)
            proposal = trials.losses(odds)
        return decide(self.method, names, candidates, weights, proposal, self.max_harm)


def _default_menu(
    n: float, real: bool, random_state: int | None
) -> dict[str, ScoreCalibrator]:
    """Return the candidates besides doing nothing, the simplest first."""
    curves = n >= _ROWS_FOR_CURVES
    piecewise = PiecewiseLogisticCalibrator(random_state=random_state)
    menu: list[tuple[str, ScoreCalibrator, bool]] = [
        ("temperature", TemperatureCalibrator(), not real),
        ("platt", PlattCalibrator(), True),
        ("beta", BetaCalibrator(), curves and not real),
        ("quadratic", QuadraticCalibrator(), True),
        ("piecewise", piecewise, curves),
        ("elite", ELiTECalibrator(), True),
        ("venn_abers", VennAbersCalibrator(), True),
    ]
    return {name: calibrator for name, calibrator, offered in menu if offered}
