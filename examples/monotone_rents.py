"""
Rents that only fall with the distance
======================================

Two flats differ only in their way to the centre. Nobody expects the one farther out to
cost more. A model of few flats sometimes says so, because some distant flats were
expensive by chance. With ``monotone={"area": 1, "distance": -1}`` no quantile of the
rent rises with the distance, and no quantile falls with the area:

.. code-block:: text

                   CRPS    quantiles that rise with a kilometre more
   free          198.98               25.7%
   monotone      198.13                0.0%

.. image:: /images/monotone.png
   :alt: Quantiles of the rent over the distance: some rise without, none with monotone
"""

# sphinx_gallery_thumbnail_path = "images/monotone.png"

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from localexpert import FrameRoad, LocalExpertRegressor, crps_score

Array = NDArray[np.float64]
LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]
DIRECTIONS = {"area": 1, "distance": -1}


def draw_flats(n: int, seed: int) -> tuple[pd.DataFrame, Array]:
    """Return flats and their monthly rents."""
    rng = np.random.default_rng(seed)
    area = 20.0 + 30.0 * rng.gamma(2.0, size=n)
    distance = 12.0 * rng.beta(1.5, 2.0, size=n)
    balcony = rng.choice(["yes", "no"], size=n)
    usual = 250.0 + 11.0 * area**0.9 * (1.0 + np.exp(-distance / 4.0))
    usual += 80.0 * (balcony == "yes")
    rent = usual * np.exp(0.3 * rng.normal(size=n))
    table = pd.DataFrame({"area": area, "distance": distance, "balcony": balcony})
    return table, rent


def share_out_of_order(model: LocalExpertRegressor, flats: pd.DataFrame) -> float:
    """Return how often a quantile rises with a kilometre more."""
    farther = flats.assign(distance=flats["distance"] + 1.0)
    before, after = (model.predict_dist(rows) for rows in (flats, farther))
    rises = after.quantiles(LEVELS) - before.quantiles(LEVELS)
    return float((rises > 1e-6).mean())


def main() -> None:
    """Fit with and without directions, compare on new flats, draw both."""
    X, y = draw_flats(200, seed=3)
    X_new, y_new = draw_flats(3000, seed=0)
    # The same road for both: thresholds on the rent itself, and boosted trees.
    road = FrameRoad(None, strategy="shared")
    figure, panels = plt.subplots(
        1, 2, figsize=(8.5, 3.8), sharey=True, layout="constrained"
    )
    way = np.linspace(0.0, 12.0, 241)
    flat = pd.DataFrame({"area": 70.0, "distance": way, "balcony": "no"})
    alike = X["area"].between(50.0, 90.0)
    print("                CRPS    quantiles that rise with a kilometre more")
    for axes, directions in zip(panels, (None, DIRECTIONS), strict=True):
        model = LocalExpertRegressor(roads=road, monotone=directions, random_state=0)
        model.fit(X, y)
        score = crps_score(y_new, model.predict_dist(X_new))
        wrong = share_out_of_order(model, X_new)
        name = "free" if directions is None else "monotone"
        print(f"{name:12s} {score:7.2f}  {wrong:18.1%}")
        quantiles = model.predict_dist(flat).quantiles(LEVELS)
        axes.scatter(X["distance"][alike], y[alike], s=8, color="0.75")
        for k, level in enumerate(LEVELS):
            axes.plot(way, quantiles[:, k], color=f"C{k}", label=f"{level:.0%}")
        axes.set(title=f"{name}, CRPS {score:.1f}", xlabel="Distance (km)")
    panels[0].set_ylabel("Rent of 50 to 90 m2; quantiles of 70 m2")
    lines = panels[1].get_lines()
    figure.legend(
        handles=lines[::-1], title="Below the line", loc="outside right upper"
    )
    figure.savefig("monotone.png", dpi=120)
    print("Wrote monotone.png")


if __name__ == "__main__":
    main()
