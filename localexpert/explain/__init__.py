"""Why a forecast is what it is: contributions of features, and what they are worth."""

from localexpert.explain.expert_log_odds import explain_boosting
from localexpert.explain.explanation import Explanation
from localexpert.explain.loss_increases import PermutationImportance
from localexpert.explain.permutation import permutation_importance
from localexpert.explain.plots import plot_explanation
from localexpert.explain.shapley import explain_forecast

__all__ = [
    "Explanation",
    "PermutationImportance",
    "explain_boosting",
    "explain_forecast",
    "permutation_importance",
    "plot_explanation",
]
