"""What is asked of forecasts: `PredictiveDistribution`."""
