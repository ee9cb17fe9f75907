"""The classes of our own that a file may name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import ModuleType

from calibration.storage.errors import StorageError


def name_of_class(cls: type) -> str:
    """Return the name under which a class is written.

    Parameters
    ----------
    cls : type

    Returns
    -------
    str
        Module and name.
    """
    return f"{cls.__module__}:{cls.__qualname__}"


def is_own(cls: type, packages: Sequence[str]) -> bool:
    """Say whether a class is defined in one of the packages.

    Parameters
    ----------
    cls : type
    packages : sequence of str

    Returns
    -------
    bool
    """
    return cls.__module__.partition(".")[0] in packages


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
        self._classes, self._by_name = _find_classes(self.packages)

    def __contains__(self, cls: object) -> bool:
        return isinstance(cls, type) and self._classes.get(name_of_class(cls)) is cls

    def names(self) -> list[str]:
        """Return the names of all classes.

        Returns
        -------
        list of str
        """
        return list(self._classes)

    def find(self, name: object) -> type:
        """Return a class by the name that it was written under.

        Parameters
        ----------
        name : str

        Returns
        -------
        type
        """
        if isinstance(name, str):
            if name in self._classes:
                return self._classes[name]
            package = name.partition(":")[0].partition(".")[0]
            namesakes = self._by_name.get((package, name.partition(":")[2]), [])
            if len(namesakes) == 1:
                return namesakes[0]
            if package not in self.packages and package.isidentifier():
                msg = (
                    f"it holds {name!r}, and here only models of "
                    f"{' and '.join(self.packages)} are loaded."
                )
                raise StorageError(msg)
        msg = f"it holds {name!r}, a class that this version does not know."
        raise StorageError(msg)


@lru_cache(maxsize=8)
def _find_classes(
    packages: tuple[str, ...],
) -> tuple[Mapping[str, type], Mapping[tuple[str, str], list[type]]]:
    classes: dict[str, type] = {}
    by_name: dict[tuple[str, str], list[type]] = {}
    for package in packages:
        for module in _walk_modules(package):
            for value in vars(module).values():
                if isinstance(value, type) and value.__module__ == module.__name__:
                    classes[name_of_class(value)] = value
    for cls in classes.values():
        package = cls.__module__.partition(".")[0]
        by_name.setdefault((package, cls.__qualname__), []).append(cls)
    return classes, by_name


def _walk_modules(package: str) -> list[ModuleType]:
    root = importlib.import_module(package)
    found = pkgutil.walk_packages(root.__path__, f"{package}.")
    return [root, *(importlib.import_module(info.name) for info in found)]
