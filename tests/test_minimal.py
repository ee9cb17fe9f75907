"""The bare package: no optional dependency, no side effect on import."""

from textwrap import dedent

import pytest

from tests.processes import run_python

WALK = """
    import importlib, pkgutil, sys

    def import_all():
        for package in ("calibration", "localexpert"):
            root = importlib.import_module(package)
            for info in pkgutil.walk_packages(root.__path__, package + "."):
                importlib.import_module(info.name)
"""

BLOCK = """
    class Blocker:
        def find_spec(self, name, path=None, target=None):
            if name in {blocked}:
                raise ModuleNotFoundError(f"{name} is blocked", name=name)

    sys.meta_path.insert(0, Blocker())
"""
OPTIONAL = ("pandas", "pyarrow", "xgboost", "matplotlib.pyplot")
# docs/installation.rst leaves these out where every megabyte counts.
NOT_FOR_FORECASTS = ("pandas", "matplotlib", "jinja2", "tqdm")

FIT = """
    import numpy as np
    from calibration import IsotonicCalibrator

    scores = np.linspace(0.0, 1.0, 101)
    y = (np.arange(101) * 37 % 101 < 100 * scores**2).astype(int)
    probability = IsotonicCalibrator().fit(scores, y).predict(scores)
    assert (np.diff(probability) >= 0).all()
    assert 0 <= probability[0] < 0.5 < probability[-1] <= 1
"""

FORECAST = """
    from localexpert import LocalExpertRegressor, load

    X = np.random.default_rng(0).uniform(size=(80, 2))
    model = LocalExpertRegressor(effort="quick").fit(X, X[:, 0])
    model.save("model.zip")
    dist = load("model.zip").predict_dist(X)
    assert np.abs(dist.mean() - X[:, 0]).mean() < 0.2
    assert "svg" in dist._repr_html_()
"""

# Other modules stay loaded from the first round, so differences come from ours.
STATE = """
    import warnings
    import numpy as np

    def state():
        random = np.random.get_state()
        return (
            list(warnings.filters), warnings.showwarning, np.geterr(), np.geterrcall(),
            np.get_printoptions(), random[1].tolist(), random[2:],
        )

    import_all()
    for name in list(sys.modules):
        if name.split(".")[0] in ("calibration", "localexpert"):
            del sys.modules[name]
    before = state()
    import_all()
    {fit}
    assert state() == before, [(a, b) for a, b in zip(before, state()) if a != b]
"""

# Ignore what Python, or a tool that watches it, had loaded before.
LAZY = """
    import sys
    before = set(sys.modules)
    import calibration, localexpert
    tops = {name.partition(".")[0] for name in set(sys.modules) - before}
    assert tops - sys.stdlib_module_names == {"calibration", "localexpert"}, tops
"""

# scikit-learn loads pandas if it is installed, and regressors use LightGBM.
NAMES = """
    from calibration import *
    from localexpert import *
    loaded = {name.partition(".")[0] for name in sys.modules}
    dear = loaded & {"matplotlib", "tqdm", "openpyxl", "polars", "dask", "xgboost"}
    assert not dear, dear
    assert set(localexpert.__all__) <= set(dir(localexpert)) & set(globals())
    assert plot_fan is localexpert.plot_fan is vars(localexpert)["plot_fan"]
    assert not hasattr(localexpert, "no_such_name")
    try:
        from calibration import no_such_name
    except ImportError as error:
        assert "cannot import name 'no_such_name' from 'calibration'" in str(error)
    else:
        raise AssertionError
"""


def block(names):
    """Return code after which these modules cannot be imported."""
    return "import sys\n" + dedent(BLOCK).replace("{blocked}", repr(names))


def run_code(*parts):
    """Run pieces of code in a fresh interpreter where warnings are errors."""
    run_python("-W", "error", "-c", "\n".join(dedent(part) for part in parts))


def test_forecasts_need_no_pictures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_code(block(NOT_FOR_FORECASTS), FIT, FORECAST)


def test_packages_and_names_load_what_they_need_and_no_more():
    run_code(LAZY, NAMES)


def test_imports_and_fits_need_no_optional_package_and_leave_global_state_alone():
    run_code(
        WALK,
        block(OPTIONAL),
        dedent(STATE).replace("{fit}", dedent(FIT).replace("\n    ", "\n")),
    )


def test_the_blocker_blocks():
    with pytest.raises(AssertionError, match="pandas is blocked"):
        run_code(block(OPTIONAL), "import pandas")
