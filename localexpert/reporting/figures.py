"""`ReportFigures`: all that a report shows, for pages of one's own."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import check_integer, check_level, check_verbose, refuse
from localexpert._validation import check_levels
from localexpert.data.table import take_rows
from localexpert.data.training_rows import SeenRows
from localexpert.data.unseen import unseen_silently
from localexpert.distribution.predictors import (
    check_predicts,
    find_forecaster,
    open_same,
)
from localexpert.explain.permutation import (
    PermutationImportance,
    permutation_importance,
    read_rows,
)
from localexpert.regressor.fit_check import FitCheck, FitReport
from localexpert.regressor.recalibrated import seen_rows
from localexpert.reporting import evidence, pictures
from localexpert.reporting.groups import Column, Grouping, number_names, read_groups
from localexpert.reporting.scores import (
    BackTest,
    Calibration,
    GroupFigures,
    Scores,
    boosted_quantiles,
    gain_p_value,
    is_right_censored,
    row_losses,
)

# Permutations of a feature, and of each of more features than _MANY.
_REPEATS, _FEWER_REPEATS, _MANY = 3, 2, 60
# Rows that are forecast in all, so that many features do not take minutes.
_MOST_FORECASTS, _LEAST_ROWS = 60_000, 50
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_MOST_FEATURES = 15
# The width of the forecasts and three features: what rows are grouped by.
_MOST_GROUPINGS = 4
# Training rows that are needed to fit a baseline and to tell it when to stop.
_LEAST_TO_BOOST = 10
# Share of rows whose outcomes are not above the value that chances are given for.
_HIGH = 0.9


@dataclass(frozen=True, eq=False)
class ReportFigures(evidence.Evidence):
    """All that a report shows; each figure is made when it is first asked for.

    `report_figures` returns it. Its rows are those that the figures are of: the new
    ones, where the model knows its training rows.

    Parameters
    ----------
    model : fitted model
    X : array or data frame of shape (n, p)
    y : ndarray of shape (n,) or (n, 2)
    labels : list of str
        Names of the rows.
    coverage : float
    X_train : array or data frame of shape (m, p), or None
    y_train : ndarray of shape (m,) or None
    var_levels : list of float
    seed : int
    title, target, unit, source : str
        Texts of the page. The title is never empty; the others may be.
    date : datetime.date
    seen : SeenRows
        Which of all rows that were given the model has learned from.
    given_groups : list of (str, Column) or None
    odd_cells : sequence
    most_rows, verbose : int
        Of the importance.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution, report_figures
    >>> class Coin:
    ...     def predict_dist(self, X):
    ...         masses = np.full((len(X), 2), 0.5)
    ...         return PredictiveDistribution.from_arrays(atoms=[0, 1], masses=masses)
    >>> figures = report_figures(Coin(), np.ones((40, 1)), np.arange(40) % 2)
    >>> figures.scores["Model"].crps, figures.findings[0].what
    (0.25, 'forecasts')
    """

    title: str
    target: str
    unit: str
    source: str
    date: datetime.date
    seen: SeenRows
    given_groups: list[tuple[str, Column]] | None
    odd_cells: Sequence[Any]
    most_rows: int
    verbose: bool | int

    @property
    def scale(self) -> str:
        """What is written behind the name of a loss that is in the target's unit."""
        return f" ({self.unit})" if self.unit else ""

    @property
    def axis(self) -> str:
        """What is written at an axis of the target."""
        return f"{self.target or 'Target'}{self.scale}"

    @cached_property
    def scores(self) -> dict[str, Scores | None]:
        """Scores of "Model", "Climatology" and "Boosting"; None where it is lacking."""
        y, climate = self.y, self.climatology
        scored = {"Model": self.dist} | ({"Climatology": climate} if climate else {})
        made = {name: Scores.of(y, one, self.coverage) for name, one in scored.items()}
        boosting, old = None, None if self.partial else self.y_train
        if self.X_train is not None and old is not None and len(old) >= _LEAST_TO_BOOST:
            how = self.coverage, self.seed
            found = boosted_quantiles(self.X_train, old, self.X, *how)
            boosting = Scores.of_quantiles(y, *found, self.coverage)
        return {"Model": None, "Climatology": None, "Boosting": boosting, **made}

    @cached_property
    def gain_p(self) -> float | None:
        """p-value of no gain of CRPS over climatology, of intervals of log score."""
        climate = self.climatology
        losses = None if climate is None else row_losses(self.y, climate)
        return gain_p_value(losses, row_losses(self.y, self.dist))

    @cached_property
    def overall(self) -> GroupFigures:
        """Coverage, expected losses and values at risk of all rows."""
        return self.measure()

    @property
    def back_tests(self) -> list[BackTest]:
        """Tests of the values at risk of all rows, in their order."""
        return self.overall.back_tests

    @cached_property
    def calibration(self) -> Calibration:
        """Tests of coverage, literal and corrected for jumps, and of PIT values."""
        return Calibration(self.overall.coverage, self.pit)

    @cached_property
    def groupings(self) -> list[Grouping]:
        """What rows are grouped by.

        By default the width of the interval and the first features by importance that
        take more than one value. Widths that differ by rounding alone are one value.
        """
        if self.given_groups is not None:
            return [Grouping.of(*pair) for pair in self.given_groups]
        width, ends = self.width, self.interval[np.isfinite(self.interval)]
        rounding = 1e-10 * np.abs(ends).max(initial=0.0)
        if np.allclose(width, width[0], rtol=0.0, atol=rounding):
            width = np.zeros(len(width))
        found = [Grouping.of("width of the interval", Column(width, None))]
        found += [Grouping.of(self.names[j], self.columns[j]) for j in self.ranking]
        several = [one for one in found if len(one.labels) > 1]
        return number_names(several[:_MOST_GROUPINGS])

    @cached_property
    def groups(self) -> list[GroupFigures]:
        """Coverage, expected losses and values at risk by group."""
        return self.measure_groups(self.groupings)

    @cached_property
    def findings(self) -> list[evidence.Finding]:
        """What differs from training and what to doubt, warnings first."""
        return evidence.find_all(self)

    @cached_property
    @unseen_silently()
    def importance(self) -> PermutationImportance | None:
        """How much forecasts lose, by the CRPS, if a feature's values change rows."""
        n = self.importance_rows
        if n < 2 or not is_right_censored(self.y):
            return None
        rows = np.random.default_rng(self.seed).choice(len(self), n, replace=False)
        rows.sort()
        return permutation_importance(
            self.model,
            take_rows(self.X, rows),
            self.y[rows],
            levels=_QUANTILES,
            n_repeats=self.importance_repeats,
            random_state=self.seed,
            verbose=self.verbose,
        )

    @property
    def importance_repeats(self) -> int:
        """Permutations that importance is the mean of."""
        return _REPEATS if len(self.names) <= _MANY else _FEWER_REPEATS

    @property
    def importance_rows(self) -> int:
        """Rows that importance is measured on."""
        affordable = _MOST_FORECASTS // (self.importance_repeats * len(self.names))
        return min(len(self), self.most_rows, max(affordable, _LEAST_ROWS))

    @cached_property
    def important(self) -> list[int]:
        """Numbers of the most important features of `importance`, in order."""
        assert self.importance is not None
        order = np.argsort(-self.importance.crps, kind="stable")
        return [int(j) for j in order[:_MOST_FEATURES]]

    @cached_property
    def ranking(self) -> list[int]:
        """Numbers of the features, the most important first; else as they come."""
        if self.importance is None:
            return list(range(len(self.names)))
        # A date stands for its first feature, the days.
        column_of = self.table.reader.column_of
        order = np.argsort(-self.importance.crps, kind="stable")
        return [column_of.index(j) for j in order.tolist()]

    @cached_property
    def examples(self) -> dict[str, int]:
        """Different rows by what they are examples of, as far as rows reach.

        By the width of the interval a sure, a middling and an unsure forecast; by the
        CRPS the best and the worst, of known outcomes.
        """
        by_width = np.argsort(self.width, kind="stable")
        by_loss = np.argsort(self.crps, kind="stable")[: int(self.is_known.sum())]
        orders = {
            "worst": by_loss[::-1],
            "best": by_loss,
            "sure": by_width,
            "unsure": by_width[::-1],
            "middling": np.roll(by_width, -(len(self) // 2)),
        }
        taken: dict[str, int] = {}
        for name, order in orders.items():
            left = [int(row) for row in order if row not in taken.values()]
            taken |= {name: left[0]} if left else {}
        names = ("sure", "middling", "unsure", "best", "worst")
        return {name: taken[name] for name in names if name in taken}

    @cached_property
    def high_value(self) -> float | None:
        """Value that at most a tenth of the outcomes lies above, if all are known."""
        if self.partial:
            return None
        return float(np.quantile(self.y, _HIGH, method="inverted_cdf"))

    @property
    def forecaster(self) -> Any:
        """What forecasts inside of the model's wrappers."""
        return find_forecaster(self.model)

    @property
    def check(self) -> FitCheck | None:
        """What the fit found out of fold."""
        return getattr(self.forecaster, "check_", None)

    @property
    def fit(self) -> FitReport | None:
        """What the fit chose on its way."""
        found = getattr(self.forecaster, "report_", None)
        return found if isinstance(found, FitReport) else None

    @cached_property
    def pictures(self) -> dict[str, str]:
        """``data:`` addresses of the pictures by what they show."""
        drawn = pictures.draw_calibration(self, self.scale, self.axis)
        for one in self.groupings:
            part = [group for group in self.groups if group.name == one.name]
            drawn[f"group {one.name}"] = pictures.draw_group(self, one, part)
        for kind, row in self.examples.items():
            drawn[f"example {kind}"] = pictures.draw_example(self, row, self.axis)
        found = self.importance
        if found is not None and len(found.levels):
            drawn["importance"] = pictures.draw_importance(found, self.important)
        return drawn | pictures.draw_experts(self.forecaster)


@unseen_silently()
def report_figures(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    groups: Any = None,
    coverage: float = 0.9,
    var_levels: ArrayLike = (0.95,),
    title: str | None = None,
    target_name: str | None = None,
    unit: str | None = None,
    source: str | None = None,
    date: datetime.date | None = None,
    row_names: Iterable[object] | None = None,
    odd_cells: Sequence[Any] = (),
    importance_rows: int = 300,
    random_state: int = 0,
    verbose: bool | int = 0,
) -> ReportFigures:
    """Return all that `report` shows on forecasts of new rows.

    Rows that the model has learned from are left out, where it knows them.

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
        Of a `LocalExpertRegressor` more can be told than of others.
    X : array or data frame of shape (n, p)
        Rows that the model has not seen.
    y : array-like of shape (n,) or (n, 2)
        Their outcomes; of two columns lower and upper ends of outcomes that are known
        in part. What needs known ones is left out: errors of single numbers, expected
        losses, back-tests, and comparisons with training targets.
    X_train : array or data frame of shape (m, p), optional
        Training rows, for a boosted baseline, and for the drift of features of models
        that keep no counts of them; a `LocalExpertRegressor` does.
    y_train : array-like of shape (m,), optional
        Training targets. Climatology and drift of the target take what a
        `LocalExpertRegressor` keeps of its own targets, and these for other models.
    groups : list of column names or mapping of str to array-like, optional
        What coverage, losses and values at risk are shown by, arrays of shape (n,);
        columns of an array are called x0, x1, ... Default: the width of the forecasts
        and the three most important features (the first ones without importance).
    coverage : float
        Of the intervals, in (0, 1).
    var_levels : array-like of shape (k,)
        Levels of the values at risk, in (0, 1); empty for none. They are tested by
        group as well, and rows are taken to be in the order in which they came.
    title : str, optional
        Heading of the page; default "Forecasts of" the target, if its name is known.
    target_name : str, optional
        What is forecast; default the name of `y`, if it is a series.
    unit : str, optional
        Of the target, "EUR" for instance.
    source : str, optional
        Where the rows are from, "test.csv" for instance.
    date : datetime.date, optional
        Day of the report; default today.
    row_names : iterable of length n, optional
        What the rows are called where single ones are shown; default the index of a
        data frame, else numbers from 0.
    odd_cells : sequence, optional
        Cells of the training table that were taken as gaps, each with `column`, `text`,
        `count`, `where` and `why`.
    importance_rows : int
        Rows that importance is measured on; fewer if features are many. It takes most
        of the time where they are: two or three forecasts of these rows for each
        feature. 0 leaves it out.
    random_state : int
        Seed of samples, permutations, and draws where forecasts have jumps.
    verbose : int or bool
        0: silent; 1: a progress bar of the importance on stderr.

    Returns
    -------
    ReportFigures

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import LocalExpertRegressor, report_figures
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(150, 1))
    >>> y = X[:, 0] + rng.normal(size=150)
    >>> model = LocalExpertRegressor(effort="quick", random_state=0)
    >>> figures = report_figures(model.fit(X[:100], y[:100]), X, y)
    >>> print(figures.seen)
    The model has learned from 100 of the 150 rows.
    >>> len(figures), round(figures.calibration.test.share, 2)
    (50, 0.92)
    """
    check_predicts(model)
    table, outcomes = read_rows(X, y)
    training = evidence.read_training(X_train, y_train, table)
    texts = {"title": title, "target_name": target_name, "unit": unit, "source": source}
    _check_words(texts, date)
    target = _name_target(y) if target_name is None else target_name
    heading = f"Forecasts of {target}" if target else "Report on forecasts"
    labels = evidence.read_labels(row_names, table)
    parts = None if groups is None else read_groups(table, groups)
    coverage = check_level(coverage, "coverage")
    none = np.size(var_levels) == 0
    levels = [] if none else check_levels(var_levels, "var_levels", inner=True).tolist()
    seed = check_integer(random_state, "random_state", 0)
    seen, new = seen_rows(model, table, outcomes), np.arange(len(outcomes))
    if seen.learned is not None and not seen.learned.all():
        new = np.flatnonzero(~seen.learned)
    made = ReportFigures(
        model=open_same(model),
        X=table if len(new) == len(table) else take_rows(table, new),
        y=outcomes[new],
        labels=[labels[row] for row in new],
        coverage=coverage,
        X_train=training[0],
        y_train=training[1],
        seed=seed,
        title=title or heading,
        target=target,
        unit=unit or "",
        source=source or "",
        # The reader's day, as a date alone: pages of one day and seed are the same.
        date=datetime.date.today() if date is None else date,
        seen=seen,
        var_levels=levels,
        given_groups=parts and [(name, part.take(new)) for name, part in parts],
        odd_cells=_check_odd_cells(odd_cells),
        most_rows=check_integer(importance_rows, "importance_rows", 0),
        verbose=check_verbose(verbose),
    )
    made.check_forecasts()
    return made


def _name_target(y: Any) -> str:
    """Return the name of a series; columns may be called by anything."""
    name = getattr(y, "name", None)
    return "" if name is None else str(name)


def _check_words(texts: Mapping[str, object], date: object) -> None:
    """Refuse what is no text, and no date."""
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            refuse(name, "be a text", f"{text!r}", TypeError)
    if date is not None and not isinstance(date, datetime.date):
        refuse("date", "be a datetime.date", f"{date!r}", TypeError)


def _check_odd_cells(odd_cells: Any) -> Sequence[Any]:
    """Return a sequence of odd cells; refuse what is none."""
    listed = isinstance(odd_cells, Sequence)
    if not (listed and all(hasattr(odd, "column") for odd in odd_cells)):
        rule = "be those of a ColumnReader, `reader.odd_cells_`"
        refuse("odd_cells", rule, f"{odd_cells!r:.80}", TypeError)
    return odd_cells  # type: ignore[no-any-return]
