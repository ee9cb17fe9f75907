"""inspect: what is known of whatever was saved."""

import json
from dataclasses import replace

import numpy as np
import pytest

from calibration import AutoCalibrator, PlattCalibrator, __version__
from localexpert import LocalExpertRegressor, crps_score
from localexpert.storage import load, save


def test_a_model_of_fit(run, houses):
    code, text, lines = run("inspect", houses / "model.zip")
    assert (code, lines) == (0, [])
    saved = load(houses / "model.zip")
    origin = saved.origin
    for line in ("table: train.csv", "rows: 200", f"fitted: {origin.fitted}"):
        assert line in text.splitlines()
    assert f"version: {__version__}" in text
    assert "kind    3 words: flat, house, hut" in text
    assert "cv=2, frame=None, n_thresholds=3, random_state=0, strategy='shared'" in text
    assert "chosen on the way\ntarget       continuous" in text


def test_as_json(run, houses):
    told = json.loads(run("inspect", houses / "model.zip", "--json")[1])
    saved = load(houses / "model.zip")
    assert (told["target"], told["rows"], told["table"]) == ("price", 200, "train.csv")
    kinds = {column["name"]: column["kind"] for column in told["columns"]}
    assert kinds["area"] == "number"
    assert kinds["const"] == "dropped"
    assert told["out_of_fold"] == saved.origin.scores
    assert told["chosen"] == saved.model.report_.summary()


def test_a_regressor_of_python(run, tmp_path, rng):
    X = rng.normal(size=(120, 2))
    y = X[:, 0] + rng.normal(size=120)
    quick = {"strategy": "joint", "frame": None, "n_thresholds": 9, "cv": 3}
    model = LocalExpertRegressor(**quick, random_state=4).fit(X, y)
    model.save(tmp_path / "m.zip")
    text = run("inspect", tmp_path / "m.zip")[1]
    assert "a saved LocalExpertRegressor" in text
    assert "random_state=4" in text
    assert "features: 2" in text
    told = json.loads(run("inspect", tmp_path / "m.zip", "--json")[1])
    want = crps_score(y, model.oof_distribution_)
    assert told["out_of_fold"]["model"]["crps"] == pytest.approx(want)


@pytest.mark.parametrize("kind", [PlattCalibrator, AutoCalibrator])
def test_calibrators(kind, run, tmp_path, rng):
    scores = rng.uniform(size=200)
    fitted = kind().fit(scores, rng.uniform(size=200) < scores**2)
    save(fitted, tmp_path / "c.zip")
    told = json.loads(run("inspect", tmp_path / "c.zip", "--json")[1])
    assert told["scale"] == "probability"
    want = fitted.predict([0.05, 0.25, 0.5, 0.75, 0.95])
    np.testing.assert_allclose(list(told["calibrated"].values()), want)
    assert f"a saved {kind.__name__}" in run("inspect", tmp_path / "c.zip")[1]


def test_scales_without_meaning_are_not_asked(run, tmp_path):
    fitted = PlattCalibrator(scale="real").fit([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 1])
    save(fitted, tmp_path / "c.zip")
    told = json.loads(run("inspect", tmp_path / "c.zip", "--json")[1])
    assert told["calibrated"] == {}
    assert told["parameters"] == {"scale": "real"}


def test_a_model_of_python_that_was_corrected(run, houses, tmp_path):
    save(replace(load(houses / "model.zip"), origin=None), tmp_path / "m.zip")
    code, text, _ = run("inspect", tmp_path / "m.zip")
    assert code == 0
    assert "a saved LocalExpertRegressor" in text
