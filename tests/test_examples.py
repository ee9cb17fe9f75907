"""Examples run from start to end and leave a picture; templates do what they say."""

import ast
import doctest
import importlib.util
import re
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from examples.templates import own_calibrator, own_experts, own_road
from localexpert import LocalExpertRegressor, crps_score

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("[!_]*.py"))
TEMPLATES = [own_calibrator, own_experts, own_road]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs a script in an empty folder; warnings are errors.

    In this process: one of its own would import all libraries once more.
    """
    monkeypatch.chdir(tmp_path)

    def run_script(path):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out.strip()

    return run_script


# Modules that an example imports and that the other tests may not have.
NEEDS = {"causal_edges": "pyagrum"}


NUMBER = re.compile(r"-?\d+\.?\d*")


def promised_lines(path):
    """Return the output that the page of an example shows, without its heads."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    blocks = re.findall(r"^\.\. code-block:: text\n\n((?:(?: .*)?\n)+)", text, re.M)
    return [line.strip() for block in blocks for line in block.splitlines()[1:] if line]


def says(line, promised):
    """Say whether a line has these words, and numbers that are close to these."""
    words, numbers = NUMBER.sub("", promised).split(), NUMBER.findall(promised)
    came = NUMBER.findall(line)
    if NUMBER.sub("", line).split()[: len(words)] != words or len(came) < len(numbers):
        return False
    pairs = zip(map(float, numbers), map(float, came), strict=False)
    return all(abs(one - other) <= 0.15 * max(abs(one), 0.1) for one, other in pairs)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path, run, tmp_path):
    need = NEEDS.get(path.stem, "numpy")
    if importlib.util.find_spec(need) is None:
        pytest.skip(f"{need} is not installed")
    printed = run(path)
    assert printed, "an example says what it found"
    for line in promised_lines(path):
        assert any(says(one, line) for one in printed.splitlines()), line
    pictures = list(tmp_path.glob("*.png"))
    assert pictures, "an example leaves a picture"
    assert all(picture.stat().st_size > 1000 for picture in pictures)


def test_there_are_no_other_templates():
    names = [path.stem for path in sorted((FOLDER / "templates").glob("[!_]*.py"))]
    assert names == [module.__name__.rpartition(".")[2] for module in TEMPLATES]


# The calibrator and the experts are held to the contracts of all of them in
# tests/calibration/base/test_calibrators.py and
# tests/localexpert/experts/test_contract.py.


@pytest.mark.parametrize("module", TEMPLATES)
def test_template_and_its_docstrings(module, run):
    assert run(module.__file__), "a template says what it is worth"
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0


def test_own_experts_refuse_what_is_no_number_of_rows():
    model = LocalExpertRegressor(strategy=own_experts.NearestExperts(0))
    with pytest.raises(ValueError, match="`n_neighbors` must be at least 1, got 0"):
        model.fit(np.arange(200.0)[:, None], np.arange(200.0))


def test_an_own_road_is_a_record_with_a_step(rng):
    X = rng.uniform(size=(200, 2))
    y = 3.0 * X[:, 0] + 0.3 * rng.normal(size=200)
    plain, wide = (
        LocalExpertRegressor(
            roads=own_road.wide_road(k), recalibrate=None, random_state=0
        ).fit(X, y)
        for k in (1.0, 1.5)
    )
    assert "'wide'" in repr(clone(wide).roads)
    low, high = (np.ptp(m.predict_interval(X), axis=1) for m in (plain, wide))
    assert (high > 1.2 * low).all()
    assert crps_score(y, wide.oof_distribution_) > 0.0


def test_a_tiny_weight_beside_a_large_one_is_a_side_of_the_cut():
    scores, labels = [0.0, 0.0, 1.0], [0, 1, 0]
    step = own_calibrator.StepCalibrator().fit(scores, labels, [2.0, 1.0, 2.2e-16])
    assert np.isfinite(step.predict(scores)).all()
