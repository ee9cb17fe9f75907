"""scikit-learn's common checks of estimators."""

import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.utils.estimator_checks import (
    estimator_checks_generator,
    parametrize_with_checks,
)

from calibration.classifier.classifier import AllPairsClassifier, CalibratedClassifier
from calibration.monotone.isotonic import IsotonicCalibrator

# Every value of a parameter that leads elsewhere stands in one of them.
INSTANCES = [
    CalibratedClassifier(),
    CalibratedClassifier(LogisticRegression(), "temperature", cv=3),
    CalibratedClassifier(
        RidgeClassifier(),
        IsotonicCalibrator(),
        response="decision_function",
        ensemble=True,
    ),
    AllPairsClassifier(
        RidgeClassifier(),
        IsotonicCalibrator(scale="real"),
        response="decision_function",
    ),
]


# Some checks have a handful of rows or give a class no weight: fewer folds, or a
# calibrator that predicts a constant, with the warnings that are documented.
@pytest.mark.filterwarnings("ignore::calibration.exceptions.CalibrationWarning")
@parametrize_with_checks(INSTANCES)
def test_sklearn_checks(estimator, check):
    check(estimator)


def test_the_checks_that_matter_are_among_them():
    names = {
        getattr(check, "func", check).__name__
        for _, check in estimator_checks_generator(CalibratedClassifier())
    }
    assert names >= {
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
        "check_classifiers_train",
        "check_n_features_in_after_fitting",
    }
