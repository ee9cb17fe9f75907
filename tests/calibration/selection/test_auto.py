"""`AutoCalibrator`: what it chooses, and when it leaves scores alone."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibration import log_loss
from calibration.exceptions import CalibrationWarning
from calibration.logistic.polynomial import BetaCalibrator, PlattCalibrator
from calibration.monotone.isotonic import IsotonicCalibrator
from calibration.selection.auto import AutoCalibrator
from calibration.selection.trials import read_log_odds

SMALL = ["identity", "temperature", "platt", "quadratic", "elite", "venn_abers"]
LARGE = [*SMALL[:3], "beta", "quadratic", "piecewise", "elite", "venn_abers"]


def draw(rng, n, truth):
    """Log-odds and labels whose log-odds are truth(x)."""
    x = rng.normal(scale=1.5, size=n)
    return x, (rng.uniform(size=n) < expit(truth(x))).astype(int)


def test_calibrated_scores_are_left_as_they_are(rng):
    scores = rng.uniform(size=2000)
    y = rng.uniform(size=2000) < scores
    auto = AutoCalibrator().fit(scores, y)
    assert auto.report_.chosen == ("identity",)
    assert not auto.report_.accepted
    bound = 1.0 / 4001.0**2
    expected = expit(np.clip(logit(scores), logit(bound), -logit(bound)))
    np.testing.assert_allclose(auto.predict(scores), expected, rtol=1e-6)


def test_order_of_the_least_probabilities_is_kept(rng):
    x = rng.uniform(-500.0, -400.0, size=800)
    y = rng.uniform(size=800) < expit((x + 450.0) / 5.0)
    p = AutoCalibrator().fit(np.exp(x), y).predict(np.exp([-490.0, -450.0, -410.0]))
    np.testing.assert_allclose(p, [0.0, 0.5, 1.0], atol=0.1)


def test_doing_nothing_ends_where_no_row_could_tell():
    y = np.arange(20) % 2
    auto = AutoCalibrator().fit(np.where(y, 1.0 - 1e-12, 1e-12), y)
    assert auto.report_.chosen == ("identity",)
    np.testing.assert_allclose(auto.predict_log_odds([1e-12]), -2.0 * np.log(41.0))


def test_calibrated_scores_are_changed_no_more_often_than_max_harm_allows(rng):
    fits = []
    for _ in range(60):
        x, y = draw(rng, 200, lambda x: x)
        fits.append(AutoCalibrator(scale="logit").fit(x, y).report_.accepted)
    assert np.mean(fits) <= 0.2


def test_lowers_the_log_loss_of_new_rows(rng):
    x, y = draw(rng, 3000, lambda x: 2.0 * np.tanh(x) - 0.5)
    auto = AutoCalibrator(scale="logit").fit(x, y)
    new, y_new = draw(rng, 20_000, lambda x: 2.0 * np.tanh(x) - 0.5)
    best = log_loss(y_new, expit(2.0 * np.tanh(new) - 0.5))
    assert log_loss(y_new, auto.predict(new)) < best + 0.003
    assert log_loss(y_new, expit(new)) > best + 0.02


def test_a_step_needs_more_than_curves(rng):
    x, y = draw(rng, 20_000, lambda x: 2.0 * np.sign(np.sin(2.0 * x)) + x)
    auto = AutoCalibrator(scale="logit").fit(x, y)
    assert "venn_abers" in auto.report_.chosen
    proposal = auto.report_.proposal.log_loss
    assert proposal <= min(one.log_loss for one in auto.report_.candidates.values())


def test_the_answer_is_the_weighted_sum_of_its_parts(rng):
    x, y = draw(rng, 1500, lambda x: 0.3 * x**3)
    auto = AutoCalibrator(scale="logit").fit(x, y)
    assert len(auto.weights_) == len(auto.calibrators_) > 1
    assert (auto.weights_ > 0.0).all()
    total = sum(
        weight * read_log_odds(one, x, 1500.0)
        for weight, one in zip(auto.weights_, auto.calibrators_.values(), strict=True)
    )
    bound = logit(1 - 1 / (2 * 1500 + 2))
    np.testing.assert_allclose(
        auto.predict_log_odds(x), np.clip(total, -bound, bound), rtol=1e-9, atol=1e-12
    )
    for name, one in auto.report_.candidates.items():
        assert (one.weight > 0.0) == (name in auto.calibrators_)


def test_max_harm_decides(rng):
    x, y = draw(rng, 300, lambda x: 0.3 * x)
    assert AutoCalibrator(scale="logit").fit(x, y).report_.accepted
    never = AutoCalibrator(scale="logit", max_harm=0.0).fit(x, y)
    assert never.report_.chosen == ("identity",)
    x, y = draw(rng, 300, lambda x: x)
    always = AutoCalibrator(scale="logit", max_harm=1.0).fit(x, y)
    assert always.report_.accepted
    assert always.report_.proposal.probability_of_harm > 0.1


def test_the_menu_grows_with_the_sum_of_weights(rng):
    x, y = draw(rng, 500, lambda x: x)
    few = AutoCalibrator(scale="logit").fit(x, y)
    assert list(few.report_.candidates) == SMALL
    more = AutoCalibrator(scale="logit").fit(x, y, np.full(500, 2.0))
    assert list(more.report_.candidates) == LARGE


def test_real_scores_have_platt_for_a_reference(rng):
    x, y = draw(rng, 1200, lambda x: 2 * x + 1)
    auto = AutoCalibrator(scale="real").fit(100 * x, y)
    known = ["platt", "quadratic", "piecewise", "elite", "venn_abers"]
    assert list(auto.report_.candidates) == known
    assert auto.report_.reference == "platt"
    assert auto.report_.candidates["platt"].probability_of_harm == 0.0
    platt = PlattCalibrator(scale="real").fit(100 * x, y)
    if not auto.report_.accepted:
        np.testing.assert_allclose(auto.predict(100 * x), platt.predict(100 * x))


def test_candidates_of_the_user(rng):
    x, y = draw(rng, 1000, lambda x: 0.5 * x + 1)
    mine = {"PAV": IsotonicCalibrator(), "line": PlattCalibrator(scale="real")}
    auto = AutoCalibrator(mine, scale="logit").fit(x, y)
    assert list(auto.report_.candidates) == ["identity", "PAV", "line"]
    assert mine["line"].scale == "real"
    assert not hasattr(mine["line"], "coef_")
    real = AutoCalibrator(mine, scale="real").fit(x, y)
    assert real.report_.reference == "PAV"


def test_exact_zeros_and_ones_have_a_finite_loss(rng):
    scores = np.round(rng.uniform(size=1000), 1)
    y = rng.uniform(size=1000) < 0.1 + 0.8 * scores
    auto = AutoCalibrator().fit(scores, y)
    assert np.isfinite(auto.report_.candidates["identity"].log_loss)
    p = auto.predict([0.0, 1.0])
    np.testing.assert_allclose(p, [0.1, 0.9], atol=0.06)


def test_rows_too_few_to_hold_out_are_left_alone():
    auto = AutoCalibrator().fit([0.2, 0.9], [0, 1])
    np.testing.assert_allclose(auto.predict([0.2, 0.5]), [0.2, 0.5])
    assert auto.report_.chosen == ("identity",)
    assert np.isnan(auto.report_.proposal.log_loss)
    assert "nan" in str(auto.report_)


def test_probabilities_closer_than_log_odds_can_tell_are_one_score():
    tiny = AutoCalibrator().fit([5e-324, 1e-323, 1e-310], [0, 1, 1])
    np.testing.assert_allclose(tiny.predict([0.0, 0.5]), 0.6)
    assert not hasattr(tiny, "report_")


def test_one_class_has_no_report_even_after_a_refit(rng):
    auto = AutoCalibrator(scale="logit").fit(*draw(rng, 100, lambda x: x))
    with pytest.warns(CalibrationWarning, match="class 1 only"):
        auto.fit([0.0, 1.0], [1, 1])
    assert not hasattr(auto, "report_")
    assert not hasattr(auto, "calibrators_")


def test_report_is_a_table(rng):
    x, y = draw(rng, 400, lambda x: 0.4 * x + 1)
    report = AutoCalibrator(scale="logit").fit(x, y).report_
    lines = str(report).splitlines()
    assert lines[0].split() == ["held-out", "log", "loss", "error", "P(harm)", "weight"]
    assert [line.split()[0] for line in lines[1:7]] == SMALL
    assert lines[7].startswith("the pool, taken")
    assert lines[8] == "harm against identity"
    platt = report.candidates["platt"]
    assert f"{platt.log_loss:.4f}" in lines[3]
    assert f"{platt.probability_of_harm:.3f}" in lines[3]


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"candidates": {}}, ValueError, "`candidates` must hold at least one"),
        ({"candidates": [1]}, TypeError, r"must be a mapping of names .* got \[1\]"),
        (
            {"candidates": {"identity": PlattCalibrator()}},
            ValueError,
            "is the name of doing nothing, got PlattCalibrator",
        ),
        (
            {"candidates": {"beta": BetaCalibrator()}, "scale": "real"},
            ValueError,
            "the method needs probabilities or log-odds",
        ),
    ],
)
def test_bad_arguments_are_named(parameters, error, match):
    with pytest.raises(error, match=match):
        AutoCalibrator(**parameters).fit([0.1, 0.4, 0.6, 0.8], [0, 1, 0, 1])
