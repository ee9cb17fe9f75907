"""`AutoCalibrator`: what it chooses, and when it leaves scores alone."""

import numpy as np
import pytest

from calibration import (
    AutoCalibrator,
    HistogramCalibrator,
    OneVsRestCalibrator,
    PlattCalibrator,
    SoftmaxCalibrator,
    log_loss,
)
from calibration.selection.auto import _menu_of_tables
from calibration.selection.trials import read_logs
from tests.calibration.multiclass.draws import check_simplex, draw

FEW = {
    "temperature": SoftmaxCalibrator("temperature"),
    "matrix": SoftmaxCalibrator(penalty=0.1),
    "quadratic": OneVsRestCalibrator("quadratic"),
}


def test_calibrated_scores_are_left_as_they_are(rng):
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


def test_zeros_that_happen_do_not_stand(rng):
    p, y = draw(rng, 600, 3, 1.0)
    hard = np.round(p)
    hard[hard.sum(axis=1) != 1.0] = [1.0, 0.0, 0.0]
    auto = AutoCalibrator(candidates=FEW).fit(hard, y)
    assert auto.report_.accepted
    assert (auto.predict(hard) > 0.01).all()


def test_the_menu_of_tables_has_no_matrix_of_very_many_classes(rng):
    small, large = _menu_of_tables(150), _menu_of_tables(151)
    matrices = [f"matrix {one}" for one in ("1", "0.3", "0.1", "0.03", "0.01", "0.003")]
    dropped = [name for name in small if name not in large]
    assert dropped == [*matrices, "shallow_net"]
    p, y = draw(rng, 120, 3)
    auto = AutoCalibrator().fit(p, y)
    assert list(auto.report_.candidates) == ["identity", *small]


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


def test_few_rows_are_left_alone(rng):
    p, _ = draw(rng, 2, 2)
    auto = AutoCalibrator(candidates=FEW).fit(p, [0, 1])
    assert auto.report_.chosen == ("identity",)
    assert np.isnan(auto.report_.proposal.log_loss)
    np.testing.assert_allclose(auto.predict(p), p)


def test_every_proposal_is_taken_if_harm_may_be(rng):
    p, y = draw(rng, 300, 3, 1.0)
    auto = AutoCalibrator(candidates=FEW, max_harm=1.0).fit(p, y)
    assert auto.report_.accepted
