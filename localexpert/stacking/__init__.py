"""Meta-regressors on honest out-of-fold distributions."""

from localexpert.stacking.stacker import Stacker

__all__ = ["Stacker"]
