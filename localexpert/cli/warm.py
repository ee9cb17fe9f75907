"""`warm`: small models of every kind, so that all loops are compiled and kept."""

from __future__ import annotations

import warnings
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import calibration
from calibration._kernels._jit import can_be_kept
from calibration.typing import Float64Array
from localexpert.cli.output import note
from localexpert.ensemble import DistributionEnsemble
from localexpert.reading.texts import refuse
from localexpert.regressor.regressor import LocalExpertRegressor
from localexpert.reporting import report

_ROWS = 120
_LEVELS = (0.1, 0.5, 0.9)
# Two bases, and two that are fitted to more than scores and labels.
_OTHERS = {f"{name}Calibrator" for name in ("Score", "Multiclass", "ACP", "SBA")}
# Settings beside the default, and the target that they are for.
_MODELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("smooth", {}),
    ("smooth", {"strategy": "independent", "n_thresholds": 5, "frame": None}),
    ("smooth", {"strategy": "shared", "recalibrate": "conformal"}),
    ("smooth", {"strategy": "joint", "stacker": "auto", "smoothing": "pchip"}),
    ("positive", {"bounds": (0.0, None), "recalibrate": "pit"}),
    ("atom", {}),
    ("counts", {}),
)


def warm(options: Any) -> None:
    """Fit and ask models of all kinds, and say what was compiled."""
    del options
    if not can_be_kept():
        refuse(
            "there is no folder that can be written to keep compiled loops in; set "
            "NUMBA_CACHE_DIR to one"
        )
    # Small samples give reason to warn, and nobody sees these models.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _warm_up()
    note("all loops are compiled, and kept")


def _warm_up() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(_ROWS, 3))
    X[::9, 1] = np.nan
    smooth = 2.0 * X[:, 0] + rng.normal(size=_ROWS)
    targets = {
        "smooth": smooth,
        "positive": np.exp(smooth),
        "atom": np.where(X[:, 2] < 0.3, 0.0, np.exp(smooth)),
        "counts": rng.poisson(1.0 + 3.0 * X[:, 0]).astype(np.float64),
    }
    for name, settings in _MODELS:
        model = LocalExpertRegressor(random_state=0, **settings).fit(X, targets[name])
        _ask(model, X, targets[name])
    with TemporaryDirectory() as folder:
        report(model, X, targets[name], f"{folder}/report.html")
    members = [(name, LocalExpertRegressor(random_state=0)) for name in "ab"]
    _ask(DistributionEnsemble(members).fit(X, smooth), X, smooth)
    _calibrate(X[:, 0], (smooth > 1.0).astype(np.float64))


def _calibrate(scores: Float64Array, labels: Float64Array) -> None:
    """Run every calibrator on scores (n,), those of several classes on two of them."""
    table = np.column_stack([1.0 - scores, scores])
    for name in dir(calibration):
        if name.endswith("Calibrator") and name not in _OTHERS:
            calibrator = getattr(calibration, name)()
            is_of_classes = isinstance(calibrator, calibration.MulticlassCalibrator)
            asked = table if is_of_classes else scores
            calibrator.fit(asked, labels).predict(asked)


def _ask(model: Any, X: Float64Array, y: Float64Array) -> None:
    """Ask everything that takes compiled loops to answer."""
    model.predict(X)
    dist = model.predict_dist(X)
    for ask in (dist.cdf, dist.sf, dist.logpdf, dist.crps):
        ask(y)
    dist.quantiles(_LEVELS)
    dist.expected_shortfall(0.9)
    for summarise in (dist.mean, dist.std, dist.skew, dist.mode, dist.entropy):
        summarise()
    dist.hdi(0.8)
    dist.hdi_regions(0.8)
    dist.expect(np.square)
    dist.rvs(2, random_state=0)
