#!/usr/bin/env python3
"""Print the least versions that pyproject.toml allows, as constraints for pip.

What is read are the dependencies and the extra `test`: what the suite runs on.
"""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
# A name, perhaps an extra, and the number after `>=`; a bound of any other kind is a
# mistake here. Constraints of pip know no extras.
BOUND = re.compile(r"([A-Za-z0-9_-]+)(?:\[[a-z]+\])?>=([0-9.]+)")
# Libraries below ours that have to be of the same age: matplotlib 3.9 calls functions
# that pyparsing 3.3 warns of, and warnings are errors in tests.
OF_THAT_AGE = ("pyparsing<3.3",)


def main() -> None:
    """Print one line `name==version` for each requirement."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    for text in (*project["dependencies"], *project["optional-dependencies"]["test"]):
        bound = BOUND.fullmatch(text)
        if bound is None:
            msg = f"{text!r} in pyproject.toml has no bound of the form >=."
            raise SystemExit(msg)
        print("{}=={}".format(*bound.groups()))
    print(*OF_THAT_AGE, sep="\n")


if __name__ == "__main__":
    main()
