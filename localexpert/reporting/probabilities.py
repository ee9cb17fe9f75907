"""`report_calibration`: one page on probabilities before and after calibration."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from calibration import (
    __version__,
    brier_score,
    expected_calibration_error,
    log_loss,
    plot_calibration_map,
    plot_reliability,
    reliability_curve,
)
from calibration.typing import Float64Array
from localexpert.reporting import markup as html
from localexpert.reporting.findings import SIGNIFICANT, show_p
from localexpert.reporting.markup import Markup, show
from localexpert.reporting.pictures import picture
from localexpert.reporting.style import STYLE
from localexpert.reporting.writing import check_writable, write_whole

#: Measures of probabilities (n,) of labels (n,) by their names; less is better.
PROBABILITY_LOSSES: dict[str, Callable[..., float]] = {
    "log loss": log_loss,
    "Brier score": brier_score,
    "ECE": expected_calibration_error,
}
_GRID_SIZE = 400
_ECE = (
    "ECE, the expected calibration error, is the mean gap between the forecast and "
    "the share that came true, over ten bins of as many rows."
)


def report_calibration(
    y: NDArray[np.intp],
    answers: Mapping[str, Float64Array],
    calibrator: Any,
    scores: Float64Array,
    path: str | os.PathLike[str],
    about: str,
) -> Path:
    """Write one HTML file on probabilities of the same rows.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels coded 0 and 1.
    answers : mapping of str to ndarray of shape (n,)
        Probabilities of class 1; the last ones are those after calibration, which
        must not have seen the labels of their rows.
    calibrator : fitted calibrator
        Whose map is drawn.
    scores : ndarray of shape (n,)
        That it was fitted to.
    path : path-like
        The file, replaced if it is there; after an error it is as it was.
    about : str
        What was calibrated and how.

    Returns
    -------
    Path
        The file that was written.
    """
    target = check_writable(path)
    title = "Calibration of probabilities"
    grid = None
    if calibrator.scale == "real":
        grid = np.linspace(scores.min(), scores.max(), _GRID_SIZE)
    parts = [
        _write_summary(y, answers),
        _write_losses(y, answers),
        _draw_reliability(y, answers),
        html.section(
            "What calibration does",
            picture(
                lambda ax: plot_calibration_map(calibrator, grid=grid, ax=ax),
                "Calibrated probability as a function of the score.",
                f"The map of {type(calibrator).__name__}, fitted on all rows.",
            ),
        ),
    ]
    head = html.element(
        "head",
        html.element("meta", charset="utf-8"),
        html.element("meta", name="viewport", content="width=device-width"),
        html.element("title", title),
        html.element("style", Markup(STYLE)),
    )
    written = f"Written by localexpert {__version__}."
    body = html.element(
        "body",
        html.element(
            "header",
            html.element("h1", title),
            html.element("p", about, class_="soft"),
        ),
        html.element("main", *parts),
        html.element("footer", html.element("p", written, class_="soft")),
    )
    page = html.element("html", head, body, lang="en")
    write_whole(target, html.join([Markup("<!DOCTYPE html>\n"), page, Markup("\n")]))
    return target


def _write_summary(y: NDArray[np.intp], answers: Mapping[str, Float64Array]) -> Markup:
    """Say whether calibration helps by more than chance explains."""
    n, rate = len(y), html.show_percent(float(y.mean()))
    sentences = [f"{n:,} rows, of which {rate} are of the positive class."]
    if len(answers) > 1:
        before, *_, after = answers.values()
        losses = [(y - p) ** 2 for p in (before, after)]
        gain = losses[0] - losses[1]
        told = "The Brier score is the same before and after"
        if gain.any():
            size = f"from {show(losses[0].mean())} to {show(losses[1].mean())}"
            verb = "lowers" if gain.mean() > 0.0 else "raises"
            told = f"Calibration {verb} the Brier score {size}"
        if n > 1 and gain.std() > 0.0:
            z = float(gain.mean() / (gain.std(ddof=1) / np.sqrt(n)))
            p = float(2.0 * norm.sf(abs(z)))
            chance = "more than" if p < SIGNIFICANT else "no more than"
            told += f", {chance} chance explains ({show_p(p)})"
        sentences.append(f"{told}.")
    return html.section("In short", *map(html.paragraph, sentences))


def _write_losses(y: NDArray[np.intp], answers: Mapping[str, Float64Array]) -> Markup:
    rows = [
        [name, *(html.number(loss(y, p)) for p in answers.values())]
        for name, loss in PROBABILITY_LOSSES.items()
    ]
    return html.section(
        "Scores",
        html.table("Means over the rows; less is better", ["", *answers], rows),
        html.paragraph(_ECE),
    )


def _draw_reliability(
    y: NDArray[np.intp], answers: Mapping[str, Float64Array]
) -> Markup:
    curves = {name: reliability_curve(y, p) for name, p in answers.items()}
    words = (
        "Probabilities against the shares that came true, in bins of as many rows. "
        "Calibrated ones lie on the diagonal, up to chance within the band."
    )
    drawn = picture(
        lambda ax: plot_reliability(curves, ax=ax),
        f"Reliability: {', '.join(answers)}. {words}",
        words,
        size=(5.0, 5.2),
    )
    return html.section("Reliability", drawn)
