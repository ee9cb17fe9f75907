"""`Evidence`: a model, rows that it has not seen, and its forecasts of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import check_same_length, check_vector
from localexpert.curves.base_cdf import BaseCDF, law_of_curves
from localexpert.data.table import Table, TableReader
from localexpert.data.table_summary import TableSummary
from localexpert.data.target_values import count_values
from localexpert.data.unseen import unseen_silently
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.distribution.predictors import open_same, predict_dist
from localexpert.explain.rows import check_columns, read_table
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap
from localexpert.law.steps import merge_near_values
from localexpert.learn.values import Support
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.numbers import show_feature
from localexpert.reporting.verdicts import CoverageTest

MISSING = "missing"


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one feature in n rows.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Numbers, NaN where missing; or numbers of the names.
    names : list of str or None
        Of the values of a category.
    """

    values: Float64Array
    names: list[str] | None

    @property
    def is_missing(self) -> NDArray[np.bool_]:
        """Which rows have no value, shape (n,)."""
        return np.isnan(self.values)

    def take(self, rows: NDArray[np.intp]) -> Column:
        """Return some rows."""
        return Column(self.values[rows], self.names)

    def text(self, row: int) -> str:
        """Return the value of a row as a text."""
        value = self.values[row]
        if self.names is None or np.isnan(value):
            return show_feature(value)
        return self.names[int(value)]


def read_columns(table: Table) -> tuple[list[str], list[Column]]:
    """Return the names of a table's features, and their values."""
    codes, features = table.codes, table.reader.features
    categories = table.reader.category_codes.items()
    values = {j: [str(value) for value in values] for j, values in categories}
    n = features.n_columns
    names = [str(name) for name in features.names or (f"x{j}" for j in range(n))]
    return names, [Column(codes[:, j], values.get(j)) for j in range(n)]


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
    curves = LevelMap(np.zeros(1), np.zeros(1), np.ones(1))
    law = law_of_curves(np.zeros(1), np.ones(1), curves, base)
    if len(atoms):
        law = Law(law.curve, atoms, share[~rest][None], widths)
    return PredictiveDistribution(law)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What all figures of a report are made from.

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
    X : array or data frame of shape (n, p)
    y : ndarray of shape (n,)
    labels : list of str
        Names of the rows.
    coverage : float
        Of the intervals.
    X_train : array or data frame of shape (m, p), or None
    y_train : ndarray of shape (m,) or None
    seed : int
    """

    model: Any
    X: Any
    y: Float64Array
    labels: list[str]
    coverage: float
    X_train: Any
    y_train: Float64Array | None
    seed: int

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    @unseen_silently()
    def dist(self) -> PredictiveDistribution:
        """Forecasts of the rows."""
        return predict_dist(self.model, self.X)

    def check_forecasts(self) -> None:
        """Refuse a model that is not fitted, or forecasts other rows."""
        if len(self.dist) != len(self):
            msg = (
                "`model` must forecast a PredictiveDistribution of as many rows as "
                f"`X`, {len(self)}, got {self.dist!r}."
            )
            raise TypeError(msg)

    @cached_property
    def training(self) -> Training | None:
        """What the model keeps of its training, or what is given of it."""
        kept, given = recall_training(self.model), self.y_train
        if kept is not None or given is None:
            return kept
        return Training(given, np.ones(len(given)), None, self.dist.law.is_discrete)

    @cached_property
    def known(self) -> tuple[TableReader, TableSummary] | None:
        """How training rows are read, and counts of their values."""
        kept = getattr(self.model, "table_summary_", None)
        if kept is not None:
            return self.model.reader_, kept
        if self.X_train is None:
            return None
        table = Table.of(self.X_train)
        told = TableSummary.of(table, np.ones(len(table)))
        return None if told is None else (table.reader, told)

    @cached_property
    def table(self) -> Table:
        """The rows, with the categories that they have and the features of training."""
        dates = None if self.known is None else self.known[0].dates
        return TableReader.learn(self.X, dates).read(self.X)

    @cached_property
    def columns(self) -> list[Column]:
        """The features of the rows."""
        return read_columns(self.table)[1]

    @cached_property
    def names(self) -> list[str]:
        """Names of the features."""
        return read_columns(self.table)[0]

    @cached_property
    def beside_training(self) -> list[tuple[str, Column, Column]]:
        """Name of each feature, its values in training and here; none if not known.

        Numbers are those of the cells of a summary, in which both samples are counted
        exactly; they keep the order of values.
        """
        if self.known is None:
            return []
        reader, summary = self.known
        _, values = read_columns(reader.read(self.X))
        here = zip(self.names, summary.columns, values, strict=True)
        return [
            (
                name,
                Column(told.sample(), column.names),
                Column(told.place(column.values), column.names),
            )
            for name, told, column in here
        ]

    @cached_property
    def interval(self) -> Float64Array:
        """Ends of the central intervals, shape (n, 2)."""
        return self.dist.interval(self.coverage)

    @cached_property
    def width(self) -> Float64Array:
        """Widths of the intervals, shape (n,)."""
        return self.interval[:, 1] - self.interval[:, 0]

    @cached_property
    def covered(self) -> Float64Array:
        """How much of every outcome its interval covers, shape (n,)."""
        return self.dist.covered(self.y, self.coverage)

    @cached_property
    def crps(self) -> Float64Array:
        """CRPS of every row, shape (n,)."""
        return self.dist.crps(self.y)

    @cached_property
    def pit(self) -> Float64Array:
        """PIT values, drawn where forecasts jump, shape (n,)."""
        return self.dist.pit(self.y, self.seed)

    @cached_property
    def climatology(self) -> PredictiveDistribution | None:
        """The training target's distribution as the forecast of every row."""
        if self.training is None:
            return None
        one = climatology_of(self.model, self.training)
        return one[np.zeros(len(self), dtype=np.intp)]

    def test_coverage(self, rows: Any = slice(None)) -> CoverageTest:
        """Count the outcomes of some rows that their intervals cover."""
        low, high = self.interval[rows].T
        inside = (low <= self.y[rows]) & (self.y[rows] <= high)
        hits = float(self.covered[rows].sum())
        return CoverageTest(len(inside), int(inside.sum()), hits, self.coverage)


def read_rows(
    X: Any, y: ArrayLike, X_name: str = "X", y_name: str = "y"
) -> tuple[Any, Float64Array]:
    """Return a table that is not empty, and a target for each of its rows."""
    table = read_table(X, X_name)
    target = check_vector(y, y_name)
    check_same_length(len(table), f"`{X_name}`", len(target), y_name)
    return table, target


def read_training(
    X: Any, y: ArrayLike | None, like: Any
) -> tuple[Any, Float64Array | None]:
    """Return training rows, if any are given, that have the columns of others."""
    if X is None:
        return None, None if y is None else check_vector(y, "y_train")
    if y is None:
        msg = "`y_train` must be given with `X_train`, got None."
        raise ValueError(msg)
    table, target = read_rows(X, y, "X_train", "y_train")
    check_columns(like, table, "X_train")
    return table, target


def read_labels(names: Iterable[object] | None, X: Any) -> list[str]:
    """Return names of rows as texts: a data frame's own, or numbers from 0."""
    if names is None:
        return [str(name) for name in getattr(X, "index", range(len(X)))]
    if isinstance(names, str) or not isinstance(names, Iterable):
        msg = f"`row_names` must hold a name for each row, got {names!r}."
        raise TypeError(msg)
    texts = [str(name) for name in names]
    check_same_length(len(X), "`X`", len(texts), "row_names")
    return texts
