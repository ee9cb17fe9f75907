"""
Explaining a forecast: why this patient's risk is high
======================================================

How far diabetes progresses within a year is forecast as a distribution. What is that
forecast based on? First for all patients: which measurements matter for the middle of
the distribution, and which for its ends? Then for one patient: what raises the chance
of a progression above 200? The answers are measured on the final forecast, in its own
units, and they add up.

.. image:: /images/explanation.png
   :alt: Importance by quantile, and contributions to one patient's risk
"""

# sphinx_gallery_thumbnail_path = "images/explanation.png"

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from localexpert import (
    Explanation,
    LocalExpertRegressor,
    PermutationImportance,
    explain_forecast,
    permutation_importance,
    plot_explanation,
)

# The lipids and the sugar come from one blood sample; some are sums of others.
GROUPS = {"blood sample": ["s1", "s2", "s3", "s4", "s5", "s6"]}
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
HIGH = 200.0


def draw(importance: PermutationImportance, why: Explanation) -> None:
    """Draw importance along the distribution, and the road to one forecast."""
    _, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    losses = importance.baseline[1 : 1 + len(importance.levels)]
    for name, gains in zip(importance.feature_names, importance.pinball, strict=True):
        share = 100.0 * gains / losses
        left.plot(importance.levels, share, "o-", ms=4, lw=1.2, label=name)
    left.axhline(0.0, color="0.45", ls="--", lw=1)
    left.set(
        xlabel="Level of the quantile",
        ylabel="Increase of the pinball loss (%)",
        title="What quantiles need",
    )
    left.margins(y=0.2)
    left.legend(frameon=False, fontsize="small", ncols=3, loc="upper center")
    plot_explanation(why, ax=right)
    right.set_title("Why this patient's risk is high", pad=18)
    plt.savefig("explanation.png", dpi=120, bbox_inches="tight")


def main() -> None:
    """Fit, ask what matters to all, and what to one."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    X_fit, X_test, y_fit, y_test = train_test_split(X, y, random_state=0)
    # A light model: one family in each place, so that it takes seconds.
    model = LocalExpertRegressor(
        strategy="shared", center=LinearRegression(), n_thresholds=15, random_state=0
    ).fit(X_fit, y_fit)

    print("Each measurement is shuffled among held-out patients; what is lost?\n")
    importance = permutation_importance(
        model, X_test, y_test, levels=LEVELS, groups=GROUPS, random_state=0
    )
    print(importance)

    risk = model.predict_dist(X_test).sf(HIGH)
    patient = X_test.iloc[[int(np.argmax(risk))]]
    why = explain_forecast(
        model, patient, X_fit, of="exceedance", at=HIGH, groups=GROUPS, random_state=0
    )
    print(f"\nOne patient has a risk of {why.total[0]:.0%}, a hundred others have")
    print(f"{why.base:.0%} on average. What every measurement adds to the chance:\n")
    print(why)
    gap = why.base + why.values.sum() - why.total[0]
    print(f"\nBase and contributions miss the forecast by {abs(gap):.0e}.")
    draw(importance, why)
    print("Wrote explanation.png")


if __name__ == "__main__":
    main()
