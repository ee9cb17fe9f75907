"""`PooledForecaster`: roads that compete, and the pool of those that are worth it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from calibration.typing import Float64Array
from localexpert.data.folds import Fold, Rows, number_folds
from localexpert.data.sample import Sample
from localexpert.data.table import Table
from localexpert.experts.task_record import TaskRecord
from localexpert.forecasters.forecaster import Forecaster, RoadForecaster
from localexpert.forecasters.learned_pool import LearnedPool
from localexpert.forecasters.pool_sharpness import learn_sharpness, multiply_scores
from localexpert.forecasters.pool_weights import PoolScores, draw_rows
from localexpert.law.join import PoolKind, can_pool_scores, pool_laws
from localexpert.law.law import Law
from localexpert.law.level_map import map_levels
from localexpert.progress import current_progress

# Rows by which roads are weighed: two or three weights ask for no more.
_ROWS_TO_WEIGH = 2000
# A road whose first stage alone is so much worse than a finished road cannot win:
# experts lower the loss of a frame by a tenth, seldom by more than a fifth.
_HOPELESS = 1.3
# A pool that gains less than this share of the best road's CRPS gains nothing.
_LEAST_GAIN = 0.0005
# A road of less weight is left out of a pool.
_LEAST_WEIGHT = 0.05
_KINDS: tuple[PoolKind, ...] = ("linear", "probit")


@dataclass
class PooledForecaster(RoadForecaster):
    """Fit roads, and join what they say by the weights with the least CRPS.

    Parameters
    ----------
    roads : mapping of str to RoadForecaster
        Unfitted; the first is finished in any case, others while they may be of use.
        Those without weight are not kept.
    random_state : int
        Draws the rows by which roads are weighed.
    exact : bool
        Whether forecasts must follow from those of the roads to rounding, so that the
        order of rows is kept: of laws that are not discrete the best road is taken
        alone, for their pools are drawn anew.

    Attributes
    ----------
    fitted_ : dict of str to RoadForecaster
        The roads in the forecast.
    weights_ : dict of str to float
        Theirs; they sum to 1.
    kind_ : {"linear", "probit"}
        How their laws are pooled.
    sharpness_ : float
        Factor of the pool's normal scores, see `learn_sharpness`.
    losses_ : dict of str to float
        CRPS of every road, and of every pool that was compared, as it is expected of
        new rows; of a road in `unfinished_`, what it had a prospect of at best.
    unfinished_ : list of str
        Roads that had no prospect.
    """

    roads: Mapping[str, RoadForecaster]
    random_state: int = 0
    exact: bool = False
    losses_: dict[str, float] = field(default_factory=dict)
    unfinished_: list[str] = field(default_factory=list)

    def begin(self, sample: Sample) -> float:
        """Fit the first stage of the first road, and return what it tells."""
        name, road = next(iter(self.roads.items()))
        with current_progress().stage(name):
            return road.begin(sample)

    def finish(self, sample: Sample) -> PooledForecaster:
        """Finish the first road, try the others, and weigh those that are finished."""
        y = sample.without_outliers().y
        finished: dict[str, RoadForecaster] = {}
        for name, road in self.roads.items():
            with current_progress().stage(name):
                if finished and not self._has_prospect(name, road, sample):
                    continue
                finished[name] = road.finish(sample)
            places = draw_rows(
                sample.weight[road.judged_], _ROWS_TO_WEIGH, self.random_state
            )
            rows = road.judged_[places]
            law = road.law_ahead(places, y[rows])
            self.losses_[name] = _mean_crps(law, y[rows], sample.weight[rows])
        with current_progress().stage("pool"):
            self._weigh(finished, replace(sample, y=y))
        # The others have all their models still.
        self.roads = self.fitted_
        return self

    def _weigh(self, finished: dict[str, RoadForecaster], sample: Sample) -> None:
        """Take the pool, or the road, with the least CRPS of rows that all judge."""
        self.judged_ = reduce(
            np.intersect1d, [road.judged_ for road in finished.values()]
        )
        for road in finished.values():
            road.keep(np.flatnonzero(np.isin(road.judged_, self.judged_)))
        judged = sample.take_judged(self.judged_)
        number = number_folds(judged.folds, len(judged))
        places = draw_rows(judged.weight, _ROWS_TO_WEIGH, self.random_state)
        y, weight = judged.y[places], judged.weight[places]
        laws = [road.law_ahead(places, y) for road in finished.values()]
        folds = _folds_of(number[places], len(judged.folds))
        scores = PoolScores.coarse(laws, y)
        kinds = _KINDS if can_pool_scores(laws) else _KINDS[:1]
        if self.exact and not all(law.is_discrete for law in laws):
            kinds = ()
        own, of_folds = self._choose_weights(
            list(finished), scores, kinds, weight, folds
        )
        self.weights_ = {
            name: float(w) for name, w in zip(finished, own, strict=True) if w > 0.0
        }
        self.fitted_ = {name: finished[name] for name in self.weights_}
        self.heaviest_ = max(self.weights_, key=self.weights_.__getitem__)
        # Of a row that a pool was not learned from, by the weights of its fold.
        self.oof_weights_ = of_folds[number][:, own > 0.0]
        self.sharpness_ = 1.0
        if len(self.weights_) == 1:
            return
        rows = of_folds[number[places]]

        def crps(sharpness: float) -> float:
            each = scores.crps(rows, self.kind_, sharpness)
            return float(np.average(each, weights=weight))

        pool = self._join([laws[k] for k in np.flatnonzero(own)], rows[:, own > 0.0])
        self.sharpness_ = learn_sharpness(pool, y, weight, crps)

    def _has_prospect(self, name: str, road: RoadForecaster, sample: Sample) -> bool:
        """Begin a road, and say whether it may still be of use."""
        trial = road.begin(sample)
        if trial <= _HOPELESS * min(self.losses_.values()):
            return True
        self.losses_[name] = trial
        self.unfinished_.append(name)
        return False

    def _choose_weights(
        self,
        names: list[str],
        scores: PoolScores,
        kinds: Sequence[PoolKind],
        weight: Float64Array,
        folds: list[Fold],
    ) -> tuple[Float64Array, Float64Array]:
        """Return weights (M,), and those that each fold's other rows ask for (F, M)."""
        best = int(np.argmin([self.losses_[name] for name in names]))
        self.kind_: PoolKind = "linear"
        chosen, least = None, (1.0 - _LEAST_GAIN) * self.losses_[names[best]]
        if len(names) > 1:
            for kind in kinds:
                pool = LearnedPool(kind, random_state=self.random_state)
                pool.learn(scores, weight, folds)
                each = scores.crps(pool.oof_weights(folds, len(weight)), kind)
                loss = self.losses_[kind] = float(np.average(each, weights=weight))
                if loss < least:
                    chosen, least, self.kind_ = pool, loss, kind
        alone = np.eye(len(names))[best]
        if chosen is None:
            return alone, np.tile(alone, (len(folds), 1))
        held = chosen.weights_ >= _LEAST_WEIGHT
        rows = np.vstack([chosen.weights_, chosen.fold_weights_]) * held
        total = rows.sum(axis=1, keepdims=True)
        own = rows[0] / total[0]
        rows = np.where(total > 0.0, rows / np.maximum(total, 1e-300), own)
        return own, rows[1:]

    @property
    def tasks_(self) -> TaskRecord:
        """What the experts of the heaviest road said out of fold."""
        return self.fitted_[self.heaviest_].tasks_

    def place(self, table: Table) -> Any:
        """Return weights, and what each road says of new rows."""
        weights = np.array(list(self.weights_.values()))
        return weights, [road.place(table) for road in self.fitted_.values()]

    def oof_placed(self, places: Rows | slice) -> Any:
        """Return the same of some of the judged rows."""
        said = [road.oof_placed(places) for road in self.fitted_.values()]
        return self.oof_weights_[places], said

    def law_of(self, placed: Any) -> Law:
        """Return the pool of the laws that follow."""
        weights, said = placed
        roads = zip(self.fitted_.values(), said, strict=True)
        return self._join([road.law_of(one) for road, one in roads], weights)

    def law_ahead(self, places: Rows, y: Float64Array) -> Law:
        """Return the pool of what the roads say."""
        laws = [road.law_ahead(places, y) for road in self.fitted_.values()]
        return self._join(laws, self.oof_weights_[places])

    def _join(self, laws: list[Law], weights: Float64Array) -> Law:
        """Return the pool, weights (M,) or (n, M): one law, as quick as another."""
        law = pool_laws(laws, weights, self.kind_)
        if self.sharpness_ > 1.0:
            return map_levels(law, multiply_scores(self.sharpness_))
        return law

    def _keep(self, places: Rows) -> None:
        """Let the roads keep it."""
        self.oof_weights_ = self.oof_weights_[places]
        for road in self.fitted_.values():
            road.keep(places)

    def points(self, table: Table) -> tuple[Float64Array, Float64Array]:
        """Return thresholds in units of y and what the experts say, (n, N) each."""
        return self.fitted_[self.heaviest_].points(table)

    @property
    def heaviest(self) -> Forecaster:
        """That of the heaviest road."""
        return self.fitted_[self.heaviest_].heaviest

    def recall_targets(self) -> Float64Array:
        """Return the targets of the judged rows."""
        return self.fitted_[self.heaviest_].recall_targets()

    def recall_weights(self) -> Float64Array:
        """Return the weights of the judged rows."""
        return self.fitted_[self.heaviest_].recall_weights()

    def choices(self) -> dict[str, Any]:
        """Return the roads' weights and losses, and what the heaviest one chose."""
        roads = {
            "kind": self.kind_ if len(self.weights_) > 1 else self.heaviest_,
            "weights": self.weights_,
            "sharpness": self.sharpness_,
            "losses": self.losses_,
            "unfinished": self.unfinished_,
        }
        within = self.fitted_[self.heaviest_].choices()
        if "roads" in within:
            # The heaviest road is a pool itself.
            roads["within"] = within.pop("roads")
        return {"roads": roads, **within}


def _folds_of(number: Rows, n_folds: int) -> list[Fold]:
    """Return folds by the number of each row's; a fold may have no rows."""
    return [
        (np.flatnonzero(number != fold), np.flatnonzero(number == fold))
        for fold in range(n_folds)
    ]


def _mean_crps(law: Law, y: Float64Array, weight: Float64Array) -> float:
    return float(np.average(law.crps(y[:, None])[:, 0], weights=weight))
