"""Stages of roads: shared frames, and smooth laws through the experts' answers."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.coordinate.centre import CentreStack
from localexpert.coordinate.frame import Frame
from localexpert.curves.base_cdf import BaseCDF, law_of_curves
from localexpert.curves.spline import CurveBuilder, RawSpline
from localexpert.data.blend import blend_weights
from localexpert.data.folds import Rows, Sample
from localexpert.data.table import Table
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, clip, cut, fold
from localexpert.learn.steps import Carry, Limits, atom_widths
from localexpert.progress import current_progress

# A table, which equals no other, and the bytes of target and weights.
_Key: TypeAlias = tuple[Table, bytes, bytes]


class Stages:
    """Frames that were already fitted, by their rows. They live as long as the fit.

    A frame of the same rows and target is fitted once. If a road learns a function of
    a target, its centre is that function of the target's centre. This is not exact, but
    the experts see the centre and bend it as needed.
    """

    def __init__(self) -> None:
        self._frames: dict[tuple[_Key, str | None], Frame] = {}

    def fit_frame(
        self, frame: Frame, sample: Sample, carry: Carry | None, outer: Sample
    ) -> Frame:
        """Return a fitted frame. It is that of an earlier road if there is one.

        Parameters
        ----------
        frame : Frame
            Unfitted.
        sample : Sample
        carry : Carry or None
            The last step to the sample's target, if it is a function.
        outer : Sample
            The same rows before this step.

        Returns
        -------
        Frame
            A frame of its own. It does not change with that of the other road.
        """
        key = _key(sample), frame.kind
        if key not in self._frames:
            if isinstance(frame.center.regressors, str):
                frame.center = self._known_centre(sample, carry, outer) or frame.center
            self._frames[key] = frame.fit(sample)
        return copy(self._frames[key])

    def _known_centre(
        self, sample: Sample, carry: Carry | None, outer: Sample
    ) -> CarriedCentre | None:
        """Return an unfitted centre that follows from a centre of another road."""
        own = _key(sample)
        for (known, _), frame in self._frames.items():
            ours = isinstance(frame.center.regressors, str)
            if not (ours and hasattr(frame, "centre_")):
                continue
            # Without a function, the known centre has other weights: more rows.
            more = known[:2] == own[:2] and known[2] != own[2]
            follows = more if carry is None else known == _key(outer)
            if follows and len(frame.centre_.oof_) == len(sample.judged):
                return CarriedCentre(frame.centre_, carry, outer.without_outliers().y)
        return None


def _key(sample: Sample) -> _Key:
    return sample.table, sample.y.tobytes(), sample.weight.tobytes()


class CarriedCentre(CentreStack):
    """A centre that follows from one of another target, or from one of more rows.

    For another target, it is an increasing function of the known centre, blended with
    sums of columns that are quick to fit. For a part of the rows, it is the straight
    line in the known centre that has the least squared error on that part.

    Parameters
    ----------
    known : CentreStack
        The known centre, fitted.
    step : Carry or None
        The function.
    y : ndarray of shape (n,)
        Targets of the known centre. The function is defined in their range.
    """

    def __init__(self, known: CentreStack, step: Carry | None, y: Float64Array):
        # Keep the step and not its method: a saved file may only name our classes.
        self.known, self.step = known, step
        self.low, self.high = float(y.min()), float(y.max())
        self.out_of_bag, self.n_jobs = known.out_of_bag, known.n_jobs
        self.random_state = known.random_state

    def fit(self, sample: Sample) -> CarriedCentre:
        """Fit the line, and the share of the sums."""
        known = self.known
        self.weights_, self.report_ = known.weights_, {}
        self.dense_inputs_ = known.dense_inputs_
        self.origin_, self.unit_ = 0.0, 1.0
        judged = sample.judged
        w, y = sample.weight[judged], sample.y[judged]
        carried = self._carry(known.oof_)
        self.line_, self.share_ = (0.0, 1.0), 0.0
        self.own_: CentreStack | None = None
        if self.step is None:
            self.line_ = _fit_line(carried, y, w)
        else:
            self._blend(carried, sample)
        self.oof_ = self._join(carried, None if self.own_ is None else self.own_.oof_)
        # Relative to the error, the gain is the same as for the known centre.
        self.gain_ = known.gain_
        self.ambiguity_ = self.gain_ * float(w @ (y - self.oof_) ** 2 / w.sum())
        return self

    def predict(self, table: Table) -> Float64Array:
        """Return the centre of new rows, shape (n,)."""
        carried = self._carry(self.known.predict(table))
        own = None if self.own_ is None else self.own_.predict(table)
        return self._join(carried, own)

    def predict_each(self, table: Table) -> Float64Array:
        """Return the centre of new rows by each fold's models, (n_folds, n)."""
        carried = self._carry(self.known.predict_each(table))
        own = None if self.own_ is None else self.own_.predict_each(table)
        return self._join(carried, own)

    def _blend(self, carried: Float64Array, sample: Sample) -> None:
        """Fit sums of columns, and keep them if they have weight."""
        # A sum of logarithms is the logarithm of a product of features.
        how = self.out_of_bag, self.n_jobs, self.random_state
        own = CentreStack("sums", *how).fit(sample)
        answers = {"carried": carried, "sums": own.oof_}
        held = sample.y[sample.judged], sample.weight[sample.judged]
        weights = blend_weights(answers, *held)
        self.share_ = weights.get("sums", 0.0)
        self.own_ = own if self.share_ > 0.0 else None

    def _join(self, carried: Float64Array, own: Float64Array | None) -> Float64Array:
        line = self.line_[0] + self.line_[1] * carried
        if own is None:
            return np.asarray(line)
        return np.asarray((1.0 - self.share_) * line + self.share_ * own)

    def _carry(self, centre: Float64Array) -> Float64Array:
        if self.step is None:
            return centre
        return np.asarray(self.step.there(np.clip(centre, self.low, self.high)))


def _fit_line(x: Float64Array, y: Float64Array, w: Float64Array) -> tuple[float, float]:
    """Return intercept and slope of y on x. If the line falls, return the identity."""
    share = w / w.sum()
    x0, y0 = float(share @ x), float(share @ y)
    spread = float(share @ (x - x0) ** 2)
    slope = float(share @ ((x - x0) * (y - y0))) / spread if spread > 0.0 else 1.0
    if slope <= 0.0:
        return 0.0, 1.0
    return y0 - slope * x0, slope


# Curve builders are compared on this many rows. Their scores differ by more than the
# noise of so many rows.
_ROWS_TO_COMPARE = 2000
# The loss is the log score plus this many times the logarithm of the CRPS.
WEIGHT_OF_CRPS = 10.0
# One more knot must gain at least this many nats in the log score of all rows together.
_PRICE_OF_KNOTS = 2.0
# Where mass beyond a bound may go, see `fold`; 0 cuts it off.
_POWERS = (0.0, 1.0, 2.0)
# Thresholds nearer than this, in probits of the marginal, count as one.
_LEAST_GAP = 1e-4
# A bound is accepted if forecasts expected this many rows beyond it.
_EXPECTED_BEYOND = 5.0


class Answers(NamedTuple):
    """Centre and scale of n rows, (n,), and what the experts say of them, (n, N)."""

    center: Float64Array
    scale: Float64Array
    p: Float64Array

    def take(self, rows: Rows) -> Answers:
        """Return the answers for some rows."""
        return Answers(*(part[rows] for part in self))


class Curves:
    """Laws as curves against the marginal of the coordinate.

    Parameters
    ----------
    builders : list of CurveBuilder
        The builders to compare.
    limits : Limits
        Limits of the target.
    seed : int
        Draws the rows on which the builders are compared.
    ordered : bool
        Whether the order of rows must be kept.

    Attributes
    ----------
    bounds : (float, float)
        A suspected end becomes a bound if forecasts without it expected
        targets beyond it.
    base_ : BaseCDF
        The marginal of r. Its probits are the axis of forecasts. If experts have
        learned nothing, a forecast is the marginal itself, which is a straight line on
        this axis.
    builder_ : CurveBuilder
        The builder with the least out-of-fold loss, from log score and CRPS together.
    power_ : float
        Where mass beyond the bounds goes. 0: it is cut off, and all other mass grows.
        Otherwise it goes to the inside of the bound, see `fold`. The least loss decides
        that as well. If order must be kept, it moves to the bound itself.
    """

    def __init__(
        self, builders: list[CurveBuilder], limits: Limits, seed: int, *, ordered: bool
    ):
        self.builders, self.limits = builders, limits
        self.bounds, self.seed, self.ordered = limits.bounds, seed, ordered
        self.losses_: dict[str, float] = {}
        self.power_ = 0.0

    def fit(
        self, part: Sample, thresholds: Float64Array, answers: Answers, y: Float64Array
    ) -> None:
        """Fit the marginal, and choose the bounds and the builder.

        Parameters
        ----------
        part : Sample
            Rows whose targets are coordinates.
        thresholds : ndarray of shape (N,)
        answers : Answers
            Out of fold, for the m judged rows.
        y : ndarray of shape (m,)
            Targets of these rows, none of them far out.
        """
        self.thresholds_, weight = thresholds, part.weight[part.judged]
        self.base_ = BaseCDF.fit(part.y, part.weight, max_shape=self.limits.max_shape)
        self.n_ = float(part.weight.sum())
        with current_progress().stage("spline"):
            self.width_ = float(atom_widths(np.zeros(1), y, weight)[0])
            rng = np.random.default_rng(self.seed)
            rows = rng.permutation(np.flatnonzero(weight))[:_ROWS_TO_COMPARE]
            some = answers.take(rows)
            # Each of these rows stands for this many rows.
            share = weight[rows] * float(weight.sum() / weight[rows].sum())
            self._believe_bounds(some, share)
            self._choose(some, y[rows], weight[rows])

    def law(self, answers: Answers) -> Law:
        """Return the laws that follow from the answers for n rows.

        Parameters
        ----------
        answers : Answers

        Returns
        -------
        Law
        """
        return self._law(answers, self.curves(answers.p, self.builder_))

    def choices(self) -> dict[str, Any]:
        """Return the chosen builder, and the scores of all."""
        return {"spline": {"chosen": repr(self.builder_), "losses": self.losses_}}

    def curves(self, p: Float64Array, builder: CurveBuilder) -> LevelMap:
        """Return curves from the marginal's levels to those of rows, by one builder.

        Parameters
        ----------
        p : ndarray of shape (n, N)
        builder : CurveBuilder

        Returns
        -------
        LevelMap
        """
        t = self.base_.t(self.thresholds_)
        places = _distinct_places(t)
        given = p[:, places], t[places], self.n_, self.base_.least_slopes()
        if isinstance(builder, RawSpline):
            return builder.build(*given, self.base_.inverse)
        return builder.build(*given)

    def _law(self, answers: Answers, curves: LevelMap) -> Law:
        law = self._unbounded_law(answers, curves)
        if self.ordered:
            return clip(law, *self.bounds, self.width_)
        if self.power_:
            return fold(law, *self.bounds, self.power_)
        return cut(law, *self.bounds)

    def _unbounded_law(self, answers: Answers, curves: LevelMap) -> Law:
        places = answers.center, answers.scale
        return law_of_curves(*places, curves, self.base_, ordered=self.ordered)

    def _believe_bounds(self, answers: Answers, share: Float64Array) -> None:
        """Take a suspected end as a bound if many targets were expected beyond it.

        No target lies beyond it. If forecasts without the bound were right and expected
        5 targets there, it would be empty by chance in 1 of 150 cases.
        """
        if not np.isfinite(self.limits.suspected).any():
            return
        law = self._unbounded_law(answers, self.curves(answers.p, self.builders[0]))
        bounds = list(self.bounds)
        ends = zip(self.limits.suspected, (max, min), strict=True)
        for side, (end, tighter) in enumerate(ends):
            if np.isfinite(end):
                beyond = law.levels(np.full((len(law), 1), end), left=side == 0)[side]
                if share @ beyond[:, 0] >= _EXPECTED_BEYOND:
                    bounds[side] = tighter(bounds[side], end)
        self.bounds = bounds[0], bounds[1]

    def _choose(self, answers: Answers, y: Float64Array, weight: Float64Array) -> None:
        """Take the builder with the least loss out of fold on a sample of rows.

        Then do the same for `power_`, if there is a bound.
        """
        self.builder_ = self.builders[0]
        if len(self.builders) > 1:
            losses = {}
            for builder in current_progress().track(self.builders, len(self.builders)):
                curves = self.curves(answers.p, builder)
                losses[builder] = self._loss(curves, answers, y, weight)
            self.builder_ = min(losses, key=losses.__getitem__)
            self.losses_ = {repr(builder): loss for builder, loss in losses.items()}
        if self.ordered or not np.isfinite(self.bounds).any():
            return
        curves, of_powers = self.curves(answers.p, self.builder_), {}
        for self.power_ in _POWERS:
            of_powers[self.power_] = self._loss(curves, answers, y, weight)
        self.power_ = min(of_powers, key=of_powers.__getitem__)

    def _loss(
        self, curves: LevelMap, answers: Answers, y: Float64Array, weight: Float64Array
    ) -> float:
        """Return the loss of curves for rows (n,), given centre, scale and answers.

        It is a sum: the mean log score, ten times the logarithm of the mean CRPS (so a
        percent of CRPS is worth a tenth of a nat), and 2 / n for each knot between the
        thresholds. Knots have this price because the experts were calibrated on the
        same rows. A knot that follows their noise gains about 1 / n (Akaike 1974), and
        must do better than that.
        """
        law = self._law(answers, curves)
        scores = -law.logpdf(y[:, None]), law.crps(y[:, None])
        missed, crps = np.average(np.hstack(scores), axis=0, weights=weight)
        first, last = self.base_.t(self.thresholds_[[0, -1]])
        n_knots = np.sum((first < curves.knots) & (curves.knots < last))
        price = _PRICE_OF_KNOTS * n_knots / self.n_
        return float(missed + WEIGHT_OF_CRPS * np.log(crps) + price)


def _distinct_places(t: Float64Array) -> NDArray[np.intp]:
    """Return places of thresholds in t, the middle one of several that coincide.

    Some coincide if there are few values and the greatest is very far out. On that
    scale the marginal is then nearly a jump, and does not separate these thresholds.
    """
    starts = np.flatnonzero(np.diff(t, prepend=-np.inf) > _LEAST_GAP)
    return np.asarray((starts + np.append(starts[1:], len(t)) - 1) // 2)
