"""Held-out trials of calibrators, on scores of two classes or tables of more.

What they say is joined in a logarithmic pool: learned weights of log-probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import nnls
from scipy.special import logit
from sklearn.base import clone

from calibration._validation import check_mapping, refuse, setting
from calibration.base.calibrators import Scale, ScoreCalibrator
from calibration.base.log_odds import LogOddsCalibrator, deal_by_rank
from calibration.multiclass.base import IdentityCalibrator, MulticlassCalibrator
from calibration.multiclass.binary import OneVsRestCalibrator, on_scale
from calibration.multiclass.class_scores import (
    ClassScores,
    RowLosses,
    deal_by_class,
    draw_rows,
    log_softmax,
    mix_uniform,
)
from calibration.summary import ScoreSummary
from calibration.typing import Float64Array

_MAX_STEPS = 100
_MAX_HALVINGS = 40
# Newton's decrement, relative to the value: below the first rounding hides the descent
# of a step that is sure, after one below the second the weights stand still.
_SURE, _LAST = 1e-10, 1e-16


def pool_logs(weights: Float64Array, logs: Float64Array) -> Float64Array:
    r"""Return the pool :math:`p \propto \prod_c p_c^{w_c}` as log-probabilities.

    Parameters
    ----------
    weights : ndarray of shape (c,)
    logs : ndarray of shape (c, k, n)
        Log-probabilities of c candidates.

    Returns
    -------
    ndarray of shape (k, n)
    """
    return log_softmax(np.tensordot(weights, logs, axes=1))


def learn_weights(
    logs: Float64Array, weight: Float64Array, start: Float64Array, ridge: float
) -> Float64Array:
    """Return the w >= 0 of least loss of the pool + ridge / 2 |w - start|^2.

    Each Newton step is a non-negative least-squares problem, so bounds hold exactly.

    Parameters
    ----------
    logs : ndarray of shape (c, k, n)
    weight : ndarray of shape (k, n)
        Numbers of repetitions of each class.
    start : ndarray of shape (c,)
        Weights that few rows stay close to.
    ridge : float

    Returns
    -------
    ndarray of shape (c,)
    """
    w = start.copy()
    value, gradient, hessian = _derive(w, logs, weight, start, ridge)
    for _ in range(_MAX_STEPS):
        step = _newton_step(w, gradient, hessian, ridge)
        slope = float(gradient @ step)
        size = 1.0 + abs(value)
        if -slope < _LAST * size:
            return np.maximum(w + step, 0.0)
        scale = 1.0
        for _ in range(_MAX_HALVINGS):
            # On the segment between two feasible points; the maximum takes back
            # rounding only.
            trial = np.maximum(w + scale * step, 0.0)
            now = _derive(trial, logs, weight, start, ridge)
            if -slope < _SURE * size or now[0] <= value + 1e-4 * scale * slope:
                break
            scale *= 0.5
        else:
            return w
        w, (value, gradient, hessian) = trial, now
    return w


def _derive(
    w: Float64Array,
    logs: Float64Array,
    weight: Float64Array,
    start: Float64Array,
    ridge: float,
) -> tuple[float, Float64Array, Float64Array]:
    """Return the objective, its gradient (c,) and Hessian (c, c)."""
    n_candidates = len(logs)
    log_p = pool_logs(w, logs)
    away = w - start
    value = -float((weight * log_p).sum()) + 0.5 * ridge * float(away @ away)
    p, mass = np.exp(log_p), weight.sum(axis=0)
    mean = np.einsum("cki,ki->ci", logs, p)
    p *= mass
    flat = logs.reshape(n_candidates, -1)
    gradient = flat @ (p - weight).ravel() + ridge * away
    hessian = ridge * np.eye(n_candidates) - (mean * mass) @ mean.T
    for c, one in enumerate(logs):
        hessian[c] += flat @ (one * p).ravel()
    return value, gradient, hessian


def _newton_step(
    w: Float64Array, gradient: Float64Array, hessian: Float64Array, ridge: float
) -> Float64Array:
    """Return the d of least g'd + d'Hd / 2 with w + d >= 0.

    With H = R'R it is that of least |R v - R'^-1 (H w - g)| over v = w + d >= 0. No
    curvature is below the ridge, but by rounding, where log-odds are as large as 1e8.
    """
    curvatures, axes = np.linalg.eigh(hessian)
    roots = np.sqrt(np.maximum(curvatures, ridge))
    goal = axes.T @ (hessian @ w - gradient) / roots
    step: Float64Array = nnls(roots[:, None] * axes.T, goal)[0] - w
    return step


# Trials are held on at most this many cells or rows: far finer than any map, and cheap.
_TRIAL_ROWS = 16_384
# Of tables the forecasts of one candidate hold at most so many numbers.
_TRIAL_NUMBERS = 1_700_000
# Weights of a pool are held to their start as if by this many squared log-odds.
_RIDGE = 10.0
# Standard errors behind the best candidate of the first fold that leave no hope.
_HOPELESS = 2.0


# The bar that is shown.
_bar: ContextVar[Any] = ContextVar("bar", default=None)


class Cells(NamedTuple):
    """Scores of two classes."""

    summary: ScoreSummary

    @property
    def n(self) -> float:
        """Sum of the weights."""
        return self.summary.n

    @property
    def weight(self) -> Float64Array:
        """Weight of each class, shape (2, m)."""
        return np.stack([self.summary.weight0, self.summary.weight1])

    def folds(
        self, n_folds: int, random_state: int | None
    ) -> list[tuple[Cells, Cells]]:
        """Return (rest, fold) pairs whose rest can be learned from.

        A fit on the others is one on the difference to a fold: nothing is sorted again.
        A rest of one score teaches nothing but a constant.
        """
        cells = self.summary.condense(_TRIAL_ROWS)
        pairs = deal_by_rank(cells, n_folds, random_state)
        return [(Cells(rest), Cells(fold)) for rest, fold in pairs if rest.n_cells > 1]

    def fit(self, one: Any) -> Any:
        """Return a clone that is fitted on these rows."""
        return clone(one).fit_summary(self.summary)

    def read(self, fitted: Any, n: float) -> Float64Array:
        """Return log-probabilities of both classes, shape (2, m)."""
        x = read_log_odds(fitted, self.summary.scores, n)
        # Without going through a probability that rounds to 1.
        return np.stack([-np.logaddexp(0.0, x), -np.logaddexp(0.0, -x)])

    def limit(self, log_p: Float64Array) -> Float64Array:
        """Return log-probabilities clipped to [1/(2n+2), 1 - 1/(2n+2)]."""
        edge = 0.5 / (self.n + 1.0)
        return np.clip(log_p, np.log(edge), np.log1p(-edge))


class Table(NamedTuple):
    """Scores of several classes."""

    data: ClassScores

    @property
    def n(self) -> float:
        """Sum of the weights."""
        return self.data.n

    @property
    def weight(self) -> Float64Array:
        """Weight of each class, shape (k, m)."""
        m, k = self.data.scores.shape
        weight = np.zeros((k, m))
        weight[self.data.labels, np.arange(m)] = self.data.weight
        return weight

    def folds(
        self, n_folds: int, random_state: int | None
    ) -> list[tuple[Table, Table]]:
        """Return (rest, fold) pairs, classes spread evenly; of many rows of some."""
        most = min(_TRIAL_ROWS, _TRIAL_NUMBERS // self.data.scores.shape[1])
        some = draw_rows(self.data.merged(), most, random_state)
        pairs = deal_by_class(some, n_folds, random_state)
        return [(Table(rest), Table(fold)) for rest, fold in pairs]

    def fit(self, one: Any) -> Any:
        """Return a clone that is fitted on these rows."""
        return clone(one).fit_rows(self.data)

    def read(self, fitted: Any, n: float) -> Float64Array:
        """Return log-probabilities of the classes, shape (k, m)."""
        return read_logs(fitted, self.data.scores, n)

    def limit(self, log_p: Float64Array) -> Float64Array:
        """Return log-probabilities as they are: a pool of mixed ones."""
        return log_p


Rows: TypeAlias = Cells | Table


def read_log_odds(
    calibrator: ScoreCalibrator, x: Float64Array, n: float
) -> Float64Array:
    """Return a fitted calibrator's log-odds, shape (m,), finite whatever it says.

    Maps of steps and lines may say 0 and 1, which n rows cannot know: they are
    clipped to [1/(2n+2), 1 - 1/(2n+2)].
    """
    if isinstance(calibrator, LogOddsCalibrator):
        return calibrator.predict_log_odds(x)
    # As in the other average of maps, ELiTE's: half a row in n + 1.
    edge = 0.5 / (n + 1.0)
    return np.asarray(logit(np.clip(calibrator.predict(x), edge, 1.0 - edge)))


def read_logs(
    calibrator: MulticlassCalibrator, table: Float64Array, n: float
) -> Float64Array:
    """Return a fitted calibrator's log-probabilities of scores (m, k), shape (k, m).

    Mixed with the uniform law as by n rows, which cannot rule a class out; but for
    those of doing nothing, which are what they are.
    """
    logs = log_softmax(calibrator.log_predict(table))
    return logs if isinstance(calibrator, IdentityCalibrator) else mix_uniform(logs, n)


@dataclass(frozen=True, eq=False)
class Trials:
    """Held-out log-probabilities of candidates.

    Parameters
    ----------
    names : tuple of c str
        Of the candidates that stayed to the end, the reference first.
    logs : ndarray of shape (c, k, m)
        Each fitted without the fold of the column.
    weight : ndarray of shape (k, m)
        Weight of each class.
    given_up : dict of str to (RowLosses, RowLosses)
        Of candidates without hope: losses of the first fold, theirs and those of the
        reference.
    """

    names: tuple[str, ...]
    logs: Float64Array
    weight: Float64Array
    given_up: dict[str, tuple[RowLosses, RowLosses]]

    def losses(self, log_p: Float64Array) -> RowLosses:
        """Return the losses of log-probabilities (k, m)."""
        held = self.weight > 0.0
        return RowLosses(-log_p[held], self.weight[held])

    def stack(self) -> Float64Array:
        """Return the weights of the pool of least loss, shape (c,).

        They are held by a ridge to the reference alone.
        """
        alone = np.eye(1, len(self.names)).ravel()
        return learn_weights(self.logs, self.weight, alone, _RIDGE)


def hold_trials(
    menu: Mapping[str, Any],
    rows: Rows,
    n_folds: int,
    random_state: int | None,
    *,
    all_folds: bool = True,
    verbose: int = 0,
) -> Trials | None:
    """Return every candidate's held-out forecasts; None of rows too few for folds.

    Parameters
    ----------
    menu : mapping of names to calibrators
        On the scale of the rows, the reference first.
    rows : Rows
    n_folds : int
    random_state : int or None
    all_folds : bool
        False: after the first fold candidates without hope are given up.
    verbose : int
        Whether a bar shows how many fits are done.

    Returns
    -------
    Trials or None
    """
    pairs: list[tuple[Any, Any]] = rows.folds(n_folds, random_state)
    if not pairs:
        return None
    names, given_up = tuple(menu), {}
    logs: dict[str, list[Float64Array]] = {name: [] for name in names}
    with counting(len(pairs), verbose, "folds of calibrators"):
        for place, (rest, fold) in enumerate(pairs):
            for name in names:
                logs[name].append(fold.read(rest.fit(menu[name]), rest.n))
            if place == 0 and not all_folds:
                table = np.stack([logs[name][0] for name in names])
                first = Trials(names, table, fold.weight, {})
                given_up = _give_up(first)
                names = tuple(name for name in names if name not in given_up)
            tick()
    joined = [np.concatenate(logs[name], axis=1) for name in names]
    weight = np.concatenate([fold.weight for _, fold in pairs], axis=1)
    return Trials(names, np.stack(joined), weight, given_up)


@contextmanager
def counting(total: int, verbose: int, what: str) -> Iterator[None]:
    """Show a bar on stderr, if it is asked for, that `tick` moves on.

    Trials within it move it as well, and show none of their own.
    """
    if not verbose or _bar.get() is not None:
        yield
        return
    # Here, not above: only those who want to see a bar wait for the import.
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=what) as bar, setting(_bar, bar):
        yield
        # Rare classes leave fewer folds than were announced.
        bar.update(total - bar.n)


def tick() -> None:
    """Move the bar on by a step, if there is one and it is not at its end."""
    bar = _bar.get()
    if bar is not None and bar.n < bar.total:
        bar.update()


def _give_up(first: Trials) -> dict[str, tuple[RowLosses, RowLosses]]:
    """Return what is far worse than the best, and of no use in a pool."""
    losses = [first.losses(one) for one in first.logs]
    best = int(np.argmin([one.mean for one in losses]))
    weights = first.stack()
    lost = {}
    for name, one, weight in list(zip(first.names, losses, weights, strict=True))[1:]:
        gap = one.less(losses[best])
        if weight == 0.0 and gap.mean > _HOPELESS * gap.error:
            lost[name] = one, losses[0]
    return lost


def check_menu(menu: Mapping[str, object], name: str) -> None:
    """Refuse an empty menu, and what is no calibrator."""
    wanted = "ScoreCalibrator or MulticlassCalibrator"
    check_mapping(menu, name, f"names to {wanted}")
    if not menu:
        refuse(name, "hold at least one calibrator", "an empty mapping")
    for key, one in menu.items():
        if not isinstance(one, ScoreCalibrator | MulticlassCalibrator):
            refuse(f"{name}[{key!r}]", f"be a {wanted}", f"{one!r}", TypeError)
    first = menu.get("identity", IdentityCalibrator())
    if not isinstance(first, IdentityCalibrator):
        rule = "be an IdentityCalibrator: it is the name of doing nothing"
        refuse(f"{name}['identity']", rule, f"{first!r}")


def set_menu(
    menu: Mapping[str, Any], name: str, scale: Scale, *, several: bool
) -> dict[str, Any]:
    """Return clones on a scale by text; where it has doing nothing, that comes first.

    Of several classes a ScoreCalibrator is one for each, against the others.
    """
    check_menu(menu, name)
    if scale != "real":
        menu = {"identity": IdentityCalibrator(), **menu}
    found = {}
    for key, given in menu.items():
        one = given
        if several and not isinstance(given, MulticlassCalibrator):
            one = OneVsRestCalibrator(given)
        elif not several and not isinstance(one, ScoreCalibrator):
            rule = "be a ScoreCalibrator for scores of shape (n,)"
            refuse(f"{name}[{key!r}]", rule, f"{one!r}", TypeError)
        if str(key) in found:
            refuse(name, "have names that differ as texts", f"{key!r}")
        found[str(key)] = on_scale(one, scale)
    return found
