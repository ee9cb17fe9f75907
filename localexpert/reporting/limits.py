"""What limits the trust in a report: few rows, extrapolation, missing values."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from localexpert.distribution.predictive import mass_below_zero
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.findings import Finding
from localexpert.reporting.judgement import VERY_FEW
from localexpert.reporting.markup import count, show, show_percent
from localexpert.reporting.training import Training

_FEW = 200
# Probability beyond the range of training that is spoken of.
_NOTABLE = 0.05
# Mean probability below zero that is spoken of, and that is warned of.
_LEAST_BELOW_ZERO, _MUCH_BELOW_ZERO = 5e-5, 0.01
_MOST_NAMED = 8


def find_limits(evidence: Evidence) -> list[Finding]:
    """Look for all of them."""
    found, training = _find_few(evidence), evidence.training
    if training is not None:
        found += _find_outcomes_beyond(evidence, training)
        found += _find_mass_beyond(evidence, *training.range)
    found += _find_mass_below_zero(evidence)
    return found + _find_features_beyond(evidence) + _find_missing(evidence)


def _find_few(evidence: Evidence) -> list[Finding]:
    """Say how little a coverage of so many rows tells."""
    n, p = len(evidence), evidence.coverage
    if n >= _FEW:
        return []
    if n == 1:
        text = "There is only 1 row: it says next to nothing of the model."
        return [Finding("warning", text)]
    half = float(norm.ppf(0.975)) * np.sqrt(p * (1.0 - p) / n)
    text = (
        f"There are only {n:,} rows: even of right {show(100 * p, 3)} % intervals "
        f"chance makes the coverage miss by {show(100 * half, 2)} points or less in "
        "19 of 20 reports, and the other scores are as rough."
    )
    return [Finding("warning" if n < VERY_FEW else "note", text)]


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
    held = training.y[training.weight > 0.0]
    least, greatest = show(float(held.min())), show(float(held.max()))
    text = (
        f"{below + above:,} of {count(n, 'outcome')} "
        f"{'lies' if below + above == 1 else 'lie'} beyond the {m:,} of training "
        f"({below:,} below {least}, {above:,} above {greatest}); of rows like "
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
        f"{rows:,} of {count(len(evidence), 'forecast')} "
        f"{'gives' if rows == 1 else 'give'} more than "
        f"{show(100 * _NOTABLE, 2)} % to values beyond those of training (on average "
        f"{show(100 * float(beyond.mean()), 2)} %, at most "
        f"{show(100 * float(beyond.max()), 3)} %). No outcome has confirmed the shape "
        "of forecasts out there; where such values are impossible, the model should be "
        "told so (bounds)."
    )
    return [Finding("note", text)]


def _find_mass_below_zero(evidence: Evidence) -> list[Finding]:
    """Say how much of the forecasts of a target without negative values is below 0."""
    training = evidence.training
    if training is not None and (training.y[training.weight > 0.0] < 0.0).any():
        return []
    mass = mass_below_zero(evidence.dist, evidence.y)
    if mass is None or mass < _LEAST_BELOW_ZERO:
        return []
    text = (
        f"Forecasts give {show_percent(mass, 2)} to values below 0 on average, and no "
        "outcome was below 0. Where such values are impossible, the model should be "
        "fitted with bounds=(0, np.inf), in the shell with --bounds 0 inf."
    )
    many = mass >= _MUCH_BELOW_ZERO
    return [Finding("warning" if many else "note", text)]


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
