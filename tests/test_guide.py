"""The code in docs/guide.rst runs as printed; docs/api.rst lists every name once."""

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
NAMESPACES = ("calibration", "localexpert", "localexpert.risk", "localexpert.skpro")


@pytest.mark.slow
@pytest.mark.parametrize(("page", "least"), [("guide", 21), ("monitoring", 4)])
def test_guide_runs_in_order(
    page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / f"{page}.rst").read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) >= least
    namespace: dict[str, object] = {"__name__": "guide"}
    for block in blocks:
        needs_skpro = "needs-skpro" in block["options"]
        if needs_skpro and importlib.util.find_spec("skpro") is None:
            continue
        # Lines keep their numbers, so that an error points into the page.
        padding = "\n" * text.count("\n", 0, block.start("code"))
        code = re.sub(r"^   ", "", block["code"], flags=re.MULTILINE)
        exec(compile(padding + code, f"docs/{page}.rst", "exec"), namespace)


def test_reference_lists_every_public_name_once() -> None:
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    listed = re.findall(r"^\.\. auto\w+:: (\S+)$", text, flags=re.MULTILINE)
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
