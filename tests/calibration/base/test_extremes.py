"""Scores and weights of any size: probabilities, or an error that names them."""

import inspect
import warnings

import numpy as np
import pytest

import calibration
from calibration import (
    CalibrationWarning,
    LogisticCalibrator,
    brier_score,
)
from calibration.base.calibrators import ScoreCalibrator

N = 200
CALIBRATORS = [
    cls
    for name in calibration.__all__
    if inspect.isclass(cls := getattr(calibration, name))
    and issubclass(cls, ScoreCalibrator)
    and not inspect.isabstract(cls)
]
FAR = [-1.7e308, -1e300, -1.0, 0.0, 5e-324, 1e-300, 1.0, 1e15, 1e300, 1.7e308]
SCORES = {
    "1e300": lambda z: z * 1e300,
    "greatest": lambda z: np.sign(z) * 1.7e308 / (1.0 + np.abs(z)),
    "1e-300": lambda z: z * 1e-300,
    "denormal": lambda z: np.round(100 * z) * 5e-324,
    "ulps": lambda z: 1.0 + np.round(3 * z) * 2.0**-52,
    "offset": lambda z: 1e15 + np.round(10 * z),
    "outlier": lambda z: np.append(z[:-1], 1e300),
    "ordinary": lambda z: z,
}
WEIGHTS = {
    "3e11 in all": np.full(N, 1.5e9),
    "1e15 in all": np.full(N, 5e12),
    "2e17 in all": np.full(N, 1e15),
    "1e300": np.full(N, 1e298),
    "overflow": np.full(N, 1e307),
    "1e-300": np.full(N, 1e-300),
    "denormal": np.full(N, 5e-324),
    "ratio of 1e13": np.where(np.arange(N) % 2, 1.0, 1e-13),
    "ratio of 1e30": np.where(np.arange(N) % 2, 1.0, 1e-30),
    "one of 1e15": np.where(np.arange(N) == 3, 1e15, 1.0),
    "one of 1e300": np.where(np.arange(N) == 3, 1e300, 1.0),
    "1e-20 to 1e20": 10.0 ** np.linspace(-20, 20, N),
    "1e-25 to 1e15": 10.0 ** np.linspace(-25, 15, N),
}


@pytest.fixture
def labels(rng):
    return rng.integers(0, 2, N)


def probabilities_or_refusal(make, scores, y, weight, points, name):
    """Fit; predictions are probabilities, or the refusal names the argument."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        try:
            predicted = make().fit(scores, y, weight).predict(points)
        except ValueError as error:
            refusal = str(error)
        else:
            assert np.isfinite(predicted).all()
            assert predicted.min() >= 0.0
            assert predicted.max() <= 1.0
            return ""
    assert f"`{name}` must" in refusal
    return refusal


@pytest.mark.parametrize("size", SCORES)
@pytest.mark.parametrize("cls", CALIBRATORS)
def test_scores_of_any_size(cls, size, rng, labels):
    scale = "real" if "real" in cls._scales else "logit"
    scores = SCORES[size](rng.normal(size=N))
    with np.errstate(all="ignore"):
        refusal = probabilities_or_refusal(
            lambda: cls(scale=scale), scores, labels, None, FAR, "scores"
        )
    if size in ("ordinary", "offset", "ulps"):
        assert not refusal


@pytest.mark.parametrize("total", WEIGHTS)
@pytest.mark.parametrize("cls", CALIBRATORS)
def test_weights_of_any_size(cls, total, rng):
    scores = rng.uniform(size=N)
    y = rng.uniform(size=N) < scores
    weight = WEIGHTS[total]
    with np.errstate(all="ignore"):
        refusal = probabilities_or_refusal(
            cls, scores, y, weight, np.linspace(0, 1, 7), "sample_weight"
        )
    with np.errstate(over="ignore"):
        assert bool(refusal) == (weight.sum() > 2.0**53 or weight.max() < 1e-307)


def test_measures_name_weights_that_are_too_large():
    with pytest.raises(ValueError, match=r"add up to at most 2\^53 .* 1e\+300 at posi"):
        brier_score([0, 1], [0.2, 0.7], sample_weight=[1.0, 1e300])
    with pytest.raises(ValueError, match=r"must reach 2\.23e-308 somewhere, got at mo"):
        brier_score([0, 1], [0.2, 0.7], sample_weight=[0.0, 5e-324])


def test_very_many_rows_have_the_fit_of_fewer(rng):
    scores = rng.normal(size=N)
    y = rng.uniform(size=N) < 0.5
    few, many = (
        LogisticCalibrator(scale="real").fit(scores, y, np.full(N, weight))
        for weight in (1e6, 1e12)
    )
    np.testing.assert_allclose(
        many.predict(scores), few.predict(scores), rtol=0, atol=1e-7
    )
