"""A fitted model, its rows, and a page that is read as a browser would."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from localexpert import LocalExpertRegressor
from localexpert.experts import SharedBoosting
from localexpert.reporting import report

VOID = {"img", "meta", "br"}


def fast(**parameters):
    """A regressor that fits in about a second."""
    shared = SharedBoosting(max_rounds=40, random_state=0)
    options = {"center": LinearRegression(), "n_thresholds": 9, "cv": 3}
    return LocalExpertRegressor(
        **{"strategy": shared, "random_state": 0, **options, **parameters}
    )


@dataclass
class Page(HTMLParser):
    """What a page holds; raises where an element is not closed in its turn."""

    open: list = field(default_factory=list)
    tags: list = field(default_factory=list)
    tables: dict = field(default_factory=dict)
    text: str = ""

    def __post_init__(self):
        super().__init__()
        self.row, self.cell, self.caption = [], None, ""

    @classmethod
    def read(cls, path):
        page = cls()
        page.source = path.read_text(encoding="utf-8")
        page.feed(page.source)
        page.close()
        page.text = " ".join(page.text.split())
        assert page.open == []
        return page

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        assert len(attributes) == len(attrs), f"an attribute of {tag} is given twice"
        self.tags.append((tag, attributes))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.rows = []
        elif tag == "tr":
            self.row = []
        elif tag in {"td", "th"}:
            self.cell = ""
        elif tag == "data":
            self.cell_value = attributes["value"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag in {"td", "th"}:
            self.row.append(self.cell)
            self.cell = None
        elif tag == "tr":
            self.rows.append(self.row)
        elif tag == "table":
            self.tables[self.caption] = self.rows

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text += data
        if self.open and self.open[-1] == "caption":
            self.caption = data
        if self.cell is not None:
            inside = self.open[-1] == "data"
            self.cell = float(self.cell_value) if inside else self.cell + data

    def column(self, caption, head):
        """Return a column of a table by the first cells of its rows."""
        heads, *rows = self.tables[caption]
        place = heads.index(head)
        return {row[0]: row[place] for row in rows if len(row) > 1}

    def of(self, tag):
        """Return the attributes of all elements of a kind."""
        return [attributes for name, attributes in self.tags if name == tag]


@dataclass
class Case:
    """A model with the rows it was fitted to and others."""

    model: object
    X_train: object
    y_train: object
    X: object
    y: object


@pytest.fixture(scope="session")
def houses():
    """Rows with names, gaps, a column that tries to be HTML, and a town unseen."""
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
    return Case(model, X[:300], y[:300], X[300:], y[300:])


@pytest.fixture(scope="session")
def page(houses, tmp_path_factory):
    """The report on them with everything given."""
    path = tmp_path_factory.mktemp("report") / "page.html"
    train = {"X_train": houses.X_train, "y_train": houses.y_train}
    report(houses.model, houses.X, houses.y, path, importance_rows=60, **train)
    return Page.read(path)


@pytest.fixture(name="fast", scope="session")
def fast_regressor():
    """Make a regressor that fits in about a second."""
    return fast


@pytest.fixture
def read_page():
    """Read a page from a path."""
    return Page.read
