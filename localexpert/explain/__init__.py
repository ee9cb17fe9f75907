"""Why a forecast is what it is: contributions of features, and what they are worth."""

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
