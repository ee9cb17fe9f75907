"""Forecasts moved to another prior beside calibration on labelled rows that have it.

    python benchmarks/other_priors.py --data DIR            # 5 splits of every table
    python benchmarks/other_priors.py --data DIR --sets adult --splits 0
    python benchmarks/other_priors.py --data DIR --coverage # intervals, simulated

DIR holds NAME.csv.gz files of two classes, target last. A classifier is fitted on one
half of the rows and a calibrator on a quarter of them, at the prior of the table. The
last quarter is halved and both halves are re-sampled to another prior, .02, .1, .3, .5
or .8, as many rows as calibrated: in one half labels are known, and the same calibrator
is fitted to them; in the other nothing is, and the log losses of the three ways are
taken. Tables of fewer than 2000 rows, or 100 of a class, are left out. Rerun to resume.

The last line says what of it is too few rows: as many are drawn from a law under which
the moved forecasts are exact, the prior is estimated from these, and what is lost is
compared with moving them to the true prior.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from auto_scores import load, score_split
from records import Records
from sklearn.model_selection import cross_val_predict

from calibration import (
    IsotonicCalibrator,
    LogisticCalibrator,
    PlattCalibrator,
    estimate_prior,
    log_loss,
    shift_prior,
)

PRIORS = (0.02, 0.1, 0.3, 0.5, 0.8)
CLASSIFIERS = ("boosted trees", "logistic", "naive Bayes")


def resample(
    rng: np.random.Generator, y: np.ndarray, rows: np.ndarray, prior: float, n: int
) -> np.ndarray:
    """Return n rows of those given, with repetitions, a share `prior` of class 1."""
    ones = rng.choice(rows[y[rows] == 1], round(prior * n))
    zeros = rng.choice(rows[y[rows] == 0], n - len(ones))
    return np.concatenate([ones, zeros])


def lose_exactly(
    rng: np.random.Generator, q: np.ndarray, prior: float, old: float, n: int
) -> dict[str, float]:
    """Return what the estimated and the true prior lose where forecasts are exact.

    Rows with forecasts q make up the classes in proportion to q and 1 - q.
    """
    one, zero = q / q.sum(), (1.0 - q) / (1.0 - q).sum()
    mix = prior * one + (1.0 - prior) * zero
    true = prior * one / mix
    said = old * one / (old * one + (1.0 - old) * zero)
    drawn = said[rng.choice(len(q), n, p=mix / mix.sum())]
    told = shift_prior(said, old, estimate_prior(drawn, old).prior)
    # The loss to be expected: of each row both outcomes, as often as they are.
    weights = np.concatenate([mix * true, mix * (1.0 - true)])
    y = np.repeat([1, 0], len(q))
    return {
        name: log_loss(y, np.tile(p, 2), sample_weight=weights, clip=1e-15)
        for name, p in (("exact_em", told), ("exact_given", true))
    }


def run(path: Path, split: int, classifier: str) -> dict[str, Any]:
    """Return log losses of the three ways at each prior."""
    held = score_split(*load(path, "halves"), "halves", split, classifier)
    old, y_old, new, y = held["cal0"], held["y0"], held["test0"], held["test_y"]
    calibrator = LogisticCalibrator().fit(old, y_old)
    p, p_old = calibrator.predict(new), cross_val_predict(calibrator, old, y_old)
    rng = np.random.default_rng([split, 19])
    order = rng.permutation(len(y))
    known, unknown = order[: len(y) // 2], order[len(y) // 2 :]
    out: dict[str, Any] = {"ds": path.name.split(".")[0], "classifier": classifier}
    for prior in PRIORS:
        labelled = resample(rng, y, known, prior, len(y_old))
        rows = resample(rng, y, unknown, prior, len(y_old))
        told = estimate_prior(p[rows], calibrator.base_rate_, p_old=p_old, y_old=y_old)
        share = told.prior
        ways = {
            "labelled": LogisticCalibrator()
            .fit(new[labelled], y[labelled])
            .predict(new[rows]),
            "em": shift_prior(p[rows], calibrator.base_rate_, share),
            "given": shift_prior(p[rows], calibrator.base_rate_, prior),
            "nothing": p[rows],
        }
        out[str(prior)] = {
            **{name: log_loss(y[rows], q) for name, q in ways.items()},
            **lose_exactly(rng, ways["given"], prior, calibrator.base_rate_, len(rows)),
            "prior": told.prior,
            "held": bool(told.interval[0] <= prior <= told.interval[1]),
        }
    return out


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print ratios of mean log losses to those of labelled rows, by prior and set."""
    sets = sorted({row["ds"] for row in rows})
    print(f"{'set':14}" + "".join(f"{prior:>18}" for prior in PRIORS))
    every: dict[tuple[str, float], list[float]] = {}
    for ds in sets:
        own = [row for row in rows if row["ds"] == ds]
        line = f"{ds:14}"
        for prior in PRIORS:
            mean = {
                way: np.mean([row[str(prior)][way] for row in own])
                for way in ("labelled", "em", "given", "exact_em", "exact_given")
            }
            ratios = {way: mean[way] / mean["labelled"] for way in ("em", "given")}
            ratios["exact"] = mean["exact_em"] / mean["exact_given"]
            for way, ratio in ratios.items():
                every.setdefault((way, prior), []).append(ratio)
            line += f"{ratios['em']:>9.3f}{ratios['given']:>9.3f}"
        print(line)
    for way in ("em", "given", "exact"):
        means = [np.exp(np.mean(np.log(every[way, prior]))) for prior in PRIORS]
        total = np.exp(np.mean(np.log(means)))
        print(f"{way:14}" + "".join(f"{m:>18.4f}" for m in means) + f"{total:>10.4f}")


def print_coverage(n_samples: int) -> None:
    """Print how often intervals hold the prior: labels of own rows, by folds, none."""
    print(
        f"{'':10}{'m':>6}{'n':>7}{'prior':>7}{'own rows':>10}{'folds':>10}{'none':>10}"
    )
    for m, n, new in (
        (1000, 1000, 0.02),
        (1000, 5000, 0.02),
        (1000, 5000, 0.1),
        (500, 2000, 0.3),
        (2000, 20_000, 0.3),
    ):
        for kind in (PlattCalibrator, IsotonicCalibrator):
            hits = np.zeros((n_samples, 3), dtype=bool)
            for seed in range(n_samples):
                rng = np.random.default_rng(seed)
                y = (rng.uniform(size=m) < 0.5).astype(int)
                scores = rng.normal(1.5 * y)
                fresh = rng.normal(1.5 * (rng.uniform(size=n) < new))
                fitted = kind(scale="real").fit(scores, y)
                p, old = fitted.predict(fresh), fitted.base_rate_
                folds = cross_val_predict(fitted, scores, y)
                for k, p_old in enumerate((fitted.predict(scores), folds, None)):
                    known = {} if p_old is None else {"p_old": p_old, "y_old": y}
                    low, high = estimate_prior(p, old, **known).interval
                    hits[seed, k] = low <= new <= high
            told = "".join(f"{share:>10.3f}" for share in hits.mean(axis=0))
            print(f"{kind.__name__[:8]:10}{m:>6}{n:>7}{new:>7}{told}", flush=True)


def main() -> None:
    """Run or resume the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of CSV files")
    parser.add_argument("--sets", nargs="*", default=None)
    parser.add_argument("--splits", nargs="*", type=int, default=list(range(5)))
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--coverage", action="store_true", help="intervals alone")
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    if options.coverage:
        print_coverage(1000)
        return
    records = Records("other_priors", options.run, fresh=options.fresh)
    start, rows = time.perf_counter(), []
    for split in options.splits:
        for path in sorted(options.data.glob("*.csv.gz")):
            name = path.name.split(".")[0]
            if options.sets is not None and name not in options.sets:
                continue
            counts = np.bincount(load(path, "halves")[1])
            if counts.sum() < 2000 or counts.min() < 100:
                continue
            for classifier in CLASSIFIERS:
                key = f"{name}-{split}-{classifier}"
                late = time.perf_counter() - start > options.seconds
                if late and key not in records.rows:
                    continue
                rows.append(
                    records.measure(
                        key,
                        lambda path=path, split=split, classifier=classifier: run(
                            path, split, classifier
                        ),
                    )
                )
    print_table(rows)


if __name__ == "__main__":
    main()
