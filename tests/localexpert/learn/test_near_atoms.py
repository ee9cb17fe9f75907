"""Mass near heavy values: what is collected, beside brute force and on targets."""

import numpy as np
import pytest
from scipy.stats import norm

from localexpert import LocalExpertRegressor
from localexpert.learn.atoms import NearAtoms
from tests.forecasts import normal


def collected(atoms, borders, shares, mean=0.3, sd=1.5):
    step = NearAtoms(np.array(atoms))
    step.borders_, step.shares_ = np.array(borders), np.array(shares)
    step.widths_ = np.full(len(atoms), 0.1)
    return step.read(normal([mean], sd).law)


@pytest.mark.parametrize(
    ("atoms", "borders", "shares"),
    [
        ([0.0], [-0.2, 0.2], [0.9]),
        ([0.0, 1.0, 2.0], [-0.5, 0.5, 0.5, 1.5, 1.5, 2.5], [0.8, 0.5, 0.99]),
        ([-9.0, 5.0], [-9.5, -8.5, 4.0, 6.0], [0.7, 0.3]),
    ],
)
def test_an_atom_takes_its_share_of_what_is_around_it(atoms, borders, shares):
    law = collected(atoms, borders, shares)
    y = np.linspace(-12.0, 8.0, 200_001)
    mass = np.diff(norm.cdf(y, 0.3, 1.5))
    middle = 0.5 * (y[1:] + y[:-1])
    jumps = np.zeros(len(mass))
    for k, atom in enumerate(atoms):
        near = (borders[2 * k] <= middle) & (middle < borders[2 * k + 1])
        jumps[np.searchsorted(middle, atom)] += shares[k] * mass[near].sum()
        mass = np.where(near, (1.0 - shares[k]) * mass, mass)
    expected = np.cumsum(mass + jumps)
    at = np.linspace(-3.9, 4.1, 41) + 0.013
    got = law.cdf(at[None, :])[0]
    # What is left is drawn by knots a fifth of a deviation apart.
    np.testing.assert_allclose(got, np.interp(at, y[1:], expected), atol=0.025)
    far = np.abs(at[:, None] - borders).min(axis=1) > 0.6
    np.testing.assert_allclose(got[far], np.interp(at[far], y[1:], expected), atol=2e-3)
    # All that is left is somewhere, in both tails as well.
    assert law.cdf(np.array([[-8.0]]))[0, 0] == pytest.approx(
        norm.cdf(-8.0, 0.3, 1.5) * (1 if atoms[0] > -8.0 else 2), abs=1e-7
    )


def make(**parameters):
    return LocalExpertRegressor(random_state=0, cv=3, **parameters)


@pytest.fixture(scope="module")
def rounded():
    """A smooth target of which half the values are rounded."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(500, 3))
    y = 6.0 * X[:, 0] + np.sin(5.0 * X[:, 1]) + 0.3 * rng.normal(size=500)
    half = rng.uniform(size=500) < 0.5
    return X, np.where(half, np.round(y), y)


def test_rounded_values_say_what_lies_between_them(rounded):
    X, y = rounded
    model = make().fit(X[:300], y[:300])
    report = model.report_.choices
    losses = report["roads"]["losses"]
    assert model.report_.target == "mixed"
    assert losses["smooth"] < 0.95 * losses["mixed"]
    assert report["roads"]["weights"]["smooth"] > 0.5
    assert 3.0 in report["atoms"]
    dist = model.predict_dist(X[300:])
    # Half of what is said lies on whole numbers.
    whole = np.arange(-2.0, 9.0)
    on = sum(dist.cdf(v) - dist.cdf(v - 1e-6) for v in whole)
    assert on.mean() == pytest.approx(0.5, abs=0.1)
    assert dist.crps(y[300:]).mean() < 0.35
