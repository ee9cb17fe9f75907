#!/usr/bin/env python3
"""Print the recipe of conda-forge for an sdist, in its format of version 1.

    python .ci/conda_recipe.py build/dist/localexpert-0.1.0.tar.gz HANDLE...

The handles are those of the maintainers on GitHub. Bounds, texts and commands are those
of pyproject.toml.
"""

import hashlib
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
URL = "https://pypi.org/packages/source/l/localexpert/localexpert-${{ version }}.tar.gz"
# The part of a package that we need, where conda-forge has parts.
PARTS = {"matplotlib": "matplotlib-base"}
RECIPE = """\
schema_version: 1

context:
  version: "{version}"
  python_min: "{python}"

package:
  name: localexpert
  version: ${{{{ version }}}}

source:
  url: {url}
  sha256: {sha256}

build:
  number: 0
  noarch: python
  script: ${{{{ PYTHON }}}} -m pip install . -vv --no-deps --no-build-isolation
  python:
    entry_points:
{commands}

requirements:
  host:
    - python ${{{{ python_min }}}}.*
    - pip
{build}
  run:
    - python >=${{{{ python_min }}}}
{run}

tests:
  - python:
      imports:
        - calibration
        - localexpert
      pip_check: true
      python_version: ${{{{ python_min }}}}.*
  - script:
      - localexpert --version

about:
  summary: {summary}
  license: {license}
  license_file: LICENSE

extra:
  recipe-maintainers:
{maintainers}"""


def main(sdist: Path, *maintainers: str) -> None:
    """Print the recipe."""
    read = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    project = read["project"]

    def listed(values: list[str], indent: int = 4) -> str:
        return "\n".join(f"{' ' * indent}- {value}" for value in values)

    def bounds(requirements: list[str]) -> str:
        pairs = [text.split(">=") for text in requirements]
        return listed([f"{PARTS.get(name, name)} >={least}" for name, least in pairs])

    commands = [f"{name} = {what}" for name, what in project["scripts"].items()]
    recipe = RECIPE.format(
        version=sdist.name.removeprefix("localexpert-").removesuffix(".tar.gz"),
        python=project["requires-python"].removeprefix(">="),
        url=URL,
        sha256=hashlib.sha256(sdist.read_bytes()).hexdigest(),
        commands=listed(commands, indent=6),
        build=bounds(read["build-system"]["requires"]),
        run=bounds(project["dependencies"]),
        summary=project["description"],
        license=project["license"],
        maintainers=listed(list(maintainers)),
    )
    print(recipe)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]), *sys.argv[2:])
