"""Forecasts and regressors as skpro's objects, for those who work with skpro.

Needs the extra `localexpert[skpro]`; `localexpert` itself never imports this room.
"""

from localexpert.skpro.forecast import SkproForecast
from localexpert.skpro.regressor import LocalExpertProba

__all__ = ["LocalExpertProba", "SkproForecast"]
