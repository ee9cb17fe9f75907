"""Who may import whom, read from the source: the table below is the architecture."""

import ast
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("calibration", "localexpert")

# ---------------------------------------------------------------------------------
# The arrow table. A row is "room may import these rooms and libraries": a room is a
# folder, or a file that stands alone, right below a package. Files of one room may
# import each other without going round in a circle. `.room` is a room of the package
# itself. The standard library is open to all but kernels, numpy to all, `typing` to
# all. `calibration` alone means its public names. A new room needs a row here.
# ---------------------------------------------------------------------------------

# One family of calibrators a room; none knows another.
FAMILIES = ("binning", "densities", "logistic", "monotone", "neighbours")

_CHECKS = "._validation .exceptions"
_DATA = ".summary .maps"
_CORE = f"scipy sklearn joblib ._kernels {_CHECKS} {_DATA} .base"
_GROUND = "calibration._kernels calibration._validation ._kernels ._validation"

ARROWS = {
    # calibration: from the ground up
    "calibration.typing": "",
    # Finds public names, which `__init__.pyi` lists, when they are asked for.
    "calibration._lazy": "",
    "calibration.exceptions": "",
    "calibration._kernels": "numba",
    # Jobs, and the threads of libraries under them.
    "calibration._jobs": "sklearn threadpoolctl",
    "calibration._validation": "sklearn .exceptions ._kernels",
    # One file for anything fitted. It walks the packages to know them.
    "calibration.storage": "sklearn pandas lightgbm ._validation",
    # Tables larger than memory, a part at a time.
    "calibration.sources": f"pandas pyarrow dask distributed joblib {_CHECKS} .summary",
    "calibration.summary": f"scipy ._kernels {_CHECKS}",
    "calibration.maps": f"scipy ._kernels {_CHECKS} .storage",
    "calibration.base": f"scipy sklearn ._kernels {_CHECKS} {_DATA} .storage",
    **{f"calibration.{name}": f"{_CORE} .storage" for name in FAMILIES},
    "calibration.measures": f"scipy sklearn ._kernels {_CHECKS} {_DATA}",
    # More than two classes, by softmax or by binary calibrators.
    "calibration.multiclass": (
        f"._jobs {_CORE} .storage .binning .densities .logistic .monotone"
    ),
    # Above the calibrators of two classes and of more: what chooses, what compares.
    "calibration.selection": f"tqdm {_CORE} .measures .logistic .monotone .multiclass",
    # After the fit: other priors, other rows.
    "calibration.drift": f"{_CORE} .logistic .monotone",
    "calibration.classifier": (
        f"._jobs {_CORE} .storage .selection .logistic .monotone .multiclass"
    ),
    "calibration.plots": (
        f"matplotlib scipy sklearn {_CHECKS} {_DATA} .base .measures .drift"
    ),
    "calibration": "._lazy",
    # localexpert: of the core it sees public names, and the checks, which word all
    # refusals in both packages; its kernels share kernels.
    "localexpert._kernels": "numba calibration._kernels",
    "localexpert._validation": (
        "calibration._kernels calibration._validation calibration.exceptions"
    ),
    # Input of a user, and what a forecast is.
    "localexpert.data": f"scipy sklearn joblib calibration calibration._jobs {_GROUND}",
    "localexpert.law": f"scipy calibration {_GROUND}",
    "localexpert.curves": f"scipy {_GROUND} .data .law",
    "localexpert.distribution": f"pandas scipy sklearn {_GROUND} .law",
    "localexpert.metrics": f"scipy sklearn {_GROUND} .distribution .law .partial",
    # Targets that are known only in part.
    "localexpert.partial": (
        f"scipy sklearn calibration {_GROUND} .coordinate .data .distribution .experts "
        ".law"
    ),
    "localexpert.risk": f"calibration._lazy {_GROUND} .distribution .law",
    # How a forecast is learned: stages that do not know each other...
    "localexpert.progress": "sklearn tqdm calibration._jobs calibration._kernels",
    "localexpert.coordinate": (
        f"scipy sklearn lightgbm calibration calibration._jobs {_GROUND} .data "
        ".progress"
    ),
    "localexpert.experts": (
        "scipy sklearn joblib lightgbm calibration calibration._jobs "
        f"calibration.storage {_GROUND} .coordinate .data .progress"
    ),
    # ... roads that join them, and what is learned from the answers of roads.
    "localexpert.learn": (
        f"scipy sklearn calibration {_GROUND} .coordinate .curves .data .experts .law "
        ".progress .recalibration"
    ),
    "localexpert.recalibration": (
        f"scipy sklearn lightgbm calibration {_GROUND} .data .distribution .law"
    ),
    "localexpert.stacking": (
        f"pandas scipy sklearn {_GROUND} .coordinate .data .distribution .experts"
    ),
    "localexpert.regressor": (
        f"scipy sklearn calibration calibration.storage {_GROUND} .curves .data "
        ".distribution .experts .learn .law .partial .progress .recalibration "
        ".stacking"
    ),
    "localexpert.ensemble": (
        f"sklearn {_GROUND} .data .distribution .learn .law .recalibration .regressor"
    ),
    # Around a fitted regressor: why, pictures, one page, the shell.
    "localexpert.explain": (
        f"pandas scipy calibration {_GROUND} .data .distribution .metrics .partial "
        ".progress"
    ),
    "localexpert.monitor": (
        f"scipy sklearn calibration calibration.drift {_GROUND} .data .distribution"
    ),
    "localexpert.plots": (
        f"matplotlib scipy calibration calibration.plots {_GROUND} .distribution "
        ".experts .explain .partial"
    ),
    # More rows than memory: fitted on sources, predicted part by part.
    "localexpert.large": (
        f"pandas sklearn dask calibration calibration.sources {_GROUND} .data "
        ".distribution .progress .recalibration .regressor"
    ),
    # For users of skpro. Nothing of ours imports it.
    "localexpert.skpro": (
        f"pandas sklearn skpro {_GROUND} .distribution .law .regressor"
    ),
    "localexpert.reporting": (
        "matplotlib scipy lightgbm jinja2 markupsafe calibration calibration.measures "
        f"calibration.storage {_GROUND} .curves .data .distribution .experts .explain "
        ".learn .law .metrics .partial .plots .regressor .risk"
    ),
    # Tables of users, turned into features.
    "localexpert.reading": (
        "pandas pyarrow openpyxl sklearn calibration calibration.sources .data"
    ),
    "localexpert.cli": (
        "scipy sklearn calibration calibration._kernels calibration.storage ._kernels "
        ".data .distribution .ensemble .large .monitor .reading .recalibration "
        ".regressor .reporting"
    ),
    "localexpert.__main__": ".cli",
    "localexpert": "calibration calibration._lazy",
}

# How many rooms a package may have.
MOST_ROOMS = {"calibration": 22, "localexpert": 26}

# A kernel sees arrays and nothing of the machine; `_jit` alone knows how to compile.
KERNEL_STDLIB = {"__future__", "collections", "heapq", "math", "typing"}
OPEN_TO_ALL = {"numpy"}
LAZY = {"matplotlib"}

_TABLE = "ARROWS in tests/test_import_rules.py"


def find_modules():
    """Return the file of every module of the packages, by its full name."""
    modules = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            modules[".".join(parts).removesuffix(".__init__")] = path
    return modules


MODULES = find_modules()


def read_imports(nodes):
    """Return target, line and names of imports, `from package import file` as a file.

    Ruff bans relative ones.
    """
    found = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                file = f"{node.module}.{alias.name}"
                target = file if file in MODULES else str(node.module)
                found.append((target, node.lineno, [alias.name]))
    return found


def package_of(module):
    """Return the top-level name of a module."""
    return module.partition(".")[0]


def room_of(module):
    """Return the room of a module: its first two names, or the package itself."""
    return ".".join(module.split(".")[:2])


def row_of(room):
    """Return what a room may import, by full names."""
    package = package_of(room)
    words = [*ARROWS[room].split(), "calibration.typing"]
    return [package + word if word[0] == "." else word for word in words]


def is_allowed(target, module):
    """Say whether `module` may import `target`."""
    top, room = package_of(target), room_of(module)
    entries = row_of(room)
    if top in PACKAGES:
        return room_of(target) in [room, *entries]
    if top in sys.stdlib_module_names:
        in_kernels = room.endswith("._kernels") and not module.endswith("._jit")
        return not in_kernels or top in KERNEL_STDLIB
    return top in OPEN_TO_ALL or top in entries


def find_violations(module, source):
    """Return what is wrong with the imports of one file, a line each."""
    room, tree = room_of(module), ast.parse(source)
    if room not in ARROWS:
        return [
            f"{room} has no row: add it to {_TABLE} with the fewest arrows that it "
            "needs, or move it into a room"
        ]
    at_once = {line for _, line, _ in read_imports(tree.body)}
    wrong = []
    for target, line, names in read_imports(ast.walk(tree)):
        where, top = f"{module}:{line} imports {target}", package_of(target)
        parts = target.split(".") + names
        if module.startswith(f"{target}."):
            wrong.append(f"{where}, a package it is part of: name the file instead")
        elif not is_allowed(target, module):
            wrong.append(f"{where}, which is not in row {room!r} of {_TABLE}")
        elif top in LAZY and line in at_once:
            wrong.append(f"{where} at module level: import it inside the function")
        elif top not in PACKAGES and any(
            part.startswith("_") and not part.startswith("__") for part in parts
        ):
            wrong.append(f"{where} {', '.join(names)}".rstrip() + ": private")
    return wrong


def test_every_import_is_an_arrow_of_the_table():
    wrong = []
    for module, path in MODULES.items():
        wrong += find_violations(module, path.read_text(encoding="utf-8"))
    assert not wrong, "\n".join(wrong)


def test_no_cycles():
    files = {}
    for module, path in MODULES.items():
        nodes = ast.walk(ast.parse(path.read_text("utf-8")))
        files[module] = {target for target, *_ in read_imports(nodes)} & set(MODULES)
    rooms = {}
    for module, targets in files.items():
        rooms.setdefault(room_of(module), set()).update(map(room_of, targets))
    for graph in (files, {room: rooms[room] - {room} for room in rooms}):
        # A cycle is an error that names it.
        TopologicalSorter(graph).prepare()


def test_the_table_keeps_the_rules_it_must_never_lose():
    for key in ARROWS:
        entries = row_of(key)
        if key.startswith("calibration"):
            assert not [e for e in entries if e.startswith("localexpert")], key
        if key.endswith("._kernels"):
            allowed = ("numba", "._kernels", ".typing")
            assert all(e.endswith(allowed) for e in entries), key
        if key not in ("localexpert.plots", "localexpert.reporting"):
            assert not [e for e in entries if e.endswith(".plots")], key
    families = {f"calibration.{name}" for name in FAMILIES}
    for family in families:
        assert not set(row_of(family)) & families


def test_rooms_are_few_and_each_has_a_row():
    rooms = set(map(room_of, MODULES))
    assert rooms == set(ARROWS)
    for package, most in MOST_ROOMS.items():
        assert sum(room.startswith(f"{package}.") for room in rooms) <= most


@pytest.mark.parametrize("package", PACKAGES)
def test_tests_lie_as_what_they_test(package):
    rooms = {path.parent.relative_to(ROOT) for path in MODULES.values()}
    for path in (ROOT / "tests" / package).rglob("test_*.py"):
        folder = path.parent.relative_to(ROOT / "tests")
        alone = folder / path.name.removeprefix("test_")
        assert folder in rooms, f"{path} is in no room's folder"
        assert folder != Path(package) or (ROOT / alone).exists(), (
            f"{path} stands beside the rooms, but {alone} does not: move it into one"
        )


_BETA, _PAV = "calibration.logistic.polynomial", "calibration._kernels.pav"


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        (_BETA, "import localexpert", "not in row"),
        (_BETA, "from calibration.monotone.isotonic import f", "not in row"),
        (_BETA, "from calibration import monotone", "not in row"),
        (_BETA, "from calibration import BetaCalibrator", "is part of"),
        (_BETA, "def f():\n    import pandas", "not in row"),
        (_BETA, "from scipy._lib.x import y", "private"),
        (_BETA, "from sklearn.utils import _x", "private"),
        (_BETA, "from calibration._kernels import pav", ""),
        ("calibration.maps", "import sklearn.base", "not in row"),
        ("calibration.plots", "import matplotlib.pyplot as plt", "at module level"),
        ("calibration.plots", "def f():\n    import matplotlib.pyplot as plt", ""),
        ("calibration.plots", "if TYPE_CHECKING:\n    import matplotlib", ""),
        (_PAV, "import scipy", "not in row"),
        (_PAV, "import os", "not in row"),
        (_PAV, "import math, numba\nimport numpy as np", ""),
        ("calibration._kernels._jit", "import os", ""),
        ("calibration.new_idea", "", "has no row"),
        ("localexpert.law.law", "from calibration.maps import f", "not in row"),
    ],
)
def test_the_checker_catches(module, source, complaint):
    wrong = find_violations(module, source)
    assert len(wrong) == bool(complaint)
    assert complaint in "".join(wrong)
