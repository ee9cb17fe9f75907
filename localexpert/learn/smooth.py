"""`Curves`: smooth laws on curves through what experts say at thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.typing import Float64Array
from localexpert.curves.base_cdf import BaseCDF, law_of_curves
from localexpert.curves.spline import CurveBuilder
from localexpert.data.sample import Sample
from localexpert.law.bounds import clip, cut
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap
from localexpert.learn.steps import Limits
from localexpert.progress import current_progress

# Rows on which curve builders are compared: their scores differ by more than the
# noise of this many.
_ROWS_TO_COMPARE = 2000
# A nat of the log score is worth so much of the logarithm of CRPS.
WEIGHT_OF_CRPS = 10.0
# Least gain in the log score of all rows together by one more knot, in nats.
_PRICE_OF_KNOTS = 2.0
# Thresholds that are nearer in probits of the marginal are one.
_LEAST_GAP = 1e-4
# A bound is believed where forecasts expected so many rows beyond it.
_EXPECTED_BEYOND = 5.0

# An atom's cell is this share of the spread (interquartile range) of the other values,
# so that a hit is worth what a forecast of that sharpness would earn.
_CELL_SHARE = 0.01


class Curves:
    """Laws on curves against the marginal of the coordinate.

    Parameters
    ----------
    builders : list of CurveBuilder
        To choose from.
    limits : Limits
        Of the target.
    seed : int
        Draws the rows by which they are compared.
    ordered : bool
        Whether the order of rows is to be kept.

    Attributes
    ----------
    bounds : (float, float)
        What is beyond is cut off, or where order is to be kept put at them. A suspected
        end is one if forecasts without it expected targets beyond.
    base_ : BaseCDF
        The marginal of r, the axis on which forecasts are drawn: where experts have
        nothing to say a forecast is the marginal itself, a straight line there.
    builder_ : CurveBuilder
        The one with the least loss out of fold: log score and CRPS together.
    """

    def __init__(
        self, builders: list[CurveBuilder], limits: Limits, seed: int, *, ordered: bool
    ):
        self.builders, self.limits = builders, limits
        self.bounds, self.seed, self.ordered = limits.bounds, seed, ordered
        self.losses_: dict[str, float] = {}

    def fit(
        self,
        part: Sample,
        *,
        thresholds: Float64Array,
        answers: tuple[Float64Array, Float64Array, Float64Array],
        y: Float64Array,
        weight: Float64Array,
    ) -> None:
        """Fit the marginal, and take bounds and builder.

        Parameters
        ----------
        part : Sample
            Whose targets are coordinates.
        thresholds : ndarray of shape (N,)
        answers : (center, scale, probabilities)
            Of the m judged rows, out of fold: (m,), (m,) and (m, N).
        y, weight : ndarrays of shape (m,)
            Theirs, none far out.
        """
        self.thresholds_ = thresholds
        self.base_ = BaseCDF.fit(part.y, part.weight, max_shape=self.limits.max_shape)
        self.n_ = float(part.weight.sum())
        with current_progress().stage("spline"):
            self.width_ = float(atom_widths(np.zeros(1), y, weight)[0])
            rng = np.random.default_rng(self.seed)
            rows = rng.permutation(np.flatnonzero(weight))[:_ROWS_TO_COMPARE]
            center, scale, p = (x[rows] for x in answers)
            # For how many rows each of them stands.
            share = weight[rows] * float(weight.sum() / weight[rows].sum())
            self._believe_bounds(center, scale, p, share)
            self._choose_builder((center, scale, p), y[rows], weight[rows])

    def law(self, center: Float64Array, scale: Float64Array, p: Float64Array) -> Law:
        """Return the laws that follow.

        Parameters
        ----------
        center, scale : ndarrays of shape (n,)
        p : ndarray of shape (n, N)

        Returns
        -------
        Law
        """
        return self._law(center, scale, self.curves(p, self.builder_))

    def choices(self) -> dict[str, Any]:
        """Return the builder, and what the others scored."""
        return {"spline": {"chosen": repr(self.builder_), "losses": self.losses_}}

    def curves(self, p: Float64Array, builder: CurveBuilder) -> LevelMap:
        """Return how rows' levels follow from the marginal's, by one of the builders.

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
        slopes = self.base_.least_slopes()
        return builder.build(p[:, places], t[places], self.n_, slopes)

    def _law(self, center: Float64Array, scale: Float64Array, curves: LevelMap) -> Law:
        law = law_of_curves(center, scale, curves, self.base_, ordered=self.ordered)
        if self.ordered:
            return clip(law, *self.bounds, self.width_)
        return cut(law, *self.bounds)

    def _believe_bounds(
        self,
        center: Float64Array,
        scale: Float64Array,
        p: Float64Array,
        share: Float64Array,
    ) -> None:
        """Take a suspected end as a bound if many targets were expected beyond it.

        None came. Had forecasts without the bound been right, so many as 5 would have
        stayed away by chance in 1 of 150 cases.
        """
        if not np.isfinite(self.limits.suspected).any():
            return
        curves = self.curves(p, self.builders[0])
        law = law_of_curves(center, scale, curves, self.base_, ordered=self.ordered)
        found = []
        for side, (end, own) in enumerate(
            zip(self.limits.suspected, self.bounds, strict=True)
        ):
            expected = 0.0
            if np.isfinite(end):
                beyond = law.levels(np.full((len(law), 1), end), left=side == 0)[side]
                expected = float(share @ beyond[:, 0])
            believed = expected >= _EXPECTED_BEYOND
            tighter = max(own, end) if side == 0 else min(own, end)
            found.append(tighter if believed else own)
        self.bounds = found[0], found[1]

    def _choose_builder(
        self,
        answers: tuple[Float64Array, Float64Array, Float64Array],
        y: Float64Array,
        weight: Float64Array,
    ) -> None:
        """Take the builder with the least loss out of fold on a sample of rows.

        The loss is the mean log score, ten times the logarithm of the mean CRPS (so
        that a percent of CRPS is worth a tenth of a nat), and 2 / n for each knot
        between the thresholds. For experts were calibrated on the same rows: a knot
        that follows their noise gains about 1 / n (Akaike 1974), and must do better.
        """
        self.builder_ = self.builders[0]
        if len(self.builders) == 1:
            return
        center, scale, p = answers
        first, last = self.base_.t(self.thresholds_[[0, -1]])
        for builder in current_progress().track(self.builders, len(self.builders)):
            curves = self.curves(p, builder)
            law = self._law(center, scale, curves)
            scores = -law.logpdf(y[:, None]), law.crps(y[:, None])
            missed, crps = np.average(np.hstack(scores), axis=0, weights=weight)
            n_knots = np.sum((first < curves.knots) & (curves.knots < last))
            loss = (
                missed
                + WEIGHT_OF_CRPS * np.log(crps)
                + _PRICE_OF_KNOTS * n_knots / self.n_
            )
            self.losses_[repr(builder)] = float(loss)
        best = min(self.losses_, key=self.losses_.__getitem__)
        self.builder_ = next(b for b in self.builders if repr(b) == best)


def _distinct_places(t: Float64Array) -> NDArray[np.intp]:
    """Return places of thresholds in t, the middle one of several that coincide.

    As some do where the greatest of few values is very far out: the marginal is then
    nearly a jump on its scale, and says nothing of what lies between them.
    """
    starts = np.flatnonzero(np.diff(t, prepend=-np.inf) > _LEAST_GAP)
    places: NDArray[np.intp] = (starts + np.append(starts[1:], len(t)) - 1) // 2
    return places


def atom_widths(
    atoms: Float64Array, rest: Float64Array, weight: Float64Array
) -> Float64Array:
    """Return the widths of atoms' cells, given the other targets and their weights.

    An atom has no density; the log score gives its probability a cell's width.

    Parameters
    ----------
    atoms : ndarray of shape (A,)
    rest, weight : ndarrays of shape (n,)

    Returns
    -------
    ndarray of shape (A,)
    """
    held = weight > 0.0
    rest, weight = rest[held], weight[held]
    low, high = np.quantile(rest, [0.25, 0.75], weights=weight, method="inverted_cdf")
    spread = high - low if high > low else float(np.ptp(rest)) or 1.0
    return np.full(len(atoms), _CELL_SHARE * spread)
