"""`__all__` is the truth about what is public, and what is public is documented."""

import ast
import importlib
import inspect
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("calibration", "localexpert")
# Where users find public names: packages, and rooms that are namespaces.
NAMESPACES = (*PACKAGES, "localexpert.risk", "localexpert.skpro")


def public_objects(package: str) -> list[tuple[str, object]]:
    """Return the functions and classes that a package offers, with their names."""
    root = importlib.import_module(package)
    return [(f"{package}.{name}", getattr(root, name)) for name in root.__all__]


def defined_names(module: ModuleType) -> set[str]:
    """Return the functions and classes that a module defines without underscore."""
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isroutine(value))
        and getattr(value, "__module__", None) == module.__name__
        and value.__name__ == name  # no other name of a private one
    }


def exported_names(package: str) -> set[str]:
    """Return the names in `__all__` of a package and of its namespaces."""
    homes = [name for name in NAMESPACES if name.split(".")[0] == package]
    return set().union(*(importlib.import_module(home).__all__ for home in homes))


def public_modules(package: str) -> list[ModuleType]:
    """Return the modules of a package that lie in no private room."""
    root = importlib.import_module(package)
    names = [
        info.name
        for info in pkgutil.walk_packages(root.__path__, f"{package}.")
        if not any(part.startswith("_") for part in info.name.split("."))
    ]
    return [importlib.import_module(name) for name in names]


@pytest.mark.parametrize("package", NAMESPACES)
def test_all_is_sorted_unique_and_importable(package: str) -> None:
    root = importlib.import_module(package)
    assert list(root.__all__) == sorted(set(root.__all__))
    missing = [name for name in root.__all__ if not hasattr(root, name)]
    assert not missing


@cache
def names_taken_elsewhere() -> set[tuple[str, str]]:
    """Return what files of the packages import from others: module and name."""
    found = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module:
                    found |= {(node.module, name.name) for name in node.names}
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_what_has_no_underscore_is_exported_or_used_elsewhere(package: str) -> None:
    exported = exported_names(package)
    for module in public_modules(package):
        own = module.__name__
        taken = {name for home, name in names_taken_elsewhere() if home == own}
        stray = defined_names(module) - exported - taken
        assert not stray, (
            f"{own} defines {sorted(stray)}, which no other file takes: add them to "
            f"{package}.__all__ or give them an underscore"
        )


@pytest.mark.parametrize("package", NAMESPACES)
def test_public_names_are_documented_with_examples(package: str) -> None:
    for name, value in public_objects(package):
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        if inspect.isabstract(value):  # nobody makes one
            continue
        doc = inspect.cleandoc(value.__doc__ or "")
        assert doc, f"{name} has no docstring"
        assert "\nExamples\n--------\n" in doc, f"{name} has no Examples section"
        assert ">>> " in doc, f"the example of {name} is not code"


@pytest.mark.parametrize("package", NAMESPACES)
def test_public_methods_are_documented(package: str) -> None:
    for name, value in public_objects(package):
        if not inspect.isclass(value):
            continue
        for attribute, member in inspect.getmembers(value):
            module = getattr(member, "__module__", None) or ""
            ours = module.split(".")[0] in PACKAGES
            if ours and not attribute.startswith("_") and callable(member):
                assert inspect.getdoc(member), f"{name}.{attribute} has no docstring"


@pytest.mark.parametrize("package", PACKAGES)
def test_type_marker(package: str) -> None:
    root = importlib.import_module(package)
    assert root.__file__ is not None
    assert Path(root.__file__).with_name("py.typed").is_file()
