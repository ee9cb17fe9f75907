"""The code in README.md runs as printed."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_python_blocks_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert blocks
    namespace = {"__name__": "readme"}
    for block in blocks:
        # Lines keep their numbers in the README, so that an error points there.
        padding = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(padding + block[1], str(README), "exec"), namespace)


def test_links_and_pictures_exist():
    targets = re.findall(r"\]\(([^)#\s]+)\)", README.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert local
    missing = [target for target in local if not (README.parent / target).exists()]
    assert not missing


def test_peers_are_those_of_the_benchmark():
    text = README.read_text(encoding="utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| ") and "---" not in line
    ]
    page = README.parent.joinpath("docs", "benchmarks.rst").read_text(encoding="utf-8")
    rule = next(line for line in page.splitlines() if "=  =" in line)
    places = [found.span() for found in re.finditer("=+", rule)]
    head, body, _ = page[page.index(rule) :].split("\n" + rule + "\n", 2)
    lines = [head.splitlines()[-1], *body.splitlines()]
    cells = [[line[low:high].strip() for low, high in places] for line in lines]
    taken = [cells[0].index(name) for name in rows[0]]
    assert rows == [[row[k] for k in taken] for row in cells]
    assert len(rows) > 10


def test_examples_are_counted():
    number = len(list((README.parent / "examples").glob("[!_]*.py")))
    assert number == 16
    assert "[sixteen examples](examples)" in README.read_text(encoding="utf-8")
    head = README.parent.joinpath("examples", "GALLERY_HEADER.rst")
    assert "Sixteen short scripts" in head.read_text(encoding="utf-8")
