"""Laws between bounds, cut off there or clipped, against brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from localexpert.law.bounds import clip, cut
from localexpert.law.law import Law
from tests.localexpert.law.kinds import KINDS, LATTICES, every, places_of

BOUNDS = [(0.0, 1.0), (-np.inf, 1.0), (0.0, np.inf)]
INNER = {
    "share": (0.2, 0.7),
    "discrete": (0.5, 5.0),
    "lattice": (-0.9, 2.1),
    "counts": (1.0, 4.0),
}


def ends_of(name: str, bounds: tuple[float, float]) -> tuple[float, float]:
    """Return bounds that hold some of every row, of a lattice its values."""
    inner = INNER.get(name, (-0.75, 2.25))
    low, high = (
        own if np.isfinite(b) else b for own, b in zip(inner, bounds, strict=True)
    )
    return low, high


@pytest.mark.parametrize("bounds", BOUNDS)
@every
def test_what_is_cut_off_is_made_whole(name: str, bounds: tuple[float, float]) -> None:
    law = KINDS[name] if name != "clipped" else KINDS["clipped"].clipped
    low, high = ends_of(name, bounds)
    found = cut(law, low, high)
    y = np.clip(places_of(law), low, high)
    below = law.cdf_left(np.full((3, 1), low))
    whole = law.cdf(np.full((3, 1), high)) - below
    for method in ("cdf", "cdf_left"):
        want = (getattr(law, method)(y) - below) / whole
        want = np.clip(want, 0.0, 1.0)
        assert_allclose(getattr(found, method)(y), want, rtol=0.0, atol=1e-3)
    assert found.support[0] >= low
    assert found.support[1] <= high
    beyond = np.tile([low - 1.0, high + 1.0], (3, 1))
    assert_allclose(found.cdf(beyond), np.tile([0.0, 1.0], (3, 1)), atol=1e-12)


@pytest.mark.parametrize("bounds", BOUNDS)
@every
def test_what_is_clipped_is_at_the_bounds(
    name: str, bounds: tuple[float, float]
) -> None:
    if name == "discrete":
        return  # of values alone nothing is clipped
    law = KINDS[name]
    low, high = ends_of(name, bounds)
    found = clip(law, low, high, 0.2)
    y = places_of(law)
    inside = (y >= low) & (y < high)
    assert_allclose(found.cdf(y)[inside], law.cdf(y)[inside], rtol=0.0, atol=1e-12)
    assert (found.cdf(y)[y < low] == 0.0).all()
    assert (found.cdf(y)[y >= high] == 1.0).all()
    levels = np.tile((np.arange(20_000) + 0.5) / 20_000, (3, 1))
    values = np.clip(law.ppf(levels), low, high)
    sd = law.ppf(levels).std(axis=1)
    moments = found.moments()
    assert_allclose((moments[:, 0] - values.mean(axis=1)) / sd, 0.0, atol=1e-3)
    assert_allclose(np.sqrt(moments[:, 1]) / sd, values.std(axis=1) / sd, atol=2e-3)
    at = np.clip(y, low, high)[:, ::3]
    losses = np.abs(values[:, None] - at[:, :, None]).mean(axis=2)
    spread = (np.sort(values, axis=1) * (2.0 * levels - 1.0)).mean(axis=1)
    error = found.crps(at) - (losses - spread[:, None])
    assert_allclose(error / sd[:, None], 0.0, atol=2e-3)
    if name not in LATTICES and np.isfinite(low):
        mass = law.cdf(np.full((3, 1), low))
        assert_allclose(found.pdf(np.full((3, 1), low)), mass / 0.2, rtol=1e-6)


@every
def test_bounds_that_hold_all_change_nothing(name: str) -> None:
    law: Law = KINDS[name]
    if name != "discrete":
        assert cut(law, -np.inf, np.inf) is law
    assert clip(law, -np.inf, np.inf, 1.0) is law
    low, high = law.support
    assert clip(law, low, high, 1.0) is law


def test_bounds_without_any_probability_are_refused() -> None:
    with pytest.raises(
        ValueError, match="`bounds` must hold some of the probability of"
    ):
        cut(KINDS["smooth"], 400.0, 500.0)
