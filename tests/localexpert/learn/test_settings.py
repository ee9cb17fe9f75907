"""`Settings`: what no fit can be made of is refused first, whatever the target."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from calibration import HistogramCalibrator
from localexpert import (
    ConformalRecalibration,
    DistributionEnsemble,
    FrameRoad,
    LocalExpertRegressor,
    PitRecalibration,
    Stacker,
)
from localexpert.coordinate import Frame
from localexpert.experts import IndependentExperts, JointForest, SharedBoosting
from localexpert.experts.calibrated_experts import CalibratedExperts

# What the sweep over all public parameters does not try.
WRONG = {
    "n_thresholds": [0, True, 2.5],
    "thresholds": ["even", [[1, 2]], [np.nan], [1, 1], 3.0, [True]],
    "frame": ["centre", True, ["auto"]],
    "center": ["mean", (), LinearRegression, LogisticRegression(), [None]],
    "strategy": ["forest", JointForest],
    "calibrator": ["spline", 3, LogisticRegression()],
    "smoothing": ["spline", True, np.nan, 1j],
    "bounds": [(1,), (2, 1), (0, 0), ("0", "99"), (np.nan, 1), (0, 0.5), (9, None)],
    "effort": [0, np.inf, "fast", True],
    "recalibrate": ["pits", True, PitRecalibration],
    "stacker": ["ridge", True, LinearRegression],
    "cv": [0, 1, True, 2.5, 1000],
    "random_state": [1.5, True, 2**32],
    "expert": [LogisticRegression, LinearRegression()],
}
# What is wrong beside another parameter.
TOGETHER = [
    ({"thresholds": [1.0], "frame": "center"}, "`frame` must be None where"),
    (
        {"recalibrate": "conformal", "cv": [(np.arange(60), np.arange(60, 120))]},
        "`cv` must be .* where `recalibrate` sets rows aside",
    ),
    (
        {"expert": LogisticRegression(), "strategy": "joint"},
        '`strategy` must be "independent" or "auto" with an `expert`',
    ),
    *(
        ({"roads": [FrameRoad()], **part}, '`roads` must be "auto" where')
        for part in (
            {"frame": None},
            {"n_thresholds": 9},
            {"strategy": "joint"},
            {"expert": LogisticRegression()},
        )
    ),
]
# What refuses its own parameters is asked to do so before anything else is fitted.
INSIDE = [
    ("strategy", JointForest(0), "`n_estimators`"),
    ("strategy", SharedBoosting(learning_rate=-1), "`learning_rate`"),
    ("strategy", IndependentExperts(3), "`classifier`"),
    ("calibrator", HistogramCalibrator(0), "`n_bins`"),
    ("recalibrate", ConformalRecalibration(-1), "`largest_gap`"),
    ("recalibrate", PitRecalibration((-1,)), "`strengths`"),
    ("stacker", Stacker(passthrough="yes"), "`passthrough`"),
]


@pytest.fixture(params=["smooth", "counts", "constant"])
def data(request, rng, monkeypatch):
    """Rows, and a fit that may not begin."""

    def begin(*_arguments, **_options):
        pytest.fail("a stage was fitted before the parameters were checked")

    monkeypatch.setattr(Frame, "fit", begin)
    monkeypatch.setattr(CalibratedExperts, "ask", begin)
    X = rng.uniform(size=(120, 2))
    targets = {
        "smooth": X[:, 0] + rng.normal(size=120),
        "counts": rng.poisson(3.0, size=120),
        "constant": np.ones(120),
    }
    return X, targets[request.param]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_parameters_are_refused_by_name(data, name):
    for value in WRONG[name]:
        with pytest.raises((TypeError, ValueError), match=f"^`{name}` must "):
            LocalExpertRegressor(**{name: value}).fit(*data)


def test_parameters_that_do_not_go_together_are_refused(data):
    X, y = data
    for parameters, message in TOGETHER:
        if "cv" in parameters and np.ptp(y) == 0.0:
            continue  # no row of a constant target is set aside
        with pytest.raises(ValueError, match=message):
            LocalExpertRegressor(**parameters).fit(X, y)


@pytest.mark.parametrize(("name", "value", "inner"), INSIDE)
def test_parts_with_wrong_parameters_are_refused(data, name, value, inner):
    with pytest.raises((TypeError, ValueError), match=f"^{inner} must "):
        LocalExpertRegressor(**{name: value}).fit(*data)


def test_an_ensemble_checks_every_member_first(data):
    members = [
        ("good", LocalExpertRegressor()),
        ("bad", LocalExpertRegressor(calibrator="spline")),
    ]
    with pytest.raises(ValueError, match=r"^`calibrator` must ") as caught:
        DistributionEnsemble(members).fit(*data)
    assert caught.value.__notes__ == ["This is the member 'bad'."]
