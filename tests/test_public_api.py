"""`__all__` lists exactly what is public, and all of that is documented."""

import importlib
import inspect
from pathlib import Path

import pytest

PACKAGES = ("calibration", "localexpert")
# Where users find public names: packages, and rooms that are namespaces.
NAMESPACES = (*PACKAGES, "localexpert.risk", "localexpert.skpro")


@pytest.mark.parametrize("package", NAMESPACES)
def test_all_is_sorted_unique_and_importable(package):
    root = importlib.import_module(package)
    assert list(root.__all__) == sorted(set(root.__all__))
    missing = [name for name in root.__all__ if not hasattr(root, name)]
    assert not missing


@pytest.mark.parametrize("package", NAMESPACES)
def test_public_names_are_documented_with_examples(package):
    root = importlib.import_module(package)
    for name, value in ((name, getattr(root, name)) for name in root.__all__):
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        if inspect.isabstract(value):  # nobody makes one
            continue
        doc = inspect.cleandoc(value.__doc__ or "")
        assert doc, f"{name} has no docstring"
        assert "\nExamples\n--------\n" in doc, f"{name} has no Examples section"
        assert ">>> " in doc, f"the example of {name} is not code"
        for word, member in inspect.getmembers(value, callable):
            home = (getattr(member, "__module__", None) or "").partition(".")[0]
            if inspect.isclass(value) and home in PACKAGES and word[0] != "_":
                assert inspect.getdoc(member), f"{name}.{word} has no docstring"


@pytest.mark.parametrize("package", PACKAGES)
def test_type_marker(package):
    root = importlib.import_module(package)
    assert root.__file__ is not None
    assert Path(root.__file__).with_name("py.typed").is_file()
