"""Compiled numerics: arrays in, arrays out.

Rule of the room: files here import numpy, numba and one another, nothing else of
the project. Inputs are C-contiguous float64 arrays that the caller has checked;
outputs are newly allocated. No random state: kernels that draw take an integer seed.
"""
