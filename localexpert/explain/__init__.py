"""Explanations of forecasts: contributions of features, and their importance."""
