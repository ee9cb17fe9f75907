"""Check the docstrings of all public names against numpydoc's rules.

The rules are those of `[tool.numpydoc_validation]` in pyproject.toml. They are asked of
what a user sees, the names in `__all__` and the methods of public classes; numpydoc's
own command reads every function of a file, and does not know a dataclass's parameters.
"""

import importlib
import inspect
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from numpydoc.validate import get_validation_checks, validate

# Where public names live; tests/test_public_api.py has the same list.
NAMESPACES = ("calibration", "localexpert", "localexpert.risk", "localexpert.skpro")
ROOT = Path(__file__).parents[1]


def find_public_names() -> Iterator[str]:
    """Yield the full name of every public function, class and method."""
    for package in NAMESPACES:
        root = importlib.import_module(package)
        for name in root.__all__:
            value = getattr(root, name)
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            yield f"{package}.{name}"
            # What a class inherits is checked at the class that it comes from.
            for attribute, member in vars(value).items():
                function = getattr(member, "__func__", member)
                documented = inspect.isfunction(function) or isinstance(
                    function, property
                )
                if documented and not attribute.startswith("_"):
                    owner = find_documented(value, attribute) or f"{package}.{name}"
                    yield f"{owner}.{attribute}"


def find_documented(cls: type, attribute: str) -> str | None:
    """Return the base that says what a method does, where its own text does not.

    Of a method written anew a line on how it goes about it is enough.
    """
    if "----" in (vars(cls)[attribute].__doc__ or ""):
        return None
    bases = (base for base in cls.__mro__[1:] if attribute in vars(base))
    told = (base for base in bases if vars(base)[attribute].__doc__)
    return next((f"{base.__module__}.{base.__qualname__}" for base in told), None)


def main() -> int:
    """Print a line per fault; return the exit status."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        config = tomllib.load(file)["tool"]["numpydoc_validation"]
    checks = get_validation_checks(set(config["checks"]))
    faults = [
        f"{name}: {code} {message}"
        for name in dict.fromkeys(find_public_names())
        for code, message in validate(name)["errors"]
        if code in checks
    ]
    print("\n".join(faults) or "Docstrings of public names: all well.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
