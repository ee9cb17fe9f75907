"""Laws: n conditional distributions held as arrays, one row each."""

from localexpert.laws.discrete import DiscreteLaw
from localexpert.laws.law import Law
from localexpert.laws.mixed import MixedLaw
from localexpert.laws.spline import SplineLaw

__all__ = ["DiscreteLaw", "Law", "MixedLaw", "SplineLaw"]
