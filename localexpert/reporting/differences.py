"""Findings: where rows differ from those of training, and what else limits trust."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, fisher_exact, ks_2samp, mannwhitneyu, norm

from localexpert.distribution.predictive import mass_below_zero
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.groups import Column
from localexpert.reporting.numbers import adjust_holm
from localexpert.reporting.scores import SIGNIFICANT, VERY_FEW

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
    if training is None or training.oof is None:
        return Finding("note", "forecasts", {})
    oof, y = training.oof[training.weight > 0.0], training.held
    # Draws of another seed: two samples that share theirs would look alike.
    pit = float(ks_2samp(oof.pit(y, evidence.seed + 1), evidence.pit).pvalue)
    before, now = oof.crps(y), evidence.crps
    ranks = 1.0
    if np.ptp(np.concatenate([before, now])) > 0.0:
        ranks = float(mannwhitneyu(before, now).pvalue)
    facts = {"here": float(now.mean()), "there": float(before.mean())}
    facts |= {"pit": pit, "ranks": ranks}
    if min(pit, ranks) >= SIGNIFICANT:
        return Finding("fine", "forecasts", facts)
    better = pit >= SIGNIFICANT and facts["here"] <= facts["there"]
    return Finding("note" if better else "warning", "forecasts", facts)


def _compare_targets(evidence: Evidence) -> Finding | None:
    """Compare the distributions of the target."""
    if evidence.training is None:
        return None
    result = ks_2samp(evidence.training.held, evidence.y)
    distance, p = float(result.statistic), float(result.pvalue)
    if p >= SIGNIFICANT or distance < _LEAST_DISTANCE:
        return None
    return Finding("note", "target", {"distance": distance, "p": p})


def _compare_features(evidence: Evidence) -> Finding:
    """Name the features that differ, the farthest first; all have a test."""
    if not evidence.beside_training:
        return Finding("note", "features", {"tests": 0})
    parts = [(n, *measure_feature(*both)) for n, *both in evidence.beside_training]
    raised = adjust_holm([p for _, _, p in parts]).tolist()
    moved = [
        (distance, p, name)
        for (name, distance, _), p in zip(parts, raised, strict=True)
        if p < SIGNIFICANT and distance >= _LEAST_DISTANCE
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
    own = evidence.table.reader.category_codes
    found = []
    for j, codes in evidence.known[0].category_codes.items():
        values = own.get(j, {})
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
    return Finding("warning" if n < VERY_FEW else "note", "few", {"half": half})


def _find_outcomes(evidence: Evidence) -> Finding | None:
    """Count outcomes beyond those of training.

    Of m training targets and one more from the same distribution, without ties, the
    new one is the least or the greatest with probability 2 / (m + 1).
    """
    if evidence.training is None:
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
    """Find forecasts that reach beyond the outcomes of training."""
    if evidence.training is None:
        return None
    low, high = evidence.training.range
    beyond = evidence.dist.cdf(low) + evidence.dist.sf(high)
    rows = int((beyond > _NOTABLE).sum())
    facts = {"rows": rows, "mean": float(beyond.mean()), "most": float(beyond.max())}
    return Finding("note", "beyond", facts | {"level": _NOTABLE}) if rows else None


def _find_below_zero(evidence: Evidence) -> Finding | None:
    """Say how much of the forecasts of a target without negative values is below 0."""
    if evidence.training is not None and (evidence.training.held < 0.0).any():
        return None
    mass = mass_below_zero(evidence.dist, evidence.y)
    if mass is None or mass < _LEAST_BELOW_ZERO:
        return None
    much = mass >= _MUCH_BELOW_ZERO
    return Finding("warning" if much else "note", "below zero", {"mass": mass})


def _find_range(evidence: Evidence) -> Finding | None:
    """Name the features with values beyond those of training, and shares of rows."""
    found = []
    for name, before, now in evidence.beside_training:
        known = before.values[~before.is_missing]
        if before.names is not None or len(known) == 0:
            continue
        share = float(np.mean((now.values < known.min()) | (now.values > known.max())))
        if share > max(_NOTABLE, 4.0 / (len(known) + 1.0)):
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
