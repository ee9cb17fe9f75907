"""What a fit says of forecasts below zero where the target never was."""

from __future__ import annotations

from typing import Any

from localexpert.data.sample import Sample
from localexpert.distribution.predictive import mass_below_zero
from localexpert.learn.fit_report import FitReport

# A share of the probability that is too small to be worth a word.
_LEAST_MASS = 5e-4


def report_below_zero(model: Any, sample: Sample) -> FitReport:
    """Return a regressor's report, with what it does about values below zero.

    Parameters
    ----------
    model : LocalExpertRegressor
        Whose distributions out of fold are those of the rows.
    sample : Sample

    Returns
    -------
    FitReport
        With the stage "bounds" where no target lies there and none are given, or
        "below zero" where no target lies there, no `bounds` are given,
        and forecasts reach there all the same.
    """
    report: FitReport = model.report_
    if model.bounds is not None:
        low, high = model.bounds_
        if model.bounds == "auto" and low == 0.0:
            report = report.add("bounds", {"chosen": f"({low:g}, {high:g})"})
        return report
    mass = mass_below_zero(model.oof_distribution_, sample.y, sample.weight)
    if mass is None or mass < _LEAST_MASS:
        return report
    return report.add("below zero", {"mass": mass, "cure": "bounds=(0, None)"})
