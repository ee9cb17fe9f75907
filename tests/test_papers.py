"""What the manual says of the documents: its table of systems, its recipes."""

import importlib
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB

from calibration import CalibratedClassifier

ROOT = Path(__file__).parents[1]
TESTS = "\n".join(
    path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")
)
CELL = re.compile(r"^   [* ] - (.*)$", re.MULTILINE)


def systems():
    """Return the rows of the table, five cells each."""
    page = (ROOT / "docs" / "systems.rst").read_text(encoding="utf-8")
    cells = [cell.replace("`", "") for cell in CELL.findall(page)]
    assert len(cells) % 5 == 0
    return [cells[start : start + 5] for start in range(5, len(cells), 5)]


@pytest.mark.parametrize("row", systems(), ids=lambda row: row[0])
def test_every_name_in_the_table_of_systems_exists(row):
    _, _, here, room, test = row
    name, *more = here.split(", ")
    home, _, short = name.rpartition(".")
    found = getattr(importlib.import_module(home), short)
    assert found.__module__.startswith(room.replace("/", "."))
    assert f"def {test}(" in TESTS
    for word in more:
        parameter = word.partition("=")[0]
        if re.fullmatch(r"[a-z_]+", parameter):
            assert hasattr(found, parameter) or parameter in found().get_params()


def test_several_labels_are_calibrated_one_by_one():
    X, y = make_multilabel_classification(300, n_classes=3, random_state=0)
    weight = np.random.default_rng(0).integers(1, 4, 300)
    model = CalibratedClassifier(GaussianNB(), "logistic", cv=3)
    several = MultiOutputClassifier(model).fit(X, y, sample_weight=weight)
    for label, table in enumerate(several.predict_proba(X)):
        alone = CalibratedClassifier(GaussianNB(), "logistic", cv=3)
        alone.fit(X, y[:, label], sample_weight=weight)
        np.testing.assert_array_equal(table, alone.predict_proba(X))
    assert several.predict(X).shape == y.shape


def test_the_page_of_the_talk_runs_and_its_law_follows_its_curve(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "talk.rst").read_text(encoding="utf-8")
    blocks = re.findall(
        r"^\.\. code-block:: python\n\n((?:(?:   .*)?\n)+)", page, re.MULTILINE
    )
    code = "\n".join(re.sub("^   ", "", block, flags=re.MULTILINE) for block in blocks)
    seen = {}
    exec(compile(code, "docs/talk.rst", "exec"), seen)
    assert (tmp_path / "talk.png").stat().st_size > 10_000
    grid, law = seen["grid"], seen["law"]
    rising = np.clip(np.maximum.accumulate(seen["curve"](grid)[0]), 0.0, 1.0)
    # Clipped at 1 in 620 and made increasing by projection, not by its running maximum.
    assert np.abs(law.cdf_at(grid)[0] - rising).max() < 0.04
    assert (seen["raw"] != seen["p"]).any()
    assert (np.diff(seen["v"]) > 0.0).all()
    assert (np.diff(seen["rising"]) >= 0.0).all()
    plt.close("all")
