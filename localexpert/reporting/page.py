"""`report` and `report_calibration`: figures on one page of HTML."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from calibration import (
    __version__,
    brier_score,
    expected_calibration_error,
    log_loss,
    plot_calibration_map,
    plot_reliability,
    reliability_curve,
)
from calibration._validation import check_flag, check_path
from calibration.storage import replacing_file, writable_file
from calibration.typing import Float64Array
from localexpert.reporting.figures import report_figures
from localexpert.reporting.groups import count, show, show_level, show_p, show_percent
from localexpert.reporting.pictures import picture
from localexpert.reporting.scores import SIGNIFICANT, VERY_FEW, gain_p_value

#: Measures of probabilities (n,) of labels (n,) by their names; less is better.
PROBABILITY_LOSSES: dict[str, Callable[..., float]] = {
    "log loss": log_loss,
    "Brier score": brier_score,
    "ECE": expected_calibration_error,
}
_GRID_SIZE = 400
# Control characters that no HTML text may hold, and halves of characters.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    pdf_friendly: bool = False,
    **options: Any,
) -> Path:
    """Write one HTML file on how good a model's forecasts of new rows are.

    The file needs no network and no scripts: a verdict in three sentences, scores
    against climatology and boosting, calibration, coverage, expected losses and values
    at risk by group, examples, importance of features, what the model chose, and
    warnings where these rows differ from those of training. Rows that the model has
    learned from are counted and, where they are known, left out.

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
        Of a `LocalExpertRegressor` more can be told than of others.
    X : array or data frame of shape (n, p)
        Rows that the model has not seen.
    y : array-like of shape (n,) or (n, 2)
        Their outcomes; of two columns lower and upper ends.
    path : path-like
        The file, replaced if it is there; after an error it is as it was.
    pdf_friendly : bool
        Whether the page is made to be printed or turned into PDF: everything open,
        light colours only, and every section on a page of its own.
    **options
        Training rows, groups, names and all else that `report_figures` takes.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    OSError
        If the file cannot be written; found out before anything is computed.

    See Also
    --------
    report_figures : The figures alone, for a page of one's own.

    Notes
    -----
    Where a sentence says that chance does not explain a difference, a two-sided test
    has a p-value below .01: binomial for coverage, Kolmogorov-Smirnov for PIT values
    and numbers, chi-squared for categories, ranks for the CRPS, likelihood ratios for
    values at risk. p-values of several groups or features are raised by Holm's method.
    The tests take rows for independent.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution, report
    >>> class Coin:
    ...     def predict_dist(self, X):
    ...         p = 0.1 + 0.8 * X[:, 0]
    ...         p = np.column_stack([1 - p, p])
    ...         return PredictiveDistribution.from_arrays(atoms=[0, 1], masses=p)
    >>> X = np.array([[0.0], [1.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = report(Coin(), X, X[:, 0], Path(folder) / "coin.html")
    ...     text = page.read_text(encoding="utf-8")
    >>> text[:15], "There are only 2 rows" in text
    ('<!DOCTYPE html>', True)
    """
    target = _check_writable(path)
    check_flag(pdf_friendly, "pdf_friendly")
    figures = report_figures(model, X, y, **options)
    facts = {"significant": SIGNIFICANT, "very_few": VERY_FEW}
    return _write(target, "report.html", paper=pdf_friendly, r=figures, **facts)


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
    target = _check_writable(path)
    grid = None
    if calibrator.scale == "real":
        grid = np.linspace(scores.min(), scores.max(), _GRID_SIZE)
    curves = {name: reliability_curve(y, p) for name, p in answers.items()}
    before, after = ((y - list(answers.values())[k]) ** 2 for k in (0, -1))
    return _write(
        target,
        "probabilities.html",
        paper=False,
        about=about,
        y=y,
        answers=answers,
        losses=PROBABILITY_LOSSES,
        before=float(before.mean()),
        after=float(after.mean()),
        p_value=gain_p_value(before, after),
        significant=SIGNIFICANT,
        calibrator=type(calibrator).__name__,
        reliability=picture(lambda ax: plot_reliability(curves, ax=ax), (5.0, 5.2)),
        drawn=picture(lambda ax: plot_calibration_map(calibrator, grid=grid, ax=ax)),
    )


def _write(target: Path, template: str, **values: Any) -> Path:
    """Fill a template and write it whole or not at all."""
    pages = Environment(
        loader=PackageLoader("localexpert.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_clean,
    )
    shown: dict[str, Callable[..., str]] = {
        "number": show,
        "share": show_percent,
        "chance": lambda p: show_p(p).removeprefix("p ").removeprefix("= "),
    }
    pages.filters |= {name: _beside_digits(write) for name, write in shown.items()}
    pages.filters |= {"show": show, "percent": show_percent, "level": show_level}
    pages.filters |= {"p": show_p, "count": count, "text": _text}
    shared = {"version": __version__, "infinity": math.inf}
    text = pages.get_template(template).render(shared | values)
    with replacing_file(target) as temporary:
        temporary.write_text(f"{text.strip()}\n", encoding="utf-8", newline="\n")
    return target


def _clean(value: Any) -> Any:
    """Return a value as HTML may hold it; what is markup already stays."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return _FORBIDDEN.sub("\ufffd", value)
    return value


def _beside_digits(write: Callable[..., str]) -> Callable[..., Markup]:
    """Return what writes a number, beside it all its digits; None is a dash."""

    def fill(value: float | None, *digits: int) -> Markup:
        if value is None or math.isnan(value):
            return Markup("\u2013")
        shown = write(value, *digits)
        return Markup('<data value="{}">{}</data>').format(repr(float(value)), shown)

    return fill


def _text(value: object) -> str:
    """Return a number with few digits, and anything else as its text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return show(value)


def _check_writable(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path names; refuse one that cannot be written."""
    path = check_path(path)
    try:
        return writable_file(path)
    except (FileNotFoundError, NotADirectoryError):
        reason = f"there is no directory {str(path.parent)!r}"
    except OSError as error:
        reason = error.strerror or str(error)
    msg = f"`path` must name a file that can be written, got {str(path)!r}: {reason}."
    raise OSError(msg)
