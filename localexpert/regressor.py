"""`LocalExpertRegressor`: fit and predict whole distributions."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from calibration import CalibrationWarning
from calibration._kernels.types import Float64Array
from localexpert._validation import check_integer, check_levels, check_weights
from localexpert.conformal import make_recalibration, set_aside
from localexpert.distribution import PredictiveDistribution
from localexpert.expert_report import ExpertReport
from localexpert.experts.tables import take_rows
from localexpert.folds import Fold, Rows, make_folds
from localexpert.forecasters.constant import ConstantForecaster
from localexpert.forecasters.continuous import fold_numbers
from localexpert.forecasters.plan import FitReport, Forecaster, Plan
from localexpert.recalibration import Recalibration


class LocalExpertRegressor(RegressorMixin, BaseEstimator):
    """Distributional regression by calibrated threshold classifiers.

    Parameters
    ----------
    expert : classifier, optional
        Any scikit-learn classifier with `predict_proba` or `decision_function`, fitted
        once per threshold and fold. None: the built-in experts.
    n_thresholds : int
        Number of threshold questions "is y below v?".
    thresholds : {"quantile", "uniform"} or array-like of shape (N,)
        Where thresholds lie: equally probable, equally spaced, or at given values of
        y (which force ``frame=None``).
    frame : {"auto", "standardize", "center"} or None
        Coordinate of the thresholds: ``(y - m(x)) / s(x)``, ``y - m(x)``, or y itself.
        "auto" compares them by out-of-fold CRPS before any expert is fitted; a
        discrete target is always taken as it is.
    center : "stack", regressor or list of regressors
        What predicts m(x), always out of fold.
    strategy : {"auto", "shared", "joint", "independent"} or Experts
        How the classifiers are learned: one boosted model with the threshold as a
        feature, one forest for all thresholds, or one classifier each. "auto" pools
        the first two by out-of-fold score ("independent" with an `expert`).
    calibrator : "auto", "isotonic", "bagged_isotonic", ScoreCalibrator or None
        Calibration of each threshold's probabilities, fitted out of fold.
    cv : "auto", int, splitter or iterable
        Folds of everything that is out of fold.
    smoothing : "auto", float, "pchip" or "smoothing_spline"
        Weight of the curvature of the spline in probit space; "auto" chooses from a
        short list by out-of-fold CRPS. The two names work on raw probabilities.
    recalibrate : {"pit", "conformal"}, Recalibration or None
        Correction of whole forecasts: by out-of-fold PIT values, without a guarantee,
        or by a fifth of the rows kept from everything else, with that of
        `ConformalRecalibration`.
    bounds : (float, float), optional
        Least and greatest possible y.
    n_jobs : int, optional
        Threads or processes; results do not depend on it.
    random_state : int, optional
        Seed of everything random.

    Attributes
    ----------
    thresholds_ : ndarray of shape (N,)
        In the coordinate of the frame.
    oof_probabilities_ : ndarray of shape (n, N)
        Calibrated, each row by models and calibrators that have not seen it.
    oof_distribution_ : PredictiveDistribution
        Of the training rows, honest in the same way.
    expert_report_ : ExpertReport
        Figures of each threshold's expert.
    report_ : FitReport
        What was chosen on the way, and what the alternatives scored.
    fitted_rows_ : ndarray of int
        Rows that the `oof_` attributes speak of: all that no recalibration held out.

    Notes
    -----
    A target of few distinct values, all repeated (`is_discrete`), is discrete: its
    forecasts are probabilities per value. A value that holds 2 % of the rows has a
    probability of its own beside a smooth rest. See `Plan`.

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

    thresholds_: Float64Array
    oof_probabilities_: Float64Array
    oof_distribution_: PredictiveDistribution
    expert_report_: ExpertReport
    report_: FitReport
    fitted_rows_: Rows
    forecaster_: Forecaster | ConstantForecaster
    recalibration_: Recalibration | None

    def __init__(
        self,
        expert: Any = None,
        *,
        n_thresholds: int = 25,
        thresholds: Any = "quantile",
        frame: Literal["auto", "standardize", "center"] | None = "auto",
        center: Any = "stack",
        strategy: Any = "auto",
        calibrator: Any = "auto",
        cv: Any = "auto",
        smoothing: float | Literal["auto", "pchip", "smoothing_spline"] = "auto",
        recalibrate: Any = None,
        bounds: tuple[float, float] | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ):
        self.expert = expert
        self.n_thresholds = n_thresholds
        self.thresholds = thresholds
        self.frame = frame
        self.center = center
        self.strategy = strategy
        self.calibrator = calibrator
        self.cv = cv
        self.smoothing = smoothing
        self.recalibrate = recalibrate
        self.bounds = bounds
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit centre, scale, experts, calibrators and spline, all out of fold.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            NaN is missing; strings and categories of a data frame are categories.
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
        groups : array-like of shape (n,), optional
            Rows of one group stay in one fold.

        Returns
        -------
        self
        """
        table, target = self._check_data(X, y)
        n = len(target)
        weight = np.ones(n) if sample_weight is None else sample_weight
        weight = check_weights(weight, n)
        seed = self.random_state
        if seed is not None:
            seed = check_integer(seed, "random_state", 0)
        recalibration = make_recalibration(self.recalibrate, seed)
        self.recalibration_ = None
        self.fitted_rows_ = np.arange(n)
        if np.ptp(target[weight > 0.0]) == 0.0:
            return self._fit_constant(target, weight)
        if recalibration is None or not recalibration.holds_out:
            folds = self._fit_forecaster(table, target, weight, groups, seed)
            if recalibration is not None:
                law = self.forecaster_.oof_law_
                recalibration.fit(law, target, weight, folds)
        else:
            rows, aside = set_aside(weight, self.cv, groups, seed)
            self.fitted_rows_ = rows
            parts = None if groups is None else np.asarray(groups)[rows]
            self._fit_forecaster(
                take_rows(table, rows), target[rows], weight[rows], parts, seed
            )
            law = self.forecaster_.law(take_rows(table, aside))
            recalibration.fit(law, target[aside], weight[aside])
        self._use(recalibration)
        return self

    def _fit_forecaster(
        self,
        table: Any,
        target: Float64Array,
        weight: Float64Array,
        groups: Any,
        seed: int | None,
    ) -> list[Fold]:
        """Fit every stage, keep what was said out of fold, and return the folds."""
        folds = make_folds(len(target), self.cv, target, groups, seed)
        own_folds = groups is not None or not isinstance(self.cv, str | Integral)
        plan = Plan.of(self, target, weight, own_folds=own_folds)
        forecaster = plan.forecaster
        forecaster.fit(table, target, folds, weight)
        self.forecaster_ = forecaster
        self.report_ = plan.report(forecaster)
        tasks = forecaster.tasks_
        self.thresholds_ = tasks.thresholds
        self.oof_probabilities_ = tasks.calibrated
        self.oof_distribution_ = PredictiveDistribution(forecaster.oof_law_)
        self.expert_report_ = ExpertReport.of(
            tasks.thresholds,
            tasks.raw,
            tasks.calibrated,
            tasks.below,
            fold_numbers(tasks.folds, len(tasks.below)),
            tasks.weight,
        )
        return folds

    def _use(self, recalibration: Recalibration | None) -> None:
        """Correct what was kept, and from now on every forecast."""
        if recalibration is None:
            return
        law = recalibration.apply_oof(self.forecaster_.oof_law_)
        self.oof_distribution_ = PredictiveDistribution(law)
        self.recalibration_ = recalibration
        self.report_ = self.report_.add("recalibration", recalibration.choices())

    def predict_dist(self, X: Any) -> PredictiveDistribution:
        """Return the predictive distribution of every row.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        PredictiveDistribution
        """
        check_is_fitted(self)
        law = self.forecaster_.law(self._check_table(X))
        if self.recalibration_ is not None:
            law = self.recalibration_.apply(law)
        return PredictiveDistribution(law)

    def predict(self, X: Any) -> Float64Array:
        """Return the mean of every row's distribution.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self.predict_dist(X).mean()

    def predict_quantiles(self, X: Any, q: ArrayLike) -> Float64Array:
        """Return quantiles of every row's distribution.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        q : array-like of shape (k,)
            Levels in (0, 1).

        Returns
        -------
        ndarray of shape (n, k)
        """
        return self.predict_dist(X).quantiles(check_levels(q, "q"))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Float64Array:
        """Return the central interval of every row's distribution.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        coverage : float
            In (0, 1).

        Returns
        -------
        ndarray of shape (n, 2)
        """
        return self.predict_dist(X).interval(coverage)

    def _fit_constant(self, y: Float64Array, weight: Float64Array) -> Self:
        """Forecast the one value there is; nothing can be learned."""
        value = float(y[weight > 0.0][0])
        msg = f"`y` is {value:g} in every row; every forecast is that value."
        warnings.warn(msg, CalibrationWarning, stacklevel=3)
        self.forecaster_ = ConstantForecaster(value, len(y))
        self.oof_distribution_ = PredictiveDistribution(self.forecaster_.oof_law_)
        return self

    def _check_data(self, X: Any, y: ArrayLike) -> tuple[Any, Float64Array]:
        """Return features as an array or data frame, and the target."""
        if hasattr(X, "columns"):
            validate_data(self, X, skip_check_array=True)
            target = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
            target = column_or_1d(target, warn=True)
            check_consistent_length(X, target)
            table = X
        else:
            table, target = validate_data(
                self,
                X,
                y,
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                ensure_min_samples=2,
                y_numeric=True,
            )
        return table, np.asarray(target, dtype=np.float64)

    def _check_table(self, X: Any) -> Any:
        """Return features to predict for, in the columns of `fit`."""
        if hasattr(X, "columns"):
            validate_data(self, X, reset=False, skip_check_array=True)
            return X
        return validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
