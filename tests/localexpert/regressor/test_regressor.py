"""LocalExpertRegressor end to end: targets of every kind, honesty, notebooks."""

import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_validate

from calibration import CalibrationWarning
from localexpert import LocalExpertRegressor, crps_score, interval_coverage
from tests.regressors import fast


def draw(n):
    """Heteroscedastic and skewed: y = 3 x0 + (.2 + x1) * (gamma noise)."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 3))
    noise = rng.gamma(4.0, size=n) / 2.0 - 2.0
    return X, 3.0 * X[:, 0] + (0.2 + X[:, 1]) * noise


@pytest.fixture
def data():
    return draw(600)


def test_forecasts_are_sharp_and_cover_what_they_say():
    X, y = draw(900)
    model = LocalExpertRegressor(random_state=0).fit(X[:600], y[:600])
    dist, train = model.predict_dist(X[600:]), y[:600]
    climate = np.abs(y[600:, None] - train).mean()
    climate -= np.abs(train[:, None] - train).mean() / 2
    assert crps_score(y[600:], dist) < 0.75 * climate
    assert np.corrcoef(dist.std(), X[600:, 1])[0, 1] > 0.7
    assert interval_coverage(y[600:], dist) == pytest.approx(0.9, abs=0.05)
    out_of_fold = interval_coverage(train, model.oof_distribution_)
    assert out_of_fold == pytest.approx(0.9, abs=0.05)


def test_report_says_what_was_chosen(data):
    model = LocalExpertRegressor(random_state=0).fit(*data)
    choices = model.report_.summary()
    assert choices["target"] == "continuous"
    assert sum(choices["frame"]["weights"].values()) == pytest.approx(1.0)
    assert sum(choices["experts"]["weights"].values()) == pytest.approx(1.0)
    assert len(model.expert_report_.auc) == len(model.thresholds_) == 25
    assert model.oof_probabilities_.shape == (600, 25)


def test_groups_do_not_leak_through_forests(rng):
    """Copies of a row share a group: out of bag its own copy would predict it."""
    X = np.repeat(rng.uniform(size=(80, 2)), 5, axis=0)
    y = np.repeat(rng.normal(size=80), 5) + 1e-3 * rng.normal(size=400)
    model = fast(center="stack", strategy="joint", cv=2)
    model.fit(X, y, groups=np.repeat(np.arange(80), 5))
    climate = np.abs(y[:, None] - y).mean() / 2
    assert crps_score(y, model.oof_distribution_) > 0.9 * climate


def test_weights_and_groups_are_routed(data):
    X, y = data
    weight, groups = np.where(np.arange(600) % 3, 1.0, 0.0), np.arange(600) // 6
    y[weight == 0.0] = 100.0
    with config_context(enable_metadata_routing=True):
        model = fast(cv=GroupKFold(3))
        model.set_fit_request(sample_weight=True, groups=True)
        model.set_score_request(sample_weight=True)
        given = {"params": {"sample_weight": weight, "groups": groups}}
        given |= {"cv": GroupKFold(2), "return_estimator": True}
        found = cross_validate(model, X, y, **given)
    # Neither fitted nor scored on rows without weight.
    assert found["test_score"].min() > 0.3
    for one in found["estimator"]:
        for _, test in one.forecaster_.tasks_.folds:
            assert len(test) % 6 == 0


def test_constant_target_is_forecast_with_a_warning(data, reload):
    X, model = np.arange(20.0)[:, None], fast().fit(*data)
    with pytest.warns(CalibrationWarning, match="`y` is 3 in every row"):
        model.fit(X, np.full(20, 3.0))
    # Nothing is left of the fit before.
    assert not {"check_", "report_", "thresholds_"} & vars(model).keys()
    model = reload(model)
    assert model.predict(X[:2]).tolist() == [3.0, 3.0]
    assert model.predict_dist(X).std().max() == 0.0
    values, p = model.expert_points(X[:3])
    assert (values.tolist(), p.tolist()) == ([[3.0]] * 3, [[1.0]] * 3)
    assert len(model.oof_distribution_) == len(model.fitted_rows_) == 20


@pytest.mark.parametrize("n", [2, 3, 6])
def test_a_handful_of_rows(data, n):
    X, y = data
    dist = LocalExpertRegressor(random_state=0).fit(X[:n], y[:n]).predict_dist(X)
    assert np.isfinite(dist.crps(y)).all()
    assert np.isfinite(dist.log_score(y)).all()


def test_conformal_rows_have_no_part_in_the_fit(data):
    X, y = data
    model = fast(recalibrate="conformal").fit(X, y)
    aside = np.setdiff1d(np.arange(600), model.fitted_rows_)
    assert len(aside) == 120
    moved = y.copy()
    moved[aside] += 1.0
    other = fast(recalibrate="conformal").fit(X, moved)
    table = model.reader_.read(X)
    laws = (one.forecaster_.law(table) for one in (model, other))
    np.testing.assert_array_equal(*(law.cdf(y[:, None]) for law in laws))
    assert other.predict(X).mean() > model.predict(X).mean() + 0.3


def test_regressors_show_what_was_chosen(rng):
    X = pd.DataFrame({"<b>&": rng.uniform(size=60)})
    y = X["<b>&"] + rng.normal(size=60)
    model = LocalExpertRegressor(effort="quick", monotone={"<b>&": 1}, cv=2)
    assert "Chosen by fit" not in model._repr_mimebundle_()["text/html"]
    page = model.fit(X, y)._repr_mimebundle_()["text/html"]
    (chosen,) = re.findall("<table><caption>Chosen by fit</caption>.*$", page)
    cells = list(ElementTree.fromstring(chosen).itertext())
    assert {"target", "continuous", "<b>& +1", *model.report_.choices} <= set(cells)
    for line in str(model.report_).splitlines():
        assert line.split(maxsplit=1)[1] in cells
