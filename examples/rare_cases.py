"""
Rare cases: trained on balanced data, used where 2 % are positive
=================================================================

Fraud is rare, so a training sample has as many frauds as honest payments. A classifier
calibrated on it says how likely fraud is among *such* payments. In use it is too high:
its mean forecast is several times the share of frauds. The likelihood ratio of a score
does not depend on how rare fraud is. Only the prior has to be changed. Payments without
labels are enough to find it.

.. image:: /images/rare_cases.png
   :alt: Reliability where frauds are rare, as trained and moved to the prior found

The log loss afterwards is that of a calibrator fitted to 10 000 labelled payments of
the new kind.
"""

# sphinx_gallery_thumbnail_path = "images/rare_cases.png"

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from calibration import (
    CalibratedClassifier,
    estimate_prior,
    log_loss,
    plot_reliability,
    prior_shift_test,
    shift_prior,
)

Array = NDArray[np.float64]

IN_USE = 0.02


def draw_payments(rng: np.random.Generator, n: int, frauds: float) -> tuple[Array, ...]:
    """Return made-up payments, and which of them are frauds."""
    y = (rng.uniform(size=n) < frauds).astype(float)
    hour = rng.normal(1.5 * y, 1.2)
    amount = rng.gamma(2.0, np.where(y == 1, 2.0, 1.0))
    country = rng.normal(1.8 * y)
    return np.column_stack([hour, np.log(amount), country, hour * country]), y


def main() -> None:
    """Move a classifier to where frauds are rare, and say what it is worth there."""
    rng = np.random.default_rng(0)
    X, y = draw_payments(rng, 6000, 0.5)
    X_new, y_new = draw_payments(rng, 20_000, IN_USE)

    model = CalibratedClassifier().fit(X, y)
    old, p = model.class_prior_[1], model.predict_proba(X_new)[:, 1]
    # The held-out scores that the calibrator learned from: how both kinds look.
    test = prior_shift_test(p, model.calibrator_.predict(model.oof_scores_), y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    p_old = cross_val_predict(model.calibrator_, model.oof_scores_, y, cv=folds)
    told = estimate_prior(p, old, p_old=p_old, y_old=y)
    low, high = told.interval
    moved = shift_prior(p, old, told.prior)

    print(f"Trained with {old:.0%} frauds, used on {len(p)} payments.")
    print(f"Has only the prior changed? p = {test.p_value:.2f}: little against it.")
    print(f"Frauds among them, from forecasts alone: {told.prior:.2%}", end="")
    print(f" (95 %: {low:.2%} to {high:.2%}); in fact {y_new.mean():.2%}.\n")

    # What labels of these payments would give: a calibrator fitted to half of them.
    half = len(p) // 2
    again = CalibratedClassifier(ensemble=True).fit(X_new[:half], y_new[:half])
    forecasts = {
        "as trained": p[half:],
        "moved, no label": moved[half:],
        "fitted to labels in use": again.predict_proba(X_new[half:])[:, 1],
    }
    seen = y_new[half:]
    print(f"{'':26}{'log loss':>10}{'mean forecast':>16}{'frauds':>9}")
    for name, q in forecasts.items():
        print(f"{name:26}{log_loss(seen, q):10.4f}{q.mean():16.2%}{seen.mean():9.2%}")

    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained")
    plot_reliability(seen, forecasts["as trained"], ax=axes[0])
    axes[0].set_xlabel("As trained: half of the payments are frauds")
    plot_reliability(seen, forecasts["moved, no label"], ax=axes[1])
    axes[1].set_xlabel("Moved to the prior that was found")
    figure.savefig("rare_cases.png", dpi=110)
    print("\nWrote rare_cases.png")


if __name__ == "__main__":
    main()
