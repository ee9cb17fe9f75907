"""A page says what it is about, in the words of those who made it."""

import datetime
import re

import numpy as np
import pandas as pd
import pytest

from localexpert.reporting import pictures, report
from tests.forecasts import of_values

DAY = datetime.date(2026, 11, 3)


class Coin:
    def predict_dist(self, X):
        return of_values([0.0, 1.0], np.tile([0.5, 0.5], (len(X), 1)))


X = np.tile([[0.0], [1.0]], (10, 1))
Y = X[:, 0]


@pytest.fixture
def write(read_page, tmp_path, monkeypatch):
    """Write the report on a coin and read it."""
    monkeypatch.setattr(pictures, "_to_address", lambda _: "data:image/png;base64,")

    def made(y=Y, **names):
        return read_page(report(Coin(), X, y, tmp_path / "r.html", **names))

    return made


def test_the_head_of_the_page(write):
    page = write(target_name="price", unit="EUR", source="test.csv", date=DAY)
    assert "<title>Forecasts of price</title>" in page.source
    assert "<h1>Forecasts of price</h1>" in page.source
    about = "Target: price (EUR) \u00b7 Coin, 20 rows of test.csv, 1 feature"
    assert f"{about} \u00b7 2026-11-03" in page.text


def test_a_title_of_ones_own(write):
    page = write(title="Q3 & Q4", target_name="price")
    assert "<h1>Q3 &amp; Q4</h1>" in page.source
    assert "Target: price \u00b7" in page.text


def test_a_series_has_a_name_and_today_is_the_date(write):
    page = write(pd.Series(Y, name="kWh"))
    assert "<h1>Forecasts of kWh</h1>" in page.source
    assert re.search(r"\d{4}-\d\d-\d\d", page.text)
    assert "<h1>Forecasts of 7</h1>" in write(pd.Series(Y, name=7)).source
    assert "<h1>Report on forecasts</h1>" in write().source


def test_rows_are_called_by_their_names(write):
    page = write(row_names=[f"<house> {k}" for k in range(20)])
    assert "row <house> " in page.text
    risks = page.tables["Risk by the forecasts"][1:]
    assert all(line[0].startswith("<house> ") for line in risks)


def test_a_page_for_paper_is_light_whatever_the_screen(write):
    page = write(pdf_friendly=True)
    last = page.source.rindex("color-scheme:")
    assert page.source[last:].startswith("color-scheme: light;")
    assert last > page.source.index("prefers-color-scheme: dark")
    (broken,) = re.findall(r"@media print \{ (#.*?) \{ break-before: page", sheet(page))
    # What begins a page of its own is there.
    anchors = {f"#{one['id']}" for one in page.of("section")}
    assert set(broken.split(", ")) < anchors
    assert "{ break-before: page" not in sheet(write())


def sheet(page):
    """The style sheet on one line."""
    return " ".join(page.source.split("<style>")[1].split("</style>")[0].split())
