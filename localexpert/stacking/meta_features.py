"""`MetaFeatures`: features of distributions, and regressors that return them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_is_fitted

from calibration.typing import Float64Array
from localexpert.data.table import Table
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.experts.thresholds import (
    cuts_between,
    is_discrete,
    place_thresholds,
)

if TYPE_CHECKING:
    import pandas as pd

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95])
_MOMENTS = ("mean", "std", "skew")


@dataclass(frozen=True, eq=False)
class MetaFeatures:
    """Moments, quantiles and probabilities of predictive laws as columns.

    Parameters
    ----------
    thresholds : ndarray of shape (N,)
        Values of y whose P(Y <= v) is a column each.
    """

    thresholds: Float64Array

    @classmethod
    def place(
        cls, y: Float64Array, weight: Float64Array, thresholds: Any, n_thresholds: int
    ) -> MetaFeatures:
        """Return those of a target.

        Parameters
        ----------
        y, weight : ndarrays of shape (n,)
        thresholds : {"quantile", "uniform"} or array-like
            As in `place_thresholds`; of a discrete target all midpoints.
        n_thresholds : int

        Returns
        -------
        MetaFeatures
        """
        values = np.unique(y[weight > 0.0])
        if len(values) == 1:
            return cls(values)
        if isinstance(thresholds, str) and is_discrete(y, sample_weight=weight):
            return cls(cuts_between(values))
        return cls(place_thresholds(y, n_thresholds, thresholds, weight))

    @property
    def names(self) -> list[str]:
        """Names of the columns, each once."""
        # As many digits as tell the thresholds apart.
        for digits in range(4, 18):
            labels = [f"{v:.{digits}g}" for v in self.thresholds]
            if len(set(labels)) == len(labels):
                break
        quantiles = [f"quantile {level:g}" for level in LEVELS]
        return [*_MOMENTS, *quantiles, *(f"P(y <= {label})" for label in labels)]

    def of(self, dist: PredictiveDistribution) -> Float64Array:
        """Return the columns of every row.

        Parameters
        ----------
        dist : PredictiveDistribution
            Of n rows.

        Returns
        -------
        ndarray of shape (n, q)
            In the order of `names`.
        """
        moments = dist.mean(), dist.std(), dist.skew()
        probabilities = dist.cdf_at(self.thresholds)
        return np.column_stack([*moments, dist.quantiles(LEVELS), probabilities])


class MetaFeatureTransformer(TransformerMixin):
    """Methods that turn forecasts into features, for those who stack by hand.

    The columns are those that a `stacker` gets: mean, standard deviation and skewness
    of every row's distribution, quantiles, and calibrated probabilities of being at or
    below thresholds in units of y. They are a data frame of pandas, or of polars after
    ``set_output(transform="polars")``.
    """

    meta_features_: MetaFeatures
    forecaster_: Any
    fitted_rows_: Any
    untested_rows_: Any
    _read: Callable[[Any], Table]

    def oof_features(self) -> pd.DataFrame:
        """Return the meta-features of the training rows, out of fold.

        Every row is described by models and calibrators that have not seen its y, so
        a regressor trained on these columns meets the same kind of features on new
        rows.

        Returns
        -------
        pandas.DataFrame of shape (n, q)
            Of the rows `fitted_rows_`, which are its index.
        """
        check_is_fitted(self)
        dist = PredictiveDistribution(self.forecaster_.oof_law_)
        features = self.meta_features_.of(dist)
        return self._named(features, self.fitted_rows_)

    def transform(self, X: Any) -> pd.DataFrame:
        """Return the meta-features of new rows.

        Parameters
        ----------
        X : array or data frame of shape (n, p)

        Returns
        -------
        pandas.DataFrame of shape (n, q)
            With the index of `X`, if it has one.
        """
        check_is_fitted(self)
        return self._named(self._describe(X), getattr(X, "index", None))

    def fit_transform(self, X: Any, y: Any, **fit_parameters: Any) -> pd.DataFrame:
        """Fit, and return the out-of-fold meta-features of these rows.

        Unlike ``fit(X, y).transform(X)``, which would describe rows by models that
        have seen them; a regressor that follows in a pipeline learns from honest
        features.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
        y : array-like of shape (n,)
        **fit_parameters : dict
            Of `fit`.

        Returns
        -------
        pandas.DataFrame of shape (n, q)
            Rows that a recalibration held out are described like new ones.
        """
        self.fit(X, y, **fit_parameters)
        if len(self.untested_rows_):
            msg = (
                "`cv` must test every row where `fit_transform` is to describe all out "
                f"of fold, got {len(self.untested_rows_)} rows in no test part."
            )
            raise ValueError(msg)
        index = getattr(X, "index", None)
        dist = PredictiveDistribution(self.forecaster_.oof_law_)
        features = self.meta_features_.of(dist)
        if len(features) < len(X):
            every = self._describe(X)
            every[self.fitted_rows_] = features
            features = every
        return self._named(features, index)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Return the names of the meta-features.

        Parameters
        ----------
        input_features : ignored
            For scikit-learn's sake.

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
        law = self.forecaster_.law(self._read(X))
        return self.meta_features_.of(PredictiveDistribution(law))

    def _named(self, features: Float64Array, index: Any) -> pd.DataFrame:
        try:
            import pandas as pd
        except ImportError as error:
            msg = 'meta-features are a data frame: pip install "localexpert[io]"'
            raise ImportError(msg) from error
        names = self.meta_features_.names
        return pd.DataFrame(features, columns=names, index=index)
