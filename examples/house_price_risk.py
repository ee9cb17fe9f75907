"""
House prices: the risk of a sale, and what to offer
===================================================

Two houses with the same expected price are not the same risk. A new flat in town brings
what its neighbours brought. The price of an old farm depends on who falls in love with
it. We simulate such a market and learn distributions from the sales. Then we ask: how
likely is it that a sale does not cover the mortgage? What should a dealer offer, if a
pound too many costs three times as much as a pound too few? And does it pay to know the
risk of each house, rather than one margin for all?

.. image:: /images/house_price_risk.png
   :alt: Chances that three houses fetch a price, and expected costs of offers
"""

# sphinx_gallery_thumbnail_path = "images/house_price_risk.png"

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.stats import gamma

from localexpert import LocalExpertRegressor, PredictiveDistribution
from localexpert.risk import (
    best_action,
    expected_loss,
    newsvendor,
)

Array = NDArray[np.float64]

UNDERAGE, OVERAGE = 1.0, 3.0
LOAN_TO_VALUE = 0.85
HOUSES = {  # square metres, years, kilometres from the centre, condition 1 to 5
    "new flat": (70.0, 3.0, 2.0, 4.0),
    "town house": (120.0, 40.0, 4.0, 3.0),
    "villa": (210.0, 25.0, 8.0, 5.0),
    "old cottage": (85.0, 85.0, 12.0, 2.0),
    "farm": (180.0, 80.0, 22.0, 3.0),
}
DRAWN = {0: "C0", 3: "C1", 4: "C2"}


def simulate_sales(n: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Return what is known of n houses, the prices they fetched, and the best offers.

    In thousands; the best offers are those of one who knows how prices come about.
    """
    area = np.clip(rng.lognormal(4.65, 0.35, n), 35.0, 300.0)
    age = rng.uniform(0.0, 90.0, n)
    distance = rng.gamma(2.0, 4.5, n)
    condition = rng.integers(1, 6, n).astype(np.float64)
    level = np.log(3.3 * area) - 0.003 * age - 0.02 * distance + 0.05 * condition
    spread = 0.03 + 0.003 * age + 0.008 * distance
    luck = (rng.gamma(3.0, size=n) - 3.0) / np.sqrt(3.0)
    middling = (gamma.ppf(UNDERAGE / (UNDERAGE + OVERAGE), 3.0) - 3.0) / np.sqrt(3.0)
    known = np.column_stack([area, age, distance, condition])
    return known, np.exp(level + spread * luck), np.exp(level + spread * middling)


def offer_cost(price: Array, offer: Array) -> Array:
    """Return what an offer costs: margin lost if too low, money lost if too high."""
    too_low, too_high = np.maximum(price - offer, 0.0), np.maximum(offer - price, 0.0)
    return UNDERAGE * too_low + OVERAGE * too_high


def show_sellers(five: PredictiveDistribution) -> Array:
    """Print the risk of five houses and return their mortgages."""
    table = five.to_frame(
        quantiles=0.5, interval=0.5, risk=0.95, tail="lower", index=list(HOUSES)
    )
    print("Five houses, in thousands. In the worst of twenty cases a sale brings less")
    print("than the value at risk; what it then brings in the mean is es.\n")
    print(table.to_string(float_format="{:.0f}".format))

    mortgage = LOAN_TO_VALUE * five.median()
    risk = five.cdf(mortgage)
    missing = expected_loss(five, lambda y, due: np.maximum(due - y, 0.0), mortgage)
    print(f"\nEach carries a mortgage of {LOAN_TO_VALUE:.0%} of its median price.")
    for house, due, chance, gap in zip(HOUSES, mortgage, risk, missing, strict=True):
        print(f"  {house:12s} owes {due:3.0f}; not covered: {chance:5.1%}", end="")
        print(f" of the time, {gap:4.1f} short in the mean")
    return mortgage


def show_dealer(dist: PredictiveDistribution, price: Array, ideal: Array) -> None:
    """Print what offers cost on houses that were not used, by how they are made."""
    order = newsvendor(dist, underage=UNDERAGE, overage=OVERAGE)
    # The best that one margin for all could have done, chosen knowing the prices.
    margins = np.linspace(0.6, 1.0, 81)
    flat = min(offer_cost(price, m * dist.median()).mean() for m in margins)
    print(f"\nMean cost of an offer on {len(price)} other houses")
    for name, cost in (
        ("expected price", offer_cost(price, dist.mean()).mean()),
        ("median less one margin for all, in hindsight", flat),
        ("critical fractile of each house", offer_cost(price, order.action).mean()),
        ("the same, by the law that made the prices", offer_cost(price, ideal).mean()),
    ):
        print(f"  {name:46s}{cost:5.1f}")
    print(f"The forecasts promised {order.expected_cost.mean():.1f} for the fractile.")


def draw_prices(axes: Axes, five: PredictiveDistribution, mortgage: Array) -> None:
    """Draw the chances that three houses fetch a price, and their mortgages."""
    grid = np.linspace(50.0, 750.0, 701)
    for row, colour in DRAWN.items():
        house = five[row]
        chance = house.sf(grid[:, None])[:, 0]
        axes.plot(grid, chance, color=colour, label=list(HOUSES)[row])
        due = mortgage[row]
        axes.plot(due, house.sf(due), "o", color=colour)
    axes.set(
        xlabel="Price in thousands",
        ylabel="Chance that the house fetches more",
        title="Dots: the chance to cover the mortgage",
        ylim=(0.0, 1.02),
        xlim=(50.0, 750.0),
    )
    axes.legend(frameon=False)


def draw_offers(axes: Axes, five: PredictiveDistribution) -> None:
    """Draw the expected cost of offers, and the best ones."""
    shares = np.linspace(0.6, 1.1, 101)
    median = five.median()
    best = best_action(five, offer_cost, shares * median[:, None], keep_table=True)
    assert best.table is not None
    for row, colour in DRAWN.items():
        axes.plot(shares, best.table[row], color=colour)
        share = best.action[row] / median[row]
        axes.plot(share, best.expected_loss[row], "o", color=colour)
    axes.set(
        xlabel="Offer as a share of the median price",
        ylabel="Expected cost in thousands",
        title="Dots: the best offers",
        ylim=(0.0, None),
    )


def main() -> None:
    """Learn from sales; ask for a seller and for a dealer; draw."""
    rng = np.random.default_rng(4)
    X, price, _ = simulate_sales(600, rng)
    X_test, price_test, ideal = simulate_sales(1000, rng)
    model = LocalExpertRegressor(
        strategy="joint", bounds=(0.0, np.inf), random_state=0
    ).fit(X, price)

    five = model.predict_dist(np.array(list(HOUSES.values())))
    mortgage = show_sellers(five)
    dist = model.predict_dist(X_test)
    due = LOAN_TO_VALUE * dist.median()
    chance = dist.cdf(due)
    print(f"Of {len(due)} other houses with such mortgages {chance.mean():.1%} were")
    print(f"said to miss them; {(price_test <= due).mean():.1%} did.")
    show_dealer(dist, price_test, ideal)

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8))
    draw_prices(left, five, mortgage)
    draw_offers(right, five)
    figure.tight_layout()
    figure.savefig("house_price_risk.png", dpi=120)
    print("\nWrote house_price_risk.png")


if __name__ == "__main__":
    main()
