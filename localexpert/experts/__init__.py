"""Experts: strategies that learn the probability of lying below each threshold."""

from localexpert.experts.base import Experts
from localexpert.experts.independent import IndependentExperts
from localexpert.experts.joint_forest import JointForest
from localexpert.experts.shared_boosting import SharedBoosting

__all__ = ["Experts", "IndependentExperts", "JointForest", "SharedBoosting"]
