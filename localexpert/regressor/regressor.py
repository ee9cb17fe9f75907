"""`LocalExpertRegressor` fits and predicts whole distributions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from calibration._validation import (
    all_or_nothing,
    check_flag,
    check_verbose,
    refuse,
    told_of_light,
)
from calibration.typing import Float64Array
from localexpert._validation import check_seed
from localexpert.curves.spline import RawSpline
from localexpert.data.directions import Directions, describe_directions, read_directions
from localexpert.data.folds import Rows, Sample
from localexpert.data.honest_rows import describe_leak, find_copies, many_are_equal
from localexpert.data.table import Table, take_rows
from localexpert.data.target_values import warn_of_outliers
from localexpert.data.training_rows import TableSummary, TrainingSketch
from localexpert.data.unseen import warn_user
from localexpert.distribution.predictive import PredictiveDistribution, mass_below_zero
from localexpert.experts.report import ExpertReport
from localexpert.law.join import SpreadParts, gather_laws, pool_laws, spread_parts
from localexpert.law.law import Law
from localexpert.law.level_map import recentre
from localexpert.law.steps import merge_near_values
from localexpert.learn.compete import choose_learner
from localexpert.learn.learner import Learner
from localexpert.learn.settings import Settings
from localexpert.learn.values import ConstantLaws
from localexpert.partial.draws import Outcomes, draw_in_rounds
from localexpert.partial.outcomes import is_partial, nearest_ends, read_ends
from localexpert.progress import current_progress, show_progress
from localexpert.recalibration.conformal import make_recalibration, set_aside
from localexpert.recalibration.pit import Recalibration
from localexpert.regressor.base import DistributionRegressor
from localexpert.regressor.drawn_fits import DrawnFits
from localexpert.regressor.fit_check import FitCheck, FitReport, one_draw_each
from localexpert.stacking import (
    MetaFeatures,
    MetaFeatureTransformer,
    Stacker,
    make_stacker,
)

# A smaller share of probability below zero is not reported.
_LEAST_MASS = 5e-4
# Rows with gaps that training did not have are filled and forecast so many at a time.
_ROWS_AT_ONCE = 2000


@dataclass(eq=False, repr=False)
class LocalExpertRegressor(MetaFeatureTransformer, DistributionRegressor):
    """Distributional regression by calibrated threshold classifiers.

    Parameters
    ----------
    expert : classifier, optional
        Any scikit-learn classifier with `predict_proba` or `decision_function`. It is
        fitted once per threshold and fold. None means the built-in experts.
    n_thresholds : int
        Number of threshold questions "is y below v?".
    thresholds : {"quantile", "uniform"} or array-like of shape (N,)
        Where the thresholds lie: "quantile" makes them equally probable, "uniform"
        equally spaced. Numbers are values of y, and force ``frame=None``.
    frame : {"auto", "standardize", "center"} or None
        Coordinate of the thresholds: ``(y - m(x)) / s(x)`` for "standardize",
        ``y - m(x)`` for "center", y itself for None. "auto" compares them by
        out-of-fold CRPS before any expert is fitted.
    center : "stack", regressor or list of regressors
        What predicts m(x), always out of fold. A regressor gets the table as `fit`
        gets it, and so does `expert`. If it cannot read column names, texts or gaps,
        put it in a Pipeline that can.
    strategy : {"auto", "shared", "joint", "independent"} or Experts
        How the classifiers are learned. "shared": one boosted model with the threshold
        as a feature. "joint": one forest for all thresholds. "independent": one
        classifier per threshold. "auto" pools the first two by out-of-fold score; with
        an `expert` it is "independent".
    calibrator : str, ScoreCalibrator or None
        Calibration of each threshold's probabilities, fitted out of fold. A name is
        one of `calibration.calibrator_names()`, such as "auto" or "isotonic".
    cv : "auto", int, splitter or iterable
        Folds for everything that is out of fold. Rows in no test part are only used
        for training.
    smoothing : "auto", float, "pchip", "smoothing_spline" or RawSpline
        A number is the step between the knots of the spline in probit space, up to 1.
        "auto" takes the best of a short list of steps, out of fold. The other values
        are splines of the raw probabilities.
    recalibrate : {"pit", "conformal"}, Recalibration or None
        Correction of whole forecasts by PIT values. "pit" uses out-of-fold PIT values,
        without a guarantee. It changes nothing unless that improves the log score by
        more than a standard error. "conformal" sets a fifth of the rows aside, at least
        50, and uses theirs, with the guarantee of `ConformalRecalibration`.
    roads : "auto", Road or list of Road
        Roads to try. They are pooled by their forecasts out of fold. "auto" tries the
        roads that suit the target. If `expert`, `frame`, `strategy`, `thresholds` or
        `n_thresholds` are given, they describe one road.
    bounds : "auto", (float, float) or None
        Least and greatest possible y. "auto" looks at 0, and for shares also at 1. If
        no y lies beyond this value, it is a bound in two cases: many y are equal to it,
        or forecasts without the bound expected at least 5 y beyond it. Otherwise
        there is no bound, as with None. What forecasts hold beyond a bound is cut off
        or laid inside it, whichever is better out of fold.
    monotone : dict or list of int, optional
        Columns with which y may only rise (+1) or only fall (-1). If two rows differ in
        such a column alone, their CDFs do not cross. Give names of a data frame,
        positions of an array, or a list of +1, -1 and 0 with one for each column. A
        column of dates "day" has the features ``"day.days"`` and so on.
    effort : {"quick", "default", "best"} or float
        How much time a fit may take. "quick": boosted trees as centre and scale, and
        the law of the residuals, or a few experts where no fold of `cv` trains on rows
        that another one tests. "best": several fits with other folds and seeds,
        pooled. A number is a time in seconds: the fit starts with the quick model, goes
        on with the default, and then with further fits. Each of them begins if there
        seems to be time for it. `report_` names what was left out. With a time, the
        same seed may not give the same model. Whatever `roads`, `cv` and `center` name
        is kept.
    stacker : "auto", regressor, Stacker or None
        Meta-regressor on out-of-fold distributions. `predict` returns its forecast.
        "auto" keeps the mean if stacking does not help.
    n_jobs : int, optional
        Number of threads or processes. Results do not depend on it.
    random_state : int, optional
        Seed of everything random, also of parts that you give without a seed.
    verbose : int or bool
        0: no output. 1: a progress bar of the fit's stages on stderr, or lines if
        stderr goes to a log.

    Attributes
    ----------
    thresholds_ : ndarray of shape (N,)
        The thresholds in the coordinate of the frame.
    oof_probabilities_ : ndarray of shape (m, N)
        Calibrated probabilities of the rows `fitted_rows_`, from models that have not
        seen them. Their odds are rounded to one part in 3000.
    oof_distribution_ : PredictiveDistribution
        Forecasts of the same rows, also from models that have not seen them.
    oof_prediction_ : ndarray of shape (m,)
        Point forecasts of the same rows, as `predict` makes them, also out of fold.
    stacker_ : Stacker or None
    expert_report_ : ExpertReport
        Figures of each threshold's expert.
    report_ : FitReport
        What the fit chose, and what the alternatives scored.
    fitted_rows_ : ndarray of int
        Rows that the `oof_` attributes describe, without those that a recalibration
        held out. A row whose target is known in part comes once for each draw of it;
        beside such rows, one without weight is drawn as well.
    untested_rows_ : ndarray of int
        Rows that were used to learn but have no forecast out of fold, see Notes.
    bounds_ : (float, float)
        Bounds of every forecast.
    check_ : FitCheck
        How good the out-of-fold forecasts are: coverage, PIT test, CRPS compared with
        that of the targets' own distribution, and means. `fit` warns if they are bad.
        Targets that are known in part are draws from the forecasts of the last rounds.
    table_summary_ : TableSummary or None
        Counts of the features' values, for reports. None if they cannot be read.
    training_sketch_ : TrainingSketch or None
        Hashes of training rows, by which `seen_rows` recognises them. None if many rows
        are equal. Set it to None before saving if the file must not reveal which rows
        were among them.

    Notes
    -----
    A target is discrete if it has few distinct values and most of them are repeated
    (`is_discrete`). Its forecasts are probabilities per value. In other targets, a
    value that holds 2 % of the weight has its own probability beside a smooth rest.

    For a smooth target, `FrameRoad` and `GridRoad` compete. If the target is skewed and
    never negative, `Transformed` (its logarithm) competes too. For a discrete target,
    `DiscreteRoad` and `CellRoad` compete. In both cases climatology and the law of the
    residuals around the centre compete with them.

    Rows that `cv` never tests train the models of the folds. They play no part in what
    is learned out of fold (calibrators, spline, stacker). In a frame, experts can only
    learn from rows with an out-of-fold centre. A fold that trains on no such row is not
    judged.

    References
    ----------
    Normandin (2017), Local expert regression and calibration for probabilistic
    classification (talk).

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import LocalExpertRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(400, 2))
    >>> y = 3 * X[:, 0] + (0.1 + X[:, 1]) * rng.normal(size=400)
    >>> model = LocalExpertRegressor(random_state=0).fit(X, y)
    >>> dist = model.predict_dist([[0.5, 0.1], [0.5, 0.9]])
    >>> bool(dist.std()[0] < dist.std()[1])
    True
    """

    expert: Any = None
    _: KW_ONLY
    n_thresholds: int = 25
    thresholds: Any = "quantile"
    frame: Literal["auto", "standardize", "center"] | None = "auto"
    center: Any = "stack"
    strategy: Any = "auto"
    calibrator: Any = "auto"
    cv: Any = "auto"
    smoothing: float | RawSpline | Literal["auto", "pchip", "smoothing_spline"] = "auto"
    recalibrate: Any = "pit"
    roads: Any = "auto"
    bounds: tuple[float, float] | Literal["auto"] | None = "auto"
    monotone: Directions | None = None
    effort: float | Literal["quick", "default", "best"] = "default"
    stacker: Any = None
    n_jobs: int | None = None
    random_state: int | None = None
    verbose: bool | int = 0
    report_: FitReport = field(init=False)
    check_: FitCheck = field(init=False)
    forecaster_: Learner | ConstantLaws = field(init=False)
    stacker_: Stacker | None = field(init=False)

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        entry: ArrayLike | None = None,
    ) -> Self:
        """Fit centre, scale, experts, calibrators and spline, all out of fold.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            NaN means missing. In a data frame, strings and categories are read as
            categories, dates become `date_features`, and durations become seconds.
        y : array-like of shape (n,), or of shape (n, 2)
            Two columns are the lower and the upper end of targets that are known in
            part: (c, inf) is right-censored at c, and equal ends are a known value.
            Targets are drawn from forecasts out of fold, given their ends, until the
            forecasts settle. Then all is fitted on several draws of each. See
            `censored`. Structured arrays of scikit-survival are read as well.
        sample_weight : array-like of shape (n,), optional
        groups : array-like of shape (n,), optional
            Rows of one group stay in one fold.
        entry : array-like of shape (n,), optional
            A row is only in the table because its target lies above this value, for
            example the age at which a person joined a study. -inf: the row would be
            there anyway. Forecasts are for all targets, seen or not.

        Returns
        -------
        self
        """
        ends = read_ends(y) if is_partial(y) else None
        with all_or_nothing(self):
            given, target, weight, groups = self._check_data(
                X, y if ends is None else nearest_ends(*ends), sample_weight, groups
            )
            warn_of_outliers(target, weight)
            lower, upper = ends or (target, target)
            if entry is None and (lower == upper).all():
                self._fit(given, target, weight, groups)
            else:
                outcomes = Outcomes.of(lower, upper, entry, weight)
                self._fit_draws(given, outcomes, groups)
                # Each row once, and as `seen_rows` reads its target.
                table, held = self.reader_.read(given), outcomes.weight
                self.table_summary_ = TableSummary.of(table, held)
                self.training_sketch_ = TrainingSketch.learn([(table, target, held)])
        # This comes last: if warnings are errors, the fit is still complete.
        if hasattr(self, "check_"):
            self.check_.warn()
        return self

    def _fit_draws(
        self, given: Any, outcomes: Outcomes, groups: NDArray[Any] | None
    ) -> None:
        """Fit on draws of targets that are known in part."""
        settings, _, recalibration = self._check_parameters(outcomes.ends, groups)
        if recalibration is not None and recalibration.holds_out:
            rule = "set no rows aside where `y` is known in part"
            refuse("recalibrate", rule, repr(self.recalibrate))
        limits = settings.limits
        outcomes = outcomes.within(limits.bounds, limits.suspected)
        fits = DrawnFits(self, given, outcomes, groups, settings)
        draws, told = draw_in_rounds(
            outcomes, fits.first_law(), fits.forecast, settings.seed
        )
        model = fits.fit(draws, effort=settings.effort, random_state=settings.seed)
        for name, value in vars(model).items():
            if name.endswith("_"):
                setattr(self, name, value)
        self.fitted_rows_ = rows = draws.rows[self.fitted_rows_]
        self.untested_rows_ = np.unique(draws.rows[self.untested_rows_])
        if hasattr(self, "report_"):
            self.report_ = self.report_.add("outcomes", told)
        if hasattr(self, "check_"):
            alone = one_draw_each(rows, self.oof_weights_, settings.seed)
            known = self.oof_targets_, alone, settings.seed
            self.check_ = FitCheck.of(self._oof_dist, *known)

    def _fit(
        self,
        given: Any,
        target: Float64Array,
        weight: Float64Array,
        groups: NDArray[Any] | None,
    ) -> None:
        """Fit on checked data."""
        answers, target = target, merge_near_values(target, weight)
        present = target[weight > 0.0]
        settings, stacker, recalibration = self._check_parameters(present, groups)
        whole, copies = Table.of(given, weight), None
        if groups is None:
            copies = find_copies(whole, weight, self.cv, settings.seed)
        groups = groups if copies is None else copies
        if settings.out_of_bag:
            # A tree that did not draw a row may have drawn an equal one.
            distinct = copies is None and not many_are_equal(whole, weight)
            settings = replace(settings, out_of_bag=distinct)
        constant = np.ptp(present) == 0.0
        if constant:
            stacker = recalibration = None
        self.recalibration_, self.stacker_ = None, None
        self.bounds_ = settings.limits.bounds
        rows, aside = np.arange(len(target)), np.arange(0)
        with told_of_light(), show_progress(self.verbose, type(self).__name__):
            if recalibration is not None and recalibration.holds_out:
                rows, aside = set_aside(weight, self.cv, groups, settings.seed)
            # Rows that are set aside must not influence how tables are read.
            held = take_rows(given, rows) if len(aside) else whole
            table = Table.of(held, weight[rows])
            self.reader_, self.ordered_ = table.reader, settings.monotone is not None
            read_directions(settings.monotone, table.reader)
            apart = self.reader_.read(take_rows(given, aside))
            self.table_summary_ = TableSummary.of(table, weight[rows])
            parts = (table, rows), (apart, aside)
            self.training_sketch_ = TrainingSketch.learn(
                (part, answers[places], weight[places]) for part, places in parts
            )
            sample = Sample(table, target[rows], weight[rows], []).deal(
                self.cv, None if groups is None else groups[rows], settings.seed
            )
            if constant:
                judged = self._fit_constant(sample)
            else:
                judged = self._fit_forecaster(settings, sample)
            self.fitted_rows_ = rows[judged]
            self.untested_rows_ = np.setdiff1d(rows, self.fitted_rows_)
            sample = sample.take_judged(judged)
            self.oof_targets_, self.oof_weights_ = sample.y, sample.weight
            if constant:
                return
            if stacker is not None:
                self._fit_stacker(stacker, settings, sample)
            if recalibration is not None and len(aside):
                law = self._law(apart)
                self._use(recalibration.fit(law, target[aside], weight[aside]))
            elif recalibration is not None:
                known = sample.y, sample.weight, sample.folds
                self._use(recalibration.fit(self._oof_law(), *known))
            self._judge(sample, copies, settings.seed)

    def _fit_constant(self, sample: Sample) -> Rows:
        """Forecast the only value of y. There is nothing to learn."""
        self.meta_features_ = MetaFeatures(np.unique(sample.y[sample.weight > 0.0]))
        (value,) = self.meta_features_.thresholds.tolist()
        warn_user(f"`y` is {value:g} in every row; every forecast is that value.")
        self.forecaster_ = ConstantLaws(value, len(sample.judged))
        return sample.judged

    def _judge(
        self, sample: Sample, copies: NDArray[np.intp] | None, seed: int
    ) -> None:
        """Fill in the report of the fit, and check how good it is."""
        noted: dict[str, Any] = {}
        low, high = self.bounds_
        if self.bounds == "auto" and low == 0.0:
            noted["bounds"] = {"chosen": f"({low:g}, {high:g})"}
        elif self.bounds is None:
            dist = self.oof_distribution_
            mass = mass_below_zero(dist, sample.y, sample.weight) or 0.0
            if mass >= _LEAST_MASS:
                noted["below zero"] = {"mass": mass, "cure": "bounds=(0, None)"}
        if copies is not None:
            noted["copies"] = {"copies": len(copies) - len(np.unique(copies))}
        leak = describe_leak(sample, seed)
        if leak is not None:
            noted["leak"] = leak
        self.report_ = replace(self.report_, choices=self.report_.choices | noted)
        self.check_ = FitCheck.of(self._oof_dist, sample.y, sample.weight, seed)

    def _use(self, recalibration: Recalibration) -> None:
        """Correct every forecast from now on, also those out of fold."""
        self.recalibration_ = recalibration
        # What has been asked for before is not corrected.
        self.__dict__.pop("oof_distribution_", None)
        if self._mover is None:
            self.__dict__.pop("oof_prediction_", None)
        self.report_ = self.report_.add("recalibration", recalibration.choices())

    def _check_parameters(
        self, y: Float64Array, groups: Any
    ) -> tuple[Settings, Stacker | None, Recalibration | None]:
        """Return the parameters as the stages read them, with one seed for all."""
        check_verbose(self.verbose)
        seed = check_seed(self.random_state)
        # Rows of the user's own folds may depend on each other within a fold.
        dealt = groups is None and isinstance(self.cv, str | Integral)
        settings = Settings.check(self, y, out_of_bag=dealt, seed=seed)
        recalibration = make_recalibration(self.recalibrate, seed)
        return settings, make_stacker(self.stacker), recalibration

    def _fit_forecaster(self, settings: Settings, sample: Sample) -> Rows:
        """Fit every stage of the road. Return the rows that it judges out of fold."""
        target, learner = choose_learner(settings, sample)
        self.forecaster_ = forecaster = learner.fit(sample)
        self.report_ = FitReport(target, forecaster.choices())
        if settings.monotone is not None:
            directions = describe_directions(settings.monotone)
            self.report_ = self.report_.add("monotone", directions)
        road = settings.described
        self.meta_features_ = MetaFeatures.place(
            sample.y, sample.weight, road.thresholds, road.n_thresholds
        )
        tasks = forecaster.tasks_
        self.thresholds_ = tasks.thresholds
        self.oof_probabilities_ = tasks.calibrated
        self.expert_report_ = ExpertReport.of(tasks)
        if self.bounds == "auto":
            self.bounds_ = forecaster.law(np.arange(1)).support
        return forecaster.judged_

    def _fit_stacker(
        self, stacker: Stacker, settings: Settings, sample: Sample
    ) -> None:
        """Fit the stacker. Its forecasts replace those of the road."""
        features = self._describe_oof()
        with current_progress().stage("stacker"):
            stacker.fit(
                features,
                sample.without_outliers(),
                n_jobs=settings.n_jobs,
                random_state=settings.seed,
            )
        self.report_ = self.report_.add("stacker", stacker.report_)
        self.stacker_ = stacker

    @cached_property
    def oof_distribution_(self) -> PredictiveDistribution:
        """Forecast of each training row, from models that have not seen it."""
        return self._correct(self._oof_law(), oof=True)

    @cached_property
    def oof_prediction_(self) -> Float64Array:
        """Point forecast of each training row, from models that have not seen it."""
        if self._mover is None:
            return self.oof_distribution_.mean()
        return np.clip(self._mover.oof_, *self.forecaster_.oof_law_.support)

    def _oof_dist(self, places: Rows) -> PredictiveDistribution:
        """Return the out-of-fold distributions of the rows at these places."""
        correction = self.recalibration_
        by_row = correction is not None and correction.oof_map_.values.ndim > 1
        if by_row or self._mover is not None:
            return self.oof_distribution_[places]
        return self._correct(self.forecaster_.law(places), oof=True)

    @property
    def _mover(self) -> Stacker | None:
        """The stacker, if it moves the distributions."""
        stacker = self.stacker_
        return None if stacker is None or stacker.keeps_mean else stacker

    def _oof_law(self) -> Law:
        """Return the laws of the training rows as a recalibration sees them."""
        law = self.forecaster_.oof_law_
        return law if self._mover is None else recentre(law, self.oof_prediction_)

    def predict_dist(self, X: Any, *, recentre: bool = True) -> PredictiveDistribution:
        """Return the predictive distribution of every row.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        recentre : bool
            Only matters with a `stacker`. True moves the distributions so that their
            means, before any recalibration, are the stacker's forecasts.

        Returns
        -------
        PredictiveDistribution
        """
        check_is_fitted(self)
        check_flag(recentre, "recentre")
        return self._correct(self._law(self._read(X), recentred=recentre))

    def predict(self, X: Any) -> Float64Array:
        """Return the stacker's forecast of every row, or the distribution's mean.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        check_is_fitted(self)
        if self._mover is None:
            return self.predict_dist(X).mean()
        table = self._read(X)
        found = np.empty(len(table))
        for rows, copies in self._fill_new_gaps(table):
            moved = [
                self._stacked(self._mover, one, self.forecaster_.law(one))
                for one in copies
            ]
            found[rows] = np.mean(moved, axis=0)
        return found

    def spread_parts(self, X: Any) -> SpreadParts:
        """Return what the variance of each row's forecast is made of.

        The parts tell how far the models disagree: those of different folds, which
        learned from different rows, and the roads, which see the problem in different
        ways. Disagreement is large where training rows are few, and more rows make it
        less. It is not all that the model does not know: models that share a blind
        spot agree. Nor is the rest pure noise: a scale that was learned from errors
        out of fold holds the errors of the centre, too.

        Folds differ by their centres here; their scales and experts are those of the
        forecast. A stacker and a recalibration come later, and are not in the parts.
        If a row has a gap where training had none, values of training take its place,
        and how far they differ counts among the roads.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        SpreadParts

        Examples
        --------
        >>> import numpy as np
        >>> from localexpert import LocalExpertRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(300, 1))
        >>> y = X[:, 0] + rng.normal(size=300)
        >>> model = LocalExpertRegressor(effort="quick", random_state=0).fit(X, y)
        >>> near, far = model.spread_parts([[0.0], [4.0]]).disagreement
        >>> bool(near < far)
        True
        """
        check_is_fitted(self)
        table = self._read(X)
        found = np.empty((3, len(table)))
        for rows, copies in self._fill_new_gaps(table):
            members = [
                (weight / len(copies), laws)
                for one in copies
                for weight, laws in self.forecaster_.members(one)
            ]
            parts = spread_parts(members)
            found[:, rows] = parts.within, parts.folds, parts.roads
        return SpreadParts(*found)

    def expert_points(self, X: Any) -> tuple[Float64Array, Float64Array]:
        """Return the experts' answers for every row, to draw or inspect them.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        thresholds : ndarray of shape (n, N)
            In units of y. In a frame every row has its own thresholds.
        probabilities : ndarray of shape (n, N)
            Calibrated P(Y <= threshold). They are not yet made increasing or smoothed.
            No gaps are filled.
        """
        check_is_fitted(self)
        return self.forecaster_.points(self._read(X))

    def _html_repr(self) -> str:
        """Return scikit-learn's page for notebooks, followed by what the fit chose."""
        page: str = super()._html_repr()
        return page + (self.report_._repr_html_() if hasattr(self, "report_") else "")

    def _read(self, X: Any) -> Table:
        return self.reader_.read(self._check_table(X), warns=True)

    def _fill_new_gaps(self, table: Table) -> Iterator[tuple[Rows, list[Table]]]:
        """Yield the rows without new gaps, and those with some in filled copies.

        Trees have not learned what a gap means in a column that had none. So such rows
        are forecast with values of training in its place, and forecasts are averaged.
        An average is rounded, which ordered forecasts may not be: they take the median.
        """
        summary, every = self.table_summary_, np.arange(len(table))
        new = np.empty(0) if summary is None else summary.find_new_gaps(table.codes)
        if summary is None or not new.any():
            yield every, [table]
            return
        whole, rest = every[~new.any(axis=1)], every[new.any(axis=1)]
        if len(whole):
            yield whole, [table.take(whole)]
        for start in range(0, len(rest), _ROWS_AT_ONCE):
            rows = rest[start : start + _ROWS_AT_ONCE]
            held = table.take(rows)
            filled = summary.fill(held.codes, ordered=self.ordered_)
            yield rows, list(map(held.with_codes, filled))

    def _law(self, table: Table, *, recentred: bool = True) -> Law:
        """Return the laws of new rows as a recalibration sees them."""
        places, laws = [], []
        for rows, copies in self._fill_new_gaps(table):
            each = [self._law_of(one, recentred=recentred) for one in copies]
            laws.append(pool_laws(each, np.full(len(each), 1.0 / len(each)), "linear"))
            places.append(rows)
        return laws[0] if len(laws) == 1 else gather_laws(laws, places)

    def _law_of(self, table: Table, *, recentred: bool) -> Law:
        """Return the laws of rows as they are."""
        law = self.forecaster_.law(table)
        if self._mover is None or not recentred:
            return law
        return recentre(law, self._stacked(self._mover, table, law))

    def _stacked(self, stacker: Stacker, table: Table, law: Law) -> Float64Array:
        features = self.meta_features_.of(PredictiveDistribution(law))
        return np.clip(stacker.predict(features, table), *law.support)
