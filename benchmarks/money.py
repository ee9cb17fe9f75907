"""What calibration earns: loans with unequal costs, and a charity's letters.

    python benchmarks/money.py --data DIR            # loans and letters
    python benchmarks/money.py --part letters        # needs no files

Loans: DIR/binary/german_numer.csv.gz (1000 applicants, 300 of them bad), with the costs
that come with it: 5 for a bad customer accepted, 1 for a good one refused; and with the
refined costs of the thesis's table 1, by which a bad one accepted costs 10 and a good
one earns 1. Random stratified splits, two thirds train. Letters: independent draws of
the people of `examples/charity_letters.py`, 10 000 asked and 20 000 others, a letter
costs 0.68; the expected gift is the mean of a `LocalExpertRegressor` fitted on those
who gave.

Five classifiers, the margins of a linear support vector machine taken through the
sigmoid as the thesis does; their scores of the training rows are out of fold (five
folds), and calibrators and thresholds are learned from these. "nothing" decides by the
scores as they are, at the threshold of Bayes; "tuned" at the threshold that would have
been best in training; all others are calibrators at the threshold of Bayes. "by gift"
is a calibrator whose rows count as the gifts expected of them.

Intervals (95 %) are of the gain over doing nothing, pair by pair: of independent draws
Student's, of splits of one table with the variance of Nadeau & Bengio (2003), which
counts that training sets overlap. Rerun to resume; a line per split or draw and
classifier.
"""

from __future__ import annotations

import argparse
import runpy
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier
from records import Records
from scipy import stats
from scipy.special import expit
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    StratifiedKFold,
    StratifiedShuffleSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from calibration import calibrator_names, compare_pair, make_calibrator
from localexpert import LocalExpertRegressor
from localexpert.risk import cost_decision, policy_profit, realised_cost

Scores = tuple[np.ndarray, np.ndarray]

COSTS = {
    "given": np.array([[0.0, 5.0], [1.0, 0.0]]),
    "refined": np.array([[-1.0, 10.0], [1.0, 0.0]]),
}
TEST_SHARE = 1.0 / 3.0
BY_GIFT = "piecewise"
CLASSIFIERS: dict[str, Any] = {
    "naive Bayes": GaussianNB(),
    "forest": RandomForestClassifier(200, random_state=0),
    "boosted trees": LGBMClassifier(num_threads=1, verbosity=-1, random_state=0),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "linear SVM": make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
}


def score_rows(model: Any, X: np.ndarray, y: np.ndarray, X_new: np.ndarray) -> Scores:
    """Return scores of the training rows, out of fold, and of new rows."""
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    is_margin = not hasattr(model, "predict_proba")
    method = "decision_function" if is_margin else "predict_proba"
    held = cross_val_predict(model, X, y, cv=folds, method=method)
    new = getattr(clone(model).fit(X, y), method)(X_new)
    return (expit(held), expit(new)) if is_margin else (held[:, 1], new[:, 1])


def run_loans(path: Path, part: str, split: int, classifier: str) -> dict[str, Any]:
    """Return the mean cost of decisions on the test rows of a split, by method."""
    table, costs = pd.read_csv(path), COSTS[part]
    y, X = table.pop("target").to_numpy(int), table.to_numpy(float)
    splitter = StratifiedShuffleSplit(1, test_size=TEST_SHARE, random_state=split)
    train, test = next(splitter.split(X, y))
    held, new = score_rows(CLASSIFIERS[classifier], X[train], y[train], X[test])

    def pay(decision: np.ndarray) -> float:
        return round(realised_cost(decision, y[test], costs), 6)

    paid = {
        "nothing": pay(cost_decision(new, costs).decision),
        "tuned": pay(new > _tune_loans(held, y[train], costs)),
        "refuse all": pay(np.ones(len(test))),
    }
    for name in calibrator_names():
        p = make_calibrator(name).fit(held, y[train]).predict(new)
        paid[name] = pay(cost_decision(p, costs).decision)
    return {"part": part, "draw": split, "classifier": classifier, "paid": paid}


def _tune_loans(p: np.ndarray, y: np.ndarray, costs: np.ndarray) -> float:
    """Return the threshold of least cost on the rows at hand."""
    cuts = np.unique(np.concatenate([[-1.0], p]))
    return float(cuts[np.argmin([realised_cost(p > cut, y, costs) for cut in cuts])])


@lru_cache(maxsize=1)
def draw_letters(draw: int) -> dict[str, Any]:
    """Return people, and what is expected of their gifts, made once a draw."""
    example = runpy.run_path(
        str(Path(__file__).parents[1] / "examples" / "charity_letters.py")
    )
    rng = np.random.default_rng([5, draw])
    asked = example["draw_people"](example["N_ASKED"], rng)
    others = example["draw_people"](example["N_OTHERS"], rng)
    gave = asked.gift > 0.0
    gifts = LocalExpertRegressor(
        center=LinearRegression(),
        strategy="joint",
        n_thresholds=9,
        bounds=(0.0, np.inf),
        random_state=0,
    ).fit(asked.known[gave], asked.gift[gave])
    expected = gifts.predict(asked.known)
    expected[gave] = gifts.oof_prediction_
    return {
        **{"asked": asked, "others": others, "gave": gave, "expected": expected},
        **{"dist": gifts.predict_dist(others.known), "cost": example["COST"]},
        "tune": example["tune_threshold"],
    }


def run_letters(draw: int, classifier: str) -> dict[str, Any]:
    """Return earned, promised and sent per 1000 people, by method."""
    d = draw_letters(draw)
    asked, others, gave, expected = (
        d[name] for name in ("asked", "others", "gave", "expected")
    )
    held, new = score_rows(CLASSIFIERS[classifier], asked.known, gave, others.known)
    amount, cost = d["dist"].mean(), d["cost"]
    threshold = max(d["tune"](held * expected, asked.gift), 1e-9)
    policies = {
        "nothing": (new, amount),
        "tuned": (new, amount * cost / threshold),
        "everyone": (np.ones(len(new)), np.full(len(new), 10.0 * cost)),
        "the truth": (others.chance, others.expected_gift),
    }
    for name in calibrator_names():
        policies[name] = make_calibrator(name).fit(held, gave).predict(new), amount
    counted = make_calibrator(BY_GIFT).fit(held, gave, expected / expected.mean())
    policies[f"{BY_GIFT}, by gift"] = counted.predict(new), amount
    rows = {name: _profit(*one, cost, others.gift) for name, one in policies.items()}
    return {
        **{"part": "letters", "draw": draw, "classifier": classifier},
        **{key: {name: row[i] for name, row in rows.items()} for i, key in _KEYS},
    }


_KEYS = ((0, "earned"), (1, "promised"), (2, "sent"))


def _profit(
    p: np.ndarray, amount: np.ndarray, cost: float, gift: np.ndarray
) -> tuple[float, float, float]:
    found = policy_profit(p, amount, cost=cost, received=gift, n_bootstrap=1)
    scale = 1000.0 / len(gift)
    return (
        round(scale * found.realised_profit, 3),
        round(scale * found.expected_profit, 3),
        round(found.share_sent, 4),
    )


def gain_interval(gains: np.ndarray, overlap: float) -> tuple[float, float]:
    """Return a mean gain and what its 95 % interval reaches to either side.

    `overlap` is the ratio of test to training rows of splits of one table, 0 of
    independent draws (Nadeau & Bengio, 2003).
    """
    n = len(gains)
    error = np.sqrt((1.0 / n + overlap) * gains.var(ddof=1))
    # Means of rounded figures carry no more digits than these.
    return round(float(gains.mean()), 9), float(stats.t.isf(0.025, n - 1) * error)


def print_gains(title: str, rows: Sequence[dict[str, Any]], key: str) -> None:
    """Print what doing nothing brings, and what each method gains over it."""
    sign, overlap = (-1.0, TEST_SHARE / (1.0 - TEST_SHARE)) if key == "paid" else (1, 0)
    shown = list(dict.fromkeys(row["classifier"] for row in rows))
    print(f"\n{title}\n\n{'method':22s}" + "".join(f"{c:>20s}" for c in shown))
    for name in rows[0][key]:
        cells = []
        for classifier in shown:
            some = [row[key] for row in rows if row["classifier"] == classifier]
            values = np.array([[one[name], one["nothing"]] for one in some])
            if name == "nothing":
                cells.append(f"{values[:, 0].mean():.4g}")
                continue
            mean, reach = gain_interval(sign * (values[:, 0] - values[:, 1]), overlap)
            star = "*" if abs(mean) > reach else " "
            cells.append(f"{mean:+.3g} +-{reach:.2g}{star}")
        print(f"{name:22s}" + "".join(f"{cell:>20s}" for cell in cells))


def print_promises(rows: Sequence[dict[str, Any]]) -> None:
    """Print promised over earned, and the regret beside that of doing nothing."""
    shown = list(dict.fromkeys(row["classifier"] for row in rows))
    print("\nLetters: promised over earned; mean share asked\n")
    print(f"{'method':22s}" + "".join(f"{c:>20s}" for c in shown))
    for name in rows[0]["earned"]:
        if name in ("tuned", "everyone"):
            continue
        cells = []
        for classifier in shown:
            some = [row for row in rows if row["classifier"] == classifier]
            earned, promised, sent = (
                np.mean([row[key][name] for row in some]) for _, key in _KEYS
            )
            cells.append(f"{promised / earned:.2f}; {100.0 * sent:.0f} %")
        print(f"{name:22s}" + "".join(f"{cell:>20s}" for cell in cells))
    print("\nLetters: what is lost beside the truth, over what doing nothing loses\n")
    for name in ("tuned", "auto", "piecewise", f"{BY_GIFT}, by gift"):
        for classifier in shown:
            some = [row["earned"] for row in rows if row["classifier"] == classifier]
            lost = np.array(
                [[e["the truth"] - e[one] for one in (name, "nothing")] for e in some]
            )
            if (lost > 0.0).all():
                found = str(compare_pair(*lost.T)).splitlines()[0]
                print(f"{name:22s}{classifier:16s}{found}")


def main() -> None:
    """Run or resume both parts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder that holds binary/")
    parser.add_argument("--part", choices=("loans", "letters"), help="default: both")
    parser.add_argument("--classifiers", nargs="*", default=list(CLASSIFIERS))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    records = Records("money", options.run, fresh=options.fresh)
    if options.part != "letters":
        if options.data is None:
            parser.error("--data is needed for the loans")
        path = options.data / "binary" / "german_numer.csv.gz"
        for part in COSTS:
            rows = [
                records.measure(
                    f"{part}-{split}-{name}",
                    lambda key=(part, split, name): run_loans(path, *key),
                )
                for split in range(options.splits)
                for name in options.classifiers
            ]
            title = f"mean cost, and gains over it; {options.splits} splits"
            print_gains(f"Loans, {part} costs: {title}", rows, "paid")
    if options.part != "loans":
        rows = [
            records.measure(
                f"letters-{draw}-{name}",
                lambda draw=draw, name=name: run_letters(draw, name),
            )
            for draw in range(options.draws)
            for name in options.classifiers
        ]
        title = "Letters: profit per 1000 people, and gains over it"
        print_gains(f"{title}; {options.draws} draws", rows, "earned")
        print_promises(rows)


if __name__ == "__main__":
    main()
