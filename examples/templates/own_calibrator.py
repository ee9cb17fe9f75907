"""A calibrator of your own: copy this file, and change what it learns.

The map is one step: a probability below the best cut, another one from there on. It is
held to the contract of all calibrators by tests/calibration/base/test_calibrators.py.
What the bases take care of: input of any kind and its refusal, ties, weights, one class
only, one distinct score, `fit` on summaries, intervals, `save`.
"""

from __future__ import annotations

import numpy as np

from calibration import CalibrationMap, ScoreSummary, brier_score
from calibration._validation import check_number
from calibration.base.calibrators import BlockCalibrator, Scale
from calibration.typing import Float64Array


class StepCalibrator(BlockCalibrator):
    """Two probabilities, with the cut between them that leaves the least Brier score.

    Parameters
    ----------
    smoothing : float
        Rows at the base rate that are added on either side of the cut.
    scale : {"probability", "logit", "real"}
        What a score is.

    Attributes
    ----------
    map_ : CalibrationMap
        The step, with the weight of each class on either side.

    Examples
    --------
    >>> step = StepCalibrator(smoothing=0.0).fit([0.1, 0.2, 0.7, 0.9], [0, 0, 1, 1])
    >>> step.predict([0.15, 0.8])
    array([0., 1.])
    """

    # The constructor stores its arguments as they are: `clone` and searches rely on it.
    def __init__(self, smoothing: float = 2.0, *, scale: Scale = "probability"):
        self.smoothing = smoothing
        self.scale = scale

    # Bad arguments are refused when `fit` is called, after those of the base.
    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self.smoothing, "smoothing", 0.0)

    # The summary holds two or more distinct scores in increasing order, and the weight
    # of each class at each of them. Fitted state has a name that ends in `_`.
    def _fit(self, summary: ScoreSummary) -> None:
        cut = _best_cut(summary.weight0, summary.weight1)
        first = np.array([0, cut])
        weight0 = np.add.reduceat(summary.weight0, first)
        weight1 = np.add.reduceat(summary.weight1, first)
        added = self.smoothing
        rates = (weight1 + added * summary.base_rate) / (weight0 + weight1 + added)
        self.map_ = CalibrationMap.step(summary.scores[first], rates, weight0, weight1)


def _best_cut(weight0: Float64Array, weight1: Float64Array) -> int:
    """Return the number of the first cell above the cut.

    A side with weights (w0, w1) at its own rate has the loss w0 w1 / (w0 + w1), the
    Brier score times the weight of all rows.
    """
    below0, below1 = np.cumsum(weight0)[:-1], np.cumsum(weight1)[:-1]
    # Not what is left of the total: of a tiny weight beside a large one that is 0.
    above0, above1 = (np.cumsum(w[::-1])[::-1][1:] for w in (weight0, weight1))
    losses = below0 * below1 / (below0 + below1) + above0 * above1 / (above0 + above1)
    return int(np.argmin(losses)) + 1


def main() -> None:
    """Fit it on scores that are too high, and say what it is worth."""
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=2000)
    labels = rng.uniform(size=2000) < scores**2
    step = StepCalibrator().fit(scores[:1000], labels[:1000])
    before, after = scores[1000:], step.predict(scores[1000:])
    print(f"Brier score before: {brier_score(labels[1000:], before):.3f}")
    print(f"with one step:      {brier_score(labels[1000:], after):.3f}")


if __name__ == "__main__":
    main()
