"""What the manual says of the documents: its table of systems, its recipes."""

import importlib
import re
from pathlib import Path

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
