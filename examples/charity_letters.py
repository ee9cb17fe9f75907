"""
Letters that ask for a gift: what calibration earns
===================================================

A letter costs 0.68. It is worth it where the chance of an answer times the expected
gift exceeds that. People who give much answer seldom, so neither number is enough. We
simulate such a charity (after the KDD-98 competition). Naive Bayes learns the chance,
and it is far too sure. A distribution of gifts is learned from those who gave.

.. image:: /images/charity_letters.png
   :alt: Reliability of naive Bayes before and after; profit by the threshold on gifts

Then we decide on 20 000 other people in four ways: by the chances as they are, by
calibrated chances, by chances calibrated with rows that count as their expected gifts,
and by a threshold tuned on past letters.

The chances as they are promise three and a half times what they earn. Calibrated
chances earn more. Their promise is still too high, since likely givers give less than
others with the same chance. Rows that count as their expected gifts make the promise
true. The tuned threshold earns as much as calibration, and promises nothing.
"""

# sphinx_gallery_thumbnail_path = "images/charity_letters.png"

from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

from calibration import (
    CalibratedClassifier,
    PiecewiseLogisticCalibrator,
    reliability_curve,
)
from localexpert import LocalExpertRegressor
from localexpert.risk import PolicyProfit, policy_profit

Array = NDArray[np.float64]

COST = 0.68
N_ASKED, N_OTHERS = 10_000, 20_000


class People(NamedTuple):
    """What is known of n people, what they would give, and the truth behind it."""

    known: Array  # (n, 6)
    gift: Array  # (n,), 0 of those who would not answer
    chance: Array  # (n,), of an answer
    expected_gift: Array  # (n,), of one who answers


def draw_people(n: int, rng: np.random.Generator) -> People:
    """Return n people; the larger their gifts, the rarer their answers."""
    usual = rng.normal(2.5, 0.6, n)  # log of the gifts they used to give
    loyalty = rng.gamma(2.0, size=n)
    months = rng.gamma(3.0, 5.0, n)  # since the last gift
    wealth = rng.normal(size=n)
    # Three columns that say nearly the same: naive Bayes counts them all.
    letters = rng.poisson(3.0 + 3.0 * loyalty)
    answers = rng.binomial(letters, expit(0.5 * loyalty - 1.0))
    years = loyalty + rng.gamma(2.0, size=n)
    odds = 0.45 * loyalty - 0.03 * months - 1.3 * (usual - 2.5) + 0.2 * wealth - 3.4
    middle, spread = 0.4 + 0.85 * usual + 0.15 * wealth, 0.35 + 0.1 * np.abs(wealth)
    answered = rng.uniform(size=n) < expit(odds)
    amount = np.exp(middle + spread * rng.normal(size=n))
    known = np.column_stack([usual, letters, answers, years, months, wealth])
    gift = np.where(answered, amount, 0.0)
    return People(known, gift, expit(odds), np.exp(middle + 0.5 * spread**2))


def tune_threshold(value: Array, gift: Array) -> float:
    """Return the t for which asking where value > t would have earned the most."""
    order = np.argsort(-value, kind="stable")
    earned = np.cumsum(gift[order] - COST)
    # A threshold stands between two people whose values differ.
    ends = np.flatnonzero(np.diff(value[order], append=-np.inf) < 0.0)
    best = ends[int(np.argmax(earned[ends]))]
    after = value[order][best + 1] if best + 1 < len(value) else 0.0
    return float(0.5 * (value[order][best] + after))


def decide(chance: Array, amount: Any, gift: Array) -> PolicyProfit:
    """Return what comes of asking where chance times amount exceeds the cost."""
    return policy_profit(chance, amount, cost=COST, received=gift, random_state=0)


def show(name: str, profit: PolicyProfit, *, promises: bool = True) -> None:
    """Print whom a policy asks, what it promised and what it earned."""
    n = len(profit.send)
    low, high = (1000.0 * end / n for end in profit.interval)
    promised = f"{1000.0 * profit.expected_profit / n:.0f}" if promises else "-"
    print(
        f"{name:30s}{profit.share_sent:6.0%}{promised:>10s}"
        f"{1000.0 * profit.realised_profit / n:8.0f}  [{low:.0f}, {high:.0f}]"
    )


def draw_reliability(axes: Axes, answered: Array, chances: dict[str, Array]) -> None:
    """Draw how often people answered, by what was said of them."""
    for (name, chance), colour in zip(chances.items(), ("C1", "C0"), strict=False):
        curve = reliability_curve(answered, chance, n_bins=15, bands=None)
        axes.plot(
            curve.mean_prob, curve.event_rate, "o-", ms=4, color=colour, label=name
        )
    ends = (0.002, 1.0)
    axes.plot(ends, ends, color="0.6", lw=1, zorder=0)
    axes.set(
        xscale="log",
        yscale="log",
        xlim=ends,
        ylim=(0.002, 1.0),
        xlabel="Chance of an answer, as forecast",
        ylabel="Share that answered",
        title="Naive Bayes is too sure, at both ends",
    )
    axes.legend(frameon=False)


def draw_profits(
    axes: Axes, gift: Array, values: dict[str, Array], tuned: float
) -> None:
    """Draw what every threshold on the expected gift would have earned."""
    grid = np.geomspace(0.05, 5.0, 121)
    colours = ("C1", "C0", "C2", "0.6")
    for (name, value), colour in zip(values.items(), colours, strict=True):
        earned = 1000.0 * np.array([(gift - COST)[value > t].sum() for t in grid])
        axes.plot(grid, earned / len(gift), color=colour, label=name)
        at_cost = 1000.0 * (gift - COST)[value > COST].sum() / len(gift)
        axes.plot(COST, at_cost, "o", color=colour)
    value = values["as they are"]
    at_tuned = 1000.0 * (gift - COST)[value > tuned].sum() / len(gift)
    axes.plot(tuned, at_tuned, "D", color="C1", mfc="white")
    axes.axvline(COST, color="0.8", lw=1, zorder=0)
    axes.set(
        xscale="log",
        ylim=(0.0, None),
        xlabel="Ask where chance x expected gift exceeds",
        ylabel="Profit per 1000 people",
        title="Dots: at the cost of a letter; diamond: tuned",
    )
    axes.legend(frameon=False, loc="lower left")


def main() -> None:
    """Learn from those who were asked, decide on others, draw."""
    rng = np.random.default_rng(1)
    asked, others = draw_people(N_ASKED, rng), draw_people(N_OTHERS, rng)
    answered = asked.gift > 0.0
    raw = GaussianNB().fit(asked.known, answered)
    calibrated = CalibratedClassifier(GaussianNB(), "piecewise").fit(
        asked.known, answered
    )
    gifts = LocalExpertRegressor(
        center=LinearRegression(),
        strategy="joint",
        n_thresholds=9,
        bounds=(0.0, np.inf),
        random_state=0,
    ).fit(asked.known[answered], asked.gift[answered])
    print(f"{answered.sum()} of {N_ASKED} answered; those who did not would have given")
    both = np.corrcoef(asked.chance, asked.expected_gift)[0, 1]
    print(f"more: the correlation of chance and expected gift is {both:.2f}.")

    dist = gifts.predict_dist(others.known)
    chances = {
        "as they are": raw.predict_proba(others.known)[:, 1],
        "calibrated": calibrated.predict_proba(others.known)[:, 1],
    }
    # What was said of those who were asked, by models that had not seen them.
    held, expected = calibrated.oof_scores_, gifts.predict(asked.known)
    expected[answered] = gifts.oof_prediction_
    tuned = tune_threshold(held * expected, asked.gift)
    by_gift = PiecewiseLogisticCalibrator().fit(
        held, answered, expected / expected.mean()
    )
    chances["calibrated, by gift"] = by_gift.predict(chances["as they are"])

    print(f"\n{'Per 1000 people':30s} asked  promised  earned  90 % interval")
    for name, chance in chances.items():
        show(f"chances {name}", decide(chance, dist, others.gift))
    # To ask where p a > t is to ask where p (a cost / t) > cost.
    scaled = decide(chances["as they are"], dist.mean() * COST / tuned, others.gift)
    show("their threshold tuned", scaled, promises=False)
    flat = decide(chances["calibrated"], asked.gift[answered].mean(), others.gift)
    show("calibrated, one gift for all", flat)
    show("the truth", decide(others.chance, others.expected_gift, others.gift))

    values = {name: chance * dist.mean() for name, chance in chances.items()}
    values["the truth"] = others.chance * others.expected_gift
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.9))
    draw_reliability(left, (others.gift > 0.0).astype(float), chances)
    draw_profits(right, others.gift, values, tuned)
    figure.tight_layout()
    figure.savefig("charity_letters.png", dpi=120)
    print("\nWrote charity_letters.png")


if __name__ == "__main__":
    main()
