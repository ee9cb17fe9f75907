"""A file is one noun and a function one thought, so the sizes of both have limits."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_FILE, MAX_FUNCTION = 700, 60
PACKAGES = ("calibration", "localexpert")


def count_lines(function):
    """Return the lines of a function below its first one, without its docstring."""
    first, last = function.body[0], function.end_lineno
    assert last is not None
    assert first.end_lineno is not None
    lines = last - function.lineno
    if ast.get_docstring(function) is not None:
        lines -= first.end_lineno - first.lineno + 1
    return lines


def test_sizes():
    wrong = []
    for path in (p for name in PACKAGES for p in (ROOT / name).rglob("*.py")):
        source, name = path.read_text(encoding="utf-8"), path.relative_to(ROOT)
        if (lines := len(source.splitlines())) > MAX_FILE:
            wrong.append(f"{name}: {lines} lines, split the file by noun")
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if (lines := count_lines(node)) > MAX_FUNCTION:
                wrong.append(f"{name}: {node.name} has {lines} lines")
    assert not wrong, "\n".join(wrong)
