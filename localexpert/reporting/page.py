"""`report`: one page on a model's forecasts of rows that it has not seen."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from calibration import __version__
from localexpert._validation import check_flag, check_integer
from localexpert.reporting.calibration import write_calibration
from localexpert.reporting.choices import write_choices
from localexpert.reporting.drift import find_drift, find_unseen
from localexpert.reporting.evidence import Evidence, gather_evidence
from localexpert.reporting.examples import write_examples, write_risk
from localexpert.reporting.expectation import write_expectation
from localexpert.reporting.features import measure_importance, write_importance
from localexpert.reporting.findings import render_findings
from localexpert.reporting.groups import choose_groupings, write_groups
from localexpert.reporting.judgement import judge
from localexpert.reporting.limits import find_limits
from localexpert.reporting.markup import (
    Markup,
    Section,
    contents,
    count,
    element,
    join,
    paragraph,
    section,
)
from localexpert.reporting.reference import score_boosting
from localexpert.reporting.style import PAPER, STYLE
from localexpert.reporting.subject import Subject, read_subject
from localexpert.reporting.summary import write_scores, write_summary
from localexpert.reporting.writing import check_writable, write_whole


def report(
    model: Any,
    X: Any,
    y: ArrayLike,
    path: str | os.PathLike[str],
    *,
    X_train: Any = None,
    y_train: ArrayLike | None = None,
    groups: Any = None,
    coverage: float = 0.9,
    title: str | None = None,
    target_name: str | None = None,
    unit: str | None = None,
    source: str | None = None,
    date: datetime.date | None = None,
    row_names: Iterable[object] | None = None,
    pdf_friendly: bool = False,
    importance_rows: int = 300,
    random_state: int = 0,
    verbose: bool | int = 0,
) -> Path:
    """Write one HTML file on how good a model's forecasts of new rows are.

    The file needs no network and no scripts: scores against climatology and boosting,
    calibration, coverage and expected losses by group, risks, examples, importance of
    features, what the model chose, and warnings where these rows differ from those of
    training.

    Parameters
    ----------
    model : fitted model that `predict_dist` understands
        Of a `LocalExpertRegressor` more can be told than of others.
    X : array or data frame of shape (n, p)
        Rows that the model has not seen.
    y : array-like of shape (n,)
        Their outcomes.
    path : path-like
        The file, replaced if it is there; after an error it is as it was.
    X_train : array or data frame of shape (m, p), optional
        Training rows, for a boosted baseline, and for the drift of features of models
        that keep no counts of them; a `LocalExpertRegressor` does.
    y_train : array-like of shape (m,), optional
        Training targets. Climatology and drift of the target take what a
        `LocalExpertRegressor` keeps of its own targets, and these for other models.
    groups : list of column names or mapping of str to array-like, optional
        What coverage is shown by, arrays of shape (n,); columns of an array are
        called x0, x1, ... Default: the width of the forecasts and the three most
        important features (the first ones if importance is left out).
    coverage : float
        Of the intervals, in (0, 1).
    title : str, optional
        Heading of the page; default "Forecasts of" the target, if its name is known.
    target_name : str, optional
        What is forecast; default the name of `y`, if it is a series.
    unit : str, optional
        Of the target, "EUR" for instance.
    source : str, optional
        Where the rows are from, "test.csv" for instance.
    date : datetime.date, optional
        Day of the report; default today.
    row_names : iterable of length n, optional
        What the rows are called where single ones are shown; default the index of a
        data frame, else numbers from 0.
    pdf_friendly : bool
        Whether the page is made to be printed or turned into PDF: everything open,
        light colours only, and every section on a page of its own.
    importance_rows : int
        Rows that importance is measured on; fewer if features are many. It takes most
        of the time where they are: two or three forecasts of these rows for each
        feature. 0 leaves it out.
    random_state : int
        Seed of samples, permutations, and draws where forecasts have jumps.
    verbose : int or bool
        0: silent; 1: a progress bar of the importance on stderr.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    OSError
        If the file cannot be written; found out before anything is computed.

    Notes
    -----
    Where a sentence says that chance does not explain a difference, a two-sided test
    has a p-value below .01: binomial for coverage, Kolmogorov-Smirnov for PIT values
    and numbers, chi-squared for categories, ranks for the CRPS. p-values of several
    groups or features are raised by Holm's method. The tests take rows for
    independent.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from localexpert import PredictiveDistribution
    >>> from localexpert.reporting import report
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
    target = check_writable(path)
    most_rows = check_integer(importance_rows, "importance_rows", 0)
    check_flag(pdf_friendly, "pdf_friendly")
    evidence = gather_evidence(
        model,
        X,
        y,
        X_train=X_train,
        y_train=y_train,
        coverage=coverage,
        random_state=random_state,
    )
    subject = read_subject(
        y,
        len(evidence),
        title=title,
        target_name=target_name,
        unit=unit,
        source=source,
        date=date,
        row_names=row_names,
    )
    sections = _write_sections(
        evidence, subject, groups, most_rows, verbose, paper=pdf_friendly
    )
    write_whole(target, _lay_out(subject, evidence, sections, paper=pdf_friendly))
    return target


def _write_sections(
    evidence: Evidence,
    subject: Subject,
    groups: Any,
    most_rows: int,
    verbose: int,
    *,
    paper: bool,
) -> list[Section]:
    """Return the sections in their order."""
    importance = measure_importance(evidence, most_rows, verbose)
    order: Sequence[int] = range(len(evidence.names))
    if importance is not None:
        # Of a date the first feature, its days.
        column_of = evidence.table.reader.column_of
        order = [column_of.index(j) for j in importance.ranking]
    groupings = choose_groupings(evidence, groups, order)
    boosting, why_not = score_boosting(evidence)
    findings = [*find_drift(evidence), *find_unseen(evidence), *find_limits(evidence)]
    judgement = judge(evidence)
    return [
        write_summary(evidence, subject, judgement, boosting),
        section(
            "Warnings and notes",
            paragraph(
                "Where these rows differ from those of training, and what to doubt."
            ),
            render_findings(findings),
        ),
        write_scores(evidence, boosting, why_not),
        write_calibration(evidence, subject, judgement),
        write_groups(evidence, groupings),
        write_expectation(evidence, groupings),
        write_risk(evidence, subject),
        write_examples(evidence, subject, order),
        write_importance(evidence, importance),
        write_choices(evidence, subject, expanded=paper),
    ]


def _lay_out(
    subject: Subject, evidence: Evidence, parts: list[Section], *, paper: bool
) -> str:
    """Return the whole page."""
    title = subject.title
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(PAPER if paper else STYLE)),
    )
    written = f"Written by localexpert {__version__}."
    body = element(
        "body",
        element("header", element("h1", title), _say_about(subject, evidence)),
        contents(parts),
        element("main", *parts),
        element("footer", element("p", written, class_="soft")),
    )
    page = element("html", head, body, lang="en")
    return join([Markup("<!DOCTYPE html>\n"), page, Markup("\n")])


def _say_about(subject: Subject, evidence: Evidence) -> Markup:
    """Say what was forecast of which rows by which model, and when."""
    rows = count(len(evidence), "row")
    where = f"{rows} of {subject.source}" if subject.source else rows
    about = [
        f"{type(evidence.model).__name__}, {where}, "
        f"{count(len(evidence.names), 'feature')}",
        f"{subject.date:%Y-%m-%d}",
    ]
    if subject.target:
        about.insert(0, f"Target: {subject.axis}")
    return element("p", " \u00b7 ".join(about), class_="soft")
