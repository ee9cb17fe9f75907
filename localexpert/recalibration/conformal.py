"""`ConformalRecalibration`: a map of CDFs with guaranteed coverage on average."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from calibration import CalibrationWarning
from calibration._validation import check_integer, is_auto, make_rng, refuse
from calibration.typing import Float64Array
from localexpert.data.folds import Fold, Rows
from localexpert.law.basis import harmonic_slopes
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap, map_levels
from localexpert.law.steps import draw_shares
from localexpert.recalibration.pit import PitRecalibration, Recalibration

# Scores nearer to each other than this count as one.
_LEAST_GAP = 1e-6
# Score of a value that a forecast holds impossible: no level has this score.
_FURTHEST = 38.0
# A row so many deviations out is one in two millions. If a share of the rows lies so
# far out, forecasts are much too narrow.
_FAR, _MANY, _FEWEST = 5.0, 0.01, 10
_GREATEST = 1e6
# Rows beyond either outer knot.
_LEAST_OUTSIDE = 2.0


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows with weight that no fit has seen, sorted by their PIT values.

    Parameters
    ----------
    law : Law
        The law of m rows before any correction.
    y, weight : ndarrays of shape (m,)
    scores : ndarray of shape (m,)
        Phi^-1 of the PIT values, finite and not falling.
    """

    law: Law
    y: Float64Array
    weight: Float64Array
    scores: Float64Array

    @classmethod
    def of(
        cls, law: Law, y: Float64Array, weight: Float64Array, random_state: int | None
    ) -> HeldOut:
        """Sort rows; PIT values are drawn inside the jumps of CDFs.

        Warns
        -----
        CalibrationWarning
            If many rows lie far out.
        """
        share = draw_shares(random_state, (len(y), 1))
        scores = law.scores(y[:, None], share)[:, 0]
        held = np.flatnonzero(weight > 0.0)
        order = held[np.argsort(scores[held], kind="stable")]
        scores = scores[order]
        far = int((np.abs(scores) > _FAR).sum())
        if far >= _FEWEST and far > _MANY * len(scores):
            msg = (
                f"{far / len(scores):.0%} of the calibration rows lie more than "
                f"{_FAR:g} deviations out: the forecasts are much too narrow. Beyond "
                "the outermost rows the correction is a guess."
            )
            warnings.warn(msg, CalibrationWarning, stacklevel=4)
        known = scores[np.isfinite(scores)]
        most = max(_FURTHEST, 1.0 + float(np.abs(known).max(initial=0.0)))
        scores = scores.clip(-most, most)
        return cls(law.take(order), y[order], weight[order], scores)

    @property
    def ties(self) -> int:
        """Number of rows in the longest run of equal scores, less one."""
        return int(np.diff(run_starts(self.scores), append=len(self.y)).max()) - 1

    def reading_error(self, levels: LevelMap) -> float:
        """Return the greatest difference between G(F(y)) and the corrected CDF at y.

        It is not 0, because the corrected curves are read anew at some scores only.
        """
        # If F jumps at y, take both ends of the jump.
        y, ends = self.y[:, None], np.array([[0.0, 1.0]])
        before = np.clip(self.law.scores(y, ends), -_GREATEST, _GREATEST)
        after = map_levels(self.law, levels).scores(y, ends)
        return float(np.abs(ndtr(levels.forward(before)[0]) - ndtr(after)).max())


def run_starts(scores: Float64Array) -> NDArray[np.intp]:
    """Return where runs of equal scores begin; the scores must not fall."""
    return np.flatnonzero(np.diff(scores, prepend=-np.inf) > _LEAST_GAP)


def outer_shares(n_rows: float) -> Float64Array:
    """Return the shares of an outer gap of so many rows at which to put more knots.

    Beyond the outer knots a map cannot bend. So the levels of usual intervals should
    lie between knots.
    """
    n_halves = int(np.log2(max(n_rows / _LEAST_OUTSIDE, 1.0)))
    return np.asarray(0.5 ** np.arange(n_halves, 0, -1))


def curve_through(knots: Float64Array, levels: Float64Array) -> LevelMap:
    """Return the map through (Phi(knots), levels), both of shape (m,) and increasing.

    Slopes are weighted harmonic means of the chords (Fritsch & Butland, 1984), so h
    increases.
    """
    z = ndtri(levels)
    # On the pieces between knots and tails the chords have slope 1.
    h = np.concatenate([[1.0], np.diff(knots), [1.0]])
    chords = np.concatenate([[1.0], np.diff(z) / np.diff(knots), [1.0]])
    return LevelMap.through(knots, z, harmonic_slopes(h, chords))


# Fewest rows for a map.
_LEAST_ROWS = 20
# Share of the rows that is set aside, and fewest rows in either part.
_SHARE, _LEAST_PART = 0.2, 50


class ConformalRecalibration(Recalibration):
    r"""A map through order statistics of held-out PIT values, with a guarantee.

    It is fitted on m calibration rows that nothing else has seen, with PIT values
    u_(1) < ... < u_(m). G passes through (u_(j), j / (m + 1)) for ranks j that are at
    most k apart. More ranks at either end halve the outer gap, again and again, down to
    two rows. G increases smoothly between these points.

    Parameters
    ----------
    largest_gap : "auto" or int
        The k below. "auto": the least integer that is not below sqrt(m + 1). The noise
        of the density then costs about 1 / (2 sqrt(m)) nats of log score.
    random_state : int, optional
        Draws PIT values inside the jumps of CDFs.

    Attributes
    ----------
    map_, oof_map_ : LevelMap
        The same map twice, because it has learned from no training row.
    bound_ : float
        (k + t) / (m + 1) + e. Here k is the largest gap between ranks, t the number of
        rows, less one, that share a PIT value, and e the error of reading curves anew.

    Notes
    -----
    Let (X, Y) and the calibration rows be exchangeable, F_X the law of a regressor
    that saw none of them, and let ties among PIT values have probability 0. Then the
    quantiles Q(a) of the recalibrated law satisfy, for every level a,

    .. math:: |P(Y \le Q(a)) - a| \le k / (m + 1),

    and with 0 in place of the right side at the levels j / (m + 1) of the ranks.
    Proof: V = F_X(Y) and the u_i are exchangeable without ties, so P(V <= u_(j)) =
    j / (m + 1). Y <= Q(a) is V <= G^-1(a). G increases, so for neighbouring ranks
    i < j with i / (m + 1) <= a <= j / (m + 1) (0 and m + 1 count as ranks, u = 0 and
    1) G^-1(a) lies between u_(i) and u_(j), and P(V <= G^-1(a)) between i / (m + 1)
    and j / (m + 1), as a does; these are at most k / (m + 1) apart.

    The probability is over the calibration rows and (X, Y): coverage holds on average
    over x, not at each x. If F_X has jumps, V is drawn uniformly between P(Y' < Y) and
    P(Y' <= Y), and the same proof gives

    .. math:: P(Y < Q(a)) - k / (m + 1) \le a \le P(Y \le Q(a)) + k / (m + 1).

    Rows of weight 0 are left out. With weights other than 0 and 1, or with dependence
    within groups, rows are not exchangeable.
    PIT values may be equal, such as those of outcomes that forecasts hold impossible.
    All of their ranks lie in one step of the map, and `bound_` counts them. New curves
    are read at some levels and are not exact between them. So `bound_` also counts the
    greatest difference, over the calibration rows, between G(F(y)) and the CDF of the
    corrected forecast at y.

    References
    ----------
    Vovk, Gammerman & Shafer (2005), Algorithmic learning in a random world; Vovk,
    Shen, Manokhin & Xie (2019), Nonparametric predictive distributions based on
    conformal prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.recalibration.conformal import ConformalRecalibration
    >>> y = np.random.default_rng(0).choice(3, size=399, p=[0.1, 0.2, 0.7])
    >>> rows = np.tile([0.3, 0.4, 0.3], (399, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[0, 1, 2], masses=rows)
    >>> recalibration = ConformalRecalibration(random_state=0).fit(dist, y)
    >>> round(recalibration.bound_, 6)
    0.05
    >>> bool(recalibration.apply(dist).masses[0, 2] > 0.6)
    True
    """

    holds_out = True

    def __init__(
        self,
        largest_gap: int | Literal["auto"] = "auto",
        *,
        random_state: int | None = None,
    ):
        self.largest_gap = largest_gap
        self.random_state = random_state

    def _learn(
        self, law: Law, y: Float64Array, weight: Float64Array, folds: list[Fold] | None
    ) -> None:
        del folds  # none of these rows is forecast again
        total = float(weight.sum()) + 1.0
        # Weights count as rows, but a row of weight 30 is still one order statistic.
        n_held = min(float((weight > 0.0).sum()), total - 1.0)
        if n_held < _LEAST_ROWS:
            refuse("y", f"have at least {_LEAST_ROWS} calibration rows", f"{n_held:g}")
        gap = self.largest_gap
        gap = int(np.ceil(np.sqrt(total))) if isinstance(gap, str) else gap
        if 2 * gap > total:
            rule = "be at most half the number of calibration rows and one"
            refuse("largest_gap", rule, f"{gap} for {total - 1.0:g} rows")
        n_pieces = int(np.ceil(total / gap))
        ranks = np.round(np.arange(1, n_pieces) * total / n_pieces)
        outer = np.round(ranks[0] * outer_shares(ranks[0]))
        ranks = np.concatenate([outer, ranks, total - outer[::-1]])
        rows = HeldOut.of(law, y, weight, self.random_state)
        place = np.searchsorted(np.cumsum(rows.weight), ranks - 1e-9 * total)
        knots = rows.scores[np.minimum(place, len(rows.y) - 1)]
        first = run_starts(knots)
        means = np.add.reduceat(ranks, first) / np.diff(first, append=len(knots))
        self.map_ = self.oof_map_ = curve_through(knots[first], means / total)
        most = float(np.diff(ranks, prepend=0.0, append=total).max()) + rows.ties
        self.bound_ = min(most / total + rows.reading_error(self.map_), 1.0)

    def choices(self) -> dict[str, Any]:
        """Return the bound on the error of coverage.

        Returns
        -------
        dict
            Ready for JSON.
        """
        return {"kind": "conformal", "bound": self.bound_}

    def _check_parameters(self) -> None:
        gap = self.largest_gap
        if not isinstance(gap, str):
            check_integer(gap, "largest_gap", 1)
        elif not is_auto(gap):
            refuse("largest_gap", 'be "auto" or an integer', f"{gap!r}")


def make_recalibration(recalibrate: Any, seed: int | None) -> Recalibration | None:
    """Return a new unfitted recalibration for the parameter `recalibrate`."""
    if recalibrate is None:
        return None
    if isinstance(recalibrate, Recalibration):
        recalibrate._check_parameters()
        own = deepcopy(recalibrate)
        if getattr(own, "random_state", seed) is None:
            own.random_state = seed  # type: ignore[attr-defined]
        return own
    named = {"pit": PitRecalibration, "conformal": ConformalRecalibration}
    if not isinstance(recalibrate, str) or recalibrate not in named:
        rule = 'be None, "pit", "conformal" or a Recalibration'
        refuse("recalibrate", rule, f"{recalibrate!r}")
    made: Recalibration = named[recalibrate](random_state=seed)
    return made


def set_aside(
    weight: Float64Array, cv: Any, groups: ArrayLike | None, seed: int | None
) -> tuple[Rows, Rows]:
    """Return rows to fit on, and rows with weight to recalibrate on.

    A fifth of the rows is set aside, 50 at least. Groups are set aside as a whole,
    until they hold the share.
    """
    if not hasattr(cv, "split") and not isinstance(cv, str | Integral):
        rule = 'be "auto", a number or a splitter where `recalibrate` sets rows aside'
        refuse("cv", rule, "folds of all rows")
    present = np.flatnonzero(weight)
    n = len(present)
    if n < 2 * _LEAST_PART:
        rule = f"have at least {2 * _LEAST_PART} rows with weight"
        refuse("y", f"{rule} where `recalibrate` sets rows aside", n)
    labels = np.arange(n)
    if groups is not None:
        labels = np.unique(np.asarray(groups)[present], return_inverse=True)[1]
    order = make_rng(seed).permutation(labels.max() + 1)
    sizes = np.cumsum(np.bincount(labels)[order])
    wanted = max(int(np.ceil(_SHARE * n)), _LEAST_PART)
    is_aside = np.isin(labels, order[: int(np.searchsorted(sizes, wanted)) + 1])
    n_aside = int(is_aside.sum())
    if min(n_aside, n - n_aside) < _LEAST_PART:
        parted = f"{_LEAST_PART} to fit and {_LEAST_PART} to recalibrate"
        got = f"{n} rows, of which {n_aside} would recalibrate"
        refuse("groups", f"be of sizes that can be parted, {parted}", got)
    aside = present[is_aside]
    return np.setdiff1d(np.arange(len(weight)), aside), aside
