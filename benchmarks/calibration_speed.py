"""Seconds and memory of the calibrators on many scores, next to peers.

    python benchmarks/calibration_speed.py            # 10^6 scores
    python benchmarks/calibration_speed.py --quick    # 10^5 scores

Every time is the median of five calls in this process, on one data set, with
compiled code warmed on 20 000 scores. A peer is fitted on the raw arrays; it is
compared with ours from the raw arrays, summary included. Peers that are not
installed are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import warnings
from collections.abc import Callable

import numpy as np
from records import Records, median_seconds, peak_extra_bytes
from sklearn.isotonic import IsotonicRegression

import calibration as cal

MEMORY_BAR = 10.0
# Scores for peers that cannot do more.
SLOW_N = 5000
BARS = {
    "summary": 0.4,
    "IsotonicCalibrator": 0.03,
    "PlattCalibrator": 0.3,
    "LogisticCalibrator": 0.3,
    "QuadraticCalibrator": 0.3,
    "TemperatureCalibrator": 0.3,
    "BetaCalibrator": 0.3,
    "HistogramCalibrator": 0.05,
    "BaggedIsotonicCalibrator": 3.0,
    "ELiTECalibrator": 1.0,
    "ENIRCalibrator": 1.5,
    "SBBCalibrator": 0.3,
    "ABBCalibrator": 0.3,
    "BBQCalibrator": 0.05,
    "KDECalibrator": 0.2,
    "DPMCalibrator": 1.0,
    "VennAbersCalibrator": 0.3,
    "predict on a map": 0.15,
}
OURS: dict[str, Callable[[], cal.ScoreCalibrator]] = {
    "IsotonicCalibrator": cal.IsotonicCalibrator,
    "CenteredIsotonicCalibrator": cal.CenteredIsotonicCalibrator,
    "PlattCalibrator": cal.PlattCalibrator,
    "LogisticCalibrator": cal.LogisticCalibrator,
    "QuadraticCalibrator": cal.QuadraticCalibrator,
    "TemperatureCalibrator": cal.TemperatureCalibrator,
    "BetaCalibrator": cal.BetaCalibrator,
    "GaussianCalibrator": cal.GaussianCalibrator,
    "AsymmetricLaplaceCalibrator": cal.AsymmetricLaplaceCalibrator,
    "PiecewiseLogisticCalibrator": cal.PiecewiseLogisticCalibrator,
    "HistogramCalibrator": cal.HistogramCalibrator,
    "BaggedIsotonicCalibrator": lambda: cal.BaggedIsotonicCalibrator(
        100, random_state=0, n_jobs=2
    ),
    "ELiTECalibrator": cal.ELiTECalibrator,
    "ENIRCalibrator": cal.ENIRCalibrator,
    "SBBCalibrator": cal.SBBCalibrator,
    "ABBCalibrator": cal.ABBCalibrator,
    "BBQCalibrator": cal.BBQCalibrator,
    "KDECalibrator": cal.KDECalibrator,
    "DPMCalibrator": cal.DPMCalibrator,
    "VennAbersCalibrator": cal.VennAbersCalibrator,
}

Fit = Callable[[np.ndarray, np.ndarray], object]


def peers() -> dict[str, tuple[str, Fit]]:
    """Peers that are installed: name -> (our counterpart, fit on raw arrays)."""
    found: dict[str, tuple[str, Fit]] = {
        "scikit-learn isotonic": (
            "IsotonicCalibrator",
            lambda x, y: IsotonicRegression(out_of_bounds="clip").fit(x, y),
        ),
        "scikit-learn sigmoid": ("PlattCalibrator", _sklearn_sigmoid),
    }
    if importlib.util.find_spec("betacal"):
        from betacal import BetaCalibration

        found["betacal"] = (
            "BetaCalibrator",
            lambda x, y: BetaCalibration("abm").fit(x[:, None], y),
        )
    if importlib.util.find_spec("venn_abers"):
        found["venn-abers (p0, p1)"] = ("IsotonicCalibrator", _venn_abers)
    if importlib.util.find_spec("netcal"):
        from netcal import binning, scaling

        def quietly(method: Callable[[], object]) -> Fit:
            return lambda x, y: method().fit(x, y)

        for name, ours, method in (
            ("netcal isotonic", "IsotonicCalibrator", binning.IsotonicRegression),
            ("netcal histogram", "HistogramCalibrator", binning.HistogramBinning),
            ("netcal beta", "BetaCalibrator", scaling.BetaCalibration),
            ("netcal temperature", "TemperatureCalibrator", scaling.TemperatureScaling),
        ):
            found[name] = (ours, quietly(method))
    return found


def slow_peers() -> dict[str, tuple[str, Fit]]:
    """Peers whose time grows with the square of n or worse, if they are installed."""
    found: dict[str, tuple[str, Fit]] = {}
    if importlib.util.find_spec("netcal"):
        from netcal import binning

        found["netcal BBQ"] = "BBQCalibrator", lambda x, y: binning.BBQ().fit(x, y)
        found["netcal ENIR"] = "ENIRCalibrator", lambda x, y: binning.ENIR().fit(x, y)
    if importlib.util.find_spec("probcal"):
        import probcal

        for name in ("BBQCalibrator", "ENIRCalibrator"):
            method = getattr(probcal, name)
            found[f"probcal {name}"] = (
                name,
                lambda x, y, method=method: method().fit(x, y),
            )
    return found


def measure_slow_peers(records: Records) -> None:
    """Time them and their counterparts on few scores, all from the raw arrays."""
    scores, y = make_scores(SLOW_N)
    for name, (ours, fit) in slow_peers().items():
        OURS[ours]().fit(scores, y)
        with contextlib.redirect_stdout(io.StringIO()):
            records.measure(
                f"{name}, {SLOW_N}",
                lambda fit=fit, ours=ours: {
                    "s": median_seconds(lambda: fit(scores, y), 3),
                    "ours": median_seconds(lambda: OURS[ours]().fit(scores, y), 3),
                },
            )


def _sklearn_sigmoid(x: np.ndarray, y: np.ndarray) -> object:
    # The public class cross-validates an estimator; this is the fit inside it.
    from sklearn.calibration import _SigmoidCalibration

    return _SigmoidCalibration().fit(x, y)


def _venn_abers(x: np.ndarray, y: np.ndarray) -> object:
    from venn_abers import VennAbers

    fitted = VennAbers()
    fitted.fit(np.column_stack([1 - x, x]), y)
    return fitted


def make_scores(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Distinct scores of a classifier that is overconfident at one end."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=n)
    return scores, (rng.uniform(size=n) < scores**2).astype(int)


def measure_ours(records: Records, n: int) -> None:
    """Time the summary, each fit from it, and prediction."""
    scores, y = make_scores(n)
    small = make_scores(20_000, 1)
    cal.ScoreSummary.from_scores(*small)
    summary = cal.ScoreSummary.from_scores(scores, y)
    records.measure(
        "summary", lambda: _cost(lambda: cal.ScoreSummary.from_scores(scores, y), n)
    )
    for name, make in OURS.items():
        make().fit(*small).predict(small[0])
        records.measure(
            name, lambda make=make: _cost(lambda: make().fit_summary(summary), n)
        )
    map_ = cal.BaggedIsotonicCalibrator(100, random_state=0).fit_summary(summary).map_
    new, _ = make_scores(n, 2)
    records.measure("predict on a map", lambda: _cost(lambda: map_(new), n))


def measure_peers(records: Records, n: int) -> None:
    """Time each peer's fit on raw arrays, once warmed."""
    scores, y = make_scores(n)
    for name, (_, fit) in peers().items():
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            fit(*make_scores(20_000, 1))
            records.measure(
                name, lambda fit=fit: {"s": median_seconds(lambda: fit(scores, y), 3)}
            )


def _cost(call: Callable[[], object], n: int) -> dict[str, float | None]:
    extra = peak_extra_bytes(call)
    arrays = None if extra is None else extra / (8 * n)
    return {"s": median_seconds(call), "arrays": arrays}


def print_tables(records: Records, n: int) -> None:
    """Print ours against the bars, and peers as ratios to ours."""
    rows = records.rows
    full = n >= 10**6
    print(f"\n{n:,} scores, medians of 5; memory in arrays of {n:,} floats\n")
    print(f"{'ours':30s} {'seconds':>9s} {'bar':>6s} {'memory':>7s}")
    for name in ["summary", *OURS, "predict on a map"]:
        bar = f"{BARS[name]:.2f}" if full and name in BARS else ""
        memory = rows[name]["arrays"]
        held = "" if memory is None else f"{memory:.1f}"
        print(f"{name:30s} {rows[name]['s']:9.4f} {bar:>6s} {held:>7s}")
    print(
        f"\n{'peer':24s} {'seconds':>9s}  {'our counterpart':28s} {'peer / ours':>11s}"
    )
    for name, (ours, _) in peers().items():
        total = rows["summary"]["s"] + rows[ours]["s"]
        ratio = rows[name]["s"] / total
        print(f"{name:24s} {rows[name]['s']:9.3f}  {ours:28s} {ratio:11.1f}")
    for name, (ours, _) in slow_peers().items():
        row = rows[f"{name}, {SLOW_N}"]
        ratio = row["s"] / row["ours"]
        print(f"{name:24s} {row['s']:9.3f}  {ours:28s} {ratio:11.1f} ({SLOW_N} scores)")


def main() -> None:
    """Run or resume the benchmark and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="10^5 scores")
    parser.add_argument("--fresh", action="store_true", help="forget earlier lines")
    parser.add_argument("--run", default="latest", help="name of the run to resume")
    options = parser.parse_args()
    n = 10**5 if options.quick else 10**6
    records = Records("calibration_speed", f"{options.run}-{n}", fresh=options.fresh)
    measure_ours(records, n)
    measure_peers(records, n)
    measure_slow_peers(records)
    print_tables(records, n)


if __name__ == "__main__":
    main()
