"""`MulticlassAutoCalibrator`: candidates tried on held-out rows, and their pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from calibration._validation import (
    check_choice,
    check_integer,
    check_number,
    check_optional_seed,
)
from calibration.multiclass.base import ClassScale, MulticlassCalibrator
from calibration.multiclass.class_scores import ClassScores
from calibration.multiclass.class_trials import (
    ClassTrials,
    hold_class_trials,
    read_logs,
    set_class_menu,
)
from calibration.multiclass.identity import MulticlassIdentityCalibrator
from calibration.multiclass.log_probabilities import to_probabilities
from calibration.multiclass.one_vs_rest import OneVsRestCalibrator
from calibration.multiclass.pool import pool_logs
from calibration.multiclass.shallow_net import ShallowNetCalibrator
from calibration.multiclass.softmax import (
    MOST_MATRIX_CLASSES,
    PENALTIES,
    SoftmaxCalibrator,
)
from calibration.selection.decision import decide, decide_blindly
from calibration.selection.report import AutoReport
from calibration.selection.trials import check_candidates
from calibration.typing import Float64Array

# Weights of a pool are held to the best single candidate as if by this many squared
# log-probabilities.
_STACK_RIDGE = 10.0


class MulticlassAutoCalibrator(MulticlassCalibrator):
    r"""Choose or join calibrators of several classes by held-out log loss.

    Parameters
    ----------
    method : {"stack", "select"}
        "stack": the logarithmic pool of all candidates, with non-negative weights that
        minimise the held-out log loss. "select": the simplest candidate within a
        quarter of a standard error of the best.
    candidates : mapping of names to MulticlassCalibrator, optional
        The simplest first; their `scale` is set here. Doing nothing, "identity", is
        put before them. Default: see the notes.
    max_harm : float
        The answer is doing nothing unless the probability of being worse than that is
        below this. 1 takes every proposal.
    n_folds : int
        Folds that yield the held-out rows.
    random_state : int or None
        Seed of the folds; None draws one.
    classes : sequence of k names, optional
        Of the columns; default their numbers, 0 to k - 1.
    scale : {"probability", "logit"}
        What a score is.

    Attributes
    ----------
    report_ : AutoReport
        What each candidate scored: mean, standard error, probability of harm and
        weight in the answer. Not there where the answer is a constant.
    calibrators_ : dict of str to MulticlassCalibrator
        The candidates in the answer, fitted on all rows.
    weights_ : ndarray of shape (c,)
        Weights of their log-probabilities.

    Notes
    -----
    Default menu: doing nothing, temperature, vector scaling, one against the rest by
    quadratic logistic regression and by Venn-Abers, and structured matrix scaling with
    its ridge times 1, 0.3, 0.1, 0.03, 0.01 and 0.003, and three shallow nets (these
    up to 150 classes). Trials are held on 16 384 rows at most.

    With held-out log-probabilities :math:`z_{cij}` of class j and row i by candidate
    c, a stack minimises

    .. math:: -\sum_i \log S\bigl(\sum_c w_c z_{ci}\bigr)_{y_i}
        + \frac{10}{2} \|w - e\|^2, \qquad w \ge 0,

    S being the softmax and e the best candidate alone (the simplest within a quarter
    of a standard error): few rows stay close to it. Candidates enter mixed with the
    uniform law, :math:`(1 - \frac{1}{n+1}) p + \frac{1}{(n+1) k}`; doing nothing enters
    as it is, a probability of 0 being half of the least positive one. The probability
    of harm is that of `AutoCalibrator`.

    References
    ----------
    Breiman (1996), Stacked regressions. Berta, Holzmueller, Jordan & Bach (2025),
    Structured matrix scaling for multi-class calibration. Genest & Zidek (1986),
    Combining probability distributions (the logarithmic pool).

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import MulticlassAutoCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], size=2000)
    >>> y = (rng.uniform(size=(2000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> bold = p**2 / (p**2).sum(axis=1, keepdims=True)
    >>> auto = MulticlassAutoCalibrator().fit(bold, y)
    >>> np.abs(auto.predict(bold) - p).max() < 0.1
    np.True_
    >>> MulticlassAutoCalibrator().fit(p, y).report_.chosen  # nothing to do
    ('identity',)
    """

    report_: AutoReport
    calibrators_: dict[str, MulticlassCalibrator]
    weights_: Float64Array

    def __init__(
        self,
        method: Literal["stack", "select"] = "stack",
        candidates: Mapping[str, MulticlassCalibrator] | None = None,
        *,
        max_harm: float = 0.1,
        n_folds: int = 5,
        random_state: int | None = 0,
        classes: Sequence[Any] | None = None,
        scale: ClassScale = "probability",
    ):
        self.method = method
        self.candidates = candidates
        self.max_harm = max_harm
        self.n_folds = n_folds
        self.random_state = random_state
        self.classes = classes
        self.scale = scale

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice(self.method, "method", ("stack", "select"))
        check_number(self.max_harm, "max_harm", 0.0, 1.0)
        check_integer(self.n_folds, "n_folds", 2)
        check_optional_seed(self.random_state)
        if self.candidates is not None:
            check_candidates(
                self.candidates, MulticlassCalibrator, MulticlassIdentityCalibrator
            )

    def _fit(self, data: ClassScores) -> None:
        menu = self._menu(data.scores.shape[1])
        trials = hold_class_trials(menu, data, self.n_folds, self.random_state)
        weights, self.report_ = self._decide(list(menu), trials)
        self.weights_ = weights[weights > 0.0]
        self.calibrators_ = {
            name: clone(menu[name]).fit_rows(data) for name in self.report_.chosen
        }
        self._n = data.n

    def _predict(self, table: Float64Array) -> Float64Array:
        return to_probabilities(self.log_predict(table))

    def log_predict(self, table: Float64Array) -> Float64Array:
        """Return log-probabilities of checked scores (n, k), shape (k, n)."""
        fitted = self.calibrators_.values()
        logs = np.stack([read_logs(one, table, self._n) for one in fitted])
        return pool_logs(self.weights_, logs)

    def _menu(self, k: int) -> dict[str, MulticlassCalibrator]:
        """Return the candidates for k classes by name, the reference first."""
        menu = _default_menu(k) if self.candidates is None else self.candidates
        return set_class_menu(menu, self.scale)

    def _decide(
        self, names: list[str], trials: ClassTrials | None
    ) -> tuple[Float64Array, AutoReport]:
        """Return the candidates' weights, shape (c,), and the report."""
        if trials is None:
            return decide_blindly(self.method, names)
        if self.method == "stack":
            weights = trials.stack(_STACK_RIDGE)
        else:
            weights = np.eye(len(names))[trials.simplest_of_best()]
        candidates = [trials.losses(logs) for logs in trials.logs]
        proposal = trials.pooled(weights)
        return decide(self.method, names, candidates, weights, proposal, self.max_harm)


def _default_menu(k: int) -> dict[str, MulticlassCalibrator]:
    """Return the candidates for k classes besides doing nothing, the simplest first."""
    menu: dict[str, MulticlassCalibrator] = {
        "temperature": SoftmaxCalibrator("temperature"),
        "vector": SoftmaxCalibrator("vector", 1.0),
        "quadratic": OneVsRestCalibrator("quadratic"),
        "venn_abers": OneVsRestCalibrator("venn_abers"),
    }
    for penalty in PENALTIES if k <= MOST_MATRIX_CLASSES else ():
        menu[f"matrix {penalty:g}"] = SoftmaxCalibrator("matrix", penalty)
    if k <= MOST_MATRIX_CLASSES:
        # As good in a pool as ten nets, at a third of the cost.
        menu["shallow_net"] = ShallowNetCalibrator(3)
    return menu
