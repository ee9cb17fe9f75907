"""What differs between these rows and those of training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, fisher_exact, ks_2samp, mannwhitneyu

from calibration.typing import Float64Array
from localexpert.reporting.columns import Column
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.findings import SIGNIFICANT, Finding, adjust_holm, show_p
from localexpert.reporting.markup import show
from localexpert.reporting.training import recall_reader

# Distances of distributions that are too small to matter, however significant.
_LEAST_DISTANCE = 0.1
# Rows that the chi-squared law wants in every cell.
_LEAST_EXPECTED = 5.0
_MOST_NAMED = 8


@dataclass(frozen=True)
class FeatureDrift:
    """How far the values of a feature here are from those of training.

    Parameters
    ----------
    name : str
    distance : float
        Of a category, the total variation; else that of Kolmogorov and Smirnov.
    p_value : float
        Of no difference.
    missing : (float, float)
        Shares of missing values in training and here.
    """

    name: str
    distance: float
    p_value: float
    missing: tuple[float, float]


def find_drift(evidence: Evidence) -> list[Finding]:
    """Compare forecasts, targets and features with those of training."""
    found = [*_compare_forecasts(evidence), *_compare_targets(evidence)]
    if evidence.columns_beside_training is None:
        text = (
            "Features were not compared with those of training, for no training rows "
            "were given (X_train) and the model keeps no summary of them."
        )
        return [*found, Finding("note", text)]
    return [*found, _compare_features(measure_features(evidence))]


def measure_features(evidence: Evidence) -> list[FeatureDrift]:
    """Compare every feature with its values in training, where they are known."""
    if evidence.columns_beside_training is None:
        return []
    train, here = evidence.columns_beside_training
    columns = zip(evidence.names, train, here, strict=True)
    return [measure_feature(*one) for one in columns]


def find_unseen(evidence: Evidence) -> list[Finding]:
    """Look for categories that the model has not met, which it takes as missing."""
    tables = evidence.beside_training
    known = tables[0].reader if tables else recall_reader(evidence.model)
    if known is None:
        return []
    own = evidence.table.reader.category_codes
    told = []
    for j, codes in known.category_codes.items():
        if j not in own:
            continue
        unseen = [value for value in own[j] if value not in codes]
        place = [own[j][value] for value in unseen]
        rows = int(np.isin(evidence.columns[j].values, place).sum())
        if rows:
            shown = ", ".join(repr(str(value)) for value in unseen[:3])
            more = ", ..." if len(unseen) > 3 else ""
            told.append(f"{evidence.names[j]}: {shown}{more} ({rows:,} rows)")
    if not told:
        return []
    text = f"Categories that training has not met: {_list(told)}."
    return [Finding("warning", text)]


def _compare_forecasts(evidence: Evidence) -> list[Finding]:
    """Compare PIT values and CRPS with those of training, out of fold."""
    training = evidence.training
    if training is None or training.oof is None:
        text = (
            "The model keeps no out-of-fold forecasts of its training rows, so it "
            "could not be tested whether it does as well here as there."
        )
        return [Finding("note", text)]
    held = training.weight > 0.0
    oof, y = training.oof[held], training.y[held]
    # Draws of another seed: two samples that share theirs would look alike.
    pit = ks_2samp(oof.pit(y, evidence.seed + 1), evidence.pit)
    before, now = oof.crps(y), evidence.crps
    p_crps = _rank_test(before, now)
    means = f"{show(float(now.mean()))} here, {show(float(before.mean()))} there"
    found = []
    if pit.pvalue < SIGNIFICANT:
        text = (
            "Outcomes fall elsewhere in their forecasts than they did in training "
            f"(PIT values, Kolmogorov-Smirnov distance {show(float(pit.statistic), 2)},"
            f" {show_p(float(pit.pvalue))}): how target and features go together "
            "has probably changed."
        )
        found.append(Finding("warning", text))
    if p_crps < SIGNIFICANT:
        worse = now.mean() > before.mean()
        text = (
            f"Forecasts are {'worse' if worse else 'better'} here than they were on "
            f"training rows out of fold (mean CRPS {means}; rank test, "
            f"{show_p(p_crps)})."
        )
        found.append(Finding("warning" if worse else "note", text))
    if not found:
        text = (
            "No more than chance parts the forecasts here from those of training rows "
            f"out of fold (mean CRPS {means}; tests of CRPS, {show_p(p_crps)}, and PIT "
            f"values, {show_p(float(pit.pvalue))})."
        )
        found.append(Finding("fine", text))
    return found


def _compare_targets(evidence: Evidence) -> list[Finding]:
    """Compare the distributions of the target."""
    training = evidence.training
    if training is None:
        return []
    result = ks_2samp(training.y[training.weight > 0.0], evidence.y)
    distance = float(result.statistic)
    if result.pvalue >= SIGNIFICANT or distance < _LEAST_DISTANCE:
        return []
    text = (
        "The target is distributed otherwise than in training (Kolmogorov-Smirnov "
        f"distance {show(distance, 2)}, {show_p(float(result.pvalue))}), so "
        "climatology is easier to beat than it would be for rows like those."
    )
    return [Finding("note", text)]


def _compare_features(drifts: list[FeatureDrift]) -> Finding:
    """Name the features that differ, by significance and by size."""
    raised = adjust_holm([drift.p_value for drift in drifts])
    moved = [
        (drift, float(p))
        for drift, p in zip(drifts, raised, strict=True)
        if p < SIGNIFICANT and drift.distance >= _LEAST_DISTANCE
    ]
    if not moved:
        text = (
            "No feature is distributed notably otherwise than in training (tests of "
            f"{len(drifts)}, distances below {_LEAST_DISTANCE} not counted)."
        )
        return Finding("fine", text)
    moved.sort(key=lambda pair: -pair[0].distance)
    told = [f"{d.name} (distance {show(d.distance, 2)}, {show_p(p)})" for d, p in moved]
    text = f"Features distributed otherwise than in training: {_list(told)}."
    return Finding("warning", text)


def measure_feature(name: str, before: Column, now: Column) -> FeatureDrift:
    """Compare known values by a test for their kind, missing ones by their shares."""
    missing = float(before.is_missing.mean()), float(now.is_missing.mean())
    old, new = before.values[~before.is_missing], now.values[~now.is_missing]
    gap = abs(missing[0] - missing[1])
    gaps = [[len(v), np.isnan(c.values).sum()] for v, c in ((old, before), (new, now))]
    p_missing = _test_counts(np.array(gaps))
    if len(old) == 0 or len(new) == 0:
        return FeatureDrift(name, gap, p_missing, missing)
    if before.names is None:
        result = ks_2samp(old, new)
        distance, p = float(result.statistic), float(result.pvalue)
    else:
        size, both = len(before.names), (old.astype(np.intp), new.astype(np.intp))
        counts = np.array([np.bincount(v, minlength=size) for v in both])
        shares = counts / counts.sum(axis=1, keepdims=True)
        # Total variation, for categories what Kolmogorov & Smirnov's is for numbers.
        distance = 0.5 * float(np.abs(shares[0] - shares[1]).sum())
        p = _test_counts(counts)
    # Two tests of one feature: of its values, and of whether it has one.
    raised = min(2.0 * min(p, p_missing), 1.0)
    return FeatureDrift(name, max(distance, gap), raised, missing)


def _test_counts(counts: NDArray[np.int64]) -> float:
    """Return the p-value of equal shares in both rows of a table of counts."""
    met = _pool_rare(counts[:, counts.sum(axis=0) > 0])
    if met.shape[1] < 2 or (met.sum(axis=1) == 0).any():
        return 1.0
    if met.shape[1] == 2:
        # Exact: next to many rows of training a single one here may be surprising.
        return float(fisher_exact(met).pvalue)
    return float(chi2_contingency(met).pvalue)


def _pool_rare(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Join the rarest columns until the chi-squared law holds, or two are left.

    By Cochran's rule: in either row at least five are to be expected of each.
    """
    total, rows = counts.sum(axis=0), counts.sum(axis=1)
    order = np.argsort(total, kind="stable")
    expected = total[order] * (rows.min() / max(rows.sum(), 1))
    n_rare = int((expected < _LEAST_EXPECTED).sum())
    if 0 < n_rare < len(total) and expected[:n_rare].sum() < _LEAST_EXPECTED:
        n_rare += 1
    n_rare = min(n_rare, len(total) - 1)
    if n_rare < 2:
        return counts
    pooled = counts[:, order[:n_rare]].sum(axis=1, keepdims=True)
    return np.column_stack([pooled, counts[:, order[n_rare:]]])


def _rank_test(before: Float64Array, now: Float64Array) -> float:
    """Return the p-value of equal ranks; 1 where all values are one."""
    if np.ptp(np.concatenate([before, now])) == 0.0:
        return 1.0
    return float(mannwhitneyu(before, now).pvalue)


def _list(texts: list[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    more = len(texts) - _MOST_NAMED
    shown = "; ".join(texts[:_MOST_NAMED])
    return f"{shown}; and {more} more" if more > 0 else shown
