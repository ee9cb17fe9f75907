"""Decisions that follow from forecasts."""

from localexpert.risk.cost_matrix import (
    CostDecision,
    cost_decision,
    decision_threshold,
    realised_cost,
)
from localexpert.risk.decisions import (
    BestAction,
    NewsvendorDecision,
    best_action,
    expected_loss,
    newsvendor,
)
from localexpert.risk.policy import PolicyProfit, policy_profit

__all__ = [
    "BestAction",
    "CostDecision",
    "NewsvendorDecision",
    "PolicyProfit",
    "best_action",
    "cost_decision",
    "decision_threshold",
    "expected_loss",
    "newsvendor",
    "policy_profit",
    "realised_cost",
]
