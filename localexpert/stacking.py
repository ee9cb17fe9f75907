"""`Stacker`: models that learn from out-of-fold distributions, and their features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.optimize import lsq_linear
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_is_fitted

from calibration._validation import check_flag, is_auto, refuse
from calibration.typing import Float64Array
from localexpert._validation import format_numbers
from localexpert.coordinate.boosting import FoldBoosters
from localexpert.coordinate.families import Fitted, ask, predicts_numbers
from localexpert.data.columns import has_columns
from localexpert.data.folds import Fold, Sample
from localexpert.data.learners import fit_weighted, seeded
from localexpert.data.table import DenseInputs, Table
from localexpert.data.training_rows import effective_rows
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.experts.thresholds import cuts_between, is_discrete, place_thresholds

if TYPE_CHECKING:
    import pandas as pd

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
_MOMENTS = ("mean", "std", "skew")


@dataclass(frozen=True, eq=False)
class MetaFeatures:
    """Turn predictive laws into columns: moments, quantiles and probabilities.

    Parameters
    ----------
    thresholds : ndarray of shape (N,)
        Values v of y. Each gives a column P(Y <= v).
    """

    thresholds: Float64Array

    @classmethod
    def place(
        cls, y: Float64Array, weight: Float64Array, thresholds: Any, n_thresholds: int
    ) -> MetaFeatures:
        """Return the meta-features that suit a target of several values.

        Parameters
        ----------
        y, weight : ndarrays of shape (n,)
        thresholds : {"quantile", "uniform"} or array-like
            As in `place_thresholds`. A discrete target gets all midpoints.
        n_thresholds : int

        Returns
        -------
        MetaFeatures
        """
        if isinstance(thresholds, str) and is_discrete(y, sample_weight=weight):
            return cls(cuts_between(np.unique(y[weight > 0.0])))
        return cls(place_thresholds(y, n_thresholds, thresholds, weight))

    @property
    def names(self) -> list[str]:
        """Names of the columns. No name appears twice."""
        # Labels have as few digits as are needed to tell the thresholds apart.
        labels = format_numbers(self.thresholds.tolist(), 4, lambda v, n: f"{v:.{n}g}")
        quantiles = [f"quantile {level:g}" for level in LEVELS]
        return [*_MOMENTS, *quantiles, *(f"P(y <= {label})" for label in labels)]

    def of(self, dist: PredictiveDistribution) -> Float64Array:
        """Return the columns of every row.

        Parameters
        ----------
        dist : PredictiveDistribution
            Forecasts of n rows.

        Returns
        -------
        ndarray of shape (n, q)
            In the order of `names`.
        """
        moments = dist.mean(), dist.std(), dist.skew()
        probabilities = dist.cdf_at(self.thresholds)
        return np.column_stack([*moments, dist.quantiles(LEVELS), probabilities])


class MetaFeatureTransformer(TransformerMixin):
    """Methods that turn forecasts into features, for users who do their own stacking.

    A `stacker` gets the same columns: the mean, standard deviation and skewness of
    every row's distribution, its quantiles, and calibrated probabilities of being at or
    below thresholds in units of y. The columns are a data frame of pandas, or of polars
    after ``set_output(transform="polars")``.
    """

    meta_features_: MetaFeatures
    forecaster_: Any
    fitted_rows_: Any
    untested_rows_: Any
    _read: Callable[[Any], Table]

    def oof_features(self) -> pd.DataFrame:
        """Return the meta-features of the training rows, out of fold.

        Models and calibrators that have not seen a row's y describe the row. So if you
        train a regressor on these columns, it meets the same kind of features on new
        rows. They describe forecasts before `recalibrate` corrects them.

        Returns
        -------
        pandas.DataFrame of shape (n, q)
            It describes the rows `fitted_rows_`, which are its index.
        """
        check_is_fitted(self)
        return self._named(self._describe_oof(), self.fitted_rows_)

    def transform(self, X: Any) -> pd.DataFrame:
        """Return the meta-features of new rows, from forecasts before any correction.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        pandas.DataFrame of shape (n, q)
            With the index of `X`, if it has one.
        """
        check_is_fitted(self)
        return self._named(self._describe(X), _index_of(X))

    def fit_transform(self, X: Any, y: Any, **fit_parameters: Any) -> pd.DataFrame:
        """Fit, and return the out-of-fold meta-features of these rows.

        This differs from ``fit(X, y).transform(X)``, where models describe rows that
        they have seen. Here a regressor that follows in a pipeline learns from
        out-of-fold features.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        y : array-like of shape (n,)
        **fit_parameters : dict
            Further arguments of `fit`.

        Returns
        -------
        pandas.DataFrame of shape (n, q)
            Rows that a recalibration held out are described like new rows.
        """
        self.fit(X, y, **fit_parameters)
        if len(self.untested_rows_):
            rule = "test every row where `fit_transform` is to describe all out of fold"
            refuse("cv", rule, f"{len(self.untested_rows_)} rows in no test part")
        features = self._describe_oof()
        if len(features) != len(X):
            every = self._describe(X)
            every[self.fitted_rows_] = features
            features = every
        return self._named(features, _index_of(X))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the meta-features.

        Parameters
        ----------
        input_features : ignored
            Only here because scikit-learn expects it.

        Returns
        -------
        ndarray of str
        """
        del input_features
        check_is_fitted(self)
        return np.array(self.meta_features_.names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=[])
        return tags

    def _describe(self, X: Any) -> Float64Array:
        """Return the meta-features of new rows, as a stacker sees them."""
        law = self._law(self._read(X), recentred=False)
        return self.meta_features_.of(PredictiveDistribution(law))

    def _describe_oof(self) -> Float64Array:
        """Return the meta-features of the training rows, as a stacker sees them."""
        dist = PredictiveDistribution(self.forecaster_.oof_law_)
        return self.meta_features_.of(dist)

    def _named(self, features: Float64Array, index: Any) -> pd.DataFrame:
        try:
            import pandas as pd
        except ImportError as error:
            msg = 'meta-features are a data frame: pip install "localexpert[io]"'
            raise ImportError(msg) from error
        names = self.meta_features_.names
        return pd.DataFrame(features, columns=names, index=index)


def _index_of(X: Any) -> Any:
    """Return the index of a data frame of pandas. A list has a method of this name."""
    return getattr(X, "index", None) if has_columns(X) else None


# Strengths of the pull towards the mean. The unit is rows.
_ALPHAS = np.logspace(0.0, 5.0, 11)
# The trees start from a good forecast, so they are few and small and take small steps.
_TREES: dict[str, Any] = {
    "learning_rate": 0.03,
    "num_leaves": 7,
    "min_data_in_leaf": 20,
    "lambda_l2": 10.0,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "feature_fraction_bynode": 0.5,
}
_MOST_ROUNDS, _PATIENCE = 200, 30
# A correction is taken if it gains more than this many standard errors.
_ERRORS = 1.0
_LEAST_WEIGHT = 0.01


@dataclass(eq=False, repr=False)
class Stacker(BaseEstimator):
    """Meta-regression: a point forecast learned from out-of-fold distributions.

    Parameters
    ----------
    estimator : "auto" or regressor
        What learns y from the meta-features. "auto": ridge regression and small
        boosted trees correct the mean. They do so only if that lowers the out-of-fold
        squared error by more than its standard error. Otherwise the mean stays.
    passthrough : bool
        Whether a regressor also sees the rows' own features: numbers on one scale,
        indicators of categories and of gaps. "auto" always sees them.

    Attributes
    ----------
    oof_ : ndarray of shape (n,)
        Forecast of each training row, from a regressor trained on the other folds.
    estimator_ : regressor
        Trained on all rows. With "auto" it is a sum of corrections.
    report_ : dict
        Root mean squared error out of fold, of the mean and of the stacked forecast.
        With "auto" it also has the weights of the corrections.

    References
    ----------
    Wolpert (1992), Stacked generalization.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression, RidgeCV
    >>> from localexpert import LocalExpertRegressor, Stacker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 2))
    >>> y = 3 * X[:, 0] + rng.normal(size=200)
    >>> model = LocalExpertRegressor(
    ...     center=LinearRegression(),
    ...     strategy="shared",
    ...     stacker=Stacker(RidgeCV(), passthrough=True),
    ...     random_state=0,
    ... ).fit(X, y)
    >>> sorted(model.stacker_.report_)
    ['rmse', 'rmse_of_mean']
    """

    estimator: Any = "auto"
    _: KW_ONLY
    passthrough: bool = False
    oof_: Float64Array = field(init=False)
    estimator_: Any = field(init=False)
    dense_inputs_: DenseInputs | None = field(init=False)
    report_: dict[str, Any] = field(init=False)

    def fit(
        self,
        features: Float64Array,
        sample: Sample,
        *,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> Self:
        """Learn from meta-features that have not seen their rows' y.

        Parameters
        ----------
        features : ndarray of shape (n, q)
            Columns of `MetaFeatures`. The first one is the mean.
        sample : Sample
            The n rows.
        n_jobs : int, optional
        random_state : int

        Returns
        -------
        self
        """
        table, y, weight = sample.table, sample.y, sample.weight
        # A fold is dropped if it trains only on rows without a forecast out of fold.
        # The mean stays in its test rows.
        folds = [fold for fold in sample.folds if weight[fold[0]].any()]
        if not folds:
            rule = "be None where no fold of `cv` trains on rows that another one tests"
            refuse("stacker", rule, repr(self.estimator))
        automatic = isinstance(self.estimator, str)
        dense = automatic or self.passthrough
        self.dense_inputs_ = table.dense_inputs_of(weight) if dense else None
        inputs = self._inputs(features, table)
        if automatic:
            self.estimator_ = Corrections(n_jobs=n_jobs, random_state=random_state)
            self.estimator_.fit(features, inputs, y, weight, folds)
            self.oof_ = self.estimator_.oof_
        else:
            own = seeded(self.estimator, random_state)
            family = Fitted(own, view="given", n_jobs=n_jobs, parameter="stacker")
            stacked = family.fit(inputs, replace(sample, folds=folds)).oof_
            self.oof_ = np.where(np.isnan(stacked), features[:, 0], stacked)
            held = weight > 0.0
            rows = inputs[held], y[held], weight[held]
            self.estimator_ = fit_weighted(clone(own), *rows)
        self.report_ = {
            "rmse": _rmse(self.oof_ - y, weight),
            "rmse_of_mean": _rmse(features[:, 0] - y, weight),
        }
        if isinstance(self.estimator_, Corrections):
            self.report_["weights"] = self.estimator_.weights_
        return self

    @property
    def keeps_mean(self) -> bool:
        """Whether "auto" found nothing that is better than the mean."""
        inner = self.estimator_
        return isinstance(inner, Corrections) and not any(inner.weights_.values())

    def predict(self, features: Float64Array, table: Table) -> Float64Array:
        """Return the forecasts of new rows.

        Parameters
        ----------
        features : ndarray of shape (n, q)
        table : Table of shape (n, p)

        Returns
        -------
        ndarray of shape (n,)
        """
        inputs = self._inputs(features, table)
        if isinstance(self.estimator_, Corrections):
            return self.estimator_.predict(features, inputs)
        return ask(self.estimator_, inputs)

    def _inputs(self, features: Float64Array, table: Table) -> Float64Array:
        """Return the meta-regressor's inputs: meta-features, and own ones if wanted."""
        if self.dense_inputs_ is None:
            return features
        return np.column_stack([features, table.dense(self.dense_inputs_)])


@dataclass(kw_only=True, eq=False)
class Corrections:
    """Correct the mean by a weighted sum of ridge regression and boosted trees.

    The models of every fold are kept. The mean of their answers corrects new rows.
    Weights are in [0, 1] and minimise the out-of-fold squared error. All weights are 0
    unless this lowers the error by more than one standard error of the paired
    differences.

    Parameters
    ----------
    n_jobs : int, optional
    random_state : int

    Attributes
    ----------
    oof_ : ndarray of shape (n,)
        The corrected means.
    weights_ : dict of str to float
    """

    n_jobs: int | None
    random_state: int

    def fit(
        self,
        features: Float64Array,
        inputs: Float64Array,
        y: Float64Array,
        weight: Float64Array,
        folds: list[Fold],
    ) -> Corrections:
        """Learn y less the mean, which is the first feature."""
        mean = features[:, 0]
        # LightGBM reads single precision, and solvers stop at absolute tolerances.
        far = np.abs(y - mean)[weight > 0.0].max()
        self.unit_ = float(np.exp2(np.round(np.log2(far)))) if far > 0.0 else 1.0
        rest = (y - mean) / self.unit_
        self.ridges_ = [
            _fit_ridge(features[train], rest[train], weight[train])
            for train, _ in folds
        ]
        # Rows that no fold tests have no correction, so their mean stays.
        ridge = np.zeros(len(y))
        for model, (_, test) in zip(self.ridges_, folds, strict=True):
            ridge[test] = model.predict(features[test])
        self.trees_ = FoldBoosters(
            {**_TREES, "seed": self.random_state},
            _MOST_ROUNDS,
            _PATIENCE,
            n_jobs=self.n_jobs,
        )
        trees = self.trees_.fit(inputs, rest, folds, weight)
        columns = np.column_stack([ridge, np.nan_to_num(trees)])
        self._weigh(columns, rest, weight)
        self.oof_ = mean + self.unit_ * (columns @ np.array([*self.weights_.values()]))
        return self

    def predict(self, features: Float64Array, inputs: Float64Array) -> Float64Array:
        """Return the corrected means of new rows, shape (n,)."""
        rest = np.zeros(len(features))
        if self.weights_["ridge"] > 0.0:
            each = [model.predict(features) for model in self.ridges_]
            rest += self.weights_["ridge"] * np.mean(each, axis=0)
        if self.weights_["trees"] > 0.0:
            trees = self.trees_.predict_each(inputs).mean(axis=0)
            rest += self.weights_["trees"] * trees
        return np.asarray(features[:, 0] + self.unit_ * rest)

    def _weigh(
        self, columns: Float64Array, rest: Float64Array, weight: Float64Array
    ) -> None:
        root = np.sqrt(weight / weight.sum())
        # Its weights may lie on the bounds, and not only near them.
        goal = root[:, None] * columns, root * rest
        solved = lsq_linear(*goal, (0.0, 1.0), method="bvls").x
        gain = rest**2 - (rest - columns @ solved) ** 2
        mean = weight @ gain / weight.sum()
        rows = effective_rows(weight)
        error = np.sqrt(
            weight @ (gain - mean) ** 2 / weight.sum() / max(rows - 1.0, 1.0)
        )
        taken = solved if mean > _ERRORS * error else np.zeros(2)
        taken = np.where(taken < _LEAST_WEIGHT, 0.0, taken)
        self.weights_ = {"ridge": float(taken[0]), "trees": float(taken[1])}


def _fit_ridge(features: Float64Array, rest: Float64Array, weight: Float64Array) -> Any:
    """Fit ridge regression on standardised features, with leave-one-out strength."""
    if np.count_nonzero(weight) < 2:  # nothing is left out of one row
        return DummyRegressor().fit(features, rest, weight)
    model = make_pipeline(StandardScaler(), RidgeCV(_ALPHAS))
    return model.fit(
        features,
        rest,
        standardscaler__sample_weight=weight,
        ridgecv__sample_weight=weight,
    )


def make_stacker(given: Any) -> Stacker | None:
    """Return the stacker that a regressor's parameter asks for, unfitted.

    Parameters
    ----------
    given : "auto", regressor, Stacker or None

    Returns
    -------
    Stacker or None
    """
    if given is None:
        return None
    stacker = clone(given) if isinstance(given, Stacker) else Stacker(given)
    inner = stacker.estimator
    check_flag(stacker.passthrough, "passthrough")
    if not (is_auto(inner) or predicts_numbers(inner)):
        kind = ValueError if isinstance(inner, str) else TypeError
        rule = 'be "auto", a regressor, a Stacker or None'
        refuse("stacker", rule, repr(inner), kind)
    return stacker


def _rmse(error: Float64Array, weight: Float64Array) -> float:
    return float(np.sqrt(weight @ error**2 / weight.sum()))
