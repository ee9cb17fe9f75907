"""What limits the trust in a report: few rows, extrapolation, missing values."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from localexpert.reporting.evidence import Evidence
from localexpert.reporting.findings import Finding
from localexpert.reporting.markup import show
from localexpert.reporting.training import Training

_FEW, _VERY_FEW = 200, 30
# Probability beyond the range of training that is spoken of.
_NOTABLE = 0.05
_MOST_NAMED = 8


def find_limits(evidence: Evidence) -> list[Finding]:
    """Look for all of them."""
    found, training = _find_few(evidence), evidence.training
    if training is not None:
        found += _find_outcomes_beyond(evidence, training)
        found += _find_mass_beyond(evidence, *training.range)
    return found + _find_features_beyond(evidence) + _find_missing(evidence)


def _find_few(evidence: Evidence) -> list[Finding]:
    """Say how little a coverage of so many rows tells."""
    n, p = len(evidence), evidence.coverage
    if n >= _FEW:
        return []
    half = float(norm.ppf(0.975)) * np.sqrt(p * (1.0 - p) / n)
    text = (
        f"There are only {n:,} rows: even of right {show(100 * p, 3)} % intervals "
        f"chance makes the coverage miss by {show(100 * half, 2)} points or less in "
        "19 of 20 reports, and the other scores are as rough."
    )
    return [Finding("warning" if n < _VERY_FEW else "note", text)]


def _find_outcomes_beyond(evidence: Evidence, training: Training) -> list[Finding]:
    """Count outcomes beyond those of training.

    Of m training targets and one more from the same distribution, without ties, the
    new one is the least or the greatest with probability 2 / (m + 1).
    """
    low, high = training.range
    below = int((evidence.y < low).sum())
    above = int((evidence.y > high).sum())
    if not below + above:
        return []
    n, m = len(evidence), int((training.weight > 0.0).sum())
    expected = 2.0 * n / (m + 1.0)
    text = (
        f"{below + above:,} of {n:,} outcomes lie beyond the {m:,} of training "
        f"({below:,} below {show(low)}, {above:,} above {show(high)}); of rows like "
        f"those about {show(expected, 2)} would."
    )
    many = below + above > max(2.0, expected + 3.0 * np.sqrt(expected))
    return [Finding("warning" if many else "note", text)]


def _find_mass_beyond(evidence: Evidence, low: float, high: float) -> list[Finding]:
    """Find forecasts that reach beyond the outcomes of training."""
    beyond = evidence.dist.cdf(low) + evidence.dist.sf(high)
    rows = int((beyond > _NOTABLE).sum())
    if not rows:
        return []
    text = (
        f"{rows:,} of {len(evidence):,} forecasts give more than "
        f"{show(100 * _NOTABLE, 2)} % to values beyond those of training (on average "
        f"{show(100 * float(beyond.mean()), 2)} %, at most "
        f"{show(100 * float(beyond.max()), 3)} %). No outcome has confirmed the shape "
        "of forecasts out there; where such values are impossible, the model should be "
        "told so (bounds)."
    )
    return [Finding("note", text)]


def _find_features_beyond(evidence: Evidence) -> list[Finding]:
    """Name the features with values beyond those of training."""
    if evidence.columns_beside_training is None:
        return []
    told = []
    train, here = evidence.columns_beside_training
    for name, before, now in zip(evidence.names, train, here, strict=True):
        known = before.values[~before.is_missing]
        if before.names is not None or len(known) == 0:
            continue
        share = float(np.mean((now.values < known.min()) | (now.values > known.max())))
        if share > max(_NOTABLE, 4.0 / (len(known) + 1.0)):
            told.append(f"{name} ({show(100 * share, 2)} % of rows)")
    if not told:
        return []
    text = (
        f"Features beyond their range in training: {'; '.join(told[:_MOST_NAMED])}. "
        "Trees answer there as at the end of the range."
    )
    return [Finding("warning", text)]


def _find_missing(evidence: Evidence) -> list[Finding]:
    """Say which features have gaps."""
    shares = [float(column.is_missing.mean()) for column in evidence.columns]
    order = [j for j in np.argsort(np.negative(shares), kind="stable") if shares[j]]
    if not order:
        return []
    told = [f"{evidence.names[j]} ({show(100 * shares[j], 2)} %)" for j in order]
    more = f" and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
    whole = [evidence.names[j] for j in order if shares[j] == 1.0]
    text = f"Values are missing in {', '.join(told[:_MOST_NAMED])}{more}."
    if whole:
        text += f" Nothing at all is known of {', '.join(whole[:_MOST_NAMED])}."
    return [Finding("warning" if whole else "note", text)]
