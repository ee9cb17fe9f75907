"""The head of a report: what matters most in plain words, and the scores."""

from __future__ import annotations

import numpy as np
from scipy.stats import t as student

from localexpert.reporting import markup as html
from localexpert.reporting.evidence import Evidence
from localexpert.reporting.findings import SIGNIFICANT, show_p
from localexpert.reporting.judgement import Judgement
from localexpert.reporting.markup import Markup, Section, count, show
from localexpert.reporting.scores import Scores
from localexpert.reporting.subject import Subject

_LABELS = {
    "crps": "CRPS",
    "log_score": "Log score",
    "quantile_loss": "Quantile loss",
    "rmse": "RMSE of the mean",
    "mae": "MAE of the median",
}


def write_summary(
    evidence: Evidence, subject: Subject, judgement: Judgement, boosting: Scores | None
) -> Section:
    """Return the headline in words, and its numbers on cards."""
    scores, coverage = evidence.scores, show(100 * evidence.coverage, 3)
    n, unit = len(evidence), f" {subject.unit}" if subject.unit else ""
    cards = [
        _card("Rows", f"{n:,}", "not seen in training"),
        _card(
            "Typical error",
            f"{show(scores.mae, 3)}{unit}",
            "mean distance from the median" if n > 1 else "distance from the median",
        ),
        _card(
            f"In {coverage} % intervals",
            html.percent(judgement.test.share),
            judgement.verdict,
        ),
    ]
    error, width = f"{show(scores.mae, 3)}{unit}", f"{show(scores.width, 3)}{unit}"
    sentences = [
        f"On {count(n, 'row')}, outcomes were {error} from the median of their "
        f"forecasts on average, and the {coverage} % intervals were {width} wide."
        if n > 1
        else f"On 1 row, the outcome was {error} from the median of its forecast, and "
        f"the {coverage} % interval was {width} wide."
    ]
    climatology = evidence.climatology_scores
    if climatology is None or climatology.crps is None:
        sentences.append(
            "How much that is worth cannot be said, for the model keeps nothing of "
            "its training targets and none were given (y_train)."
        )
    else:
        skill = _skill(scores.crps, climatology.crps)
        if skill is not None:
            against = "by CRPS, against climatology"
            cards.append(_card("Skill", html.percent(skill, 0), against))
        sentences.append(_say_skill(evidence, skill))
    sentences += judgement.sentences()
    if boosting is not None:
        sentences.append(_say_boosting(scores, boosting))
    return html.section(
        "In short",
        html.element("div", *cards, class_="cards"),
        *(html.paragraph(sentence) for sentence in sentences),
    )


def write_scores(
    evidence: Evidence, boosting: Scores | None, why_not: str = ""
) -> Section:
    """Return the table of scores against climatology and boosting."""
    scores, climatology = evidence.scores, evidence.climatology_scores
    rows: list[list[object]] = [
        _score_row(name, scores, climatology, boosting) for name in _LABELS
    ]
    interval, dash = f"{show(100 * evidence.coverage, 3)} %", html.number(None)
    for name, write in (("coverage", html.percent), ("width", html.number)):
        told = (getattr(s, name, None) for s in (scores, climatology, boosting))
        ours, theirs, boosted = map(write, told)
        title = f"{name.capitalize()} of {interval}"
        rows.append([title, ours, theirs, dash, boosted, dash])
    heads = ["", "Model", "Climatology", "Skill", "Boosting", "Skill"]
    return html.section(
        "Scores",
        html.table("Means over the rows; less is better", heads, rows),
        html.paragraph(
            "The CRPS is the error of a whole forecast, in units of the target: the "
            "absolute error of a forecast that is one number. The log score is minus "
            "the log of the density at the outcome. The quantile loss is the mean over "
            "the ends of the interval, the quartiles and the median. Skill is the "
            "share of the other's loss that the model saves; of the log score it is "
            "the difference."
        ),
        html.paragraph(_say_climatology(evidence)),
        html.paragraph(
            why_not
            or (
                "Boosting is LightGBM, fitted here to the training rows that were "
                "given: a model of the mean and one of each quantile. It says too "
                "little of a distribution for a CRPS or a log score."
            )
        ),
    )


def _say_climatology(evidence: Evidence) -> str:
    if evidence.training is None:
        return (
            "There is no climatology: the model keeps nothing of its training targets "
            "and none were given (y_train)."
        )
    kept = evidence.training.oof is not None
    told = (
        "Climatology forecasts for every row how the target was distributed in "
        f"training ({count(len(evidence.training.y), 'row')}, "
        f"{'kept by the model' if kept else 'given'})."
    )
    scores = evidence.climatology_scores
    if scores is not None and scores.log_score == np.inf:
        told += (
            " Its log score is infinite because an outcome has a value that training "
            "has not met."
        )
    return told


def _say_skill(evidence: Evidence, skill: float | None) -> str:
    """Say what the CRPS saves against climatology, and if chance explains it."""
    if skill is None or evidence.climatology is None:
        return "Climatology makes no error at all here: the target does not vary."
    gain = evidence.climatology.crps(evidence.y) - evidence.crps
    told = (
        f"{'Their' if len(gain) > 1 else 'Its'} error as "
        f"{'whole forecasts' if len(gain) > 1 else 'a whole forecast'} "
        f"(CRPS {show(evidence.scores.crps or 0.0)}) is "
        f"{show(abs(100 * skill), 3)} % {'smaller' if skill >= 0 else 'larger'} than "
        "that of climatology, which forecasts for every row how the target was "
        "distributed in training"
    )
    if len(gain) < 2 or gain.std() == 0.0:
        return f"{told}."
    # Diebold & Mariano (1995) for rows that are independent, with Student's law as
    # in Harvey, Leybourne & Newbold (1997), for rows may be few.
    ratio = float(gain.mean() / (gain.std(ddof=1) / np.sqrt(len(gain))))
    p = float(2.0 * student.sf(abs(ratio), len(gain) - 1))
    chance = "more than" if p < SIGNIFICANT else "no more than"
    return f"{told}; {chance} chance explains ({show_p(p)})."


def _say_boosting(scores: Scores, boosting: Scores) -> str:
    skill = _skill(scores.quantile_loss, boosting.quantile_loss)
    if skill is None:
        return "Boosted quantiles make no error at all here."
    return (
        f"The loss of the quantiles is {show(abs(100 * skill), 3)} % "
        f"{'smaller' if skill >= 0 else 'larger'} than that of boosted quantiles."
    )


def _score_row(
    name: str, ours: Scores, climatology: Scores | None, boosting: Scores | None
) -> list[object]:
    """Return one score of all three, with the skill against each of the others."""
    value = getattr(ours, name)
    cells: list[object] = [_LABELS[name], html.number(value)]
    for other in (climatology, boosting):
        theirs = getattr(other, name, None)
        cells.append(html.number(theirs))
        if theirs is None or not np.isfinite(theirs):
            cells.append(html.number(None))
        elif name == "log_score":
            cells.append(html.number(theirs - value, 3))
        else:
            cells.append(html.percent(_skill(value, theirs)))
    return cells


def _skill(ours: float | None, theirs: float | None) -> float | None:
    """Return the share of their loss that we save; None if there is none to save."""
    if ours is None or theirs is None or theirs <= 0.0:
        return None
    return 1.0 - ours / theirs


def _card(what: str, value: object, more: str) -> Markup:
    note = html.element("span", more, class_="soft")
    return html.element("div", what, html.element("b", value), note, class_="card")
