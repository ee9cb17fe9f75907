"""What classifiers made of others share: reading rows and labels, routes, a label."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import assert_all_finite, column_or_1d, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import has_fit_parameter

from calibration._validation import (
    as_numbers,
    check_weights,
    count_rows,
    find_no_number,
    is_gap,
    refuse,
    warn_of_light,
)
from calibration.classifier.folds import check_table_rows
from calibration.exceptions import CalibrationWarning
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


def read_labels(y: ArrayLike) -> NDArray[Any]:
    """Return labels as a vector without gaps, objects that are numbers as numbers."""
    if count_rows(y) < 0:
        # The last words are those that scikit-learn's checks look for.
        refuse("y", "be labels of shape (n,)", f"{y!r}: y should be a 1d array")
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if labels.dtype.kind not in "OMm":
        return labels
    cells = labels.tolist()
    gaps = [i for i, cell in enumerate(cells) if is_gap(cell)]
    if gaps:
        refuse("y", "have no gaps", f"{labels[gaps[0]]} at position {gaps[0]}")
    try:
        sorted(set(cells))
    except TypeError as error:
        refuse("y", "hold labels of one kind", error, TypeError, cause=error)
    if labels.dtype.kind == "O" and find_no_number(labels) is None:
        # scikit-learn knows no objects but texts.
        numbers = np.array(cells)
        labels = as_numbers(labels, "y") if numbers.dtype.kind == "O" else numbers
    return labels


def check_many_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return the labels in `y`, two or more, sorted."""
    classes = _distinct_labels(y)
    if len(classes) < 2:
        held = f"one class: {classes.tolist()[0]!r}" if len(classes) else "no row"
        refuse("y", "hold two classes or more", held)
    return classes


def check_known_classes(y: NDArray[Any], estimator: Any) -> NDArray[Any]:
    """Return the labels of a fitted classifier, sorted; `y` may hold some of them.

    A classifier that does not say what it was fitted on is taken at the word of `y`.
    """
    if not hasattr(estimator, "classes_"):
        return check_many_classes(y)
    known: NDArray[Any] = np.sort(estimator.classes_)
    if len(known) < 2:
        refuse("estimator", "have been fitted on two classes or more", known.tolist())
    strange = np.setdiff1d(_distinct_labels(y), known).tolist()
    if strange:
        rule = f"hold the classes that `estimator` was fitted on, {known.tolist()}"
        refuse("y", rule, f"{strange[0]!r}")
    return known


def weigh_classes(
    y: NDArray[Any], classes: NDArray[Any], weights: Float64Array
) -> Float64Array:
    """Return the share of each of the sorted `classes` in the weight, shape (k,)."""
    place = np.searchsorted(classes, y)
    sums = np.bincount(place, weights, minlength=len(classes))
    return np.asarray(sums / sums.sum())


def _distinct_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Return the labels in `y`, sorted."""
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes: NDArray[Any] = np.unique(y)
    return classes


def routing_enabled() -> bool:
    """Say whether scikit-learn routes metadata."""
    return bool(get_config()["enable_metadata_routing"])


def route_arguments(
    router: Any,
    estimator: Any,
    weights: Float64Array | None,
    fit_params: dict[str, Any],
    groups: ArrayLike | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of `estimator.fit` and of the splitter's `split`.

    Parameters
    ----------
    router : classifier
        Whose `fit` was called with them.
    estimator : classifier
        To be fitted.
    weights : ndarray of shape (n,) or None
    fit_params : dict
    groups : array-like of shape (n,), optional

    Returns
    -------
    params, split_params : dict
    """
    split_params = {} if groups is None else {"groups": groups}
    if routing_enabled():
        given = {**fit_params, **split_params}
        routed = process_routing(router, "fit", sample_weight=weights, **given)
        return dict(routed.estimator.fit), dict(routed.splitter.split)
    if weights is None:
        return fit_params, split_params
    if has_fit_parameter(estimator, "sample_weight"):
        return {**fit_params, "sample_weight": weights}, split_params
    if not isinstance(estimator, FrozenEstimator):
        msg = (
            f"{type(estimator).__name__}.fit takes no `sample_weight`: the weights "
            "reach the calibrator only."
        )
        warn(msg, CalibrationWarning, stacklevel=3)
    return fit_params, split_params
