"""Calibrated probability as a function of the score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit

from calibration._validation import (
    check_choice,
    check_probabilities,
    check_vector,
    plain_label,
)
from calibration.base.calibrators import ScoreCalibrator
from calibration.maps import CalibrationMap
from calibration.plots import canvas
from calibration.typing import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Calibrator: TypeAlias = CalibrationMap | ScoreCalibrator

_GRID_SIZE = 1001
# Log-odds shown by default: probabilities from .0025 to .9975.
_LOG_ODDS_REACH = 6.0


@canvas.picture
def plot_calibration_map(
    calibrators: Calibrator | Mapping[str, Calibrator],
    *,
    ax: Axes | None = None,
    axis: Literal["probability", "log-odds"] = "probability",
    grid: ArrayLike | None = None,
) -> Axes:
    """Draw calibrated probability as a function of the score.

    Parameters
    ----------
    calibrators : CalibrationMap or fitted calibrator, or mapping of names to them
        All on one kind of scale: scores that are probabilities or log-odds can share
        a picture, real scores cannot join them. A bare map is read as one of
        probabilities if its knots lie in [0, 1], else as one of real scores.
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.
    axis : {"probability", "log-odds"}
        "log-odds" shows the logit of the calibrated probability against the logit of
        the score (or a real score itself). Probabilities of 0 and 1 leave a gap.
    grid : array-like of shape (n,), optional
        Scores to evaluate at, each calibrator on its own scale; default the unit
        interval, log-odds from -6 to 6, or the range of a map's knots.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Examples
    --------
    >>> from calibration.logistic.polynomial import PlattCalibrator
    >>> from calibration.plots import plot_calibration_map
    >>> platt = PlattCalibrator().fit([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1])
    >>> plot_calibration_map({"Platt": platt}, axis="log-odds").get_ylabel()
    'Log-odds of calibrated probability'
    """
    check_choice(axis, "axis", ("probability", "log-odds"))
    items = canvas.read_items(
        calibrators, "calibrators", (CalibrationMap, ScoreCalibrator)
    )
    scales = {name: _scale_of(one) for name, one in items.items()}
    real = "real" in scales.values()
    if real and set(scales.values()) != {"real"}:
        msg = f"`calibrators` must not mix real scores with other scales, got {scales}."
        raise ValueError(msg)
    points = [_map_points(one, scales[name], axis, grid) for name, one in items.items()]
    ax = canvas.open_axes(ax, (5.5, 5.0))
    for (x, y), (name, one) in zip(points, items.items(), strict=True):
        label = plain_label(name, canvas.LONGEST_NAME) or type(one).__name__
        ax.plot(x, y, lw=1.8, label=label)
    odds = axis == "log-odds"
    if not real:
        ends = (-_LOG_ODDS_REACH, _LOG_ODDS_REACH) if odds else (0.0, 1.0)
        ax.plot(ends, ends, "--", color=canvas.GREY, lw=1, label="unchanged", zorder=1)
    if not odds:
        ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("Score" if real or not odds else "Log-odds of score")
    ax.set_ylabel(f"{'Log-odds of c' if odds else 'C'}alibrated probability")
    return ax


def _scale_of(calibrator: Calibrator) -> str:
    """Return the scale of the scores that a calibrator takes."""
    if isinstance(calibrator, ScoreCalibrator):
        return calibrator.scale
    unit = calibrator.knots[0] >= 0.0 and calibrator.knots[-1] <= 1.0
    return "probability" if unit else "real"


def _map_points(
    calibrator: Calibrator, scale: str, axis: str, grid: ArrayLike | None
) -> tuple[Float64Array, Float64Array]:
    """Return what to draw of a map: coordinates of scores and of probabilities."""
    if grid is None:
        scores = _default_grid(calibrator, scale, axis)
    elif scale == "probability":
        scores = np.sort(check_probabilities(grid, "grid"))
    else:
        scores = np.sort(check_vector(grid, "grid"))
    calibrated = (
        calibrator.predict(scores)
        if isinstance(calibrator, ScoreCalibrator)
        else calibrator(scores)
    )
    if axis == "log-odds":
        coordinates = _logit(scores) if scale == "probability" else scores
        return coordinates, _logit(calibrated)
    return (expit(scores) if scale == "logit" else scores), calibrated


def _default_grid(calibrator: Calibrator, scale: str, axis: str) -> Float64Array:
    """Return the scores that show all of a map."""
    if scale != "real":
        odds = np.linspace(-_LOG_ODDS_REACH, _LOG_ODDS_REACH, _GRID_SIZE)
        if scale == "logit":
            return odds
        return expit(odds) if axis == "log-odds" else np.linspace(0, 1, _GRID_SIZE)
    knots = getattr(getattr(calibrator, "map_", calibrator), "knots", None)
    if knots is None:
        msg = "`grid` must be given for a formula of real scores, got None."
        raise ValueError(msg)
    # Beyond its knots a map is flat; a little of that is shown.
    margin = 0.05 * (knots[-1] - knots[0]) or 1.0
    return np.linspace(knots[0] - margin, knots[-1] + margin, _GRID_SIZE)


def _logit(p: Float64Array) -> Float64Array:
    """Log-odds of probabilities, nan (a gap in the line) at 0 and 1."""
    return np.asarray(logit(np.where((p > 0.0) & (p < 1.0), p, np.nan)))
