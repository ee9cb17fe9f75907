"""`Evidence`: a model, rows that it has not seen, and its forecasts of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibration.typing import Float64Array
from localexpert._validation import check_same_length, check_vector
from localexpert.curves.base_cdf import BaseCDF, law_of_curves
from localexpert.data.table import Table, TableReader
from localexpert.data.target_values import count_values
from localexpert.data.training_rows import TableSummary
from localexpert.data.unseen import unseen_silently
from localexpert.distribution.answers import expected_by_loss, loss_variances
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.distribution.predictors import open_same, predict_dist
from localexpert.explain.shapley import check_columns, read_table
from localexpert.law.law import Law
from localexpert.law.level_map import LevelMap
from localexpert.law.steps import merge_near_values
from localexpert.learn.values import Support
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting.groups import Column, Grouping, read_columns
from localexpert.reporting.numbers import adjust_holm
from localexpert.reporting.scores import BackTest, CoverageTest, GroupFigures, Promise


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
    var_levels : list of float
        Of the values at risk.
    seed : int
    """

    model: Any
    X: Any
    y: Float64Array
    labels: list[str]
    coverage: float
    X_train: Any
    y_train: Float64Array | None
    var_levels: list[float]
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
        summary = TableSummary.of(table, np.ones(len(table)))
        return None if summary is None else (table.reader, summary)

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

    @cached_property
    def risks(self) -> list[tuple[float, NDArray[np.bool_], Float64Array]]:
        """Levels of values at risk, which rows passed, and how probable it was."""
        values = {level: self.dist.value_at_risk(level) for level in self.var_levels}
        return [(p, self.y > value, self.dist.sf(value)) for p, value in values.items()]

    @cached_property
    def losses(self) -> dict[str, tuple[Float64Array, Float64Array, Float64Array]]:
        """Losses of rows, "crps" and "abs_error", as they came, means and variances."""
        law = self.dist.law
        came = {"crps": self.crps, "abs_error": np.abs(self.y - self.dist.median())}
        return {
            loss: (came[loss], means, loss_variances(law, loss, means))
            for loss, means in expected_by_loss(law).items()
        }

    def measure(
        self, rows: Any = slice(None), name: str = "", label: str = ""
    ) -> GroupFigures:
        """Test coverage, expected losses and values at risk of some rows."""
        (low, high), y = self.interval[rows].T, self.y[rows]
        inside, hits = (low <= y) & (y <= high), float(self.covered[rows].sum())
        test = CoverageTest(len(y), int(inside.sum()), hits, self.coverage)
        promises = {
            loss: Promise.of(*(values[rows] for values in held))
            for loss, held in self.losses.items()
        }
        backs = [
            BackTest.of(passed[rows], level, float(chance[rows].mean()))
            for level, passed, chance in self.risks
        ]
        p = {"coverage": test.p_value, "crps": promises["crps"].p_value}
        p |= {str(back.level): back.kupiec for back in backs}
        width = float(self.width[rows].mean())
        return GroupFigures(name, label, width, test, promises, backs, p)

    def measure_groups(self, groupings: Sequence[Grouping]) -> list[GroupFigures]:
        """Test all groups together."""
        made = [
            self.measure(one.group == g, one.name, label)
            for one in groupings
            for g, label in enumerate(one.labels)
        ]
        for kind in made[0].p_values if made else ():
            raised = adjust_holm([group.p_values[kind] for group in made]).tolist()
            for group, p_value in zip(made, raised, strict=True):
                group.p_values[kind] = p_value
        return made


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
