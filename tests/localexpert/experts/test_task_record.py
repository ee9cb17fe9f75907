"""Probabilities rounded as odds: order, ends and the promised precision."""

import zlib

import numpy as np
import pytest

from localexpert.experts.task_record import round_odds

LEAST = 5e-324
EDGES = [0.0, LEAST, 2.0**-1000, 2.0**-53, 0.25, 0.5, 0.75, 1.0 - 2.0**-53, 1.0]


@pytest.fixture(scope="module")
def p():
    rng = np.random.default_rng(0)
    small = 10.0 ** -rng.uniform(0.0, 16.0, 5000)
    near = np.nextafter(0.5, [0.0, 1.0])
    return np.concatenate([rng.uniform(size=5000), small, 1.0 - small, near, EDGES])


def test_odds_change_by_less_than_one_part_in_3000(p):
    inner = p[(p > 1e-300) & (p < 1.0)]
    q = round_odds(inner)
    odds = (q / (1.0 - q)) / (inner / (1.0 - inner))
    assert np.abs(odds - 1.0).max() < 1.0 / 3000.0


def test_order_and_ends_are_kept(p):
    q = round_odds(np.sort(p))
    assert (np.diff(q) >= 0.0).all()
    assert q[0] == 0.0
    assert q[-1] == 1.0
    assert round_odds(np.array([0.5])) == 0.5


def test_both_sides_are_treated_alike_and_once_is_enough(p):
    exact = p[p >= 0.5]
    np.testing.assert_array_equal(round_odds(1.0 - exact), 1.0 - round_odds(exact))
    np.testing.assert_array_equal(round_odds(round_odds(p)), round_odds(p))


def test_shapes_stay_and_nothing_is_written_to(p, frozen):
    table = frozen(p[:60].reshape(20, 3))
    assert round_odds(table).shape == (20, 3)
    assert round_odds(table[:, ::2]).tolist() == round_odds(table)[:, ::2].tolist()
    assert round_odds(np.empty((0, 3))).shape == (0, 3)


def test_what_is_rounded_packs_to_a_third(p):
    inner = p[:5000]
    full, kept = (len(zlib.compress(x.tobytes())) for x in (inner, round_odds(inner)))
    assert kept < 0.4 * full
