"""
A trial with drop-outs: lives that are known in part
====================================================

When a trial ends, many patients are alive, and some have left it before. Their lives
are known only to be longer than the time they were seen. The script forecasts each
patient's life from all of that, and says how long those who are still there will live.
Then it compares two wrong ways: to take such lives as they are, or to leave them out.
Losses are those of the 48 months that could be seen.

.. image:: /images/trial_dropouts.png
   :alt: Mean forecast survival beside Kaplan-Meier's steps, and four patients' curves

Lives are simulated, so that the truth is known. Old patients leave more often. That
does no harm, because age is a feature.
"""

# sphinx_gallery_thumbnail_path = "images/trial_dropouts.png"

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from localexpert import (
    LocalExpertRegressor,
    censored,
    concordance_index,
    pit_test,
    plot_survival,
    threshold_weighted_crps,
)

Array = NDArray[np.float64]
ARMS = "control", "treated"
LONGEST = 48.0


def draw_patients(rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
    """Return age, marker and arm; lives in months; and how long each would be seen."""
    age, marker = rng.uniform(40.0, 80.0, n), rng.normal(size=n)
    arm = rng.integers(0, 2, n)
    mean = np.exp(3.4 - 0.03 * (age - 60.0) + 0.5 * arm * (marker > 0.0))
    lives = mean * rng.weibull(1.4, n)
    study = rng.uniform(12.0, LONGEST, n)
    leaves = rng.exponential(60.0 - 0.5 * (age - 40.0), n)
    return np.column_stack([age, marker, arm]), lives, np.minimum(study, leaves)


def seen_then(months: Array) -> Array:
    """Return 1 for months that could be seen, 0 for later ones."""
    return np.where(months < LONGEST, 1.0, 0.0)


def main() -> None:
    """Fit on what is known, compare with other ways, and draw."""
    rng = np.random.default_rng(3)
    X, lives, seen_for = draw_patients(rng, 600)
    months, died = np.minimum(lives, seen_for), lives <= seen_for
    y = censored(months, event=died)
    new, came, limit = draw_patients(rng, 2000)
    print(f"{died.mean():.0%} of {len(died)} deaths were seen")

    ways = {
        "known in part": (X, y),
        "taken as they are": (X, months),
        "left out": (X[died], months[died]),
        "all lives known": (X, lives),
    }
    models = {}
    truly = np.minimum(came, LONGEST).mean()
    print(f"{'way':>20}{'CRPS':>8}{'of the first 48 months':>25} (truly {truly:.1f})")
    for way, (rows, target) in ways.items():
        model = LocalExpertRegressor(effort="quick", random_state=0)
        models[way] = model.fit(rows, target)
        dist = models[way].predict_dist(new)
        loss = threshold_weighted_crps(came, dist, weight=seen_then)
        lived = dist.restricted_mean(LONGEST).mean()
        print(f"{way:>20}{loss:8.2f}{lived:25.1f}")

    dist = models["known in part"].predict_dist(new)
    cut = censored(np.minimum(came, limit), event=came <= limit)
    print(
        f"\nnew patients, cut off alike: concordance {concordance_index(cut, dist):.2f}"
    )
    print(f"p-value of calibration {pit_test(cut, dist)[1]:.2f}")
    one = dist[:1]
    old = one.given(lower=LONGEST)
    first, later = one.median()[0], old.median()[0]
    print(
        f"first of them: median life {first:.0f} months, {later:.0f} once 48 are lived"
    )

    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
    plot_survival(cut, dist, target_name="months", ax=axes[0])
    t = np.linspace(0.0, 80.0, 200)
    for i in range(4):
        label = f"{new[i, 0]:.0f} years, {ARMS[int(new[i, 2])]}"
        axes[1].plot(t, 1.0 - dist[i].cdf_at(t)[0], label=label)
    axes[1].axvspan(LONGEST, 80.0, color="grey", alpha=0.15, lw=0, label="never seen")
    axes[1].set(xlabel="months", ylabel="chance to live longer", ylim=(0.0, 1.02))
    axes[1].legend(fontsize="small")
    figure.savefig("trial_dropouts.png", dpi=110)
    print("\nWrote trial_dropouts.png")


if __name__ == "__main__":
    main()
