"""Compiled numerics: functions that take arrays and return arrays.

This is the rule of the room. Files here import numpy, numba and one another, and
nothing else of the project. Inputs are C-contiguous float64 arrays that the caller has
checked. Outputs are new arrays. There is no random state: a kernel that draws takes an
integer seed.
"""
