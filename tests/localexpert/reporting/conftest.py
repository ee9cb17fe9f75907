"""A fitted model, its rows, and a page that is read as a browser would."""

from dataclasses import dataclass
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from localexpert.reporting import report
from tests.forecasts import normal
from tests.regressors import fast


class Page:
    """What a page holds. It is XML as well: what is not closed in its turn raises."""

    def __init__(self, path):
        self.source = path.read_text(encoding="utf-8")
        self.root = ElementTree.fromstring(self.source)
        body = self.root.find("body")
        self.text = " ".join("".join(body.itertext()).split())
        self.tables = {
            table.find("caption").text: [
                [read_cell(cell) for cell in row] for row in table.iter("tr")
            ]
            for table in body.iter("table")
        }

    def column(self, caption, head):
        """Return a column of a table by the first cells of its rows."""
        heads, *rows = self.tables[caption]
        place = heads.index(head)
        return {row[0]: row[place] for row in rows if len(row) > 1}

    def of(self, tag):
        """Return the attributes of all elements of a kind."""
        return [element.attrib for element in self.root.iter(tag)]


@dataclass
class Wrong:
    """Forecasts N(bias, spread^2) of what is N(0, 1)."""

    bias: float = 0.0
    spread: float = 1.0

    def predict_dist(self, X):
        return normal(np.full(len(X), self.bias), self.spread)


def read_cell(cell):
    """Return the number of a cell with all its digits, or its text."""
    number = cell.find(".//data")
    return "".join(cell.itertext()) if number is None else float(number.get("value"))


@pytest.fixture(scope="session")
def houses():
    """A model, and rows with names, gaps, a column like HTML, and a town unseen."""
    rng = np.random.default_rng(0)
    n = 520
    X = pd.DataFrame({"area": rng.gamma(4.0, size=n), "noise": rng.normal(size=n)})
    X["<b>town</b>"] = rng.choice(["Aa & Bb", "Cc", "<script>alert(1)</script>"], n)
    X["rooms $x^$"] = rng.integers(1, 5, n)
    X.loc[rng.choice(n, 30, replace=False), "noise"] = np.nan
    y = 2.0 * X["area"] + (X["<b>town</b>"] == "Cc") + 0.5 * rng.normal(size=n)
    X.loc[519, "<b>town</b>"] = "Neu"
    y = y.to_numpy()
    model = fast(frame=None).fit(X[:300], y[:300])
    train = {"X_train": X[:300], "y_train": y[:300]}
    return SimpleNamespace(model=model, X=X[300:], y=y[300:], train=train, **train)


@pytest.fixture(scope="session")
def page(houses, tmp_path_factory):
    """The report on them with everything given."""
    path = tmp_path_factory.mktemp("report") / "page.html"
    report(houses.model, houses.X, houses.y, path, importance_rows=60, **houses.train)
    return Page(path)
