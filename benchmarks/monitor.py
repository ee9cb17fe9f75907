"""False alarms and delays of the monitors, with models that were fitted.

    python benchmarks/monitor.py probabilities --histories 1000
    python benchmarks/monitor.py forecasts --histories 1000

A history is a model fitted on 1000 rows (or --n-fit) and 10 000 rows looked at every
100. Without a change, an alarm is false. With one (.3 in log-odds, or a fifth of the
standard deviation of y given x, from row 2000 on), the delay is from there to the look
that alarms; 8000 where none does. It is compared with the rows that give a fixed test
power .8: the two-sided one of level .05 of the offset of the log-odds at the true
slope, or of the mean with known standard deviation. Histories are numbered by their
seed and written as they are done: what was broken off goes on.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import norm

from calibration import CalibrationMonitor, PlattCalibrator
from localexpert import ForecastMonitor, PredictiveDistribution

Array = NDArray[np.float64]
Monitor = CalibrationMonitor | ForecastMonitor

ROWS, LOOK, ONSET = 10_000, 100, 2_000
SHIFTS = {"probabilities": 0.3, "forecasts": 0.2}
# (1.96 + .84)^2: two-sided level .05, power .8.
TEST = float((norm.ppf(0.975) + norm.ppf(0.8)) ** 2)


def watch_probabilities(n_fit: int, shift: float, seed: int) -> Iterator[Monitor]:
    """Yield the monitor after each look at a Platt calibrator."""
    rng = np.random.default_rng(seed)

    def draw(n: int, moved: Array | float) -> tuple[Array, Array]:
        score = rng.normal(size=n)
        return score, (rng.uniform(size=n) < expit(score + moved)).astype(float)

    calibrator = PlattCalibrator(scale="logit").fit(*draw(n_fit, 0.0))
    monitor = CalibrationMonitor(n_fit)
    for start in range(0, ROWS, LOOK):
        score, y = draw(LOOK, shift if start >= ONSET else 0.0)
        yield monitor.partial_fit(calibrator.predict(score), y)


def watch_forecasts(n_fit: int, shift: float, seed: int) -> Iterator[Monitor]:
    """Yield the monitor after each look at a linear model with normal errors."""
    rng = np.random.default_rng(seed)

    def draw(n: int, moved: float) -> tuple[Array, Array]:
        x = np.column_stack([np.ones(n), rng.normal(size=(n, 3))])
        return x, x.sum(axis=1) + moved + rng.normal(size=n)

    x, y = draw(n_fit, 0.0)
    line = np.linalg.lstsq(x, y)[0]
    spread = float(np.sqrt(np.sum((y - x @ line) ** 2) / (n_fit - len(line))))
    monitor = ForecastMonitor(n_fit)
    for start in range(0, ROWS, LOOK):
        x, y = draw(LOOK, shift if start >= ONSET else 0.0)
        dist = PredictiveDistribution.from_scipy(norm(x @ line, spread))
        yield monitor.partial_fit(dist, y)


WATCH: dict[str, Callable[[int, float, int], Iterator[Monitor]]] = {
    "probabilities": watch_probabilities,
    "forecasts": watch_forecasts,
}


def alarm_row(kind: str, n_fit: int, shift: float, seed: int) -> float | None:
    """Return the rows seen at the alarm of a history, None if there is none."""
    for monitor in WATCH[kind](n_fit, shift, seed):
        if monitor.alarm_:
            return monitor.alarm_row_
    return None


def rows_of_fixed_test(kind: str) -> float:
    """Return the rows that give the fixed test power .8."""
    if kind == "forecasts":
        return TEST / SHIFTS[kind] ** 2
    score = norm.ppf((np.arange(10_000) + 0.5) / 10_000)
    p = expit(score)
    return TEST / (SHIFTS[kind] ** 2 * float(np.mean(p * (1.0 - p))))


def summarise(rows: list[dict[str, float | None]], kind: str) -> str:
    """Return what the histories say, a line each."""
    false = np.array([row["quiet"] is not None for row in rows])
    changed = np.array([row["changed"] or ROWS for row in rows])
    delay = changed[changed > ONSET] - ONSET
    fixed = rows_of_fixed_test(kind)
    mean, error = delay.mean(), delay.std() / np.sqrt(len(delay))
    return (
        f"{len(rows)} histories: false alarms {false.mean():.1%} of them\n"
        f"fixed test {fixed:.0f} rows; mean delay {mean:.0f} +- {error:.0f} rows, "
        f"{mean / fixed:.2f} times; median {np.median(delay):.0f}; "
        f"before the change {np.mean(changed <= ONSET):.1%}, "
        f"never {np.mean(changed == ROWS):.1%}"
    )


def main() -> None:
    """Go on with the histories of a file until there are enough."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=WATCH)
    parser.add_argument("--histories", type=int, default=20)
    parser.add_argument("--n-fit", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    kind, n_fit = options.kind, options.n_fit
    out = options.out or Path(f"monitor_{kind}_{n_fit}.jsonl")
    rows = [json.loads(row) for row in out.open()] if out.exists() else []
    with out.open("a", encoding="utf-8") as file:
        for seed in range(len(rows), options.histories):
            quiet = alarm_row(kind, n_fit, 0.0, seed)
            changed = alarm_row(kind, n_fit, SHIFTS[kind], seed)
            rows.append({"seed": seed, "quiet": quiet, "changed": changed})
            file.write(json.dumps(rows[-1]) + "\n")
            file.flush()
    print(f"{kind}, fitted on {n_fit} rows")
    print(summarise(rows[: options.histories], kind))


if __name__ == "__main__":
    main()
