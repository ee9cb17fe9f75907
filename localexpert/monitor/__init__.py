"""After the fit: whether forecasts still hold."""
