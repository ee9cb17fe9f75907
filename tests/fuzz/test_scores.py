"""Calibrators and measures on hostile scores and weights: every promise at once."""

import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import calibration
from tests.calibration.base.test_calibrators import CALIBRATORS, make, scales_of
from tests.calibration.measures.test_contract import MEASURES, SCALARS
from tests.fuzz.cases import answer_or_refusal, examples

UNIT = st.one_of(
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, -0.0, 1.0, 0.5, 0.3, 0.1 + 0.2, 5e-324, 1e-300, 1e-16]),
    st.sampled_from([1.0 - 1e-16, np.nextafter(0.5, 1.0), np.nextafter(0.3, 0.0)]),
    st.integers(0, 10).map(lambda k: k / 10.0),
)
REAL = st.one_of(
    st.floats(-40.0, 40.0),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-5, 5).map(float),
    st.sampled_from([1e300, -1e300, 1.7e308, -1.7e308, 5e-324, 1e15, 1e15 + 0.125]),
)
SCORES = {"probability": UNIT, "logit": REAL, "real": REAL}
REPEATS = st.integers(0, 3).map(float)
HOSTILE = st.one_of(
    st.floats(0.0, 10.0),
    st.sampled_from(
        [0.0, 5e-324, 1e-300, 3e-222, 1e-160, 1e-12, 1e12, 1e15, 1e200, 1e300, 1.7e308]
    ),
)


@st.composite
def labelled(draw, scale, weights):
    """Return scores, labels and weights of a few rows."""
    n = draw(st.integers(1, 25))
    several = {"min_size": n, "max_size": n}
    return (
        np.array(draw(st.lists(SCORES[scale], **several))),
        np.array(draw(st.lists(st.integers(0, 1), **several))),
        np.array(draw(st.lists(weights, **several))),
    )


SHARE = 0.26
pytestmark = pytest.mark.slow

MONOTONE = (
    calibration.BaggedIsotonicCalibrator,
    calibration.CenteredIsotonicCalibrator,
    calibration.IsotonicCalibrator,
    calibration.VennAbersCalibrator,
)
# Seconds of processor that a few dozen rows may take, far more than they need on any
# machine: this finds what never ends.
MOST_SECONDS = 300.0


def fit(cls, scale, data):
    """Return the fitted calibrator, or the error that names an argument."""
    start = time.process_time()
    fitted = answer_or_refusal(lambda: make(cls, scale=scale).fit(*data))
    assert time.process_time() - start <= MOST_SECONDS
    return fitted


def ask(fitted, cls, points):
    """Return probabilities at points, in range and increasing where they must be."""
    p = fitted.predict(points)
    assert p.shape == points.shape
    assert np.isfinite(p).all()
    assert ((p >= 0.0) & (p <= 1.0)).all()
    if issubclass(cls, MONOTONE):
        assert (np.diff(p[np.argsort(points, kind="stable")]) >= -1e-12).all()
    return p


@pytest.mark.parametrize("cls", CALIBRATORS, ids=lambda cls: cls.__name__)
@given(data=st.data())
@examples(0.6 * SHARE / len(CALIBRATORS))
def test_repetitions(cls, data):
    """Weights are repetitions, order is nothing, shards and copies are the whole."""
    scale = data.draw(st.sampled_from(scales_of(cls)))
    scores, labels, weight = data.draw(labelled(scale, REPEATS))
    fitted = fit(cls, scale, (scores, labels, weight))
    if isinstance(fitted, Exception):
        return
    more = np.array(data.draw(st.lists(SCORES[scale], max_size=5)))
    points = np.concatenate([scores, more])
    p = ask(fitted, cls, points)
    count = weight.astype(int)
    order = np.array(data.draw(st.permutations(range(len(scores)))))
    repeated = np.repeat(scores, count), np.repeat(labels, count)
    parts = [
        calibration.ScoreSummary.from_scores(scores[one], labels[one], weight[one])
        for one in (order[::2], order[1::2])
        if weight[one].sum() > 0.0
    ]
    whole = sum(parts[1:], parts[0])
    same = [
        fit(cls, scale, repeated),
        fit(cls, scale, (scores[order], labels[order], weight[order])),
        answer_or_refusal(lambda: make(cls, scale=scale).fit_summary(whole)),
        pickle.loads(pickle.dumps(fitted)),
    ]
    for other in same:
        assert_array_equal(other.predict(points), p)
    assert_array_equal(fitted.predict(points[::-1])[::-1], p)


@pytest.mark.parametrize("cls", CALIBRATORS, ids=lambda cls: cls.__name__)
@given(data=st.data())
@examples(0.4 * SHARE / len(CALIBRATORS))
def test_hostile_weights(cls, data):
    """Weights of any size give probabilities, or an error that names an argument."""
    scale = data.draw(st.sampled_from(scales_of(cls)))
    scores, labels, weight = data.draw(labelled(scale, HOSTILE))
    fitted = fit(cls, scale, (scores, labels, weight))
    if not isinstance(fitted, Exception):
        ask(fitted, cls, scores)


# What is no loss, or refuses some rows that losses take.
FURTHER = {
    "auc": calibration.auc_score,
    "cumulative": lambda *args, **kwargs: (
        calibration.cumulative_calibration_test(*args, **kwargs).p_value
    ),
}
HELD = {**MEASURES, **FURTHER}


@pytest.mark.parametrize("name", HELD)
@given(rows=labelled("probability", HOSTILE))
@examples(0.04 / len(HELD))
def test_hostile_weights_of_measures(name, rows):
    """A number in its range, or an error that names an argument."""
    y_prob, y_true, weight = rows
    measure = HELD[name]
    value = answer_or_refusal(lambda: measure(y_true, y_prob, sample_weight=weight))
    if isinstance(value, Exception):
        return
    assert not np.isnan(value).any()
    if name in SCALARS:
        assert value >= 0.0
    if name in ("auc", "cumulative"):
        assert 0.0 <= value <= 1.0 + 1e-12
