"""What a fit chose, in sentences."""

import numpy as np
import pytest

from localexpert.learn.fit_report import FitReport
from localexpert.reporting.chosen import describe_areas, describe_choices

FRAME = {
    "kind": "standardize",
    "losses": {"None": 39443.5, "center": 23314.4, "standardize": 23220.1},
    "weights": {"extra trees": 0.2287, "additive": 0.7713},
}
CHOICES = {
    "frame": FRAME,
    "experts": {"losses": {"joint": 2.0}, "weights": {"joint": 1.0}},
    "calibration": {
        "chosen": "identity",
        "losses": {"identity": 0.5, "quadratic": 0.6},
    },
    "spline": {"chosen": "PCHIP", "losses": {"PCHIP": 3.0}},
}


def test_every_stage_has_a_sentence():
    assert describe_choices(FitReport("continuous", CHOICES), "price") == [
        "price: continuous.",
        "Thresholds: around a centre, in units of a scale, both forecast for every row "
        "(loss 23,220; the best of the others, center, 23,314).",
        "Centre: 77 % additive and 23 % extra trees.",
        "Experts: joint.",
        "Calibration: none, for probabilities are left as they are (loss 0.5; the best "
        "of the others, quadratic, 0.6).",
        "Curve between thresholds: PCHIP.",
    ]


def test_values_with_probability_of_their_own():
    report = FitReport("mixed", {"atoms": [0.0], "choice": CHOICES, **CHOICES})
    told = describe_choices(report, "rain")
    assert told[0] == (
        "rain: mixed, the value 0 has probability of its own, the rest is continuous."
    )
    assert "Experts of the values with probability of their own: joint." in told
    report = FitReport("mixed", {"atoms": [0.0, 5.0]})
    assert describe_choices(report, "rain")[0].startswith(
        "rain: mixed, the values 0 and 5 have probability of their own"
    )


def test_stages_that_are_not_known_are_told_by_their_choice():
    report = FitReport("discrete", {"stacker": {"chosen": "mean"}, "folds": 3})
    assert describe_choices(report, "y")[1:] == ["Stacker: mean."]


@pytest.mark.parametrize("kind", ["center", "standardize"])
def test_areas_near_a_half_are_no_fault_in_a_frame(kind):
    report = FitReport("continuous", {"frame": {"kind": kind}})
    assert "Areas near 0.5 are no fault" in describe_areas(report, np.full(9, 0.52))
    assert describe_areas(report, np.full(9, 0.8)) == ""


def test_areas_near_a_half_are_told_as_such_without_a_frame():
    report = FitReport("continuous", {"frame": {"kind": "None"}})
    assert describe_areas(report, np.full(9, 0.5)) == ""
    assert describe_areas(FitReport("discrete", {}), np.full(9, 0.5)) == ""
