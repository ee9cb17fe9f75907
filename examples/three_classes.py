"""
Calibrating three classes
=========================

A forest averages its trees. An average of many is seldom near 0 or 1, even where the
classes are clear: the forest is too timid. The chances of three classes are a point in
a triangle, and a calibrator is a map of the triangle into itself. A matrix scaling
learns that map from scores out of fold. On new rows the log loss falls from 0.41 to
0.37.

.. image:: /images/three_classes.png
   :alt: Arrows from scores of a forest to calibrated probabilities, and the map

The reliability of each class, before and after:

.. image:: /images/three_classes_reliability.png
   :alt: Reliability of each of three classes before and after calibration
"""

# sphinx_gallery_thumbnail_path = "images/three_classes.png"

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict, train_test_split

from calibration import (
    SoftmaxCalibrator,
    brier_score,
    expected_calibration_error,
    log_loss,
    plot_class_reliability,
    plot_simplex,
    plot_simplex_field,
)

Array = NDArray[np.float64]

NAMES = ["rust", "mildew", "healthy"]


def draw_leaves() -> tuple[Array, Array, Array, Array]:
    """Return made-up measurements of leaves, and what they have, in two parts."""
    X, y = make_classification(
        6000,
        12,
        n_informative=5,
        n_redundant=3,
        n_classes=3,
        weights=[0.2, 0.3, 0.5],
        class_sep=0.9,
        flip_y=0.04,
        random_state=3,
    )
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=1 / 2, stratify=y, random_state=0
    )
    return X, y, X_test, y_test


def main() -> None:
    """Calibrate a forest out of fold, print the measures, draw the triangle."""
    X, y, X_test, y_test = draw_leaves()
    forest = RandomForestClassifier(100, min_samples_leaf=3, random_state=0)
    # Of its own training rows a forest is nearly certain, and nothing could be learned.
    scores = cross_val_predict(forest, X, y, cv=5, method="predict_proba")
    calibrator = SoftmaxCalibrator(structure="matrix").fit(scores, y)
    raw = forest.fit(X, y).predict_proba(X_test)
    forecasts = {"forest": raw, "calibrated forest": calibrator.predict(raw)}

    print(f"What does the leaf have? A forest on {len(y_test)} new leaves.\n")
    print(f"{'':18}{'log loss':>10}{'Brier':>10}{'calibration error':>19}{'right':>9}")
    for name, p in forecasts.items():
        right = np.mean(p.argmax(axis=1) == y_test)
        losses = (
            f"{log_loss(y_test, p, clip=1e-15):10.4f}{brier_score(y_test, p):10.4f}"
        )
        error = expected_calibration_error(y_test, p, view="classwise")
        print(f"{name:18}{losses}{error:19.4f}{right:9.1%}")
    print("All but the last are losses: smaller is better.\n")

    figure, (arrows, field) = plt.subplots(
        1, 2, figsize=(10.8, 4.9), layout="constrained", width_ratios=(1.0, 1.12)
    )
    plot_simplex(calibrator, raw, y_test, classes=NAMES, ax=arrows)
    plot_simplex_field(calibrator, classes=NAMES, ax=field)
    figure.savefig("three_classes.png", dpi=120)

    # A curve on the diagonal means: of the leaves given 30 % rust, 30 % have it.
    panels = plot_class_reliability(y_test, forecasts, classes=NAMES)
    panels[0].figure.savefig("three_classes_reliability.png", dpi=110)
    print("Wrote three_classes.png and three_classes_reliability.png")


if __name__ == "__main__":
    main()
