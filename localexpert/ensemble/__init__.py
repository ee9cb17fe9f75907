"""Ensembles: regressors whose distributions are pooled with learned weights."""

from localexpert.ensemble.ensemble import DistributionEnsemble, pool, pool_weights

__all__ = ["DistributionEnsemble", "pool", "pool_weights"]
