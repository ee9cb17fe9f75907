"""Roads: ways from rows to distributions, which compete for the forecast."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from calibration import QuadraticCalibrator
from calibration.typing import Float64Array
from localexpert._validation import show
from localexpert.curves.spline import CurveBuilder, ProbitSpline
from localexpert.experts import JointForest
from localexpert.experts.calibrated_experts import CalibratedExperts
from localexpert.forecasters.cells import Cells
from localexpert.forecasters.continuous import ContinuousForecaster
from localexpert.forecasters.discrete import DiscreteForecaster
from localexpert.forecasters.forecaster import RoadForecaster
from localexpert.forecasters.order import check_order_of_road
from localexpert.forecasters.settings import UNBOUNDED, Settings
from localexpert.forecasters.stepped import SteppedForecaster
from localexpert.forecasters.transformed import Carry
from localexpert.law.transform import ValueMap, call_vectorised

# Of a function of y: with tails no heavier than normal ones all moments of its inverse
# that is no steeper than exp are finite.
_LIGHT = -0.1
# Steps between knots, in probits: 0 is the mean step of the thresholds.
_GRID_SMOOTHINGS = (0.0, 0.1, 0.2)
# A function and its inverse lead back to y up to this share of its size and spread.
_OF_SIZE = 1e-6


class Road(BaseEstimator, ABC):
    """A way from rows to distributions: where questions are asked, and who answers.

    What it does not name (centre, calibrator, smoothing, bounds, seed) it takes from
    the regressor.
    """

    # Whether it answers with probabilities of the values of a discrete target.
    discrete: ClassVar[bool] = False
    # Whether it asks the settings for all that they keep in order (`monotone`).
    keeps_order: ClassVar[bool] = False

    @abstractmethod
    def check(self, settings: Settings) -> None:
        """Refuse parameters that are not valid.

        Parameters
        ----------
        settings : Settings
            What the regressor was given.
        """

    def check_target(self, y: Float64Array) -> None:
        """Refuse targets that the road cannot take.

        Parameters
        ----------
        y : ndarray of shape (n,)
        """
        del y

    @abstractmethod
    def forecaster(self, settings: Settings, n: int) -> RoadForecaster:
        """Return the unfitted stages.

        Parameters
        ----------
        settings : Settings
            What the regressor was given.
        n : int
            Number of rows.

        Returns
        -------
        RoadForecaster
        """


class FrameRoad(Road):
    """Thresholds around a centre that is learned first, each with an expert.

    Parameters
    ----------
    frame : {"auto", "standardize", "center"} or None
    thresholds : {"quantile", "uniform"} or array-like of shape (N,)
    n_thresholds : int
    strategy : {"auto", "shared", "joint", "independent"} or Experts
        All four as in `LocalExpertRegressor`.

    Examples
    --------
    >>> from localexpert import FrameRoad, GridRoad, LocalExpertRegressor
    >>> model = LocalExpertRegressor(roads=[FrameRoad(frame="center"), GridRoad()])
    """

    keeps_order: ClassVar[bool] = True

    def __init__(
        self,
        frame: str | None = "auto",
        *,
        thresholds: Any = "quantile",
        n_thresholds: int = 25,
        strategy: Any = "auto",
    ):
        self.frame = frame
        self.thresholds = thresholds
        self.n_thresholds = n_thresholds
        self.strategy = strategy

    def check(self, settings: Settings) -> None:
        """Refuse parameters that are not valid."""
        self._own(settings)

    def forecaster(self, settings: Settings, n: int) -> ContinuousForecaster:
        """Return the unfitted stages for `n` rows."""
        own = self._own(settings)
        return _make_smooth(own, own.make_builders(), n)

    def _own(self, settings: Settings) -> Settings:
        return settings.with_road(
            frame=self.frame,
            thresholds=self.thresholds,
            n_thresholds=self.n_thresholds,
            strategy=self.strategy,
        )


class GridRoad(Road):
    """Many thresholds on y itself, hardly smoothed, and one forest for all of them.

    It wins where many rows come from few units, or where y is told by what the rows
    around say and by no smooth centre.

    Parameters
    ----------
    n_thresholds : int
        Equally probable.
    strategy : Experts, optional
        None: a `JointForest` whose trees grow until rows are alone, and try all
        features at a split.

    Examples
    --------
    >>> from localexpert import GridRoad, LocalExpertRegressor
    >>> model = LocalExpertRegressor(roads=GridRoad(200))
    """

    keeps_order: ClassVar[bool] = True

    def __init__(self, n_thresholds: int = 150, *, strategy: Any = None):
        self.n_thresholds = n_thresholds
        self.strategy = strategy

    def check(self, settings: Settings) -> None:
        """Refuse parameters that are not valid."""
        self._own(settings)

    def forecaster(self, settings: Settings, n: int) -> ContinuousForecaster:
        """Return the unfitted stages for `n` rows."""
        own = self._own(settings)
        # The mean of many trees is never sure of anything; the quadratic says by how
        # much, for as little as a tenth of the forest's own time.
        if own.calibrator == "auto" and own.monotone is None:
            own = replace(own, calibrator=QuadraticCalibrator(10.0))
        fine = [ProbitSpline(step) for step in _GRID_SMOOTHINGS]
        builders = fine if own.smoothing == "auto" else own.make_builders()
        return _make_smooth(own, builders, n)

    def _own(self, settings: Settings) -> Settings:
        strategy = self.strategy
        if strategy is None:
            strategy = JointForest(
                min_samples_leaf=1,
                max_features=1.0,
                out_of_bag=settings.out_of_bag,
                n_jobs=settings.n_jobs,
                random_state=settings.seed,
            )
        return settings.with_road(
            frame=None,
            thresholds="quantile",
            n_thresholds=self.n_thresholds,
            strategy=strategy,
        )


class DiscreteRoad(Road):
    """A question between each pair of neighbouring values of a discrete target.

    Parameters
    ----------
    strategy : {"auto", "shared", "joint", "independent"} or Experts
        As in `LocalExpertRegressor`.

    Examples
    --------
    >>> from localexpert import CellRoad, DiscreteRoad, LocalExpertRegressor
    >>> model = LocalExpertRegressor(roads=[DiscreteRoad("joint"), CellRoad()])
    """

    discrete: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True

    def __init__(self, strategy: Any = "auto"):
        self.strategy = strategy

    def check(self, settings: Settings) -> None:
        """Refuse parameters that are not valid."""
        settings.with_road(strategy=self.strategy)

    def forecaster(self, settings: Settings, n: int) -> DiscreteForecaster:
        """Return the unfitted stages for `n` rows."""
        own = settings.with_road(strategy=self.strategy)
        experts = CalibratedExperts(own.members(n), own.make_calibration())
        return DiscreteForecaster(experts, own.bounds)


class CellRoad(Road):
    """A smooth road to a discrete target: each value gets the mass nearest to it.

    Parameters
    ----------
    road : Road, optional
        None: ``FrameRoad()``.

    Examples
    --------
    >>> from localexpert import CellRoad, FrameRoad, LocalExpertRegressor
    >>> model = LocalExpertRegressor(roads=CellRoad(FrameRoad("center")))
    """

    discrete: ClassVar[bool] = True
    keeps_order: ClassVar[bool] = True

    def __init__(self, road: Road | None = None):
        self.road = road

    def check(self, settings: Settings) -> None:
        """Refuse parameters that are not valid."""
        check_road(_check_smooth(self._road(), "road"), settings)

    def check_target(self, y: Float64Array) -> None:
        """Refuse targets (n,) that the road cannot take."""
        self._road().check_target(y)

    def forecaster(self, settings: Settings, n: int) -> SteppedForecaster:
        """Return the unfitted stages for `n` rows."""
        # The cells of the outermost values reach as far as there is mass.
        smooth = replace(settings, bounds=UNBOUNDED, suspected=UNBOUNDED)
        return SteppedForecaster(
            self._road().forecaster(smooth, n),
            Cells(settings.bounds, random_state=settings.seed),
        )

    def _road(self) -> Road:
        return FrameRoad() if self.road is None else self.road


class Transformed(Road):
    """A smooth road to an increasing function of y.

    Parameters
    ----------
    road : Road, optional
        None: ``FrameRoad()``.
    func, inverse : callable
        An increasing function and its inverse; both map an array of values to an
        array of the same shape.

    Notes
    -----
    Tails of func(y) are no heavier than normal ones, so that all moments of y are
    finite where func grows no slower than the logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import FrameRoad, LocalExpertRegressor, Transformed
    >>> roads = [FrameRoad(), Transformed(FrameRoad(), np.sqrt, np.square)]
    >>> model = LocalExpertRegressor(roads=roads)
    """

    keeps_order: ClassVar[bool] = True

    def __init__(
        self,
        road: Road | None = None,
        func: Callable[..., Any] = np.log,
        inverse: Callable[..., Any] = np.exp,
    ):
        self.road = road
        self.func = func
        self.inverse = inverse

    def check(self, settings: Settings) -> None:
        """Refuse parameters that are not valid."""
        self._values()
        check_road(_check_smooth(self._road(), "road"), settings)

    def check_target(self, y: Float64Array) -> None:
        """Refuse targets (n,) that the road cannot take."""
        y = np.unique(y)
        z = call_vectorised(self.func, "func", y)
        if not np.isfinite(z).all():
            i = int(np.argmin(np.isfinite(z)))
            msg = f"`func` must be finite on y, got {show(z[i])} at {show(y[i])}."
            raise ValueError(msg)
        if (np.diff(z) <= 0.0).any():
            i = int(np.argmax(np.diff(z) <= 0.0))
            msg = (
                f"`func` must increase on y, got {show(z[i])} at {show(y[i])} and "
                f"{show(z[i + 1])} at {show(y[i + 1])}."
            )
            raise ValueError(msg)
        back = call_vectorised(self.inverse, "inverse", z)
        wrong = ~(np.abs(back - y) <= _OF_SIZE * np.maximum(np.abs(y), np.ptp(y)))
        if wrong.any():
            i = int(np.argmax(wrong))
            msg = (
                f"`inverse` must undo `func`, got func({show(y[i])}) = {show(z[i])} "
                f"and inverse({show(z[i])}) = {show(back[i])}."
            )
            raise ValueError(msg)
        self._road().check_target(z)

    def forecaster(self, settings: Settings, n: int) -> SteppedForecaster:
        """Return the unfitted stages for `n` rows."""
        values = self._values()
        there = ValueMap(self.func, self.inverse)
        low, high = (there.end(end) for end in settings.bounds)
        own = replace(settings, bounds=(low, high), max_shape=_LIGHT)
        low, high = (there.end(end) for end in settings.suspected)
        own = replace(own, suspected=(low, high))
        return SteppedForecaster(self._road().forecaster(own, n), Carry(values))

    def _values(self) -> ValueMap:
        """Return the map from func(y) to y."""
        return ValueMap(self.inverse, self.func)

    def _road(self) -> Road:
        return FrameRoad() if self.road is None else self.road


def check_road(road: Road, settings: Settings) -> None:
    """Refuse a road whose parameters are not valid, or that loses an order to keep.

    Parameters
    ----------
    road : Road
    settings : Settings
    """
    if settings.monotone is not None:
        check_order_of_road(road)
    road.check(settings)


def _make_smooth(
    own: Settings, builders: Sequence[CurveBuilder], n: int
) -> ContinuousForecaster:
    """Return the unfitted stages of a road to smooth laws."""
    return ContinuousForecaster(
        frame=own.make_frame(),
        thresholds=own.thresholds,
        n_thresholds=own.n_thresholds,
        experts=CalibratedExperts(own.members(n), own.make_calibration()),
        builders=builders,
        bounds=own.bounds,
        suspected=own.suspected,
        max_shape=own.max_shape,
        ordered=own.monotone is not None,
        random_state=own.seed,
    )


def _check_smooth(road: Any, name: str) -> Road:
    """Return a road to laws without jumps, and refuse anything else."""
    if not isinstance(road, Road) or road.discrete:
        msg = f"`{name}` must be a road to smooth distributions, got {road!r}."
        raise TypeError(msg)
    return road
