"""The manual: its code runs as printed, words find their page, every name is listed."""

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(
    r"^\.\. code-block:: python\n(?P<options>(?:   :.*\n)*)\n"
    r"(?P<code>(?:(?:   .*)?\n)+)",
    re.MULTILINE,
)
HEADING = re.compile(r"^(\S.*)\n(?:=+|-+|~+)$", re.MULTILINE)
NAMESPACES = ("calibration", "localexpert", "localexpert.risk", "localexpert.skpro")
# Blocks of other engines are run by tests/localexpert/large/test_engines.py.
WITH_RECIPES = {"large"}


def text_of(page: str) -> str:
    """Return the source of a page."""
    return (DOCS / f"{page}.rst").read_text(encoding="utf-8")


PAGES = [
    path.stem for path in sorted(DOCS.glob("*.rst")) if BLOCK.search(text_of(path.stem))
]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_code_of_a_page_runs_in_order(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = text_of(page)
    namespace: dict[str, object] = {"__name__": page}
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


def test_no_code_of_the_manual_is_left_out() -> None:
    assert len(PAGES) >= 15
    python = re.compile(r"::\n\n +(?:from|import) ")
    assert not [
        path.stem for path in DOCS.glob("*.rst") if python.search(path.read_text())
    ]


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("limits", "limits"),
        ("leak", "limits"),
        ("drift", "limits"),
        ("gpu", "limits"),
        ("time", "time"),
        ("csv", "risk"),
        ("stacking", "competition"),
    ],
)
def test_a_word_that_people_search_for_is_in_a_heading(word: str, page: str) -> None:
    assert any(word in heading.lower() for heading in HEADING.findall(text_of(page)))


def test_reference_lists_every_public_name_once() -> None:
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
