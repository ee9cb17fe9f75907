"""Integrals between quantiles of laws that lie apart, against dense sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtr, ndtri

from localexpert.curves.base_cdf import BaseCDF
from localexpert.laws import SplineLaw
from localexpert.laws.join_laws import pool_laws
from localexpert.laws.quantile_mesh import Mesh
from localexpert.laws.recalibrated import recalibrate_law
from localexpert.laws.score_map import ProbitMap

NORMAL = BaseCDF.fit(ndtri((np.arange(2000) + 0.5) / 2000))
STEEP = ProbitMap([-1.5, -0.1, 0.1, 1.5], [-1.6, -1.0, 1.0, 1.6], [0.8, 1.0, 1.0, 0.8])


def normal_law(*centers, scale=1.0):
    one = np.ones((len(centers), 1))
    frame = np.array(centers), np.full(len(centers), scale)
    return SplineLaw(*frame, [0.0], 0.0 * one, one, NORMAL)


def pool_apart(kind):
    """Rows whose members are alike, somewhat apart, and so far that none is between."""
    members = [normal_law(0.0, -1.5, -15.0), normal_law(0.0, 1.5, 15.0, scale=0.4)]
    return pool_laws(members, [0.6, 0.4], kind)


@pytest.mark.parametrize("kind", ["linear", "probit"])
@pytest.mark.parametrize("scores", [None, STEEP], ids=["plain", "mapped"])
def test_integrals_of_members_apart(kind, scores):
    law = pool_apart(kind)
    law = law if scores is None else recalibrate_law(law, scores)
    grid = np.linspace(-30.0, 30.0, 240_001)
    x, dx = 0.5 * (grid[1:] + grid[:-1]), grid[1] - grid[0]
    cdf = law.cdf(np.tile(x, (3, 1)))
    y = law.ppf(np.tile([0.02, 0.5, 0.9], (3, 1)))
    below, above = law.partial_means(y)
    crps, moments = law.crps(y), law.moments()
    mean = 30.0 - dx * cdf.sum(axis=1)
    second = 2.0 * dx * (x * np.where(x > 0.0, 1.0 - cdf, -cdf)).sum(axis=1)
    assert_allclose(moments[:, 0], mean, atol=1e-3)
    assert_allclose(np.sqrt(moments[:, 1]), np.sqrt(second - mean**2), rtol=1e-3)
    for j in range(3):
        step = x >= y[:, [j]]
        assert_allclose(crps[:, j], dx * ((cdf - step) ** 2).sum(axis=1), rtol=1e-3)
        want = dx * np.where(step, 0.0, cdf).sum(axis=1)
        assert_allclose(below[:, j], want, rtol=1e-3, atol=1e-4)
        want = dx * np.where(step, 1.0 - cdf, 0.0).sum(axis=1)
        assert_allclose(above[:, j], want, rtol=1e-3, atol=1e-4)


def test_a_thin_tail_that_ends_before_the_first_node_of_its_panel():
    """The panel to the next member is wide, and the CDF is 1 at all nodes of it."""
    mesh, thin = Mesh.of([normal_law(0.0)], cuts=np.array([[300.0]])), 5e-3

    def answer(_, y):
        rest = thin * np.exp(-np.maximum(y - 8.4, 0.0))
        return np.where(y < 8.4, (1.0 - thin) * ndtr(y), 1.0 - rest)[None]

    ((_, fine, (cdf,)),) = mesh.refined(answer)
    tail = (fine.dy * (1.0 - cdf))[fine.y > 8.4].sum()
    assert_allclose(tail, thin, rtol=0.05)


def test_rows_that_are_fine_are_asked_once():
    law = pool_apart("probit")
    mesh, asked = Mesh.of(law.members), []

    def answer(rows, y):
        asked.append(rows)
        return law.take(rows).cdf(y)[None]

    found = list(mesh.refined(answer))
    assert_array_equal(
        np.sort(np.concatenate([rows for rows, _, _ in found])), range(3)
    )
    assert_array_equal(asked[0], range(3))
    # Members alike join to one like them.
    assert all(0 not in rows for rows in asked[1:])
    assert any(2 in rows for rows in asked[1:])
    for rows, fine, (cdf,) in found:
        assert_allclose(law.take(rows).cdf(fine.y), cdf, rtol=1e-12)
        assert_allclose(
            fine.dy.sum(axis=1), fine.borders[:, -1] - fine.borders[:, 0], rtol=1e-12
        )
