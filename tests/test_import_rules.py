"""Who may import whom, read from the source: the table below is the architecture."""

import ast
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("calibration", "localexpert")

# ---------------------------------------------------------------------------------
# The arrow table. A row is "file may import these"; the standard library is open to
# all but kernels, numpy to all. `room.*` means every file of the room, and a bare
# package name its public names only. A new file needs a row here.
# ---------------------------------------------------------------------------------

_KERNELS = "calibration._kernels.*"
_CHECKS = "calibration._validation calibration.exceptions"
_DATA = "calibration.summary calibration.maps"
_BASES = "calibration.base calibration.log_odds"

_GROUND = f"{_KERNELS} localexpert._kernels.* localexpert._validation"
_PROGRESS = "localexpert.progress localexpert.jobs"
_STAGES = (
    "localexpert.base_cdf localexpert.coordinate localexpert.expert_calibration "
    "localexpert.experts localexpert.folds localexpert.laws localexpert.laws.* "
    "localexpert.spline localexpert.thresholds"
)

# One family of calibrators a file; none knows another.
CALIBRATORS = (
    "asymmetric_laplace",
    "bagging",
    "beta",
    "elite",
    "enir",
    "gaussian",
    "histogram",
    "identity",
    "isotonic",
    "logistic",
    "piecewise",
    "three_values",
    "venn_abers",
)
# Files of calibration/measures, in order: each may import those before it.
MEASURES = (
    "scores",
    "bins",
    "proper",
    "decompositions",
    "reliability",
    "rank_tests",
    "comparison",
)

ARROWS: dict[str, str] = {
    # calibration: from the ground up
    "calibration._kernels.*": f"numba {_KERNELS}",
    "calibration.exceptions": "",
    "calibration._validation": f"sklearn calibration.exceptions {_KERNELS}",
    "calibration.summary": f"scipy {_KERNELS} {_CHECKS}",
    # One file for whatever was fitted; knows the packages by walking them.
    "calibration.storage.*": "skops sklearn pandas calibration.storage.*",
    "calibration.storage": "calibration.storage.*",
    "calibration.maps": f"scipy {_KERNELS} {_CHECKS} calibration.storage",
    "calibration.base": (
        f"scipy sklearn {_KERNELS} {_CHECKS} {_DATA} calibration.storage"
    ),
    "calibration.log_odds": (
        f"scipy sklearn {_KERNELS} {_CHECKS} {_DATA} calibration.base"
    ),
    **{
        f"calibration.{name}": (
            f"scipy sklearn joblib {_KERNELS} {_CHECKS} {_DATA} {_BASES}"
        )
        for name in CALIBRATORS
    },
    # Choosing among calibrators: a layer above them.
    "calibration.auto_report": "",
    "calibration.auto_trials": f"scipy sklearn {_KERNELS} {_DATA} {_BASES}",
    "calibration.auto": (
        f"sklearn {_KERNELS} {_CHECKS} {_DATA} {_BASES} calibration.auto_report "
        "calibration.auto_trials "
        + " ".join(f"calibration.{name}" for name in CALIBRATORS)
    ),
    "calibration.compare": (
        f"matplotlib scipy sklearn {_KERNELS} {_CHECKS} {_DATA} {_BASES} "
        "calibration.auto calibration.auto_trials calibration.measures "
        + " ".join(f"calibration.{name}" for name in CALIBRATORS)
    ),
    "calibration.class_densities": (
        f"scipy sklearn {_KERNELS} {_CHECKS} {_DATA} {_BASES}"
    ),
    "calibration.kernel_density": f"{_KERNELS} calibration.class_densities",
    "calibration.kernel_selection": f"{_KERNELS} calibration.kernel_density",
    "calibration.kde": (
        f"scipy {_KERNELS} {_CHECKS} {_DATA} {_BASES} calibration.class_densities "
        "calibration.kernel_density calibration.kernel_selection"
    ),
    "calibration.dpm": (
        f"{_KERNELS} {_CHECKS} {_DATA} {_BASES} calibration.class_densities"
    ),
    "calibration.side_information": (
        f"sklearn {_KERNELS} {_CHECKS} {_DATA} calibration.base calibration.storage"
    ),
    **{
        f"calibration.{name}": (
            f"sklearn {_KERNELS} {_CHECKS} {_DATA} calibration.base "
            "calibration.side_information"
        )
        for name in ("acp", "sba")
    },
    "calibration.logistic_intervals": f"scipy sklearn {_KERNELS} {_CHECKS}",
    "calibration.trimming": (
        f"sklearn {_KERNELS} {_CHECKS} {_DATA} calibration.base calibration.logistic"
    ),
    "calibration.theory": f"{_KERNELS} {_CHECKS}",
    "calibration.beta_bins": (
        f"scipy sklearn {_KERNELS} {_CHECKS} {_DATA} calibration.base"
    ),
    "calibration.all_binnings": (
        f"scipy {_KERNELS} {_CHECKS} {_DATA} calibration.base calibration.beta_bins"
    ),
    "calibration.bbq": f"{_KERNELS} {_CHECKS} {_DATA} {_BASES} calibration.beta_bins",
    "calibration.binnings": (
        f"{_KERNELS} {_CHECKS} {_DATA} {_BASES} calibration.beta_bins "
        "calibration.all_binnings"
    ),
    **{
        f"calibration.measures.{name}": " ".join(
            [
                f"scipy {_KERNELS} {_CHECKS} {_DATA}",
                *(f"calibration.measures.{other}" for other in MEASURES[:position]),
            ]
        )
        for position, name in enumerate(MEASURES)
    },
    "calibration.measures": "calibration.measures.*",
    # Above the calibrators: what wraps them and chooses among them.
    "calibration.folds": f"scipy sklearn {_KERNELS} {_CHECKS}",
    "calibration.responses": f"scipy sklearn {_KERNELS} {_CHECKS} {_BASES}",
    "calibration.classifier": (
        f"scipy sklearn joblib {_KERNELS} {_CHECKS} {_DATA} {_BASES} "
        "calibration.logistic calibration.folds calibration.responses "
        "calibration.auto calibration.venn_abers calibration.storage"
    ),
    "calibration.plots": (
        f"matplotlib scipy {_KERNELS} {_CHECKS} {_DATA} calibration.base "
        "calibration.measures calibration.measures.*"
    ),
    "calibration": "calibration.*",
    # localexpert: of the core it sees public names only; its kernels share kernels.
    "localexpert._kernels.*": f"numba {_KERNELS} localexpert._kernels.*",
    "localexpert._validation": f"{_KERNELS} calibration._validation",
    # What a forecast is: laws, and what one asks of them.
    "localexpert.marginal": f"scipy {_GROUND}",
    "localexpert.base_cdf": f"scipy {_GROUND} localexpert.marginal",
    "localexpert.laws.law": f"scipy {_GROUND}",
    "localexpert.laws.discrete": f"scipy {_GROUND} localexpert.laws.law",
    "localexpert.laws.mixed": (
        f"scipy {_GROUND} localexpert.laws.law localexpert.laws.discrete"
    ),
    "localexpert.laws.spline": (
        f"scipy {_GROUND} localexpert.laws.law localexpert.base_cdf"
    ),
    "localexpert.laws": "localexpert.laws.*",
    "localexpert.risk_measures": f"{_GROUND} localexpert.laws.law",
    "localexpert.distribution": (
        f"{_GROUND} localexpert.laws.law localexpert.risk_measures"
    ),
    "localexpert.metrics": (
        f"scipy {_KERNELS} calibration._validation localexpert.distribution"
    ),
    "localexpert.risk": "localexpert.risk.*",
    "localexpert.risk._validation": f"{_GROUND} localexpert.distribution",
    "localexpert.risk.expectations": (
        f"{_GROUND} localexpert.distribution localexpert.laws.law "
        "localexpert.laws.discrete"
    ),
    "localexpert.risk.measures": (
        f"{_GROUND} localexpert.distribution localexpert.laws.law "
        "localexpert.risk._validation localexpert.risk.expectations"
    ),
    "localexpert.risk.decisions": (
        f"{_GROUND} localexpert.distribution localexpert.risk._validation "
        "localexpert.risk.expectations"
    ),
    "localexpert.risk.policy": (
        f"{_GROUND} localexpert.distribution localexpert.risk._validation"
    ),
    "localexpert.risk.cost_matrix": _GROUND,
    "localexpert.risk.table": (
        f"pandas {_GROUND} localexpert.distribution localexpert.risk._validation "
        "localexpert.risk.measures"
    ),
    # Where a fit stands, told by the stages to whoever listens.
    "localexpert.progress_line": "",
    "localexpert.progress": "localexpert.progress_line",
    "localexpert.jobs": "sklearn localexpert.progress",
    # How one is learned: stages that know nothing of each other.
    "localexpert.thresholds": _GROUND,
    "localexpert.folds": f"sklearn {_GROUND}",
    "localexpert.experts.*": (
        "scipy sklearn joblib lightgbm xgboost threadpoolctl calibration "
        f"{_GROUND} {_PROGRESS} localexpert.folds localexpert.experts.*"
    ),
    "localexpert.experts": "localexpert.experts.*",
    "localexpert.coordinate.*": (
        f"scipy sklearn lightgbm threadpoolctl {_GROUND} {_PROGRESS} localexpert.folds "
        "localexpert.experts.inputs localexpert.experts.tables "
        "localexpert.coordinate.*"
    ),
    "localexpert.coordinate": "localexpert.coordinate.*",
    "localexpert.spline": f"scipy {_GROUND}",
    "localexpert.expert_calibration": (
        f"sklearn calibration {_GROUND} localexpert.progress"
    ),
    "localexpert.laws.score_map": f"scipy {_GROUND}",
    "localexpert.laws.scanned": f"{_GROUND} localexpert.laws.law",
    "localexpert.laws.composed_map": f"{_GROUND} localexpert.laws.score_map",
    "localexpert.laws.recentred": f"{_GROUND} localexpert.laws.*",
    "localexpert.laws.beside_atoms": (
        f"scipy {_GROUND} localexpert.laws.law localexpert.laws.mixed "
        "localexpert.laws.score_map"
    ),
    "localexpert.laws.recalibrated": f"scipy {_GROUND} localexpert.laws.*",
    "localexpert.pit_curves": f"scipy {_GROUND} localexpert.laws.score_map",
    "localexpert.recalibration": (
        f"scipy {_GROUND} localexpert.folds localexpert.laws localexpert.laws.* "
        "localexpert.pit_curves"
    ),
    "localexpert.conformal": (
        f"scipy {_GROUND} localexpert.folds localexpert.laws localexpert.laws.* "
        "localexpert.recalibration"
    ),
    "localexpert.plots.experts": f"matplotlib {_GROUND} localexpert.expert_report",
    "localexpert.plots.canvas": f"matplotlib {_GROUND} localexpert.distribution",
    "localexpert.plots.shape": f"{_GROUND} localexpert.distribution",
    "localexpert.plots.importance": f"matplotlib {_GROUND} localexpert.plots.canvas",
    "localexpert.plots.thresholds": (
        f"matplotlib calibration {_GROUND} localexpert.forecasters.tasks "
        "localexpert.plots.canvas"
    ),
    **{
        f"localexpert.plots.{name}": (
            f"matplotlib {_GROUND} localexpert.distribution "
            "localexpert.plots.canvas localexpert.plots.shape"
        )
        for name in ("forecast", "ridge")
    },
    **{
        f"localexpert.plots.{name}": (
            f"matplotlib scipy {_GROUND} localexpert.distribution "
            "localexpert.plots.canvas"
        )
        for name in ("calibration", "coverage", "fan", "sharpness")
    },
    "localexpert.plots": "localexpert.plots.*",
    "localexpert.explain.*": (
        f"pandas matplotlib calibration {_GROUND} localexpert.distribution "
        "localexpert.metrics localexpert.experts.tables localexpert.progress "
        "localexpert.explain.*"
    ),
    "localexpert.explain.boosting": (
        f"sklearn {_GROUND} localexpert.coordinate localexpert.experts.draws "
        "localexpert.experts.shared localexpert.experts.tables "
        "localexpert.experts.trees localexpert.explain.*"
    ),
    "localexpert.explain": "localexpert.explain.*",
    "localexpert.fit_report": "",
    "localexpert.expert_report": f"sklearn calibration {_GROUND}",
    # The roads join the stages; the regressor takes one.
    "localexpert.forecasters.*": (
        f"scipy sklearn {_GROUND} {_STAGES} localexpert.experts.tables "
        "localexpert.experts.classifiers localexpert.fit_report localexpert.progress "
        "localexpert.forecasters.*"
    ),
    "localexpert.forecasters": "localexpert.forecasters.*",
    # Above the roads: a point forecast learned from what they said out of fold.
    "localexpert.stacking.*": (
        f"pandas scipy sklearn {_GROUND} localexpert.distribution localexpert.folds "
        "localexpert.thresholds localexpert.experts.tables "
        "localexpert.coordinate.boosting localexpert.coordinate.families "
        "localexpert.coordinate.views localexpert.stacking.*"
    ),
    "localexpert.stacking": "localexpert.stacking.*",
    "localexpert.storage.*": (
        "lightgbm xgboost calibration.storage localexpert.storage.*"
    ),
    "localexpert.storage": "localexpert.storage.*",
    "localexpert.base": (
        f"sklearn {_GROUND} localexpert.distribution localexpert.storage"
    ),
    "localexpert.regressor": (
        f"sklearn calibration {_GROUND} localexpert.distribution "
        "localexpert.expert_report localexpert.fit_report localexpert.folds "
        "localexpert.forecasters.* "
        "localexpert.experts.tables localexpert.recalibration localexpert.conformal "
        "localexpert.laws localexpert.laws.recentred localexpert.base "
        "localexpert.stacking.* localexpert.progress"
    ),
    # Several regressors, pooled.
    "localexpert.laws.pooled_mesh": f"{_GROUND} localexpert.laws.law",
    "localexpert.laws.pooled": (
        f"scipy {_GROUND} localexpert.laws.law localexpert.laws.pooled_mesh "
        "localexpert.laws.scanned localexpert.laws.score_map"
    ),
    "localexpert.laws.pooling": f"scipy {_GROUND} localexpert.laws.*",
    "localexpert.ensemble.weights": f"scipy {_GROUND} localexpert.laws.*",
    "localexpert.ensemble.learned": (
        f"{_GROUND} localexpert.folds localexpert.laws localexpert.laws.pooling "
        "localexpert.recalibration localexpert.ensemble.weights"
    ),
    "localexpert.ensemble.members": (
        f"sklearn {_GROUND} localexpert.folds localexpert.regressor"
    ),
    "localexpert.ensemble.ensemble": (
        f"sklearn {_GROUND} localexpert.base localexpert.conformal "
        "localexpert.distribution localexpert.folds localexpert.laws "
        "localexpert.laws.pooling localexpert.recalibration "
        "localexpert.ensemble.learned localexpert.ensemble.members "
        "localexpert.ensemble.weights"
    ),
    "localexpert.ensemble": "localexpert.ensemble.*",
    # For those who work with skpro; nothing of ours imports it.
    "localexpert.skpro.bases": "skpro",
    "localexpert.skpro.forecast": (
        f"pandas {_GROUND} localexpert.distribution localexpert.base_cdf "
        "localexpert.laws localexpert.laws.law localexpert.skpro.bases"
    ),
    "localexpert.skpro.regressor": (
        "pandas sklearn localexpert.regressor localexpert.skpro.bases "
        "localexpert.skpro.forecast"
    ),
    "localexpert.skpro": "localexpert.skpro.*",
    # One page on a model and rows it has not seen.
    "localexpert.climatology": (
        f"{_GROUND} localexpert.base_cdf localexpert.distribution localexpert.laws "
        "localexpert.regressor"
    ),
    "localexpert.reporting.markup": "",
    "localexpert.reporting.style": "",
    "localexpert.reporting.writing": "calibration.storage",
    "localexpert.reporting.pictures": "matplotlib localexpert.reporting.markup",
    "localexpert.reporting.*": (
        f"scipy lightgbm {_GROUND} localexpert.distribution localexpert.metrics "
        "localexpert.experts.tables localexpert.laws localexpert.regressor "
        "localexpert.forecasters.* localexpert.expert_report localexpert.fit_report "
        "localexpert.explain localexpert.explain.mixing localexpert.plots.* "
        "localexpert.risk localexpert.climatology localexpert.reporting.*"
    ),
    "localexpert.reporting": "localexpert.reporting.*",
    # What a shell runs.
    "localexpert.cli.*": (
        f"sklearn calibration calibration.storage {_KERNELS} localexpert.climatology "
        "localexpert.distribution localexpert.laws localexpert.metrics "
        "localexpert.regressor localexpert.reporting localexpert.storage.load "
        "localexpert.cli.*"
    ),
    "localexpert.cli": "",
    "localexpert.__main__": "localexpert.cli.main",
    "localexpert": "localexpert.*",
}

# A kernel sees arrays and nothing of the machine; `_jit` alone knows how to compile.
KERNEL_STDLIB = {"__future__", "collections", "math", "typing"}
OPEN_TO_ALL = {"numpy"}
LAZY = {"matplotlib"}

_TABLE = "ARROWS in tests/test_import_rules.py"


@dataclass(frozen=True)
class Import:
    """One imported module, and where the import stands."""

    target: str
    line: int
    names: tuple[str, ...] = ()
    in_function: bool = False
    for_types: bool = False


def find_modules(root: Path = ROOT) -> dict[str, Path]:
    """Return the file of every module of the packages, by its full name."""
    modules = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            modules[".".join(parts).removesuffix(".__init__")] = path
    return modules


def read_imports(source: str, module: str, modules: set[str]) -> list[Import]:
    """Return the imports of a source, `from package import module` as the module."""
    found: list[Import] = []

    def add(node: ast.stmt, target: str, name: str, flags: tuple[bool, bool]) -> None:
        submodule = f"{target}.{name}"
        resolved = submodule if submodule in modules else target
        found.append(Import(resolved, node.lineno, (name,), *flags))

    def visit(node: ast.AST, in_function: bool, for_types: bool) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.append(
                    Import(alias.name, node.lineno, (), in_function, for_types)
                )
        elif isinstance(node, ast.ImportFrom):
            target = node.module or ""
            if node.level:  # ruff bans these; the arrow is read all the same
                base = module.split(".")[: -node.level]
                target = ".".join([*base, *filter(None, [node.module])])
            for alias in node.names:
                add(node, target, alias.name, (in_function, for_types))
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                visit(child, in_function, for_types=True)
            for child in node.orelse:
                visit(child, in_function, for_types)
        else:
            inside = in_function or isinstance(
                node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
            )
            for child in ast.iter_child_nodes(node):
                visit(child, inside, for_types)

    visit(ast.parse(source), in_function=False, for_types=False)
    return found


def package_of(module: str) -> str:
    """Return the top-level name of a module."""
    return module.partition(".")[0]


def find_row(module: str) -> str | None:
    """Return the key of the module's row: itself, or the narrowest room it is in."""
    if module in ARROWS:
        return module
    rooms = [key for key in ARROWS if key.endswith("*") and fnmatchcase(module, key)]
    # The `__init__` of a room of kernels states the rule and imports nothing.
    rooms += [key for key in ARROWS if key == f"{module}.*"]
    return max(rooms, key=len, default=None)


def is_allowed(target: str, module: str, row: str) -> bool:
    """Say whether `module`, whose row is given, may import `target`."""
    top = package_of(target)
    if top in PACKAGES:
        return any(fnmatchcase(target, entry) for entry in ARROWS[row].split())
    if top in sys.stdlib_module_names:
        in_kernels = "._kernels" in row and not module.endswith("._jit")
        return not in_kernels or top in KERNEL_STDLIB
    return top in OPEN_TO_ALL or top in ARROWS[row].split()


def find_violations(module: str, source: str, modules: set[str]) -> list[str]:
    """Return what is wrong with the imports of one file, a line each."""
    row = find_row(module)
    if row is None:
        return [
            f"{module} has no row: add it to {_TABLE} (a calibrator to CALIBRATORS, "
            "a measure to MEASURES), with the fewest arrows that it needs"
        ]
    wrong = []
    for item in read_imports(source, module, modules):
        where = f"{module}:{item.line} imports {item.target}"
        top = package_of(item.target)
        parts = item.target.split(".") + list(item.names)
        if module.startswith(f"{item.target}."):
            wrong.append(f"{where}, a package it is part of: name the file instead")
        elif not is_allowed(item.target, module, row):
            wrong.append(f"{where}, which is not in its row {row!r} of {_TABLE}")
        elif top in LAZY and not (item.in_function or item.for_types):
            wrong.append(f"{where} at module level: import it inside the function")
        elif top not in PACKAGES and any(
            part.startswith("_") and not part.startswith("__") for part in parts
        ):
            names = ", ".join(item.names)
            wrong.append(f"{where} {names}".rstrip() + ": private to its project")
    return wrong


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return one cycle of a graph as a path that ends where it began, or nothing."""
    finished: set[str] = set()

    def walk(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node not in finished:
            for target in sorted(graph.get(node, ())):
                if cycle := walk(target, [*path, node]):
                    return cycle
            finished.add(node)
        return []

    return next((cycle for node in sorted(graph) if (cycle := walk(node, []))), [])


MODULES = find_modules()


@pytest.mark.parametrize("module", MODULES)
def test_every_import_is_an_arrow_of_the_table(module: str) -> None:
    source = MODULES[module].read_text(encoding="utf-8")
    wrong = find_violations(module, source, set(MODULES))
    assert not wrong, "\n".join(wrong)


def test_no_cycles() -> None:
    graph = {
        module: {
            item.target
            for item in read_imports(path.read_text("utf-8"), module, set(MODULES))
            if item.target in MODULES
        }
        for module, path in MODULES.items()
    }
    cycle = find_cycle(graph)
    assert not cycle, " -> ".join(cycle)


def test_the_table_keeps_the_rules_it_must_never_lose() -> None:
    for key, row in ARROWS.items():
        entries = row.split()
        if key.startswith("calibration"):
            assert not [e for e in entries if e.startswith("localexpert")], key
        if "._kernels" in key:
            assert all(e == "numba" or "._kernels." in e for e in entries), key
        if key not in PACKAGES:
            assert not [e for e in entries if e.endswith(".plots")], key
            assert not [e for e in entries if e in ("calibration.*", "localexpert.*")]
    for name in CALIBRATORS:
        entries = ARROWS[f"calibration.{name}"].split()
        assert not set(entries) & {f"calibration.{other}" for other in CALIBRATORS}


_SYNTHETIC = set(MODULES) | {"calibration.plots", "calibration.measures.scores"}


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("calibration.beta", "import localexpert", "not in its row"),
        ("calibration.beta", "from localexpert.maps import f", "not in its row"),
        ("calibration.beta", "from calibration.isotonic import f", "not in its row"),
        ("calibration.beta", "from .isotonic import f", "imports calibration.isotonic"),
        ("calibration.beta", "from calibration import isotonic", "not in its row"),
        ("calibration.beta", "from calibration import BetaCalibrator", "is part of"),
        ("calibration.beta", "import calibration", "is part of"),
        ("calibration.beta", "def f():\n    import pandas", "not in its row"),
        ("calibration.beta", "from scipy._lib.x import y", "private"),
        ("calibration.beta", "from sklearn.utils import _x", "private"),
        ("calibration.base", "from calibration.beta import f", "not in its row"),
        ("calibration.maps", "import sklearn.base", "not in its row"),
        ("calibration.classifier", "import calibration.plots", "not in its row"),
        ("calibration.plots", "import matplotlib.pyplot as plt", "at module level"),
        ("calibration._kernels.pav", "import scipy", "not in its row"),
        ("calibration._kernels.pav", "import os", "not in its row"),
        (
            "calibration._kernels.pav",
            "from calibration._validation import check_vector",
            "not in its row",
        ),
        (
            "calibration.measures.scores",
            "from calibration.measures.reliability import f",
            "not in its row",
        ),
        (
            "calibration.measures.reliability",
            "from calibration.measures import brier_score",
            "is part of",
        ),
        ("calibration.new_idea", "", "has no row"),
        ("localexpert.new_idea", "", "add it to ARROWS in tests/test_import_rules.py"),
        (
            "localexpert._kernels.monotone",
            "from calibration.maps import CalibrationMap",
            "not in its row",
        ),
    ],
)
def test_the_checker_catches(module: str, source: str, complaint: str) -> None:
    wrong = find_violations(module, source, _SYNTHETIC)
    assert len(wrong) == 1
    assert complaint in wrong[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("calibration._kernels.pav", "import math, numba\nimport numpy as np"),
        ("calibration._kernels._jit", "import os"),
        ("calibration._kernels", ""),
        ("calibration.beta", "from calibration._kernels import pav"),
        ("calibration.beta", "from __future__ import annotations\nimport warnings"),
        ("calibration.plots", "def plot():\n    import matplotlib.pyplot as plt"),
        (
            "calibration.plots",
            "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from matplotlib.axes import Axes",
        ),
        ("localexpert._kernels.monotone", "from calibration._kernels.pav import pool"),
        ("calibration", "from calibration.plots import plot_reliability"),
    ],
)
def test_the_checker_lets_pass(module: str, source: str) -> None:
    assert find_violations(module, source, _SYNTHETIC) == []


def test_the_checker_finds_cycles() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}
    assert find_cycle(graph) == ["b", "d", "b"]
    assert find_cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
