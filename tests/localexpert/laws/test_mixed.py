"""The mixed law against a discrete law on a fine grid and against its definitions."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from localexpert.curves.base_cdf import BaseCDF
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.laws import DiscreteLaw, MixedLaw, SplineLaw

ATOMS = np.array([-1.0, 0.0, 2.0])
WIDTHS = np.array([0.1, 0.2, 0.4])
N_ROWS = 6


def make_smooth(n=N_ROWS, bounds=(-np.inf, np.inf)):
    rng = np.random.default_rng(7)
    base = BaseCDF.fit(rng.normal(size=1000))
    knots = np.array([-1.0, 0.0, 1.0])
    middle = rng.normal(size=(n, 1))
    steps = rng.uniform(0.7, 1.4, size=(n, 2))
    values = np.hstack([middle - steps[:, :1], middle, middle + steps[:, 1:]])
    slopes = np.column_stack([steps[:, 0], steps.min(axis=1), steps[:, 1]])
    center, scale = rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    return SplineLaw(center, scale, knots, values, slopes, base, bounds)


@pytest.fixture
def law():
    rng = np.random.default_rng(3)
    masses = 0.9 * rng.dirichlet(np.ones(4), size=N_ROWS)[:, :3]
    masses[0] = 0.0
    masses[1] = [0.0, 0.97, 0.0]
    masses[2] = [0.25, 0.5, 0.25]
    return MixedLaw(ATOMS, masses, make_smooth(), WIDTHS)


@pytest.fixture
def grid(law):
    """The law as one on very many values: midpoints of equally likely slices."""
    n = 20_000
    q = np.tile((np.arange(n) + 0.5) / n, (N_ROWS, 1))
    rows = []
    for y, masses, rest in zip(
        law.continuous.ppf(q), law.masses, law.rest, strict=True
    ):
        values = np.concatenate([ATOMS, y])
        order = np.argsort(values)
        weights = np.concatenate([masses, np.full(n, rest / n)])
        rows.append(DiscreteLaw(values[order], weights[order][None]))
    return rows


@pytest.fixture
def y(rng):
    return np.hstack(
        [
            rng.normal(size=(N_ROWS, 4)) * 3.0,
            np.tile(ATOMS, (N_ROWS, 1)),
            np.full((N_ROWS, 1), 90.0),
        ]
    )


def on_rows(grid, method, y):
    return np.vstack([getattr(one, method)(y[i : i + 1]) for i, one in enumerate(grid)])


def test_cdf_is_atoms_plus_the_continuous_part(law, y):
    upto = (law.masses[:, None, :] * (y[:, :, None] >= ATOMS)).sum(axis=2)
    before = (law.masses[:, None, :] * (y[:, :, None] > ATOMS)).sum(axis=2)
    smooth = law.rest[:, None] * law.continuous.cdf(y)
    np.testing.assert_allclose(law.cdf(y), upto + smooth, atol=1e-14)
    np.testing.assert_allclose(law.cdf_left(y), before + smooth, atol=1e-14)
    np.testing.assert_allclose(law.sf(y), 1.0 - upto - smooth, atol=1e-14)
    np.testing.assert_array_equal(law.cdf(y[:, 2:3]), law.cdf(y)[:, 2:3])
    assert (law.cdf(np.tile([-np.inf, np.inf], (N_ROWS, 1))) == [0.0, 1.0]).all()


def test_crps_and_partial_means_equal_those_of_the_grid(law, grid, y):
    np.testing.assert_allclose(
        law.crps(y), on_rows(grid, "crps", y), rtol=1e-3, atol=1e-4
    )
    np.testing.assert_array_equal(law.crps(y[:, :1]), law.crps(y)[:, :1])
    below, above = law.partial_means(y)
    expected = [one.partial_means(y[i : i + 1]) for i, one in enumerate(grid)]
    np.testing.assert_allclose(below, np.vstack([e[0] for e in expected]), atol=2e-3)
    np.testing.assert_allclose(above, np.vstack([e[1] for e in expected]), atol=2e-3)


def test_crps_is_the_integral_of_the_squared_error_of_the_cdf(law):
    nodes, weights = np.polynomial.legendre.leggauss(8)
    at = np.tile([-0.3, 2.0, 3.0], (N_ROWS, 1))
    scores = law.crps(at)
    for j in range(3):
        edges = np.union1d(np.linspace(-15.0, 15.0, 3001), [*ATOMS, at[0, j]])
        width = np.diff(edges)[:, None]
        x = np.tile((edges[:-1, None] + 0.5 * width * (1 + nodes)).ravel(), (N_ROWS, 1))
        gap = law.cdf(x) - (x >= at[:, j : j + 1])
        expected = gap**2 @ (0.5 * width * weights).ravel()
        np.testing.assert_allclose(scores[:, j], expected, rtol=1e-4)


def test_moments_equal_those_of_the_grid(law, grid):
    expected = np.vstack([one.moments() for one in grid])
    got = law.moments()
    spread = np.sqrt(expected[:, 1])
    for k in range(4):
        relative = (part[:, k] / spread ** (k + 1) for part in (got, expected))
        np.testing.assert_allclose(*relative, rtol=2e-3, atol=2e-3)
    y, weights = law.nodes()
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_allclose((y * weights).sum(axis=1), got[:, 0], atol=1e-9)
    away = (y - got[:, :1]) ** 4
    np.testing.assert_allclose((away * weights).sum(axis=1), got[:, 3], rtol=1e-8)


def test_quantiles_are_the_least_values_that_reach_the_level(law, grid):
    q = np.tile(np.linspace(0.001, 0.999, 400), (N_ROWS, 1))
    got = law.ppf(q)
    assert (law.cdf(got) >= q - 1e-12).all()
    assert (law.cdf_left(got) <= q + 1e-9).all()
    assert (np.diff(got, axis=1) >= 0.0).all()
    np.testing.assert_allclose(got, on_rows(grid, "ppf", q), atol=0.03)
    # Levels inside a jump give the atom itself.
    inside = 0.5 * (
        law.cdf(np.tile(ATOMS, (N_ROWS, 1))) + law.cdf_left(np.tile(ATOMS, (N_ROWS, 1)))
    )
    atoms = np.where(law.masses > 0.0, ATOMS, law.ppf(inside))
    np.testing.assert_array_equal(law.ppf(inside), atoms)


def test_quantiles_of_the_cdf_give_the_value_back(law):
    y = law.continuous.ppf(np.tile(np.linspace(0.05, 0.95, 20), (N_ROWS, 1)))
    smooth = law.rest > 0.0
    np.testing.assert_allclose(law.ppf(law.cdf(y))[smooth], y[smooth], atol=1e-6)
    at = np.tile(ATOMS, (N_ROWS, 1))
    np.testing.assert_allclose(law.ppf(law.cdf(at))[smooth], at[smooth], atol=1e-6)


def test_ends_of_the_quantiles(law):
    ends = law.ppf(np.tile([0.0, 1.0], (N_ROWS, 1)))
    smooth = law.rest > 0.0
    assert (ends[smooth] == [-np.inf, np.inf]).all()
    assert (ends[~smooth] == [-1.0, 2.0]).all()
    far = law.ppf_scores(np.tile([-30.0, 30.0], (N_ROWS, 1)))
    assert np.isfinite(far).all()
    assert (far[smooth, 0] < -5.0).all()
    assert (far[smooth, 1] > 5.0).all()


def test_rows_without_continuous_part_start_at_the_first_atom_with_mass():
    law = MixedLaw(ATOMS, [[0.0, 0.4, 0.6]], make_smooth(1), WIDTHS)
    np.testing.assert_array_equal(
        law.ppf(np.array([[0.0, 0.4, 0.41, 1.0]])), [[0, 0, 2, 2]]
    )
    assert law.moments()[0] == pytest.approx([1.2, 0.96, -0.384, 1.0752])
    assert np.isfinite(law.crps(np.array([[5.0]]))).all()
    assert np.isfinite(law.entropy()).all()
    assert law.mode()[0] == 0.0
    assert law.logpdf(np.array([[0.5]]))[0, 0] == -np.inf


def test_density_at_and_beside_atoms(law):
    at = np.tile(ATOMS, (N_ROWS, 1))
    positive = law.masses > 0.0
    np.testing.assert_allclose(law.pdf(at)[positive], (law.masses / WIDTHS)[positive])
    smooth = law.rest[:, None] * law.continuous.pdf(at)
    np.testing.assert_allclose(law.pdf(at)[~positive], smooth[~positive])
    beside = np.full((N_ROWS, 1), 0.05)
    smooth = law.rest[:, None] * law.continuous.pdf(beside)
    np.testing.assert_allclose(law.pdf(beside), smooth)
    far = np.full((N_ROWS, 1), 50.0)
    assert np.isfinite(law.logpdf(far)[law.rest > 0.0]).all()


def test_entropy_is_the_expected_log_score(law):
    rest = law.rest
    smooth = rest * law.continuous.entropy() - np.where(
        rest > 0, rest * np.log(np.where(rest > 0, rest, 1.0)), 0.0
    )
    masses = np.where(law.masses > 0.0, law.masses, 1.0)
    expected = smooth - (law.masses * np.log(masses / WIDTHS)).sum(axis=1)
    np.testing.assert_allclose(law.entropy(), expected)


def test_mode_is_an_atom_or_the_continuous_mode(law):
    density = law.pdf(law.mode()[:, None])[:, 0]
    others = law.pdf(
        np.hstack([np.tile(ATOMS, (N_ROWS, 1)), law.continuous.mode()[:, None]])
    )
    np.testing.assert_allclose(density, others.max(axis=1))
    assert law.mode()[1] == 0.0
    assert law.mode()[0] == law.continuous.mode()[0]


@pytest.mark.parametrize("coverage", [0.2, 0.5, 0.9])
def test_shortest_interval_equals_that_of_the_grid(law, grid, coverage):
    found = law.shortest_interval(coverage)
    held = law.cdf(found)[:, 1] - law.cdf_left(found)[:, 0]
    assert (held >= coverage - 1e-9).all()
    best = np.vstack([one.shortest_interval(coverage) for one in grid])
    widths = np.diff(found, axis=1) - np.diff(best, axis=1)
    assert (widths <= 0.01).all()


@pytest.mark.parametrize("coverage", [0.2, 0.5, 0.9])
def test_densest_regions_take_atoms_first(law, coverage):
    for i, region in enumerate(law.densest_regions(np.full(N_ROWS, coverage))):
        row = law.take([i])
        assert (np.diff(region.ravel()) >= 0.0).all()
        ends = region.reshape(1, -1)
        held = (row.cdf(ends)[0, 1::2] - row.cdf_left(ends)[0, ::2]).sum()
        assert held >= coverage - 0.01
        if law.masses[i].sum() < coverage:
            inside = (region[:, :1] <= ATOMS) & (region[:, 1:] >= ATOMS)
            assert inside.any(axis=0)[law.masses[i] > 0.0].all()
            assert held == pytest.approx(coverage, abs=0.01)
        else:
            assert (np.diff(region, axis=1) == 0.0).all()


def test_bounded_continuous_part(rng):
    law = MixedLaw(
        [0.0], np.full((N_ROWS, 1), 0.4), make_smooth(bounds=(0.0, np.inf)), [0.01]
    )
    assert law.support == (0.0, np.inf)
    np.testing.assert_allclose(law.cdf(np.zeros((N_ROWS, 1))), 0.4)
    assert (law.cdf_left(np.zeros((N_ROWS, 1))) == 0.0).all()
    q = rng.uniform(size=(N_ROWS, 30))
    assert (law.ppf(q)[q <= 0.4] == 0.0).all()
    assert (law.ppf(q)[q > 0.41] > 0.0).all()


def test_take_pickle_and_frozen(law, rng):
    y = rng.normal(size=(N_ROWS, 1))
    for rows in (slice(2, 5), [3], np.arange(N_ROWS) % 2 == 0):
        np.testing.assert_array_equal(law.take(rows).crps(y[rows]), law.crps(y)[rows])
    copy = pickle.loads(pickle.dumps(law))
    np.testing.assert_array_equal(copy.crps(y), law.crps(y))
    assert copy.has_jumps
    assert not copy.continuous.has_jumps
    with pytest.raises(FrozenInstanceError, match="atoms"):
        law.atoms = y
    with pytest.raises(ValueError, match="read-only"):
        law.masses[0, 0] = 1.0


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"atoms": [0.0, 0.0, 1.0]}, ValueError, "`atoms` must increase strictly"),
        (
            {"masses": np.full((N_ROWS, 3), 0.4)},
            ValueError,
            "`masses` must sum to at most 1",
        ),
        (
            {"masses": np.full((N_ROWS, 3), -0.1)},
            ValueError,
            r"`masses` must lie in \[0, 1\]",
        ),
        (
            {"masses": np.zeros((2, 3))},
            ValueError,
            "`continuous` must be as long as masses",
        ),
        ({"widths": [1.0, 0.0, 1.0]}, ValueError, "`widths` must be positive, got 0"),
        (
            {"continuous": 3},
            TypeError,
            "`continuous` must be a law without jumps, got int",
        ),
    ],
)
def test_refusals(change, error, message):
    arguments = {
        "atoms": ATOMS,
        "masses": np.zeros((N_ROWS, 3)),
        "continuous": make_smooth(),
        "widths": WIDTHS,
    }
    with pytest.raises(error, match=message):
        MixedLaw(**arguments | change)


def test_a_law_with_jumps_is_no_continuous_part():
    discrete = DiscreteLaw([0.0], np.ones((N_ROWS, 1)))
    with pytest.raises(TypeError, match="without jumps, got DiscreteLaw"):
        MixedLaw(ATOMS, np.zeros((N_ROWS, 3)), discrete, WIDTHS)


def test_mode_is_not_an_atom_of_less_density_that_stands_there():
    smooth = PredictiveDistribution.from_scipy(norm(3.0, [1.0, 1.0])).law
    law = MixedLaw(np.array([3.0]), np.array([[1e-3], [0.5]]), smooth, np.ones(1))
    mode = law.mode()
    assert_allclose(mode, 3.0, rtol=0.0, atol=1e-6)
    # At the atom itself the density is its mass over its width.
    assert_allclose(law.logpdf(mode[:, None])[0], np.log(0.999) + norm.logpdf(0.0))
    assert_allclose(law.logpdf(mode[:, None])[1], np.log(0.5))
