"""Kaplan and Meier's estimate: against scikit-survival's numbers, and its rules."""

import numpy as np
import pytest

from localexpert import censored, kaplan_meier

TIME = np.array(
    [7, 6, 5, 3, 3, 1, 1, 1, 2, 7, 6, 8, 5, 5, 8, 6, 6, 5, 5, 8, 3, 7, 6, 1, 4, 7, 5, 1]
    + [7, 6.0]
)
EVENT = np.array(
    [1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1]
    + [1, 1]
)
# kaplan_meier_estimator(EVENT, TIME) of scikit-survival 0.28.
OF_SKSURV = [0.9, 0.9, 0.7875, 0.75, 0.6375, 0.500893, 0.250446, 0.166964]


def test_of_ties_as_scikit_survival():
    values, survival = kaplan_meier(censored(TIME, EVENT))
    np.testing.assert_array_equal(values, np.arange(1.0, 9.0))
    np.testing.assert_allclose(survival, OF_SKSURV, atol=5e-7)
    rows = list(zip(EVENT, TIME, strict=True))
    array = np.array(rows, dtype=[("dead", "?"), ("days", "f8")])
    np.testing.assert_array_equal(kaplan_meier(array)[1], survival)


def test_known_targets_give_the_empirical_law(rng):
    y = rng.normal(size=50)
    values, survival = kaplan_meier(censored(y, np.ones(50)))
    np.testing.assert_array_equal(values, np.sort(y))
    np.testing.assert_allclose(survival, 1.0 - np.arange(1, 51) / 50, atol=1e-14)
    assert survival[-1] == 0.0


def test_weights_are_repetitions():
    y, weight = censored(TIME, EVENT), np.arange(len(TIME)) % 3
    values, survival = kaplan_meier(y, weight)
    repeated, expected = kaplan_meier(np.repeat(y, weight, axis=0))
    at = np.searchsorted(repeated, values, "right")
    np.testing.assert_allclose(survival, np.append(1.0, expected)[at], rtol=1e-13)


@pytest.mark.parametrize("row", [[1.0, 2.0], [-np.inf, 2.0]])
def test_refuses_what_is_cut_elsewhere(row):
    with pytest.raises(ValueError, match=r"`y` must be known or right-censored, .*1"):
        kaplan_meier([[1.0, 1.0], row])
