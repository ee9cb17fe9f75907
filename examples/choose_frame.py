"""
Which frame: where thresholds lie decides what experts learn
============================================================

A shop sells more every month and on warm days. Busy days vary more than quiet days.
Thresholds on sales themselves use their experts to tell months apart. Thresholds around
an expected value (``frame="center"``) ask about the surprise. Scaled by its usual size
(``"standardize"``) they ask the same of busy and quiet days. ``"auto"`` compares the
frames on days held out, before it fits any expert.

.. image:: /images/frames.png
   :alt: Thresholds on sales, and on what is left after the mean
"""

# sphinx_gallery_thumbnail_path = "images/frames.png"

from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression

from localexpert import LocalExpertRegressor, crps_score, interval_coverage

Array = NDArray[np.float64]
Frame = Literal["center", "standardize", "auto"] | None
FRAMES: tuple[Frame, ...] = (None, "center", "standardize", "auto")


def draw_days(n: int, seed: int) -> tuple[Array, Array]:
    """Return month, temperature and weekend of days, and the sales."""
    rng = np.random.default_rng(seed)
    month = rng.uniform(0.0, 36.0, size=n)
    warmth = 12.0 - 9.0 * np.cos(2.0 * np.pi * month / 12.0) + 3.0 * rng.normal(size=n)
    weekend = (rng.uniform(size=n) < 2.0 / 7.0).astype(float)
    usual = 40.0 + 3.0 * month + 2.0 * warmth + 25.0 * weekend
    surprise = rng.gamma(4.0, size=n) / 2.0 - 2.0
    return np.column_stack([month, warmth, weekend]), usual + 0.12 * usual * surprise


def main() -> None:
    """Fit every frame, score on new days, draw where the thresholds lie."""
    X, y = draw_days(500, seed=0)
    X_new, y_new = draw_days(4000, seed=1)
    models = {}
    print("frame          out of fold      new days    90 % intervals hold")
    for frame in FRAMES:
        model = LocalExpertRegressor(
            frame=frame,
            center=LinearRegression(),
            strategy="shared",
            n_thresholds=15,
            random_state=0,
        ).fit(X, y)
        dist = model.predict_dist(X_new)
        held_out = crps_score(y, model.oof_distribution_)
        score = crps_score(y_new, dist)
        covered = interval_coverage(y_new, dist, coverage=0.9)
        models[frame] = model
        print(f"{frame!s:12s} {held_out:12.3f}  {score:12.3f}  {covered:18.1%}")
    choice = models["auto"].report_.choices["frame"]
    print(f'\n"auto" chose {choice["kind"]!r}; before any expert the frames scored')
    print({kind: round(loss, 2) for kind, loss in choice["losses"].items()})

    figure, panels = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
    # Out-of-fold means of a frame around the centre are as good as the centre.
    centred = y - models["center"].oof_prediction_
    for axes, values, frame in (
        (panels[0], y, None),
        (panels[1], centred, "center"),
    ):
        axes.scatter(X[:, 0], values, s=7, alpha=0.5)
        for threshold in models[frame].thresholds_:
            axes.axhline(threshold, color="C1", lw=0.7, alpha=0.7)
        axes.set(title=f"frame={frame!r}", xlabel="Month")
    panels[0].set_ylabel("Sales, and 15 thresholds")
    panels[1].set_ylabel("Surprise, and 15 thresholds")
    figure.savefig("frames.png", dpi=120)
    print("Wrote frames.png")


if __name__ == "__main__":
    main()
