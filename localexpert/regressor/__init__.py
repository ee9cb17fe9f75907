"""The regressors' base and `LocalExpertRegressor`, which joins the stages."""
