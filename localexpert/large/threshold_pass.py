"""Calibrators of thresholds, learned from all rows that no model has seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibration import ScoreCalibrator, ScoreSummary
from calibration.sources.part import Part
from calibration.typing import Float64Array
from localexpert.experts.calibration import (
    HELD_OUT_CLIP,
    ExpertCalibration,
    choose_kind,
    fit_kind,
)
from localexpert.experts.task_record import round_odds
from localexpert.large.row_hash import deal
from localexpert.large.stages import ask_stages, calibrations_of
from localexpert.large.unseen_rows import UnseenRows

# Folds that are held out in turn, and cells of a summary.
_FOLDS, _CELLS = 4, 4096
# Rows whose answers wait to be summarised: a number for each threshold and stage.
_MOST_TOLD = 65_536
# What the sample has told.
_OWN = "sample"

# By stage, threshold and fold.
Place = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class ThresholdCounts:
    """Summaries of what experts said, and what was true.

    Parameters
    ----------
    summaries : dict of (stage, threshold, fold) to ScoreSummary
    """

    summaries: dict[Place, ScoreSummary]

    def merge(self, other: ThresholdCounts) -> ThresholdCounts:
        """Return the summaries of both.

        Parameters
        ----------
        other : ThresholdCounts

        Returns
        -------
        ThresholdCounts
        """
        whole = dict(self.summaries)
        for place, summary in other.summaries.items():
            whole[place] = whole[place] + summary if place in whole else summary
        return ThresholdCounts(whole)

    def arrays(self) -> dict[str, Any]:
        """Return all of it as arrays.

        Returns
        -------
        dict of str to ndarray
        """
        held = list(self.summaries.values())
        parts = ("scores", "weight0", "weight1")
        return {
            "places": np.array(list(self.summaries), np.int64).reshape(-1, 3),
            "lengths": np.array([s.n_cells for s in held], np.int64),
            "levels": np.array([_NONE if s.level is None else s.level for s in held]),
            "ends": np.array([[s.lowest, s.highest] for s in held]).reshape(-1, 2),
            **{
                part: np.concatenate([np.empty(0), *(getattr(s, part) for s in held)])
                for part in parts
            },
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> ThresholdCounts:
        """Return summaries from their arrays.

        Parameters
        ----------
        arrays : mapping of str to ndarray

        Returns
        -------
        ThresholdCounts
        """
        stops = np.cumsum(arrays["lengths"])[:-1]
        cells = zip(
            *(
                np.split(arrays[part], stops)
                for part in ("scores", "weight0", "weight1")
            ),
            strict=True,
        )
        found: dict[Place, ScoreSummary] = {}
        for place, own, level, ends in zip(
            arrays["places"].tolist(),
            cells,
            arrays["levels"].tolist(),
            arrays["ends"].tolist(),
            strict=False,
        ):
            known = None if level == _NONE else level
            low, high = ends
            scores, none, one = own
            summary = ScoreSummary(scores, none, one, _CELLS, known, low, high)
            stage, k, fold = place
            found[stage, k, fold] = summary
        return cls(found)


_NONE = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False)
class ThresholdPass:
    """The pass that asks experts about one half of the rows that they never saw.

    Parameters
    ----------
    unseen : UnseenRows
    """

    unseen: UnseenRows
    name: ClassVar[str] = "thresholds"

    def __call__(self, part: Part, frame: Any = None) -> ThresholdCounts:
        """Return the counts of one part."""
        road = self.unseen.model.forecaster_
        number = {id(one): k for k, one in enumerate(calibrations_of(road))}
        counts = ThresholdCounts({})
        told: dict[int, list[_Told]] = {}
        n_told = 0
        for block in self.unseen.blocks(part, frame, half=0):
            fold = deal(block.hashes, "fold of a threshold", _FOLDS)
            for answers in ask_stages(road, block.table, block.y):
                rows = answers.rows
                # Rounded, for products of matrices leave the last bits open.
                p = round_odds(answers.probabilities).astype(np.float64)
                own = p, answers.below, block.weight[rows]
                place = number[id(answers.calibration)]
                told.setdefault(place, []).append((*own, fold[rows]))
            n_told += len(block.y)
            if n_told >= _MOST_TOLD:
                counts, n_told = counts.merge(_summarise(told)), 0
                told.clear()
        return counts.merge(_summarise(told))

    def join(self, parts: Sequence[ThresholdCounts]) -> ThresholdCounts:
        """Return the counts of all parts."""
        return reduce(ThresholdCounts.merge, parts)

    def load(self, arrays: Mapping[str, Any]) -> ThresholdCounts:
        """Return counts from their arrays."""
        return ThresholdCounts.from_arrays(arrays)


_Told = tuple[Float64Array, NDArray[np.bool_], Float64Array, NDArray[np.int64]]


def _summarise(told: dict[int, list[_Told]]) -> ThresholdCounts:
    """Return the summaries of what stages said."""
    found: dict[Place, ScoreSummary] = {}
    for stage in sorted(told):
        p, below, weight, fold = map(np.concatenate, zip(*told[stage], strict=True))
        for number in range(_FOLDS):
            rows = np.flatnonzero(fold == number)
            for k in range(p.shape[1] if len(rows) else 0):
                found[stage, k, number] = ScoreSummary.from_scores(
                    p[rows, k], below[rows, k], weight[rows], max_cells=_CELLS
                )
    return ThresholdCounts(found)


def choose_calibrators(model: Any, counts: ThresholdCounts) -> list[dict[str, Any]]:
    """Give each stage the calibrators that say most of rows held out.

    Those of the sample stay unless another kind, learned from the other folds of the
    counts, lowers the log loss by a thousandth and by more than one standard error.

    Parameters
    ----------
    model : LocalExpertRegressor
        Whose calibrators are replaced.
    counts : ThresholdCounts

    Returns
    -------
    list of dict
        What was chosen for each stage, and the losses; ready for JSON.
    """
    told = []
    for stage, calibration in enumerate(calibrations_of(model.forecaster_)):
        own: dict[int, dict[int, ScoreSummary]] = {}
        for (place, k, fold), summary in counts.summaries.items():
            if place == stage:
                own.setdefault(k, {})[fold] = summary
        held = [own[k] for k in sorted(own)]
        if calibration.calibrator is None or not held or len(held[0]) < _FOLDS:
            continue
        told.append(_choose(calibration, held))
    return told


def _choose(
    calibration: ExpertCalibration, held: list[dict[int, ScoreSummary]]
) -> dict[str, Any]:
    """Choose the calibrators of one stage."""
    folds = sorted(held[0])
    kinds = calibration.kinds()
    losses = {_OWN: _losses(held, folds, lambda k, _: calibration.calibrators_[k])}
    for name, kind in kinds.items():

        def fitted(k: int, fold: int, kind: ScoreCalibrator = kind) -> ScoreCalibrator:
            return fit_kind(kind, [held[k][f] for f in folds if f != fold])

        losses[name] = _losses(held, folds, fitted)
    chosen = choose_kind(losses)
    if chosen != _OWN:
        calibration.calibrators_ = [
            fit_kind(kinds[chosen], [parts[f] for f in folds]) for parts in held
        ]
    means = {name: float(loss.mean()) for name, loss in losses.items()}
    return {"chosen": chosen, "losses": means}


def _losses(
    held: list[dict[int, ScoreSummary]], folds: list[int], fitted: Any
) -> Float64Array:
    """Return each fold's log loss, mean over rows and thresholds."""
    out = np.zeros(len(folds))
    for place, fold in enumerate(folds):
        total = 0.0
        for k, parts in enumerate(held):
            summary = parts[fold]
            p = fitted(k, fold).predict(summary.scores)
            one, none = (np.clip(q, HELD_OUT_CLIP, 1.0) for q in (p, 1.0 - p))
            lost = summary.weight1 @ np.log(one) + summary.weight0 @ np.log(none)
            total -= lost / summary.n
        out[place] = total / len(held)
    return out
