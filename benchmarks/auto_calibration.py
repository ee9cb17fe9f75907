"""AutoCalibrator beside every single calibrator and peers, on real tables.

    python benchmarks/auto_calibration.py --data DIR                   # 5 x 2 splits
    python benchmarks/auto_calibration.py --data DIR --protocol others
    python benchmarks/auto_calibration.py --data DIR --protocol folds  # as beta's paper
    python benchmarks/auto_calibration.py --data DIR --sets sonar oil_spill

DIR holds the folders `binary` and `multiclass` of NAME.csv.gz files, target last. See
`auto_scores.py` for the protocols, the classifiers and the cap on rows; their scores
are made once and kept under --cache. Settings of AutoCalibrator were chosen on the
first, third, ... of the binary tables by name; the others are reported apart. Log loss
with probabilities clipped to [2^-52, 1 - 2^-52]. Scores of the linear SVM are real
numbers: nothing done is not an answer there, so Platt's sigmoid stands in for it, and
methods that need a probability get expit(score). Rerun to resume; one JSON line per
table, classifier and method, with a value per split.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from auto_scores import CLASSIFIERS, Case, make_cases
from records import Records
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

import calibration as cal
from calibration.selection.auto import AutoCalibrator

AUTO = "Auto, stack"
FLOOR = 2.0**-52
# (calibration scores, their labels, test scores, scale) -> test probabilities
Method = Callable[[np.ndarray, np.ndarray, np.ndarray, str], np.ndarray]
SINGLE: dict[str, Callable[[], cal.ScoreCalibrator]] = {
    "Temperature": cal.TemperatureCalibrator,
    "Platt": cal.PlattCalibrator,
    "Logistic": cal.LogisticCalibrator,
    "Quadratic": cal.QuadraticCalibrator,
    "Beta": cal.BetaCalibrator,
    "Gaussian": cal.GaussianCalibrator,
    "AsymmetricLaplace": cal.AsymmetricLaplaceCalibrator,
    "PiecewiseLogistic": cal.PiecewiseLogisticCalibrator,
    "Histogram": cal.HistogramCalibrator,
    "Isotonic": cal.IsotonicCalibrator,
    "CenteredIsotonic": cal.CenteredIsotonicCalibrator,
    "BaggedIsotonic": lambda: cal.BaggedIsotonicCalibrator(100, random_state=0),
    "SBB": cal.SBBCalibrator,
    "ABB": cal.ABBCalibrator,
    "BBQ": cal.BBQCalibrator,
    "ENIR": cal.ENIRCalibrator,
    "ELiTE": cal.ELiTECalibrator,
    "VennAbers": cal.VennAbersCalibrator,
}
AUTOS: dict[str, Callable[[], cal.ScoreCalibrator]] = {
    AUTO: AutoCalibrator,
}
# Elsewhere: the candidates of the default menu, and two of another kind.
FEW = (
    "Temperature",
    "Platt",
    "Quadratic",
    "Beta",
    "PiecewiseLogistic",
    "ELiTE",
    "VennAbers",
    "ABB",
    "Isotonic",
    AUTO,
)


def ours(make: Callable[[], cal.ScoreCalibrator]) -> Method:
    """Return a calibrator of ours as a method."""

    def run(x: np.ndarray, y: np.ndarray, new: np.ndarray, scale: str) -> np.ndarray:
        one = make()
        if scale == "real" and scale not in one._scales:
            x, new, scale = expit(x), expit(new), "probability"
        return one.set_params(scale=scale).fit(x, y).predict(new)

    return run


def nothing(x: np.ndarray, y: np.ndarray, new: np.ndarray, scale: str) -> np.ndarray:
    """Return the scores themselves; of real scores Platt's sigmoid."""
    if scale == "real":
        return ours(cal.PlattCalibrator)(x, y, new, scale)
    return new


def peers() -> dict[str, Method]:
    """Return the peers that are installed."""
    found: dict[str, Method] = {
        "scikit-learn isotonic": lambda x, y, new, _: (
            IsotonicRegression(out_of_bounds="clip").fit(x, y).predict(new)
        ),
        "scikit-learn sigmoid": lambda x, y, new, _: _sklearn_sigmoid(x, y, new),
    }
    if importlib.util.find_spec("betacal"):
        found["betacal"] = _betacal
    if importlib.util.find_spec("venn_abers"):
        found["venn-abers"] = _venn_abers
    if importlib.util.find_spec("netcal"):
        from netcal import binning, scaling

        # Not its ENIR, which fails where scores separate the classes.
        for name, make in (
            ("netcal histogram", binning.HistogramBinning),
            ("netcal BBQ", binning.BBQ),
            ("netcal beta", scaling.BetaCalibration),
            ("netcal temperature", scaling.TemperatureScaling),
        ):
            found[name] = lambda x, y, new, scale, make=make: (
                make().fit(_unit(x, scale), y).transform(_unit(new, scale))
            )
    return found


def _unit(x: np.ndarray, scale: str) -> np.ndarray:
    return expit(x) if scale == "real" else x


def _sklearn_sigmoid(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    # The public class cross-validates an estimator; this is the fit inside it.
    from sklearn.calibration import _SigmoidCalibration

    return _SigmoidCalibration().fit(x, y).predict(new)


def _betacal(x: np.ndarray, y: np.ndarray, new: np.ndarray, scale: str) -> np.ndarray:
    from betacal import BetaCalibration

    fitted = BetaCalibration("abm").fit(_unit(x, scale)[:, None], y)
    return fitted.predict(_unit(new, scale)[:, None])


def _venn_abers(
    x: np.ndarray, y: np.ndarray, new: np.ndarray, scale: str
) -> np.ndarray:
    from venn_abers import VennAbers

    x, new = _unit(x, scale), _unit(new, scale)
    fitted = VennAbers()
    fitted.fit(np.column_stack([1 - x, x]), y)
    return fitted.predict_proba(np.column_stack([1 - new, new]))[0][:, 1]


def methods_of(protocol: str) -> dict[str, Method]:
    """Return the methods that a protocol compares."""
    made = {**SINGLE, **AUTOS}
    if protocol != "halves":
        made = {name: made[name] for name in FEW}
    mine = {name: ours(make) for name, make in made.items()}
    return {"nothing": nothing, **mine, **peers()}


def mean_log_loss(y: np.ndarray, p: np.ndarray) -> float:
    """Return the mean log loss, finite."""
    return cal.log_loss(y, p, clip=FLOOR)


def run_method(method: Method, case: Case) -> float:
    """Return the test log loss of a method, averaged over a case's classifiers."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        # Of one class, of peers: what counts here is the answer.
        warnings.simplefilter("ignore")
        answers = [method(x, y, new, case.scale) for x, y, new in case.parts]
    return mean_log_loss(case.test_y, np.clip(np.mean(answers, axis=0), 0.0, 1.0))


def run_method_on(method: Method, cases: list[Case]) -> dict[str, Any]:
    """Return the losses of a method on the splits of one table and classifier."""
    first = cases[0]
    return {
        "ds": first.ds,
        "classifier": first.classifier,
        "scale": first.scale,
        "n": first.n,
        "losses": [round(run_method(method, case), 7) for case in cases],
    }


def run_tables(records: Records, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return one row per table and classifier, with the losses of every method."""
    methods = methods_of(options.protocol)
    rows = []
    for path in table_paths(options.data, options.protocol):
        name = path.name.split(".")[0]
        if options.sets and name not in options.sets:
            continue
        for classifier in CLASSIFIERS[options.protocol]:
            keys = {one: f"{name}/{classifier}/{one}" for one in methods}
            cases: list[Case] = []
            if not all(key in records.rows for key in keys.values()):
                found = make_cases(path, options.protocol, options.cache)
                cases = [case for case in found if case.classifier == classifier]
            lines = {
                one: records.measure(
                    key, lambda one=one, cases=cases: run_method_on(methods[one], cases)
                )
                for one, key in keys.items()
            }
            losses = {one: line["losses"] for one, line in lines.items()}
            rows.append({**lines["nothing"], "losses": losses})
    return rows


def table_paths(data: Path, protocol: str) -> list[Path]:
    """Return the tables of a protocol; of two with one name the binary one."""
    binary = {path.name: path for path in sorted((data / "binary").glob("*.csv.gz"))}
    several = sorted((data / "multiclass").glob("*.csv.gz"))
    others = [path for path in several if path.name not in binary]
    return {
        "halves": [*binary.values()],
        "others": others,
        "folds": [*binary.values(), *others],
    }[protocol]


def print_table(title: str, rows: list[dict[str, Any]]) -> None:
    """Print mean log losses by classifier, the probability of harm, the worst set."""
    if not rows:
        return
    kinds = list(dict.fromkeys(row["classifier"] for row in rows))
    print(f"\n{title}: {len({row['ds'] for row in rows})} tables")
    heads = "".join(f"{kind[:13]:>14s}" for kind in kinds)
    print(f"{'mean log loss':24s}{'all':>9s}{heads}{'P(harm)':>9s}{'worst':>9s}")
    for name in sorted(rows[0]["losses"], key=lambda name: mean_of(rows, name)):
        cells = "".join(
            f"{mean_of([r for r in rows if r['classifier'] == kind], name):14.4f}"
            for kind in kinds
        )
        harm, worst = harms(rows, name)
        print(f"{name:24s}{mean_of(rows, name):9.5f}{cells}{harm:9.3f}{worst:9.4f}")


def mean_of(rows: list[dict[str, Any]], name: str) -> float:
    """Return a method's mean loss over all splits of all rows."""
    return float(np.mean([row["losses"][name] for row in rows]))


def harms(rows: list[dict[str, Any]], name: str) -> tuple[float, float]:
    """Share of cases worse than nothing, and the worst mean over a set.

    Both over scores that are probabilities; the second over tables with at least 1000
    calibration rows, all classifiers and splits of a table together.
    """
    held = [row for row in rows if row["scale"] == "probability"]
    gaps = {
        (row["ds"], row["classifier"]): np.subtract(
            row["losses"][name], row["losses"]["nothing"]
        )
        for row in held
    }
    large = {row["ds"] for row in held if row["n"] >= 1000}
    by_set = [
        np.mean([gap for key, gap in gaps.items() if key[0] == ds]) for ds in large
    ]
    harm = float(np.mean(np.concatenate(list(gaps.values())) > 1e-7))
    return harm, max(by_set, default=np.nan)


def main() -> None:
    """Run or resume the benchmark and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of tables")
    parser.add_argument("--protocol", choices=list(CLASSIFIERS), default="halves")
    parser.add_argument("--sets", nargs="*", default=None)
    default = Path(tempfile.gettempdir()) / "calibration_scores"
    parser.add_argument("--cache", type=Path, default=default, help="where scores lie")
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    options = parser.parse_args()
    run = f"{options.run}-{options.protocol}"
    records = Records("auto_calibration", run, fresh=options.fresh)
    rows = run_tables(records, options)
    if options.protocol == "halves":
        names = [p.name.split(".")[0] for p in table_paths(options.data, "halves")]
        chosen = sorted(names)[::2]
        print_table("settings chosen here", [r for r in rows if r["ds"] in chosen])
        print_table("not looked at", [r for r in rows if r["ds"] not in chosen])
    print_table("all", rows)


if __name__ == "__main__":
    main()
