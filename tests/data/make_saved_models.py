"""Write the saved models of the current format, and what they forecast.

Run it once for each new format version (and commit what it writes beside the files of
the versions before): python tests/data/make_saved_models.py
"""

import json
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from calibration import CalibratedClassifier, CenteredIsotonicCalibrator
from calibration.storage import FORMAT_VERSION
from localexpert import LocalExpertRegressor
from localexpert.experts import SharedBoosting

HOME = Path(__file__).parent


def make_classifier():
    """Return a fitted classifier and rows to predict for."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = rng.normal(size=120) < X[:, 0]
    model = CalibratedClassifier(LogisticRegression(), CenteredIsotonicCalibrator())
    return model.fit(X, y), X[:7]


def make_regressor():
    """Return a fitted regressor, without parts of scikit-learn, and rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    model = LocalExpertRegressor(
        strategy=SharedBoosting(max_rounds=5, random_state=0),
        n_thresholds=3,
        frame=None,
        cv=2,
        random_state=0,
    )
    return model.fit(X, y), X[:7]


def main():
    """Write both models and their forecasts."""
    classifier, rows = make_classifier()
    classifier.save(HOME / f"classifier_v{FORMAT_VERSION}.zip")
    regressor, points = make_regressor()
    regressor.save(HOME / f"regressor_v{FORMAT_VERSION}.zip")
    expected = {
        "classifier": {
            "X": rows.tolist(),
            "predict_proba": classifier.predict_proba(rows).tolist(),
        },
        "regressor": {
            "X": points.tolist(),
            "quantiles": regressor.predict_quantiles(points, [0.1, 0.5, 0.9]).tolist(),
        },
    }
    text = json.dumps(expected, indent=1) + "\n"
    (HOME / f"forecasts_v{FORMAT_VERSION}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
