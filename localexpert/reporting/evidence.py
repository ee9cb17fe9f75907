"""`Evidence`: a model, rows that it has not seen, and its forecasts of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration.typing import Float64Array
from localexpert._validation import (
    check_integer,
    check_level,
    check_same_length,
    check_vector,
)
from localexpert.data.table import Table, TableReader
from localexpert.data.unseen import unseen_silently
from localexpert.distribution.answers import LOSSES
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.distribution.predictors import (
    check_predicts,
    open_same,
    predict_dist,
)
from localexpert.explain.mixing import check_columns, read_table
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.climatology import Climatology
from localexpert.reporting.columns import Column, read_columns
from localexpert.reporting.findings import CoverageTest
from localexpert.reporting.promise import Promise
from localexpert.reporting.scores import Scores
from localexpert.reporting.training import (
    Training,
    recall_features,
    recall_reader,
    recall_training,
)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What every section of a report is written from.

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
    X : array or data frame of shape (n, p)
    y : ndarray of shape (n,)
    dist : PredictiveDistribution
        Of the n rows.
    coverage : float
        Of the intervals.
    training : Training or None
    X_train : array or data frame of shape (m, p), or None
    y_train : ndarray of shape (m,) or None
    seed : int
    """

    model: Any
    X: Any
    y: Float64Array
    dist: PredictiveDistribution
    coverage: float
    training: Training | None
    X_train: Any
    y_train: Float64Array | None
    seed: int

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def table(self) -> Table:
        """The rows, with the categories that they have and the model's features."""
        known = recall_reader(self.model)
        own = TableReader.learn(self.X, None if known is None else known.dates)
        return own.read(self.X)

    @cached_property
    def beside_training(self) -> tuple[Table, Table] | None:
        """Training rows, and these with the same categories, where they are given."""
        if self.X_train is None:
            return None
        reader = TableReader.learn(self.X_train, self.table.reader.dates)
        return reader.read(self.X_train), reader.read(self.X)

    @cached_property
    def columns_beside_training(self) -> tuple[list[Column], list[Column]] | None:
        """Features in training and here, from rows that are given or as recalled.

        Of a summary numbers are those of its cells, in which both samples are counted
        exactly; they keep the order of values.
        """
        if self.beside_training is not None:
            train, here = map(read_columns, self.beside_training)
            return train, here
        summary = recall_features(self.model)
        if summary is None:
            return None
        here = read_columns(self.model.reader_.read(self.X))
        kept = list(zip(summary.columns, here, strict=True))
        before = [Column(told.sample(), column.names) for told, column in kept]
        now = [Column(told.place(column.values), column.names) for told, column in kept]
        return before, now

    @cached_property
    def columns(self) -> list[Column]:
        """The features of the rows."""
        return read_columns(self.table)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        columns = self.table.reader.features
        if columns.names is None:
            return tuple(f"x{j}" for j in range(columns.n_columns))
        return tuple(str(name) for name in columns.names)

    @cached_property
    def labels(self) -> list[str]:
        """Names of the rows: a data frame's own, or numbers from 0."""
        return [str(name) for name in getattr(self.X, "index", range(len(self)))]

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
    def promises(self) -> dict[str, Promise]:
        """Losses that the forecasts expect of themselves beside what came of them."""
        return {loss: Promise.of(self.y, self.dist, loss) for loss in LOSSES}

    @cached_property
    def pit(self) -> Float64Array:
        """PIT values, drawn where forecasts jump, shape (n,)."""
        return self.dist.pit(self.y, self.seed)

    @cached_property
    def climatology(self) -> PredictiveDistribution | None:
        """The training target's distribution as the forecast of every row."""
        training = self.training
        if training is None:
            return None
        model = open_same(self.model, pipelines=True)
        if isinstance(model, LocalExpertRegressor):
            climate = Climatology.of(model, training.y, training.weight)
        else:
            discrete = self.dist.law.is_discrete
            climate = Climatology.of_sample(training.y, training.weight, discrete)
        return climate.dist(len(self))

    @cached_property
    def scores(self) -> Scores:
        """Scores of the model."""
        return Scores.of(self.y, self.dist, self.coverage)

    @cached_property
    def climatology_scores(self) -> Scores | None:
        """Scores of climatology."""
        if self.climatology is None:
            return None
        return Scores.of(self.y, self.climatology, self.coverage)

    def test_coverage(self, rows: Any = slice(None)) -> CoverageTest:
        """Count the outcomes of some rows that their intervals cover."""
        covered = self.covered[rows]
        low, high = self.interval[rows].T
        outcomes = self.y[rows]
        between = int(((low <= outcomes) & (outcomes <= high)).sum())
        hits = float(covered.sum())
        return CoverageTest(len(covered), hits, self.coverage, between)


# A section of the page tells of categories that are new.
@unseen_silently()
def gather_evidence(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    X_train: Any,
    y_train: ArrayLike | None,
    coverage: float,
    random_state: int,
) -> Evidence:
    """Check the arguments of a report and make the forecasts."""
    check_predicts(model)
    model = open_same(model)
    coverage = check_level(coverage, "coverage")
    seed = check_integer(random_state, "random_state", 0)
    table, target = _check_rows(X, y, "X", "y")
    held = None if y_train is None else check_vector(y_train, "y_train")
    if X_train is not None:
        if held is None:
            msg = "`y_train` must be given with `X_train`, got None."
            raise ValueError(msg)
        X_train, held = _check_rows(X_train, held, "X_train", "y_train")
        check_columns(table, X_train, "X_train")
    dist = predict_dist(model, table)
    if len(dist) != len(target):
        msg = (
            "`model` must forecast a PredictiveDistribution of as many rows as `X`, "
            f"{len(target)}, got {dist!r}."
        )
        raise TypeError(msg)
    training = recall_training(model)
    if training is None and held is not None:
        training = Training(held, np.ones(len(held)), None)
    return Evidence(model, table, target, dist, coverage, training, X_train, held, seed)


def _check_rows(
    X: Any, y: ArrayLike, X_name: str, y_name: str
) -> tuple[Any, Float64Array]:
    """Return a table that is not empty, and a target for each of its rows."""
    table = read_table(X, X_name)
    target = check_vector(y, y_name)
    check_same_length(len(table), f"`{X_name}`", len(target), y_name)
    return table, target
