"""What classifiers made of others share: reading rows, routes, the label predicted."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from calibration._validation import check_weights, warn_of_light
from calibration.classifier.folds import check_table_rows
from calibration.classifier.labels import read_labels
from calibration.classifier.routes import routing_enabled
from calibration.storage import Saved
from calibration.typing import Float64Array


class LabelledRows(NamedTuple):
    """What `fit` is given, checked.

    `X` has as many rows as `labels` (n,) and `weights` (n,); `routed` are the weights
    that are handed on, None where none were given.
    """

    X: Any
    labels: NDArray[Any]
    weights: Float64Array
    routed: Float64Array | None


class ClassifierAround(Saved, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Base of classifiers that fit a classifier given as `estimator`, or their own."""

    estimator: Any
    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    @abstractmethod
    def predict_proba(self, X: Any) -> Float64Array:
        """Return probabilities (n, k), columns in the order of `classes_`."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label; of equals the first.

        Parameters
        ----------
        X : array-like, sparse array or data frame of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
        """
        place = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[place])

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routes of `fit`.

        Returns
        -------
        MetadataRouter
        """
        return (
            MetadataRouter(owner=type(self).__name__)
            .add_self_request(self)
            .add(
                estimator=self._resolve_estimator(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    @abstractmethod
    def _default_estimator(self) -> Any:
        """Return the classifier that is fitted where none is given."""

    def _resolve_estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        estimator = self._default_estimator()
        if routing_enabled():
            estimator.set_fit_request(sample_weight=True)
        return estimator

    def _read_rows(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> LabelledRows:
        """Return rows, labels and weights of one length."""
        labels = read_labels(y)
        check_table_rows(X, len(labels))
        X, _ = indexable(X, labels)
        weights = check_weights(sample_weight, len(labels))
        warn_of_light(weights)
        routed = None if sample_weight is None else weights
        return LabelledRows(X, labels, weights, routed)

    def _note_features(self, fitted: Any) -> None:
        """Take over what a fitted classifier says of its features."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))
