"""The evidence of a monitor, and the offsets of its batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from calibration.drift.base import DriftMonitor
from calibration.plots import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Powers of ten that are shown; beyond them evidence is only more of the same.
_LEAST, _MOST = -2.0, 10.0
_ALARM, _ONSET = "C3", "C1"


@canvas.picture
def plot_monitor(
    monitor: DriftMonitor, *, ax: Sequence[Axes] | None = None
) -> NDArray[np.object_]:
    """Draw the evidence of a monitor over the rows seen, above the offsets of batches.

    Above: the e-value as a power of ten, where it alarms, and from where on the change
    is likeliest to have begun. Below: the offset of each batch, with two standard
    errors either way, and the tolerance as a band.

    Parameters
    ----------
    monitor : CalibrationMonitor or localexpert.ForecastMonitor
        Fed with a batch at least.
    ax : sequence of two matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    ndarray of shape (2,)
        The axes that were drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import CalibrationMonitor, plot_monitor
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=200)
    >>> monitor = CalibrationMonitor().fit(p, rng.uniform(size=200) < p)
    >>> evidence, offsets = plot_monitor(monitor)
    >>> offsets.get_xlabel()
    'Rows'
    """
    if not isinstance(monitor, DriftMonitor):
        msg = f"`monitor` must be a monitor, got {type(monitor).__name__}."
        raise TypeError(msg)
    check_is_fitted(monitor)
    axes = canvas.open_panels(ax, 2, (5.8, 2.3), columns=1, name="ax", sharex=True)
    _draw_evidence(axes[0], monitor)
    _draw_offsets(axes[1], monitor)
    return axes


def _draw_evidence(ax: Axes, monitor: DriftMonitor) -> None:
    rows = np.append(0.0, monitor.history_["row"])
    powers = np.append(0.0, monitor.history_["log_e"]) / np.log(10.0)
    ax.plot(rows, np.clip(powers, _LEAST, _MOST), color="C0", label="evidence")
    line = -np.log10(monitor.alpha)
    label = f"alarm at {1.0 / monitor.alpha:g}"
    ax.axhline(line, color=_ALARM, ls="--", lw=1, label=label)
    if monitor.alarm_row_ is not None:
        ax.plot(monitor.alarm_row_, line, "o", color=_ALARM, label="alarm")
    _draw_onset(ax, monitor)
    ax.axhline(0.0, color=canvas.GREY, lw=0.8, zorder=0)
    ax.set_ylabel("e-value, power of 10")


def _draw_offsets(ax: Axes, monitor: DriftMonitor) -> None:
    history = monitor.history_
    middle = history["row"] - 0.5 * history["n"]
    bars: dict[str, Any] = {"fmt": ".", "color": "C0", "elinewidth": 0.8}
    ax.errorbar(middle, history["offset"], 2.0 * history["error"], **bars)
    bound = monitor.tolerance_
    ax.axhspan(-bound, bound, color=canvas.GREY, alpha=0.3, lw=0, label="tolerance")
    _draw_onset(ax, monitor)
    ax.set_xlabel("Rows")
    ax.set_ylabel("Offset of a batch")


def _draw_onset(ax: Axes, monitor: DriftMonitor) -> None:
    onset = monitor.find_onset()
    if onset is not None:
        ax.axvline(onset, color=_ONSET, ls=":", lw=1.5, label="onset")
