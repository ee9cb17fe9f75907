"""Roads that compete, which road a target takes, and what is refused by name."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import PredefinedSplit

import localexpert
from calibration import HistogramCalibrator
from localexpert.coordinate.frame import Frame
from localexpert.experts import IndependentExperts, SharedBoosting
from localexpert.experts.calibration import CalibratedExperts
from localexpert.law.transform import ExpLess, LogOf
from localexpert.recalibration.conformal import set_aside
from tests.regressors import fast

THIRD = 0.1 + 0.2  # one float above .3


def make(roads="auto", **parameters):
    parameters = {"center": LinearRegression(), "cv": 3, **parameters}
    return localexpert.LocalExpertRegressor(roads=roads, random_state=0, **parameters)


@pytest.fixture
def targets(rng):
    X = rng.normal(size=(240, 3))
    f = X[:, 0] + 0.5 * X[:, 1]
    dry = rng.uniform(size=240) < 0.35
    return X, {
        "discrete": rng.poisson(np.exp(0.5 + 0.4 * f)).astype(float),
        "mixed": np.where(dry, 0.0, np.exp(f + rng.normal(size=240))),
        "continuous": f + rng.normal(size=240),
    }


def test_a_small_forest_is_judged_beside_the_first_stage_of_a_frame(rng):
    # The experts around a line learn what it misses. A whole forest might, too.
    X = rng.uniform(size=(300, 6))
    roads = [localexpert.FrameRoad(), localexpert.GridRoad(60)]
    for f, unfinished in ((np.sin(4.0 * X), []), (X, ["grid"])):
        y = f.sum(axis=1) + 0.1 * rng.normal(size=300)
        model = make(roads).fit(X, y)
        assert model.report_.choices["roads"]["unfinished"] == unfinished


@pytest.mark.parametrize("kind", ["discrete", "mixed", "continuous"])
@pytest.mark.parametrize("frame", [None, "center"])
def test_weights_are_repetitions(rng, targets, kind, frame):
    """Rows without weight are absent, whatever their targets."""
    X, y = targets[0], targets[1][kind]
    weight, part = rng.integers(0, 5, 240), rng.integers(0, 3, 240)
    y[weight == 0] += 1e3
    rows = np.repeat(np.arange(240), weight)
    # All stages of it know weights.
    exact = {"expert": LogisticRegression(), "n_thresholds": 9, "frame": frame}
    one = make(**exact, cv=PredefinedSplit(part)).fit(X, y, sample_weight=weight)
    many = make(**exact, cv=PredefinedSplit(part[rows])).fit(X[rows], y[rows])
    for model in (one, many):
        assert model.report_.target == kind
    losses = [model.report_.choices["calibration"]["losses"] for model in (one, many)]
    assert losses[0] == pytest.approx(losses[1])
    np.testing.assert_allclose(one.thresholds_, many.thresholds_, rtol=1e-9, atol=1e-9)
    grid = np.quantile(y[rows], np.linspace(0.02, 0.98, 25))
    first, second = (model.predict_dist(X[rows]) for model in (one, many))
    np.testing.assert_allclose(first.cdf_at(grid), second.cdf_at(grid), atol=1e-8)
    np.testing.assert_allclose(first.logpdf(y[rows]), second.logpdf(y[rows]), atol=1e-6)
    oof = one.oof_distribution_[rows].cdf_at(grid)
    np.testing.assert_allclose(oof, many.oof_distribution_.cdf_at(grid), atol=1e-8)


def test_amounts_beside_zeros_are_mixed(rng):
    X = rng.uniform(size=(540, 3))
    y = rng.permutation(np.concatenate([np.zeros(500), rng.lognormal(7.0, 1.0, 40)]))
    model = fast().fit(X, y)
    assert model.report_.target == "mixed"
    assert np.isfinite(model.predict_dist(X[:3]).log_score(2.0 * y.max())).all()
    # Of so few there is no smooth rest; a new amount is possible all the same.
    y[np.flatnonzero(y)[8:]] = 0.0
    model = fast().fit(X, y)
    assert model.report_.target == "discrete"
    assert np.isfinite(model.predict_dist(X[:3]).log_score(1.5 * y.max())).all()


def test_a_count_may_exceed_all_that_were_met(rng):
    X = rng.uniform(size=(300, 2))
    y = rng.poisson(1.0 + 3.0 * X[:, 0]).astype(float)
    model = fast().fit(X, y)
    dist = model.predict_dist([[0.0, 0.5], [1.0, 0.5]])
    beyond = dist.sf(y.max())
    assert (beyond > 0.0).all()
    assert beyond[1] > beyond[0]  # where greater counts are expected
    assert (beyond < 0.01).all()
    assert np.isfinite(dist.log_score(y.max() + 3.0)).all()
    assert dist.law.support[0] == 0.0
    model = fast(bounds=(0, y.max())).fit(X, y)
    assert model.predict_dist(X[:3]).law.support[1] == y.max()


@pytest.mark.parametrize(
    "values",
    [[0.2, 0.3, THIRD], [*np.cumsum(np.full(10, 0.1)), *(np.arange(1, 11) / 10)]],
)
def test_values_that_differ_by_rounding_are_one(rng, values):
    X = rng.uniform(size=(300, 2))
    y = rng.choice(values, 300)
    model = fast(stacker="auto").fit(X, y)
    assert model.report_.target == "discrete"
    dist = model.predict_dist(X[:5])
    np.testing.assert_allclose(dist.atoms, np.unique(np.round(values, 9)))
    np.testing.assert_allclose(dist.cdf(0.3), dist.cdf(THIRD))
    shares = [np.mean(np.isclose(y, v)) for v in dist.atoms]
    np.testing.assert_allclose(dist.masses.mean(axis=0), shares, atol=0.15)


def test_rows_that_are_all_alike_once_others_are_set_aside():
    y = np.full(110, 0.1)
    rows = localexpert.LocalExpertRegressor(recalibrate="conformal", random_state=0)
    aside = set_aside(np.ones(110), rows.cv, None, 0)[1]
    y[aside[0]] = 1.0
    with pytest.raises(ValueError, match="`y` must differ in the rows that no recali"):
        rows.fit(np.arange(110.0)[:, None], y)


FOREST = localexpert.JointForest(30, random_state=0)
QUICK = localexpert.FrameRoad(strategy=FOREST, n_thresholds=9)
GRID = localexpert.GridRoad(20, strategy=FOREST)
KINDS = ("linear", "probit", "residuals", "climatology")


def draw(rng, n=150):
    X = rng.uniform(size=(n, 3))
    return X, 3.0 * X[:, 0] + np.sin(5.0 * X[:, 1])


def tried(model):
    """Return the roads that a fit tried, without those that ask nothing."""
    losses = model.report_.choices["roads"]["losses"]
    return {name for name in losses if name not in KINDS}


class TestWhichCompete:
    def test_by_target(self, rng):
        X, mean = draw(rng, 90)
        noise, counts = rng.normal(size=90), rng.poisson(np.exp(1.4 + 0.4 * mean))
        heaped = np.where(rng.uniform(size=90) < 0.5, 5 * (counts // 5), counts)
        for y, names in (
            (mean + noise, {"frame", "grid"}),
            (np.exp(mean + noise), {"frame", "grid", "log"}),
            (np.round(2.0 * mean), {"discrete", "cells"}),
            (counts, {"cells"}),
            (heaped, {"discrete", "cells"}),
        ):
            assert tried(make(cv=2).fit(X, y)) == names

    def test_the_rest_beside_atoms(self, rng):
        X, mean = draw(rng)
        y = np.where(rng.uniform(size=150) < 0.3, 0.0, np.exp(mean))
        model = make(cv=2).fit(X, y)
        assert model.report_.target == "mixed"
        assert tried(model) == {"mixed", "smooth"}
        within = model.report_.choices["roads"]["within"]
        assert {"frame", "log"} <= set(within["losses"])
        assert (model.predict_dist(X).cdf(-1e-9) == 0.0).all()

    def test_named_parts_are_one_road(self, rng):
        X, mean = draw(rng)
        parts = {"strategy": FOREST, "n_thresholds": 9}
        model = make(**parts).fit(X, mean)
        assert "roads" not in model.report_.choices
        one = make(localexpert.FrameRoad(**parts)).fit(X, mean)
        np.testing.assert_array_equal(one.predict(X), model.predict(X))

    def test_nothing_to_learn(self, rng):
        """Roads without experts are pooled in where they are as good as others."""
        X, new = rng.normal(size=(500, 20)), rng.normal(size=(2000, 20))
        y, came = rng.gamma(2.0, size=500), rng.gamma(2.0, size=2000)
        model = make().fit(X, y)
        losses = model.report_.choices["roads"]["losses"]
        assert {"residuals", "climatology"} <= set(losses)
        climatology = np.abs(came[:, None] - y).mean()
        climatology -= np.abs(y[:, None] - y).mean() / 2.0
        assert model.predict_dist(new).crps(came).mean() < 1.01 * climatology


class TestForecasts:
    def test_values_never_met_get_little(self, rng):
        """They are many: a row of weight each would put a tail far out."""
        X, mean = draw(rng)
        y = np.clip(np.round(3.0 * mean), 2.0, 9.0)
        y[y.argmax()] = 12.0
        dist = make(localexpert.CellRoad(QUICK)).fit(X, y).oof_distribution_
        assert (~np.isin(dist.atoms, y)).sum() > 5
        assert dist.masses[:, dist.atoms > 13.0].sum(axis=1).max() < 0.01
        assert dist.masses.min() > 0.0

    def test_the_heaviest_of_a_pool_is_what_is_shown(self, rng):
        X, mean = draw(rng)
        roads = [QUICK, GRID, localexpert.GridRoad(10, strategy=FOREST)]
        model = make(roads).fit(X, mean + rng.normal(size=150))
        assert tried(model) == {"frame", "grid", "grid 2"}
        weights = model.report_.choices["roads"]["weights"]
        assert sum(weights.values()) == pytest.approx(1.0)
        # Roads without weight are forgotten.
        pool = model.forecaster_
        assert pool.roads.keys() == pool.fitted_.keys() == weights.keys()
        n_asked = {"frame": 9, "grid": 20, "grid 2": 10}[max(weights, key=weights.get)]
        assert model.expert_points(X)[0].shape == (150, n_asked)
        assert model.thresholds_.shape == (n_asked,)
        assert model.oof_probabilities_.shape == (150, n_asked)

    def test_bounds_hold_for_every_road(self, rng):
        X, _ = draw(rng, 400)
        y = np.exp(1.5 * rng.normal(size=400))
        for road in (QUICK, GRID, localexpert.Transformed(QUICK)):
            model = make(road).fit(X, y)
            assert model.bounds_ == (0.0, np.inf)
            assert (model.predict_dist(X).cdf(0.0) == 0.0).all()
        assert (make(QUICK, bounds=None).fit(X, y).predict_dist(X).cdf(0.0) > 0.0).any()

    def test_the_logarithm_makes_nothing_of_what_was_never_seen(self, rng):
        """Its normal tails may be as wide as they are: the mean must not be theirs."""
        X, _ = draw(rng)
        y = np.exp(7.0 + 2.0 * X[:, 0] + (0.05 + 2.0 * X[:, 1]) * rng.normal(size=150))
        log, exp = LogOf(0.0, y.max()), ExpLess(0.0, y.max())
        model = make(localexpert.Transformed(QUICK, log, exp)).fit(X, y)
        dist = model.predict_dist(rng.uniform(size=(300, 3)))
        assert dist.mean().max() < y.max()
        assert dist.quantiles(1.0 - 1e-6).max() < 20.0 * y.max()
        heavy = np.exp(rng.standard_t(2.0, size=150))
        dist = make(localexpert.Transformed(QUICK)).fit(X, heavy).predict_dist(X)
        assert np.isfinite(dist.kurtosis()).all()


@pytest.mark.parametrize(
    ("roads", "message"),
    [
        (localexpert.DiscreteRoad(), "must fit the target, got a road to few values"),
        (localexpert.CellRoad(), "must fit the target, got a road to few values"),
        (localexpert.Transformed(), "`func` must be finite on y, got nan at -"),
        (
            localexpert.Transformed(None, np.negative, np.negative),
            "`func` must increase on y",
        ),
        (localexpert.Transformed(None, np.cbrt, np.exp), "`inverse` must undo `func`"),
    ],
)
def test_roads_are_refused_before_anything_is_fitted(roads, message, rng, monkeypatch):
    X, mean = draw(rng)
    monkeypatch.setattr(LinearRegression, "fit", None)
    with pytest.raises((TypeError, ValueError), match=message):
        make(roads).fit(X, mean - mean.mean())


@pytest.mark.parametrize("smoothings", [0.3, (), (-1.0,), ("a",)])
def test_smoothings_are_numbers_up_to_one(smoothings):
    with pytest.raises((TypeError, ValueError), match="`smoothings` must"):
        localexpert.Road(smoothings=smoothings)


def test_steps_that_do_not_fit_the_laws_they_read():
    for around in (localexpert.CellRoad, localexpert.Transformed):
        for wrong in (localexpert.DiscreteRoad(), localexpert.CellRoad()):
            with pytest.raises(TypeError, match="`road` must be a road to smooth"):
                around(wrong)
    log = localexpert.Transformed().steps
    for steps, read in ((log, "probabilities of values"), (("log",), "")):
        with pytest.raises(TypeError, match=f"`steps` must be steps that read {read}"):
            localexpert.Road(thresholds="values", steps=steps)
    with pytest.raises(TypeError, match=r"`steps` must be .* probabilities of values"):
        localexpert.CellRoad().with_step(log[0])


# What the sweep over all public parameters does not try.
WRONG = {
    "n_thresholds": [0, True, 2.5],
    "thresholds": ["even", [[1, 2]], [np.nan], [1, 1], 3.0, [True]],
    "frame": ["centre", True, ["auto"]],
    "center": ["mean", (), LinearRegression, LogisticRegression(), [None]],
    "strategy": ["forest", localexpert.JointForest],
    "calibrator": ["spline", 3, LogisticRegression()],
    "smoothing": ["spline", True, np.nan, 1j],
    "bounds": [(1,), (2, 1), (0, 0), ("0", "99"), (np.nan, 1), (0, 0.5), (9, None)],
    "effort": [0, np.inf, "fast", True],
    "roads": ["frame", [], [3]],
    "recalibrate": ["pits", True, localexpert.PitRecalibration],
    "stacker": ["ridge", True, LinearRegression, localexpert.Stacker("mean")],
    "cv": [0, 1, True, 2.5, 1000],
    "random_state": [1.5, True, 2**32],
    "expert": [
        LogisticRegression,
        LinearRegression(),
        FrozenEstimator(LogisticRegression()),
    ],
}
# What is wrong beside another parameter.
TOGETHER = [
    ({"thresholds": [1.0], "frame": "center"}, "`frame` must be None where"),
    (
        {"recalibrate": "conformal", "cv": [(np.arange(60), np.arange(60, 120))]},
        "`cv` must be .* where `recalibrate` sets rows aside",
    ),
    (
        {"expert": LogisticRegression(), "strategy": "joint"},
        '`strategy` must be "independent" or "auto" with an `expert`',
    ),
    *(
        ({"roads": [localexpert.FrameRoad()], **part}, '`roads` must be "auto" where')
        for part in (
            {"frame": None},
            {"n_thresholds": 9},
            {"strategy": "joint"},
            {"expert": LogisticRegression()},
        )
    ),
]
# What refuses its own parameters is asked to do so before anything else is fitted.
INSIDE = [
    ("strategy", localexpert.JointForest(0), "`n_estimators`"),
    ("strategy", SharedBoosting(learning_rate=-1), "`learning_rate`"),
    ("strategy", IndependentExperts(3), "`classifier`"),
    ("calibrator", HistogramCalibrator(0), "`n_bins`"),
    ("recalibrate", localexpert.ConformalRecalibration(-1), "`largest_gap`"),
    ("recalibrate", localexpert.PitRecalibration((-1,)), "`strengths`"),
    ("stacker", localexpert.Stacker(passthrough="yes"), "`passthrough`"),
]


@pytest.fixture(params=["smooth", "counts", "constant"])
def data(request, rng, monkeypatch):
    """Rows, and a fit that may not begin."""

    def begin(*_arguments, **_options):
        pytest.fail("a stage was fitted before the parameters were checked")

    monkeypatch.setattr(Frame, "fit", begin)
    monkeypatch.setattr(CalibratedExperts, "ask", begin)
    X = rng.uniform(size=(120, 2))
    targets = {
        "smooth": X[:, 0] + rng.normal(size=120),
        "counts": rng.poisson(3.0, size=120),
        "constant": np.ones(120),
    }
    return X, targets[request.param]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_parameters_are_refused_by_name(data, name):
    for value in WRONG[name]:
        with pytest.raises((TypeError, ValueError), match=f"^`{name}` must "):
            localexpert.LocalExpertRegressor(**{name: value}).fit(*data)


def test_parameters_that_do_not_go_together_are_refused(data):
    X, y = data
    for parameters, message in TOGETHER:
        if "cv" in parameters and np.ptp(y) == 0.0:
            continue  # no row of a constant target is set aside
        with pytest.raises(ValueError, match=message):
            localexpert.LocalExpertRegressor(**parameters).fit(X, y)


@pytest.mark.parametrize(("name", "value", "inner"), INSIDE)
def test_parts_with_wrong_parameters_are_refused(data, name, value, inner):
    with pytest.raises((TypeError, ValueError), match=f"^{inner} must "):
        localexpert.LocalExpertRegressor(**{name: value}).fit(*data)


def test_an_ensemble_checks_every_member_first(data):
    members = [
        ("good", localexpert.LocalExpertRegressor()),
        ("bad", localexpert.LocalExpertRegressor(calibrator="spline")),
    ]
    with pytest.raises(ValueError, match=r"^`calibrator` must ") as caught:
        localexpert.DistributionEnsemble(members).fit(*data)
    assert caught.value.__notes__ == ["This is the member 'bad'."]
