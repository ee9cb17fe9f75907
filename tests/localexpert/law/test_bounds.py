"""Laws between bounds, cut off there or clipped, against brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from localexpert.law.bounds import clip, cut
from tests.localexpert.law.kinds import KINDS, LATTICES, every, places_of

# Bounds that hold some of every row; of a lattice they are its values.
INNER = {
    "share": (0.2, 0.7),
    "discrete": (0.5, 5.0),
    "lattice": (-0.9, 2.1),
    "counts": (1.0, 4.0),
}
sides = pytest.mark.parametrize("open_side", [None, 0, 1], ids=["both", "high", "low"])


def ends_of(name: str, open_side: int | None) -> tuple[float, float]:
    low, high = INNER.get(name, (-0.75, 2.25))
    return -np.inf if open_side == 0 else low, np.inf if open_side == 1 else high


@sides
@every
def test_what_is_cut_off_is_made_whole(name: str, open_side: int | None) -> None:
    law = KINDS[name] if name != "clipped" else KINDS["clipped"].clipped
    low, high = ends_of(name, open_side)
    found, y = cut(law, low, high), np.clip(places_of(law), low, high)
    below = law.cdf_left(np.full((3, 1), low))
    whole = law.cdf(np.full((3, 1), high)) - below
    for method in ("cdf", "cdf_left"):
        want = np.clip((getattr(law, method)(y) - below) / whole, 0.0, 1.0)
        assert_allclose(getattr(found, method)(y), want, rtol=0.0, atol=1e-3)
    assert found.support[0] >= low
    assert found.support[1] <= high
    beyond = np.tile([low - 1.0, high + 1.0], (3, 1))
    assert_allclose(found.cdf(beyond), np.tile([0.0, 1.0], (3, 1)), atol=1e-12)


@sides
@pytest.mark.parametrize("name", [name for name in KINDS if name != "discrete"])
def test_what_is_clipped_is_at_the_bounds(name: str, open_side: int | None) -> None:
    law, (low, high) = KINDS[name], ends_of(name, open_side)
    found, y = clip(law, low, high, 0.2), places_of(law)
    want = np.where(y < low, 0.0, np.where(y >= high, 1.0, law.cdf(y)))
    assert_allclose(found.cdf(y), want, rtol=0.0, atol=1e-12)
    levels = np.tile((np.arange(200_000) + 0.5) / 200_000, (3, 1))
    every_y = law.ppf(levels)
    values, sd = np.clip(every_y, low, high), every_y.std(axis=1)
    mean, variance = found.moments()[:, :2].T
    assert_allclose((mean - values.mean(axis=1)) / sd, 0.0, atol=1e-3)
    assert_allclose(np.sqrt(variance) / sd, values.std(axis=1) / sd, atol=2e-3)
    at = np.clip(y, low, high)[:, ::3]
    losses = np.abs(values[:, None] - at[:, :, None]).mean(axis=2)
    spread = (values * (2.0 * levels - 1.0)).mean(axis=1)
    error = found.crps(at) - (losses - spread[:, None])
    assert_allclose(error / sd[:, None], 0.0, atol=2e-3)
    if name not in LATTICES and np.isfinite(low):
        end = np.full((3, 1), low)
        assert_allclose(found.pdf(end), law.cdf(end) / 0.2, rtol=1e-6)


@every
def test_bounds_that_hold_all_change_nothing(name: str) -> None:
    law = KINDS[name]
    assert clip(law, *law.support, 1.0) is clip(law, -np.inf, np.inf, 1.0) is law
    if name != "discrete":
        assert cut(law, -np.inf, np.inf) is law


def test_bounds_without_any_probability_are_refused() -> None:
    with pytest.raises(
        ValueError, match="`bounds` must hold some of the probability of"
    ):
        cut(KINDS["smooth"], 400.0, 500.0)
