"""A road of your own: copy this file, and change the record or its step.

A road is a record: where questions are asked, who answers, and the steps that read the
forecasts. A step maps laws to laws, and may let something else than y be learned
(`there` and `back`). Here forecasts are made wider, as for a future that differs from
the past. What the regressor takes care of: folds, calibration, competition with other
roads, and the pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from localexpert import LocalExpertRegressor, Road, Step, interval_coverage
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, map_levels


@dataclass
class Widen(Step):
    """Move levels to the middle: a CDF F becomes Phi(Phi^-1(F) / factor).

    Parameters
    ----------
    factor : float
        Of the standard deviation, where forecasts are normal.

    Examples
    --------
    >>> from localexpert import PredictiveDistribution
    >>> from scipy.stats import norm
    >>> dist = PredictiveDistribution.from_scipy(norm([0.0, 5.0]), 2)
    >>> Widen(2.0).read(dist.law).ppf(np.full((2, 1), 0.975)).round(2)[:, 0]
    array([3.92, 8.92])
    """

    factor: float = 1.2
    # One map for all rows: an order that `monotone` asks for is kept.
    keeps_order: ClassVar[bool] = True

    def read(self, law: Law) -> Law:
        """Return the law, wider."""
        return map_levels(law, LevelMap.line(0.0, 1.0 / self.factor))


def wide_road(factor: float) -> Road:
    """Return a road of nine thresholds on y itself, whose forecasts are wider.

    Parameters
    ----------
    factor : float

    Returns
    -------
    Road
    """
    plain = Road("wide", frame=None, n_thresholds=9, strategy="joint")
    return plain.with_step(Widen(factor))


def main() -> None:
    """Say how many targets are within 90 % intervals, as they are and wider."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(600, 2))
    y = 3.0 * X[:, 0] + 0.3 * rng.normal(size=600)
    for factor in (1.0, 1.2):
        # A correction by the past would make forecasts as narrow as before.
        model = LocalExpertRegressor(
            roads=wide_road(factor), recalibrate=None, random_state=0
        )
        dist = model.fit(X[:400], y[:400]).predict_dist(X[400:])
        print(f"{factor}: {interval_coverage(y[400:], dist, coverage=0.9):.1%}")


if __name__ == "__main__":
    main()
