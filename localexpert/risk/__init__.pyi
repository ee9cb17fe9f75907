"""The public names, and where each is."""

from localexpert.risk.decisions import BestAction as BestAction
from localexpert.risk.decisions import CostDecision as CostDecision
from localexpert.risk.decisions import NewsvendorDecision as NewsvendorDecision
from localexpert.risk.decisions import PolicyProfit as PolicyProfit
from localexpert.risk.decisions import best_action as best_action
from localexpert.risk.decisions import cost_decision as cost_decision
from localexpert.risk.decisions import decision_threshold as decision_threshold
from localexpert.risk.decisions import expected_loss as expected_loss
from localexpert.risk.decisions import newsvendor as newsvendor
from localexpert.risk.decisions import policy_profit as policy_profit
from localexpert.risk.decisions import realised_cost as realised_cost

__all__: list[str]
