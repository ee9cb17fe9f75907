"""What each step of the talk's pipeline earns, on scikit-learn's diabetes table.

    python benchmarks/talk_steps.py
    python benchmarks/talk_steps.py --experts logistic --splits 0

Local experts of one kind of classifier on 25 thresholds on y; their probabilities raw
or calibrated out of fold; joined by the talk's spline of ten degrees of freedom through
p against y, by interpolation (pchip), or by the spline in probits of this package.
Beside them the default. Three splits of 70 and 30 %. CRPS is shown as a ratio to the
default's, the log score as the difference from it; coverage is that of 80 % intervals.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from typing import Any

import pandas as pd
from lightgbm import LGBMClassifier
from records import Records
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from localexpert import LocalExpertRegressor, RawSpline


def boosted() -> Any:
    """Return XGBoost's classifier, or LightGBM's where that is not installed."""
    try:
        from xgboost import XGBClassifier
    except ModuleNotFoundError:
        return LGBMClassifier(n_estimators=100, num_threads=1, verbose=-1)
    return XGBClassifier(n_estimators=100, n_jobs=1)


EXPERTS: dict[str, Any] = {
    "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": lambda: RandomForestClassifier(200, random_state=0),
    "boosting": boosted,
}
CALIBRATORS = ("none", "isotonic", "bagged_isotonic", "bbq", "enir", "auto")
SMOOTHINGS: dict[str, Any] = {
    "probits": "auto",
    "df 10": RawSpline("smoothing_spline", df=10),
    "pchip": "pchip",
}


def score(split: int, model: LocalExpertRegressor) -> dict[str, float]:
    """Fit on 70 % of the rows, and judge on the others."""
    X, y = load_diabetes(return_X_y=True)
    parts = train_test_split(X, y, test_size=0.3, random_state=split)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dist = model.fit(parts[0], parts[2]).predict_dist(parts[1])
    low, high = dist.interval(0.8).T
    truth = parts[3]
    return {
        "crps": float(dist.crps(truth).mean()),
        "log": float(-dist.logpdf(truth).mean()),
        "cover": float(((truth >= low) & (truth <= high)).mean()),
        "cpu": round(time.process_time() - start, 1),
    }


def main() -> None:
    """Run what is not recorded yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experts", nargs="*", default=list(EXPERTS))
    parser.add_argument("--calibrators", nargs="*", default=CALIBRATORS)
    parser.add_argument("--splits", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--fresh", action="store_true")
    given = parser.parse_args()
    records = Records("talk_steps", "default", fresh=given.fresh)
    base = pd.DataFrame(
        records.measure(
            f"default/{split}",
            lambda s=split: score(s, LocalExpertRegressor(random_state=0)),
        )
        for split in given.splits
    )
    print(
        f"default: CRPS {base['crps'].mean():.2f}, log score {base['log'].mean():.3f},"
    )
    print(f"coverage {base['cover'].mean():.3f}, {base['cpu'].mean():.0f} s\n")
    print(f"{'experts':10}{'calibrator':17}{'spline':9}  CRPS     log  cover  CPU s")
    for expert, calibrator, how in product(
        given.experts, given.calibrators, SMOOTHINGS
    ):
        settings: dict[str, Any] = {"frame": None, "strategy": "independent"}
        settings["calibrator"] = None if calibrator == "none" else calibrator
        settings["smoothing"] = SMOOTHINGS[how]
        found = pd.DataFrame(
            records.measure(
                f"{expert}/{calibrator}/{how}/{split}",
                lambda s=split, e=expert, settings=settings: score(
                    s,
                    LocalExpertRegressor(EXPERTS[e](), random_state=0, **settings),
                ),
            )
            for split in given.splits
        )
        ratio = (found["crps"] / base["crps"]).mean()
        gap = (found["log"] - base["log"]).mean()
        rest = f"{found['cover'].mean():7.3f}{found['cpu'].mean():7.1f}"
        print(f"{expert:10}{calibrator:17}{how:9}{ratio:6.3f}{gap:+8.3f}{rest}")


if __name__ == "__main__":
    main()
