"""Classifiers whose probabilities are calibrated out of fold."""
