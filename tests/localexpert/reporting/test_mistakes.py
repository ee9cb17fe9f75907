"""Mistakes are named, before the work where they can be, and leave no file behind."""

import numpy as np
import pytest

from localexpert import LocalExpertRegressor
from localexpert.reporting import report
from tests.forecasts import of_values


class Coin:
    """A model that counts how often it is asked."""

    asked = 0

    def predict_dist(self, X):
        self.asked += 1
        return of_values([0.0, 1.0], np.tile([0.5, 0.5], (len(X), 1)))


X = np.tile([[0.0], [1.0]], (10, 1))
Y = X[:, 0]


# What is wrong by itself is swept with all public functions.
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": Y[:5]}, "`y` must be as long as X, got 5 and 20"),
        ({"X": X[:0], "y": []}, r"`X` must be .* not empty, got shape \(0, 1\)"),
        ({"X_train": X}, "`y_train` must be given with `X_train`, got None"),
        ({"X_train": X, "y_train": Y[:3]}, "`y_train` must be as long as X_train"),
        (
            {"X_train": np.ones((20, 2)), "y_train": Y},
            "`X_train` must have the columns of `X`, 1, got 2",
        ),
        ({"groups": ["x7"]}, r"`groups` must name columns of `X`, \['x0'\], got 'x7'"),
        ({"groups": {"a": Y[:3]}}, "`groups` must be as long as X"),
        ({"groups": {"a": X}}, r"`groups` must hold arrays of shape \(n,\)"),
        ({"row_names": ["a"]}, "`row_names` must be as long as X, got 1 and 20"),
        ({"pdf_friendly": 1}, "`pdf_friendly` must be True or False, got 1"),
        ({"date": "today"}, "`date` must be a datetime.date, got 'today'"),
        ({"model": object()}, "`model` must have a method predict_dist, got object"),
        ({"model": LocalExpertRegressor()}, "not fitted"),
    ],
)
def test_arguments(arguments, message, tmp_path):
    given = {"model": Coin(), "X": X, "y": Y, **arguments}
    with pytest.raises((ValueError, TypeError), match=message):
        report(path=tmp_path / "r.html", **given)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_forecasts_too_few_rows(tmp_path):
    class Short:
        def predict_dist(self, X):
            return Coin().predict_dist(X[:3])

    with pytest.raises(TypeError, match=r"as many rows as `X`, 20, got .*n=3"):
        report(Short(), X, Y, tmp_path / "r.html")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "it is a directory"),
        ("none/r.html", "there is no directory"),
        ("x" * 300, "File name too long"),
        ("file/r.html", "there is no directory"),
    ],
)
def test_a_path_is_checked_before_the_work(name, reason, tmp_path):
    (tmp_path / "file").touch()
    model = Coin()
    with pytest.raises(OSError, match=f"`path` must name a file .*{reason}"):
        report(model, X, Y, tmp_path / name)
    assert model.asked == 0


@pytest.mark.parametrize("place", ["report_figures", "Path.replace"])
def test_an_error_leaves_what_was_there(tmp_path, monkeypatch, place):
    path = tmp_path / "r.html"
    path.write_text("old", encoding="utf-8")

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"localexpert.reporting.page.{place}", fail)
    with pytest.raises(OSError, match="No space left"):
        report(Coin(), X, Y, path)
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    assert path.read_text(encoding="utf-8") == "old"
