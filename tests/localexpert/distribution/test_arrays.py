"""Forecasts as arrays: there and back, and what is no forecast."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from localexpert import PredictiveDistribution, concatenate
from tests.localexpert.distribution.contract_cases import CASES, forecast_of
from tests.localexpert.law.kinds import KINDS

from_arrays = PredictiveDistribution.from_arrays
CURVES = forecast_of("norm").coefficients
FALLS = np.array(CURVES)
FALLS[1, 40] = FALLS[1, 39] - 0.5


@pytest.mark.parametrize("name", [*CASES, *KINDS])
def test_all_kinds_come_back_to_the_bit(name: str) -> None:
    dist = PredictiveDistribution(KINDS[name]) if name in KINDS else forecast_of(name)
    again = from_arrays(**dist.to_arrays())
    y = dist.quantiles([0.01, 0.3, 0.9]).T
    for method in ("cdf", "logpdf", "crps", "pmf"):
        assert_array_equal(getattr(again, method)(y), getattr(dist, method)(y))
    for method in ("mean", "std", "kurtosis", "entropy"):
        assert_array_equal(getattr(again, method)(), getattr(dist, method)())
    assert len(dist.masses) == len(dist.coefficients) == 3
    assert dist.masses.shape[1] == len(dist.atoms)
    assert repr(again) == repr(dist)


def test_curves_need_coefficients_alone() -> None:
    dist = from_arrays(coefficients=CURVES)
    assert_array_equal(dist.median(), forecast_of("norm").median())
    wide = from_arrays(coefficients=CURVES, bounds=(0.0, np.inf))
    np.testing.assert_allclose(wide.median(), np.exp(dist.median()))
    both = from_arrays(coefficients=CURVES, atoms=[0.0], masses=[[0.5]] * 3)
    np.testing.assert_allclose(both.pmf(0.0), [0.5] * 3)


def test_atoms_beyond_the_ends_are_at_them() -> None:
    given = {"atoms": [0.0, 5.0], "masses": [[0.2, 0.1]] * 3, "ends": (-0.5, 2.0)}
    dist = from_arrays(coefficients=CURVES, **given)
    assert_array_equal(dist.pmf(0.0), 0.2)
    assert_array_equal(dist.pmf(5.0), 0.0)
    beyond = 0.7 * from_arrays(coefficients=CURVES).sf(2.0)
    np.testing.assert_allclose(dist.pmf(2.0), 0.1 + beyond, atol=1e-12)
    np.testing.assert_allclose(dist.pmf(2.0), dist.prob_between(2.0, 2.0), atol=1e-12)


def test_equal_knots_are_one_basis_however_many_others_there_were() -> None:
    levels = np.array([0.1, 0.35, 0.9])
    quantiles = np.array([[0.0, 1.0, 5.0]])
    from_quantiles = PredictiveDistribution.from_quantiles
    first = from_quantiles(quantiles, levels)
    for k in range(80):
        from_quantiles(quantiles, levels + 1e-4 * k)
    joined = concatenate([first, from_quantiles(quantiles, levels)])
    np.testing.assert_allclose(joined.quantiles(levels), quantiles[[0, 0]], atol=1e-9)
    assert_array_equal(joined.coefficients[0], first.coefficients[0])


ONE = {"atoms": [0], "masses": [[1.0]]}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"coefficients": FALLS}, "must not fall along a row, .* in row 1, column 39"),
        ({"coefficients": CURVES[:, 1:]}, "`coefficients` must have shape"),
        ({"bounds": (1.0, 0.0)}, "low end below the high one"),
        ({"bounds": [0.0]}, r"must have shape \(2,\) or \(3, 2"),
        ({"slopes": [[1, 0]] * 3}, "must be positive, got 0"),
        ({"atoms": [0], "masses": [[0.5]]}, "as long as"),
        (ONE | {"coefficients": None, "atoms": [0, 1]}, "`masses` must have"),
        (ONE | {"coefficients": None, "masses": [[0.9]]}, "`masses` must sum to 1 in"),
        (
            {"coefficients": None, "atoms": [1, 0], "masses": [[0.5, 0.5]]},
            "`atoms` must increase strictly",
        ),
        (ONE | {"coefficients": None, "widths": [0.0]}, "`widths` must be positive"),
        ({"coefficients": None}, "`atoms` must be given where there are"),
    ],
)
def test_what_is_refused(arrays: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_arrays(**{"coefficients": CURVES, **arrays})  # type: ignore[arg-type]
