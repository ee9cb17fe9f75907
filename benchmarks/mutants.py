r"""How many small faults the tests catch.

    NUMBA_DISABLE_JIT=1 COVERAGE_FILE=kernels.db COVERAGE_CORE=ctrace \
        python -m pytest tests/*/_kernels -m "not slow" --cov=calibration \
        --cov=localexpert --cov-context=test --cov-report= --cov-fail-under=0
    COVERAGE_FILE=fast.db COVERAGE_CORE=ctrace python -m pytest -m "not slow" \
        --cov=calibration --cov=localexpert --cov-context=test --cov-report= \
        --cov-fail-under=0 --junitxml=seconds.xml
    python benchmarks/mutants.py fast.db kernels.db seconds.xml --tree COPY

A mutant is one change of the code: a comparison, + and -, * and /, `and` and `or`, a
`not`, a number, True and False. 100 are drawn over all lines of both packages that
tests run. Each meets the tests that cover its line, quick ones first, until one fails.
A line that is run on import meets the tests of its file. COPY is a checkout of the same
commit; its files are changed and put back. One JSON line a mutant; rerun to resume.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from coverage import CoverageData
from records import Records

PACKAGES = ("calibration", "localexpert")
SWAPS: dict[type, type] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is},
    **{ast.And: ast.Or, ast.Or: ast.And},
    **{ast.In: ast.NotIn, ast.NotIn: ast.In},  # codespell:ignore
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
}


def mutate(node: ast.AST) -> bool:
    """Change `node` in place, where that is possible."""
    if isinstance(node, ast.BinOp | ast.BoolOp):
        if type(node.op) not in SWAPS:
            return False
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        # Not not x: the truth of x.
        node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        node.value += 1
    else:
        return False
    return True


def candidates(tree: ast.AST) -> list[ast.AST]:
    """Return what may be changed: no types, nor texts, nor blocks for type checkers."""
    found, ahead = [], [tree]
    while ahead:
        node = ahead.pop(0)
        if isinstance(node, ast.JoinedStr | ast.Raise):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        found.append(node)
        for name, value in ast.iter_fields(node):
            if name not in ("annotation", "returns"):
                parts = value if isinstance(value, list) else [value]
                ahead.extend(part for part in parts if isinstance(part, ast.AST))
    return found


class Covered:
    """Which tests run which lines, and how long they take."""

    def __init__(self, databases: list[str], seconds: str, root: Path) -> None:
        self.lines: dict[str, dict[int, set[str]]] = {}
        for database in databases:
            data = CoverageData(database)
            data.read()
            for file in data.measured_files():
                name = str(Path(file).relative_to(root))
                kernel = "_kernels" in name
                if kernel != ("kernels" in database) or not name.endswith(".py"):
                    continue
                self.lines[name] = {
                    line: {text.rpartition("|")[0] for text in contexts if text}
                    for line, contexts in data.contexts_by_lineno(file).items()
                }
        self.seconds: dict[str, float] = defaultdict(lambda: 1.0)
        for case in ElementTree.parse(seconds).iter("testcase"):
            module = str(case.get("classname")).replace(".", "/") + ".py"
            self.seconds[f"{module}::{case.get('name')}"] = float(case.get("time", 0))

    def tests(self, file: str, line: int) -> list[str]:
        """Return the tests of a line, quick ones first."""
        lines = self.lines[file]
        chosen = lines[line] or set().union(*lines.values())
        return sorted(chosen, key=lambda name: (self.seconds[name], name))


def run(tree: Path, file: str, text: str, tests: list[str], limit: float) -> int:
    """Return what pytest answers where `file` reads `text`."""
    path = tree / file
    before, stat = path.read_bytes(), path.stat()
    chosen = tree / "chosen.txt"
    chosen.write_text("\n".join(tests))
    plain = {"NUMBA_DISABLE_JIT": "1"} if "_kernels" in file else {}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    try:
        path.write_text(text)
        return subprocess.run(
            [*command, "-W", "ignore:overflow:RuntimeWarning", "@chosen.txt"],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree), "MPLBACKEND": "Agg", **plain},
            capture_output=True,
            check=False,
            timeout=limit,
        ).returncode
    except subprocess.TimeoutExpired:
        return 1
    finally:
        path.write_bytes(before)
        # Compiled kernels are kept by the time of their file.
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def quick(tests: list[str], covered: Covered, budget: float) -> list[str]:
    """Return tests from the start that take `budget` seconds in all, one at least."""
    total, chosen = 0.0, []
    for name in tests:
        total += covered.seconds[name]
        if chosen and total > budget:
            break
        chosen.append(name)
    return chosen


def drawn(covered: Covered, tree: Path, n: int, seed: int) -> list[tuple[str, int]]:
    """Return files and places in them, drawn from all that may be changed."""
    places = []
    for file, lines in sorted(covered.lines.items()):
        nodes = candidates(ast.parse((tree / file).read_text()))
        for place, node in enumerate(nodes):
            if getattr(node, "lineno", 0) in lines and mutate(node):
                places.append((file, place))
    return random.Random(seed).sample(places, n)


def attack(file: str, place: int, covered: Covered, tree: Path) -> dict[str, Any]:
    """Change one place, and say whether a test fails."""
    module = ast.parse((tree / file).read_text())
    node: Any = candidates(module)[place]
    line, old = node.lineno, ast.unparse(node)
    mutate(node)
    text, tests = ast.unparse(module), covered.tests(file, line)
    row = {"file": file, "line": line, "old": old, "new": ast.unparse(node)}
    for budget in (20.0, 240.0):
        chosen = quick(tests, covered, budget)
        code = run(tree, file, text, chosen, 120 + 6 * budget)
        if code not in (0, 1, 2):
            msg = f"pytest answers {code} for {row}"
            raise RuntimeError(msg)
        row |= {"tests": len(chosen), "of": len(tests), "caught": code != 0}
        if code or len(chosen) == len(tests):
            break
    return row


def main() -> None:
    """Attack, and print the share caught and what was not."""
    parser = argparse.ArgumentParser(
        description=str(__doc__).split("\n", maxsplit=1)[0]
    )
    parser.add_argument("databases", nargs=2)
    parser.add_argument("seconds")
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=Path.cwd())
    parser.add_argument("--n", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    covered = Covered(args.databases, args.seconds, args.root.resolve())
    records = Records("mutants", f"seed {args.seed}", fresh=False)
    rows = []
    for file, place in drawn(covered, args.tree, args.n, args.seed):
        key = f"{file} {place}"
        rows.append(
            records.measure(key, partial(attack, file, place, covered, args.tree))
        )
    for row in rows:
        if not row["caught"]:
            print("{file}:{line}: {old} -> {new} ({tests} of {of} tests)".format(**row))
    print(f"{sum(row['caught'] for row in rows)} of {len(rows)} mutants are caught.")


if __name__ == "__main__":
    main()
