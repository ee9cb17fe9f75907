"""
A whole distribution for every day
==================================

How much will it rain tomorrow? Four days in ten stay dry. On the others the amount of
rain is skewed, and its spread depends on the season. One number says nothing about it.
One number with the same margin for all days is wrong nearly everywhere.

.. image:: /images/forecasts.png
   :alt: The chance of more rain than any amount on three days; intervals over humidity

The weather is simulated, so the law that made it is known, and so is the best possible
score. The script fits distributions, scores them on 4000 other days beside simpler
forecasts, and asks for chances. ``make demo`` runs it, and prints this beside seconds:

.. code-block:: text

                                      CRPS  gained  in 90 %  width  below 0
   local experts                     1.977     83%    95.2%   10.9       0%
   quantile boosting, small trees    1.996     79%    93.9%    9.4      24%
   quantile boosting, as it comes    2.051     69%    82.5%    7.8      39%
   the same law for all days         2.406      0%    95.0%   13.1       0%
   linear regression, normal errors  2.516    -21%    95.2%   16.1      98%
   the law that made the weather     1.889    100%    94.7%   10.6       0%

"Gained" is the share of the CRPS between one law for all days and the true law. Dry
days lie in most 90 % intervals, so the true law holds more than 90 % too. Nineteen
LightGBM models of quantiles come close once their trees are small, and they are faster.
But they say nothing between their levels, such as the chance of more than 20 mm.
"""

# sphinx_gallery_thumbnail_path = "images/forecasts.png"

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from lightgbm import LGBMRegressor
from numpy.typing import NDArray
from scipy.stats import gamma, norm
from sklearn.linear_model import LinearRegression

from localexpert import (
    LocalExpertRegressor,
    PredictiveDistribution,
    plot_fan,
)

Array = NDArray[np.float64]

LEVELS = np.arange(1, 20) / 20
HEAVY = 20.0
SMALL_TREES: dict[str, Any] = {"learning_rate": 0.05, "num_leaves": 7}


class RainLaw(NamedTuple):
    """The law that makes the rain of each day: a chance, then a gamma law, (n,)."""

    chance: Array
    shape: Array
    mean: Array

    def quantiles(self) -> Array:
        """Return the quantiles at `LEVELS`; those below a dry day's chance are 0."""
        wet = np.clip(1.0 - (1.0 - LEVELS) / self.chance[:, None], 0.0, 1.0)
        scale = (self.mean / self.shape)[:, None]
        return np.asarray(gamma.ppf(wet, self.shape[:, None], scale=scale))

    def exceed(self, row: int, amount: Array) -> Array:
        """Return the chances of more than these amounts on one day."""
        scale = self.mean[row] / self.shape[row]
        wet = gamma.sf(amount, self.shape[row], scale=scale)
        return np.asarray(self.chance[row] * wet)


def simulate_weather(n: int, seed: int) -> tuple[Array, Array, RainLaw]:
    """Return what is known of n days, the rain, and the law that made it.

    Known are season (0 to 1 from midwinter), humidity, pressure and wind. It rains
    with a chance that humidity and pressure decide, and then a gamma law says how
    much: its mean grows with humidity, its tail is longer in summer.
    """
    rng = np.random.default_rng(seed)
    season, humidity = rng.uniform(size=n), rng.beta(4.0, 2.0, size=n)
    pressure, wind = rng.normal(size=n), rng.gamma(2.0, size=n)
    warm = -np.cos(2.0 * np.pi * season)
    odds = 8.0 * (humidity - 0.6) - 1.2 * pressure - 0.4 * warm
    chance = 1.0 / (1.0 + np.exp(-odds))
    mean = np.exp(
        1.0 + 2.0 * (humidity - 0.6) - 0.3 * pressure + 0.5 * warm + 0.1 * wind
    )
    shape = np.exp(0.3 - 0.6 * warm)
    amount = rng.gamma(shape, mean / shape)
    rain = np.where(rng.uniform(size=n) < chance, amount, 0.0)
    known = np.column_stack([season, humidity, pressure, wind])
    return known, rain, RainLaw(chance, shape, mean)


def line_quantiles(X: Array, y: Array, X_new: Array) -> Array:
    """Return quantiles of a linear regression with normal errors of one size."""
    line = LinearRegression().fit(X, y)
    spread = float((y - line.predict(X)).std())
    return np.asarray(line.predict(X_new)[:, None] + spread * norm.ppf(LEVELS))


def boosted_quantiles(X: Array, y: Array, X_new: Array, **how: Any) -> Array:
    """Return quantiles of LightGBM, one model each, sorted where they cross."""
    fixed: dict[str, Any] = {"objective": "quantile", "n_jobs": 1, "verbose": -1}
    models = [LGBMRegressor(alpha=a, **fixed, **how).fit(X, y) for a in LEVELS]
    each = [np.asarray(model.predict(X_new)) for model in models]
    return np.sort(np.column_stack(each))


def measure(y: Array, quantiles: Array) -> tuple[float, float, float]:
    """Return CRPS, coverage and mean width of the 90 % interval, from 19 quantiles.

    Twice the mean pinball loss of evenly spaced quantiles is the CRPS, but for what
    lies between and beyond them, and it is the same sum for all that are compared.
    """
    error = y[:, None] - quantiles
    pinball = np.maximum(LEVELS * error, (LEVELS - 1.0) * error)
    low, high = quantiles[:, 0], quantiles[:, -1]
    covered = (low <= y) & (y <= high)
    return 2.0 * pinball.mean(), covered.mean(), (high - low).mean()


def ask(dist: PredictiveDistribution, y: Array) -> None:
    """Print what was said of dry days and heavy rain, and what came."""
    dry, heavy = dist.cdf(np.zeros(len(dist))), dist.sf(HEAVY)
    for name, said, came in (
        ("no rain", dry, y == 0.0),
        (f"more than {HEAVY:.0f} mm", heavy, y > HEAVY),
    ):
        print(f"\nThe chance of {name}, in five groups of days from low to high:")
        groups = np.array_split(np.argsort(said), 5)
        print("  said " + "".join(f"{said[rows].mean():8.1%}" for rows in groups))
        print("  came " + "".join(f"{came[rows].mean():8.1%}" for rows in groups))


def draw(dist: PredictiveDistribution, law: RainLaw, X: Array, y: Array) -> None:
    """Draw the chances of three days, and all forecasts over the humidity."""
    order = np.argsort(dist.sf(HEAVY))
    days = {"a wet day": 100, "an average day": len(y) // 2, "a dry day": len(y) - 100}
    amount = np.linspace(0.0, 40.0, 401)
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10.5, 4.2), layout="constrained"
    )
    for place, (name, back) in enumerate(days.items()):
        row, looks = order[-back], {"color": f"C{place}"}
        chance = dist[row].sf(amount[:, None])[:, 0]
        left.plot(amount, chance, **looks, lw=1.8, label=name)
        left.plot(amount, law.exceed(row, amount), "--", **looks, lw=1)
    left.plot([], [], "--", color="0.5", lw=1, label="by the law that made it")
    left.set(xlabel="Rain (mm)", ylabel="Chance of more", ylim=(0.0, 1.0))
    left.legend(frameon=False)
    plot_fan(dist, 100.0 * X[:, 1], y=y, target_name="Rain (mm)", ax=right)
    right.set(xlabel="Humidity (%), means of groups of days", ylim=(-1.0, 45.0))
    figure.savefig("forecasts.png", dpi=120)


def main() -> None:
    """Fit, compare on other days, ask, draw."""
    X, y, _ = simulate_weather(1000, seed=0)
    X_new, y_new, truth = simulate_weather(4000, seed=1)
    model = LocalExpertRegressor(
        strategy="joint", bounds=(0.0, np.inf), n_jobs=1, random_state=0
    )

    peers: dict[str, Callable[[], Array]] = {
        "local experts": lambda: model.fit(X, y).predict_quantiles(X_new, LEVELS),
        "quantile boosting, small trees": lambda: boosted_quantiles(
            X, y, X_new, **SMALL_TREES
        ),
        "quantile boosting, as it comes": lambda: boosted_quantiles(X, y, X_new),
        "the same law for all days": lambda: np.tile(
            np.quantile(y, LEVELS), (len(y_new), 1)
        ),
        "linear regression, normal errors": lambda: line_quantiles(X, y, X_new),
        "the law that made the weather": truth.quantiles,
    }
    print(f"{len(y)} simulated days to learn from, {len(y_new)} to score on.\n")
    least = measure(y_new, truth.quantiles())[0]
    most = measure(y_new, peers["the same law for all days"]())[0]
    print(f"{'':33}  CRPS  gained  in 90 %  width  below 0  seconds")
    for name, forecast in peers.items():
        start = time.perf_counter()
        quantiles = forecast()
        took = time.perf_counter() - start
        crps, covered, width = measure(y_new, quantiles)
        gained, below = (most - crps) / (most - least), (quantiles[:, 0] < 0.0).mean()
        print(f"{name:33}{crps:6.3f}{gained:8.0%}{covered:9.1%}", end="")
        print(f"{width:7.1f}{below:9.0%}{took:9.1f}")
    print(
        "\nCRPS in mm, smaller is better; gained: of the way from one law for all days"
        "\nto the true one. In 90 %: days inside the 90 % interval, whose mean width is"
        "\nin mm; a day without rain lies in most, so the true law holds more than 90 %"
        "\ntoo. Below 0: days whose interval begins at less than no rain. Boosting is"
        "\nquicker, but says nothing between its levels. Distributions tell chances:"
    )
    dist = model.predict_dist(X_new)
    ask(dist, y_new)
    draw(dist, truth, X_new, y_new)
    print("\nWrote forecasts.png")


if __name__ == "__main__":
    main()
