"""Experts of all thresholds that learn anew from all rows."""

from __future__ import annotations

import copy
from typing import Any

import lightgbm as lgb
import numpy as np

from calibration.typing import Float64Array
from localexpert.coordinate.boosting import find_rounds
from localexpert.data.directions import read_directions
from localexpert.data.table import Table
from localexpert.data.threads import thread_pool
from localexpert.experts.base import Tasks
from localexpert.experts.shared_boosting import (
    HeldOutThresholds,
    SharedBoosting,
    count_draws,
    draw_places,
    grid_knots,
    start_scores,
)
from localexpert.experts.threshold_trees import ThresholdTrees
from localexpert.large.all_rows import AllRows, HalfRows
from localexpert.large.scratch import ScratchRows, bin_rows
from localexpert.progress import current_progress

# Repeated rows that a tree is grown on: drawn anew for each.
_ROWS_OF_A_TREE = 500_000
# Judges that say when to stop.
_MOST_JUDGES = 10_000


def boost_experts(
    experts: SharedBoosting,
    road: Any,
    number: int,
    rows: AllRows,
    n_jobs: int | None,
    seed: int,
) -> SharedBoosting:
    """Return experts at the same thresholds that have learned from all rows.

    Parameters
    ----------
    experts : SharedBoosting
        Fitted on the sample; they stay as they are.
    road : ContinuousForecaster or DiscreteForecaster
        Theirs.
    number : int
        Of the road.
    rows : AllRows
    n_jobs : int or None
    seed : int

    Returns
    -------
    SharedBoosting
        With a model of each half of the rows instead of each fold.
    """
    lesson = _Lesson(experts, road, number, rows, seed)
    start = lesson.start()
    tasks = lesson.judge()
    judges = np.arange(len(tasks.r))
    with current_progress().stage("experts"), thread_pool(n_jobs) as pool:
        models = [
            HeldOutThresholds(
                lgb.Booster({**lesson.parameters, "seed": seed + k}, data),
                start,
                experts.learning_rate,
                tasks,
                tasks.table.codes,
                judges,
            )
            for k, data in enumerate(lesson.bin(half, start) for half in rows.halves)
        ]
        shares = [float(half.weight.sum()) for half in rows.halves]
        n_rounds = find_rounds(models, shares, experts.max_rounds, pool)
    twin = copy.copy(experts)
    twin.n_rounds_, twin.n_draws_ = n_rounds, lesson.n_draws
    twin.trees_ = [ThresholdTrees.from_booster(m.model, 0, n_rounds) for m in models]
    twin.starts_ = [start] * len(models)
    return twin


class _Lesson:
    """What experts of one road learn, as LightGBM is told it."""

    def __init__(
        self,
        experts: SharedBoosting,
        road: Any,
        number: int,
        rows: AllRows,
        seed: int,
    ):
        self.road, self.number, self.rows = road, number, rows
        self.thresholds = road.thresholds_
        self.frame = getattr(road, "frame", None)
        self.n_draws = count_draws(experts.draws, max(rows.n_rows, 1))
        self.rng = np.random.default_rng(seed)
        signs = read_directions(experts.monotone, rows.judges.table.reader)
        if self.frame is not None and self.frame.kind_ is not None:
            signs += [0, 0]
        share = _ROWS_OF_A_TREE / max(rows.n_rows * self.n_draws / len(rows.halves), 1)
        self.parameters = {
            **experts.booster_parameters(signs, self.n_draws, seed),
            "bagging_fraction": min(share, 1.0),
            "bagging_freq": 1,
        }

    def start(self) -> Float64Array:
        """Return the log-odds of the base rates, where boosting starts."""
        r = [self._coordinate(half) for half in self.rows.halves]
        weight = [half.weight for half in self.rows.halves]
        whole, mass = np.concatenate(r), np.concatenate(weight)
        known = np.isfinite(whole)
        return start_scores(whole[known], mass[known], self.thresholds)

    def bin(self, half: HalfRows, start: Float64Array) -> lgb.Dataset:
        """Return the bins of rows that are repeated with thresholds drawn for them."""
        knots = grid_knots(self.thresholds)
        grid = np.arange(len(knots), dtype=np.float64)
        places = draw_places(
            half.scratch.n_rows, self.n_draws, len(self.thresholds), self.rng
        )
        r = self._coordinate(half)
        labels = (r[:, None] <= np.interp(places, grid, knots)).ravel()
        # Rows of other roads have no weight.
        mass = np.where(np.isfinite(r), half.weight, 0.0)
        widen = _Widen(self._extra(half), places.ravel(), self.n_draws)
        rows = [ScratchRows(half.scratch, self.n_draws, widen)]
        data = bin_rows(rows, self.rows.categories, self.parameters)
        data.set_label(labels)
        data.set_weight(np.repeat(mass, self.n_draws))
        return data.set_init_score(np.interp(places, grid, start).ravel())

    def judge(self) -> Tasks:
        """Return some of the judges, as tasks."""
        placed = self.rows.judges.placed
        r = self._coordinate(placed)
        known = np.flatnonzero(np.isfinite(r))[:_MOST_JUDGES]
        features = np.column_stack([placed.codes, self._extra(placed)])[known]
        weight = placed.weight[known]
        return Tasks(Table.of(features), r[known], self.thresholds, [], weight)

    def _coordinate(self, part: Any) -> Float64Array:
        """Return (y - m) / s, NaN for rows of other roads."""
        k = self.number
        return np.asarray((part.y[:, k] - part.center[:, k]) / part.scale[:, k])

    def _extra(self, part: Any) -> Float64Array:
        """Return the features that a frame adds, (n, 2) or (n, 0)."""
        center, scale = part.center[:, self.number], part.scale[:, self.number]
        if self.frame is None:
            return np.empty((len(center), 0))
        return np.asarray(self.frame.more_features(center, scale))


class _Widen:
    """Adds what a frame says, and the thresholds drawn, to codes of repeated rows."""

    def __init__(self, extra: Float64Array, places: Float64Array, n_draws: int):
        self.extra, self.places, self.n_draws = extra, places, n_draws

    def __call__(self, start: int, stop: int, codes: Float64Array) -> Float64Array:
        """Return the features of rows `start` to `stop`."""
        own = self.extra[np.arange(start, stop) // self.n_draws]
        return np.column_stack([codes, own, self.places[start:stop]])
