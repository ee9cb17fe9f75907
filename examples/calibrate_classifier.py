"""
Calibrating a classifier
========================

Is a handwritten digit 5 or more? Naive Bayes adds up the evidence of 64 pixels as if
they were independent. But neighbours say the same thing twice, so it is far too sure.
Its *ranking* of the images is good, and that is all that calibration needs. Four
calibrators learn the map from scores to probabilities on images that naive Bayes was
not trained on. A third set of images judges them. ``make demo`` runs this script.

.. image:: /images/reliability.png
   :alt: Reliability of naive Bayes before and after calibration
"""

# sphinx_gallery_thumbnail_path = "images/reliability.png"

from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import MultinomialNB

from calibration import (
    BaggedIsotonicCalibrator,
    BetaCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    brier_score,
    expected_calibration_error,
    log_loss,
    plot_reliability,
    reliability_curve,
)

Array = NDArray[np.float64]

CALIBRATORS = {
    "Platt": PlattCalibrator(),
    "beta": BetaCalibrator(),
    "isotonic": IsotonicCalibrator(),
    "bagged isotonic": BaggedIsotonicCalibrator(random_state=0),
}

# All three are losses: smaller is better. A probability of 0 or 1 that turns out wrong
# costs infinitely much log loss; the clip makes it finite, so that it can be compared.
MEASURES: dict[str, Callable[[Array, Array], float]] = {
    "Brier": brier_score,
    "log loss": lambda y, p: log_loss(y, p, clip=1e-15),
    "calibration error": expected_calibration_error,
}


def score_digits() -> tuple[Array, Array, Array, Array]:
    """Train on a third; return scores and labels of the two other thirds."""
    X, digit = load_digits(return_X_y=True)
    y = (digit >= 5).astype(float)
    X, X_train, y, y_train = train_test_split(
        X, y, test_size=1 / 3, stratify=y, random_state=0
    )
    scores = MultinomialNB().fit(X_train, y_train).predict_proba(X)[:, 1]
    fit, test, y_fit, y_test = train_test_split(
        scores, y, test_size=1 / 2, stratify=y, random_state=0
    )
    return fit, y_fit, test, y_test


def main() -> None:
    """Calibrate with each method, print the measures, draw the reliability."""
    fit_scores, y_fit, test_scores, y_test = score_digits()
    forecasts = {"uncalibrated": test_scores}
    for name, calibrator in CALIBRATORS.items():
        forecasts[name] = calibrator.fit(fit_scores, y_fit).predict(test_scores)

    print(f"Is the digit 5 or more? Naive Bayes, {len(y_test)} test images.\n")
    print(f"{'':16}" + "".join(f"{title:>19}" for title in MEASURES))
    for name, probability in forecasts.items():
        values = (measure(y_test, probability) for measure in MEASURES.values())
        print(f"{name:16}" + "".join(f"{value:19.4f}" for value in values))
    print("All three are losses: smaller is better, and 0 is perfect.")

    # A curve on the diagonal means: of the images given 30 %, 30 % are a 5 or more.
    shown = ("uncalibrated", "bagged isotonic")
    curves = {name: reliability_curve(y_test, forecasts[name]) for name in shown}
    figure, axes = plt.subplots(figsize=(5.5, 6.2), layout="constrained")
    plot_reliability(curves, ax=axes)
    figure.suptitle("Is the digit 5 or more?")
    figure.savefig("reliability.png", dpi=120)
    print("\nWrote reliability.png")


if __name__ == "__main__":
    main()
