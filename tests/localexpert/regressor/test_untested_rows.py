"""Folds that leave rows untested, in time above all: who learns from whom."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import PredefinedSplit, TimeSeriesSplit

from calibration import PlattCalibrator
from localexpert import (
    DistributionAdapter,
    DistributionEnsemble,
    LocalExpertRegressor,
    crps_score,
)
from localexpert.experts.calibration import ExpertCalibration
from localexpert.recalibration.pit import PitRecalibration
from localexpert.reporting.scores import recall_training
from tests.forecasts import normal

N = 180
# Six blocks of 30: the first is never tested.
SPLITTER = TimeSeriesSplit(5)
QUICK = {"n_thresholds": 5, "calibrator": None, "random_state": 0}


@pytest.fixture
def series(rng):
    """A series that drifts: the first column is time."""
    X = np.column_stack([np.arange(N), rng.normal(size=N)])
    return X, 0.05 * X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=N)


def check_oof(model, rows):
    n = len(rows)
    assert_array_equal(model.fitted_rows_, rows)
    assert len(model.oof_distribution_) == len(model.oof_prediction_) == n
    assert np.isfinite(model.oof_prediction_).all()
    assert np.isfinite(model.oof_distribution_.quantiles([0.1, 0.9])).all()


class TestWhoLearnsFromWhom:
    def test_in_a_frame(self, series, monkeypatch):
        X, y = series
        centres, experts = [], []
        for kind, times in ((LinearRegression, centres), (LogisticRegression, experts)):

            def note(self, X, y, times=times, fit=kind.fit):
                times.append(X[:, 0])
                return fit(self, X, y)

            monkeypatch.setattr(kind, "fit", note)
        given = {"center": LinearRegression(), "frame": "standardize", "cv": SPLITTER}
        model = LocalExpertRegressor(LogisticRegression(), **given, **QUICK).fit(X, y)
        # Experts need rows with a centre, so the second block is not judged.
        check_oof(model, np.arange(60, N))
        assert model.oof_probabilities_.shape == (120, 5)
        assert sorted({t.max() for t in centres}) == [29, 59, 89, 119, 149]
        assert sorted({t.max() for t in experts}) == [59, 89, 119, 149]
        assert min(t.min() for t in experts) == 30.0

    def test_no_forecast_out_of_fold_knows_of_later_drift(self, series):
        X, y = series
        expert = LogisticRegression()
        model = LocalExpertRegressor(expert, frame=None, cv=SPLITTER, **QUICK)
        before = model.fit(X, y).oof_probabilities_
        cuts = model.thresholds_
        jumped = np.where(np.arange(N) < 120, y, y + 40.0)
        model.set_params(thresholds=cuts)
        # The last two blocks change the forecasts of the last only.
        assert_array_equal(model.fit(X, y).oof_probabilities_, before)
        after = model.fit(X, jumped).oof_probabilities_
        assert_array_equal(after[:120], before[:120])
        assert np.abs(after[120:] - before[120:]).max() > 0.1

    def test_a_whole_model_of_the_default_kind(self, series):
        X, y = series
        given = {"stacker": "auto", "recalibrate": "pit", "random_state": 0}
        model = LocalExpertRegressor(n_thresholds=7, cv=SPLITTER, **given).fit(X, y)
        check_oof(model, np.arange(60, N))
        # Trees know nothing of a trend, the rest of the centre does.
        assert crps_score(y[60:], model.oof_distribution_) < 0.7
        training = recall_training(model)
        assert_allclose(training.y, y[60:], rtol=1e-9)
        assert model.expert_report_.accuracy.shape == (7, 4)
        assert list(model.oof_features().index) == list(range(60, N))


class TestRoads:
    def test_one_part_held_out(self, series):
        X, y = series
        cv = PredefinedSplit(np.where(np.arange(N) < 120, -1, 0))
        model = LocalExpertRegressor(strategy="joint", cv=cv, **QUICK).fit(X, y)
        check_oof(model, np.arange(120, N))
        assert model.report_.summary()["frame"] == {"kind": None}
        with pytest.raises(ValueError, match=r"`frame` must be None .* got 'center'"):
            model.set_params(frame="center").fit(X, y)
        model.set_params(frame=None, stacker=LinearRegression())
        with pytest.raises(ValueError, match="`stacker` must be None where no fold"):
            model.fit(X, y)

    def test_a_transformer_describes_all_rows_or_none(self, series):
        X, y = series
        model = LocalExpertRegressor(frame=None, strategy="joint", cv=SPLITTER, **QUICK)
        with pytest.raises(ValueError, match=r"`cv` must test every row .* got 30"):
            model.fit_transform(X, y)
        assert model.untested_rows_.tolist() == list(range(30))
        assert len(model.set_params(cv=3).fit_transform(X, y)) == N
        assert len(model.untested_rows_) == 0


class TestCorrections:
    def test_calibrators_know_earlier_folds_only(self, rng):
        p = rng.uniform(size=(90, 1))
        below = rng.uniform(size=(90, 1)) < p**3
        fold, known = np.repeat([0, 1, 2], 30), [[], [0], [0, 1]]
        stage = ExpertCalibration(PlattCalibrator())
        ours = stage.fit(p, below, fold, known=known).calibrated_
        assert_array_equal(ours[:30], p[:30])
        for k in (1, 2):
            rest = fold < k
            alone = PlattCalibrator().fit(p[rest, 0], below[rest, 0])
            assert_allclose(ours[fold == k, 0], alone.predict(p[fold == k, 0]))

    def test_so_does_recalibration(self, rng):
        n = 600
        y = 3.0 * rng.normal(size=n)
        dist = normal(np.zeros(n))
        blocks = np.split(np.arange(n), 3)
        empty = np.empty(0, np.intp)
        folds = [(empty, blocks[0]), (blocks[0], blocks[1])]
        folds += [(np.arange(400), blocks[2])]
        stage = PitRecalibration(random_state=0).fit(dist, y, folds=folds)
        told = stage.apply_oof(dist)
        assert_allclose(told.std()[:200], 1.0, rtol=1e-3)
        assert told.std()[200:].min() > 1.5


class TestOthers:
    def test_an_adapter_forecasts_from_the_past_alone(self, series):
        X, y = series
        quick = LocalExpertRegressor(frame=None, strategy="joint", cv=3, **QUICK)
        plain = DistributionAdapter(quick, cv=SPLITTER, random_state=0).fit(X, y)
        # Forests know no trend: the past lies below what comes.
        assert (plain.oof_prediction_ < y[30:]).mean() > 0.7
        first = quick.fit(X[:30], y[:30]).predict_dist(X[30:60])
        assert_allclose(plain.oof_prediction_[:30], first.mean())

    def test_an_ensemble_takes_the_rows_in_common(self, series):
        X, y = series
        common = {"cv": SPLITTER, "strategy": "joint", "center": LinearRegression()}
        members = [
            (str(frame), LocalExpertRegressor(frame=frame, **common, **QUICK))
            for frame in (None, "center")
        ]
        members.append(("whole", LocalExpertRegressor(frame=None, cv=3, **QUICK)))
        model = DistributionEnsemble(members, random_state=0).fit(X, y)
        assert_array_equal(model.fitted_rows_, np.arange(60, N))
        assert len(model.oof_distribution_) == 120
        own = model.members_["None"].oof_distribution_[30:].crps(y[60:]).mean()
        assert model.losses_["None"] == pytest.approx(own, rel=1e-6)
        assert model.weights_["None"] < 0.3
