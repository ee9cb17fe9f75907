"""The recipes of docs/large.rst for Dask, Ray and Spark, against one table."""

import importlib.util
import re
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from localexpert import predict_table

PAGE = Path(__file__).parents[3] / "docs" / "large.rst"
BLOCK = re.compile(r"^\.\. code-block:: python\n\n((?:(?:   .*)?\n)+)", re.MULTILINE)
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed"
)


def run_recipe(words, **given):
    """Run the block of the page that has some words; return its variables."""
    blocks = [dedent(code) for code in BLOCK.findall(PAGE.read_text(encoding="utf-8"))]
    (code,) = (code for code in blocks if words in code)
    exec(compile(code, "docs/large.rst", "exec"), given)
    return given


@pytest.fixture
def folder(rows, tmp_path, monkeypatch):
    """Return the folder of the recipes, with the rows in three files."""
    (tmp_path / "rows").mkdir()
    for number, start in enumerate(range(0, 90, 40)):
        part = rows.reset_index()[start : start + 40]
        part.to_parquet(tmp_path / f"rows/{number}.parquet", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_whole(said, rows, model):
    """Compare forecasts, known by their identifiers, with those of one table."""
    whole = predict_table(model, rows)
    found = said.set_index("id").loc[whole.index]
    pd.testing.assert_frame_equal(found, whole, rtol=0.0, atol=1e-8)


# How Dask calls pandas.
@pytest.mark.filterwarnings("ignore:The inplace keyword in DataFrame.set_index")
def test_dask(folder, rows, model):
    run_recipe("dd.read_parquet", model=model, predict_table=predict_table)
    said = pq.read_table(folder / "forecasts").to_pandas()
    whole = predict_table(model, rows, interval=0.9)
    pd.testing.assert_frame_equal(said, whole, rtol=0.0, atol=1e-8)


@needs_ray
@pytest.mark.usefixtures("folder")
# Of Ray's own, about its settings and about files that it leaves open.
@pytest.mark.filterwarnings("ignore")
def test_ray(rows, model):
    import ray

    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        told = run_recipe("map_batches", model=model, predict_table=predict_table)
        said = told["forecasts"].to_pandas()
    finally:
        ray.shutdown()
    # Ray's columns are pyarrow's.
    kinds = {name: "int64" if name == "id" else "float64" for name in said}
    assert_whole(said.astype(kinds), rows, model)


def test_spark(rows, model):
    told = {}

    class Frame:
        """Gives a function an iterator of frames, and takes one, as Spark does."""

        def mapInPandas(self, function, schema):  # noqa: N802
            table = rows.reset_index()
            parts = iter([table[:40], table[40:40], table[40:]])
            told.update(frames=list(function(parts)), schema=schema)

    spark = SimpleNamespace(read=SimpleNamespace(parquet=lambda _: Frame()))
    run_recipe("mapInPandas", model=model, predict_table=predict_table, spark=spark)
    kinds = dict(re.findall(r"`?([\w.]+)`? (double|long)", told["schema"]))
    assert [len(frame) for frame in told["frames"]] == [40, 0, 50]
    for frame in told["frames"]:
        assert list(frame) == list(kinds)
        of = {"double": np.float64, "long": np.int64}
        assert [frame[name].dtype for name in kinds] == [of[k] for k in kinds.values()]
    assert_whole(pd.concat(told["frames"]), rows, model)
