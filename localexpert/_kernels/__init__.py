"""Compiled numerics of predictive distributions: arrays in, arrays out.

Rule of the room: files here import numpy, numba, one another and the kernels of
`calibration`, nothing else. Inputs are C-contiguous float64 arrays that the caller has
checked; outputs are newly allocated. No random state.
"""
