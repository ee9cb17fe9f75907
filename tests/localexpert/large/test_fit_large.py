"""`fit_large`: one model whatever the parts, corrected by what no model has seen."""

import functools

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression, LogisticRegression

from calibration import CalibrationWarning
from localexpert import LocalExpertRegressor, PredictiveDistribution, fit_large
from localexpert.large.rows import hash_rows
from localexpert.recalibration.pit import PitCells


def plain(**parameters):
    """Return a regressor that is fitted in half a second."""
    quick = {
        "strategy": "independent",
        "expert": LogisticRegression(),
        "center": LinearRegression(),
        "frame": "center",
        "n_thresholds": 3,
        "smoothing": 0.4,
        "calibrator": "quadratic",
        "cv": 2,
        "random_state": 0,
    }
    return LocalExpertRegressor(**{**quick, **parameters})


def joint(**parameters):
    """Return a regressor that takes all kinds of columns."""
    usual = {"strategy": "joint", "expert": None, "frame": None, "center": "stack"}
    return plain(**usual, **parameters)


def draw(n, seed=0):
    """Return rows with numbers, weights, repeated rows, and a key."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n).astype(np.float32),
            "b": rng.normal(size=n).round(1),
            "w": rng.integers(0, 4, size=n),
            "key": rng.integers(0, n // 5, size=n),
        }
    )
    frame["y"] = frame["a"] + np.exp(0.5 * frame["b"]) * rng.standard_gamma(2.0, n)
    return pd.concat([frame, frame[: n // 10]], ignore_index=True)


@functools.cache
def table():
    return draw(4000)[["a", "b", "y"]]


def fit(parts, **given):
    given = {"max_train_rows": 800, "learning_curve": False, **given}
    return fit_large(given.pop("model", plain()), parts, "y", **given)


@functools.cache
def in_one_table():
    return fit(table())


def assert_same(one, other):
    """Compare what was learned bit for bit: sample, thresholds, correction."""
    for name in ("thresholds_", "oof_probabilities_", "fitted_rows_", "oof_weights_"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert_array_equal(one.recalibration_.map_.values, other.recalibration_.map_.values)
    assert (
        one.report_.choices["recalibration"] == other.report_.choices["recalibration"]
    )


def frames(frame, seed):
    """Return the rows in another order, in parts of any size, some empty."""
    rng = np.random.default_rng(seed)
    mixed = frame.iloc[rng.permutation(len(frame))]
    cuts = np.sort(rng.integers(0, len(frame), 6))
    return [mixed.iloc[i:j] for i, j in zip([0, *cuts], [*cuts, None], strict=True)]


class Spy(LocalExpertRegressor):
    """Notes what it is fitted to."""

    seen: pd.DataFrame

    def fit(self, X, y, sample_weight=None, groups=None):
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        type(self).seen = X.assign(y=y, weight=weight, group=groups)
        return super().fit(X, y, sample_weight, groups)


SPY = Spy(**plain().get_params(deep=False))
ROLES = [{}, {"weight": "w"}, {"key": "key"}]


@pytest.mark.parametrize("roles", ROLES, ids=["plain", "weights", "keys"])
def test_any_parts_in_any_order_give_one_model(roles, tmp_path):
    frame = draw(3000)[["a", "b", "y", *roles.values()]]
    whole = fit(frame, **roles)
    parts = frames(frame, 1)
    assert_same(fit(lambda: iter(parts), **roles), whole)
    assert_same(fit(dd.from_pandas(frame, npartitions=5), **roles), whole)
    for number, part in enumerate(parts):
        # Precision and index are of no account.
        turned = part.astype({"a": float})
        turned.to_parquet(tmp_path / f"{number}.parquet", row_group_size=100)
    assert_same(fit(tmp_path, rows_per_part=300, **roles), whole)


def test_columns_may_come_in_any_order():
    frame = draw(1000)[["b", "a", "y"]]
    parts = [frame[:300], frame[300:600][["y", "b", "a"]], frame[600:][["a", "y", "b"]]]
    models = [fit(parts[k:] + parts[:k], max_train_rows=300) for k in range(3)]
    assert [list(one.feature_names_in_) for one in models] == [["a", "b"]] * 3
    assert_same(models[1], models[0])
    assert_same(models[2], models[0])
    assert list(fit(parts[:2]).feature_names_in_) == ["b", "a"]


@pytest.mark.parametrize("most", [50, 800])
@pytest.mark.parametrize("roles", ROLES, ids=["plain", "weights", "keys"])
def test_the_sample_is_the_smallest_hashes(roles, most):
    frame = draw(3000)
    weight = frame["w"].to_numpy(float) if "weight" in roles else np.ones(len(frame))
    given = frame[["a", "b", "y", *roles.values()]]
    fit(frames(given, 1), model=SPY, max_train_rows=most, **roles)
    # The truth: one dictionary of all rows.
    content = hash_rows({name: frame[name] for name in ("a", "b", "y")})
    own = hash_rows({"key": frame["key"]}) if "key" in roles else content
    total = {}
    pairs = zip(own.tolist(), content.tolist(), strict=True)
    for pair, w in zip(pairs, weight, strict=True):
        if w > 0.0:
            total[pair] = total.get(pair, 0.0) + w
    order = sorted(total)
    # Rows of one key are drawn together, or not at all.
    last = order[most][0] if len(order) > most else 2**64
    drawn = [pair for pair in order if pair[0] < last]
    seen = Spy.seen
    assert hash_rows({n: seen[n] for n in ("a", "b", "y")}).tolist() == [
        p[1] for p in drawn
    ]
    expected = np.array([total[pair] for pair in drawn])
    expected *= min(most / expected.sum(), 1.0)
    assert_allclose(seen["weight"], expected, rtol=1e-14)
    if "key" in roles:
        keys = [pair[0] for pair in drawn]
        assert_array_equal(seen["group"], np.unique(keys, return_inverse=True)[1])


def test_all_other_rows_correct_the_forecasts():
    # A law that two thresholds cannot know of.
    rough = plain(calibrator=None, n_thresholds=2)
    model = fit(table(), model=rough)
    choices = model.report_.choices
    sample = choices["large"]["sample"]
    assert sample == 800
    # Cells of the rows beyond it, on the sample's forecasts, one after another.
    hashes = hash_rows(dict(table().items()))
    last = np.sort(np.unique(hashes))[sample - 1]
    assert choices["large"]["chosen"] == "800 of 4400 rows, the others to calibrate by"
    unseen = table()[hashes > last]
    law = model._law(model.reader_.read(unseen[["a", "b"]]))
    z = law.scores(unseen["y"].to_numpy()[:, None], np.full((len(unseen), 1), 0.5))
    corrected = model.predict_dist(unseen[["a", "b"]]).cdf(unseen["y"].to_numpy())
    # The map is of the ranks of these scores, and so brings them near uniform.
    levels = (np.argsort(np.argsort(z[:, 0])) + 0.5) / len(z)
    assert np.abs(corrected - levels).max() < 0.03
    assert choices["recalibration"]["strength"] != "inf"


def test_forecasts_out_of_fold_are_corrected_and_judged_as_such(rng):
    rows = pd.DataFrame({"a": rng.uniform(-1.0, 1.0, 4000)})
    rows["y"] = 2.0 * rows["a"] + 0.3 * rng.normal(size=4000)
    # Uncorrected, its intervals are too wide, which a fit warns of.
    rough = joint(calibrator="auto", smoothing="auto", bounds=None)
    with pytest.warns(CalibrationWarning, match="are not good: 50 and 90 % intervals"):
        rough.set_params(recalibrate=None).fit(rows[["a"]][:900], rows["y"][:900])
    rough.set_params(recalibrate="pit")
    model = fit(rows, model=rough)
    law = model.recalibration_.apply_oof(model.forecaster_.oof_law_)
    dist = PredictiveDistribution(law)
    assert_array_equal(model.oof_distribution_.mean(), dist.mean())
    assert_array_equal(model.oof_prediction_, dist.mean())
    shares = dist.covered(model.oof_targets_, 0.9)
    assert model.check_.coverage_90 == pytest.approx(shares.mean())
    assert not model.check_.problems


def test_of_many_other_rows_some_correct(monkeypatch):
    monkeypatch.setattr("localexpert.large.tables._MOST_CORRECTING", 1500)
    rough, met = plain(calibrator=None, n_thresholds=2), []
    of = PitCells.of
    monkeypatch.setattr(PitCells, "of", lambda z, *a: met.append(len(z)) or of(z, *a))
    choices = fit(table(), model=rough).report_.choices
    assert choices["large"]["chosen"] == "800 of 4400 rows, others to calibrate by"
    assert abs(sum(met) - 1500) < 4.0 * 1500**0.5


@pytest.mark.parametrize(("beyond", "others"), [(499, False), (500, True)])
def test_few_other_rows_leave_the_sample_to_correct_itself(beyond, others):
    rows = table().drop_duplicates()[: 800 + beyond]
    choices = fit(rows).report_.choices
    assert choices["large"]["chosen"].endswith("to calibrate by") == others
    assert choices["recalibration"]["kind"] == "pit"


def test_the_result_is_an_ordinary_regressor(reload):
    model, rows = in_one_table(), table()[["a", "b"]][:50]
    assert model.get_params()["recalibrate"] == "pit"
    again = reload(model)
    assert_array_equal(again.predict(rows), model.predict(rows))
    assert "rows, the others to calibrate by" in str(again.report_)


def test_the_curve_says_what_more_rows_would_gain():
    model = fit(draw(12_000)[["a", "b", "y"]], max_train_rows=6000, learning_curve=True)
    curve = model.report_.choices["learning curve"]
    assert list(curve["losses"]) == ["375", "1500", "6000"]
    assert "4 times the rows would gain" in curve["chosen"]


def test_columns_of_every_kind(rng):
    frame = table().assign(
        day=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(4400), "h"),
        kind=pd.Categorical(np.where(table()["a"] > 0.0, "x", "y")),
        rare=[f"v{i}" for i in range(440)] * 10,
        some=np.where(rng.uniform(size=4400) < 0.5, "u", None),
        truth=table()["b"] > 0.0,
        step=pd.Categorical(rng.integers(0, 3, 4400)),
    )
    # In one part nothing but gaps.
    frame.loc[:999, ["day", "some", "b"]] = None
    model = fit(frame, model=joint(), max_train_rows=150)
    parts = [frame[:1000], frame[1000:]]
    assert_same(fit(parts, model=joint(), max_train_rows=150), model)


def test_a_category_of_numbers_is_no_number():
    frame = table()[:200].assign(step=pd.Categorical(np.arange(200) % 4))
    own = joint().fit(frame.drop(columns="y"), frame["y"])
    for parts in (frame, [frame[:90], frame[90:]]):
        model = fit(parts, model=joint())
        assert model.reader_.category_codes == own.reader_.category_codes
    with pytest.raises(ValueError, match="'step' as category in frame 0, as number in"):
        fit([frame, frame.astype({"step": int})], model=joint())


def test_dates_keep_their_time_zone():
    days = pd.date_range("2020", periods=200, tz="Asia/Tokyo")
    frame = table()[:200].assign(day=days)
    model = fit(frame, model=joint(), max_train_rows=150)
    assert len(model.predict(frame[["a", "b", "day"]])) == 200
    naive = frame.assign(day=frame["day"].dt.tz_localize(None))[["a", "b", "day"]]
    with pytest.raises(TypeError, match=r"`X\['day'\]` must have a time zone"):
        model.predict(naive)


def test_dates_of_any_year():
    days = np.datetime64("2020-01-01") + np.arange(200)
    days[[7, 9]] = np.array(["9999-12-31", "1066-10-14"], "datetime64")
    frame = table()[:200].assign(day=pd.Series(list(days.tolist()), dtype=object))
    model = fit(frame, model=joint(), max_train_rows=150)
    X = frame[["a", "b", "day"]]
    for kind in ("datetime64[us]", "category"):
        other = fit(frame.astype({"day": kind}), model=joint(), max_train_rows=150)
        assert_same(other, model)
        assert_array_equal(other.predict(X), model.predict(X))


def test_bounds_are_those_of_the_whole_table(rng):
    x, y = rng.normal(size=6000), 2.0 * rng.uniform(size=6000)
    frame = pd.DataFrame({"x": x, "y": y})
    assert fit(frame, max_train_rows=2000).bounds_ == (0.0, np.inf)
    frame.loc[17, "y"] = -1e-3
    model = fit(frame, max_train_rows=2000)
    assert model.bounds_[0] < 0.0
    assert model.bounds == "auto"
    with pytest.raises(ValueError, match=r"`bounds` must hold every y.* y = -0\.001"):
        fit(frame, model=plain(bounds=(0.0, None)))


@pytest.mark.parametrize("names", [(0, 1), (("x", 0), ("x", 1))], ids=["ints", "pairs"])
def test_names_may_be_of_any_kind(names):
    named = table().rename(columns=dict(zip(("a", "b"), names, strict=True)))
    rows = named.drop(columns="y")[:20]
    model = fit(frames(named, 1))
    assert_array_equal(model.predict(rows), fit(named).predict(rows))


def test_what_is_small_is_learned_from_whole():
    frame = draw(300)[["a", "b", "y"]]
    model = fit(frames(frame, 0), model=SPY)
    assert model.report_.choices["large"]["chosen"] == "330 of 330 rows"
    assert model.report_.choices["recalibration"]["kind"] == "pit"
    names = ["a", "b", "y"]
    seen, given = (f[names].sort_values(names) for f in (Spy.seen, frame))
    assert_array_equal(seen, given)
    assert (Spy.seen["weight"] == 1.0).all()


def test_few_distinct_rows_are_all_learned_from(rng):
    frame = pd.DataFrame(rng.integers(0, 2, (50_000, 3)), columns=["a", "b", "y"])
    frame["y"] |= frame["a"] & frame["b"]
    model = fit(frame, model=joint(), max_train_rows=1000)
    assert 980 <= model.report_.choices["large"]["sample"] <= 1000
    truth = frame.groupby(["a", "b"])["y"].mean()
    said = model.predict(truth.index.to_frame(index=False))
    assert_allclose(said, truth, atol=0.05)


def parts_with(**change):
    """Return two parts, of which the second one is changed in its fourth row."""
    frame = draw(100).drop(columns="key").astype({"w": float}).assign(t="x")
    bad = frame.assign(w=1.0)
    for name, value in change.items():
        bad.loc[3, name] = value
    return [frame, bad]


F = draw(100)[["a", "b", "y"]]
TIMES = F.assign(b=pd.Timedelta("1h"))
INFINITE = F.assign(a=np.where(F["b"] > 1.0, np.inf, 0.0))
KEYS = [F.assign(k=range(110)), F.assign(k=[str(k) for k in range(110)])]
FEW_DIFFER = F.assign(y=F["b"] == F["b"].max())
OF_TWO_KINDS = "one kind, got the column '{}' as number in frame 0, as text in frame 1"
# By what is said of them: parts, then parts and what else is given.
UNFIT = {
    "same columns .*'b' in frame 0, none": [F, F[["a", "y"]]],
    OF_TWO_KINDS.format("b"): [F, F.assign(b="x")],
    "texts or dates, got a column 'b' of timedelta64 in frame 0": [TIMES],
    "texts or dates, got other cells in 'b': unhashable": [F.assign(b=[[1]] * 110)],
    "different names, got 'b' twice in the frame": pd.concat([F, F[["b"]]], axis=1),
    "must hold finite numbers, got infinity in 'a' of frame 1": [F, INFINITE],
    "a column to learn from, got none in frame 0": [F[["y"]]],
    "two rows with weight, got the frames with 1": [F[:1]],
    "rows that differ, got 9 equal ones": [F[:1]] * 9,
}
WITH_OPTIONS = {
    "targets in 'y', got nan in row 3 of": (parts_with(y=np.nan), {"weight": "w"}),
    "`weight` must be a column of all parts, got 'z'; the fr": (F, {"weight": "z"}),
    "must have numbers in 't', got text in frame 0": (parts_with(), {"weight": "t"}),
    "`weight` and `key` must be different, got y, y": (F, {"key": "y"}),
    "`key` must tell rows apart, got 't' with one value": (parts_with(), {"key": "t"}),
    OF_TWO_KINDS.format("k"): (KEYS, {"key": "k"}),
    '`model` must have cv="auto" or a number': (F, {"model": plain(cv=[])}),
    "`model` must have recalibrate=": (F, {"model": plain(recalibrate="conformal")}),
    "whose targets differ, got 10, of which all": (FEW_DIFFER, {"max_train_rows": 10}),
}


@pytest.mark.parametrize("message", [*UNFIT, *WITH_OPTIONS])
def test_what_cannot_be_is_refused(message):
    parts, given = WITH_OPTIONS.get(message) or (UNFIT[message], {})
    with pytest.raises(ValueError, match=message):
        fit(parts, **given)


def test_rows_without_weight_are_absent():
    with pytest.raises(ValueError, match="two rows with weight, got the frame with 0"):
        fit(table().assign(w=0), weight="w")
    ghost = table()[:5].assign(y=np.nan, w=0)
    model = fit([table().assign(w=1), ghost], weight="w")
    assert_same(model, in_one_table())
    # Other weights are repetitions.
    frame = draw(3000)[["a", "b", "y", "w"]]
    repeated = frame.loc[frame.index.repeat(frame["w"])].drop(columns="w")
    assert_same(fit(frame, weight="w"), fit(repeated))


def test_each_pass_must_meet_the_same_rows():
    once = iter(frames(draw(600), 0))
    with pytest.raises(ValueError, match=r"same rows at each pass, .* rows, then 0: "):
        fit(lambda: once, max_train_rows=100)
    calls = []

    def other():
        calls.append(1)
        return iter([table()[:500], table()[500 * len(calls) :][:500]])

    with pytest.raises(ValueError, match=r"got 1000 rows, then other ones"):
        fit(other, max_train_rows=100)

    def draw_anew(n):
        return table().sample(n, random_state=np.random.default_rng())

    source = dd.from_map(draw_anew, [500, 400], meta=table()[:0])
    with pytest.raises(ValueError, match=r"then other ones: .* to be persisted"):
        fit(source, max_train_rows=100)


def test_a_hash_is_of_the_content():
    frame = pd.DataFrame({"a": [1.5, -0.0, np.nan], "t": ["x", None, "y"]})
    own = hash_rows(dict(frame.items()))
    kept = frame.astype({"a": np.float32, "t": "category"})[["t", "a"]]
    kept.loc[1, "a"] = 0.0
    assert_array_equal(hash_rows(dict(kept.items())), own)
    assert len(set(own.tolist())) == 3
    swapped = {"a": frame["a"].iloc[::-1], "t": frame["t"]}
    assert hash_rows(swapped)[0] != own[0]


@pytest.mark.parametrize("kind", ["int64", "uint64", "Int64", "int64[pyarrow]", object])
def test_integers_beyond_floats_have_hashes_of_their_own(kind):
    keys = pd.Series(2**60 + np.arange(3000))
    hashes = hash_rows({"k": keys.astype(kind)})
    assert len(np.unique(hashes)) == 3000
    assert_array_equal(hashes, hash_rows({"k": keys}))
    few = pd.Series([-2, 0, 2**53])
    assert_array_equal(*(hash_rows({"k": few.astype(t)}) for t in ("int64", float)))
