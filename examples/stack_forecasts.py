"""
Stacking: distributions as features of a second model
=====================================================

The price of a used car falls with age and mileage, and it spreads more for strong cars.
A competitor first asks a regressor for whole distributions, out of fold. What they say
(means, spreads, quantiles, probabilities) are features of second models. Is the error
lower? We compare on cars that nobody has seen. ``stacker="auto"`` decides from the
training cars alone.

.. image:: /images/stacking.png
   :alt: Errors of four point forecasts of car prices
"""

# sphinx_gallery_thumbnail_path = "images/stacking.png"

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from localexpert import LocalExpertRegressor

Array = NDArray[np.float64]


def draw_cars(n: int, seed: int) -> tuple[Array, Array]:
    """Return age, mileage, power and equipment of cars, and prices in thousands."""
    rng = np.random.default_rng(seed)
    age = rng.gamma(2.0, 3.0, size=n)
    mileage = 12.0 * age * rng.lognormal(0.0, 0.4, size=n)
    power = np.maximum(rng.normal(90.0, 25.0, size=n), 40.0)
    equipment = rng.integers(0, 4, size=n)
    new = 8.0 + 0.2 * power + 3.0 * (equipment == 3)
    value = new * np.exp(-0.13 * age - 0.002 * mileage)
    spread = np.where(power > 120.0, 0.25, 0.12)
    price = value * rng.lognormal(0.0, spread) + rng.normal(0.0, 0.3, size=n)
    return np.column_stack([age, mileage, power, equipment]), price


def rmse(forecast: Array, price: Array) -> float:
    """Return the root mean squared error."""
    return float(np.sqrt(np.mean((forecast - price) ** 2)))


def main() -> None:
    """Fit, stack by hand and automatically, compare on new cars."""
    X, y = draw_cars(800, seed=0)
    X_new, y_new = draw_cars(4000, seed=1)

    forest = RandomForestRegressor(100, random_state=0)
    model = LocalExpertRegressor(
        center=[LinearRegression(), forest],
        strategy="shared",
        stacker="auto",
        random_state=0,
    )
    model.fit(X, y)
    features, asked = model.oof_features(), model.transform(X_new)
    second = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13)))
    second.fit(features, y)
    errors = {
        "a forest": rmse(forest.fit(X, y).predict(X_new), y_new),
        "mean of the distributions": rmse(asked["mean"].to_numpy(), y_new),
        "ridge on their features": rmse(second.predict(asked), y_new),
        'stacker="auto"': rmse(model.predict(X_new), y_new),
    }
    print(f"{features.shape[1]} features of each distribution, for instance:")
    print(features.iloc[:3, [0, 1, 2, 5, 8]].round(2).to_string(index=False))
    print("\nRoot mean squared error of the price on 4000 new cars:")
    for name, error in errors.items():
        print(f"  {name:26s} {error:.3f}")
    weights = model.report_.choices["stacker"]["weights"]
    kept = not any(weights.values())
    print(f"\nThe automatic stacker {'kept the mean' if kept else f'took {weights}'}.")
    honest = rmse(model.oof_prediction_, y)
    print(f"Out of fold it had promised {honest:.3f}.")

    figure, axes = plt.subplots(figsize=(6.5, 3.4))
    names = list(errors)
    axes.plot([errors[name] for name in names], names, "o", ms=9)
    axes.axvline(honest, color="C1", ls="--", label="promised out of fold")
    axes.set(xlabel="RMSE, thousands", title="Point forecasts of new cars")
    axes.margins(x=0.15, y=0.2)
    axes.invert_yaxis()
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)
    figure.savefig("stacking.png", dpi=120, bbox_inches="tight")
    print("Wrote stacking.png")


if __name__ == "__main__":
    main()
