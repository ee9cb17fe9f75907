"""Counter-based random numbers: the same key gives the same number anywhere."""

import math

import numpy as np

from calibration._kernels._jit import fused

# The golden ratio times 2^64, odd: its multiples pass through all 64-bit numbers. The
# other two are the multipliers of variant 13 of Stafford's mixers.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)
_S11 = np.uint64(11)


@fused
def mix64(key: np.uint64) -> np.uint64:
    """Finaliser of SplitMix64 (Steele, Lea & Flood 2014): a bijection of 64 bits."""
    z = key
    z = (z ^ (z >> _S30)) * _MIX1
    z = (z ^ (z >> _S27)) * _MIX2
    return z ^ (z >> _S31)


@fused
def next_key(key: np.uint64) -> np.uint64:
    """Advance a SplitMix64 stream; feed the result to `mix64` for its number."""
    return key + _GOLDEN


@fused
def uniform(key: np.uint64) -> float:
    """Uniform number in (0, 1) from the key of a stream."""
    # 53 bits, all that a float holds; the half keeps 0 and 1 out, where the logarithm
    # is infinite.
    return (float(mix64(key) >> _S11) + 0.5) * 2.0**-53


@fused
def normal(key: np.uint64) -> float:
    """Standard normal number from the key of a stream (Box & Muller 1958)."""
    radius = math.sqrt(-2.0 * math.log(uniform(next_key(key))))
    return radius * math.cos(2.0 * math.pi * uniform(next_key(next_key(key))))
