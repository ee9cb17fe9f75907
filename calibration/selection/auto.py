"""`AutoCalibrator` tries calibrators on held-out rows. Names stand for calibrators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibration._kernels.cells import collapse_ties
from calibration._validation import (
    check_choice,
    check_integer,
    check_number,
    check_optional_seed,
    check_verbose,
)
from calibration.base.calibrators import Scale, ScoreCalibrator
from calibration.multiclass.base import EitherCalibrator, MulticlassCalibrator
from calibration.multiclass.binary import FAMILIES, OneVsRestCalibrator
from calibration.multiclass.class_scores import ClassScores, to_probabilities
from calibration.multiclass.shallow_net import ShallowNetCalibrator
from calibration.multiclass.softmax import (
    MOST_MATRIX_CLASSES,
    PENALTIES,
    SoftmaxCalibrator,
)
from calibration.selection.trials import (
    Cells,
    Rows,
    Table,
    Trials,
    check_menu,
    hold_trials,
    pool_logs,
    read_log_odds,
    read_logs,
    set_menu,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

# With more than two classes, each weight of a proposal costs this many nats, because
# the proposal is judged on the rows from which it was learned. This is half of what AIC
# charges, because a ridge holds the weight.
_CHARGE = 0.5


@dataclass(frozen=True)
class CandidateScore:
    """Scores of one candidate on held-out rows.

    Parameters
    ----------
    log_loss : float
        Mean log loss. It is nan if there were too few rows to hold any out. A candidate
        without hope is only tried on the first fold: then the loss comes from its
        difference to the reference there.
    standard_error : float
        Its standard error.
    probability_of_harm : float
        Probability that it is worse than the reference.
    weight : float
        Weight of its log-odds in the answer.

    Examples
    --------
    >>> from calibration.selection.auto import CandidateScore
    >>> CandidateScore(0.31, 0.02, 0.07, 1.0).probability_of_harm
    0.07
    """

    log_loss: float
    standard_error: float
    probability_of_harm: float
    weight: float


@dataclass(frozen=True)
class AutoReport:
    """The scores of each candidate, and the decision. Its string is a table.

    Parameters
    ----------
    reference : str
        The answer must not be worse than this candidate. It is doing nothing
        ("identity"). For real scores, which are no probabilities, it is the first
        candidate.
    candidates : dict of str to CandidateScore
        The simplest comes first. The weights are those of the answer.
    proposal : CandidateScore
        The pool of all candidates. Its `weight` is 1 if it became the answer, and 0 if
        the reference did.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration.selection.auto import AutoCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=500)
    >>> y = rng.uniform(size=500) < scores**2
    >>> report = AutoCalibrator().fit(scores, y).report_
    >>> "platt" in report.chosen, report.accepted
    (True, True)
    """

    reference: str
    candidates: dict[str, CandidateScore]
    proposal: CandidateScore

    @property
    def accepted(self) -> bool:
        """Whether the proposal became the answer, and not the reference."""
        return self.proposal.weight == 1.0

    @property
    def chosen(self) -> tuple[str, ...]:
        """Names of the candidates with a weight in the answer."""
        return tuple(name for name, one in self.candidates.items() if one.weight > 0.0)

    def __str__(self) -> str:
        """Return the scores as a table."""
        verdict = "the pool, " + ("taken" if self.accepted else "turned down")
        width = max(len(verdict), *map(len, self.candidates))
        title = f"{'held-out':<{width}}  log loss   error  P(harm)  weight"
        lines = [_line(name, one, width) for name, one in self.candidates.items()]
        proposal = _line(verdict, self.proposal, width)
        return "\n".join([title, *lines, proposal, f"harm against {self.reference}"])


def _line(name: str, score: CandidateScore, width: int) -> str:
    """Return one row of the table."""
    return (
        f"{name:<{width}}  {score.log_loss:8.4f}  {score.standard_error:6.4f}  "
        f"{score.probability_of_harm:7.3f}  {score.weight:6.3f}"
    )


def choose(
    names: Sequence[str], trials: Trials | None, rows: Rows, max_harm: float
) -> tuple[Float64Array, AutoReport]:
    """Propose candidates by their trials, and take them if harm is unlikely.

    Parameters
    ----------
    names : sequence of c str
        Names of all candidates. The reference is first.
    trials : Trials or None
        None if there were too few rows. Then the reference is taken.
    rows : Rows
        The rows of the trials.
    max_harm : float
        From this probability of harm on, the reference is taken. 1 accepts everything.

    Returns
    -------
    weights : ndarray of shape (c,)
        Weights of the answer.
    report : AutoReport
    """
    alone = np.eye(1, len(names)).ravel()
    if trials is None:
        unknown = CandidateScore(np.nan, np.nan, np.nan, 0.0)
        of_all = dict.fromkeys(names, unknown) | {
            names[0]: replace(unknown, weight=1.0)
        }
        return alone, AutoReport(names[0], of_all, unknown)
    losses = [trials.losses(one) for one in trials.logs]
    weights = trials.stack()
    pooled = losses[0]
    if is_proposal := bool(weights[0] != 1.0 or weights[1:].any()):
        pooled = trials.losses(rows.limit(pool_logs(weights, trials.logs)))
    charge = 0.0
    if len(trials.weight) > 2:
        charge = _CHARGE * np.count_nonzero(weights[1:])
    harm = pooled.harm(losses[0], charge)
    # If `max_harm` is 1, a proposal whose harm rounds to 1 must be taken too.
    accepted = is_proposal and (harm < max_harm or max_harm == 1.0)
    found = dict(zip(trials.names, weights.tolist(), strict=True))
    answer = np.array([found.get(name, 0.0) for name in names]) if accepted else alone
    held_out = dict(zip(trials.names, losses, strict=True))
    scores = {}
    for name, weight in zip(names, answer.tolist(), strict=True):
        one, other = trials.given_up.get(name) or (held_out[name], losses[0])
        mean = losses[0].mean + one.less(other).mean
        scores[name] = CandidateScore(mean, one.error, one.harm(other), weight)
    verdict = CandidateScore(pooled.mean, pooled.error, harm, float(accepted))
    return answer, AutoReport(names[0], scores, verdict)


# From this many rows on, the menu holds formulas that extrapolate badly from fewer.
_ROWS_FOR_CURVES = 1_000


class AutoCalibrator(EitherCalibrator):
    r"""Join calibrators by held-out log loss, or do nothing if that is safer.

    Parameters
    ----------
    candidates : mapping of names to calibrators, optional
        The simplest comes first. Their `scale` is set here. If scores are probabilities
        or logits, doing nothing, "identity", is put before them. With scores (n, k) a
        ScoreCalibrator means one for each class. Default: see the notes.
    max_harm : float
        The reference is doing nothing, or the first candidate for real scores. It is
        the answer unless the probability of being worse than it is below this number. 1
        takes every proposal.
    n_folds : int
        Folds that yield the held-out rows.
    random_state : int or None
        Seed of the folds, and of candidates that draw. None draws one.
    classes : sequence of k names, optional
        Names of the columns of scores (n, k). Default: their numbers, 0 to k - 1.
    scale : {"probability", "logit", "real"}
        What a score is. Scores (n, k) cannot be "real".
    verbose : int
        1 shows on stderr how many folds are done. 0 shows nothing.

    Attributes
    ----------
    report_ : AutoReport
        The scores of each candidate: mean, standard error, probability of harm and
        weight in the answer. Missing if the answer is a constant.
    calibrators_ : dict of str to calibrator
        The candidates in the answer, fitted on all rows. With scores (n,) they are
        fitted in log-odds (or in real scores).
    weights_ : ndarray of shape (c,)
        Weights of the log-probabilities of these c candidates.
    bound_ : float
        With scores (n,): the answer's log-odds lie within -+ `bound_`.

    Notes
    -----
    The default menu for scores (n,) has doing nothing, temperature, Platt, quadratic,
    ELiTE, and Venn-Abers (isotonic regression with honest ends). From 1000 rows on it
    also has beta and three-piece logistic. For real scores it leaves out those that
    need a probability, and Platt comes first. The menu for scores (n, k) has doing
    nothing, temperature, vector scaling, one against the rest by quadratic logistic
    regression and by Venn-Abers, structured matrix scaling with its ridge times 1, 0.3,
    0.1, 0.03, 0.01 and 0.003, and three shallow nets (these up to 150 classes). Of
    these, a candidate is given up after the first fold if it has no weight in the pool
    of that fold and is worse than the best there by two standard errors. Trials use 16
    384 cells or rows at most.

    Let :math:`z_{cij}` be the held-out log-probability of class j and row i by
    candidate c. A logarithmic pool of all candidates is proposed. Its weights minimise

    .. math:: -\sum_i \log S\bigl(\sum_c w_c z_{ci}\bigr)_{y_i}
        + \frac{10}{2} \|w - e\|^2, \qquad w \ge 0,

    where S is the softmax, and e is the reference alone. With few rows the pool stays
    close to it. For two classes it is a sum of log-odds.

    Scores (n,): all candidates work in the log-odds x of the scores. A score of exactly
    0 counts as half of the least positive one, and a score of 1 likewise. So doing
    nothing has a finite loss. The answer's probabilities are clipped to
    :math:`[1/(2n+2), 1 - 1/(2n+2)]`. Those of the reference are clipped at twice these
    log-odds: n rows without a surprise are no reason to trust a probability of 1e-16.
    Scores (n, k): candidates are mixed with the uniform law, :math:`(1 - \frac{1}{n+1})
    p + \frac{1}{(n+1) k}`. Doing nothing is not mixed, but a probability of 0 counts as
    half of the least positive one.

    The probability of harm is the smaller of :math:`\Phi(\bar d / se(\bar d))` and
    :math:`\exp(n \bar d)`. Here d are the paired differences of held-out losses to
    those of the reference. The second number bounds the chance of such a likelihood
    ratio if the reference were right. It decides if a few rows, impossible by the
    reference, make both the mean and its error. For the proposal itself the probability
    is a little optimistic, since the proposal was made on the same rows. So with more
    than two classes half a nat is added to its loss for each candidate in it.

    References
    ----------
    Breiman (1996), Stacked regressions. Genest & Zidek (1986), Combining probability
    distributions (the logarithmic pool). Berta, Holzmueller, Jordan & Bach (2025),
    Structured matrix scaling for multi-class calibration.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import AutoCalibrator
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=3000)
    >>> y = rng.uniform(size=3000) < scores**2
    >>> auto = AutoCalibrator().fit(scores, y)
    >>> np.abs(auto.predict([0.2, 0.5, 0.8]) - [0.04, 0.25, 0.64]).max() < 0.03
    np.True_
    >>> honest = rng.uniform(size=3000) < scores
    >>> AutoCalibrator().fit(scores, honest).report_.chosen  # nothing to do
    ('identity',)

    Three classes:

    >>> p = rng.dirichlet([1, 1, 1], size=2000)
    >>> y = (rng.uniform(size=(2000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> bold = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> np.abs(AutoCalibrator().fit(bold, y).predict(bold) - p).mean() < 0.02
    np.True_
    """

    report_: AutoReport
    calibrators_: dict[str, Any]
    weights_: Float64Array
    bound_: float

    def __init__(
        self,
        candidates: Mapping[str, ScoreCalibrator | MulticlassCalibrator] | None = None,
        *,
        max_harm: float = 0.1,
        n_folds: int = 5,
        random_state: int | None = 0,
        classes: Sequence[Any] | None = None,
        scale: Scale = "probability",
        verbose: int = 0,
    ):
        self.candidates = candidates
        self.max_harm = max_harm
        self.n_folds = n_folds
        self.random_state = random_state
        self.classes = classes
        self.scale = scale
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self.max_harm, "max_harm", 0.0, 1.0)
        check_integer(self.n_folds, "n_folds", 2)
        check_optional_seed(self.random_state)
        check_verbose(self.verbose)
        if self.candidates is not None:
            check_menu(self.candidates, "candidates")

    def _fit_formula(self, summary: ScoreSummary, x: Float64Array) -> None:
        cells = ScoreSummary(*collapse_ties(x, summary.weight0, summary.weight1))
        if cells.n_cells == 1:
            # The scores differ by less than a logit can resolve.
            self.constant_ = float(np.log((cells.n1 + 1.0) / (cells.n0 + 1.0)))
            return
        real = self.scale == "real"
        menu = self.candidates
        if menu is None:
            menu = _menu_of_scores(cells.n, real, self.random_state)
        scale: Scale = "real" if real else "logit"
        menu = set_menu(menu, "candidates", scale, several=False)
        self._choose(menu, Cells(cells))
        # This is logit(1 - 1 / (2 n + 2)).
        bound = float(np.log(2.0 * cells.n + 1.0))
        self.bound_ = bound if self.report_.accepted else 2.0 * bound

    def _log_odds(self, x: Float64Array) -> Float64Array:
        total = np.zeros(len(x))
        for weight, one in zip(self.weights_, self.calibrators_.values(), strict=True):
            total += weight * read_log_odds(one, x, self._n)
        return np.clip(total, -self.bound_, self.bound_)

    def _fit_table(self, data: ClassScores) -> None:
        menu = self.candidates
        if menu is None:
            menu = _menu_of_tables(data.scores.shape[1], self.random_state)
        menu = set_menu(menu, "candidates", self.scale, several=True)
        self._choose(menu, Table(data.merged()))

    def _predict_table(self, table: Float64Array) -> Float64Array:
        return to_probabilities(self.log_predict(table))

    def log_predict(self, table: Float64Array) -> Float64Array:
        """Return log-probabilities of checked scores (n, k), shape (k, n)."""
        fitted = self.calibrators_.values()
        # The pool may have no members. Then it is the uniform law.
        logs = np.empty((len(fitted), *table.T.shape))
        for place, one in enumerate(fitted):
            logs[place] = read_logs(one, table, self._n)
        return pool_logs(self.weights_, logs)

    def _choose(self, menu: Mapping[str, Any], rows: Rows) -> None:
        """Learn which candidates answer, and fit these on all rows."""
        trials = hold_trials(
            menu,
            rows,
            self.n_folds,
            self.random_state,
            all_folds=isinstance(rows, Cells),
            verbose=check_verbose(self.verbose),
        )
        harm = float(self.max_harm)
        weights, self.report_ = choose(tuple(menu), trials, rows, harm)
        self.weights_ = weights[weights > 0.0]
        self.calibrators_ = {name: rows.fit(menu[name]) for name in self.report_.chosen}
        self._n = rows.n


def _menu_of_scores(
    n: float, real: bool, random_state: int | None
) -> dict[str, ScoreCalibrator]:
    """Return the candidates except doing nothing, the simplest first."""
    offered = "temperature platt beta quadratic piecewise elite venn_abers"
    left_out = {"temperature", "beta"} if real else set()
    if n < _ROWS_FOR_CURVES:
        left_out |= {"beta", "piecewise"}
    names = [name for name in offered.split() if name not in left_out]
    return {name: make_calibrator(name, random_state=random_state) for name in names}


def _menu_of_tables(
    k: int, random_state: int | None
) -> dict[str, MulticlassCalibrator]:
    """Return the candidates for k classes except doing nothing, the simplest first."""
    menu: dict[str, MulticlassCalibrator] = {
        "temperature": SoftmaxCalibrator("temperature"),
        "vector": SoftmaxCalibrator("vector", 1.0),
        "quadratic": OneVsRestCalibrator("quadratic"),
        "venn_abers": OneVsRestCalibrator("venn_abers"),
    }
    if k <= MOST_MATRIX_CLASSES:
        menu |= {
            f"matrix {one:g}": SoftmaxCalibrator("matrix", one) for one in PENALTIES
        }
        # Three nets are as good in a pool as ten, at a third of the cost.
        menu["shallow_net"] = ShallowNetCalibrator(3, random_state=random_state)
    return menu


_OF_SCORES: dict[str, Callable[[], Any]] = {"auto": AutoCalibrator, **FAMILIES}
# If a name is not here, it is a binary calibrator, and each class gets one.
_OF_TABLES: dict[str, Callable[[], Any]] = {
    "auto": AutoCalibrator,
    "matrix": lambda: SoftmaxCalibrator("matrix"),
    "shallow_net": ShallowNetCalibrator,
    "temperature": lambda: SoftmaxCalibrator("temperature"),
    "vector": lambda: SoftmaxCalibrator("vector"),
}


def calibrator_names(n_classes: int = 2) -> tuple[str, ...]:
    """Return the names that `make_calibrator` knows.

    Parameters
    ----------
    n_classes : int
        2 means calibrators of one score for each row. More means a score for each
        class.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from calibration import calibrator_names
    >>> "venn_abers" in calibrator_names(), "matrix" in calibrator_names(3)
    (True, True)
    """
    check_integer(n_classes, "n_classes", 2)
    if n_classes == 2:
        return tuple(_OF_SCORES)
    return tuple(sorted({*_OF_TABLES, *_OF_SCORES}))


def make_calibrator(
    name: str, *, n_classes: int = 2, random_state: int | None = 0
) -> Any:
    """Return a new calibrator by its name, with its default parameters.

    Parameters
    ----------
    name : str
        One of `calibrator_names(n_classes)`. With more than two classes, "matrix",
        "vector" and "temperature" are a `SoftmaxCalibrator`. "auto" and "shallow_net"
        have classes of their own. All others are one binary calibrator for each class
        against the others.
    n_classes : int
        2 means a calibrator of scores (n,). More means one of scores (n, k).
    random_state : int or None
        Seed, if the calibrator draws.

    Returns
    -------
    ScoreCalibrator or MulticlassCalibrator

    Examples
    --------
    >>> from calibration import make_calibrator
    >>> make_calibrator("isotonic")
    IsotonicCalibrator()
    >>> make_calibrator("isotonic", n_classes=3)
    OneVsRestCalibrator(calibrator=IsotonicCalibrator())
    """
    check_choice(name, "name", calibrator_names(n_classes))
    check_optional_seed(random_state)
    several = n_classes > 2
    at_once = several and name in _OF_TABLES
    made = (_OF_TABLES if at_once else _OF_SCORES)[name]()
    if "random_state" in made.get_params(deep=False):
        made.set_params(random_state=random_state)
    return OneVsRestCalibrator(made) if several and not at_once else made
