"""Data frames, and what notebooks show."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from localexpert import PredictiveDistribution, concatenate
from localexpert.distribution.frame import Questions
from tests.forecasts import beside, normal, of_values

NORMAL = normal(np.arange(5.0) - 1.0, np.linspace(0.5, 3.0, 5))


def test_frames_hold_what_methods_say():
    assert list(NORMAL.to_frame().columns) == ["mean", "std", "q0.05", "q0.5", "q0.95"]
    asked = {"quantiles": [0.1], "interval": (0.5, 0.9), "exceed": 1e-3}
    told = NORMAL.to_frame(**asked, risk=[0.9, 0.995], tail="lower")
    want = {
        "mean": NORMAL.mean(),
        "std": NORMAL.std(),
        "q0.1": NORMAL.ppf(0.1),
        "low_0.5": NORMAL.interval(0.5)[:, 0],
        "high_0.5": NORMAL.interval(0.5)[:, 1],
        "low_0.9": NORMAL.interval(0.9)[:, 0],
        "high_0.9": NORMAL.interval(0.9)[:, 1],
        "p_above_0.001": NORMAL.sf(1e-3),
        "var_0.9": NORMAL.value_at_risk(0.9, "lower"),
        "es_0.9": NORMAL.expected_shortfall(0.9, "lower"),
        "var_0.995": NORMAL.value_at_risk(0.995, "lower"),
        "es_0.995": NORMAL.expected_shortfall(0.995, "lower"),
    }
    assert list(told) == list(want)
    assert_array_equal(told, np.column_stack([*want.values()]))
    assert NORMAL[:0].to_frame(exceed=1).shape == (0, 3)
    assert len(Questions.of([0.1, 0.1 + 1e-15]).answers(NORMAL)) == 4


SMOOTH = normal([0.0, 10.0], [1.0, 3.0])


def on_lattice(dist):
    return PredictiveDistribution(replace(dist.law, step=1.0, known=None))


VALUES = of_values([0, 1, 2], [[0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])
BESIDE = beside(normal([3.0, 4.0]), [0.0], [[0.3], [0.1]])
LATTICES = [on_lattice(SMOOTH), on_lattice(normal([2000.0], [900.0]))]
MORE = {8: "and 3 rows more", 6: "and 1 row more"}


def read(dist):
    """Return the cells of the table's rows, the pictures, and the last text."""
    page = ElementTree.fromstring(dist._repr_html_())
    rows = [[cell.text for cell in row] for row in page.iterfind(".//tbody/tr")]
    return rows, page.findall(".//{*}svg"), page.findall("p")[-1].text


@pytest.mark.parametrize(
    "dist",
    [SMOOTH, VALUES, of_values([5], [[1.0]]), BESIDE, *LATTICES, SMOOTH[:0]]
    + [concatenate([SMOOTH] * n) for n in (3, 4)],
)
def test_figures_are_those_of_the_forecast(dist):
    rows, pictures, last = read(dist)
    assert len(rows) == len(pictures) == min(len(dist), 5)
    answers = [dist.mean(), dist.std(), *dist.quantiles([0.05, 0.5, 0.95]).T]
    for i, (number, *told) in enumerate(rows):
        assert number == str(i)
        expected = [answer[i] for answer in answers]
        assert np.array(told[:5], float) == pytest.approx(expected, rel=2e-3, abs=1e-9)
    assert last == MORE.get(len(dist), repr(dist))


def test_rows_have_the_names_of_their_groups():
    rows, *_ = read(VALUES.total(groups=["<b>", "a"]))
    assert [cells[0] for cells in rows] == ["<b>", "a"]


def heights_of(picture):
    """Return the heights of the area's cells, and the places and heights of lines."""
    area, *lines = [path.get("d") for path in picture.iterfind("{*}path")]
    points = np.array(re.findall(r"([\d.]+),([\d.]+)", area), float)
    bars = [re.fullmatch(r"M([\d.]+),32V([\d.]+)", line).groups() for line in lines]
    places = [(float(x) / 180, (32 - float(top)) / 30) for x, top in bars]
    return (32 - points[1:-1:2, 1]) / 30, places


def test_areas_are_densities():
    area, lines = heights_of(read(SMOOTH)[1][0])
    low, high = SMOOTH.quantiles([0.005, 0.995])[[0, 1], [0, 1]]
    edges = np.linspace(low - 0.05 * (high - low), high + 0.05 * (high - low), 61)
    mass = np.diff(SMOOTH[:1].cdf_at(edges)[0])
    assert_allclose(area, mass / mass.max(), atol=0.01)
    assert not lines


def test_lines_are_values():
    (area, first), (_, second) = map(heights_of, read(VALUES)[1])
    assert (area == 0).all()
    # As high as the picture where they are most probable.
    assert [h for _, h in first] == pytest.approx([0.4, 1.0, 0.6], abs=0.01)
    assert [h for _, h in second] == pytest.approx([1 / 9, 1.0], abs=0.01)
    assert [x for x, _ in first] == pytest.approx([0.05, 0.5, 0.95], abs=0.02)
    # Beside an area they are probabilities.
    for picture, mass in zip(read(BESIDE)[1], (0.3, 0.1), strict=True):
        area, ((_, height),) = heights_of(picture)
        assert height == pytest.approx(mass, abs=0.01)
        assert area.max() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("dist", LATTICES)
def test_cells_of_a_lattice_hold_as_many_values(dist):
    area, _ = heights_of(read(dist)[1][0])
    # No comb: heights rise to the middle of the first row and fall behind it.
    top = int(area.argmax())
    assert len(area) <= 60
    assert (np.diff(area[: top + 1]) >= -0.01).all()
    assert (np.diff(area[top:]) <= 0.01).all()
