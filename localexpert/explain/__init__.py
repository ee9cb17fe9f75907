"""Explanations of forecasts: contributions of features, and their importance."""

from localexpert.explain.permutation import (
    PermutationImportance,
    permutation_importance,
)
from localexpert.explain.shapley import Explanation, explain_forecast

__all__ = [
    "Explanation",
    "PermutationImportance",
    "explain_forecast",
    "permutation_importance",
]
