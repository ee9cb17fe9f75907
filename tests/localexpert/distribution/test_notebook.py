"""What notebooks show: well-formed HTML with figures and pictures of the forecast."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from localexpert import PredictiveDistribution, concatenate
from tests.forecasts import beside, normal, of_values

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
    np.testing.assert_allclose(area, mass / mass.max(), atol=0.01)
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
