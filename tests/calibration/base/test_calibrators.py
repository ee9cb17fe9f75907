"""What every score calibrator promises, for scores and weights of any size."""

import warnings
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import calibration
from calibration import (
    ABBCalibrator,
    AllPairsClassifier,
    BBQCalibrator,
    BetaCalibrator,
    CalibratedClassifier,
    CalibrationWarning,
    ELiTECalibrator,
    GaussianCalibrator,
    IdentityCalibrator,
    IsotonicCalibrator,
    KDECalibrator,
    LogisticCalibrator,
    MulticlassCalibrator,
    NadarayaWatsonCalibrator,
    PiecewiseLogisticCalibrator,
    PlattCalibrator,
    SBACalibrator,
    SBBCalibrator,
    ScoreCalibrator,
    ScoreSummary,
)
from calibration.base.log_odds import LogOddsCalibrator, deal_by_rank
from examples.templates.own_calibrator import StepCalibrator


def members(base):
    """Return the public classes of one kind."""
    public = (getattr(calibration, name) for name in calibration.__all__)
    kinds = (cls for cls in public if isinstance(cls, type) and issubclass(cls, base))
    return [cls for cls in kinds if cls is not base]


# The last is what those who write one of their own start from.
CALIBRATORS = [*members(ScoreCalibrator), StepCalibrator]
MULTICLASS = members(MulticlassCalibrator)
CLASSIFIERS = [AllPairsClassifier, CalibratedClassifier]


def make(cls, **parameters):
    """An instance that is quick and repeatable."""
    quick = {"n_bags": 20, "random_state": 0}
    known = cls().get_params()
    quick = {name: value for name, value in quick.items() if name in known}
    return cls(**quick, **parameters)


@pytest.fixture
def data(rng):
    scores = np.round(rng.uniform(size=400), 3)
    return scores, (rng.uniform(size=400) < scores**2).astype(int)


@pytest.fixture
def scores(data):
    return data[0]


@pytest.fixture
def y(data):
    return data[1]


def scales_of(cls):
    return [s for s in ("probability", "logit", "real") if s in cls._scales]


everyone = pytest.mark.parametrize("cls", CALIBRATORS)


@everyone
def test_weights_are_repetitions_in_any_order(cls, scores, y, rng):
    weight = rng.integers(0, 4, 400)
    weighted = make(cls).fit(scores, y, weight).predict(scores)
    rows = rng.permutation(np.repeat(np.arange(400), weight))
    repeated = make(cls).fit(scores[rows], y[rows])
    assert_array_equal(weighted, repeated.predict(scores))


@everyone
def test_weights_that_sum_to_one_are_warned_of_once_with_the_cure(cls, scores, y):
    if cls is IdentityCalibrator:
        cls().fit(scores, y, np.full(400, 1 / 400))
        return
    cure = "400 rows add up to 1: .* multiply by 400"
    with pytest.warns(CalibrationWarning, match=cure) as caught:
        make(cls).fit(scores, y, np.full(400, 1 / 400))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_shares_of_rows_and_rows_that_do_not_count_are_no_cause_to_warn(scores, y, rng):
    one, two = np.eye(2, 400)
    held = rng.permutation(400) < 20
    for weight in (rng.uniform(size=400), held / 1.0, 0.2 * held, one + two):
        ones = np.where(np.cumsum(weight > 0) % 2, 1, 0)
        PlattCalibrator().fit(scores, ones, weight)
    for weight in (np.where(held, 0.05, 0.0), np.full(400, 0.01)):
        with pytest.warns(CalibrationWarning, match=r"`sample_weight` counts rep"):
            PlattCalibrator().fit(scores, y, weight)
    # A summary may be a part of a whole, and a fit on it is as vague as it should be.
    PlattCalibrator().fit_summary(ScoreSummary.from_scores(scores, y, y / 400 + 1e-3))


@everyone
def test_fit_is_fit_summary_and_refit_is_fit(cls, scores, y):
    summary = ScoreSummary.from_scores(scores, y)
    once = make(cls).fit(scores, y)
    again = make(cls).fit(1 - scores, y).fit_summary(summary)
    assert_array_equal(once.predict(scores), again.predict(scores))


@everyone
def test_who_has_intervals_tells_them(cls, data):
    if hasattr(cls, "predict_interval"):
        with pytest.raises(NotFittedError, match="not fitted"):
            make(cls).predict_interval([0.5])
        fitted = make(cls).fit(*data)
        low, high = fitted.predict_interval([0.0, 0.3, 1.0]).T
        assert ((low >= 0.0) & (low < high) & (high <= 1.0)).all()
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\], got -2"):
            fitted.predict_interval([-2.0])
        with pytest.raises(ValueError, match="`scores` must be finite, got nan"):
            fitted.predict_interval([np.nan])


@everyone
def test_clones_are_not_fitted(cls, scores, y):
    fitted = make(cls).fit(scores, y)
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError, match="not fitted"):
        fresh.predict(scores)


@everyone
@pytest.mark.parametrize(
    ("scores", "y", "reason"),
    [
        ([0.1, 0.5, 0.9], [1, 1, 1], "class 1 only"),
        ([0.1, 0.5, 0.9], [0, 0, 0], "class 0 only"),
        ([0.5, 0.5, 0.5], [0, 1, 1], "all equal to 0.5"),
        ([0.3], [1], "class 1 only"),
    ],
)
def test_degenerate_data_give_a_smoothed_constant(cls, scores, y, reason):
    if cls is IdentityCalibrator:
        assert_array_equal(cls().fit(scores, y).predict(scores), scores)
        return
    with pytest.warns(CalibrationWarning, match=reason) as caught:
        fitted = make(cls).fit(scores, y)
    assert caught[0].filename == __file__
    expected = (sum(y) + 1) / (len(y) + 2)
    assert_allclose(fitted.predict([0.0, 0.4, 1.0]), expected)
    # What tells nothing apart is no evidence: the base rate is the constant.
    assert_allclose(fitted.llr([0.1, 0.3, 1.0]), 0.0, atol=1e-12)
    assert fitted.base_rate_ == pytest.approx(expected)
    assert len(caught) == 1


@everyone
def test_evidence_and_the_base_rate_make_the_forecast(cls, scores, y):
    """Seeds 002, section 5: log-odds are the log-likelihood ratio plus the prior's."""
    for scale in scales_of(cls):
        x = scores if scale == "probability" else 8 * scores - 4
        fitted = make(cls, scale=scale).fit(x, y, 1.0 + y)
        assert fitted.base_rate_ == pytest.approx(2 * y.sum() / (1.0 + y).sum())
        assert fitted.n_fit_ == pytest.approx((1.0 + y).sum())
        with np.errstate(divide="ignore"):
            odds = fitted.base_rate_ / (1.0 - fitted.base_rate_)
            p = expit(fitted.llr(x) + np.log(odds))
        assert_allclose(p, fitted.predict(x), rtol=1e-9, atol=1e-15)
        assert fitted.predict(x).dtype == np.float64


def test_evidence_needs_a_base_rate():
    fitted = PlattCalibrator().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    del fitted.base_rate_  # as in a file of a version that had none
    with pytest.raises(NotFittedError, match="`base_rate_`, which `llr` needs"):
        fitted.llr([0.3])


@everyone
def test_scores_outside_the_unit_interval_need_a_scale(cls):
    with pytest.raises(ValueError, match=r"`scale=\"probability\"` must lie in \[0, 1"):
        make(cls).fit([-0.1, 0.5], [0, 1])
    fitted = make(cls).fit([0.1, 0.2, 0.7], [0, 1, 1])
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\], got 1\.0000001\."):
        fitted.predict([1.0000001])


@everyone
def test_bad_arguments_are_named(cls):
    if "real" not in cls._scales:
        with pytest.raises(ValueError, match="needs probabilities or log-odds"):
            make(cls, scale="real").fit([0.1, 0.5], [0, 1])
    with pytest.raises(ValueError, match="`scores` must be finite, got nan"):
        make(cls).fit([np.nan, 0.5], [0, 1])
    with pytest.raises(TypeError, match="`summary` must be a ScoreSummary, got list"):
        make(cls).fit_summary([0.1])
    fitted = make(cls).fit([0.1, 0.2, 0.7], [0, 1, 1])
    with pytest.raises(ValueError, match="`scores` must be finite, got inf"):
        fitted.predict([np.inf])
    with pytest.raises(TypeError, match=r"got '0.1' at position 0; convert texts to"):
        fitted.predict(["0.1", "0.2"])
    with pytest.raises(TypeError, match=r"`scores` must be an array .* got \{0.1\}"):
        fitted.predict({0.1})


@everyone
def test_probabilities_and_their_log_odds_give_one_answer(cls, scores, y):
    """D8: parametric maps work in log-odds whichever way a score is written."""
    inside = np.clip(scores, 0.001, 0.999)
    logits = np.log(inside) - np.log1p(-inside)
    p = make(cls, scale="probability").fit(inside, y).predict(inside)
    q = make(cls, scale="logit").fit(logits, y).predict(logits)
    by_place = ("ABB", "BBQ", "Bagged", "Centered", "ELiTE", "Histogram", "Nad", "SBB")
    if cls.__name__.startswith(by_place):
        pytest.skip("edges and centres lie in the coordinate of the scores")
    assert_allclose(p, q, atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        *(partial(make, cls) for cls in CALIBRATORS if "real" in cls._scales),
        partial(NadarayaWatsonCalibrator, shared_bandwidth=False),
        partial(PiecewiseLogisticCalibrator, 5),
        partial(PiecewiseLogisticCalibrator, "auto"),
    ],
)
def test_unit_and_origin_of_real_scores_do_not_matter(make, rng):
    y = np.arange(300) % 2
    x = np.round(rng.normal(2.0 * y), 3)
    plain = make(scale="real").fit(x, y).predict(x)
    for unit, origin in ((1e-150, 0.0), (1e150, 0.0), (4.0, 1e6), (1e-3, -7.0)):
        moved = unit * x + origin
        p = make(scale="real").fit(moved, y).predict(moved)
        assert_allclose(p, plain, rtol=0.0, atol=1e-9)


@everyone
def test_no_input_and_no_global_state_is_touched(cls, data, frozen):
    """D12, D13: filters, error state and the global generator stay as they were."""
    filters, errors = list(warnings.filters), np.geterr()
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - checks it is untouched
    fitted = make(cls).fit(*map(frozen, data), frozen(np.ones(400)))
    fitted.predict(frozen(data[0]))
    assert warnings.filters == filters
    assert np.geterr() == errors
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_extreme_log_odds_keep_their_digits():
    x = np.array([-800.0, -30.0, -2.0, 0.5, 30.0, 800.0])
    platt = PlattCalibrator(scale="logit").fit(x, [0, 0, 1, 0, 1, 1])
    log_odds = platt.predict_log_odds([40.0, 50.0])
    assert log_odds[1] > log_odds[0]
    isotonic = IsotonicCalibrator(scale="logit").fit(x, [0, 0, 1, 0, 1, 1])
    assert isotonic.predict([-31.0]) == 0.0


def test_exact_zeros_and_ones_do_not_take_over_a_fit(rng):
    """A forest's zeros count as half of its least positive score."""
    scores = np.round(rng.uniform(size=3000), 2)
    y = rng.uniform(size=3000) < scores**2
    platt = PlattCalibrator().fit(scores, y)
    inner = (scores > 0) & (scores < 1)
    without = PlattCalibrator().fit(scores[inner], y[inner])
    assert platt.coef_[0] == pytest.approx(without.coef_[0], rel=0.05)
    p = platt.predict([0.0, 1e-9, 0.005, 0.01])
    assert (np.diff(p) >= 0).all()


N = 200
EXPORTED = CALIBRATORS[:-1]
SIZES = {"probability": 1.0, "logit": 4000.0, "real": 1e290}
OTHERS = [
    partial(ABBCalibrator, "bdeu", "auto"),
    partial(BBQCalibrator, criterion="bic"),
    partial(BetaCalibrator, "moments"),
    partial(ELiTECalibrator, isotonic_penalty=0.01),
    partial(ELiTECalibrator, isotonic_penalty=np.inf),
    partial(GaussianCalibrator, shared_variance=True),
    partial(KDECalibrator, shared_bandwidth=False),
    partial(NadarayaWatsonCalibrator, shared_bandwidth=False),
    partial(SBBCalibrator, rate=1e6),
    partial(SBBCalibrator, rate=1e-9),
]
FAR = [-1.7e308, -1e300, -1.0, 0.0, 5e-324, 1e-300, 1.0, 1e15, 1e300, 1.7e308]
SCORES = {
    "1e300": lambda z: z * 1e300,
    "greatest": lambda z: np.sign(z) * 1.7e308 / (1.0 + np.abs(z)),
    "1e-300": lambda z: z * 1e-300,
    "denormal": lambda z: np.round(100 * z) * 5e-324,
    "ulps": lambda z: 1.0 + np.round(3 * z) * 2.0**-52,
    "offset": lambda z: 1e15 + np.round(10 * z),
    "outlier": lambda z: np.append(z[:-1], 1e300),
    "ordinary": lambda z: z,
}
WEIGHTS = {
    "3e11 in all": np.full(N, 1.5e9),
    "1e15 in all": np.full(N, 5e12),
    "2e17 in all": np.full(N, 1e15),
    "1e300": np.full(N, 1e298),
    "overflow": np.full(N, 1e307),
    "1e-300": np.full(N, 1e-300),
    "denormal": np.full(N, 5e-324),
    "ratio of 1e13": np.where(np.arange(N) % 2, 1.0, 1e-13),
    "ratio of 1e30": np.where(np.arange(N) % 2, 1.0, 1e-30),
    "one of 1e15": np.where(np.arange(N) == 3, 1e15, 1.0),
    "one of 1e300": np.where(np.arange(N) == 3, 1e300, 1.0),
    "1e-20 to 1e20": 10.0 ** np.linspace(-20, 20, N),
    "1e-25 to 1e15": 10.0 ** np.linspace(-25, 15, N),
}


def probabilities_or_refusal(calibrator, scores, y, weight, points, name):
    """Fit; predictions are probabilities, or the refusal names the argument."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        try:
            predicted = calibrator.fit(scores, y, weight).predict(points)
        except ValueError as error:
            refusal = str(error)
        else:
            assert ((predicted >= 0.0) & (predicted <= 1.0)).all()
            if isinstance(calibrator, LogOddsCalibrator):
                assert np.isfinite(calibrator.predict_log_odds(points)).all()
            return ""
    assert f"`{name}` must" in refusal
    return refusal


@pytest.mark.parametrize("size", SCORES)
@pytest.mark.parametrize("make", [*EXPORTED, *OTHERS])
def test_scores_of_any_size(make, size, rng):
    calibrator = make(scale=scales_of(make())[-1])
    scores, y = SCORES[size](rng.normal(size=N)), rng.integers(0, 2, N)
    with np.errstate(all="ignore"):
        refusal = probabilities_or_refusal(calibrator, scores, y, None, FAR, "scores")
    if size in ("ordinary", "offset", "ulps"):
        assert not refusal


@pytest.mark.parametrize("total", WEIGHTS)
@pytest.mark.parametrize("cls", EXPORTED)
def test_weights_of_any_size(cls, total, rng):
    scores = rng.uniform(size=N)
    y = rng.uniform(size=N) < scores
    weight = WEIGHTS[total]
    with np.errstate(all="ignore"):
        refusal = probabilities_or_refusal(
            cls(), scores, y, weight, np.linspace(0, 1, 7), "sample_weight"
        )
    with np.errstate(over="ignore"):
        assert bool(refusal) == (weight.sum() > 2.0**53 or weight.max() < 1e-307)


def test_very_many_rows_have_the_fit_of_fewer(rng):
    scores = rng.normal(size=N)
    y = rng.uniform(size=N) < 0.5
    few, many = (
        LogisticCalibrator(scale="real").fit(scores, y, np.full(N, weight))
        for weight in (1e6, 1e12)
    )
    assert_allclose(many.predict(scores), few.predict(scores), rtol=0, atol=1e-7)


def test_a_rest_of_one_class_is_left_out():
    """The only event is in one fold, whose rest has none."""
    cells = ScoreSummary.from_scores(np.arange(30.0), np.arange(30) == 11)
    pairs = deal_by_rank(cells, 3, 0)
    assert len(pairs) == 2
    assert all(fold.n1 == 0.0 for _, fold in pairs)


def test_too_few_rows_for_two_folds():
    assert deal_by_rank(ScoreSummary.from_scores([0.5], [1]), 5, 0) == []


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize(
    "cls", [*CALIBRATORS, *MULTICLASS, SBACalibrator, *CLASSIFIERS]
)
def test_a_failed_fit_changes_nothing(cls, error, scores, y, monkeypatch):
    def set_one_and_stop(self, name, value):
        object.__setattr__(self, name, value)
        if name.endswith("_"):
            raise error

    model, rows = make(cls), (scores,)
    if cls in MULTICLASS:
        rows = (np.column_stack([1.0 - scores, scores]),)
    elif cls is SBACalibrator:
        rows = (scores[:, None], scores)
    elif cls in CLASSIFIERS:
        rows = (scores[:, None],)
    for before in (dict(vars(model)), dict(vars(model.fit(*rows, y)))):
        vars(model).clear()
        vars(model).update(before)
        with monkeypatch.context() as patch:
            patch.setattr(cls, "__setattr__", set_one_and_stop)
            with pytest.raises(error):
                model.fit(*rows, 1 - y)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[key] is value for key, value in before.items())


@pytest.mark.filterwarnings("ignore::calibration.CalibrationWarning")
@pytest.mark.parametrize("make", [*EXPORTED, *OTHERS])
def test_few_rows_of_any_weights_have_forecasts_and_intervals(make, rng):
    """Of the first three the means are 1, or the law of the middle has two points."""
    cases = [
        ([0.1, 0.5, 0.9], [0, 1, 1], [1e15, 1e-9, 1e15]),
        ([0.1, 0.5, 0.9], [0, 1, 1], [1e-3, 1e15, 1e15]),
        ([0.1, 0.2, 0.2], [1, 1, 0], [1e15, 1e14, 1e-14]),
        ([0.5, 0.25, 0.25], [1, 0, 0], [1e-300, 1e-300, 1e-300]),
        ([0.0, 5e-324, 1e-323, 0.0], [0, 1, 0, 0], [3.0, 1e6, 60.0, 1e6]),
        ([0.0, 0.5], [1, 0], [1e-300, 1e12]),
        ([0.0, 0.0, 1.0], [0, 1, 1], [1.0, 5e-324, 1e-12]),
        # Separable, with and without ties.
        *(([0, 0, 1, 1], y, np.ones(4)) for y in ([0, 0, 1, 1], [1, 1, 0, 0])),
        *(([0.1, 0.2, 0.8, 0.9], y, np.ones(4)) for y in ([0, 0, 1, 1], [1, 1, 0, 0])),
    ]
    for n in rng.integers(2, 9, 12):
        rows = rng.integers(0, 5, n) / 4, rng.integers(0, 2, n)
        cases.append((*rows, 10.0 ** rng.uniform(-15, 14, n)))
    for scale in scales_of(make()):
        for scores, y, weight in cases:
            x = np.array(scores) * SIZES[scale]
            fitted = make(scale=scale).fit(x, y, weight)
            found = [fitted.predict(x), fitted.predict([0, 1e-300, 1 - 1e-16, 1])]
            if hasattr(fitted, "predict_interval"):
                found.extend(fitted.predict_interval(x).T)
            assert all(((one >= 0.0) & (one <= 1.0)).all() for one in found)
