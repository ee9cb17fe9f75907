"""Held-out trials of calibrators, on scores of two classes or tables of more.

Their results are joined in a logarithmic pool, with learned weights of
log-probabilities.
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
# Newton's decrement, relative to the value. Below the first number, rounding hides the
# descent of a step that is sure. After a step below the second, the weights stand
# still.
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
        With few rows, the weights stay close to these.
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
            # The trial is on the segment between two feasible points. The maximum only
            # undoes rounding.
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

    Let H = R'R. Then it is the d of least |R v - R'^-1 (H w - g)| over v = w + d >= 0.
    No curvature is below the ridge, except by rounding if log-odds are as large as 1e8.
    """
    curvatures, axes = np.linalg.eigh(hessian)
    roots = np.sqrt(np.maximum(curvatures, ridge))
    goal = axes.T @ (hessian @ w - gradient) / roots
    step: Float64Array = nnls(roots[:, None] * axes.T, goal)[0] - w
    return step


# Trials use at most this many cells or rows. They are far finer than any map, and
# cheap.
_TRIAL_ROWS = 16_384
# If scores are a table, the forecasts of one candidate hold at most this many numbers.
_TRIAL_NUMBERS = 1_700_000
# Weights of a pool are held to their start as if by this many squared log-odds.
_RIDGE = 10.0
# After the first fold, a candidate this many standard errors behind the best is
# hopeless.
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

        The rest is all cells minus those of the fold, so nothing is sorted again. If
        all rows of a rest have the same score, only a constant can be learned from it.
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
        # Do not use the probability, which may round to 1.
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
        """Return (rest, fold) pairs in which classes are spread evenly.

        If there are many rows, only some of them are used.
        """
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
        """Return log-probabilities unchanged, because they are a pool of mixed ones."""
        return log_p


Rows: TypeAlias = Cells | Table


def read_log_odds(
    calibrator: ScoreCalibrator, x: Float64Array, n: float
) -> Float64Array:
    """Return a fitted calibrator's log-odds, shape (m,). They are always finite.

    Maps of steps and lines may say 0 and 1, but n rows cannot know this. So they are
    clipped to [1/(2n+2), 1 - 1/(2n+2)].
    """
    if isinstance(calibrator, LogOddsCalibrator):
        return calibrator.predict_log_odds(x)
    # The bound is half a row in n + 1, as in ELiTE, the other average of maps.
    edge = 0.5 / (n + 1.0)
    return np.asarray(logit(np.clip(calibrator.predict(x), edge, 1.0 - edge)))


def read_logs(
    calibrator: MulticlassCalibrator, table: Float64Array, n: float
) -> Float64Array:
    """Return a fitted calibrator's log-probabilities of scores (m, k), shape (k, m).

    They are mixed with the uniform law as by n rows, which cannot rule a class out.
    Those of doing nothing are left unchanged.
    """
    logs = log_softmax(calibrator.log_predict(table))
    return logs if isinstance(calibrator, IdentityCalibrator) else mix_uniform(logs, n)


@dataclass(frozen=True, eq=False)
class Trials:
    """Held-out log-probabilities of candidates.

    Parameters
    ----------
    names : tuple of c str
        Names of the candidates that stayed to the end. The reference is first.
    logs : ndarray of shape (c, k, m)
        Each candidate is fitted without the fold of the column.
    weight : ndarray of shape (k, m)
        Weight of each class.
    given_up : dict of str to (RowLosses, RowLosses)
        Candidates without hope, with two losses of the first fold: their own, and those
        of the reference.
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

        A ridge holds them to the reference alone.
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
    """Return held-out forecasts of all candidates, or None if rows are too few.

    Parameters
    ----------
    menu : mapping of names to calibrators
        Calibrators on the scale of the rows. The reference is first.
    rows : Rows
    n_folds : int
    random_state : int or None
    all_folds : bool
        False means that candidates without hope are given up after the first fold.
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
    """Show a bar on stderr, if one is wanted. `tick` moves it on.

    Trials within it move this bar as well, and show no bar of their own.
    """
    if not verbose or _bar.get() is not None:
        yield
        return
    # Import here, so that only those who want to see a bar wait for it.
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=what) as bar, setting(_bar, bar):
        yield
        # Rare classes may leave fewer folds than were announced.
        bar.update(total - bar.n)


def tick() -> None:
    """Move the bar on by a step, if there is a bar and it is not at its end."""
    bar = _bar.get()
    if bar is not None and bar.n < bar.total:
        bar.update()


def _give_up(first: Trials) -> dict[str, tuple[RowLosses, RowLosses]]:
    """Return candidates that are far worse than the best, and of no use in a pool."""
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
    """Refuse an empty menu, and objects that are no calibrators."""
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
    """Return clones on a scale by text. Doing nothing comes first, if it makes sense.

    With several classes, a ScoreCalibrator means one for each class against the others.
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
