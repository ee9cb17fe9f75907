"""scikit-learn's common checks of estimators."""

import pytest
import sklearn
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.utils.estimator_checks import (
    estimator_checks_generator,
    parametrize_with_checks,
)

from calibration.classifier import CalibratedClassifier
from calibration.isotonic import IsotonicCalibrator

INSTANCES = [
    CalibratedClassifier(),
    CalibratedClassifier(ensemble=True),
    CalibratedClassifier(calibrator=IsotonicCalibrator()),
    CalibratedClassifier(LogisticRegression(C=1), cv=3),
    CalibratedClassifier(RidgeClassifier(), response="decision_function"),
]
SAMPLE_WEIGHT_EQUIVALENCE = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)


def expected_failures(_: CalibratedClassifier) -> dict[str, str]:
    """Return check and reason: none, but for a fault of the oldest scikit-learn.

    The equivalence of weights and repetitions holds although folds move with the
    number of rows: the checks fix `cv` so that repetitions share a fold.
    """
    major, minor = sklearn.__version__.split(".")[:2]
    if (int(major), int(minor)) >= (1, 7):
        return {}
    reason = (
        "scikit-learn 1.6 makes the labels binary by the first row's label, which "
        "differs between the weighted and the repeated data: classes are swapped"
    )
    return dict.fromkeys(SAMPLE_WEIGHT_EQUIVALENCE, reason)


# Some checks have a handful of rows or give a class no weight: fewer folds, or a
# calibrator that predicts a constant, with the warnings that are documented.
@pytest.mark.filterwarnings("ignore::calibration.exceptions.CalibrationWarning")
@parametrize_with_checks(INSTANCES, expected_failed_checks=expected_failures)
def test_sklearn_checks(estimator, check):
    check(estimator)


def test_the_checks_that_matter_are_among_them():
    names = {
        getattr(check, "func", check).__name__
        for _, check in estimator_checks_generator(CalibratedClassifier())
    }
    assert names >= {
        *SAMPLE_WEIGHT_EQUIVALENCE,
        "check_classifier_not_supporting_multiclass",
        "check_n_features_in_after_fitting",
    }
