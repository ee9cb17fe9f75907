import numpy as np
import pytest

from localexpert._kernels.small_net import run_rows


@pytest.mark.parametrize("h", [1, 2, 7, 64])
def test_outputs_are_those_of_products_of_matrices(h, rng):
    first, second, last, rows = (
        rng.normal(size=shape).astype(np.float32)
        for shape in ((6, h), (h + 1, h), (h + 1,), (40, 5))
    )
    inner = np.maximum(rows.astype(float) @ first[:-1] + first[-1], 0.0)
    outer = np.maximum(inner @ second[:-1] + second[-1], 0.0)
    expected = outer @ last[:-1] + last[-1]
    out = run_rows(first, second, last, rows)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
    alone = [run_rows(first, second, last, rows[i : i + 1])[0] for i in range(40)]
    np.testing.assert_array_equal(out, alone)
