import numpy as np

from localexpert._kernels.row_hashes import add_hashes, finish_hashes

WRAP = 2**64 - 1


def mixed(z):
    """SplitMix64's finaliser on whole numbers."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & WRAP
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & WRAP
    return z ^ (z >> 31)


def test_hashes_are_sums_over_columns_of_mixed_bits(rng):
    columns = rng.integers(0, 2**64, size=(3, 50), dtype=np.uint64)
    columns[:, :2] = [[0, 2**64 - 1]] * 3
    salts = [1, 2**63, 12345678901234567890]
    total = np.zeros(50, np.uint64)
    for bits, salt in zip(columns, salts, strict=True):
        add_hashes(total, bits, np.uint64(salt))
    wanted = [
        sum(mixed(mixed(int(b)) ^ s) for b, s in zip(row, salts, strict=True)) & WRAP
        for row in columns.T
    ]
    assert total.tolist() == wanted
    other = np.zeros(50, np.uint64)
    for k in (2, 0, 1):
        add_hashes(other, columns[k], np.uint64(salts[k]))
    np.testing.assert_array_equal(other, total)
    assert finish_hashes(total, np.uint64(7)).tolist() == [mixed(z ^ 7) for z in wanted]
