"""What is said when kernels are compiled; how, is seen by all other tests here."""

from types import SimpleNamespace

import pytest
from numba.core import event

from calibration._kernels import _jit


def compile_one(module="calibration._kernels.pav"):
    """Do as numba does when it compiles a kernel of a module."""
    kernel = SimpleNamespace(py_func=SimpleNamespace(__module__=module))
    with event.trigger_event("numba:compile", data={"dispatcher": kernel}):
        pass


@pytest.fixture(autouse=True)
def first(monkeypatch):
    """As in a process that has compiled nothing yet."""
    monkeypatch.setattr(_jit, "_FIRST", _jit._FirstCompilation())


def test_the_first_kernel_is_told_once_to_the_innermost():
    outer, inner = [], []
    compile_one()
    with _jit.telling(outer.append), _jit.telling(inner.append):
        compile_one("user.code")
        assert inner == []
        compile_one("localexpert._kernels.normal")
        compile_one()
    compile_one()
    assert (outer, len(inner)) == ([], 1)
    assert "happens once" in inner[0]


def test_it_says_what_to_do_where_nothing_can_be_kept(monkeypatch):
    def refuse(**_):
        msg = "cannot cache function: no locator available"
        raise RuntimeError(msg)

    monkeypatch.setattr(_jit.numba, "njit", refuse)
    said = []
    with _jit.telling(said.append):
        compile_one()
    assert "in every process" in said[0]
    assert "NUMBA_CACHE_DIR" in said[0]


def test_nobody_listens_afterwards():
    said = []
    with _jit.telling(said.append):
        pass
    compile_one()
    assert said == []
