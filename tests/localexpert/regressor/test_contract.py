"""LocalExpertRegressor under scikit-learn's own checks."""

import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from localexpert import LocalExpertRegressor
from localexpert.experts import SharedBoosting


def expected_failures(_):
    """Return check and reason."""
    reason = (
        "LightGBM's least leaf size counts rows, not weights: repeated rows grow finer "
        "trees than weighted ones"
    )
    out_of_fold = (
        "`fit_transform` describes the training rows out of fold, and must not be the "
        "same as `transform`; scikit-learn's TargetEncoder does likewise"
    )
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_transformer_data_not_an_array": out_of_fold,
        "check_transformer_general": out_of_fold,
    }


@pytest.mark.slow
@parametrize_with_checks(
    [
        LocalExpertRegressor(
            center=LinearRegression(),
            strategy=SharedBoosting(max_rounds=20, random_state=0),
            n_thresholds=5,
            cv=2,
            random_state=0,
        ),
        LocalExpertRegressor(
            strategy=SharedBoosting(max_rounds=40, random_state=0),
            n_thresholds=5,
            monotone={0: 1},
            cv=2,
            random_state=0,
        ),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore::calibration.exceptions.CalibrationWarning")
def test_sklearn_checks(estimator, check):
    check(estimator)
