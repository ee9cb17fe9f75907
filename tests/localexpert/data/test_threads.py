"""Few rows are answered where one asks; many in threads, libraries with one each."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from localexpert import LocalExpertRegressor
from localexpert.data import learners
from localexpert.data.learners import ask_each, one_thread

MANY = 10_000


def whereabouts(_):
    return threading.get_ident()


def test_many_rows_are_asked_about_in_other_threads():
    assert threading.get_ident() not in ask_each(whereabouts, range(9), MANY, 2)
    # One piece of work is no faster elsewhere.
    assert ask_each(whereabouts, [0], MANY, 2) == [threading.get_ident()]


@pytest.mark.parametrize("n_rows", [1, MANY])
@pytest.mark.parametrize("user_api", ["blas", None])
def test_libraries_have_one_thread_inside_and_their_own_after(n_rows, user_api):
    def counts():
        kinds = (user_api,) if user_api else ("blas", "openmp")
        return [x["num_threads"] for x in threadpool_info() if x["user_api"] in kinds]

    with one_thread(MANY):
        pass
    before = counts()
    with one_thread(n_rows, user_api):
        assert set(counts()) <= {1}
    assert counts() == before


def test_a_row_is_forecast_without_looking_for_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 3))
    y = 4.0 * (X[:, 0] > 0.5) + rng.normal(size=300)
    model = LocalExpertRegressor(n_thresholds=9, cv=3, random_state=0, n_jobs=2)
    model.fit(X, y)
    batch = model.predict_dist(X).quantiles([0.1, 0.5, 0.9])
    model.predict_dist(X[:1])

    def refuse(*_, **__):
        pytest.fail("it is paid for at every call")

    for name in ("Parallel", "ThreadpoolController", "threadpool_limits"):
        monkeypatch.setattr(learners, name, refuse)
    for k in range(3):
        one = model.predict_dist(X[[k]]).quantiles([0.1, 0.5, 0.9])
        np.testing.assert_allclose(one[0], batch[k], rtol=1e-6)
