"""Forecasts and regressors in skpro's interface, by skpro's own checks and by ours."""

import doctest
import importlib.util
import pickle
import sys
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from sklearn.preprocessing import StandardScaler

from localexpert import LocalExpertRegressor, crps_score, log_score, pinball_loss
from localexpert.skpro import LocalExpertProba, SkproForecast
from tests.forecasts import Normal

needs_skpro = pytest.mark.skipif(
    importlib.util.find_spec("skpro") is None, reason="skpro is not installed"
)
KINDS = ("continuous", "mixed", "discrete")
INDEX = ["a", "b", "c"]


def as_column(values):
    return pd.DataFrame({"y": values}, index=INDEX)


@pytest.fixture
def forecasts():
    """Three rows of a law of every kind: those that skpro's tests are given."""
    params = SkproForecast.get_test_params()
    return dict(zip(KINDS, (each["forecast"] for each in params[:3]), strict=True))


@pytest.fixture(params=KINDS)
def forecast(request, forecasts):
    return forecasts[request.param]


def show(forecast):
    return SkproForecast(forecast, index=INDEX, columns=["y"])


@needs_skpro
# Their test takes the log of masses that are 0.
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
@pytest.mark.parametrize("cls", [SkproForecast, LocalExpertProba])
def test_skpros_own_checks_and_examples_that_need_it(cls):
    from skpro.utils import check_estimator

    results = check_estimator(cls, raise_exceptions=True, verbose=False)
    assert len(results) > 50
    assert set(results.values()) == {"PASSED"}
    text = cls.__doc__.replace("# doctest: +SKIP", "")
    test = doctest.DocTestParser().get_doctest(text, {}, cls.__name__, None, 0)
    runner = doctest.DocTestRunner(verbose=False)
    assert runner.run(test).attempted > 3
    assert runner.failures == 0


@needs_skpro
class TestForecast:
    def test_answers_are_the_forecasts_own(self, forecast):
        shown, y = show(forecast), as_column([0.0, 1.5, 400.0])
        p = as_column([0.01, 0.5, 0.97])
        for theirs, ours in (
            (shown.cdf(y), forecast.cdf(y["y"])),
            (shown.surv(y), forecast.sf(y["y"])),
            (shown.pmf(y), forecast.pmf(y["y"])),
            (shown.ppf(p), forecast.ppf(p["y"])),
            (shown.mean(), forecast.mean()),
            (shown.var(), forecast.var()),
            (shown.quantile([0.1, 0.8]), forecast.quantiles([0.1, 0.8])),
        ):
            assert list(theirs.index) == INDEX
            assert_array_equal(theirs.to_numpy(), ours.reshape(3, -1))
        if forecast.law.is_smooth:
            assert_array_equal(shown.pdf(y)["y"], forecast.pdf(y["y"]))
            assert_array_equal(shown.log_pdf(y)["y"], forecast.logpdf(y["y"]))
        if forecast.law.is_discrete:
            assert (shown.pdf(y) == 0.0).all(axis=None)
        again = pickle.loads(pickle.dumps(shown))
        assert_array_equal(again.mean(), shown.mean())

    def test_the_parts_of_a_mixed_law_make_up_its_cdf(self, forecasts):
        shown = show(forecasts["mixed"])
        assert_array_equal(shown.pmf(0.0)["y"], [0.0, 0.3, 0.6])
        for i in range(3):
            row = shown.iloc[i, 0]
            left = quad(row.pdf, -np.inf, -1.0)[0] + quad(row.pdf, -1.0, 0.0)[0]
            inner = quad(row.pdf, 0.0, 4.0)[0]
            assert row.cdf(4.0) == pytest.approx(left + inner + row.pmf(0.0), abs=1e-7)
            assert row.pdf(0.0) == pytest.approx(row.pdf(1e-12))  # without the spike
            assert row.log_pdf(2.0) == pytest.approx(np.log(row.pdf(2.0)))

    def test_energies_are_those_of_equally_likely_points(self, forecast):
        shown, y = show(forecast), as_column([0.2, 1.0, -3.0])
        points = forecast.quantiles((np.arange(4000) + 0.5) / 4000)
        with_y = np.abs(points - y.to_numpy()).mean(axis=1)
        among = [np.abs(row[:, None] - row).mean() for row in points]
        assert_allclose(shown.energy(y)["energy"], with_y, rtol=2e-3)
        assert_allclose(shown.energy()["energy"], among, rtol=5e-3, atol=1e-12)

    @pytest.mark.parametrize("a", [1.5, 2])
    def test_norm_of_the_density(self, forecast, a):
        shown = show(forecast)
        norms = shown.pdfnorm(a)["y"].to_numpy()
        if forecast.law.is_discrete:
            assert (norms == 0.0).all()
            return
        for i in range(3):
            row = shown.iloc[i, 0]
            ends = row.ppf(np.float64(1e-9)), row.ppf(np.float64(1 - 1e-9))
            parts = [
                quad(lambda x, row=row: row.pdf(x) ** a, low, high)[0]
                for low, high in pairwise(np.linspace(*ends, 60))
            ]
            assert norms[i] == pytest.approx(sum(parts), rel=1e-3)
            assert row.pdfnorm(a) == pytest.approx(norms[i])

    def test_subsets_and_scalars(self, forecast):
        shown = show(forecast)
        for part, rows in (
            (shown.iloc[1:], [1, 2]),
            (shown.iloc[[2, 0]], [2, 0]),
            (shown.iloc[np.array([True, False, True])], [0, 2]),
            (shown.loc[["c", "a"]], [2, 0]),
            (shown.loc[["b"], ["y"]], [1]),
            (shown.head(2), [0, 1]),
            (shown.head(0), []),
            (shown.iloc[[]], []),
            (shown.iloc[(0, 2), :], [0, 2]),
        ):
            assert isinstance(part, SkproForecast)
            assert part.shape == (len(rows), 1)
            assert list(part.index) == [INDEX[i] for i in rows]
            # BLAS may sum one row in another order than several.
            assert_allclose(part.mean()["y"], forecast.mean()[rows], rtol=1e-14)
        y = as_column([0.5, 1.0, 2.0]).loc[["c", "a"]]
        assert_array_equal(shown.cdf(y)["y"], forecast[[2, 0]].cdf([2.0, 0.5]))
        for row in (shown.iloc[1, 0], shown.iat[1, 0], shown.at["b", "y"]):
            assert row.shape == ()
            assert row.cdf(1.0) == forecast.cdf(1.0)[1]
            assert row.ppf(0.3) == forecast.ppf(0.3)[1]
            crps = row.energy(2.0) - row.energy() / 2
            assert crps == pytest.approx(forecast.crps(2.0)[1])
            for answer in (row.mean(), row.var(), row.pmf(0.0), row.energy()):
                assert isinstance(answer, float)
        plain = SkproForecast(forecast)
        assert (list(plain.index), list(plain.columns)) == ([0, 1, 2], [0])

    def test_what_is_refused(self, forecasts):
        forecast = forecasts["discrete"]
        shown, gap = show(forecast), as_column([0.0, np.nan, 1.0])
        pairs = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)])
        tall = SkproForecast(forecast, pairs, ["y"])
        for call, words in (
            (lambda: SkproForecast(3.0), r"`forecast` must be a Pred.*got float"),
            (lambda: SkproForecast(forecast, [1, 2]), "`index` must be as long as"),
            (
                lambda: SkproForecast(forecast, columns=["y", "z"]),
                "`columns` must have one label, got 2",
            ),
            (lambda: shown.loc[["d"]], r"must be in the index, got \['d'\]"),
            (lambda: shown.loc["d", "y"], r"must be in the index, got \['d'\]"),
            (lambda: shown.at["d", "y"], r"must be in the index, got \['d'\]"),
            (lambda: shown.at["a", "z"], r"must be in the index, got \['z'\]"),
            (lambda: shown.loc[["a"], ["z"]], r"must be in the index, got \['z'\]"),
            (lambda: tall.at["a", "y"], r"must be in the index, got \['a'\]"),
            (lambda: shown.iat[0, 5], "index 5 is out of bounds"),
            (lambda: shown.iloc[0, 5], "index 5 is out of bounds"),
            (lambda: show(forecasts["mixed"]).pdf(gap), "`x` must not be NaN"),
            (lambda: show(forecasts["mixed"]).log_pdf(gap), "`x` must not be NaN"),
        ):
            with pytest.raises((TypeError, ValueError, LookupError), match=words):
                call()


@pytest.fixture
def table(rng):
    X = pd.DataFrame(rng.uniform(size=(200, 3)), columns=list("uvw"))
    X.index = [f"row {i}" for i in range(200)]
    y = 2.0 * X["u"] + (0.2 + X["v"]) * rng.normal(size=200)
    return X, pd.DataFrame({"price": y})


def quick():
    return LocalExpertProba(LocalExpertProba.get_test_params()[1]["estimator"])


@needs_skpro
class TestRegressor:
    def test_carries_the_estimators_forecasts_and_skpros_metrics_are_ours(self, table):
        from skpro.metrics import CRPS, LogLoss, PinballLoss

        X, y = table
        fitted = quick().fit(X[:150], y[:150])
        X, y = X[150:], y[150:]
        dist, shown = fitted.estimator_.predict_dist(X), fitted.predict_proba(X)
        assert (list(shown.index), list(shown.columns)) == (list(X.index), ["price"])
        for theirs, ours in (
            (fitted.predict(X), fitted.estimator_.predict(X)[:, None]),
            (fitted.predict_var(X), dist.var()[:, None]),
            (fitted.predict_interval(X, 0.8), dist.interval(0.8)),
            (fitted.predict_quantiles(X, [0.2, 0.7]), dist.quantiles([0.2, 0.7])),
        ):
            assert list(theirs.index) == list(X.index)
            assert_allclose(theirs.to_numpy(), ours, rtol=1e-12)
        truth, dist = y["price"], shown.forecast
        assert CRPS()(y, shown) == pytest.approx(crps_score(truth, dist), rel=1e-10)
        assert LogLoss()(y, shown) == pytest.approx(log_score(truth, dist), rel=1e-12)
        loss = PinballLoss()(y, fitted.predict_quantiles(X, [0.1, 0.9]))
        ours = [pinball_loss(truth, dist, level=level) for level in (0.1, 0.9)]
        assert loss == pytest.approx(np.mean(ours))

    def test_targets_may_be_transformed(self, table):
        from skpro.regression.compose import TransformedTargetRegressor

        X, y = table
        shown = TransformedTargetRegressor(quick(), StandardScaler()).fit(X, y)
        shown = shown.predict_proba(X[:2])
        assert list(shown.ppf(0.5)) == ["price"]
        level = pd.DataFrame({"price": [0.2, 0.8]}, index=X.index[:2])
        assert_allclose(shown.cdf(shown.ppf(level)), level, atol=1e-6)

    def test_any_estimator_of_distributions(self, table):
        class Raised(Normal):
            def predict(self, X):
                return 1.0 + super().predict(X)

        X, y = table
        estimator = Raised(0.7)
        model = LocalExpertProba(estimator).fit(X, y)
        assert not hasattr(estimator, "y_")  # a clone was fitted
        assert_array_equal(model.estimator_.y_, y["price"])
        assert_allclose(model.predict(X)["price"], 1.0 + X["u"])
        assert_allclose(model.predict_proba(X[:2]).forecast.std(), 0.7)
        assert LocalExpertProba().estimator is None
        other = LocalExpertProba(LocalExpertRegressor())
        other.set_params(estimator__n_thresholds=7)
        assert other.clone().estimator.n_thresholds == 7

    @pytest.mark.parametrize(
        ("names", "monotone"),
        [
            ([0, 1, 2], {0: 1}),
            (["u", 1, 2.5], {"1": 1}),
            (pd.MultiIndex.from_product([["u"], list("abc")]), None),
        ],
    )
    def test_any_names_of_columns(self, table, names, monotone):
        X, y = table
        few = {"n_thresholds": 3, "cv": 2, "effort": "quick", "random_state": 0}
        model = LocalExpertProba(LocalExpertRegressor(monotone=monotone, **few))
        X = X.set_axis(names, axis=1)
        assert model.fit(X, y).predict_proba(X[:5]).shape == (5, 1)


def test_without_skpro_objects_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "skpro.distributions.base", None)
    spec = importlib.util.find_spec("localexpert.skpro")
    without = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(without)
    for name, given in (("LocalExpertProba", []), ("SkproForecast", [None])):
        message = rf"`{name}` needs skpro: pip install 'localexpert\[skpro\]'"
        with pytest.raises(ModuleNotFoundError, match=message):
            getattr(without, name)(*given)
