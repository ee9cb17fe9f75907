"""Public names that are found on demand, so that importing a package is quick.

`__init__.pyi`, beside the package's `__init__.py`, lists them in the form that type
checkers and editors read.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pkgutil import get_data


def find_lazily(
    package: str,
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package (PEP 562).

    A line `from home import name as name` of the stub makes `name` public.
    """
    stub = ast.parse(get_data(package, "__init__.pyi") or b"")
    homes = {
        alias.name: node.module or ""
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def find(name: str) -> object:
        if name not in homes:
            msg = f"module {package!r} has no attribute {name!r}"
            raise AttributeError(msg)
        if homes[name] == package:  # a room is public as a whole
            return import_module(f"{package}.{name}")
        value: object = getattr(import_module(homes[name]), name)
        # Next time, Python finds the name without asking here.
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return sorted(homes), find, list_names
