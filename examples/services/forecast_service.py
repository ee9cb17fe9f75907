"""Forecasts over HTTP, by FastAPI: a saved model, and a table of rows in JSON.

``pip install localexpert fastapi "uvicorn[standard]"``, then::

    MODEL=model.zip uvicorn examples.services.forecast_service:app
    curl localhost:8000/forecast -H "content-type: application/json"
        -d '{"rows": [{"age": 0.04, "sex": "f"}], "levels": [0.05, 0.5, 0.95]}'

A question that the model refuses gets the status 422 and the reason.
"""

import os
from typing import Any

import pandas as pd
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import localexpert

model = localexpert.load(os.environ["MODEL"])
app = FastAPI(title="Forecasts")


class Question(BaseModel):
    """Rows by the names of their columns, and the levels of the quantiles."""

    rows: list[dict[str, float | str | None]]
    levels: list[float] = [0.05, 0.5, 0.95]


@app.post("/forecast")  # type: ignore[untyped-decorator]
async def forecast(question: Question) -> dict[str, list[Any]]:
    """Return the mean and the quantiles of each row.

    The work needs the processor, so a pool of threads would only slow it down.
    """
    try:
        dist = model.predict_dist(pd.DataFrame(question.rows))
        quantiles = dist.quantiles(question.levels)
    except (TypeError, ValueError) as error:  # names what is wrong with the question
        raise HTTPException(422, str(error)) from error
    return {"mean": dist.mean().tolist(), "quantiles": quantiles.tolist()}
