"""`AutoCalibrator` on scores and on tables; calibrators by name."""

import numpy as np
import pytest
from scipy.special import expit, logit

from calibration import (
    AutoCalibrator,
    CalibrationWarning,
    HistogramCalibrator,
    IsotonicCalibrator,
    OneVsRestCalibrator,
    PlattCalibrator,
    ScoreCalibrator,
    ShallowNetCalibrator,
    SoftmaxCalibrator,
    calibrator_names,
    log_loss,
    make_calibrator,
)
from calibration.selection.auto import _menu_of_tables
from calibration.selection.trials import read_log_odds, read_logs
from tests.calibration.multiclass.draws import check_simplex, draw

SMALL = ["identity", "temperature", "platt", "quadratic", "elite", "venn_abers"]
LARGE = [*SMALL[:3], "beta", "quadratic", "piecewise", "elite", "venn_abers"]


def draw_scores(rng, n, truth):
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
        x, y = draw_scores(rng, 200, lambda x: x)
        fits.append(AutoCalibrator(scale="logit").fit(x, y).report_.accepted)
    assert np.mean(fits) <= 0.2


def test_lowers_the_log_loss_of_new_rows(rng):
    x, y = draw_scores(rng, 3000, lambda x: 2.0 * np.tanh(x) - 0.5)
    auto = AutoCalibrator(scale="logit").fit(x, y)
    new, y_new = draw_scores(rng, 20_000, lambda x: 2.0 * np.tanh(x) - 0.5)
    best = log_loss(y_new, expit(2.0 * np.tanh(new) - 0.5))
    assert log_loss(y_new, auto.predict(new)) < best + 0.003
    assert log_loss(y_new, expit(new)) > best + 0.02


def test_the_answer_is_the_weighted_sum_of_its_parts(rng):
    x, y = draw_scores(rng, 1500, lambda x: 0.3 * x**3)
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
    x, y = draw_scores(rng, 300, lambda x: 0.3 * x)
    assert AutoCalibrator(scale="logit").fit(x, y).report_.accepted
    never = AutoCalibrator(scale="logit", max_harm=0.0).fit(x, y)
    assert never.report_.chosen == ("identity",)
    x, y = draw_scores(rng, 300, lambda x: x)
    always = AutoCalibrator(scale="logit", max_harm=1.0).fit(x, y)
    assert always.report_.accepted
    assert always.report_.proposal.probability_of_harm > 0.1


def test_the_menu_grows_with_the_sum_of_weights(rng):
    x, y = draw_scores(rng, 500, lambda x: x)
    few = AutoCalibrator(scale="logit").fit(x, y)
    assert list(few.report_.candidates) == SMALL
    more = AutoCalibrator(scale="logit").fit(x, y, np.full(500, 2.0))
    assert list(more.report_.candidates) == LARGE


def test_real_scores_have_platt_for_a_reference(rng):
    x, y = draw_scores(rng, 1200, lambda x: 2 * x + 1)
    auto = AutoCalibrator(scale="real").fit(100 * x, y)
    known = ["platt", "quadratic", "piecewise", "elite", "venn_abers"]
    assert list(auto.report_.candidates) == known
    assert auto.report_.reference == "platt"
    assert auto.report_.candidates["platt"].probability_of_harm == 0.0
    platt = PlattCalibrator(scale="real").fit(100 * x, y)
    if not auto.report_.accepted:
        np.testing.assert_allclose(auto.predict(100 * x), platt.predict(100 * x))


def test_candidates_of_the_user(rng):
    x, y = draw_scores(rng, 1000, lambda x: 0.5 * x + 1)
    mine = {"PAV": IsotonicCalibrator(), "line": PlattCalibrator(scale="real")}
    auto = AutoCalibrator(mine, scale="logit").fit(x, y)
    assert list(auto.report_.candidates) == ["identity", "PAV", "line"]
    assert mine["line"].scale == "real"
    assert not hasattr(mine["line"], "coef_")
    real = AutoCalibrator(mine, scale="real").fit(x, y)
    assert real.report_.reference == "PAV"


def test_rows_too_few_to_hold_out_are_left_alone():
    auto = AutoCalibrator().fit([0.2, 0.9], [0, 1])
    np.testing.assert_allclose(auto.predict([0.2, 0.5]), [0.2, 0.5])
    assert auto.report_.chosen == ("identity",)
    assert np.isnan(auto.report_.proposal.log_loss)
    assert "nan" in str(auto.report_)


def test_one_class_has_no_report_even_after_a_refit(rng):
    auto = AutoCalibrator(scale="logit").fit(*draw_scores(rng, 100, lambda x: x))
    with pytest.warns(CalibrationWarning, match="class 1 only"):
        auto.fit([0.0, 1.0], [1, 1])
    assert not hasattr(auto, "report_")
    assert not hasattr(auto, "calibrators_")


def test_report_is_a_table(rng):
    x, y = draw_scores(rng, 400, lambda x: 0.4 * x + 1)
    report = AutoCalibrator(scale="logit").fit(x, y).report_
    lines = str(report).splitlines()
    assert lines[0].split() == ["held-out", "log", "loss", "error", "P(harm)", "weight"]
    assert [line.split()[0] for line in lines[1:7]] == SMALL
    assert lines[7].startswith("the pool, taken")
    assert lines[8] == "harm against identity"
    platt = report.candidates["platt"]
    assert f"{platt.log_loss:.4f}" in lines[3]
    assert f"{platt.probability_of_harm:.3f}" in lines[3]


FEW = {
    "temperature": SoftmaxCalibrator("temperature"),
    "matrix": SoftmaxCalibrator(penalty=0.1),
    "quadratic": OneVsRestCalibrator("quadratic"),
}


def test_calibrated_tables_are_left_as_they_are(rng):
    p, y = draw(rng, 1500, 3, 1.0)
    auto = AutoCalibrator(FEW).fit(p, y)
    assert auto.report_.chosen == ("identity",)
    assert not auto.report_.accepted
    np.testing.assert_allclose(auto.predict(p), p, rtol=1e-9)


def test_wrong_scores_are_set_right(rng):
    p, y = draw(rng, 1000, 3, 3.0)
    new, labels = draw(rng, 2000, 3, 3.0)
    auto = AutoCalibrator(FEW).fit(p, y)
    assert auto.report_.accepted
    assert auto.report_.proposal.probability_of_harm < 0.01
    best = SoftmaxCalibrator("temperature").fit(p, y).predict(new)
    found = auto.predict(new)
    check_simplex(found, new.shape)
    assert log_loss(labels, found) < log_loss(labels, best) + 0.01
    assert log_loss(labels, found) < log_loss(labels, new) - 0.1


def test_the_answer_is_the_pool_of_what_was_fitted(rng):
    p, y = draw(rng, 400)
    auto = AutoCalibrator(candidates=FEW).fit(p, y)
    assert len(auto.weights_) == len(auto.calibrators_) == len(auto.report_.chosen)
    pooled = sum(
        weight * read_logs(one, p, 400.0).T
        for weight, one in zip(auto.weights_, auto.calibrators_.values(), strict=True)
    )
    expected = np.exp(pooled) / np.exp(pooled).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(auto.predict(p), expected, rtol=1e-9)
    for name, one in auto.calibrators_.items():
        if name != "identity":
            alone = FEW[name].fit(p, y).predict(p)
            np.testing.assert_allclose(one.predict(p), alone, rtol=1e-9)
    assert "quadratic" in str(auto.report_)


def test_a_pool_of_nothing_is_the_uniform_law():
    y = np.arange(60) % 3
    z = -10.0 * np.eye(3)[y]
    auto = AutoCalibrator({"one": SoftmaxCalibrator("temperature")}, scale="logit")
    auto.fit(z, y)
    assert auto.report_.chosen == ()
    np.testing.assert_allclose(auto.predict(z), 1.0 / 3.0)


def test_zeros_that_happen_do_not_stand(rng):
    p, y = draw(rng, 600, 3, 1.0)
    hard = np.round(p)
    hard[hard.sum(axis=1) != 1.0] = [1.0, 0.0, 0.0]
    auto = AutoCalibrator(candidates=FEW).fit(hard, y)
    assert auto.report_.accepted
    assert (auto.predict(hard) > 0.01).all()


def test_the_menu_of_tables_has_no_matrix_of_very_many_classes(rng):
    small, large = (_menu_of_tables(k, 1) for k in (150, 151))
    matrices = [f"matrix {one}" for one in ("1", "0.3", "0.1", "0.03", "0.01", "0.003")]
    dropped = [name for name in small if name not in large]
    assert dropped == [*matrices, "shallow_net"]
    p, y = draw(rng, 120, 3)
    auto = AutoCalibrator().fit(p, y)
    assert list(auto.report_.candidates) == ["identity", *small]
    assert small["shallow_net"].random_state == 1


def test_candidates_without_hope_are_given_up(rng):
    fits = []

    class Spy(OneVsRestCalibrator):
        def fit_rows(self, data):
            fits.append(data.n)
            return super().fit_rows(data)

    p, y = draw(rng, 2000, 3, 4.0)
    bad = Spy(HistogramCalibrator(2))
    auto = AutoCalibrator(candidates={"bad": bad, "good": FEW["temperature"]})
    found = auto.fit(p, y).report_.candidates
    assert fits == [1600.0]
    assert found["bad"].weight == 0.0
    assert found["bad"].log_loss > found["good"].log_loss


@pytest.mark.parametrize("shape", ["scores", "table"])
def test_progress_shows_where_it_is_asked_for(shape, rng, capsys):
    p, y = draw(rng, 60, 2)
    scores = p if shape == "table" else p[:, 1]
    AutoCalibrator(candidates={"one": PlattCalibrator()}, verbose=1).fit(scores, y)
    assert "5/5" in capsys.readouterr().err
    AutoCalibrator(candidates={"one": PlattCalibrator()}).fit(scores, y)
    assert capsys.readouterr().err == ""


def test_scores_of_either_shape_have_the_settings_of_their_own(rng):
    p, y = draw(rng, 60, 2)
    with pytest.raises(ValueError, match="`classes` must be None for scores of shape"):
        AutoCalibrator(classes=["a", "b"]).fit(p[:, 1], y)
    with pytest.raises(ValueError, match=r"'logit' for scores of shape .* got 'real'"):
        AutoCalibrator(scale="real").fit(p, y)


OF_TABLES = {"auto": AutoCalibrator, "shallow_net": ShallowNetCalibrator}
OF_TABLES |= dict.fromkeys(["matrix", "temperature", "vector"], SoftmaxCalibrator)


@pytest.mark.parametrize("name", calibrator_names())
def test_each_name_is_a_calibrator_with_its_defaults(name):
    made = make_calibrator(name, random_state=3)
    assert isinstance(made, ScoreCalibrator)
    default = type(made)().get_params() | {"random_state": 3}
    assert made.get_params() == {key: default[key] for key in made.get_params()}
    assert made is not make_calibrator(name, random_state=3)


def test_names_of_tables_are_those_of_scores_and_more():
    assert calibrator_names(3) == tuple(sorted({*OF_TABLES, *calibrator_names()}))


@pytest.mark.parametrize("name", calibrator_names(3))
def test_each_name_is_a_calibrator_of_tables(name):
    made = make_calibrator(name, n_classes=3, random_state=7)
    assert type(made) is OF_TABLES.get(name, OneVsRestCalibrator)
    parameters = made.get_params()
    seeds = [value for key, value in parameters.items() if key.endswith("random_state")]
    assert set(seeds) <= {7}
    if type(made) is SoftmaxCalibrator:
        assert made.structure == name


def test_other_names_are_refused():
    for n_classes, name in ((2, "matrix"), (3, "best")):
        with pytest.raises(ValueError, match=rf"`name` must be one of .* got '{name}'"):
            make_calibrator(name, n_classes=n_classes)
    with pytest.raises(ValueError, match="`n_classes` must be at least 2, got 1"):
        calibrator_names(1)
