"""`localexpert warm`, and how much there is to compile."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core import event

import calibration
from calibration._kernels import _jit
from calibration._kernels.pav import pool_adjacent_violators
from localexpert.cli import warm
from tests.processes import run_python

# Says which kernels are compiled, how often, and how much else of numba's is.
_COUNT = """
import collections, json, sys
import numpy as np
from numba.core import event
import localexpert
rng = np.random.default_rng(0)
X = rng.uniform(size=(300, 4))
y = 3.0 * X[:, 0] + (0.1 + X[:, 2]) * rng.normal(size=300)
verb, path = sys.argv[1:]
with event.install_recorder("numba:compile") as recorder:
    if verb == "fit":
        localexpert.LocalExpertRegressor(random_state=0).fit(X, y).save(path)
    else:
        localexpert.load(path).predict(X)
functions = [e.data["dispatcher"].py_func for _, e in recorder.buffer if e.is_start]
ours = [f for f in functions if "_kernels" in f.__module__]
counts = collections.Counter(f"{f.__module__}.{f.__name__}" for f in ours)
print(json.dumps([len(functions), counts]))
"""


@pytest.mark.slow
def test_little_is_compiled_for_a_fit_and_a_forecast(tmp_path):
    # Some three kernels take a second: what creeps in here is waited for in every fresh
    # environment. One signature each. The table's pool holds more than one law.
    for verb, most in {"fit": 27, "predict": 13}.items():
        cache, model = tmp_path / verb, tmp_path / "model.zip"
        fresh = {"NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": "0"}
        told = run_python("-c", _COUNT, verb, str(model), **fresh)
        total, counts = json.loads(told)
        assert 0 < total <= most, counts
        assert set(counts.values()) == {1}


def test_it_says_what_it_does(run, monkeypatch):
    def compile_one():
        data = {"dispatcher": SimpleNamespace(py_func=pool_adjacent_violators)}
        with event.trigger_event("numba:compile", data=data):
            pass

    monkeypatch.setattr(_jit, "_FIRST", _jit._FirstCompilation())
    monkeypatch.setattr(warm, "_warm_up", compile_one)
    code, out, lines = run("warm")
    assert (code, out) == (0, "")
    assert lines[0].startswith("localexpert: loops are being compiled")
    assert lines[1] == "localexpert: all loops are compiled, and kept"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_calibrator_is_run(rng, monkeypatch):
    kinds = {name for name in calibration.__all__ if name.endswith("Calibrator")}
    run = set()
    for kind in [getattr(calibration, name) for name in kinds]:

        def spy(self, *asked, predict=kind.predict):
            run.add(type(self).__name__)
            return predict(self, *asked)

        monkeypatch.setattr(kind, "predict", spy)
    scores = rng.uniform(size=60)
    warm._calibrate(scores, (rng.uniform(size=60) < scores).astype(np.float64))
    assert kinds - run == warm._OTHERS
