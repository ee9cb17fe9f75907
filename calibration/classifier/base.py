"""What all classifiers around other classifiers share: rows, labels, routes, folds."""

from __future__ import annotations

import numbers
import reprlib
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import assert_all_finite, column_or_1d, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import has_fit_parameter

from calibration._jobs import each_result
from calibration._validation import (
    as_labels,
    as_numbers,
    check_integer,
    check_same_length,
    check_weights,
    count_rows,
    find_no_number,
    refuse,
    warn_of_light,
)
from calibration.exceptions import CalibrationWarning
from calibration.multiclass.class_scores import positive_shares
from calibration.selection.trials import tick
from calibration.storage import Saved
from calibration.typing import Float64Array

Rows: TypeAlias = NDArray[np.intp]
Fold: TypeAlias = tuple[Rows, Rows]
Reader: TypeAlias = Callable[[Any, Any], Float64Array]

_N_FOLDS = 5


@dataclass(frozen=True)
class TrainingData:
    """Rows in any container, their labels, and the other arguments of `fit`.

    Parameters
    ----------
    X : array-like, sparse array or data frame of shape (n, n_features)
    y : ndarray of shape (n,)
    params : mapping
        Further arguments of `fit`. A value that is as long as `y` has one entry per
        row.
    """

    X: Any
    y: NDArray[Any]
    params: Mapping[str, Any]

    def take(self, rows: Rows) -> TrainingData:
        """Return the data of the given rows."""
        n = len(self.y)
        params = {
            name: take_rows(value, rows) if count_rows(value) == n else value
            for name, value in self.params.items()
        }
        return TrainingData(take_rows(self.X, rows), self.y[rows], params)


def choose_splitter(
    cv: Any, y: NDArray[Any], classes: NDArray[Any], groups: NDArray[Any] | None = None
) -> Any:
    """Return the splitter that `cv` means for labels of some classes.

    An integer is obeyed or refused. The default is lowered to the size of the rarest
    class, so that every training part holds all classes. With groups, the size of a
    class is the number of groups that hold it, and no fold cuts a group.
    """
    if cv is not None and not isinstance(cv, numbers.Integral):
        if isinstance(cv, Iterable) and not hasattr(cv, "split"):
            cv = list(cv)
            for number, fold in enumerate(cv):
                if not hasattr(fold, "__len__") or len(fold) != 2:
                    rule = "be a number, a splitter or pairs (train, test)"
                    refuse("cv", rule, f"{fold!r} as fold {number}", TypeError)
            if groups is not None:
                refuse("groups", "be None where `cv` gives the folds", "both")
        return check_cv(cv, y, classifier=True)
    n_folds = _N_FOLDS if cv is None else check_integer(cv, "cv", 2)
    counts = [
        np.sum(y == label) if groups is None else len(np.unique(groups[y == label]))
        for label in classes
    ]
    least = int(min(counts))
    rarest = classes.tolist()[counts.index(least)]
    units = "rows" if groups is None else "groups"
    if least < 2:
        rule = f"hold at least two {units} of each class to be split in folds"
        refuse("y", rule, f"one {units[:-1]} of class {rarest!r}")
    if least < n_folds and cv is not None:
        which = "rarer" if len(classes) == 2 else "rarest"
        rule = f"not be greater than the number of {units} of the {which} class"
        refuse("cv", rule, f"{n_folds} folds for {least} {units} of class {rarest!r}")
    n_folds = min(n_folds, least)

    def trains_on_all(n: int) -> bool:
        parts = StratifiedGroupKFold(n).split(y, y, groups)
        return all(len(np.unique(y[train])) == len(classes) for train, _ in parts)

    if groups is not None and cv is None:
        # More folds may do what fewer cannot. With most folds, each group is left out
        # alone.
        most = min(len(np.unique(groups)), max(np.sum(y == one) for one in classes))
        tried = [*range(n_folds, 1, -1), *range(n_folds + 1, most + 1)]
        n_folds = next(filter(trains_on_all, tried), n_folds)
    if cv is None and n_folds != _N_FOLDS:
        msg = f"`y` holds {least} {units} of class {rarest!r} only; "
        msg += f"{n_folds} folds are used instead of {_N_FOLDS}."
        warnings.warn(msg, CalibrationWarning, stacklevel=3)
    return (StratifiedKFold if groups is None else StratifiedGroupKFold)(n_folds)


def check_groups(groups: Any, n: int) -> NDArray[Any] | None:
    """Return groups as a vector without gaps and as long as `y`, or None for none."""
    if groups is None:
        return None
    if count_rows(groups) < 0 or np.ndim(groups) != 1:
        refuse("groups", "be of shape (n,)", reprlib.repr(groups))
    found = as_labels(groups, "groups")
    check_same_length(n, "`y`", len(found), "groups")
    return found


def split_rows(
    splitter: Any, data: TrainingData, params: Mapping[str, Any]
) -> list[Fold]:
    """Return (train, test) row numbers per fold, which can train and test a model."""
    classes = np.unique(data.y)
    folds = list_folds(splitter, data.X, data.y, **params)
    for number, (train, test) in enumerate(folds):
        held = np.unique(data.y[train])
        if len(held) < len(classes):
            learned = f"no row of class {np.setdiff1d(classes, held).tolist()[0]!r}"
            if len(held) < 2:
                learned = f"class {held.item()!r} only" if len(held) else "no row"
            every = "both" if len(classes) == 2 else "all"
            rule = f"leave {every} classes in every training part"
            refuse("cv", rule, f"fold {number} that trains on {learned}")
        if len(test) == 0:
            refuse("cv", "leave no test part empty", f"fold {number} without rows")
    if not folds:
        refuse("cv", "yield at least one fold", "none")
    return folds


def refuse_repeats(folds: list[Fold], n: int, where: str = "") -> None:
    """Refuse folds that test one of n rows several times. `where` ends the rule."""
    counts = np.zeros(n, dtype=np.int64)
    for _, test in folds:
        np.add.at(counts, test, 1)
    if counts.max() > 1:
        rule = f"put no row in several test parts{where}"
        refuse("cv", rule, f"row {np.argmax(counts)} in {counts.max()} of them")


def cross_fit(
    estimator: Any,
    data: TrainingData,
    folds: list[Fold],
    read: Reader,
    *,
    refit: bool,
    n_jobs: int | None,
) -> tuple[list[Any], list[Float64Array]]:
    """Fit a clone per fold, and read the scores of its test rows.

    Returns
    -------
    models : list
        The clones. If `refit`, they are replaced by one clone fitted on all rows.
    scores : list of ndarrays
        The scores of the test rows of each fold.
    """
    jobs = [
        delayed(_fit_and_score)(clone(estimator), data, fold, read, keep=not refit)
        for fold in folds
    ]
    if refit:
        # The job is queued with the others, so that no core waits for it at the end.
        jobs.append(delayed(clone(estimator).fit)(data.X, data.y, **data.params))
    results = []
    for done in each_result(jobs, n_jobs=n_jobs):
        results.append(done)
        tick()
    models = [results.pop()] if refit else [model for model, _ in results]
    return models, [scores for _, scores in results]


def _fit_and_score(
    estimator: Any, data: TrainingData, fold: Fold, read: Reader, *, keep: bool
) -> tuple[Any, Float64Array]:
    train, test = fold
    part = data.take(train)
    estimator.fit(part.X, part.y, **part.params)
    # A model that nobody needs is not kept, and a worker does not send it back.
    return estimator if keep else None, read(estimator, take_rows(data.X, test))


def check_table_rows(X: Any, n: int | None = None) -> None:
    """Refuse what is no table, has no rows, or is not as long as `y`."""
    found = count_rows(X)
    if found < 0:
        rule = "be an array, a sparse array or a data frame of shape (n, n_features)"
        refuse("X", rule, reprlib.repr(X), TypeError)
    if n is not None:
        check_same_length(n, "`y`", found, "X")
    elif found == 0:
        refuse("X", "have at least one row", "none")


def take_rows(table: Any, rows: Rows) -> Any:
    """Return the given rows of an array, sparse array, data frame or list."""
    if hasattr(table, "iloc"):
        return table.iloc[rows]
    if hasattr(table, "column_names"):  # Arrow
        return table.take(rows)
    if hasattr(table, "shape"):
        return table[rows]
    return [table[row] for row in rows]


def list_folds(splitter: Any, X: Any, y: NDArray[Any], **params: Any) -> list[Fold]:
    """Return the (train, test) row numbers of each fold, as the splitter gives them."""
    n, parts = len(y), splitter.split(X, y, **params)
    return [(number_rows(train, n), number_rows(test, n)) for train, test in parts]


def number_rows(part: Any, n: int) -> Rows:
    """Return row numbers from 0 on for a mask, or for row numbers of any sign."""
    index = np.asarray(part)
    # An empty list makes an array of floats, which cannot index.
    index = index if index.size else index.astype(np.intp)
    try:
        return np.asarray(np.arange(n)[index])
    except IndexError as error:
        rule = f"yield row numbers or masks of {n} rows"
        refuse("cv", rule, f"{part!r}", cause=error)


class ClassifierAround(Saved, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Base of classifiers that fit another one: `estimator`, or a default."""

    estimator: Any
    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_in_: NDArray[Any]

    @abstractmethod
    def predict_proba(self, X: Any) -> Float64Array:
        """Return probabilities (n, k). The columns are in the order of `classes_`."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label. If several are equal, it is the first.

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
        """Return the classifier that is fitted if none is given."""

    def _resolve_estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        estimator = self._default_estimator()
        if get_config()["enable_metadata_routing"]:
            estimator.set_fit_request(sample_weight=True)
        return estimator

    def _read_rows(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, NDArray[Any], Float64Array, Float64Array | None]:
        """Return rows, labels, weights, and the weights to pass on if any are given."""
        labels = read_labels(y)
        check_table_rows(X, len(labels))
        X, _ = indexable(X, labels)
        weights = check_weights(sample_weight, len(labels))
        warn_of_light(sample_weight)
        return X, labels, weights, None if sample_weight is None else weights

    def _note_features(self, fitted: Any) -> None:
        """Take over what a fitted classifier says about its features."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(fitted, name):
                setattr(self, name, getattr(fitted, name))


def read_labels(y: ArrayLike) -> NDArray[Any]:
    """Return labels as a vector without gaps. Number objects become plain numbers."""
    if count_rows(y) < 0:
        # The checks of scikit-learn look for the last words.
        refuse("y", "be labels of shape (n,)", f"{y!r}: y should be a 1d array")
    labels: NDArray[Any] = column_or_1d(as_labels(y, "y"), warn=True)
    if labels.dtype.kind == "O" and find_no_number(labels) is None:
        # scikit-learn accepts objects only if they are texts.
        numbers = np.array(labels.tolist())
        labels = as_numbers(labels, "y") if numbers.dtype.kind == "O" else numbers
    return labels


def check_many_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted labels in `y`. There must be two or more."""
    classes = _distinct_labels(y)
    if len(classes) < 2:
        held = f"one class: {classes.tolist()[0]!r}" if len(classes) else "no row"
        refuse("y", "hold two classes or more", held)
    return classes


def check_known_classes(
    y: NDArray[Any], estimator: Any, weights: Float64Array
) -> NDArray[Any]:
    """Return the sorted labels of a fitted classifier. `y` may hold some of them.

    If a classifier does not say what it was fitted on, the labels of `y` are taken.
    """
    if not hasattr(estimator, "classes_"):
        return check_many_classes(y)
    known: NDArray[Any] = np.sort(estimator.classes_)
    if len(known) < 2:
        refuse("estimator", "have been fitted on two classes or more", known.tolist())
    # Sets of numpy would take 1 for "1" if texts and numbers are mixed.
    names = set(known.tolist())
    strange = [one for one in _distinct_labels(y).tolist() if one not in names]
    if strange:
        rule = f"hold the classes that `estimator` was fitted on, {known.tolist()}"
        refuse("y", rule, f"{strange[0]!r}")
    held = np.unique(y[weights > 0])
    absent = np.setdiff1d(known, held)
    # If only one class is left, its calibrator warns.
    if len(absent) and len(held) > 1:
        msg = f"`y` has no row of {reprlib.repr(absent.tolist())}, which `estimator` "
        msg += "was fitted on: calibration learns nothing of them."
        warnings.warn(msg, CalibrationWarning, stacklevel=3)
    return known


def weigh_classes(
    y: NDArray[Any], classes: NDArray[Any], weights: Float64Array
) -> Float64Array:
    """Return the prior of each of the sorted `classes`, shape (k,). All are positive.

    See `positive_shares`.
    """
    place = np.searchsorted(classes, y)
    return positive_shares(np.bincount(place, weights, minlength=len(classes)))


def _distinct_labels(y: NDArray[Any]) -> NDArray[Any]:
    """Return the sorted labels in `y`."""
    assert_all_finite(y, input_name="y")
    check_classification_targets(y)
    classes: NDArray[Any] = np.unique(y)
    return classes


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
        The classifier whose `fit` was called with these arguments.
    estimator : classifier
        The classifier that will be fitted.
    weights : ndarray of shape (n,) or None
    fit_params : dict
    groups : array-like of shape (n,), optional

    Returns
    -------
    params, split_params : dict
    """
    split_params = {} if groups is None else {"groups": groups}
    if get_config()["enable_metadata_routing"]:
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
        warnings.warn(msg, CalibrationWarning, stacklevel=3)
    return fit_params, split_params
