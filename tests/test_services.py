"""A model at work elsewhere, by real calls: over HTTP, in MLflow and in sktime.

Skipped where these are missing; `make test-services` has them all.
"""

import importlib

import numpy as np
import pandas as pd
import pytest

from localexpert import LocalExpertRegressor


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return a model of numbers and a category, its table, and its file."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(size=200), "sex": rng.choice(["f", "m"], 200)})
    y = X["age"] + (X["sex"] == "f") + rng.normal(size=200)
    model = LocalExpertRegressor(effort="quick", random_state=0).fit(X, y)
    path = tmp_path_factory.mktemp("model") / "model.zip"
    model.save(path)
    return model, X, path


def test_service(fitted, monkeypatch):
    pytest.importorskip("fastapi")
    testclient = pytest.importorskip("fastapi.testclient")
    model, X, path = fitted
    monkeypatch.setenv("MODEL", str(path))
    service = importlib.import_module("examples.services.forecast_service")
    client = testclient.TestClient(service.app)
    asked = {"rows": X[:3].to_dict("records"), "levels": [0.1, 0.9]}
    told = client.post("/forecast", json=asked)
    assert told.status_code == 200
    dist = model.predict_dist(X[:3])
    assert np.allclose(told.json()["mean"], dist.mean())
    assert np.allclose(told.json()["quantiles"], dist.quantiles([0.1, 0.9]))
    gap = client.post("/forecast", json={"rows": [{"age": None, "sex": "f"}]})
    assert gap.status_code == 200
    refused = client.post("/forecast", json={"rows": [{"sex": "f"}]})
    assert refused.status_code == 422
    assert "age" in refused.json()["detail"]
    level = client.post("/forecast", json={**asked, "levels": [2.0]})
    assert level.status_code == 422


# MLflow and what it imports warn of their own.
@pytest.mark.filterwarnings("default")
def test_mlflow_model(fitted, monkeypatch, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    recipe = importlib.import_module("examples.services.mlflow_model")
    model, X, _ = fitted
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    with mlflow.start_run():
        logged = recipe.log_forecast(model, X)
    again = mlflow.pyfunc.load_model(logged.model_uri)
    told = again.predict(X[:4], params={"levels": [0.1, 0.9]})
    assert list(told) == ["mean", "q0.1", "q0.9"]
    dist = model.predict_dist(X[:4])
    assert np.allclose(told["mean"], dist.mean())
    assert np.allclose(told[["q0.1", "q0.9"]], dist.quantiles([0.1, 0.9]))
    assert list(again.predict(X[:1])) == ["mean", "q0.05", "q0.5", "q0.95"]


@pytest.mark.filterwarnings("default")
def test_sktime_reduction():
    compose = pytest.importorskip("sktime.forecasting.compose")
    season = np.sin(np.arange(90) * 2.0 * np.pi / 12.0)
    index = pd.period_range("2018-01", periods=90, freq="M")
    y = pd.Series(10.0 + 3.0 * season, index=index)
    regressor = LocalExpertRegressor(effort="quick", random_state=0)
    forecaster = compose.make_reduction(regressor, window_length=12)
    told = forecaster.fit(y[:-6], fh=list(range(1, 7))).predict()
    assert (told.index == index[-6:]).all()
    assert np.abs(told - y[-6:]).mean() < 1.0
