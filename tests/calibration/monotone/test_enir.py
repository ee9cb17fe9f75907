"""ENIR: its path, its weights and its average, against brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import xlog1py, xlogy
from sklearn.isotonic import IsotonicRegression

import calibration

DESIGNS = ["increasing", "wavy", "noise", "ties", "counts", "real"]


def make_summary(rng, n, design):
    scores = rng.uniform(size=n)
    p = {"wavy": 0.5 + 0.4 * np.sin(9 * scores), "noise": 0.3 + 0 * scores}
    y = rng.uniform(size=n) < p.get(design, scores**2)
    if design == "ties":
        scores = np.round(scores, 2)
    weight = {"counts": rng.integers(0, 4, n), "real": rng.exponential(size=n)}
    return calibration.ScoreSummary.from_scores(scores, y, weight.get(design))


def brute_force(summary):
    """All solutions (n_steps, n_cells) and their weights, nothing left out."""
    path = calibration.NearIsotonicPath.from_summary(summary)
    solutions = np.array([path.solution(penalty) for penalty in path.penalties])
    floor = 1.0 / (2.0 * summary.n + 2.0)
    p = np.clip(solutions, floor, 1.0 - floor)
    likelihood = xlogy(summary.weight1, p) + xlog1py(summary.weight0, -p)
    blocks = 1 + (np.diff(solutions) != 0.0).sum(axis=1)
    bic = -2.0 * likelihood.sum(axis=1) + blocks * np.log(summary.n)
    weights = np.exp(-0.5 * (bic - bic.min()))
    return solutions, weights / weights.sum(), blocks


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("n", [12, 100, 1500])
def test_average_equals_that_of_all_solutions(rng, n, design):
    """D25: of all of them, not of at most 100 evenly spaced ones."""
    summary = make_summary(rng, n, design)
    solutions, weights, blocks = brute_force(summary)
    enir = calibration.ENIRCalibrator().fit_summary(summary)
    expected = weights @ solutions
    assert_allclose(enir.predict(summary.scores), expected, atol=1e-10)
    path = calibration.NearIsotonicPath.from_summary(summary)
    assert path.n_blocks.tolist() == blocks.tolist()
    assert (np.diff(path.penalties) > 0.0).all()
    assert enir.model_weights_.sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("design", DESIGNS)
def test_only_solutions_of_no_weight_are_left_out(rng, design):
    summary = make_summary(rng, 4000, design)
    _, weights, _ = brute_force(summary)
    path = calibration.NearIsotonicPath.from_summary(summary)
    steps, kept = path.bic_weights()
    assert_allclose(kept, weights[steps], rtol=1e-9)
    left_out = np.delete(weights, steps)
    assert len(left_out) > 0
    assert left_out.sum() < 1e-12
    assert len(np.unique(steps)) == len(steps)
    assert (np.diff(steps) > 0).all()


def test_few_solutions_are_scored(rng, monkeypatch):
    """What makes a million scores cheap: bounds decide about nearly all of them."""
    summary = make_summary(rng, 20_000, "increasing")
    path = calibration.NearIsotonicPath.from_summary(summary)
    scored = []
    score = calibration.NearIsotonicPath.log_likelihood

    def count(self, steps):
        scored.extend(steps.tolist())
        return score(self, steps)

    monkeypatch.setattr(calibration.NearIsotonicPath, "log_likelihood", count)
    path.bic_weights()
    assert len(scored) == len(set(scored))
    assert len(scored) < 0.1 * len(path.penalties)


@pytest.mark.parametrize("design", DESIGNS)
def test_solutions_at_and_between_breakpoints_are_certified(rng, design):
    summary = make_summary(rng, 2000, design)
    path = calibration.NearIsotonicPath.from_summary(summary)
    rates = summary.weight1 / summary.weight
    assert_allclose(path.solution(0.0), rates, atol=1e-15)
    pav = calibration.IsotonicCalibrator().fit_summary(summary).predict(summary.scores)
    last = path.penalties[-1]
    for penalty in [*rng.exponential(last / 10, 10), path.penalties[0], last, 1e9]:
        values = path.solution(penalty)
        assert path.violation(values, penalty) < 1e-9
        assert path.violation(values, 0.9 * penalty + 1e-3) > 1e-4 or penalty > last
    assert_allclose(path.solution(last), pav, atol=1e-12)
    assert path.violation(rates, last) > 1e-3


def test_the_last_model_is_isotonic_regression_and_may_be_the_only_one():
    scores, y = [0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1]
    enir = calibration.ENIRCalibrator().fit(scores, y)
    assert enir.predict(scores).tolist() == [0.0, 0.0, 1.0, 1.0]
    assert enir.penalties_.tolist() == [0.0]
    assert enir.model_weights_.tolist() == [1.0]


def test_map_has_the_steps_of_the_blocks(rng):
    summary = make_summary(rng, 3000, "wavy")
    enir = calibration.ENIRCalibrator().fit_summary(summary)
    assert enir.map_.kind == "step"
    assert len(enir.map_) == enir.n_blocks_[0]
    assert not enir.map_.is_increasing
    # Steps lie midway between scores, so the blocks' ends keep their values.
    places = np.searchsorted(summary.scores, enir.map_.knots[1:])
    middles = 0.5 * (summary.scores[places - 1] + summary.scores[places])
    assert_allclose(enir.map_.knots[1:], middles, rtol=1e-15)


def test_monotone_is_the_projection_of_the_average(rng):
    summary = make_summary(rng, 3000, "wavy")
    free = calibration.ENIRCalibrator().fit_summary(summary)
    monotone = calibration.ENIRCalibrator(monotone=True).fit_summary(summary)
    assert monotone.map_.is_increasing
    scores = summary.scores
    said = free.predict(scores)
    projected = IsotonicRegression().fit(scores, said, summary.weight)
    assert_allclose(monotone.predict(scores), projected.predict(scores), atol=1e-12)


def test_repr_names_the_size():
    summary = calibration.ScoreSummary.from_scores([0.1, 0.2, 0.3, 0.4], [1, 0, 1, 0])
    path = calibration.NearIsotonicPath.from_summary(summary)
    sizes = "n_cells=4, n_steps=1, penalty up to 0.5, n_blocks from 4 to 1"
    assert repr(path) == f"NearIsotonicPath({sizes})"


def test_bad_arguments_are_named():
    summary = calibration.ScoreSummary.from_scores([0.1, 0.2], [1, 0])
    path = calibration.NearIsotonicPath.from_summary(summary)
    with pytest.raises(ValueError, match=r"`penalty` must lie in \[0, inf\), got -1"):
        path.solution(-1)
    with pytest.raises(ValueError, match="`values` must be as long as the cells"):
        path.violation([0.5], 1.0)
