"""Laws moved to means that are given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from localexpert.law.level_map import recentre
from tests.localexpert.law.kinds import KINDS, LATTICES, LEVELS, every


@every
@pytest.mark.parametrize("step", [-0.3, 0.0, 0.3])
def test_means_are_those_asked_for(name: str, step: float) -> None:
    law = KINDS[name]
    mean, variance = law.moments()[:, :2].T
    goal = mean + step * np.sqrt(variance)
    goal = np.where(goal > law.support[0], goal, mean)
    moved = recentre(law, goal)
    bar = 1e-6 if name not in LATTICES else 1e-3
    assert_allclose(moved.moments()[:, 0], goal, atol=bar)
    if name == "smooth":
        shift = (goal - mean)[:, None]
        assert_allclose(moved.ppf(LEVELS), law.ppf(LEVELS) + shift, rtol=1e-12)
        return
    assert moved.support == law.support
    alone = recentre(law.take([1]), goal[[1]])
    assert_allclose(alone.moments()[0], moved.moments()[1], rtol=1e-9, atol=1e-12)


def test_what_cannot_be_reached_is_approached() -> None:
    far = recentre(KINDS["discrete"], np.array([9.0, -9.0, 3.0])).moments()[:, 0]
    assert_allclose(far, [5.0, 1.0, 1.0], atol=0.02)
