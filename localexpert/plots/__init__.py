"""Pictures of forecasts and of fitted regressors; matplotlib is imported when used."""
