"""A forecast as a model of MLflow: log it, and load it anywhere as a `pyfunc`.

``pip install localexpert mlflow``, then ``python examples/services/mlflow_model.py``
fits, logs and loads a model, and asks it for two quantiles.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
from mlflow.models import infer_signature
from mlflow.pyfunc import PythonModel

import localexpert

LEVELS = [0.05, 0.5, 0.95]


class ForecastModel(PythonModel):
    """Answer a table with the mean and quantiles of each row.

    The parameter `levels` of a call says which quantiles.
    """

    def load_context(self, context: Any) -> None:
        """Load the saved model."""
        self.model = localexpert.load(context.artifacts["forecast"])

    def predict(
        self, model_input: pd.DataFrame, params: dict[str, Any] | None = None
    ) -> pd.DataFrame:
        """Return a column for the mean and one for each level."""
        return answer(self.model, model_input, (params or {}).get("levels", LEVELS))


def answer(model: Any, X: pd.DataFrame, levels: Any) -> pd.DataFrame:
    """Return the mean and the quantiles of each row."""
    dist = model.predict_dist(X)
    names = [f"q{level:g}" for level in levels]
    out = pd.DataFrame(dist.quantiles(levels), columns=names, index=X.index)
    out.insert(0, "mean", dist.mean())
    return out


def log_forecast(model: Any, X: pd.DataFrame, name: str = "forecast") -> Any:
    """Log a fitted regressor in the active run; `X` shows its columns.

    The file has a list of types that it may hold, so nothing in it runs as code.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forecast.zip"
        model.save(path)
        return mlflow.pyfunc.log_model(
            name=name,
            python_model=ForecastModel(),
            artifacts={"forecast": str(path)},
            code_paths=[__file__],
            pip_requirements=[f"localexpert=={localexpert.__version__}"],
            signature=infer_signature(
                X, answer(model, X[:5], LEVELS), params={"levels": LEVELS}
            ),
        )


if __name__ == "__main__":
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    regressor = localexpert.LocalExpertRegressor(effort="quick", random_state=0)
    with mlflow.start_run():
        regressor.fit(X, y)
        dist = regressor.oof_distribution_
        mlflow.log_metric("crps", float(localexpert.crps_score(y, dist)))
        logged = log_forecast(regressor, X)
    again = mlflow.pyfunc.load_model(logged.model_uri)
    print(again.predict(X[:3], params={"levels": [0.1, 0.9]}))
