"""What outcomes say of forecasts: scores beside baselines, and tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, xlogy
from scipy.stats import binomtest, chi2, kstest, norm, ttest_1samp

from calibration.typing import Float64Array
from localexpert.curves.base_cdf import BaseCDF, law_of_curves
from localexpert.data.table import Table
from localexpert.data.target_values import count_values
from localexpert.data.training_rows import draw_evenly
from localexpert.distribution.answers import ExpectedMean, mean_of_sums
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.distribution.predictors import open_same
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap
from localexpert.law.steps import merge_near_values
from localexpert.learn.values import Support
from localexpert.metrics import crps_score, interval_coverage, log_score, pit_test
from localexpert.partial.scores import (
    concordance_index,
    crps_losses,
    d_calibration_test,
    log_losses,
)
from localexpert.regressor.regressor import LocalExpertRegressor

# A report names a difference if chance makes as much or more less often than this.
SIGNIFICANT = 0.01
# Tests see only gross faults in fewer rows.
VERY_FEW = 30
# Rounds of the boosted baseline, and the share of training rows that end them.
_MOST_ROUNDS, _PATIENCE, _HELD_OUT = 500, 25, 0.2
# Standard errors to the end of an interval of 95 %.
_ERRORS = float(ndtri(0.975))


@dataclass(frozen=True)
class Scores:
    """Means over rows; None where a forecast says too little to be scored.

    Parameters
    ----------
    crps, log_score : float or None
    quantile_loss : float or None
        Mean pinball loss over the levels.
    rmse : float or None
        Root mean squared error of the mean.
    mae : float or None
        Mean absolute error of the median.
    coverage, width : float
        Of the central interval.
    concordance : float or None
        Harrell's, of right-censored targets.
    pit_test, d_calibration : float or None
        p-values of both tests, of targets known in part.
    """

    crps: float | None
    log_score: float | None
    quantile_loss: float | None
    rmse: float | None
    mae: float | None
    coverage: float
    width: float
    concordance: float | None = None
    pit_test: float | None = None
    d_calibration: float | None = None

    @classmethod
    def of(
        cls, y: Float64Array, dist: PredictiveDistribution, coverage: float
    ) -> Scores:
        """Score whole distributions of outcomes (n,), or of their ends (n, 2)."""
        if y.ndim == 2:
            lower, known = y[:, 0], y[:, 0] == y[:, 1]
            right = is_right_censored(y)
            # A pair of rows has an order if one is known, and the other one is greater.
            first = lower[known].min(initial=np.inf)
            ordered = right and ((lower > first) | ((lower == first) & ~known)).any()
            crps = crps_score(y, dist) if right else None
            order = concordance_index(y, dist) if ordered else None
            share = interval_coverage(y, dist, coverage=coverage)
            width = float(np.mean(np.diff(dist.interval(coverage))))
            p = pit_test(y, dist)[1], d_calibration_test(y, dist)[1]
            return cls(
                crps, log_score(y, dist), None, None, None, share, width, order, *p
            )
        quantiles = dist.quantiles(levels_for(coverage))
        return replace(
            cls.of_quantiles(y, dist.mean(), quantiles, coverage),
            crps=crps_score(y, dist),
            log_score=log_score(y, dist),
            coverage=interval_coverage(y, dist, coverage=coverage),
        )

    @classmethod
    def of_quantiles(
        cls,
        y: Float64Array,
        mean: Float64Array,
        quantiles: Float64Array,
        coverage: float,
    ) -> Scores:
        """Score means (n,) and quantiles (n, q) at `levels_for(coverage)`."""
        levels = np.array(levels_for(coverage))
        miss = y[:, None] - quantiles
        low, high = quantiles[:, 0], quantiles[:, -1]
        return cls(
            crps=None,
            log_score=None,
            quantile_loss=float(np.maximum(levels * miss, (levels - 1) * miss).mean()),
            rmse=float(np.sqrt(np.mean((y - mean) ** 2))),
            mae=float(np.mean(np.abs(miss[:, levels == 0.5]))),
            coverage=float(np.mean((low <= y) & (y <= high))),
            width=float(np.mean(high - low)),
        )

    def skill(self, name: str, other: Scores | None) -> float | None:
        """Return the share of another's loss that is saved; of the log score how much.

        None where there is no loss to save, or none is known.
        """
        ours, theirs = getattr(self, name), getattr(other, name, None)
        if ours is None or theirs is None or not np.isfinite(theirs):
            return None
        if name == "log_score":
            return float(theirs - ours)
        return 1.0 - ours / theirs if theirs > 0.0 else None


def is_right_censored(y: Float64Array) -> bool:
    """Say whether all targets, (n,) or ends (n, 2), are known or right-censored."""
    lower, upper = (y, y) if y.ndim == 1 else y.T
    return bool(((lower == upper) | (lower > -np.inf) & (upper == np.inf)).all())


def row_losses(y: Float64Array, dist: PredictiveDistribution) -> Float64Array:
    """Return losses (n,) whose mean is the CRPS, or of intervals the log score."""
    right = is_right_censored(y)
    return crps_losses(y, dist, None, np.ones(len(y))) if right else log_losses(y, dist)


def levels_for(coverage: float) -> list[float]:
    """Return the levels of scored quantiles: the interval's ends outermost."""
    tail = 0.5 * (1.0 - coverage)
    inner = [level for level in (0.25, 0.75) if tail < level < 1.0 - tail]
    return sorted({tail, *inner, 0.5, 1.0 - tail})


def gain_p_value(before: Float64Array | None, after: Float64Array) -> float | None:
    """Return the p-value of no gain of one loss over another (n,).

    Diebold & Mariano (1995) for independent rows, with Student's law as in Harvey,
    Leybourne & Newbold (1997), for rows may be few. None where there is no test.
    """
    if before is None or len(after) < 2 or not np.isfinite([before, after]).all():
        return None
    if np.std(before - after) == 0.0:
        return None
    return float(ttest_1samp(before - after, 0.0).pvalue)


@dataclass(frozen=True, eq=False)
class Training:
    """Targets of training rows, and honest forecasts of them.

    Parameters
    ----------
    y, weight : ndarrays of shape (m,)
    oof : PredictiveDistribution or None
        Out of fold, of the same rows; None if they were given, not kept by the model.
    discrete : bool
        Whether every value is a case of its own.
    """

    y: Float64Array
    weight: Float64Array
    oof: PredictiveDistribution | None
    discrete: bool

    @property
    def held(self) -> Float64Array:
        """Targets of some weight."""
        return self.y[self.weight > 0.0]

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest target, wider by what rounding may have taken."""
        low, high = float(self.held.min()), float(self.held.max())
        slack = 1e-9 * max(abs(low), abs(high), high - low)
        return low - slack, high + slack

    def draw(self, values: Float64Array) -> Float64Array:
        """Return what stands for values of the rows held in tests without weights."""
        return draw_evenly(values, self.weight[self.weight > 0.0])


def recall_training(model: Any) -> Training | None:
    """Return what a regressor of ours keeps of its training; None for other models."""
    model = open_same(model, pipelines=True)
    if not isinstance(model, LocalExpertRegressor):
        return None
    # A constant target has no report.
    report = getattr(model, "report_", None)
    discrete = report is None or report.target == "discrete"
    held = model.oof_targets_, model.oof_weights_, model.oof_distribution_
    return Training(*held, discrete)


def climatology_of(
    model: Any, sample: Training | None = None
) -> PredictiveDistribution:
    """Return the distribution of training targets: one row, the forecast to beat.

    It is of the same kind as the forecasts of the model: values of a discrete target
    that were not met have their part, atoms the cells of the model's, so that log
    scores compare.

    Parameters
    ----------
    model : fitted model
    sample : Training, optional
        By default what a regressor of ours keeps.
    """
    training = recall_training(model) if sample is None else sample
    assert training is not None
    inner = open_same(model, pipelines=True)
    report = getattr(inner, "report_", None)
    values, weights = count_values(
        merge_near_values(training.y, training.weight), training.weight
    )
    atoms = widths = np.empty(0)
    if isinstance(inner, LocalExpertRegressor) and report is not None:
        if report.target == "mixed":
            parts = inner.forecaster_.oof_law_.take(slice(0, 1))
            atoms, widths = parts.atoms, parts.widths
        elif report.target == "discrete":
            support = Support.of(values, weights, inner.bounds_)
            values, weights = support.values, weights @ support.shares
    share = weights / weights.sum()
    if training.discrete or len(values) < 2:
        return PredictiveDistribution(Law.discrete(values, share[None]))
    rest = ~np.isin(values, atoms)
    base = BaseCDF.fit(values[rest], weights[rest])
    law = law_of_curves(np.zeros(1), np.ones(1), LevelMap.line(0.0), base)
    if len(atoms):
        law = Law(law.curve, atoms, share[~rest][None], widths)
    return PredictiveDistribution(law)


def boosted_quantiles(
    X_train: Any, y: Float64Array, X: Any, coverage: float, seed: int
) -> tuple[Float64Array, Float64Array]:
    """Return means (n,) and quantiles (n, q) of rows by LightGBM, a model for each.

    A fifth of the training rows says when to stop. Quantiles that cross are sorted.
    """
    import lightgbm as lgb

    reader = Table.of(X_train).reader
    train, new = (reader.read(one).codes for one in (X_train, X))
    order = np.random.default_rng(seed).permutation(len(y))
    held, rest = np.split(order, [max(1, round(_HELD_OUT * len(y)))])
    common: dict[str, Any] = {
        "verbosity": -1,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "learning_rate": 0.05,
        "num_leaves": 15,
        "min_data_in_leaf": int(np.clip(len(y) // 20, 1, 20)),
        "min_data_in_bin": 1,
        "seed": seed,
    }
    found: list[Any] = []
    for level in (None, *levels_for(coverage)):
        loss = {} if level is None else {"objective": "quantile", "alpha": level}
        named: dict[str, Any] = {"categorical_feature": reader.categories}
        part = lgb.Dataset(train[rest], y[rest], **named)
        test = lgb.Dataset(train[held], y[held], reference=part, **named)
        stop = lgb.early_stopping(_PATIENCE, verbose=False)
        how = common | loss
        booster = lgb.train(how, part, _MOST_ROUNDS, [test], callbacks=[stop])
        found.append(booster.predict(new, num_threads=1))
    return found[0], np.sort(np.column_stack(found[1:]), axis=1)


@dataclass(frozen=True)
class CoverageTest:
    """How many of n outcomes lay in their intervals, and how many should.

    Parameters
    ----------
    n : int
    inside : int
        Outcomes between the ends of their intervals, or on them.
    hits : float
        The same corrected for jumps: of a value with probability of its own, or of an
        outcome known in part, the share that the interval takes. Right forecasts have
        `coverage` of these.
    coverage : float
        Nominal.
    unsure : int
        Further outcomes, known in part, that may be inside.
    """

    n: int
    inside: int
    hits: float
    coverage: float
    unsure: int = 0

    @property
    def literal(self) -> float:
        """Share of outcomes between the ends of their intervals, at least."""
        return self.inside / self.n

    @property
    def share(self) -> float:
        """Share of outcomes that is covered, corrected for jumps."""
        return self.hits / self.n

    @property
    def p_value(self) -> float:
        """Probability of a share at least as unlikely if forecasts were right.

        Where outcomes are covered in part, the sum varies less than the binomial law
        says (Hoeffding 1956), so the test errs on the side of silence.
        """
        return float(binomtest(round(self.hits), self.n, self.coverage).pvalue)

    @property
    def verdict(self) -> Literal["right", "narrow", "wide"]:
        """What the intervals are, as far as the outcomes tell; of one, nothing."""
        if self.n == 1 or self.p_value >= SIGNIFICANT:
            return "right"
        return "narrow" if self.share < self.coverage else "wide"


@dataclass(frozen=True, eq=False)
class Calibration:
    """Tests of the intervals and of the PIT values, in one voice.

    Parameters
    ----------
    test : CoverageTest
    pit : ndarray of shape (n,)
        PIT values.
    """

    test: CoverageTest
    pit: Float64Array

    @cached_property
    def flat_p(self) -> float:
        """p-value of a flat histogram of PIT values (Kolmogorov-Smirnov)."""
        return float(kstest(self.pit, "uniform").pvalue)

    @cached_property
    def moments(self) -> list[tuple[str, float]]:
        """What PIT values lean to, and the p-value, by their first two moments.

        The mean of n uniform values has variance 1 / 12n; the mean of their squared
        distances from 1/2 has mean 1/12 and variance 1 / 180n.
        """
        n = len(self.pit)
        lean = (self.pit.mean() - 0.5) * np.sqrt(12.0 * n)
        square = np.mean((self.pit - 0.5) ** 2)
        spread = (square - 1.0 / 12.0) * np.sqrt(180.0 * n)
        side, width = "low" if lean > 0 else "high", "narrow" if spread > 0 else "wide"
        tails = 2.0 * norm.sf(np.abs([lean, spread]))
        # A word on the spread must not deny what is said of the intervals.
        around = {"narrow": "wide", "wide": "narrow"}[width] == self.test.verdict
        width = f"{width} around their medians" if around else width
        return list(zip((f"too {side}", f"too {width}"), tails.tolist(), strict=True))

    @cached_property
    def faults(self) -> list[str]:
        """What forecasts are as a whole, "too low" for instance; empty if right."""
        if self.test.n == 1:
            return []
        found = [word for word, p in self.moments if p < SIGNIFICANT]
        return found or (["not calibrated"] if self.flat_p < SIGNIFICANT else [])


@dataclass(frozen=True)
class BackTest:
    """How often outcomes passed their value at risk, and whether chance explains it.

    Parameters
    ----------
    level : float
        Of the value at risk, .95 for instance.
    n : int
    passed : int
    chance : float
        Mean probability that forecasts gave to it: 1 - level, or less at jumps.
    kupiec : float
        Of as many, the p-value (Kupiec 1995, likelihood ratio).
    independence : float
        Of rows in their order having no effect on the next one, the p-value; 1 where
        there is nothing to compare (Christoffersen 1998).
    conditional : float
        Of both together, the p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert.reporting import BackTest
    >>> passed = np.arange(100) % 10 == 0
    >>> round(BackTest.of(passed, 0.95, 0.05).kupiec, 3)
    0.042
    """

    level: float
    n: int
    passed: int
    chance: float
    kupiec: float
    independence: float
    conditional: float

    @classmethod
    def of(cls, passed: NDArray[np.bool_], level: float, chance: float) -> Self:
        """Test whether outcomes passed as often as with some probability.

        Parameters
        ----------
        passed : ndarray of bool, shape (n,)
            Which outcomes passed their value at risk, in the order of rows.
        level, chance : float
            Of the value at risk, and the probability of passing it.

        Returns
        -------
        BackTest
        """
        n, x = len(passed), int(passed.sum())
        often = 2.0 * (_likelihood(n - x, x) - _likelihood(n - x, x, chance))
        # Pairs of neighbours: by whether the first passed, and then the second.
        first, second = passed[:-1], passed[1:]
        (n00, n01), (n10, n11) = (
            [int((first == a)[second == b].sum()) for b in (0, 1)] for a in (0, 1)
        )
        apart = _likelihood(n00, n01) + _likelihood(n10, n11)
        runs = 2.0 * (apart - _likelihood(n00 + n10, n01 + n11))
        tails = chi2.sf([often, runs, often + runs], [1, 1, 2])
        return cls(level, n, x, chance, *map(float, np.minimum(tails, 1.0)))

    @property
    def share(self) -> float:
        """Share of outcomes that passed."""
        return self.passed / self.n


def _likelihood(no: int, yes: int, share: float | None = None) -> float:
    """Return the log-likelihood of a share, by default of the one that was seen."""
    p = yes / max(no + yes, 1) if share is None else share
    return float(xlogy(no, 1.0 - p) + xlogy(yes, p))


@dataclass(frozen=True)
class Promise:
    """The mean loss of some rows, as forecasts expected it and as it came.

    Parameters
    ----------
    expected : ExpectedMean
        With the interval that should hold 95 % of means.
    realised : float
    p_value : float
        Probability of a mean at least as far off, if outcomes came from the
        forecasts; 1 where losses are not finite or certain.
    """

    expected: ExpectedMean
    realised: float
    p_value: float

    @classmethod
    def of(cls, came: Float64Array, means: Float64Array, spread: Float64Array) -> Self:
        """Compare losses (n,) with their expected means and variances."""
        sums = float(means.sum()), float(spread.sum()), len(means)
        expected, realised = mean_of_sums(*sums, 0.95), float(came.mean())
        reach = expected.high - expected.mean
        known = np.isfinite(reach) and reach > 0.0
        away = abs(realised - expected.mean) / reach if known else 0.0
        return cls(expected, realised, float(2.0 * ndtr(-away * _ERRORS)))


@dataclass(frozen=True, eq=False)
class GroupFigures:
    """What came of the forecasts of some rows.

    Parameters
    ----------
    name, label : str
        Of the grouping, and of the group in it; empty of all rows.
    width : float
        Mean width of the intervals.
    coverage : CoverageTest
    promises : dict of str to Promise
        The "crps" and "abs_error", as expected and as they came. Empty where outcomes
        are known in part, and so are the back-tests.
    back_tests : list of BackTest
        Of the values at risk at each level, rows in their order.
    p_values : dict of str to float
        Of "coverage", "crps" and by the levels the numbers of outcomes beyond the
        values at risk; of groups raised by Holm's method for all groups of a report.
    """

    name: str
    label: str
    width: float
    coverage: CoverageTest
    promises: dict[str, Promise]
    back_tests: list[BackTest]
    p_values: dict[str, float]
