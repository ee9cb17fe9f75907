"""Centre and scale that go on learning from all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.coordinate.boosting import find_rounds, predict_booster
from localexpert.coordinate.refinement import Refinement, mean_answer, mean_score
from localexpert.data.dense_inputs import DenseInputs
from localexpert.data.threads import thread_pool
from localexpert.large.all_rows import BINS, AllRows
from localexpert.large.frame_nets import teach_nets
from localexpert.progress import current_progress

Model = TypeVar("Model")

# Rows that a tree is grown on: drawn anew for each.
_ROWS_OF_A_TREE = 400_000
# Errors are mostly noise, and what is left to explain is little of them.
_LEAST_GAIN = 1e-5
_COMMON: dict[str, Any] = {
    **BINS,
    "lambda_l2": 5.0,
    "bagging_freq": 1,
    "feature_fraction_bynode": 0.7,
    "deterministic": True,
    # Threads of a pool would each say where they start.
    "boost_from_average": False,
    "num_threads": 1,
}


class HeldOutBooster:
    """A LightGBM model under way, and the raw scores of held-out rows.

    Parameters
    ----------
    booster : lightgbm.Booster
    X : ndarray of shape (m, p)
        Held-out rows.
    measure : function of an ndarray of shape (m,)
        Their mean loss, given raw scores.
    """

    def __init__(
        self,
        booster: lgb.Booster,
        X: NDArray[Any],
        measure: Callable[[Float64Array], float],
    ):
        self.booster, self.rounds = booster, 0
        self.X = X
        self.measure = measure
        self.raw = np.zeros(len(X))

    def loss_after(self, n_rounds: int) -> float:
        """Add rounds until there are so many; return the loss on held-out rows."""
        done = self.booster.current_iteration()
        # For its silence alone, see `predict_booster`.
        predict_booster(self.booster, self.X[:1])
        for _ in range(n_rounds - self.rounds):
            self.booster.update()
        self.rounds = n_rounds
        added = self.booster.current_iteration() - done
        if added > 0:  # none where no leaf can be split any more
            self.raw += predict_booster(
                self.booster,
                self.X,
                raw_score=True,
                start_iteration=done,
                num_iteration=added,
            )
        return self.measure(self.raw)


def freeze_booster(booster: lgb.Booster, n_rounds: int) -> lgb.Booster:
    """Return the first rounds as a model of its own, without the training data."""
    return lgb.Booster(model_str=booster.model_to_string(num_iteration=n_rounds))


@dataclass(frozen=True)
class _Task:
    """What is boosted: by which loss, and for how long."""

    name: str
    parameters: dict[str, Any]
    max_rounds: int
    loss: Callable[[Float64Array, Float64Array], Float64Array]


def _squares(label: Float64Array, raw: Float64Array) -> Float64Array:
    return np.asarray((label - raw) ** 2)


def _gamma(label: Float64Array, raw: Float64Array) -> Float64Array:
    """Return the log loss of gamma laws with means exp(raw), but for constants."""
    return np.asarray(raw + label * np.exp(-raw))


_CENTER = _Task(
    "center",
    {
        "objective": "l2",
        "learning_rate": 0.08,
        "num_leaves": 31,
        "min_data_in_leaf": 100,
    },
    400,
    _squares,
)
# Log-scales by sizes of errors: their noise is a third of that of their logarithms.
_SCALE = _Task(
    "scale",
    {
        "objective": "gamma",
        "learning_rate": 0.06,
        "num_leaves": 16,
        "min_data_in_leaf": 200,
    },
    250,
    _gamma,
)


def refine_frame(
    frame: Any, number: int, rows: AllRows, n_jobs: int | None, seed: int
) -> Refinement:
    """Learn what all rows add to a frame, and place each half by the other's.

    New nets are blended with the centre, if it is a stack; boosters learn what is left
    of the target, y - m(x), in squares weighted by 1 / s(x): so much is a unit worth to
    the CRPS where the scale is s. The scale learns |y - m(x)| / s(x). Each step is left
    out unless the judges gain by more than a standard error.

    Parameters
    ----------
    frame : Frame
        Fitted, with a centre.
    number : int
        Of its road.
    rows : AllRows
        Its centre and scale of the road are replaced by the refined ones.
    n_jobs : int or None
    seed : int

    Returns
    -------
    Refinement
    """
    sets = _Sets(rows, number)
    told = Refinement(sets.unit)
    inputs = frame.centre_.dense_inputs_
    if inputs is not None:
        _blend_nets(told, inputs, sets, rows, n_jobs, seed)
    labels = [miss / sets.unit for miss in sets.misses()]
    worth = [w / part.scale for w, part in zip(sets.weights, sets.parts, strict=True)]
    told.center = _boost(_CENTER, rows, labels, worth, n_jobs, seed)
    for part, models in zip(sets.parts, _honest(told.center), strict=True):
        part.center = part.center + sets.unit * part.ask(models)
    if frame.kind_ == "standardize":
        labels = [
            np.abs(miss) / (sets.level * part.scale)
            for miss, part in zip(sets.misses(), sets.parts, strict=True)
        ]
        told.scale = _boost(_SCALE, rows, labels, sets.weights, n_jobs, seed + 1)
        for part, models in zip(sets.parts, _honest(told.scale), strict=True):
            part.scale = part.scale * np.exp(part.ask(models))
    sets.write()
    return told


def _blend_nets(
    told: Refinement,
    inputs: DenseInputs,
    sets: _Sets,
    rows: AllRows,
    n_jobs: int | None,
    seed: int,
) -> None:
    """Blend the centre with new nets, by the share that the judges ask for."""
    worth = [w / part.scale for w, part in zip(sets.weights, sets.parts, strict=True)]
    targets = [part.y for part in sets.parts]
    nets = teach_nets(inputs, rows, targets, worth, n_jobs, seed)
    judge, weight = sets.parts[-1], worth[-1] / worth[-1].sum()
    said = judge.score(lambda codes: mean_answer(nets, inputs, codes))
    miss, step = judge.y - judge.center, said - judge.center
    # Least squares along the line from one centre to the other.
    share = float(np.clip(weight @ (miss * step) / (weight @ step**2 or 1.0), 0.0, 1.0))
    if not _is_gain(miss**2 - (miss - share * step) ** 2, weight):
        return
    told.nets, told.share, told.inputs = nets, share, inputs
    for part, own in zip(sets.parts, _honest(nets), strict=True):
        said = part.score(lambda codes, own=own: mean_answer(own, inputs, codes))
        part.center = part.center + share * (said - part.center)


class _Part:
    """One road's numbers of a half, or of the judges."""

    def __init__(self, held: Any, number: int, score: Callable[..., Float64Array]):
        y = held.y[:, number]
        self.held, self.number, self.score = held, number, score
        # Rows of other roads have no weight, whatever they are.
        self.known = np.isfinite(y)
        self.y = np.where(self.known, y, 0.0)
        self.center = np.where(self.known, held.center[:, number], 0.0)
        self.scale = np.where(self.known, held.scale[:, number], 1.0)
        self.weight = np.where(self.known, held.weight, 0.0)

    def ask(self, models: list[lgb.Booster]) -> Float64Array:
        """Return the mean raw score of boosters, 0 of none."""
        if not models:
            return np.zeros(len(self.y))
        return self.score(lambda codes: mean_score(models, codes))


class _Sets:
    """One road's numbers of the halves and, last, of the judges."""

    def __init__(self, rows: AllRows, number: int):
        placed = rows.judges.placed
        self.parts = [_Part(half, number, half.ask) for half in rows.halves]
        self.parts.append(_Part(placed, number, lambda score: score(placed.codes)))
        low, high = rows.tame(number)
        for part in self.parts:
            part.y = np.clip(part.y, low, high)
        self.weights = [part.weight for part in self.parts]
        self.unit = self._mean(1.0)
        # What |y - m| / s is in the mean now: thresholds are placed by that.
        self.level = self._mean(None)

    def misses(self) -> list[Float64Array]:
        """Return y - m of each part."""
        return [part.y - part.center for part in self.parts]

    def write(self) -> None:
        """Replace the centre and scale that the rows had."""
        for part in self.parts:
            part.held.center[:, part.number] = part.center
            part.held.scale[:, part.number] = part.scale

    def _mean(self, scale: float | None) -> float:
        """Return the mean of |y - m| over a scale, None: the rows' own."""
        total = mass = 0.0
        for part in self.parts:
            size = np.abs(part.y - part.center) / (scale or part.scale)
            total += float(part.weight @ size)
            mass += float(part.weight.sum())
        return total / mass if total > 0.0 else 1.0


def _honest(models: list[Model]) -> list[list[Model]]:
    """Return the models of each half that have not seen it; the judges have all."""
    return [models[1:], models[:1], models]


def _boost(
    task: _Task,
    rows: AllRows,
    labels: list[Float64Array],
    weights: list[Float64Array],
    n_jobs: int | None,
    seed: int,
) -> list[lgb.Booster]:
    """Return a booster of each half, or none if the judges gain nothing by them."""
    label, weight = labels[-1], weights[-1] / weights[-1].sum()

    def measure(raw: Float64Array) -> float:
        return float(weight @ task.loss(label, raw))

    codes = rows.judges.placed.codes
    models = []
    for half, data in enumerate(rows.bins()):
        data.set_label(labels[half])
        # Of mean 1, as ridge penalties suppose.
        data.set_weight(weights[half] / weights[half].mean())
        own = {**_COMMON, **task.parameters, "seed": seed + 2 * half}
        own["bagging_fraction"] = min(_ROWS_OF_A_TREE / len(labels[half]), 0.8)
        models.append(HeldOutBooster(lgb.Booster(own, data), codes, measure))
    with current_progress().stage(task.name), thread_pool(n_jobs) as pool:
        n_rounds = find_rounds(models, [1.0, 1.0], task.max_rounds, pool, _LEAST_GAIN)
    boosters = [freeze_booster(model.booster, n_rounds) for model in models]
    raw = mean_score(boosters, codes)
    gain = task.loss(label, np.zeros(len(label))) - task.loss(label, raw)
    return boosters if _is_gain(gain, weight) else []


def _is_gain(gain: Float64Array, weight: Float64Array) -> bool:
    """Say whether the mean of gains is greater than its standard error."""
    mean = float(weight @ gain)
    return mean > float(np.sqrt(weight**2 @ (gain - mean) ** 2))
