"""What both calibrators that need more than a score promise."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from calibration import ACPCalibrator, CalibrationWarning, SBACalibrator


def with_intervals(scores):
    return scores, scores[:, None] + [-0.1, 0.1]


def with_features(scores):
    return np.round(5.0 * scores[:, None]), scores


# How it is made, what is known of rows to learn from, and of those to predict.
KITS = {
    "ACP": (ACPCalibrator, lambda scores: (scores,), with_intervals),
    "SBA": (partial(SBACalibrator, 2), with_features, with_features),
}
everyone = pytest.mark.parametrize("name", KITS)


@everyone
def test_weights_are_repetitions_and_order_does_not_matter(name, rng, frozen):
    make, known, asked = KITS[name]
    scores, weight = np.round(rng.uniform(size=300), 2), rng.integers(0, 4, 300)
    y = rng.uniform(size=300) < scores
    weighted = make().fit(*map(frozen, (*known(scores), y, weight)))
    rows = rng.permutation(np.repeat(np.arange(300), weight))
    repeated = make().fit(*known(scores[rows]), y[rows])
    p = weighted.predict(*map(frozen, asked(scores)))
    for same in (repeated, pickle.loads(pickle.dumps(weighted))):
        assert_array_equal(same.predict(*asked(scores)), p)
    with pytest.raises(NotFittedError, match="not fitted"):
        clone(weighted).predict(*asked(scores))


@everyone
def test_evidence_and_the_base_rate_make_the_forecast(name, rng):
    make, known, asked = KITS[name]
    scores = rng.uniform(size=200)
    fitted = make(smoothing=2.0).fit(*known(scores), rng.uniform(size=200) < scores)
    odds = fitted.base_rate_ / (1.0 - fitted.base_rate_)
    odds = odds * np.exp(fitted.llr(*asked(scores)))
    assert_allclose(odds / (1.0 + odds), fitted.predict(*asked(scores)))


@everyone
@pytest.mark.parametrize(
    ("scores", "y", "reason"),
    [
        ([0.1, 0.5, 0.9], [1, 1, 1], "`y` holds class 1 only; "),
        ([0.5, 0.5, 0.5], [0, 1, 1], "`scores` are all equal to 0.5; "),
    ],
)
def test_degenerate_data_give_a_smoothed_constant(name, scores, y, reason):
    make, known, asked = KITS[name]
    with pytest.warns(CalibrationWarning, match=reason + name) as caught:
        fitted = make().fit(*known(np.array(scores)), y)
    assert caught[0].filename == __file__
    assert len(caught) == 1
    new = asked(np.array([0.1]))
    assert fitted.predict(*new)[0] == pytest.approx((sum(y) + 1) / 5)
    assert fitted.llr(*new)[0] == 0.0
    fitted.fit(*known(np.array([0.1, 0.5, 0.9])), [0, 0, 1])
    assert fitted.predict(*new)[0] == 0.0
