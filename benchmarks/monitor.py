"""False alarms and delays of the monitors, with models that were fitted.

    python benchmarks/monitor.py probabilities --histories 1000
    python benchmarks/monitor.py isotonic --histories 1000
    python benchmarks/monitor.py forecasts --histories 1000
    python benchmarks/monitor.py isotonic --own --n-fit 20 --histories 1000

A history is a model fitted on 1000 rows (or --n-fit) and 10 000 rows looked at every
100. Without a change, an alarm is false. With one (.3 in log-odds, or a fifth of the
standard deviation of y given x, from row 2000 on), the delay is from there to the look
that alarms; 8000 where none does. It is compared with the rows that give a fixed test
power .8: the two-sided one of level .05 of the offset of the log-odds at the true
slope, or of the mean with known standard deviation.

A hundred histories go at once through the processes of the monitors; the first two of
them also through the monitors themselves, which must say the same. The tolerance is
that of n_fit rows, by the true mean of p (1 - p). Hundreds are written as they are
done: what was broken off goes on.

With --own monitors of probabilities alone are fed, one by one, without a change: 10
times n_fit rows in batches of 50 or more, with the tolerance that they set themselves.
"""

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from records import Records
from scipy.special import expit, logit, ndtr
from scipy.stats import norm

from calibration import CalibrationMonitor, IsotonicCalibrator, PlattCalibrator
from calibration.drift.evidence import (
    ERRORS,
    LineBets,
    ShiftProcess,
    StepErrors,
    shift_likelihoods,
)
from calibration.drift.monitor import SIZES
from localexpert import ForecastMonitor, PredictiveDistribution
from localexpert.monitor import count_bins, shift_likelihoods_of_bins

Array = NDArray[np.float64]

ROWS, LOOK, ONSET, CHUNK, CHECKED = 10_000, 100, 2_000, 100, 2
SHIFTS = {"probabilities": 0.3, "isotonic": 0.3, "forecasts": 0.2}
THRESHOLDS = np.array([-1.35, 0.0, 1.35])
# (1.96 + .84)^2: two-sided level .05, power .8.
TEST = float((norm.ppf(0.975) + norm.ppf(0.8)) ** 2)


def true_information() -> float:
    """Return the mean of p (1 - p) of log-odds that are normal."""
    p = expit(norm.ppf((np.arange(10_000) + 0.5) / 10_000))
    return float(np.mean(p * (1.0 - p)))


@dataclass
class Probabilities:
    """Platt calibrators of normal scores, which are the true log-odds."""

    n_fit: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.fit(*self.draw(self.n_fit, 0.0))
        self.tolerance = ERRORS / np.sqrt(self.n_fit * true_information())
        # The processes of one monitor before any batch, for all histories.
        self.shift = ShiftProcess(float(self.tolerance), SIZES)
        self.line = LineBets(float(self.tolerance), self.monitor().memory)
        self.watched = [self.monitor() for _ in range(CHECKED)]
        self.steps = [StepErrors(float(self.tolerance)) for _ in range(CHUNK)]

    def fit(self, score: Array, y: Array) -> None:
        """Fit the calibrators of all histories."""
        fitted = [
            PlattCalibrator(scale="logit").fit(s, one)
            for s, one in zip(score, y, strict=True)
        ]
        zero, one = (np.array([f.predict([at])[0] for f in fitted]) for at in (0, 1))
        self.intercept = logit(zero)[:, None]
        self.slope = logit(one)[:, None] - self.intercept

    def forecast(self, score: Array) -> Array:
        """Return log-odds (100, n)."""
        return self.intercept + self.slope * score

    def monitor(self) -> CalibrationMonitor:
        """Return a monitor of the tolerance of all."""
        return CalibrationMonitor(self.n_fit, tolerance=float(self.tolerance))

    def draw(self, n: int, moved: float) -> tuple[Array, Array]:
        """Return scores and outcomes (100, n) whose log-odds have moved."""
        score = self.rng.normal(size=(CHUNK, n))
        chance = expit(score + moved)
        return score, (self.rng.uniform(size=score.shape) < chance).astype(float)

    def look(self, moved: float) -> Array:
        """Take a look; return the logarithms of the e-values (100,)."""
        score, y = self.draw(LOOK, moved)
        f = self.forecast(score)
        for k, monitor in enumerate(self.watched):
            monitor.partial_fit(expit(f[k]), y[k])
        rows = np.ones(LOOK)
        bounds = [one.step(row, rows) for one, row in zip(self.steps, f, strict=True)]
        shift, line = self.shift, self.line
        shift.step(*shift_likelihoods(f, 1.0 - y, y, shift.shifts), LOOK)
        line.step(f, 1.0 - y, y, *map(np.array, zip(*bounds, strict=True)))
        logs = np.stack([shift.log_e, line.log_e])
        shares = np.log([0.85, 0.15])[:, None]
        return np.asarray(np.logaddexp.reduce(shares + logs))


@dataclass
class Steps(Probabilities):
    """Isotonic calibrators of the same scores."""

    def fit(self, score: Array, y: Array) -> None:
        """Fit the calibrators of all histories."""
        self.fitted = [
            IsotonicCalibrator(scale="logit").fit(s, one)
            for s, one in zip(score, y, strict=True)
        ]

    def forecast(self, score: Array) -> Array:
        """Return log-odds (100, n)."""
        p = np.array([f.predict(s) for f, s in zip(self.fitted, score, strict=True)])
        least = 1.0 / (self.n_fit + 2.0)
        return logit(np.clip(p, least, 1.0 - least))


@dataclass
class Forecasts:
    """Linear models with normal errors and three features."""

    n_fit: int
    rng: np.random.Generator

    def __post_init__(self) -> None:
        self.lines, self.spreads = np.empty((CHUNK, 4)), np.empty((CHUNK, 1))
        for k in range(CHUNK):
            x, y = self._rows(self.n_fit, 0.0)
            self.lines[k] = np.linalg.lstsq(x, y)[0]
            left = np.sum((y - x @ self.lines[k]) ** 2)
            self.spreads[k] = np.sqrt(left / (self.n_fit - 4))
        settings = {"tolerance": ERRORS / float(np.sqrt(self.n_fit))}
        settings |= {"thresholds": THRESHOLDS}
        self.one = ForecastMonitor(self.n_fit, **settings)
        self.watched = [ForecastMonitor(self.n_fit, **settings) for _ in range(CHECKED)]
        p = ndtr(THRESHOLDS / 2.0)
        self.one._set_up(p * (1.0 - p))
        for one in self.watched:
            one.thresholds_ = THRESHOLDS
            one._set_up(p * (1.0 - p))

    def _rows(self, n: int, moved: float) -> tuple[Array, Array]:
        x = np.column_stack([np.ones(n), self.rng.normal(size=(n, 3))])
        return x, x[:, 1:].sum(axis=1) + moved + self.rng.normal(size=n)

    def look(self, moved: float) -> Array:
        """Take a look; return the logarithms of the e-values (100,)."""
        x = np.ones((CHUNK, LOOK, 4))
        x[..., 1:] = self.rng.normal(size=(CHUNK, LOOK, 3))
        y = x[..., 1:].sum(axis=-1) + moved + self.rng.normal(size=(CHUNK, LOOK))
        mean = np.einsum("hni,hi->hn", x, self.lines)
        for k, monitor in enumerate(self.watched):
            dist = PredictiveDistribution.from_scipy(norm(mean[k], self.spreads[k, 0]))
            monitor.partial_fit(dist, y[k])
        one, rows = self.one, np.ones(LOOK)
        pit = ndtr((y - mean) / self.spreads)
        counts = np.array([count_bins(row, row, rows) for row in pit])
        shift = one._shift_
        shift.step(*shift_likelihoods_of_bins(counts, shift.shifts), LOOK)
        one._law_.step(counts)
        for threshold, process in zip(THRESHOLDS, one._at_, strict=True):
            f = logit(np.clip(ndtr((threshold - mean) / self.spreads), 1e-3, 1 - 1e-3))
            below = (y <= threshold).astype(float)
            logs = shift_likelihoods(f, 1.0 - below, below, process.shifts)
            process.step(*logs, LOOK)
        logs = np.stack([shift.log_e, one._law_.log_e, *(at.log_e for at in one._at_)])
        shares = np.log([0.6, 0.15, *[0.25 / len(THRESHOLDS)] * len(THRESHOLDS)])
        return np.asarray(np.logaddexp.reduce(shares[:, None] + logs))


KINDS = {"probabilities": Probabilities, "isotonic": Steps, "forecasts": Forecasts}


def alarm_rows(kind: str, n_fit: int, shift: float, seed: int) -> list[float]:
    """Return the rows seen at the alarms of a hundred histories, 0 of those without."""
    histories = KINDS[kind](n_fit, np.random.default_rng(seed))
    alarm = np.zeros(CHUNK)
    for start in range(0, ROWS, LOOK):
        log_e = histories.look(shift if start >= ONSET else 0.0)
        new = (alarm == 0.0) & (log_e >= -np.log(0.05))
        alarm[new] = start + LOOK
    for k, monitor in enumerate(histories.watched):
        assert (monitor.alarm_row_ or 0.0) == alarm[k], "the monitors say otherwise"
    return [float(row) for row in alarm]


def share_of_own_alarms(kind: str, n_fit: int, seed: int) -> float:
    """Return the share of a hundred calibrators whose monitors alarm soon."""
    histories = KINDS[kind](n_fit, np.random.default_rng(seed))
    monitors = [CalibrationMonitor(n_fit) for _ in range(CHUNK)]
    look = min(max(n_fit // 2, 50), LOOK)
    for _ in range(10 * n_fit // look):
        score, y = histories.draw(look, 0.0)
        for monitor, f, one in zip(monitors, histories.forecast(score), y, strict=True):
            monitor.partial_fit(expit(f), one)
    return float(np.mean([monitor.alarm_ for monitor in monitors]))


def rows_of_fixed_test(kind: str) -> float:
    """Return the rows that give the fixed test power .8."""
    information = 1.0 if kind == "forecasts" else true_information()
    return TEST / (SHIFTS[kind] ** 2 * information)


def summarise(chunks: list[dict[str, list[float]]], kind: str) -> str:
    """Return what the histories say, a line each."""
    quiet = np.concatenate([chunk["quiet"] for chunk in chunks])
    changed = np.concatenate([chunk["changed"] for chunk in chunks])
    never = changed == 0.0
    delay = np.where(never, ROWS, changed)[never | (changed > ONSET)] - ONSET
    fixed = rows_of_fixed_test(kind)
    mean, error = delay.mean(), delay.std() / np.sqrt(len(delay))
    return (
        f"{len(quiet)} histories: false alarms {np.mean(quiet > 0.0):.1%}\n"
        f"fixed test {fixed:.0f} rows; mean delay {mean:.0f} +- {error:.0f} rows, "
        f"{mean / fixed:.2f} times; median {np.median(delay):.0f}; "
        f"before the change {np.mean(~never & (changed <= ONSET)):.1%}, "
        f"never {never.mean():.1%}"
    )


def main() -> None:
    """Go on with the histories of a run until there are enough."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--n-fit", type=int, default=1000)
    parser.add_argument("--own", action="store_true", help="monitors' own tolerance")
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    kind, n_fit = options.kind, options.n_fit
    if options.own:
        seeds = range(options.histories // CHUNK)
        shares = [share_of_own_alarms(kind, n_fit, seed) for seed in seeds]
        print(f"{kind}, fitted on {n_fit} rows: false alarms {np.mean(shares):.1%}")
        return
    records = Records("monitor", options.run, fresh=options.fresh)
    chunks = [
        records.measure(
            f"{kind}-{n_fit}-{seed}",
            lambda seed=seed: {
                "quiet": alarm_rows(kind, n_fit, 0.0, seed),
                "changed": alarm_rows(kind, n_fit, SHIFTS[kind], seed),
            },
        )
        for seed in range(options.histories // CHUNK)
    ]
    print(f"{kind}, fitted on {n_fit} rows")
    print(summarise(chunks, kind))


if __name__ == "__main__":
    main()
