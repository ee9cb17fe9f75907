"""Leaks: a feature that is the target in another guise, and what is none."""

import numpy as np
import pandas as pd
import pytest

from localexpert import FrameRoad, LocalExpertRegressor
from localexpert.data.leaks import find_leak

GUISES = {
    "another unit": lambda y: 1.08 * y + 3.0,
    "its logarithm": np.log,
    "falling": lambda y: 1.0 / y,
    "rounded": lambda y: np.round(y, 1),
    "with gaps": lambda y: np.where(y < np.quantile(y, 0.004), np.nan, y),
    "nearly": lambda y: (
        y * (1.0 + 0.002 * np.random.default_rng(1).normal(size=len(y)))
    ),
}


def table(rng):
    X = rng.normal(size=(300, 3))
    return X, np.exp(X[:, 0] + rng.normal(size=300))


@pytest.mark.parametrize("guise", GUISES.values(), ids=GUISES.keys())
def test_the_target_is_found_in_any_guise(rng, guise):
    X, y = table(rng)
    place, own, others = find_leak(np.insert(X, 1, guise(y), axis=1), y, rng)
    assert place == 1
    assert own < 0.02
    assert others > 0.5


def test_what_is_no_leak(rng):
    X, y = table(rng)
    assert find_leak(X, y, rng) is None
    # Others tell it as well, as earlier values of a series do.
    assert (
        find_leak(np.column_stack([y, y + 0.01 * rng.normal(size=300)]), y, rng) is None
    )
    # Most rows are told by a feature, but not all of them.
    zero = rng.uniform(size=300) < 0.9
    assert find_leak(np.insert(X, 0, zero, axis=1), np.where(zero, 0, y), rng) is None
    for few in (np.ones((300, 1)), np.empty((300, 0)), np.full((300, 1), np.nan)):
        assert find_leak(few, y, rng) is None
    assert find_leak(X, np.ones(300), rng) is None
    assert find_leak(y[:20, None], y[:20], rng) is None


def test_a_fit_names_it(rng):
    X, y = table(rng)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(euros=0.9 * y)
    model = LocalExpertRegressor(
        roads=FrameRoad(None, strategy="joint", n_thresholds=5), random_state=0
    )
    report = model.fit(frame, y).report_
    assert report.choices["leak"]["feature"] == "euros"
    assert "column 'euros' alone tells y (it leaves" in str(report)
    assert "leak" not in model.fit(frame[["a", "b", "c"]], y).report_.choices
