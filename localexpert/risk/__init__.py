"""Decisions that follow from forecasts."""

from localexpert.risk.decisions import (
    BestAction,
    CostDecision,
    NewsvendorDecision,
    PolicyProfit,
    best_action,
    cost_decision,
    decision_threshold,
    expected_loss,
    newsvendor,
    policy_profit,
    realised_cost,
)

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
