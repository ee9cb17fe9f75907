"""Calibrators on hostile scores and weights: every promise of the contract at once."""

import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from calibration import (
    BaggedIsotonicCalibrator,
    CenteredIsotonicCalibrator,
    IsotonicCalibrator,
    ScoreSummary,
    VennAbersCalibrator,
)
from tests.calibration.base.test_calibrators import CALIBRATORS, make, scales_of
from tests.fuzz.cases import examples
from tests.fuzz.labelled import HOSTILE, REPEATS, SCORES, labelled
from tests.fuzz.refusals import answer_or_refusal

SHARE = 0.26
pytestmark = pytest.mark.slow

MONOTONE = (
    BaggedIsotonicCalibrator,
    CenteredIsotonicCalibrator,
    IsotonicCalibrator,
    VennAbersCalibrator,
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
        ScoreSummary.from_scores(scores[one], labels[one], weight[one])
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
