"""Seconds and memory of a default fit against the number of rows, beside NGBoost.

    python benchmarks/regression_speed.py                      # 10^3 to 10^5 rows
    python benchmarks/regression_speed.py --rows 1000000 --strategy shared
    python benchmarks/regression_speed.py --parallel           # gain of n_jobs=2

Data: the first Friedman function of 20 uniform features with noise that grows with
one of them. NGBoost: 2000 trees, rate .02, patience 50 on a tenth of the rows, if it
is installed. Every run is a process of its own, warmed by a fit of 500 rows, so its
peak memory is its own; both methods of one size run one after the other, and ratios
are of that pair. Rerun to resume; one JSON line per run; draws regression_speed.png.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from importlib.util import find_spec
from typing import Any

import numpy as np
from records import Records

N_FEATURES = 20
N_TEST = 10_000


def make_data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features and a target whose noise depends on the sixth feature."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, N_FEATURES))
    signal = 10.0 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20.0 * (X[:, 2] - 0.5) ** 2
    signal += 10.0 * X[:, 3] + 5.0 * X[:, 4]
    return X, signal + (0.5 + 2.0 * X[:, 5]) * rng.normal(size=n)


def fit_ours(X: np.ndarray, y: np.ndarray, strategy: str, jobs: int) -> Any:
    """Fit ours and return a function that gives distributions."""
    from localexpert import LocalExpertRegressor

    model = LocalExpertRegressor(strategy=strategy, random_state=0, n_jobs=jobs)
    return model.fit(X, y).predict_dist


def fit_ngboost(X: np.ndarray, y: np.ndarray) -> Any:
    """Fit NGBoost, stopped by a tenth, and return a function that gives them."""
    rows = np.random.default_rng(0).permutation(len(y))
    held, train = np.split(rows, [len(y) // 10])
    return boost_normals(X, y, train, held)


def boost_normals(X: np.ndarray, y: np.ndarray, train: Any, held: Any) -> Any:
    """Fit NGBoost on some rows, stopped by others; return what gives distributions."""
    from ngboost import NGBRegressor

    model = NGBRegressor(
        n_estimators=2000, learning_rate=0.02, verbose=False, random_state=0
    )
    model.fit(
        X[train], y[train], X_val=X[held], Y_val=y[held], early_stopping_rounds=50
    )
    return model.pred_dist


def fit_independent(X: np.ndarray, y: np.ndarray, jobs: int) -> Any:
    """Fit ours with a classifier that has no threads of its own."""
    from sklearn.ensemble import RandomForestClassifier

    from localexpert import LocalExpertRegressor

    expert = RandomForestClassifier(50, min_samples_leaf=5, random_state=0)
    model = LocalExpertRegressor(
        expert, frame=None, calibrator=None, random_state=0, n_jobs=jobs
    )
    return model.fit(X, y).predict_dist


def run_child(method: str, n: int, strategy: str, jobs: int) -> dict[str, Any]:
    """Fit once in this process and say what it cost."""
    fits = {
        "ours": lambda X, y: fit_ours(X, y, strategy, jobs),
        "ngboost": fit_ngboost,
        "independent": lambda X, y: fit_independent(X, y, jobs),
    }
    fits[method](*make_data(500, 2))
    X, y = make_data(n, 0)
    start, used = time.perf_counter(), time.process_time()
    predict = fits[method](X, y)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    X_test, y_test = make_data(N_TEST, 1)
    dist = predict(X_test)
    loss = -float(np.mean(dist.logpdf(y_test)))
    asked = time.perf_counter()
    if method != "ngboost":
        dist.cdf(y_test), dist.pdf(y_test), dist.ppf(0.3), dist.crps(y_test)
        dist.mean(), dist.std(), dist.skew(), dist.kurtosis()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "method": method,
        "n": n,
        "strategy": strategy,
        "jobs": jobs,
        "fit_s": seconds,
        "cpu_s": used,
        "ask_s": time.perf_counter() - asked,
        "nll": loss,
        "peak_gb": peak,
    }


def run_apart(method: str, n: int, strategy: str, jobs: int) -> dict[str, Any]:
    """Run `run_child` in a process of its own."""
    options = [method, str(n), strategy, str(jobs)]
    done = subprocess.run(
        [sys.executable, __file__, "--child", *options],
        check=True,
        capture_output=True,
        text=True,
    )
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print cost by size, with ratios where both methods ran."""
    theirs = {row["n"]: row["fit_s"] for row in rows if row["method"] == "ngboost"}
    print(
        f"{'method':12s} {'rows':>8s} {'fit s':>8s} {'CPU s':>8s} {'GB':>6s} "
        f"{'NLL':>7s} / NGBoost"
    )
    for row in rows:
        ratio = row["fit_s"] / theirs.get(row["n"], np.nan)
        print(
            f"{row['method']:12s} {row['n']:8d} {row['fit_s']:8.2f} "
            f"{row['cpu_s']:8.2f} {row['peak_gb']:6.2f} {row['nll']:7.3f} {ratio:9.3f}"
        )


def draw(rows: list[dict[str, Any]]) -> None:
    """Draw seconds against rows, both on log scales."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    names = sorted({(row["method"], row["strategy"]) for row in rows})
    for method, strategy in names:
        some = [r for r in rows if (r["method"], r["strategy"]) == (method, strategy)]
        some.sort(key=lambda row: row["n"])
        label = method if method == "ngboost" else f"{method}, {strategy}"
        axes.loglog(
            [r["n"] for r in some], [r["fit_s"] for r in some], "o-", label=label
        )
    axes.set(xlabel="rows", ylabel="seconds to fit (2 cores)")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    axes.figure.savefig("regression_speed.png", dpi=150)


def main() -> None:
    """Run or resume the sizes asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--strategy", default="auto")
    parser.add_argument("--parallel", action="store_true")
    parser.add_argument("--alone", action="store_true", help="without NGBoost")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        method, n, strategy, jobs = options.child
        print(json.dumps(run_child(method, int(n), strategy, int(jobs))))
        return
    jobs = [("ours", n, options.strategy, 2) for n in options.rows]
    if options.parallel:
        jobs = [("independent", 2000, "independent", k) for k in (1, 2)]
    elif find_spec("ngboost") and not options.alone:
        jobs += [("ngboost", n, "", 1) for n in options.rows]
        jobs.sort(key=lambda job: job[1])
    records = Records("regression_speed", "latest", fresh=options.fresh)
    rows = [
        records.measure("-".join(map(str, job)), lambda job=job: run_apart(*job))
        for job in jobs
    ]
    if options.parallel:
        print_table(rows)
        gain = rows[0]["fit_s"] / rows[1]["fit_s"]
        print(f"n_jobs=2 is {gain:.2f} times as fast as n_jobs=1 (ideal: 2)")
    else:
        # All that the run holds: sizes may have been asked for one by one.
        every = [r for r in records.rows.values() if r["method"] != "independent"]
        every.sort(key=lambda row: (row["n"], row["method"]))
        print_table(every)
        draw(every)


if __name__ == "__main__":
    main()
