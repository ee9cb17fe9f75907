"""`MulticlassAutoCalibrator`: what it chooses, and when it leaves scores alone."""

import numpy as np
import pytest

from calibration import (
    MulticlassAutoCalibrator,
    MulticlassIdentityCalibrator,
    OneVsRestCalibrator,
    PlattCalibrator,
    SoftmaxCalibrator,
    log_loss,
)
from calibration.multiclass.auto import _default_menu
from calibration.multiclass.class_trials import read_logs
from tests.calibration.multiclass.draws import check_simplex, draw

METHODS = pytest.mark.parametrize("method", ["stack", "select"])
FEW = {
    "temperature": SoftmaxCalibrator("temperature"),
    "matrix": SoftmaxCalibrator(penalty=0.1),
    "quadratic": OneVsRestCalibrator("quadratic"),
}


@METHODS
def test_calibrated_scores_are_left_as_they_are(method, rng):
    p, y = draw(rng, 1500, 3, 1.0)
    auto = MulticlassAutoCalibrator(method, FEW).fit(p, y)
    assert auto.report_.chosen == ("identity",)
    assert not auto.report_.accepted
    np.testing.assert_allclose(auto.predict(p), p, rtol=1e-9)


@METHODS
def test_wrong_scores_are_set_right(method, rng):
    p, y = draw(rng, 1000, 3, 3.0)
    new, labels = draw(rng, 2000, 3, 3.0)
    auto = MulticlassAutoCalibrator(method, FEW).fit(p, y)
    assert auto.report_.accepted
    assert auto.report_.proposal.probability_of_harm < 0.01
    best = SoftmaxCalibrator("temperature").fit(p, y).predict(new)
    found = auto.predict(new)
    check_simplex(found, new.shape)
    assert log_loss(labels, found) < log_loss(labels, best) + 0.01
    assert log_loss(labels, found) < log_loss(labels, new) - 0.1
    if method == "select":
        assert auto.report_.chosen == ("temperature",)


def test_the_answer_is_the_pool_of_what_was_fitted(rng):
    p, y = draw(rng, 400)
    auto = MulticlassAutoCalibrator(candidates=FEW).fit(p, y)
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
    auto = MulticlassAutoCalibrator(candidates=FEW).fit(hard, y)
    assert auto.report_.accepted
    assert (auto.predict(hard) > 0.01).all()


def test_the_default_menu_has_no_matrix_of_very_many_classes(rng):
    small, large = _default_menu(150), _default_menu(151)
    matrices = [f"matrix {one}" for one in ("1", "0.3", "0.1", "0.03", "0.01", "0.003")]
    dropped = [name for name in small if name not in large]
    assert dropped == [*matrices, "shallow_net"]
    p, y = draw(rng, 120, 3)
    auto = MulticlassAutoCalibrator().fit(p, y)
    assert list(auto.report_.candidates) == ["identity", *small]


def test_few_rows_are_left_alone(rng):
    p, _ = draw(rng, 2, 2)
    auto = MulticlassAutoCalibrator(candidates=FEW).fit(p, [0, 1])
    assert auto.report_.chosen == ("identity",)
    assert np.isnan(auto.report_.proposal.log_loss)
    np.testing.assert_allclose(auto.predict(p), p)


def test_every_proposal_is_taken_if_harm_may_be(rng):
    p, y = draw(rng, 300, 3, 1.0)
    auto = MulticlassAutoCalibrator(candidates=FEW, max_harm=1.0).fit(p, y)
    assert auto.report_.accepted


@pytest.mark.parametrize(
    ("parameters", "error", "complaint"),
    [
        ({"candidates": {}}, ValueError, "`candidates` must hold at least one"),
        ({"candidates": [1]}, TypeError, "`candidates` must be a mapping"),
        (
            {"candidates": {"a": PlattCalibrator()}},
            TypeError,
            r"`candidates\['a'\]` must be a MulticlassCalibrator",
        ),
        (
            {"candidates": {"identity": SoftmaxCalibrator()}},
            ValueError,
            "is the name of doing nothing",
        ),
    ],
)
def test_bad_parameters_are_refused(parameters, error, complaint, rng):
    with pytest.raises(error, match=complaint):
        MulticlassAutoCalibrator(**parameters).fit(*draw(rng, 20))


def test_doing_nothing_of_logits_is_the_softmax(rng):
    z = rng.normal(size=(20, 3))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    nothing = MulticlassIdentityCalibrator(scale="logit").fit(z, np.zeros(20))
    np.testing.assert_allclose(nothing.predict(z), p, rtol=1e-12)
    plain = MulticlassIdentityCalibrator().fit(p, np.zeros(20))
    np.testing.assert_array_equal(plain.predict(p), p / p.sum(axis=1, keepdims=True))
