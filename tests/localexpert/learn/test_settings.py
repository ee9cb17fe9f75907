"""`Settings`: what no fit can be made of is refused first, whatever the target."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from calibration import HistogramCalibrator, IsotonicCalibrator
from localexpert import (
    ConformalRecalibration,
    DistributionEnsemble,
    LocalExpertRegressor,
    PitRecalibration,
    Stacker,
)
from localexpert.coordinate import Frame
from localexpert.experts import (
    IndependentExperts,
    JointForest,
    SharedBoosting,
)
from localexpert.experts.calibrated_experts import CalibratedExperts

VECTOR, TABLE = np.array([1.0, 2.0]), pd.DataFrame({"a": [1, 2]})

WRONG = {
    "n_thresholds": [0, -1, True, 2.5, "5", None, np.nan, VECTOR],
    "thresholds": ["even", [], [[1, 2]], [np.nan], [1, 1], None, 3.0, [True], ["a"]],
    "frame": ["centre", True, 1, VECTOR, TABLE, [], ["auto"], ""],
    "center": [
        *("mean", None, [], (), LinearRegression, LogisticRegression(), VECTOR, 3),
        [LinearRegression(), None],
    ],
    "strategy": ["forest", None, JointForest, VECTOR, 3],
    "calibrator": [
        *("spline", True, 3, VECTOR, TABLE, [], IsotonicCalibrator),
        LogisticRegression(),
    ],
    "smoothing": ["spline", -1, True, np.nan, [], VECTOR, None, "", 1j, -np.inf],
    "bounds": [
        *((1,), (2, 1), (0, 0), "ab", ("0", "99"), (True, False), (np.nan, 1), [], 5),
        *({0, 99}, (None, None, None), (0.0, 0.5), (9.0, None), (1j, 2)),
    ],
    "recalibrate": ["pits", True, VECTOR, TABLE, PitRecalibration],
    "stacker": ["ridge", True, VECTOR, LinearRegression, LogisticRegression(), 3],
    "cv": [0, 1, True, "five", 2.5, None, [], 1000, VECTOR],
    "n_jobs": [0, "2", True, 1.5, np.nan, VECTOR],
    "random_state": [-1, "a", 1.5, True, 2**32],
    "verbose": ["a", -1, 1.5],
    "expert": ["x", LogisticRegression, LinearRegression(), 3, VECTOR],
}
# What refuses its own parameters is asked to do so before anything else is fitted.
INSIDE = [
    ("strategy", JointForest(0), "`n_estimators`"),
    ("strategy", SharedBoosting(learning_rate=-1), "`learning_rate`"),
    ("strategy", IndependentExperts(3), "`classifier`"),
    ("calibrator", HistogramCalibrator(0), "`n_bins`"),
    ("recalibrate", ConformalRecalibration(-1), "`largest_gap`"),
    ("recalibrate", ConformalRecalibration("all"), "`largest_gap`"),
    ("recalibrate", PitRecalibration((-1,)), "`strengths`"),
    ("stacker", Stacker(passthrough="yes"), "`passthrough`"),
]


@pytest.fixture(params=["smooth", "counts", "constant"])
def data(request, rng, monkeypatch):
    """Rows, and a fit that may not begin."""

    def begin(*_arguments, **_options):
        pytest.fail("a stage was fitted before the parameters were checked")

    monkeypatch.setattr(Frame, "fit", begin)
    monkeypatch.setattr(CalibratedExperts, "fit", begin)
    X = rng.uniform(size=(120, 2))
    targets = {
        "smooth": X[:, 0] + rng.normal(size=120),
        "counts": rng.poisson(3.0, size=120),
        "constant": np.ones(120),
    }
    return X, targets[request.param]


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in WRONG.items() for value in values],
    ids=lambda value: repr(value)[:20],
)
def test_wrong_parameters_are_refused_by_name(data, name, value):
    with pytest.raises((TypeError, ValueError), match=f"^`{name}` must "):
        LocalExpertRegressor(**{name: value}).fit(*data)


@pytest.mark.parametrize(
    ("name", "value", "inner"), INSIDE, ids=lambda value: repr(value)[:20]
)
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
    with pytest.raises(ValueError, match=r"^`n_jobs` must not be 0"):
        DistributionEnsemble(members, n_jobs=0).fit(*data)


def test_more_thresholds_than_values_are_as_many_as_there_are(rng):
    X, y = rng.uniform(size=(40, 2)), rng.normal(size=40)
    model = LocalExpertRegressor(
        n_thresholds=1000, frame=None, strategy="joint", cv=2, random_state=0
    ).fit(X, y)
    assert len(model.thresholds_) == 39
    assert np.isfinite(model.predict_dist(X).crps(y)).all()
