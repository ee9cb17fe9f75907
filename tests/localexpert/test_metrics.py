"""Scores of distributions against plain sums and the sampled definition."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import norm
from sklearn import config_context
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from localexpert import (
    DistributionScorer,
    PredictiveDistribution,
    concatenate,
    crps_score,
    crps_scorer,
    interval_coverage,
    interval_score,
    log_score,
    log_scorer,
    pinball_loss,
    pit_test,
    predict_dist,
    threshold_weighted_crps,
)
from tests.forecasts import Normal, beside, normal, of_values, sixty


@pytest.fixture
def forecasts(rng):
    """Normal forecasts, and targets that follow them."""
    dist = normal(rng.normal(size=400), rng.uniform(0.5, 2.0, 400))
    return dist, dist.ppf(rng.uniform(size=400)), rng.integers(0, 3, 400).astype(float)


def test_crps_is_twice_the_mean_pinball_loss(forecasts):
    dist, y, weight = forecasts
    levels = (np.arange(200) + 0.5) / 200
    pinball = [pinball_loss(y, dist, level=q, sample_weight=weight) for q in levels]
    crps = crps_score(y, dist, sample_weight=weight)
    assert crps == pytest.approx(2 * np.mean(pinball), rel=5e-3)


@pytest.mark.parametrize("score", [crps_score, log_score, interval_score])
def test_weights_are_repetitions(forecasts, score):
    dist, y, weight = forecasts
    rows = np.repeat(np.arange(400), weight.astype(int))
    weighted = score(y, dist, sample_weight=weight)
    assert weighted == pytest.approx(score(y[rows], dist[rows]))


def test_interval_score_and_coverage_by_hand(forecasts):
    dist, y, _ = forecasts
    low, high = dist.ppf(0.1), dist.ppf(0.9)
    penalty = 10.0 * ((low - y) * (y < low) + (y - high) * (y > high))
    got = interval_score(y, dist, coverage=0.8)
    assert got == pytest.approx((high - low + penalty).mean())
    inside = ((low <= y) & (y <= high)).mean()
    assert interval_coverage(y, dist, coverage=0.8) == pytest.approx(inside)


@pytest.mark.parametrize("kind", ["smooth", "discrete", "mixed", "sure"])
def test_pit_test_keeps_its_level(kind):
    rng = np.random.default_rng(11)
    dist = of_values([0.0], np.ones((60, 1))) if kind == "sure" else sixty(kind)
    p_values = np.array(
        [pit_test(y, dist, random_state=k)[1] for k, y in enumerate(dist.rvs(300, rng))]
    )
    # Three standard errors of a share of 300.
    assert abs(np.mean(p_values < 0.05) - 0.05) < 0.038
    assert abs(np.mean(p_values < 0.5) - 0.5) < 0.087


@pytest.mark.parametrize("kind", ["smooth", "discrete", "mixed"])
def test_pit_test_finds_wrong_laws_of_all_kinds(kind, rng):
    dist = concatenate([sixty(kind)] * 7)
    # Outcomes of the upper two thirds of their forecasts.
    y = dist.ppf(rng.uniform(0.33, 1.0, len(dist)))
    assert pit_test(y, dist)[1] < 1e-6
    assert pit_test(y, dist) == pit_test(y, dist, random_state=0)


NARROW = normal([0.0, 0.0, 5.0], [1.0, 0.001, 0.01])
STEPS = NARROW.to_arrays() | {"step": 0.1, "moments": None}
KINDS = {
    "smooth": NARROW,
    "mixed": beside(NARROW, [0.0, 0.0003], [[0.2, 0.3]] * 3, [1e-4] * 2),
    "lattice": PredictiveDistribution.from_arrays(**STEPS),
    "discrete": of_values([0.0, 0.001, 0.2004, 4.0], [[0.2, 0.3, 0.1, 0.4]] * 3),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "weight",
    [
        np.ones_like,
        np.zeros_like,
        lambda z: z > 0.25,
        lambda z: (z > 0.2) & (z < 0.2011),
        lambda z: np.exp(-0.5 * ((z - 0.25) / 0.003) ** 2),
    ],
    ids=["all", "none", "upper", "narrow", "bump"],
)
def test_weighted_thresholds_are_a_fine_sum(kind, weight):
    dist, y = KINDS[kind], np.array([0.3, 0.0005, 5.02])
    z = np.linspace(-6.0, 7.0, 1_300_001)[:-1] + 5.0e-6
    z = z[(weight(z) > 0.0) | (z < -5.99999)]
    gap = dist.cdf_at(z) - (y[:, None] <= z)
    want = (gap**2 * weight(z)).sum() * 1e-5 / 3.0
    found = threshold_weighted_crps(y, dist, weight=weight)
    assert found == pytest.approx(want, rel=5e-4)


@pytest.fixture
def near(rng):
    """Whole numbers, and a target near them."""
    X = rng.integers(0, 10, (40, 1)).astype(float)
    return X, X[:, 0] + rng.normal(size=40)


def test_scorers_look_inside_pipelines(near):
    model = make_pipeline(StandardScaler(), Normal()).fit(*near)
    dist = predict_dist(model, near[0])
    assert crps_scorer(model, *near) == -crps_score(near[1], dist)
    assert log_scorer(model, *near) == -log_score(near[1], dist)


def test_weights_are_routed_to_scorers(near):
    X, y = near
    weight = np.arange(40.0)
    folds = list(KFold(2).split(X))
    with config_context(enable_metadata_routing=True):
        model = Normal().set_fit_request(sample_weight=False)
        scorer = DistributionScorer(crps_score)
        given = {"params": {"sample_weight": weight}, "error_score": "raise"}
        with pytest.raises(UnsetMetadataPassedError, match="set_score_request"):
            cross_validate(model, X, y, scoring=scorer, cv=folds, **given)
        scorer.set_score_request(sample_weight="w")
        dist = model.predict_dist(X)
        want = [-crps_score(y[t], dist[t], sample_weight=weight[t]) for _, t in folds]
        for scoring, name in ((scorer, "score"), ({"one": scorer}, "one")):
            got = cross_validate(
                model, X, y, scoring=scoring, cv=folds, params={"w": weight}
            )[f"test_{name}"]
            assert_array_equal(got, want)
        again = pickle.loads(pickle.dumps(scorer))
        assert repr(again.get_metadata_routing()) == repr(scorer.get_metadata_routing())
    # A request of one scorer is no other's.
    assert crps_scorer.get_metadata_routing().score.requests == {"sample_weight": None}
    with pytest.raises(RuntimeError, match="needs metadata routing, got it disabled"):
        scorer.set_score_request(sample_weight=True)


def test_rows_without_weight_have_no_say():
    dist = PredictiveDistribution.from_scipy(norm([0.0, 1.0, 2.0, 0.0], 1.0))
    y, weight = np.array([0.0, 1.0, 2.0, 1e4]), [1.0, 1.0, 1.0, 0.0]
    for score in (threshold_weighted_crps, log_score):
        more = {} if score is log_score else {"weight": lambda z: z > 0.0}
        want = score(y[:3], dist[:3], **more)
        assert score(y, dist, sample_weight=weight, **more) == want
    masses = [[0.2, 0.8], [1.0, 0.0]]
    dist = PredictiveDistribution.from_arrays(atoms=[0, 1], masses=masses)
    assert log_score([1, 1], dist, sample_weight=[1, 0]) == pytest.approx(-np.log(0.8))
    with pytest.raises(ValueError, match="`weight` must return numbers from 0 on"):
        threshold_weighted_crps([1, 1], dist, weight=lambda z: z - 1.0)
