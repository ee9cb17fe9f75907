"""What the experts say of a row lies on its CDF, whatever the target."""

import numpy as np
import pytest

from calibration import CalibrationWarning
from tests.localexpert.regressor.test_regressor import fast


@pytest.fixture
def data(rng):
    X = rng.uniform(size=(500, 3))
    noise = rng.gamma(4.0, size=500) / 2.0 - 2.0
    return X, 3.0 * X[:, 0] + (0.2 + X[:, 1]) * noise


@pytest.mark.parametrize("kind", ["smooth", "on y", "discrete", "mixed"])
def test_they_lie_on_the_cdf(data, kind):
    X, y = data
    y = {
        "smooth": y,
        "on y": y,
        "discrete": np.clip(np.round(y), 0.0, 4.0),
        "mixed": np.where(X[:, 2] > 0.6, 0.0, y),
    }[kind]
    model = fast(frame=None if kind == "on y" else "auto").fit(X, y)
    values, p = model.expert_points(X[:50])
    assert values.shape == p.shape == (50, len(model.thresholds_))
    assert (np.diff(values, axis=1) > 0.0).all()
    cdf = model.predict_dist(X[:50]).cdf(values.T).T
    assert np.abs(cdf - p).mean() < 0.03


def test_a_target_that_never_changes(data):
    X, _ = data
    with pytest.warns(CalibrationWarning, match="every forecast is that value"):
        model = fast().fit(X, np.full(len(X), 7.0))
    values, p = model.expert_points(X[:3])
    assert values.tolist() == [[7.0]] * 3
    assert p.tolist() == [[1.0]] * 3
