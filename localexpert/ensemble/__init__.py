"""Ensembles: regressors whose distributions are pooled with learned weights."""

from localexpert.ensemble.ensemble import DistributionEnsemble

__all__ = ["DistributionEnsemble"]
