"""`Evidence`: a model, rows that it has not seen, its forecasts, and what to doubt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2_contingency, fisher_exact, ks_2samp, mannwhitneyu, norm

from calibration._validation import check_same_length, check_vector, refuse
from calibration.measures.comparison import holm
from calibration.typing import Float64Array
from localexpert.data.table import Table, TableReader
from localexpert.data.training_rows import TableSummary
from localexpert.data.unseen import unseen_silently
from localexpert.distribution.answers import expected_by_loss, loss_variances
from localexpert.distribution.predictive import PredictiveDistribution, mass_below_zero
from localexpert.distribution.predictors import predict_dist
from localexpert.explain.permutation import read_rows
from localexpert.explain.shapley import check_columns
from localexpert.partial.outcomes import nearest_ends
from localexpert.partial.scores import covered_shares, pit_values
from localexpert.reporting import scores
from localexpert.reporting.groups import Column, Grouping, read_columns


@dataclass(frozen=True, eq=False)
class Evidence:
    """What all figures of a report are made from.

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
    X : array or data frame of shape (n, p)
    y : ndarray of shape (n,) or (n, 2)
        Outcomes, or their lower and upper ends.
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

    @property
    def partial(self) -> bool:
        """Whether outcomes have two ends."""
        return self.y.ndim == 2

    @cached_property
    def ends(self) -> tuple[Float64Array, Float64Array]:
        """Lower and upper ends of the outcomes; equal ones where they are known."""
        y = self.dist.law.snap(self.y)
        return (y[:, 0], y[:, 1]) if self.partial else (y, y)

    @cached_property
    def is_known(self) -> NDArray[np.bool_]:
        """Which outcomes are known, shape (n,)."""
        return np.asarray(self.ends[0] == self.ends[1])

    def check_forecasts(self) -> None:
        """Refuse a model that is not fitted, or forecasts other rows."""
        if len(self.dist) != len(self):
            rule = "forecast a PredictiveDistribution of as many rows as `X`"
            refuse("model", f"{rule}, {len(self)}", repr(self.dist), TypeError)

    @cached_property
    def training(self) -> scores.Training | None:
        """What the model keeps of its training, or what is given of it."""
        kept, given = scores.recall_training(self.model), self.y_train
        if kept is not None or given is None:
            return kept
        discrete = self.dist.law.is_discrete
        return scores.Training(given, np.ones(len(given)), None, discrete)

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
                Column(kept.sample(), column.names),
                Column(kept.place(column.values), column.names),
            )
            for name, kept, column in here
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
        return covered_shares(self.y, self.dist, self.coverage)

    @cached_property
    def crps(self) -> Float64Array:
        """CRPS of every row, NaN where its outcome is not known, shape (n,)."""
        return np.where(self.is_known, self.dist.crps(nearest_ends(*self.ends)), np.nan)

    @cached_property
    def pit(self) -> Float64Array:
        """PIT values, drawn where forecasts jump or ends differ, shape (n,)."""
        return pit_values(self.y, self.dist, self.seed)

    @cached_property
    def climatology(self) -> PredictiveDistribution | None:
        """The training target's distribution as the forecast of every row."""
        if self.training is None:
            return None
        one = scores.climatology_of(self.model, self.training)
        return one[np.zeros(len(self), dtype=np.intp)]

    @cached_property
    def risks(self) -> list[tuple[float, NDArray[np.bool_], Float64Array]]:
        """Levels of values at risk, which rows passed, and how probable it was."""
        levels = () if self.partial else self.var_levels
        values = {level: self.dist.value_at_risk(level) for level in levels}
        y = self.ends[0]
        return [(p, y > value, self.dist.sf(value)) for p, value in values.items()]

    @cached_property
    def losses(self) -> dict[str, tuple[Float64Array, Float64Array, Float64Array]]:
        """Losses of rows, "crps" and "abs_error", as they came, means and variances."""
        if self.partial:
            return {}
        law = self.dist.law
        came = {"crps": self.crps, "abs_error": np.abs(self.y - self.dist.median())}
        return {
            loss: (came[loss], means, loss_variances(law, loss, means))
            for loss, means in expected_by_loss(law).items()
        }

    def measure(
        self, rows: Any = slice(None), name: str = "", label: str = ""
    ) -> scores.GroupFigures:
        """Test coverage, expected losses and values at risk of some rows."""
        low, high = self.interval[rows].T
        lower, upper = (end[rows] for end in self.ends)
        inside = int(((low <= lower) & (upper <= high)).sum())
        touched = int(((low <= upper) & (lower <= high)).sum())
        n, hits = len(lower), float(self.covered[rows].sum())
        test = scores.CoverageTest(n, inside, hits, self.coverage, touched - inside)
        promises = {
            loss: scores.Promise.of(*(values[rows] for values in held))
            for loss, held in self.losses.items()
        }
        backs = [
            scores.BackTest.of(passed[rows], level, float(chance[rows].mean()))
            for level, passed, chance in self.risks
        ]
        p = {"coverage": test.p_value}
        p |= {"crps": promises["crps"].p_value} if promises else {}
        p |= {str(back.level): back.kupiec for back in backs}
        width = float(self.width[rows].mean())
        return scores.GroupFigures(name, label, width, test, promises, backs, p)

    def measure_groups(
        self, groupings: Sequence[Grouping]
    ) -> list[scores.GroupFigures]:
        """Test all groups together."""
        made = [
            self.measure(one.group == g, one.name, label)
            for one in groupings
            for g, label in enumerate(one.labels)
        ]
        for kind in made[0].p_values if made else ():
            raised = holm(np.array([group.p_values[kind] for group in made])).tolist()
            for group, p_value in zip(made, raised, strict=True):
                group.p_values[kind] = p_value
        return made


def read_training(
    X: Any, y: ArrayLike | None, like: Any
) -> tuple[Any, Float64Array | None]:
    """Return training rows, if any are given, that have the columns of others."""
    if X is None:
        return None, None if y is None else check_vector(y, "y_train")
    if y is None:
        refuse("y_train", "be given with `X_train`", "None")
    table, target = read_rows(X, y, "X_train", "y_train")
    check_columns(like, table, "X_train")
    return table, target


def read_labels(names: Iterable[object] | None, X: Any) -> list[str]:
    """Return names of rows as texts: the index of a data frame, or numbers from 0."""
    if names is None:
        return [str(name) for name in getattr(X, "index", range(len(X)))]
    if isinstance(names, str) or not isinstance(names, Iterable):
        refuse("row_names", "hold a name for each row", f"{names!r}", TypeError)
    texts = [str(name) for name in names]
    check_same_length(len(X), "`X`", len(texts), "row_names")
    return texts


# Distances of distributions that are too small to matter, however significant.
_LEAST_DISTANCE = 0.1
# Rows that the chi-squared law wants in every cell.
_LEAST_EXPECTED = 5.0
_FEW = 200
# Probability beyond the range of training that is spoken of.
_NOTABLE = 0.05
# Mean probability below zero that is spoken of, and that is warned of.
_LEAST_BELOW_ZERO, _MUCH_BELOW_ZERO = 5e-5, 0.01


@dataclass(frozen=True)
class Finding:
    """One thing that a reader should know.

    Parameters
    ----------
    kind : {"warning", "note", "fine"}
    what : str
        What it is about: "forecasts", "target", "features", "unseen", "few",
        "outcomes", "beyond", "below zero", "range" or "missing".
    facts : dict of str to object
        The figures.
    """

    kind: Literal["warning", "note", "fine"]
    what: str
    facts: dict[str, Any]


def find_all(evidence: Evidence) -> list[Finding]:
    """Look for everything, warnings first."""
    looks: tuple[Callable[[Evidence], Finding | None], ...] = (
        *(_compare_forecasts, _compare_targets, _compare_features, _find_unseen),
        *(_find_few, _find_outcomes, _find_beyond, _find_below_zero),
        *(_find_range, _find_missing),
    )
    found = [one for look in looks if (one := look(evidence)) is not None]
    return sorted(found, key=lambda one: ("warning", "note", "fine").index(one.kind))


def _compare_forecasts(evidence: Evidence) -> Finding:
    """Compare PIT values and CRPS with those of training, out of fold."""
    training = evidence.training
    if training is None or training.oof is None or evidence.partial:
        return Finding("note", "forecasts", {})
    is_held = training.weight > 0.0
    oof, y, weight = training.oof[is_held], training.held, training.weight[is_held]
    # Draws of another seed: two samples that share theirs would look alike.
    levels = training.draw(oof.pit(y, evidence.seed + 1))
    pit = float(ks_2samp(levels, evidence.pit).pvalue)
    before, now = oof.crps(y), evidence.crps
    ranks = 1.0
    if np.ptp(np.concatenate([before, now])) > 0.0:
        ranks = float(mannwhitneyu(training.draw(before), now).pvalue)
    there = float(np.average(before, weights=weight))
    facts = {"here": float(now.mean()), "there": there}
    facts |= {"pit": pit, "ranks": ranks}
    if min(pit, ranks) >= scores.SIGNIFICANT:
        return Finding("fine", "forecasts", facts)
    better = pit >= scores.SIGNIFICANT and facts["here"] <= facts["there"]
    return Finding("note" if better else "warning", "forecasts", facts)


def _compare_targets(evidence: Evidence) -> Finding | None:
    """Compare the distributions of the target."""
    if evidence.training is None or evidence.partial:
        return None
    result = ks_2samp(evidence.training.draw(evidence.training.held), evidence.y)
    distance, p = float(result.statistic), float(result.pvalue)
    if p >= scores.SIGNIFICANT or distance < _LEAST_DISTANCE:
        return None
    return Finding("note", "target", {"distance": distance, "p": p})


def _compare_features(evidence: Evidence) -> Finding:
    """Name the features that differ, the farthest first; all have a test."""
    if not evidence.beside_training:
        return Finding("note", "features", {"tests": 0})
    parts = [(n, *measure_feature(*both)) for n, *both in evidence.beside_training]
    raised = holm(np.array([p for _, _, p in parts])).tolist()
    moved = [
        (distance, p, name)
        for (name, distance, _), p in zip(parts, raised, strict=True)
        if p < scores.SIGNIFICANT and distance >= _LEAST_DISTANCE
    ]
    facts = {"tests": len(parts), "moved": sorted(moved, reverse=True)}
    return Finding("warning" if moved else "fine", "features", facts)


def measure_feature(before: Column, now: Column) -> tuple[float, float]:
    """Return the distance of two samples of a feature, and the p-value of none.

    Numbers by Kolmogorov and Smirnov, categories by total variation; and shares of
    missing values, as a second test.
    """
    old, new = before.values[~before.is_missing], now.values[~now.is_missing]
    gap = abs(float(before.is_missing.mean() - now.is_missing.mean()))
    gaps = [[len(v), np.isnan(c.values).sum()] for v, c in ((old, before), (new, now))]
    p_missing = _test_counts(np.array(gaps))
    if len(old) == 0 or len(new) == 0:
        return gap, p_missing
    if before.names is None:
        result = ks_2samp(old, new)
        distance, p = float(result.statistic), float(result.pvalue)
    else:
        size, both = len(before.names), (old.astype(np.intp), new.astype(np.intp))
        counts = np.array([np.bincount(v, minlength=size) for v in both])
        shares = counts / counts.sum(axis=1, keepdims=True)
        distance = 0.5 * float(np.abs(shares[0] - shares[1]).sum())
        p = _test_counts(counts)
    return max(distance, gap), min(2.0 * min(p, p_missing), 1.0)


def _test_counts(counts: NDArray[np.int64]) -> float:
    """Return the p-value of equal shares in both rows of a table of counts.

    By Cochran's rule the rarest columns are joined until at least five rows are to be
    expected in each cell, or two columns are left. These are tested exactly: next to
    many rows of training a single one here may be surprising.
    """
    met = counts[:, counts.sum(axis=0) > 0]
    rows, total = met.sum(axis=1), met.sum(axis=0)
    if met.shape[1] < 2 or (rows == 0).any():
        return 1.0
    order = np.argsort(total, kind="stable")
    expected = total[order] * (rows.min() / rows.sum())
    n = int((expected < _LEAST_EXPECTED).sum())
    if 0 < n < len(total) and expected[:n].sum() < _LEAST_EXPECTED:
        n += 1
    n = min(n, len(total) - 1)
    if n > 1:
        pooled = met[:, order[:n]].sum(axis=1, keepdims=True)
        met = np.column_stack([pooled, met[:, order[n:]]])
    test = fisher_exact if met.shape[1] == 2 else chi2_contingency
    return float(test(met).pvalue)


def _find_unseen(evidence: Evidence) -> Finding | None:
    """Look for categories that the model has not met, which it takes as missing."""
    if evidence.known is None:
        return None
    held = evidence.table.reader.category_codes
    found = []
    for j, codes in evidence.known[0].category_codes.items():
        values = held.get(j, {})
        unseen = [value for value in values if value not in codes]
        places = [values[value] for value in unseen]
        rows = int(np.isin(evidence.columns[j].values, places).sum())
        if rows:
            found.append((evidence.names[j], [str(value) for value in unseen], rows))
    return Finding("warning", "unseen", {"features": found}) if found else None


def _find_few(evidence: Evidence) -> Finding | None:
    """Say how little a coverage of so many rows tells."""
    n, p = len(evidence), evidence.coverage
    if n >= _FEW:
        return None
    half = float(norm.ppf(0.975)) * np.sqrt(p * (1.0 - p) / n)
    return Finding("warning" if n < scores.VERY_FEW else "note", "few", {"half": half})


def _find_outcomes(evidence: Evidence) -> Finding | None:
    """Count outcomes beyond those of training.

    Of m training targets and one more from the same distribution, without ties, the
    new one is the least or the greatest with probability 2 / (m + 1).
    """
    if evidence.training is None or evidence.partial:
        return None
    low, high = evidence.training.range
    below, above = int((evidence.y < low).sum()), int((evidence.y > high).sum())
    if not below + above:
        return None
    expected = 2.0 * len(evidence) / (len(evidence.training.held) + 1.0)
    many = below + above > max(2.0, expected + 3.0 * np.sqrt(expected))
    facts = {"below": below, "above": above, "expected": expected}
    return Finding("warning" if many else "note", "outcomes", facts)


def _find_beyond(evidence: Evidence) -> Finding | None:
    """Find forecasts that reach beyond the outcomes of training.

    Of training targets that are known in part draws are kept, so that the greatest
    outcome that is known here takes their place.
    """
    if evidence.training is None or not evidence.is_known.any():
        return None
    low, high = evidence.training.range
    if evidence.partial:
        low, high = -np.inf, float(evidence.ends[0][evidence.is_known].max())
    beyond = evidence.dist.cdf(low) + evidence.dist.sf(high)
    rows = int((beyond > _NOTABLE).sum())
    facts = {"rows": rows, "mean": float(beyond.mean()), "most": float(beyond.max())}
    facts |= {"level": _NOTABLE, "high": high}
    return Finding("note", "beyond", facts) if rows else None


def _find_below_zero(evidence: Evidence) -> Finding | None:
    """Say how much of the forecasts of a target without negative values is below 0."""
    if evidence.training is not None and (evidence.training.held < 0.0).any():
        return None
    mass = mass_below_zero(evidence.dist, nearest_ends(*evidence.ends))
    if mass is None or mass < _LEAST_BELOW_ZERO:
        return None
    much = mass >= _MUCH_BELOW_ZERO
    return Finding("warning" if much else "note", "below zero", {"mass": mass})


def _find_range(evidence: Evidence) -> Finding | None:
    """Name the features with values beyond those of training, and shares of rows."""
    found, summaries = [], evidence.known[1].columns if evidence.known else []
    for (name, _, now), kept in zip(evidence.beside_training, summaries, strict=True):
        n_known = int(kept.counts.sum())
        if kept.edges is None or n_known == 0:
            continue
        # The outer cells lie beyond all rows of training, whatever their weights.
        share = float(np.isin(now.values, (0, len(kept.counts) - 1)).mean())
        if share > max(_NOTABLE, 4.0 / (n_known + 1.0)):
            found.append((name, share))
    return Finding("warning", "range", {"features": found}) if found else None


def _find_missing(evidence: Evidence) -> Finding | None:
    """Say which features have gaps, and in which share of rows."""
    columns = zip(evidence.names, evidence.columns, strict=True)
    shares = [(name, float(column.is_missing.mean())) for name, column in columns]
    found = sorted((one for one in shares if one[1]), key=lambda one: -one[1])
    if not found:
        return None
    whole = found[0][1] == 1.0
    return Finding("warning" if whole else "note", "missing", {"features": found})
