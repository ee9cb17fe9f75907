"""`CalibratorComparison`: a table of scores, and the curves behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibration._validation import plain_label
from calibration.measures import ReliabilityCurve
from calibration.typing import Float64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 4
_INCHES = 4.2
# Letters of the title of a panel, and of the name of a class below the panels.
_LONGEST_NAME = 30
_LONGEST_CLASS = 20
# Columns of a legend, and classes that colours can tell apart.
_LEGEND_COLUMNS = 6
_MOST_COLOURS = 10


@dataclass(frozen=True, eq=False, repr=False)
class CalibratorComparison:
    """What calibrators scored on held-out rows; build it with `compare_calibrators`.

    Its string is a table, best log loss first.

    Parameters
    ----------
    names : tuple of str
        The c calibrators, in the order given.
    reference : str
        The first of them, doing nothing where scores have it.
    log_loss, standard_error : ndarrays of shape (c,)
        Mean log loss and its standard error.
    probability_of_harm : ndarray of shape (c,)
        Probability that the log loss is worse than that of the reference.
    brier : ndarray of shape (c,)
        Brier score; of more than two classes summed over them.
    calibration_error, maximum_calibration_error : ndarrays of shape (c,)
        Mean and largest gap of event rate and forecast over ten bins of equal
        frequency; of forecasts of all classes in one set ("micro").
    auc, accuracy : ndarrays of shape (c,)
        How well classes are told apart: area under the ROC curve (of more than two
        classes Hand and Till's mean), and share of rows whose class is the likeliest.
        Higher is better.
    curves : dict of str to ReliabilityCurve
        Event rate against forecast; of more than two classes of all in one set.
    class_curves : dict of str to dict of label to ReliabilityCurve
        Of each class against the others; empty for two classes, and for more than 20.

    Examples
    --------
    >>> import numpy as np
    >>> from calibration import compare_calibrators
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.uniform(size=500)
    >>> comparison = compare_calibrators(scores, rng.uniform(size=500) < scores**2)
    >>> comparison.reference, comparison.names[comparison.brier.argmax()]
    ('identity', 'identity')
    """

    names: tuple[str, ...]
    reference: str
    log_loss: Float64Array
    standard_error: Float64Array
    probability_of_harm: Float64Array
    brier: Float64Array
    calibration_error: Float64Array
    maximum_calibration_error: Float64Array
    auc: Float64Array
    accuracy: Float64Array
    curves: dict[str, ReliabilityCurve]
    class_curves: dict[str, dict[Any, ReliabilityCurve]]

    def __str__(self) -> str:
        """Return the scores as a table, best log loss first."""
        width = max(len("held-out"), *map(len, self.names))
        title = (
            f"{'held-out':<{width}}  log loss   error   Brier     ECE     MCE"
            "     AUC  accuracy  P(harm)"
        )
        lines = [
            f"{self.names[i]:<{width}}  {self.log_loss[i]:8.4f}  "
            f"{self.standard_error[i]:6.4f}  {self.brier[i]:6.4f}  "
            f"{self.calibration_error[i]:6.4f}  "
            f"{self.maximum_calibration_error[i]:6.4f}  {self.auc[i]:6.4f}  "
            f"{self.accuracy[i]:8.4f}  {self.probability_of_harm[i]:7.3f}"
            for i in np.argsort(self.log_loss, kind="stable")
        ]
        return "\n".join([title, *lines, f"harm against {self.reference}"])

    def plot(self) -> list[Axes]:
        """Draw the reliability curves side by side in a new figure.

        Of more than two classes a panel has a thick curve for the forecasts of all
        classes in one set and a thin one for each class (grey, where there are more
        than ten).

        Returns
        -------
        list of matplotlib Axes
            One per calibrator, in the order of `names`.
        """
        import matplotlib.pyplot as plt

        columns = min(_COLUMNS, len(self.names))
        rows = -(-len(self.names) // columns)
        figure, grid = plt.subplots(
            rows,
            columns,
            figsize=(_INCHES * columns, _INCHES * rows),
            layout="constrained",
            sharex=True,
            sharey=True,
            squeeze=False,
        )
        panels: list[Axes] = list(grid.ravel())
        for unused in panels[len(self.names) :]:
            figure.delaxes(unused)
        drawn = panels[: len(self.names)]
        for ax, name, loss in zip(drawn, self.names, self.log_loss, strict=True):
            classes = self.class_curves.get(name, {})
            _draw_classes(ax, classes)
            _draw(ax, self.curves[name], "all classes" if classes else "_unnamed")
            ax.set_title(
                f"{plain_label(name, _LONGEST_NAME)}\nlog loss {loss:.4f}",
                fontsize="medium",
            )
        handles, labels = drawn[0].get_legend_handles_labels()
        if handles:
            places: dict[str, Any] = {"loc": "outside lower center", "frameon": False}
            count = min(_LEGEND_COLUMNS, len(labels))
            figure.legend(handles, labels, ncols=count, **places)
        return drawn


def _draw(ax: Axes, curve: ReliabilityCurve, label: str) -> None:
    """Draw one curve, and the band where it would lie if forecasts were calibrated."""
    ax.plot([0.0, 1.0], [0.0, 1.0], "--", color="0.45", lw=1)
    if curve.lower is not None and curve.upper is not None:
        ax.fill_between(curve.mean_prob, curve.lower, curve.upper, alpha=0.2, lw=0)
    looks: dict[str, Any] = {"marker": "o", "ms": 4, "lw": 1.6, "color": "C0"}
    ax.plot(curve.mean_prob, curve.event_rate, label=label, **looks)
    ax.set(aspect="equal", xlabel="Forecast probability", ylabel="Observed event rate")
    ax.label_outer()


def _draw_classes(ax: Axes, curves: Mapping[Any, ReliabilityCurve]) -> None:
    """Draw thin curves of classes, in colours where these can tell them apart."""
    coloured = len(curves) < _MOST_COLOURS
    for place, (label, curve) in enumerate(curves.items(), start=1):
        looks: dict[str, Any] = {"color": "0.6", "lw": 0.7}
        looks["label"] = "each class" if place == 1 else "_another"
        if coloured:
            looks = {"color": f"C{place}", "lw": 1.0}
            looks["label"] = plain_label(label, _LONGEST_CLASS)
        ax.plot(curve.mean_prob, curve.event_rate, marker=".", ms=4, **looks)
