"""The families of the centre: each alone, and what all of them keep to."""

from dataclasses import replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.preprocessing import TargetEncoder

from localexpert.coordinate.boosting import FoldBooster, TargetCodes
from localexpert.coordinate.centre import CentreStack
from localexpert.coordinate.families import BoostedTrees, Fitted, Forest
from localexpert.coordinate.frame import Frame
from localexpert.coordinate.kernel_machine import KernelMachine, KernelMachines
from localexpert.coordinate.small_nets import NetsOfLogarithm, Ramps, SmallNets
from localexpert.coordinate.sums import AdditiveRidge, FewLines, Lines, Products
from localexpert.data.table import DenseInputs, Table
from localexpert.data.target_values import is_skewed
from tests.regressors import sample_of


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(240, 3))
    y = 2.0 * X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.1 * rng.normal(size=240)
    return sample_of(X, y, cv=3)


def families():
    common, smooth = {"random_state": 0, "n_jobs": None}, KernelMachine(smooth=True)
    return {
        "boosting": BoostedTrees(**common),
        "forest": Forest(**common),
        "net": Fitted(SmallNets(n_nets=1), view="bent", n_jobs=None),
        "additive": Fitted(AdditiveRidge(), view="bent", n_jobs=None),
        "straight": Fitted(Lines(), view="straight", n_jobs=None),
        "few lines": Fitted(FewLines(), view="straight", n_jobs=None),
        "powers": Fitted(Lines(), view="logarithm", n_jobs=None),
        "products": Fitted(Products(), view="straight", n_jobs=None),
        "kernel": KernelMachines(view="bent", n_jobs=None),
        "smooth kernel": KernelMachines(smooth, view="bent", n_jobs=None),
    }


class TestHonesty:
    @pytest.mark.parametrize("name", list(families())[1:])
    def test_a_row_never_moves_its_own_prediction(self, data, name):
        other = data.y.copy()
        other[7] += 100.0
        a, b = (
            families()[name].fit(data.table.codes, sample)
            for sample in (data, replace(data, y=other))
        )
        assert a.oof_[7] == b.oof_[7]
        assert not np.array_equal(a.oof_, b.oof_)

    def test_a_row_moves_boosting_by_the_number_of_rounds_alone(self, data):
        fold = next(fold for fold in data.folds if 7 in fold[1])
        answers = []
        for more in (0.0, 100.0):
            other = data.y.copy()
            other[7] += more
            model = FoldBooster({"seed": 0}, data.table.codes, other, fold, data.weight)
            model.loss_after(20)
            answers.append(model.answer(20))
        assert_array_equal(*answers)

    def test_categories_without_weight_take_no_products_away(self, rng):
        kind = ["a", "b"] * 40 + [f"k{j}" for j in range(40)]
        frame = pd.DataFrame({"x": rng.normal(size=120), "kind": kind})
        weight = np.repeat([1.0, 0.0], [80, 40])
        sample = sample_of(frame, rng.normal(size=120), cv=2)
        report = CentreStack().fit(replace(sample, weight=weight)).report_
        assert "products" in report

    def test_a_forest_out_of_fold_where_rows_may_not_be_parted(self, data):
        stack = CentreStack(out_of_bag=False).fit(data)
        assert "extra trees" in stack.report_
        assert not any(isinstance(f, Forest) for f in stack.fitted_.values())


@pytest.fixture(scope="module")
def stack(data):
    """A stack of all families, for what does not change it."""
    return CentreStack().fit(data)


class TestStack:
    def test_results_do_not_depend_on_the_number_of_jobs(self, data, stack):
        two = CentreStack(n_jobs=2, random_state=0).fit(data)
        assert stack.weights_ == two.weights_
        assert_array_equal(stack.oof_, two.oof_)
        assert_array_equal(stack.predict(data.table), two.predict(data.table))

    def test_the_report_names_every_family(self, stack):
        assert set(stack.report_) == {
            "boosting", "extra trees", "net", "net, strong decay", "net of ramps",
            "additive", "kernel", "lines", "straight lines", "few lines", "powers",
            "products", "smooth kernel",
        }  # fmt: skip
        assert min(stack.report_.values()) > 0.0
        assert set(stack.weights_) == set(stack.fitted_)
        assert min(stack.weights_.values()) >= 0.05
        # The smooth truth is for the smooth families.
        assert stack.report_["net"] < stack.report_["boosting"]

    def test_many_rows_screen_a_family_that_gains_nothing(self, rng):
        X = rng.normal(size=(4000, 2))
        y = X[:, 0] + 0.1 * rng.normal(size=4000)
        stack = CentreStack([LinearRegression(), Ridge(1e9)])
        with patch.object(Ridge, "fit", autospec=True, side_effect=Ridge.fit) as fit:
            stack.fit(sample_of(X, y))
        assert list(stack.weights_) == ["LinearRegression_0"]
        assert fit.call_count == 1
        assert stack.report_["Ridge_1"] > 0.9

    def test_only_a_skewed_positive_target_has_a_logarithm(self, rng):
        skewed = np.exp(rng.normal(size=200))
        assert is_skewed(skewed)
        assert not is_skewed(-skewed)
        assert not is_skewed(rng.uniform(1.0, 2.0, size=200))
        # Two clusters of different magnitude are not skewed.
        magnitudes = np.tile([10.0, 1e4], 100) * rng.uniform(1.0, 2.0, 200)
        assert np.mean((magnitudes - magnitudes.mean()) ** 3) < magnitudes.std() ** 3
        assert is_skewed(magnitudes)

    def test_the_logarithm_is_unbiased_on_the_whole(self, rng):
        X = rng.uniform(size=(600, 1))
        y = np.exp(2.0 * X[:, 0] + rng.normal(size=600))
        trees = BoostedTrees(logarithm=True, random_state=0, n_jobs=None)
        trees.fit(X, sample_of(X, y))
        # E exp(log y) = exp(mean + 1/2) for noise of unit variance.
        assert trees.factor_ == pytest.approx(np.exp(0.5), rel=0.25)
        assert trees.oof_ @ (y - trees.oof_) == pytest.approx(0.0, abs=1e-6 * y @ y)

    def test_weights_of_rows_reach_every_family(self):
        X = np.zeros((200, 1))
        y = np.repeat([0.0, 1.0], 100)
        w = np.repeat([1.0, 3.0], 100)
        for name, family in families().items():
            answer = family.fit(X, sample_of(X, y, w)).predict_each(X[:1]).mean()
            assert answer == pytest.approx(0.75, abs=0.05), name

    def test_gaps_and_categories(self, rng):
        n = 150
        X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(list("uvw"), n)})
        y = X["a"].to_numpy() + X["b"].map({"u": 0.0, "v": 3.0, "w": -3.0}).to_numpy()
        X.loc[::7, "a"] = np.nan
        X["b"] = X["b"].astype("category")
        X.loc[::11, "b"] = None
        sample = sample_of(X, y, cv=2)
        frame = Frame("standardize", CentreStack()).fit(sample)
        assert np.mean((frame.oof_center_ - y) ** 2) < 0.5 * y.var()
        new = X[:3].astype({"b": object})
        new["b"] = ["u", "never seen", None]
        center, scale = frame.locate(sample.table.reader.read(new))
        assert np.isfinite(center).all()
        assert (scale > 0.0).all()

    @pytest.mark.parametrize("case", ["constant y", "ten rows", "equal features"])
    def test_little_to_go_by(self, rng, case):
        n = 10 if case == "ten rows" else 60
        X = rng.normal(size=(n, 1)) * (case != "equal features")
        y = np.full(n, 2.5) if case == "constant y" else rng.normal(size=n)
        frame = Frame("standardize", CentreStack()).fit(sample_of(X, y, cv=5))
        center, scale = frame.locate(Table.of(X))
        for values in (frame.oof_coordinate_, center, scale):
            assert np.isfinite(values).all()
        if case == "constant y":
            assert_allclose(center, 2.5, atol=1e-6)


class TestSmallNets:
    def test_ramps_show_bends_that_columns_hide(self, rng):
        X = rng.uniform(-1.0, 1.0, size=(1500, 3))
        y = np.sin(25.0 * X[:, 0]) + X[:, 1]
        nets = (
            SmallNets(n_ramps=n).fit(X[:1000], y[:1000], np.ones(1000)) for n in (0, 10)
        )
        plain, bent = (net.predict(X[1000:]) - y[1000:] for net in nets)
        assert np.mean(bent**2) < 0.7 * np.mean(plain**2)

    def test_nets_of_a_logarithm_are_right_in_the_mean(self, rng):
        X, w = rng.uniform(-1.0, 1.0, size=(600, 2)), rng.uniform(0.5, 2.0, 600)
        y = np.exp(3.0 * X[:, 0] + 0.5 * rng.normal(size=600))
        net = NetsOfLogarithm().fit(X, y, w)
        said = net.predict(X)
        assert np.sum(w * said * (y - said)) == pytest.approx(0.0, abs=1e-6 * y.sum())
        plain = SmallNets().fit(X, y, w)
        new = rng.uniform(-1.0, 1.0, size=(500, 2))
        truth = np.exp(3.0 * new[:, 0] + 0.125)
        errors = [np.mean((m.predict(new) / truth - 1.0) ** 2) for m in (net, plain)]
        # On some processors the share is .2000.
        assert errors[0] < 0.25 * errors[1]

    def test_the_centre_of_a_skewed_positive_target_has_them(self, rng):
        X = rng.uniform(-1.0, 1.0, size=(150, 2))
        y = np.exp(3.0 * X[:, 0])
        stack = CentreStack().fit(sample_of(X, y, cv=3))
        of_log = {f"{name} of the logarithm" for name in ("boosting", "net")}
        assert of_log <= set(stack.report_)


class TestRamps:
    def test_equal_shares_passed_of_each_interval(self, rng):
        x = rng.normal(size=200)
        knots = np.quantile(x, [0.0, 0.25, 0.5, 0.75, 1.0])
        new = rng.normal(scale=2.0, size=50)
        ramps = Ramps.learn(x[:, None], 4).spread(new[:, None])
        for row, value in zip(ramps, new, strict=True):
            shares = [
                0.0 if value <= a else 1.0 if value >= b else (value - a) / (b - a)
                for a, b in pairwise(knots)
            ]
            assert_allclose(row, [value, *shares], rtol=1e-12)

    @pytest.mark.parametrize(
        ("X", "width"),
        [
            (np.array([[0.0, 5.0], [1.0, 5.0], [0.0, 5.0]]), 2),
            (np.repeat([0.0, 1.0, 7.0], [50, 1, 50])[:, None], 3),
            (np.random.default_rng(0).normal(size=(30, 400)), 800),
        ],
        ids=["two values are a line", "ties", "many columns"],
    )
    def test_fewer_ramps_where_few_are_enough(self, X, width):
        spread = Ramps.learn(X, 10).spread(X)
        assert spread.shape[1] == width
        assert_array_equal(spread[:, : X.shape[1]], X)


class TestDenseInputs:
    def test_numbers_are_centred_scaled_and_bent(self):
        x = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 1e9, np.nan])[:, None]
        inputs = DenseInputs.learn(x, []).transform(x)
        assert inputs.shape == (7, 2)
        z = (3.0 - 2.5) / 2.5
        assert inputs[3, 0] == pytest.approx(z / np.sqrt(1.0 + (z / 3.0) ** 2))
        assert inputs[5, 0] == pytest.approx(3.0)
        assert inputs[6].tolist() == [0.0, 1.0]

    @pytest.mark.parametrize("shape", ["bent", "logarithm"])
    def test_skewed_positive_columns_enter_by_their_logarithm(self, rng, shape):
        # 41 rows, so that quantiles of logarithms are logarithms of quantiles.
        x = np.exp(rng.normal(size=(42, 3)))
        x[:, 1] -= 5.0
        x[0] = np.nan
        codes = np.column_stack([x, rng.integers(1, 4, 42)])
        inputs, logs = DenseInputs.learn(codes, [3]), codes.copy()
        logs[:, [0, 2]] = np.log(x[:, [0, 2]])
        want = "bent" if shape == "bent" else "straight"
        expected = DenseInputs.learn(logs, [3]).transform(logs, want)
        assert_allclose(inputs.transform(codes, shape), expected, atol=1e-12)
        # What is not positive in new rows counts as the least of training.
        codes[1, [0, 2]], codes[2, [0, 2]] = -1.0, np.nanmin(x[:, [0, 2]], axis=0)
        new = inputs.transform(codes, shape)[1:3, [0, 2]]
        assert_array_equal(new[0], new[1])

    def test_even_columns_are_bent_as_they_are(self, rng):
        x = rng.uniform(1.0, 9.0, size=(100, 2))
        x[:, 1] = 10.0 - x[:, 0]
        inputs = DenseInputs.learn(x, [])
        bent, powers = inputs.transform(x), inputs.transform(x, "logarithm")
        assert_allclose(bent[:, 0], -bent[:, 1], atol=1e-12)
        assert not np.allclose(powers[:, 0], -powers[:, 1], atol=0.1)

    def test_few_categories_are_indicators(self):
        codes = np.array([0.0, 2.0, np.nan, 2.0])[:, None]
        inputs = DenseInputs.learn(codes, [0])
        want = [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 0, 1]]
        assert_array_equal(inputs.transform(codes), want)

    def test_of_many_categories_the_frequent_ones(self):
        codes = np.concatenate([np.repeat(np.arange(40), 2), np.full(20, 39)])
        codes = codes.astype(float)[:, None]
        inputs = DenseInputs.learn(codes, [0]).transform(codes)
        assert inputs.shape == (100, 33)
        assert inputs[-1].sum() == pytest.approx(1.0 + np.log(22 * 40 / 100))
        assert inputs[78, -1] == inputs[-1, -1]


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    # Ties on cuts, and numbers that single precision does not tell apart.
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] += 1e6
    y = X[:, 0] + X[:, 1] ** 2 + 0.1 * rng.normal(size=300)
    forest = Forest(random_state=0, n_jobs=2)
    plain = clone(forest.make(300)).fit(X, y, sample_weight=np.ones(300))
    return forest.fit(X, sample_of(X, y)), plain, X


def test_rows_find_the_leaves_of_the_plain_forest(fitted):
    forest, plain, X = fitted
    cuts = np.tile(plain.estimators_[0].tree_.threshold[:, None], 4)
    rows = np.concatenate([X, cuts, np.nextafter(cuts, -np.inf)])
    assert_array_equal(forest.model_.apply(rows), plain.apply(rows))


def test_rows_of_other_columns_are_refused(fitted):
    forest, _, X = fitted
    with pytest.raises(ValueError, match="`X` must have 4 columns, got 3"):
        forest.predict_each(X[:, :3])


def test_means_are_near_those_of_scikit_learn(rng):
    codes = rng.integers(0, 8, size=(400, 1)).astype(float)
    y = 2.0 * rng.normal(size=8)[codes[:, 0].astype(int)] + rng.normal(size=400)
    ours = TargetCodes({0: 8}, 0).fit(codes, y, np.ones(400)).transform(codes)
    theirs = TargetEncoder(target_type="continuous").fit(codes, y).transform(codes)
    assert_allclose(ours, theirs, atol=0.05)


def test_weights_are_repetitions_and_gaps_are_a_category(rng):
    gaps = rng.uniform(size=(60, 1)) < 0.2
    codes = np.where(gaps, np.nan, rng.integers(0, 4, (60, 1)))
    y, weight = rng.normal(size=60), rng.integers(0, 4, 60)
    new = np.array([[0.0], [3.0], [4.0], [np.nan]])
    each = np.repeat(np.arange(60), weight)
    told, copied = (
        TargetCodes({0: 5}, 0).fit(codes[rows], y[rows], w).transform(new)
        for rows, w in ((slice(None), weight * 1.0), (each, np.ones(len(each))))
    )
    assert_allclose(told, copied, rtol=1e-9)
    # A value without rows is told as the mean of all.
    assert told[2, 0] == pytest.approx(np.average(y, weights=weight))


def test_values_of_one_row_each_tell_nothing_of_others():
    codes, y = np.arange(5.0)[:, None], np.arange(5.0)
    told = TargetCodes({0: 6}, 0).fit(codes, y, np.ones(5))
    assert_allclose(told.transform(np.array([[3.0], [5.0]]))[:, 0], [3.0, 2.0])


def test_rows_of_training_do_not_know_themselves(rng):
    # A value for every two rows: the mean of both would tell half of y.
    codes, y = np.repeat(np.arange(200.0), 2)[:, None], rng.normal(size=400)
    told = TargetCodes({0: 200}, 0).fit_transform(codes, y, np.ones(400))
    assert abs(np.corrcoef(told[:, 0], y)[0, 1]) < 0.15
    assert_array_equal(codes, np.repeat(np.arange(200.0), 2)[:, None])


@pytest.fixture
def towns(rng):
    """Return rows of forty towns in no order, of which each has a level of its own."""
    town, x = rng.integers(0, 40, 240), rng.normal(size=240)
    frame = pd.DataFrame({"x": x, "town": [f"t{k}" for k in town]})
    return frame, 3.0 * rng.normal(size=40)[town] + x + 0.3 * rng.normal(size=240)


def test_the_centre_takes_them_where_they_help(towns):
    frame, y = towns
    stack = CentreStack().fit(sample_of(frame, y, cv=3))
    assert stack.report_["boosting of means"] < stack.report_["boosting"]
    plain = sample_of(frame[["x"]][:60], y[:60], cv=2)
    assert "boosting of means" not in CentreStack().fit(plain).report_
