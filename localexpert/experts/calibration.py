"""Experts joined by weights, and one calibrator for each threshold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from calibration import (
    BaggedIsotonicCalibrator,
    BetaCalibrator,
    CenteredIsotonicCalibrator,
    IdentityCalibrator,
    IsotonicCalibrator,
    QuadraticCalibrator,
    ScoreCalibrator,
    ScoreSummary,
    TemperatureCalibrator,
    VennAbersCalibrator,
    calibrator_names,
    make_calibrator,
)
from calibration._validation import is_auto, refuse
from calibration.typing import Float64Array
from localexpert.data.blend import blend_weights
from localexpert.data.folds import (
    Sample,
    join_parts,
    known_folds,
    number_folds,
    renumber_folds,
)
from localexpert.data.learners import seeded
from localexpert.data.table import Table
from localexpert.experts.base import Experts
from localexpert.experts.report import TaskRecord, round_odds
from localexpert.experts.thresholds import threshold_widths
from localexpert.progress import current_progress

# A kind of calibrator is used only if it lowers the held-out log loss by this share,
# and by more than one standard error over folds.
_LEAST_GAIN = 1e-3
# A step map gives the probabilities 0 and 1. They only hold at its training rows.
HELD_OUT_CLIP = 1e-3
# Penalty of the quadratic, for log-odds that spread by this much or more. The penalty
# counts in their spread, so answers that hardly differ would get any slope, even a
# negative one. This happened where a few rows of each category know each other.
_RIDGE, _LEAST_SPREAD = 10.0, 0.5
# Calibrators whose maps never decrease, for any data.
_INCREASING: tuple[type[ScoreCalibrator], ...] = (
    BaggedIsotonicCalibrator,
    BetaCalibrator,
    CenteredIsotonicCalibrator,
    IdentityCalibrator,
    IsotonicCalibrator,
    TemperatureCalibrator,
    VennAbersCalibrator,
)


@dataclass(eq=False, repr=False)
class ExpertCalibration(BaseEstimator):
    """Calibrate the probabilities of all thresholds out of fold.

    Parameters
    ----------
    calibrator : str, ScoreCalibrator or None
        A name is one of `calibrator_names()`. "auto" chooses once per model, by
        held-out log loss, between no calibration and the quadratic on the logit. It
        takes the quadratic only if this is better by .1 % and by one standard error.
        None means no calibration.
    increasing : bool
        Whether calibrators must keep the order of rows. If so, "auto" tries the beta
        map instead of the quadratic, and calibrators that may decrease are refused.
    random_state : int
        Seed of calibrators that use random numbers, where they have none.

    Attributes
    ----------
    calibrated_ : ndarray of shape (n, n_thresholds)
        Each row is calibrated by a calibrator fitted on rows of other folds.
    calibrators_ : list of ScoreCalibrator
        One per threshold, fitted on all rows, for new data.
    chosen_ : str
        Name of the chosen kind.
    losses_ : dict of str to ndarray of shape (n_folds,)
        Each kind's held-out log loss per fold, mean over rows and thresholds.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.experts.calibration import ExpertCalibration
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=(1000, 1))
    >>> below = rng.uniform(size=(1000, 1)) < p**2
    >>> stage = ExpertCalibration().fit(p, below, np.arange(1000) % 5)
    >>> stage.chosen_
    'quadratic'
    """

    calibrator: Any = "auto"
    _: KW_ONLY
    increasing: bool = False
    random_state: int = 0
    calibrated_: Float64Array = field(init=False)
    calibrators_: list[ScoreCalibrator] = field(init=False)
    chosen_: str = field(init=False)
    losses_: dict[str, Float64Array] = field(init=False)

    def fit(
        self,
        probabilities: Float64Array,
        below: NDArray[np.bool_],
        fold: NDArray[np.int64],
        sample_weight: Float64Array | None = None,
        known: Sequence[Sequence[int]] | None = None,
    ) -> ExpertCalibration:
        """Choose the kind, calibrate training rows out of fold, and fit for new data.

        Parameters
        ----------
        probabilities : ndarray of shape (n, n_thresholds)
            Out-of-fold P(r <= v_k).
        below : ndarray of shape (n, n_thresholds)
            Whether r <= v_k.
        fold : ndarray of shape (n,)
            Number of the fold that holds each row.
        sample_weight : ndarray of shape (n,), optional
        known : sequence of sequences of int, optional
            For each fold, the folds that calibrate it (`known_folds`). If there are
            none, the fold is not calibrated. By default these are all other folds.

        Returns
        -------
        self
        """
        weight = np.ones(len(fold)) if sample_weight is None else sample_weight
        ridge = _RIDGE
        if is_auto(self.calibrator) and not self.increasing:
            ridge = _choose_ridge(probabilities, weight)
        kinds = self.kinds(ridge)
        rows = {int(number): fold == number for number in np.unique(fold)}
        held = {number: own for number, own in rows.items() if weight[own].any()}
        summaries = [
            {
                number: ScoreSummary.from_scores(p[own], is_below[own], weight[own])
                for number, own in held.items()
            }
            for p, is_below in zip(probabilities.T, below.T, strict=True)
        ]
        progress = current_progress()
        results, self.losses_ = {}, {}
        for name, kind in kinds.items():
            with progress.stage(name):
                p = _cross_fit(kind, probabilities, rows, known, summaries)
            loss = -np.log(np.clip(np.where(below, p, 1.0 - p), HELD_OUT_CLIP, 1.0))
            self.losses_[name] = np.array(
                [
                    np.average(loss[own].mean(axis=1), weights=weight[own])
                    for own in held.values()
                ]
            )
            results[name] = p
        self.chosen_ = choose_kind(self.losses_)
        self.calibrated_ = results[self.chosen_]
        with progress.stage("all rows"):
            self.calibrators_ = [
                fit_kind(kinds[self.chosen_], list(parts.values()))
                for parts in progress.track(summaries, len(summaries))
            ]
        return self

    def predict(self, probabilities: Float64Array) -> Float64Array:
        """Return calibrated probabilities of new rows.

        Parameters
        ----------
        probabilities : ndarray of shape (n, n_thresholds)

        Returns
        -------
        ndarray of shape (n, n_thresholds)
        """
        check_is_fitted(self)
        out = np.empty_like(probabilities)
        for k, calibrator in enumerate(self.calibrators_):
            # The scores of experts are sound, and checks take longer than a row.
            out[:, k] = calibrator._predict(probabilities[:, k])
        return out

    def choices(self) -> dict[str, Any]:
        """Return the choice and the mean losses, ready for JSON.

        Returns
        -------
        dict of str to object
        """
        means = {name: float(loss.mean()) for name, loss in self.losses_.items()}
        return {"chosen": self.chosen_, "losses": means}

    def kinds(self, ridge: float = _RIDGE) -> dict[str, ScoreCalibrator]:
        """Return the candidates by name. "No calibration" comes first if it is one.

        Parameters
        ----------
        ridge : float
            Penalty of the quadratic.

        Returns
        -------
        dict of str to ScoreCalibrator
            Unfitted.
        """
        check_calibrator(self.calibrator)
        given = self.calibrator
        if given is None:
            return {"identity": IdentityCalibrator()}
        if is_auto(given):
            smooth = BetaCalibrator() if self.increasing else None
            return {
                "identity": IdentityCalibrator(),
                "beta" if smooth else "quadratic": smooth or QuadraticCalibrator(ridge),
            }
        named, name = isinstance(given, str), type(given).__name__
        kind = make_calibrator(given, random_state=None) if named else given
        increases = type(kind) in _INCREASING and getattr(kind, "method", "ml") == "ml"
        if self.increasing and not increases:
            names = ", ".join(one.__name__ for one in _INCREASING)
            msg = (
                f'`calibrator` must be None, "auto" or one of {names} (of maximum '
                f"likelihood), to keep the order of `monotone`, got {given!r}."
            )
            raise ValueError(msg)
        return {given if named else name: seeded(kind, self.random_state)}


def _choose_ridge(probabilities: Float64Array, weight: Float64Array) -> float:
    """Return the quadratic's penalty for answers, shape (n, n_thresholds)."""
    x = logit(np.clip(probabilities, HELD_OUT_CLIP, 1.0 - HELD_OUT_CLIP))
    share = weight / weight.sum()
    variance = float((share @ (x - share @ x) ** 2).mean())
    return _RIDGE * max(1.0, _LEAST_SPREAD**2 / max(variance, 1e-6))


def check_calibrator(calibrator: Any) -> None:
    """Refuse anything that cannot calibrate the probabilities of a threshold."""
    named = isinstance(calibrator, str) and calibrator in calibrator_names()
    if isinstance(calibrator, ScoreCalibrator):
        calibrator._check_parameters()
    elif calibrator is not None and not named:
        names = ", ".join(repr(name) for name in calibrator_names())
        rule = f"be None, one of {names} or a ScoreCalibrator"
        refuse("calibrator", rule, repr(calibrator))


def fit_kind(kind: ScoreCalibrator, parts: list[ScoreSummary]) -> ScoreCalibrator:
    """Fit on the sum of the parts. If they hold one class or score, do not calibrate.

    Parameters
    ----------
    kind : ScoreCalibrator
        Unfitted.
    parts : list of ScoreSummary

    Returns
    -------
    ScoreCalibrator
    """
    whole = reduce(ScoreSummary.merge, parts)
    learnable = whole.n0 > 0.0 and whole.n1 > 0.0 and whole.n_cells > 1
    calibrator: ScoreCalibrator = clone(kind) if learnable else IdentityCalibrator()
    return calibrator.fit_summary(whole)


def _cross_fit(
    kind: ScoreCalibrator,
    probabilities: Float64Array,
    rows: dict[int, NDArray[np.bool_]],
    known: Sequence[Sequence[int]] | None,
    summaries: list[dict[int, ScoreSummary]],
) -> Float64Array:
    """Calibrate each row with a calibrator of the folds that its own fold may know."""
    if isinstance(kind, IdentityCalibrator):
        return probabilities
    out = probabilities.copy()
    for k, folds in enumerate(current_progress().track(summaries, len(summaries))):
        for number, own in rows.items():
            # Summaries merge exactly. So to leave a fold out, add up the others.
            allowed = {*(folds if known is None else known[number])} - {number}
            rest = [folds[f] for f in folds if f in allowed]
            if rest:
                out[own, k] = fit_kind(kind, rest).predict(probabilities[own, k])
    return out


def choose_kind(losses: dict[str, Float64Array]) -> str:
    """Return the first name unless another is clearly better.

    Parameters
    ----------
    losses : dict of str to ndarray of shape (n_folds,)

    Returns
    -------
    str
    """
    names = list(losses)
    best = min(names, key=lambda name: losses[name].mean())
    # Compare fold by fold, because a hard fold is hard for all kinds.
    gains = losses[names[0]] - losses[best]
    error = gains.std(ddof=1) / np.sqrt(len(gains)) if len(gains) > 1 else 0.0
    enough = gains.mean() > max(error, _LEAST_GAIN * losses[names[0]].mean())
    return best if enough else names[0]


# At most about this many pairs of a probability and an outcome tell what calibration
# can gain.
_PAIRS = 100_000
# One calibrator is fitted for each threshold and part. With few parameters it loses
# little if it has a few rows less.
_MOST_PARTS = 5
# New rows do not have a part of the members' out-of-fold noise (`spared_`). This many
# times that part is taken off their out-of-fold loss. With once, CRPS was .3 % smaller
# on concrete and .9 % on yacht. With this number it was 1.1 and 2.3 % smaller there,
# and .5 % on energy.
_SPARED = 3.0


@dataclass(eq=False)
class CalibratedExperts:
    """Strategies joined with non-negative weights, then calibrated at each threshold.

    Parameters
    ----------
    members : mapping of str to Experts
        Unfitted strategies by name. Those without a seed get that of `calibration`.
    calibration : ExpertCalibration
        Unfitted.

    Attributes
    ----------
    fitted_ : dict of str to Experts
    weights_ : dict of str to float
        Shares of the members; those below 5 % are left out.
    losses_ : dict of str to float
        Out-of-fold integrated Brier score of each member. This is its CRPS, except for
        the pieces between thresholds.
    pooled_ : ndarray of shape (m, N)
        Pooled answers of the members for the judged rows. Only kept until `calibrate`.
    tasks_ : TaskRecord
        Out-of-fold answers for the m judged rows, before and after calibration.
    """

    members: Mapping[str, Experts]
    calibration: ExpertCalibration

    def ask(
        self, sample: Sample, thresholds: Float64Array, importance: Float64Array
    ) -> None:
        """Fit the strategies and their weights.

        Parameters
        ----------
        sample : Sample
            Of n rows.
        thresholds : ndarray of shape (N,)
        importance : ndarray of shape (n,)
            Weight of each row in the score. This is the scale of the row.
        """
        self.fitted_: dict[str, Experts] = {}
        with current_progress().stage("experts"):
            for name, member in self.members.items():
                with current_progress().stage(name):
                    own = seeded(member, self.calibration.random_state, deep=False)
                    self.fitted_[name] = own.fit(
                        sample.table, sample.y, thresholds, sample.folds, sample.weight
                    )
        # The CRPS is the integral of the Brier score over thresholds (Hersbach 2000).
        # `importance` turns the coordinate of the frame back into units of y.
        weight, below = _outcomes(sample, thresholds)
        widths = threshold_widths(thresholds, sample.y, sample.weight)
        cost = np.outer(weight * importance[sample.judged], widths)
        answers, spared, self.losses_ = {}, {}, {}
        for name, fitted in self.fitted_.items():
            # They are pooled below. Keeping them too would make a large model twice as
            # large.
            p = fitted.oof_probabilities_
            if not getattr(fitted, "out_of_bag", False):
                p = _at_common_rates(p, below, sample)
            answers[name] = p
            del fitted.oof_probabilities_
            noise = float((cost * p * (1.0 - p)).sum())
            spared[name] = _SPARED * fitted.spared_ * noise
            self.losses_[name] = float((cost * (p - below) ** 2).sum() / weight.sum())
        self.weights_ = blend_weights(answers, below, cost, spared=spared)
        self.fitted_ = {name: self.fitted_[name] for name in self.weights_}
        self.pooled_ = self._join(answers)
        self._asked = sample, thresholds, importance

    def estimate_loss(self) -> float:
        """Estimate how good the strategies can be, before they are calibrated.

        Returns
        -------
        float
            The CRPS between the outermost thresholds, calibrated by one quadratic on
            the logit for all thresholds.
        """
        sample, thresholds, importance = self._asked
        weight, below = _outcomes(sample, thresholds)
        # Take pairs from all over the rows, because rows may be sorted.
        places = np.flatnonzero(weight)
        places = places[:: 1 + places.size * len(thresholds) // _PAIRS]
        plain, below = weight[places], below[places]
        weight = plain * importance[sample.judged[places]]
        if not weight.any():
            return 0.0
        p = self.pooled_[places]
        pairs = p.ravel(), below.ravel(), np.repeat(weight, len(thresholds))
        p = QuadraticCalibrator(1.0).fit(*pairs).predict(pairs[0]).reshape(p.shape)
        widths = threshold_widths(thresholds, sample.y, sample.weight)
        return float(weight @ ((p - below) ** 2 @ widths) / plain.sum())

    def calibrate(self) -> None:
        """Fit the calibrators on the answers."""
        sample, thresholds, _ = self._asked
        raw = self.pooled_
        folds = renumber_folds(sample.folds, sample.judged, len(sample))
        weight, below = _outcomes(sample, thresholds)
        parts = number_folds(folds, len(raw)), known_folds(folds, len(raw))
        number, known = join_parts(*parts, _MOST_PARTS)
        with current_progress().stage("calibration"):
            self.calibration.fit(raw, below, number, weight, known)
        calibrated = self.calibration.calibrated_
        # The record keeps these, so drop the other copy.
        del self.pooled_, self.calibration.calibrated_, self._asked
        kept = round_odds(raw)
        rounded = kept if calibrated is raw else round_odds(calibrated)
        self.tasks_ = TaskRecord(thresholds, kept, rounded, below, folds, weight)

    def predict(self, table: Table) -> Float64Array:
        """Return calibrated probabilities of new rows, shape (n, N)."""
        answers = {name: one.predict(table) for name, one in self.fitted_.items()}
        return self.calibration.predict(self._join(answers))

    def choices(self) -> dict[str, Any]:
        """Return what was chosen, and what the alternatives scored."""
        return {
            "experts": {"weights": self.weights_, "losses": self.losses_},
            "calibration": self.calibration.choices(),
        }

    def _join(self, answers: Mapping[str, Float64Array]) -> Float64Array:
        parts = [w * answers[name] for name, w in self.weights_.items()]
        # Weights may sum to a little more than 1, and all members may answer 1.
        return np.asarray(np.minimum(np.sum(parts, axis=0), 1.0))


def _at_common_rates(
    p: Float64Array, below: NDArray[np.bool_], sample: Sample
) -> Float64Array:
    """Return answers of folds, moved to the base rates of all rows.

    If a fold has many events, its training rows have few. So answers of low skill are
    low where events are many, and a calibrator learns to turn them round: then each
    row is told the rate of its own fold. New rows get nothing of this.
    """
    if not sample.is_whole:
        # Such folds often follow time, and may not know the rates of later rows.
        return p

    def odds(weight: Float64Array) -> Float64Array:
        # A difference of sums would leave rounding where all rows are of one class.
        return np.asarray((weight @ below) / (weight @ ~below))

    out = np.empty_like(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = odds(sample.weight)
    for train, test in sample.folds:
        weight = np.zeros(len(p))
        weight[train] = sample.weight[train]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = whole / odds(weight)
        # A fold that trains on one class has no odds to start from.
        more = p[test] * np.where(np.isfinite(ratio) & (ratio > 0.0), ratio, 1.0)
        out[test] = more / (more + (1.0 - p[test]))
    return out


def _outcomes(
    sample: Sample, thresholds: Float64Array
) -> tuple[Float64Array, np.ndarray[tuple[int, int], np.dtype[np.bool_]]]:
    """Return the weights of judged rows, and whether each lies below each threshold."""
    judged = sample.judged
    return sample.weight[judged], sample.y[judged, None] <= thresholds
