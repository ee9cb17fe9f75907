"""`PredictiveDistribution`: the forecasts that users see, and what they can ask."""
