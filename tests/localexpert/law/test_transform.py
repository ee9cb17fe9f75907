"""Laws of functions of Y: what is moved exactly, cells of atoms, ends of functions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from localexpert.law.transform import ValueMap, transform_law
from tests.localexpert.law.kinds import KINDS, LATTICES, LEVELS, every, places_of


def _undo(z: np.ndarray) -> np.ndarray:
    low, high = z - 1.0, z.copy()
    for _ in range(80):
        middle = 0.5 * (low + high)
        less = middle + expit(middle) < z
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    return 0.5 * (low + high)


CURVED = ValueMap(lambda y: y + expit(y), _undo)


@every
def test_lines_move_laws_exactly(name: str) -> None:
    law = KINDS[name]
    moved = transform_law(
        law, ValueMap(lambda y: 3.0 * y - 2.0, lambda z: (z + 2.0) / 3)
    )
    y = places_of(law)
    assert_allclose(moved.cdf(3.0 * y - 2.0), law.cdf(y), rtol=0.0, atol=1e-9)
    assert_allclose(moved.crps(3.0 * y - 2.0), 3.0 * law.crps(y), rtol=1e-6)
    if name not in LATTICES:
        gain = np.where(law.logpdf(y) > -np.inf, law.logpdf(y) - np.log(3.0), -np.inf)
        near = np.abs(law.cdf(y) - 0.5) < 0.4999
        assert_allclose(moved.logpdf(3.0 * y - 2.0)[near], gain[near], atol=1e-6)


@every
def test_levels_stay_with_values(name: str) -> None:
    law = KINDS[name]
    found, y = transform_law(law, CURVED), places_of(law)
    for method in ("cdf", "cdf_left"):
        got = getattr(found, method)(CURVED.func(y))
        assert_allclose(got, getattr(law, method)(y), rtol=0.0, atol=1e-3)
    assert_allclose(found.ppf(LEVELS), CURVED.func(law.ppf(LEVELS)), atol=2e-3)
    if name == "mixed":
        sides = CURVED.func(np.array([[-0.05, 0.05], [0.95, 1.05]]))
        assert_allclose(found.widths, np.diff(sides)[:, 0])
        with pytest.raises(ValueError, match="`func` must be finite wherever the"):
            transform_law(law, ValueMap(np.log, np.exp))
