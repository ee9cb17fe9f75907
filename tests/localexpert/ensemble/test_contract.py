"""DistributionEnsemble under scikit-learn's own checks."""

import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from localexpert import LocalExpertRegressor
from localexpert.ensemble import DistributionEnsemble
from localexpert.experts import JointForest


def expected_failures(_):
    """Return check and reason."""
    reason = "forests draw rows, so repeated rows and weighted ones grow other trees"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


def member(frame):
    """A regressor that fits fast."""
    forest = JointForest(10, random_state=0)
    return LocalExpertRegressor(
        center=LinearRegression(), strategy=forest, frame=frame, n_thresholds=5, cv=2
    )


@pytest.mark.slow
@parametrize_with_checks(
    [
        DistributionEnsemble(
            [("center", member("center")), ("none", member(None))], random_state=0
        )
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore::calibration.exceptions.CalibrationWarning")
def test_sklearn_checks(estimator, check):
    check(estimator)
