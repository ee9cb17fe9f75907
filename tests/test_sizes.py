"""A file is one noun and a function one thought: the sizes of both are bounded."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_FILE = 700
MAX_FUNCTION = 60
FILES = [
    path
    for package in ("calibration", "localexpert")
    for path in sorted((ROOT / package).rglob("*.py"))
]


def count_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines of a function below its first one, without its docstring."""
    assert function.end_lineno is not None
    lines = function.end_lineno - function.lineno
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        assert docstring.end_lineno is not None
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_sizes(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    lines = len(source.splitlines())
    assert lines <= MAX_FILE, f"{lines} lines: split the file by noun"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = count_lines(node)
            assert lines <= MAX_FUNCTION, f"{node.name} has {lines} lines"


def test_a_docstring_does_not_count() -> None:
    source = 'def f(\n    x,\n):\n    """One.\n\n    Two.\n    """\n    return x\n'
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert count_lines(function) == 3
