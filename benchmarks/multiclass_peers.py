"""Calibrators of several classes of other libraries, those that are installed.

Each takes probabilities (n, k) and labels, and gives probabilities (n, k). netcal,
dirichletcal and probmetrics bring torch or want an environment of their own.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable
from typing import Any

import numpy as np

Peer = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

LIBRARIES = ("netcal", "dirichletcal", "probmetrics")
# Strength of both of its ridges, as public comparisons set it.
ODIR = 1e-3
# A probability of exactly 0 has no logarithm.
LEAST = 1e-12


def installed_peers() -> dict[str, Peer]:
    """Return the methods of the libraries that are here, by name."""
    makers = {"netcal": _netcal, "dirichletcal": _dirichletcal, "probmetrics": _probm}
    found: dict[str, Peer] = {}
    for library in LIBRARIES:
        if importlib.util.find_spec(library):
            found |= makers[library]()
    return found


def missing_libraries() -> list[str]:
    """Return the names of the libraries that are not here."""
    return [name for name in LIBRARIES if not importlib.util.find_spec(name)]


def _netcal() -> dict[str, Peer]:
    from netcal import binning, scaling

    def peer(make: Callable[[], Any]) -> Peer:
        def run(scores: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
            # It shows progress on both streams.
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                return np.asarray(make().fit(scores, y).transform(new))

        return run

    return {
        "netcal temperature": peer(scaling.TemperatureScaling),
        "netcal logistic": peer(scaling.LogisticCalibration),
        "netcal histogram": peer(binning.HistogramBinning),
    }


def _dirichletcal() -> dict[str, Peer]:
    from dirichletcal.calib.fulldirichlet import FullDirichletCalibrator

    def run(scores: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
        calibrator = FullDirichletCalibrator(reg_lambda=ODIR, reg_mu=ODIR)
        calibrator.fit(np.maximum(scores, LEAST), y)
        return np.asarray(calibrator.predict_proba(np.maximum(new, LEAST)))

    return {"dirichletcal, ODIR": run}


def _probm() -> dict[str, Peer]:
    from probmetrics.calibrators import get_calibrator

    def peer(name: str) -> Peer:
        def run(scores: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
            with contextlib.redirect_stdout(io.StringIO()):
                calibrator = get_calibrator(name).fit(scores, y)
                return np.asarray(calibrator.predict_proba(new))

        return run

    names = ("sms", "svs", "ts-mix")
    return {f"probmetrics {name}": peer(name) for name in names}
