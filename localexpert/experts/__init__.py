"""Experts: strategies that learn the probability of lying below each threshold."""

from localexpert.experts.experts import Experts
from localexpert.experts.independent import IndependentExperts
from localexpert.experts.joint import JointForest
from localexpert.experts.networks import JointMLP
from localexpert.experts.shared import SharedBoosting
from localexpert.experts.vector_leaf import JointXGBoost

__all__ = [
    "Experts",
    "IndependentExperts",
    "JointForest",
    "JointMLP",
    "JointXGBoost",
    "SharedBoosting",
]
