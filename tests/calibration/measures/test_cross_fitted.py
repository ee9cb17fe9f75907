import numpy as np
import pytest

from calibration import (
    AllPairsCalibrator,
    IdentityCalibrator,
    IsotonicCalibrator,
    TemperatureCalibrator,
)
from calibration.measures import (
    brier_score,
    corp_decomposition,
    cross_fitted_decomposition,
    log_loss,
)


def draw(rng, n=2000, k=3):
    p = rng.dirichlet(np.ones(k), size=n)
    y = (rng.uniform(size=(n, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return y, p, p**3 / (p**3).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("score", [log_loss, brier_score])
def test_parts_add_up_and_find_what_was_done(score, rng):
    y, p, sharp = draw(rng)
    parts = cross_fitted_decomposition(y, sharp, AllPairsCalibrator(), score=score)
    assert parts.score == pytest.approx(score(y, sharp), rel=1e-12)
    assert parts.calibration + parts.refinement == pytest.approx(parts.score)
    # What sharpening has done can be undone, all but the cost of learning it.
    assert parts.refinement == pytest.approx(score(y, p), rel=0.02)
    calm = cross_fitted_decomposition(y, p, AllPairsCalibrator(), score=score)
    assert abs(calm.calibration) < 0.05 * parts.calibration


def test_two_classes_beside_corp(rng):
    y = rng.uniform(size=20_000) < (p := rng.uniform(size=20_000))
    sharp = p**2 / (p**2 + (1.0 - p) ** 2)
    parts = cross_fitted_decomposition(
        y, sharp, IsotonicCalibrator(), score=brier_score
    )
    corp = corp_decomposition(y, sharp)
    # In-sample recalibration flatters: it finds more miscalibration, by little here.
    assert 0.0 < parts.calibration < corp.miscalibration
    assert parts.calibration == pytest.approx(corp.miscalibration, rel=0.1)


def test_nothing_to_recalibrate_is_exactly_0(rng):
    y = rng.integers(0, 2, size=100)
    p = rng.uniform(size=100)
    parts = cross_fitted_decomposition(y, p, IdentityCalibrator())
    assert parts.calibration == 0.0


def test_each_row_is_recalibrated_by_others(rng):
    seen = []

    class Spy(IdentityCalibrator):
        def fit(self, scores, y, sample_weight=None):
            seen.append([set(scores.tolist()), None])
            return super().fit(scores, y, sample_weight)

        def predict(self, scores):
            seen[-1][1] = set(np.asarray(scores).tolist())
            return super().predict(scores)

    y, p = rng.integers(0, 2, size=103), rng.uniform(size=103)
    cross_fitted_decomposition(y, p, Spy(), cv=4)
    assert len(seen) == 4
    for learned, asked in seen:
        assert not learned & asked
        assert len(learned) + len(asked) == 103
        assert len(asked) in (25, 26)


@pytest.mark.parametrize(
    ("y", "p", "recalibrator", "options", "error", "message"),
    [
        ([1], [0.5], IdentityCalibrator(), {}, ValueError, "5 folds for 1 of them"),
        ([1] * 9, [0.5] * 9, IdentityCalibrator(), {}, ValueError, "5 folds for 1 of"),
        ([0, 1], [0.5, 0.2], IdentityCalibrator(), {"cv": 1}, ValueError, "`cv` must"),
        ([0, 1], [0.5, 0.2], IdentityCalibrator, {}, TypeError, "`recalibrator` must"),
        (
            [0, 1],
            [0.5, 0.2],
            "isotonic",
            {},
            TypeError,
            "`recalibrator` must have `fit`",
        ),
        (
            [0, 1],
            [0.5, 0.2],
            None,
            {"score": 1},
            TypeError,
            "`score` must be a function",
        ),
    ],
)
def test_bad_input_is_named(y, p, recalibrator, options, error, message):
    with pytest.raises(error, match=message):
        cross_fitted_decomposition(y, p, recalibrator, **options)


def test_defaults_are_log_loss_and_five_folds(rng):
    y, p = rng.integers(0, 2, size=50), rng.uniform(size=50)
    found = cross_fitted_decomposition(y, p, TemperatureCalibrator())
    explicit = cross_fitted_decomposition(
        y, p, TemperatureCalibrator(), score=log_loss, cv=5
    )
    assert found == explicit
