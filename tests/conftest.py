"""Fixtures of the whole suite, and the settings that must come before any import."""

import os

# Before anything imports numpy or matplotlib: workers share the cores, no window opens.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
os.environ["MPLBACKEND"] = "Agg"

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

# The first call of a kernel compiles it, so examples have no deadline; the same
# examples in every run, so a red test stays red. Uncompiled kernels get fewer of them.
settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    max_examples=25 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 100,
)
settings.load_profile("suite")


@pytest.fixture
def rng():
    """Return a generator in the same state for every test."""
    return np.random.default_rng(0)


@pytest.fixture
def frozen():
    """Return a function that makes read-only copies: writing to one is an error."""

    def freeze(values):
        array = np.array(values)
        array.flags.writeable = False
        return array

    return freeze


@pytest.fixture(scope="session")
def rows():
    """Return numbers with gaps and a category, under an index that is no count."""
    # Some legs have no pandas.
    import pandas as pd

    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.normal(size=90), "b": rng.choice(["x", "y"], 90)})
    X.loc[::7, "a"] = np.nan
    X["b"] = X["b"].astype("category")
    return X.set_index(pd.Index(rng.permutation(90) * 3 + 5, name="id"))


@pytest.fixture(scope="session")
def model(rows):
    """Return a regressor that is fitted to `rows` in half a second, for all to ask."""
    from localexpert import LocalExpertRegressor

    y = rows["a"].fillna(0.0) + (rows["b"] == "x")
    quick = {"strategy": "joint", "frame": None, "n_thresholds": 5}
    made = LocalExpertRegressor(**quick, cv=2, random_state=0, n_jobs=1)
    return made.fit(rows, y + np.random.default_rng(2).normal(size=90))


@pytest.fixture
def ax():
    """Return Axes to draw on."""
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


@pytest.fixture
def reload(tmp_path):
    """Return a function that saves a model and loads it."""
    from calibration import load

    def save_and_load(model, **options):
        model.save(tmp_path / "model.zip")
        return load(tmp_path / "model.zip", **options)

    return save_and_load


@pytest.fixture(autouse=True, scope="session")
def _compile_silently():
    """Let no test see whether kernels had been compiled before."""
    from calibration._kernels import _jit

    _jit._FIRST.is_told = True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Call a skipped test a failure in the legs that are there to run it."""
    report = yield
    required = os.environ.get("LOCALEXPERT_NO_SKIPS") == "1"
    if required and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
    return report
