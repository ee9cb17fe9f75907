"""What Gauss-Legendre sums over panels cannot see of a function, and what shows it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from localexpert.laws.roughness import Roughness

NODES = 0.5 * (1.0 + np.polynomial.legendre.leggauss(4)[0])


def at_nodes(function, n_panels=3):
    return function(np.arange(n_panels)[:, None] + NODES)[None]


@pytest.mark.parametrize("power", [0, 1, 2])
def test_parabolas_are_smooth(power):
    values = at_nodes(lambda x: (x - 1.3) ** power)
    assert_allclose(Roughness(NODES).of(values), 0.0, atol=1e-14)


def test_bends_are_those_of_their_panel():
    found = Roughness(NODES).of(at_nodes(lambda x: np.maximum(x - 1.5, 0.0) ** 2))
    assert found[0, 1] > 0.01
    assert found[0, 1] > found[0, 0]


@pytest.mark.parametrize("place", [0.97, 1.0, 1.03])
def test_a_step_between_the_nodes_of_two_panels_is_seen(place):
    """Within each of the two all values are the same."""
    found = Roughness(NODES).of(at_nodes(lambda x: (x > place) + 0.0))
    assert_allclose(found, [[0.25, 0.25, 0.0]], atol=1e-14)
