"""
How good forecasts are, before outcomes are known
=================================================

A calibrated forecast says how large its error will be: its CRPS and its absolute error
are expectations, and need no outcome. The script forecasts the hire of bicycles, says
what the error of the next weeks will be, and then looks.

.. image:: /images/promised_error.png
   :alt: Expected CRPS by week with intervals, and the CRPS that came

In weeks like those of training the promise is kept. Then a new road brings more riders,
and nobody tells the model. The promise is broken by far more than chance explains.
"""

# sphinx_gallery_thumbnail_path = "images/promised_error.png"

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from localexpert import LocalExpertRegressor, crps_score
from localexpert.experts import SharedBoosting

Array = NDArray[np.float64]

WEEKS, ROWS = 12, 168


def draw_hours(
    rng: np.random.Generator, n: int, more: float = 1.0
) -> tuple[Array, Array]:
    """Return made-up hours, temperature and hour of the day, and bicycles hired."""
    hour, warm = rng.uniform(0.0, 24.0, n), rng.normal(12.0, 7.0, n)
    level = 60.0 + 25.0 * np.sin((hour - 8.0) / 24.0 * 2.0 * np.pi) + 1.2 * warm
    spread = 6.0 + 6.0 * (hour > 7.0) * (hour < 20.0)
    return np.column_stack([hour, warm]), more * rng.normal(level, spread)


def main() -> None:
    """Promise errors week by week, and draw what came of it."""
    rng = np.random.default_rng(1)
    experts = SharedBoosting(max_rounds=60, random_state=0)
    model = LocalExpertRegressor(strategy=experts, cv=3, random_state=0)
    model.fit(*draw_hours(rng, 3000))

    print(f"{'week':>4}{'expected CRPS':>15}{'95 %':>18}{'realised':>11}")
    weeks, told, came = np.arange(1, WEEKS + 1), [], []
    for week in weeks:
        X, hired = draw_hours(rng, ROWS, more=1.1 if week > 8 else 1.0)
        dist = model.predict_dist(X)
        told.append(dist.expected_mean())
        came.append(crps_score(hired, dist))
        interval = f"{told[-1].low:.2f} to {told[-1].high:.2f}"
        print(f"{week:4}{told[-1].mean:15.2f}{interval:>18}{came[-1]:11.2f}")

    figure, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
    low, high = np.array([[one.low, one.high] for one in told]).T
    ax.fill_between(weeks, low, high, alpha=0.25, label="promised, 95 %")
    ax.plot(weeks, [one.mean for one in told], label="promised")
    ax.plot(weeks, came, "o", color="black", label="realised, once outcomes came")
    ax.axvline(8.5, color="grey", linestyle=":")
    ax.set(xlabel="week", ylabel="mean CRPS, bicycles", ylim=(0.0, 1.1 * max(came)))
    ax.annotate("a new road", (8.6, 1.05 * max(came)), va="top", color="grey")
    ax.legend(loc="lower left")
    figure.savefig("promised_error.png", dpi=110)
    print("\nWrote promised_error.png")


if __name__ == "__main__":
    main()
