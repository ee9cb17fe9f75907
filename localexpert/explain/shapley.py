"""`explain_forecast`: Shapley values of a number of the forecast distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array, Int64Array
from localexpert._validation import check_choice, check_integer, make_rng
from localexpert.data.columns import Columns
from localexpert.data.table import take_rows
from localexpert.data.unseen import unseen_once
from localexpert.distribution.predictors import check_predicts, predict_dist
from localexpert.explain.coalitions import Coalitions, plan_coalitions
from localexpert.explain.explanation import Explanation
from localexpert.explain.functional import Functional, Target
from localexpert.explain.mixing import RowMixer, read_table
from localexpert.explain.players import Players


@unseen_once()
def explain_forecast(
    model: Any,
    X: Any,
    background: Any,
    *,
    of: Target = "mean",
    at: float | None = None,
    groups: Mapping[str, Sequence[Any]] | None = None,
    method: Literal["auto", "enumerate", "sample"] = "auto",
    n_permutations: int = 8,
    n_background: int = 100,
    batch_size: int = 20_000,
    random_state: int | None = None,
) -> Explanation:
    r"""Return what every feature contributes to a number of each forecast.

    What is explained is the number as forecast, after every stage of the model, so
    contributions to a probability are in units of probability.

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
    X : array or data frame of shape (n, p)
        Rows to explain.
    background : array or data frame of shape (m, p)
        Rows that features are compared with, for instance those of training.
    of : {"mean", "median", "std", "quantile", "exceedance"} or callable
        The number: the mean, median or standard deviation, the quantile of level
        `at`, or P(y > at | x). A callable maps a `PredictiveDistribution` of k rows to
        an array (k,).
    at : float, optional
    groups : dict of str to list, optional
        Features that enter together, by the names of columns (of an array x0, x1,
        ..., or numbers).
    method : {"auto", "enumerate", "sample"}
        All coalitions of features, which is exact, or sampled orders; "auto"
        enumerates where that asks the model no more than sampling would.
    n_permutations : int
        Orders of the features drawn per background row, in antithetic pairs: even
        and at least 4.
    n_background : int
        Of a larger background so many rows are drawn without repetition and stand
        for it, in the base as well.
    batch_size : int
        Most rows in a call of `predict_dist`.
    random_state : int, optional
        Seed of the draws. The contributions of a row depend on no other row of `X`.

    Returns
    -------
    Explanation

    Notes
    -----
    With f the number and :math:`v_x(S)` the mean of f over the background rows whose
    columns S are replaced by those of x, the contribution of feature j is the mean of
    :math:`v_x(S \cup j) - v_x(S)` over all orders of the features, S being those
    before j. Columns are replaced whatever they depend on: mixed rows may be unlike
    any row that was seen.

    Contributions add up to f(x) minus the mean of f over the background, sampled or
    not: along one order the changes of f telescope to :math:`f(x) - f(b)`, and every
    background row b is the start of equally many orders. Sampling is unbiased; its
    standard errors come from the spread of the pairs of each background row, and do
    not speak of the choice of the background. Where at most two features act
    together (f is a sum of functions of one feature and of two), an order and its
    reverse share every joint effect evenly: sampling is then exact, with errors of 0.

    References
    ----------
    Castro, Gomez & Tejada (2009), Polynomial calculation of the Shapley value based
    on sampling. Mitchell, Cooper, Frank & Holmes (2022), Sampling permutations for
    Shapley value estimation (antithetic pairs).

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.explain import explain_forecast
    >>> class Coin:
    ...     def predict_dist(self, X):
    ...         p = np.asarray(X) @ [0.1, 0.3]
    ...         p = np.column_stack([1 - p, p])
    ...         return PredictiveDistribution.from_arrays(atoms=[0, 1], masses=p)
    >>> rows, background = [[1.0, 2.0]], [[0.0, 0.0], [1.0, 1.0]]
    >>> print(explain_forecast(Coin(), rows, background, of="exceedance", at=0.5))
    P(y > 0.5) of row 0: 0.7 = 0.2 (base) + contributions
      x1 = 2       +0.45
      x0 = 1       +0.05
    """
    check_predicts(model)
    check_choice(method, "method", ("auto", "enumerate", "sample"))
    n_permutations = _check_permutations(n_permutations)
    check_integer(batch_size, "batch_size", 1)
    number = Functional.of(of, at)
    rows = read_table(X, "X")
    rng = make_rng(random_state)
    against = draw_background(read_table(background, "background"), n_background, rng)
    mixer = RowMixer.join(rows, against)
    players = Players.of(Columns.of(rows), groups)
    m = len(against)
    plan = plan_coalitions(method, len(players), m, n_permutations, rng)
    asked = _Questions(model, number, mixer, players, plan, batch_size)
    total, base = np.split(asked.answer_own(len(rows) + m), [len(rows)])
    values, errors = asked.explain(total, base)
    start, inputs = float(base.mean()), players.describe(rows)
    names = players.names
    return Explanation(number.label, names, values, errors, start, total, inputs)


def draw_background(
    background: Any, n_background: int, rng: np.random.Generator
) -> Any:
    """Return at most `n_background` rows, in their order."""
    most = check_integer(n_background, "n_background", 1)
    m = len(background)
    if m <= most:
        return background
    return take_rows(background, np.sort(rng.choice(m, most, replace=False)))


def _check_permutations(n_permutations: int) -> int:
    """Return an even number that makes at least two pairs."""
    number = check_integer(n_permutations, "n_permutations", 4)
    if number % 2:
        msg = f"`n_permutations` must be even, got {number}."
        raise ValueError(msg)
    return number


@dataclass(frozen=True)
class _Questions:
    """The rows that a model is asked about, in batches.

    The mixer holds the explained rows, and after them the background.
    """

    model: Any
    number: Functional
    mixer: RowMixer
    players: Players
    plan: Coalitions
    batch_size: int

    def answer_own(self, n: int) -> Float64Array:
        """Return the numbers of the first n rows as they are."""
        p = len(self.players.of_column)
        answers = np.empty(n)
        for rows in self._batches(n):
            answers[rows] = self._ask(np.repeat(rows[:, None], p, axis=1))
        return answers

    def explain(
        self, total: Float64Array, base: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return contributions and standard errors, block by block of rows."""
        n = len(total)
        from_row = self.plan.members[:, self.players.of_column]
        other = n + self.plan.background
        block = max(1, self.batch_size // max(1, len(other)))
        parts = []
        for start in range(0, n, block):
            rows = np.arange(start, min(start + block, n))
            inner = self._answer_mixed(rows, from_row, other)
            parts.append(self.plan.estimate(total[rows], base, inner))
        values, errors = zip(*parts, strict=True)
        return np.concatenate(values), np.concatenate(errors)

    def _answer_mixed(
        self, rows: Int64Array, from_row: NDArray[np.bool_], other: Int64Array
    ) -> Float64Array:
        """Return the numbers of some rows in all E mixtures, shape (len(rows), E)."""
        answers = np.empty((len(rows), len(other)))
        for asked in self._batches(answers.size):
            row, mixture = np.divmod(asked, len(other))
            places = np.where(from_row[mixture], rows[row, None], other[mixture, None])
            answers.flat[asked] = self._ask(places)
        return answers

    def _batches(self, n: int) -> list[Int64Array]:
        """Return the numbers from 0 to n - 1 in pieces."""
        starts = range(0, n, self.batch_size)
        return [np.arange(k, min(k + self.batch_size, n)) for k in starts]

    def _ask(self, places: Int64Array) -> Float64Array:
        """Return the numbers of one batch of mixed rows, shape (k,)."""
        dist = predict_dist(self.model, self.mixer.mix(places))
        return self.number(dist, len(places))
