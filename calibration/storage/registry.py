"""The classes of our own that a file may name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import lru_cache


def name_of(thing: object) -> str:
    """Return the name of a class or function: its module, and its own.

    Parameters
    ----------
    thing : type or function

    Returns
    -------
    str
    """
    own = getattr(thing, "__qualname__", repr(thing))
    return f"{getattr(thing, '__module__', None)}.{own}"


class Registry:
    """All classes that the modules of some packages define.

    Modules are found by walking the packages: no name that a file holds is ever
    imported. A class that has moved to another module of its package is found by its
    own name, if no other class there has it.

    Parameters
    ----------
    packages : sequence of str
    """

    def __init__(self, packages: Sequence[str]):
        self.packages = tuple(packages)
        self.classes = _find_classes(self.packages)

    def __contains__(self, cls: object) -> bool:
        return self.classes.get(name_of(cls)) is cls

    def find(self, module: str, name: str) -> type | None:
        """Return a class by the names it was written under, None if there is none."""
        if (cls := self.classes.get(f"{module}.{name}")) is not None:
            return cls
        package = module.partition(".")[0]
        if package not in self.packages:
            return None
        namesakes = [
            cls
            for cls in self.classes.values()
            if cls.__qualname__ == name and cls.__module__.startswith(f"{package}.")
        ]
        return namesakes[0] if len(namesakes) == 1 else None


@lru_cache(maxsize=8)
def _find_classes(packages: tuple[str, ...]) -> Mapping[str, type]:
    classes: dict[str, type] = {}
    for package in packages:
        root = importlib.import_module(package)
        found = pkgutil.walk_packages(root.__path__, f"{package}.")
        for module in [root, *(importlib.import_module(info.name) for info in found)]:
            for value in vars(module).values():
                if isinstance(value, type) and value.__module__ == module.__name__:
                    classes[name_of(value)] = value
    return classes
