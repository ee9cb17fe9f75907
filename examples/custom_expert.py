"""
An expert of your own: any classifier will do
=============================================

The power of a wind farm follows the wind along an S: almost nothing in a breeze, full
power in a gale. We know that shape. So the expert is a logistic regression on splines
of speed and direction, fitted once for each threshold and fold. Its probabilities are
calibrated out of fold and joined to distributions. Is it better than the built-in
trees? Does calibration help?

.. image:: /images/wind.png
   :alt: Distribution functions of a wind farm's power at five wind speeds
"""

# sphinx_gallery_thumbnail_path = "images/wind.png"

import warnings
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from calibration import CalibrationWarning
from localexpert import LocalExpertRegressor, crps_score

Array = NDArray[np.float64]


def draw_hours(n: int, seed: int) -> tuple[Array, Array]:
    """Return wind speed and direction of hours, and the power in megawatts."""
    rng = np.random.default_rng(seed)
    speed = 9.0 * rng.weibull(2.0, size=n)
    direction = rng.uniform(0.0, 360.0, size=n)
    shadow = 1.5 * np.cos(np.radians(direction)) ** 8  # the turbines stand in a row
    felt = speed - shadow + rng.normal(0.0, 1.0, size=n)
    return np.column_stack([speed, direction]), 100.0 * expit(felt - 8.5)


def main() -> None:
    """Fit three models, score them on new hours, draw one forecast per speed."""
    X, y = draw_hours(600, seed=0)
    X_new, y_new = draw_hours(4000, seed=1)

    curve = make_pipeline(
        SplineTransformer(n_knots=7, knots="quantile"),
        LogisticRegression(C=100.0, max_iter=1000),
    )
    common: dict[str, Any] = {
        "frame": None,
        "n_thresholds": 15,
        "bounds": (0.0, 100.0),
        "cv": 3,
        "random_state": 0,
    }
    models = {
        "splines, calibrated": LocalExpertRegressor(curve, **common),
        "splines, as they are": LocalExpertRegressor(curve, calibrator=None, **common),
        "built-in trees": LocalExpertRegressor(
            strategy="shared", center=LinearRegression(), **common
        ),
    }
    # `fit` warns of forecasts that are no good out of fold; here they stand in a table.
    warnings.simplefilter("ignore", CalibrationWarning)
    print("CRPS in megawatts on 4000 new hours (smaller is better), and how much the")
    print("50 and 90 % intervals held out of fold")
    for name, model in models.items():
        dist = model.fit(X, y).predict_dist(X_new)
        held = f"{model.check_.coverage_50:.0%} {model.check_.coverage_90:.0%}"
        print(f"  {name:22s} {crps_score(y_new, dist):.3f}  {held}")
    kind = models["splines, calibrated"].report_.choices["calibration"]["chosen"]
    print(f"\nOf the kinds of calibration it chose: {kind}.")

    figure, axes = plt.subplots(figsize=(6.5, 3.8))
    speeds = np.array([3.0, 6.0, 8.5, 11.0, 15.0])
    asked = np.column_stack([speeds, np.full(5, 90.0)])
    dist = models["splines, calibrated"].predict_dist(asked)
    grid = np.linspace(0.0, 100.0, 401)
    for speed, chance in zip(speeds, dist.cdf_at(grid), strict=True):
        axes.plot(grid, chance, label=f"{speed:g} m/s")
    axes.set(
        xlabel="Power, MW",
        ylabel="P(power is at most this)",
        title="Forecasts at five wind speeds",
    )
    axes.legend(frameon=False, title="wind from the east", bbox_to_anchor=(1.0, 1.0))
    figure.savefig("wind.png", dpi=120, bbox_inches="tight")
    print("Wrote wind.png")


if __name__ == "__main__":
    main()
