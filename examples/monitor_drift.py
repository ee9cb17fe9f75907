"""
A model that ages: an alarm, a date and a cure
==============================================

A bank's classifier says how likely a loan is to be repaid late. Its probabilities were
calibrated on 1000 loans. From the 3000th new loan on, the odds of being late are 1.6
times what the model says. A monitor looks after every 100 loans, and may look as often
as it likes: if nothing is wrong, the chance that it *ever* alarms is 5 % at most. A
repeated test has no such promise.

.. image:: /images/monitor.png
   :alt: Evidence of a monitor over loans, and the offset of each hundred

It alarms at loan 3500, dates the change, and advises a shift. A test at each look would
have alarmed in 31 % of 200 histories in which nothing happens.
"""

# sphinx_gallery_thumbnail_path = "images/monitor.png"

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from calibration import CalibrationMonitor, PlattCalibrator, log_loss, plot_monitor

Array = NDArray[np.float64]

FITTED, LOOK, LOOKS, CHANGE = 1000, 100, 60, 3000
RNG = np.random.default_rng(1)


def draw(n: int, shift: float = 0.0) -> tuple[Array, Array]:
    """Return scores of loans, and whether they were late."""
    score = RNG.normal(-1.0, 1.2, size=n)
    return score, (RNG.uniform(size=n) < expit(score + shift)).astype(float)


def share_alarmed_by_tests() -> float:
    """Return how often a test at each look alarms, though nothing ever changes."""
    p = expit(RNG.normal(-1.0, 1.2, size=(200, LOOKS * LOOK)))
    late = RNG.uniform(size=p.shape) < p
    excess = np.cumsum(late - p, axis=1)[:, LOOK - 1 :: LOOK]
    spread = np.sqrt(np.cumsum(p * (1.0 - p), axis=1)[:, LOOK - 1 :: LOOK])
    alarm = np.abs(excess / spread) > norm.ppf(0.975)
    return float(alarm.any(axis=1).mean())


def main() -> None:
    """Fit, watch, follow the advice, draw the history."""
    calibrator = PlattCalibrator(scale="logit").fit(*draw(FITTED))
    monitor = CalibrationMonitor(n_fit=FITTED)
    for k in range(LOOKS):
        score, late = draw(LOOK, np.log(1.6) if k * LOOK >= CHANGE else 0.0)
        monitor.partial_fit(calibrator.predict(score), late)

    tested = share_alarmed_by_tests()
    print(f"A test at each look alarms in {tested:.0%} of quiet histories.")
    print(f"The monitor alarmed at loan {monitor.alarm_row_:g}; ", end="")
    print(f"it takes the change to be after loan {monitor.find_onset():g}.")
    advice = monitor.advise()
    print(f"Advice: {advice.action} (the odds times {np.exp(advice.offset):.2f}).")
    for action, gain in advice.evidence.items():
        print(f"  {action:16} gains {gain:6.1f} in log-likelihood")

    # What has come since the onset is kept, and corrects the forecasts.
    after = PlattCalibrator().fit_summary(monitor.recent_rows())
    score, late = draw(20_000, np.log(1.6))
    p = calibrator.predict(score)
    losses = log_loss(late, p), log_loss(late, after.predict(p))
    print(f"Log loss of new loans: {losses[0]:.4f} before, {losses[1]:.4f} after.")

    plot_monitor(monitor)
    plt.savefig("monitor.png", dpi=120)
    print("\nWrote monitor.png")


if __name__ == "__main__":
    main()
