"""Jobs and threads: libraries get one thread inside, and their own afterwards."""

from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib.parallel import BACKENDS, ThreadingBackend
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_info, threadpool_limits

from calibration import AllPairsClassifier, CalibratedClassifier, summarize
from calibration._jobs import one_thread

FEW, MANY = 1, 10_000


def counts(*kinds):
    return [x["num_threads"] for x in threadpool_info() if x["user_api"] in kinds]


def set_blas(count):
    # In a thread that ends: as long as it lives, no other one can set OpenBLAS.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(threadpool_limits, count, "blas").result()


@pytest.fixture
def two_threads():
    """Let BLAS have two threads, also where the environment grants one."""
    found = max(counts("blas"))
    set_blas(2)
    yield
    set_blas(found)


@pytest.mark.parametrize("n_rows", [FEW, MANY, None])
@pytest.mark.parametrize("user_api", ["blas", None])
def test_libraries_have_one_thread_inside_and_their_own_after(n_rows, user_api):
    kinds = (user_api,) if user_api else ("blas", "openmp")
    before = counts(*kinds)
    with one_thread(user_api, n_rows):
        assert set(counts(*kinds)) <= {1}
    assert counts(*kinds) == before


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("order", ["first out first", "last out first"])
@pytest.mark.parametrize("n_rows", [FEW, MANY])
@pytest.mark.parametrize("user_api", ["blas", None])
def test_threads_that_overlap_leave_what_the_first_found(order, n_rows, user_api):
    before = counts("blas")
    assert set(before) == {2}
    with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as last:
        # Twice: the first round must not leave OpenBLAS to one of the threads.
        for pools in ([first, last], [last, first]):
            stays = [(pool, one_thread(user_api, n_rows)) for pool in pools]
            for pool, stay in stays:
                pool.submit(stay.__enter__).result()
            assert set(counts("blas")) == {1}
            for pool, stay in stays if order == "first out first" else stays[::-1]:
                pool.submit(stay.__exit__, None, None, None).result()
            assert counts("blas") == before


def sum_up(X, y):
    frame = pd.DataFrame({"score": X[:, 0] > 0.0, "label": y > 0})
    return summarize([frame, frame], n_jobs=2).base_rate


def classify(kind):
    model = kind(GaussianNB(), "platt", n_jobs=2)
    return lambda X, y: model.fit(X, y).predict_proba(X)


@pytest.mark.parametrize(
    "work", [sum_up, classify(CalibratedClassifier), classify(AllPairsClassifier)]
)
def test_a_backend_that_hands_over_all_at_once(work, rng, monkeypatch):
    """Such as multiprocessing."""

    class AllAtOnce(ThreadingBackend):
        supports_return_generator = supports_sharedmem = False

    monkeypatch.setitem(BACKENDS, "all at once", AllAtOnce)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    with joblib.parallel_config(backend="threading"):
        expected = work(X, y)
    with joblib.parallel_config(backend="all at once"):
        np.testing.assert_array_equal(work(X, y), expected)
