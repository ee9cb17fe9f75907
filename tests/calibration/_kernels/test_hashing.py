"""SplitMix64 against its published test vector."""

import numpy as np

from calibration._kernels.hashing import mix64, next_key


def test_reproduces_splitmix64():
    # First outputs of Vigna's reference splitmix64.c for seed 1234567.
    key, got = np.uint64(1234567), []
    for _ in range(3):
        key = np.uint64(next_key(key))
        got.append(int(mix64(key)))
    assert got == [6457827717110365317, 3203168211198807973, 9817491932198370423]
