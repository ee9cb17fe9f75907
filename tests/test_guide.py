"""The manual: its code runs as printed, words find their page, its tables hold."""

import importlib
import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_multilabel_classification
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

from calibration import CalibratedClassifier

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
BLOCK = re.compile(
    r"^\.\. code-block:: python\n(?P<options>(?:   :.*\n)*)\n"
    r"(?P<code>(?:(?:   .*)?\n)+)",
    re.MULTILINE,
)
HEADING = re.compile(r"^(\S.*)\n(?:=+|-+|~+)$", re.MULTILINE)
NAMESPACES = ("calibration", "localexpert", "localexpert.risk", "localexpert.skpro")
# Blocks of other engines are run by tests/localexpert/large/test_engines.py.
WITH_RECIPES = {"large"}


def text_of(page):
    """Return the source of a page."""
    return (DOCS / f"{page}.rst").read_text(encoding="utf-8")


PAGES = [
    path.stem for path in sorted(DOCS.glob("*.rst")) if BLOCK.search(text_of(path.stem))
]


# The page of the talk runs below.
@pytest.mark.slow
@pytest.mark.parametrize("page", sorted({*PAGES} - {"talk"}))
def test_code_of_a_page_runs_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)


def run_page(page):
    """Run the code of a page, and return the names that it defines."""
    text = text_of(page)
    namespace = {"__name__": page}
    for block in BLOCK.finditer(text):
        options = block["options"]
        if "needs-skpro" in options and importlib.util.find_spec("skpro") is None:
            continue
        if page in WITH_RECIPES and ":class: runs" not in options:
            continue
        # Lines keep their numbers, so that an error points into the page.
        padding = "\n" * text.count("\n", 0, block.start("code"))
        code = re.sub(r"^   ", "", block["code"], flags=re.MULTILINE)
        exec(compile(padding + code, f"docs/{page}.rst", "exec"), namespace)
    return namespace


def test_no_code_of_the_manual_is_left_out():
    assert len(PAGES) >= 15
    python = re.compile(r"::\n\n +(?:from|import) ")
    assert not [
        path.stem for path in DOCS.glob("*.rst") if python.search(path.read_text())
    ]


SOUGHT = {"limits": "limits leak drift gpu", "competition": "stacking"}
SOUGHT |= {"time": "time", "risk": "csv"}


@pytest.mark.parametrize(("page", "words"), SOUGHT.items())
def test_words_that_people_search_for_are_in_headings(page, words):
    headings = " ".join(HEADING.findall(text_of(page))).lower()
    assert not [word for word in words.split() if word not in headings]


def test_reference_lists_every_public_name_once():
    listed = re.findall(r"^   ~(\S+)$", text_of("api"), flags=re.MULTILINE)
    rooms = {name.rsplit(".")[-1] for name in NAMESPACES}
    public = [
        f"{home}.{name}"
        for home in NAMESPACES
        for name in importlib.import_module(home).__all__
        if name not in rooms
    ]
    # Of the rooms of the shell this is what people meet in Python.
    public.append("localexpert.reading.ColumnReader")
    assert sorted(listed) == sorted(public)


WRITTEN = "\n".join(path.read_text("utf-8") for path in TESTS.rglob("test_*.py"))
CELL = re.compile(r"^   [* ] - (.*)$", re.MULTILINE)


def systems():
    """Return the rows of the table, five cells each."""
    cells = [cell.replace("`", "") for cell in CELL.findall(text_of("systems"))]
    assert len(cells) % 5 == 0
    return [cells[start : start + 5] for start in range(5, len(cells), 5)]


@pytest.mark.parametrize("row", systems(), ids=lambda row: row[0])
def test_every_name_in_the_table_of_systems_exists(row):
    _, _, here, room, test = row
    name, *more = here.split(", ")
    home, _, short = name.rpartition(".")
    found = getattr(importlib.import_module(home), short)
    assert found.__module__.startswith(room.replace("/", "."))
    assert f"def {test}(" in WRITTEN
    for word in more:
        parameter = word.partition("=")[0]
        if re.fullmatch(r"[a-z_]+", parameter):
            assert hasattr(found, parameter) or parameter in found().get_params()


def test_several_labels_are_calibrated_one_by_one():
    X, y = make_multilabel_classification(300, n_classes=3, random_state=0)
    weight = np.random.default_rng(0).integers(1, 4, 300)
    model = CalibratedClassifier(GaussianNB(), "logistic", cv=3)
    several = MultiOutputClassifier(model).fit(X, y, sample_weight=weight)
    for label, table in enumerate(several.predict_proba(X)):
        alone = CalibratedClassifier(GaussianNB(), "logistic", cv=3)
        alone.fit(X, y[:, label], sample_weight=weight)
        assert_array_equal(table, alone.predict_proba(X))
    assert several.predict(X).shape == y.shape


def test_the_page_of_the_talk_runs_and_its_law_follows_its_curve(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    seen = run_page("talk")
    assert (tmp_path / "talk.png").stat().st_size > 10_000
    grid, law = seen["grid"], seen["law"]
    rising = np.clip(np.maximum.accumulate(seen["curve"](grid)[0]), 0.0, 1.0)
    # Clipped at 1 in 620 and made increasing by projection, not by its running maximum.
    assert np.abs(law.cdf_at(grid)[0] - rising).max() < 0.04
    assert (seen["raw"] != seen["p"]).any()
    assert (np.diff(seen["v"]) > 0.0).all()
    assert (np.diff(seen["rising"]) >= 0.0).all()
