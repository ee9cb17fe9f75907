"""
A model meets other patients
============================

A clinic forecasts how many days its patients stay, by a straight line with the same
spread for all. Stays of old patients vary far more than those of young ones. So its 90
% intervals are right on average over its patients, and for no group of them. Then the
model moves to a second clinic with older patients, and the intervals hold only 75 %.

.. image:: /images/other_patients.png
   :alt: Ages at two clinics, and of the first as weighted; coverage by band of age

Two cures need no new fit. `adapt` weighs rows kept for calibration until they look like
the new patients, whose stays need not be known. Intervals then hold 89 %, on average
and not for each age. `recalibrate` corrects within bands of age. Intervals then hold 84
to 88 % in each band at the second clinic: a shift within a band is not cured.
"""

# sphinx_gallery_thumbnail_path = "images/other_patients.png"

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy import stats
from sklearn.compose import make_column_transformer
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import Pipeline, make_pipeline

from localexpert import (
    DistributionAdapter,
    PredictiveDistribution,
    RecalibratedRegressor,
    ShiftWeights,
    adapt,
    interval_coverage,
    recalibrate,
)

Array = NDArray[np.float64]

BANDS = {"under 50": (0.0, 50.0), "50 to 70": (50.0, 70.0), "over 70": (70.0, 120.0)}


def normal(fitted: Pipeline, X: pd.DataFrame) -> PredictiveDistribution:
    """Return a straight line's forecasts, normal with one spread for all."""
    mean, sd = fitted.predict(X, return_std=True)
    return PredictiveDistribution.from_scipy(stats.norm(mean, sd))


def draw_patients(
    n: int, age: float, rng: np.random.Generator
) -> tuple[pd.DataFrame, Array]:
    """Return n patients of about some age, and the days that they stay."""
    years = np.clip(rng.normal(age, 15.0, n), 18.0, 100.0)
    severity = rng.gamma(2.0, size=n)
    spread = np.exp((years - 60.0) / 25.0)
    days = 4.0 + 0.05 * years + severity + spread * rng.standard_t(6, n)
    band = np.select([years < 50.0, years < 70.0], list(BANDS)[:2], list(BANDS)[2])
    table = pd.DataFrame({"age": years, "severity": severity, "band": band})
    return table, days


def draw_weights(
    axes: Axes, old: pd.DataFrame, new: pd.DataFrame, weights: ShiftWeights
) -> None:
    """Draw the ages of both clinics, and of the first as it is weighted."""
    bins = np.arange(15.0, 105.0, 5.0)
    look: dict[str, Any] = {
        "bins": bins,
        "density": True,
        "histtype": "step",
        "lw": 1.6,
    }
    axes.hist(old["age"], color="0.6", label="first clinic", **look)
    axes.hist(new["age"], color="C1", label="second clinic", **look)
    axes.hist(
        old["age"], weights=weights.weight, color="C0", label="first, weighted", **look
    )
    axes.set(
        xlabel="Age",
        ylabel="Density",
        ylim=(0.0, 0.036),
        title=f"{len(old)} rows, weighted as good as {weights.effective_rows:.0f}",
    )
    axes.legend(frameon=False, loc="upper left", fontsize=9)


def draw_coverage(
    axes: Axes,
    models: dict[str, DistributionAdapter | RecalibratedRegressor],
    new: pd.DataFrame,
    days: Array,
) -> None:
    """Draw how many new patients lie in their 90 % intervals, by age."""
    places = np.arange(len(BANDS) + 1.0)
    for (name, model), colour in zip(models.items(), ("0.6", "C0", "C2"), strict=True):
        dist = model.predict_dist(new)
        shares = [interval_coverage(days, dist)]
        for band in BANDS:
            rows = (new["band"] == band).to_numpy()
            shares.append(interval_coverage(days[rows], dist[rows]))
        axes.plot(places, shares, "o", ms=8, color=colour, label=name)
        shown = ", ".join(f"{share:.0%}" for share in shares)
        print(f"{name:22s}{shown}")
    axes.axhline(0.9, color="0.8", lw=1, zorder=0)
    axes.set_xticks(places, ["all", *BANDS])
    axes.set(
        ylim=(0.5, 1.02),
        ylabel="Share in 90 % intervals",
        title="Patients of the second clinic",
    )
    axes.legend(frameon=False, loc="lower left")


def main() -> None:
    """Fit at one clinic, correct for another, draw."""
    rng = np.random.default_rng(2)
    X, days = draw_patients(600, 50.0, rng)
    X_cal, days_cal = draw_patients(1500, 50.0, rng)
    X_new, days_new = draw_patients(3000, 66.0, rng)
    numbers = make_column_transformer(("passthrough", ["age", "severity"]))
    line = make_pipeline(numbers, BayesianRidge())
    model = DistributionAdapter(line, normal, random_state=0).fit(X, days)
    held = interval_coverage(days_cal, model.predict_dist(X_cal))
    print(f"In 90 % intervals at the first clinic: {held:.0%}")

    moved = adapt(model, X_cal, days_cal, X_new, random_state=0)
    weights = moved.weights_
    assert isinstance(weights, ShiftWeights)
    print(f"{weights}; with true weights coverage is off by at most {moved.bound_:.3f}")
    grouped = recalibrate(model, X_cal, days_cal, by="band", random_state=0)

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8))
    draw_weights(left, X_cal, X_new, weights)
    print("\nAt the second clinic: all, " + ", ".join(BANDS))
    models = {"as fitted": model, "adapted": moved, "within bands of age": grouped}
    draw_coverage(right, models, X_new, days_new)
    figure.tight_layout()
    figure.savefig("other_patients.png", dpi=120)
    print("\nWrote other_patients.png")


if __name__ == "__main__":
    main()
