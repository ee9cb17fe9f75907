import matplotlib.pyplot as plt
import numpy as np
import pytest

from calibration import plot_forecast_matrix

NAMES = ["setosa", "versicolor", "virginica"]


@pytest.fixture(autouse=True)
def closed():
    plt.close("all")
    yield
    plt.close("all")


@pytest.fixture
def ax():
    return plt.subplots()[1]


@pytest.fixture
def forecasts(rng):
    return rng.integers(0, 3, size=200), rng.dirichlet([1, 1, 1], size=200)


def means(ax):
    return np.ma.filled(ax.images[0].get_array(), np.nan)


def test_means_by_outcome(ax, forecasts):
    y, y_prob = forecasts
    assert plot_forecast_matrix(y, y_prob, ax=ax) is ax
    expected = np.array([y_prob[y == row].mean(axis=0) for row in range(3)])
    np.testing.assert_allclose(means(ax), expected)
    np.testing.assert_allclose(means(ax).sum(axis=1), 1.0)
    for text in ax.texts:
        column, row = text.get_position()
        assert text.get_text() == f"{expected[row, column]:.2f}"
    assert len(ax.texts) == 9
    assert len(plt.get_fignums()) == 1


def test_weights_are_repetitions(forecasts, rng):
    y, y_prob = forecasts
    weight = rng.integers(0, 4, size=200)
    weighted = plot_forecast_matrix(y, y_prob, sample_weight=weight)
    repeated = plot_forecast_matrix(np.repeat(y, weight), np.repeat(y_prob, weight, 0))
    np.testing.assert_allclose(means(weighted), means(repeated))
    labels = [
        [text.get_text() for text in one.get_yticklabels()]
        for one in (weighted, repeated)
    ]
    assert labels[0] == labels[1]


@pytest.mark.parametrize("named", [False, True])
def test_names_and_shares(ax, forecasts, named):
    y = np.repeat([0, 1, 2], [50, 100, 50])
    labels = np.array(NAMES)[y] if named else y
    plot_forecast_matrix(labels, forecasts[1], classes=NAMES, ax=ax)
    assert [text.get_text() for text in ax.get_xticklabels()] == NAMES
    rows = [text.get_text() for text in ax.get_yticklabels()]
    assert rows == ["setosa, 25%", "versicolor, 50%", "virginica, 25%"]
    assert ax.get_ylabel() == "Outcome, share of rows"
    assert ax.get_xlabel() == "Mean forecast probability of"


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_a_class_without_rows_is_empty(style):
    with plt.style.context(style):
        ax = plot_forecast_matrix([0, 0, 2], np.eye(3))
    ax.figure.canvas.draw()
    assert np.isnan(means(ax)[1]).all()
    assert [text.get_text() for text in ax.texts][3:6] == ["\u2013"] * 3
    ground = plt.matplotlib.colors.to_hex(ax.get_facecolor())
    assert plt.matplotlib.colors.to_hex(ax.texts[4].get_color()) != ground


def test_numbers_can_be_read(ax):
    plot_forecast_matrix([0, 1], [[0.9, 0.1], [0.5, 0.5]], ax=ax)
    colors = [text.get_color() for text in ax.texts]
    assert colors == ["white", "black", "black", "black"]


@pytest.mark.parametrize("k", [2, 3, 10, 13, 41])
def test_nothing_lies_outside_the_figure(rng, k):
    y, y_prob = np.arange(200) % k, rng.dirichlet(np.ones(k), size=200)
    ax = plot_forecast_matrix(y, y_prob, classes=[f"a long name {i}" for i in range(k)])
    ax.figure.canvas.draw()
    box, figure = ax.get_tightbbox(), ax.figure.bbox
    assert figure.x0 <= box.x0 <= box.x1 <= figure.x1
    assert figure.y0 <= box.y0 <= box.y1 <= figure.y1
    # Of many classes colours speak, and need a scale.
    assert len(ax.texts) == (k * k if k <= 12 else 0)
    assert len(ax.figure.axes) == (1 if k <= 12 else 2)


def test_bad_input_is_named(forecasts):
    y, y_prob = forecasts
    with pytest.raises(ValueError, match=r"`y_prob` must have shape \(n, k\), k >= 2"):
        plot_forecast_matrix(y, np.ones((200, 1)))
    with pytest.raises(ValueError, match="`y_prob` must have rows that sum to 1"):
        plot_forecast_matrix(y, y_prob[:, :2])
    with pytest.raises(ValueError, match="`y_true` must hold column numbers from 0 to"):
        plot_forecast_matrix(y + 1, y_prob)
    with pytest.raises(ValueError, match="labels that `classes` names, got 'rose'"):
        plot_forecast_matrix(["rose"] * 200, y_prob, classes=NAMES)
    with pytest.raises(ValueError, match="`classes` must name each of the 3 columns"):
        plot_forecast_matrix(y, y_prob, classes=NAMES[:2])
    with pytest.raises(ValueError, match="`sample_weight` must not be negative"):
        plot_forecast_matrix(y, y_prob, sample_weight=-np.ones(200))
    with pytest.raises(TypeError, match="`ax` must be one of matplotlib's Axes"):
        plot_forecast_matrix(y, y_prob, ax="here")
    assert not plt.get_fignums()
