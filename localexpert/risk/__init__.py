"""Risk of forecasts and the decisions that follow from it."""

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
    newsvendor,
)
from localexpert.risk.measures import (
    exceedance,
    expected_loss,
    expected_shortfall,
    probability_between,
    value_at_risk,
)
from localexpert.risk.policy import PolicyProfit, policy_profit
from localexpert.risk.table import risk_table

__all__ = [
    "BestAction",
    "CostDecision",
    "NewsvendorDecision",
    "PolicyProfit",
    "best_action",
    "cost_decision",
    "decision_threshold",
    "exceedance",
    "expected_loss",
    "expected_shortfall",
    "newsvendor",
    "policy_profit",
    "probability_between",
    "realised_cost",
    "risk_table",
    "value_at_risk",
]
