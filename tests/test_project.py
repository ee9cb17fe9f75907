"""The project's own files: one version, one list of bounds, linters of one version."""

import hashlib
import json
import os
import re
import shutil
import tomllib
from pathlib import Path

import calibration
import localexpert
from tests.processes import run_python

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]

# Imitates a bare clone: the sources can be found, and nothing is installed.
BARE_CLONE = """
import importlib.metadata as metadata
real = metadata.distribution

def distribution(name):
    if name == "localexpert":
        raise metadata.PackageNotFoundError(name)
    return real(name)

metadata.distribution = distribution
try:
    metadata.version("localexpert")
except metadata.PackageNotFoundError:
    import calibration, localexpert.cli.main, localexpert.reporting
    print(calibration.__file__, localexpert.__file__, sep="\\n")
    localexpert.cli.main.main(["--version"])
"""


def test_the_version_stands_in_one_place():
    assert "version" in PYPROJECT["project"]["dynamic"]
    home = ROOT / PYPROJECT["tool"]["hatch"]["version"]["path"]
    found = re.findall(r'^__version__ = "(.+)"$', home.read_text("utf-8"), re.MULTILINE)
    assert found == [calibration.__version__]
    assert localexpert.__version__ is calibration.__version__


def test_hooks_have_the_linters_of_the_extra():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    for name in ("ruff", "codespell"):
        bounds = set(re.findall(rf'"({name}[~=].*?)"', hooks))
        assert bounds == {bound for bound in EXTRAS["lint"] if bound.startswith(name)}


def test_the_oldest_versions_are_the_bounds(tmp_path):
    script = str(ROOT / ".ci" / "oldest_versions.py")
    lines = run_python(script, folder=tmp_path).splitlines()
    wanted = PYPROJECT["project"]["dependencies"] + EXTRAS["test"]
    oldest = [re.sub(r"(\[\w+\])?>=", "==", bound) for bound in wanted]
    assert lines[: len(wanted)] == oldest


def test_bounds_of_one_library_are_the_same_everywhere():
    bounds = {}
    for bound in sum(EXTRAS.values(), PYPROJECT["project"]["dependencies"]):
        if found := re.match(r"([\w-]+)(>=[\d.]+)", bound):
            bounds.setdefault(found[1], set()).add(found[2])
    assert not [name for name, found in bounds.items() if len(found) > 1]


def test_a_clone_is_imported_that_is_not_installed_and_cannot_be_written(tmp_path):
    """Imitates a container with a read-only tree and a user without a home."""
    for package in ("calibration", "localexpert"):
        copy = tmp_path / package
        shutil.copytree(ROOT / package, copy, ignore=shutil.ignore_patterns("__py*__"))
        # Not even root can make a folder where a file is.
        for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
            (folder / "__pycache__").touch()
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull, "NUMBA_CACHE_DIR": ""}
    nowhere["PYTHONPATH"] = str(tmp_path)
    *files, version = run_python("-c", BARE_CLONE, folder=tmp_path, **nowhere).split()
    homes = [tmp_path / name for name in ("calibration", "localexpert")]
    assert files == [str(home / "__init__.py") for home in homes]
    assert version == calibration.__version__


def test_what_archives_are_told_is_what_the_project_says():
    archive = json.loads((ROOT / ".zenodo.json").read_text("utf-8"))
    project = PYPROJECT["project"]
    assert archive["keywords"] == project["keywords"]
    assert archive["license"] == project["license"]
    people = archive["creators"], project["authors"]
    creators, authors = ([one["name"] for one in some] for some in people)
    assert creators == authors
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f'title: "{archive["title"]}"' in citation
    assert f"license: {archive['license']}" in citation


def test_the_recipe_asks_for_what_the_project_asks_for(tmp_path):
    sdist = tmp_path / "localexpert-7.8.9.tar.gz"
    sdist.write_bytes(b"sources")
    script = str(ROOT / ".ci" / "conda_recipe.py")
    recipe = run_python(script, str(sdist), "somebody", folder=tmp_path).splitlines()
    assert '  version: "7.8.9"' in recipe
    assert f"  sha256: {hashlib.sha256(b'sources').hexdigest()}" in recipe
    assert "    - somebody" in recipe
    start = recipe.index("    - python >=${{ python_min }}") + 1
    asked = [line.split("- ")[1] for line in recipe[start : recipe.index("tests:") - 1]]
    wanted = [
        bound.replace(">=", " >=") for bound in PYPROJECT["project"]["dependencies"]
    ]
    assert [line.replace("matplotlib-base", "matplotlib") for line in asked] == wanted
