"""Forecasts of lives beside what is known of lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from calibration._validation import check_level, check_same_length
from calibration.plots import canvas
from calibration.typing import Float64Array
from localexpert.distribution.predictive import PredictiveDistribution
from localexpert.partial.outcomes import product_limit, read_right
from localexpert.plots import inputs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points of the forecast's curve, and how near two of them stand at a jump, as a share
# of the picture.
_N_POINTS, _BESIDE = 300, 1e-6


@canvas.picture
def plot_survival(
    y: ArrayLike,
    dist: PredictiveDistribution,
    *,
    coverage: float = 0.95,
    target_name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw the mean survival function of forecasts beside Kaplan and Meier's steps.

    If forecasts are true, the curve runs along the steps. This says nothing of single
    rows: `d_calibration_test` and `plot_pit` do.

    Parameters
    ----------
    y : array-like of shape (n, 2) or structured array of shape (n,)
        Targets as `fit` takes them, known or right-censored.
    dist : PredictiveDistribution
        Of n rows.
    coverage : float
        Probability of the band around the steps, at each value by itself, in (0, 1).
    target_name : str, optional
        What the target is called on its axis, with its unit; default "y".
    ax : matplotlib Axes, optional
        Where to draw; default a new figure.

    Returns
    -------
    matplotlib Axes
        The axes that were drawn on.

    Notes
    -----
    With :math:`d_v` known targets at v, :math:`n_v` rows at risk and the normal
    quantile z of the coverage, the band goes from :math:`S^{1/c}` to :math:`S^c`,

    .. math:: c = \exp\Big(-\frac{z}{|\log S(t)|}
        \sqrt{\sum_{v \le t} \frac{d_v}{n_v (n_v - d_v)}}\Big).

    Greenwood's variance is that of :math:`\log(-\log S)` here, so the band stays
    between 0 and 1. Nothing is drawn beyond the greatest value.

    References
    ----------
    Greenwood (1926), The natural duration of cancer. Kalbfleisch & Prentice (2002), The
    statistical analysis of failure time data.

    Examples
    --------
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution, censored
    >>> from localexpert import plot_survival
    >>> rows = np.tile([0.5, 0.25, 0.25], (4, 1))
    >>> dist = PredictiveDistribution.from_arrays(atoms=[1, 2, 3], masses=rows)
    >>> ax = plot_survival(censored([1, 1, 2, 3], event=[1, 1, 0, 1]), dist)
    >>> ax.get_ylabel()
    'Share beyond'
    """
    inputs.check_dist(dist)
    called = inputs.name_target(target_name)
    level = check_level(coverage, "coverage")
    time, event = read_right(y)
    check_same_length(len(dist), "`dist`", len(time), "y")
    values, survival = product_limit(time, event, np.ones(len(time)))
    low, high = _band(time, values, survival, float(ndtri(0.5 + 0.5 * level)))
    start = min(0.0, float(values[0]))
    # Steps need their height before the first value, and a jump of forecasts both.
    x = np.append(start, values)
    points = np.linspace(start, values[-1], _N_POINTS)
    jumps = dist.atoms[(dist.atoms >= start) & (dist.atoms <= values[-1])]
    before = jumps - _BESIDE * (values[-1] - start)
    points = np.sort(np.concatenate([points, before, jumps]))
    ax = canvas.open_axes(ax)
    label = f"{inputs.format_percent(level)} band"
    low, high, height = (np.append(1.0, part) for part in (low, high, survival))
    ax.fill_between(x, low, high, step="post", label=label, **canvas.BAND)
    ax.step(x, height, where="post", color=canvas.ink_of(ax), lw=1)
    ax.lines[-1].set_label("Kaplan-Meier")
    mean = 1.0 - dist.cdf_at(points).mean(axis=0)
    ax.plot(points, mean, color="C0", lw=1.6, label="mean forecast")
    ax.set(xlabel=called, ylabel="Share beyond", ylim=(0.0, 1.02))
    ax.set_xlim(start, values[-1])
    return ax


def _band(
    time: Float64Array, values: Float64Array, survival: Float64Array, z: float
) -> tuple[Float64Array, Float64Array]:
    """Return both ends of the band at values; 0 to S where all have died."""
    at_risk = len(time) - np.searchsorted(np.sort(time), values)
    left = survival / np.append(1.0, survival[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum((1.0 - left) / (at_risk * left))
        power = np.exp(-z * np.sqrt(variance) / -np.log(survival))
        low, high = survival ** (1.0 / power), survival**power
    inside = (survival > 0.0) & (survival < 1.0)
    return np.where(inside, low, np.floor(survival)), np.where(inside, high, survival)
