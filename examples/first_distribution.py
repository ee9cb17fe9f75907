"""A whole distribution for every patient.

How far does diabetes progress within a year? Ten measurements at the start leave much
open, and they leave more open for some patients than for others. A single number says
nothing of that. We fit distributions, score them against two plain forecasts on
patients that were not used, and draw a few.
"""

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import train_test_split

from localexpert import (
    LocalExpertRegressor,
    PredictiveDistribution,
    crps_score,
    interval_coverage,
)

Array = NDArray[np.float64]


def gaussian_crps(y: Array, mean: Array, spread: float) -> float:
    """Return the mean CRPS of normal forecasts (Gneiting & Raftery 2007, eq. 21)."""
    z = (y - mean) / spread
    pdf, cdf = norm.pdf(z), norm.cdf(z)
    each = spread * (z * (2 * cdf - 1) + 2 * pdf - 1 / np.sqrt(np.pi))
    return float(each.mean())


def draw(dist: PredictiveDistribution, y: Array) -> None:
    """Draw the densities of three forecasts: a low, a middle and a high one."""
    order = np.argsort(dist.median())
    chosen = order[[len(order) // 10, len(order) // 2, -len(order) // 10]]
    grid = np.linspace(0.0, 400.0, 400)
    figure, axes = plt.subplots(figsize=(6.5, 3.8))
    for row, colour in zip(chosen, ("C0", "C1", "C2"), strict=True):
        one = dist[int(row)]
        density = one.pdf(grid[:, None])[:, 0]
        low, high = one.interval(0.8)[0]
        inside = (grid >= low) & (grid <= high)
        axes.plot(grid, density, color=colour)
        axes.fill_between(grid, density, where=inside, color=colour, alpha=0.25)
        axes.plot(y[row], 0.0, "^", color=colour, clip_on=False, markersize=9)
    axes.set(
        xlabel="Progression of the disease after a year",
        ylabel="Density",
        title="Three forecasts with 80% intervals; triangles: the outcomes",
        ylim=(0.0, None),
    )
    figure.savefig("forecasts.png", dpi=120, bbox_inches="tight")


def main() -> None:
    """Fit, score on held-out patients, draw."""
    X, y = load_diabetes(return_X_y=True)
    X_fit, X_test, y_fit, y_test = train_test_split(X, y, random_state=0)

    model = LocalExpertRegressor(random_state=0).fit(X_fit, y_fit)
    dist = model.predict_dist(X_test)

    line = LinearRegression().fit(X_fit, y_fit)
    spread = float((y_fit - line.predict(X_fit)).std())
    everyone = np.abs(y_test[:, None] - y_fit).mean()
    climate = everyone - np.abs(y_fit[:, None] - y_fit).mean() / 2

    print(f"{len(y_fit)} patients to learn from, {len(y_test)} to score on.\n")
    print("CRPS (smaller is better)")
    print(f"  the same distribution for all      {climate:6.2f}")
    line_crps = gaussian_crps(y_test, line.predict(X_test), spread)
    print(f"  linear regression, normal errors   {line_crps:6.2f}")
    print(f"  local experts                      {crps_score(y_test, dist):6.2f}")
    covered = interval_coverage(y_test, dist, coverage=0.8)
    print(f"\nThe 80% intervals hold {covered:.0%} of the patients.")
    risk = dist.sf(200.0)
    print(
        f"The chance of a progression above 200 is {risk.min():.0%} to {risk.max():.0%}"
    )
    print(f"among the patients; {(y_test > 200).mean():.0%} had one.")
    draw(dist, y_test)
    print("\nWrote forecasts.png")


if __name__ == "__main__":
    main()
