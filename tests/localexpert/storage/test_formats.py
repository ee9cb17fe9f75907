"""Files of every format version so far still load, and say what they said."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import InconsistentVersionWarning

import calibration.storage
from calibration.storage import FORMAT_VERSION, StorageError
from localexpert.storage import load

HOME = Path(__file__).parents[2] / "data"
VERSIONS = range(1, FORMAT_VERSION + 1)


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.fixture
def expected(version):
    text = (HOME / f"forecasts_v{version}.json").read_text("utf-8")
    return json.loads(text)


def test_classifiers(version, expected):
    with warnings.catch_warnings():
        # The one of scikit-learn inside was written by some version of it.
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        for read in (load, calibration.storage.load):
            model = read(HOME / f"classifier_v{version}.zip")
            want = expected["classifier"]
            np.testing.assert_allclose(
                model.predict_proba(want["X"]), want["predict_proba"], rtol=1e-12
            )


def test_regressors(version, expected):
    model = load(HOME / f"regressor_v{version}.zip")
    want = expected["regressor"]
    quantiles = model.predict_quantiles(want["X"], [0.1, 0.5, 0.9])
    # Laws read their curves at 91 scores; they once followed each piece of them.
    np.testing.assert_allclose(quantiles, want["quantiles"], rtol=0.0, atol=1e-3)
    assert model.oof_probabilities_.shape == (60, 3)
    assert model.report_.target == "continuous"


def test_the_core_names_what_it_does_not_load(version):
    with pytest.raises(StorageError, match="only models of calibration are loaded"):
        calibration.storage.load(HOME / f"regressor_v{version}.zip")
