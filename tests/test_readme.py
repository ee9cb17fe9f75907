"""The code in README.md runs as printed."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_python_blocks_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert blocks
    namespace: dict[str, object] = {"__name__": "readme"}
    for block in blocks:
        # Lines keep their numbers in the README, so that an error points there.
        padding = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(padding + block[1], str(README), "exec"), namespace)


def test_links_and_pictures_exist() -> None:
    targets = re.findall(r"\]\(([^)#\s]+)\)", README.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert local
    missing = [target for target in local if not (README.parent / target).exists()]
    assert not missing
