"""Figures of the experts against scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score, log_loss, roc_auc_score

from localexpert.experts.report import ExpertReport, TaskRecord


def report_of(thresholds, raw, calibrated, below, fold, weight):
    folds = [np.nonzero(fold == f)[0] for f in np.unique(fold)]
    pairs = [(np.setdiff1d(np.arange(len(fold)), test), test) for test in folds]
    record = TaskRecord(thresholds, raw, calibrated, below, pairs, weight)
    return ExpertReport.of(record)


@pytest.fixture
def report(rng):
    x = np.round(rng.normal(size=600), 1)
    below = (x + rng.normal(size=600))[:, None] <= [-0.5, 0.5]
    raw = 1 / (1 + np.exp(2 * (x[:, None] - [-0.5, 0.5])))
    weight = rng.integers(1, 4, 600).astype(float)
    fold = rng.integers(0, 3, 600)
    calibrated = np.clip(0.9 * raw + 0.03, 0, 1)
    data = (raw, calibrated, below, fold, weight)
    return data, report_of(np.array([-0.5, 0.5]), *data)


def test_agrees_with_sklearn(report):
    (raw, calibrated, below, fold, weight), got = report
    for k in range(2):
        auc = roc_auc_score(below[:, k], raw[:, k], sample_weight=weight)
        assert got.auc[k] == pytest.approx(auc)
        loss = log_loss(below[:, k], calibrated[:, k], sample_weight=weight)
        assert got.log_loss[k] == pytest.approx(loss)
        assert got.base_rate[k] == pytest.approx(
            np.average(below[:, k], weights=weight)
        )
        for f in range(3):
            rows = fold == f
            said = calibrated[rows, k] >= 0.5
            pair = (below[rows, k], said)
            assert got.accuracy[k, f] == pytest.approx(
                accuracy_score(*pair, sample_weight=weight[rows])
            )
            assert got.kappa[k, f] == pytest.approx(
                cohen_kappa_score(*pair, sample_weight=weight[rows])
            )


def test_one_class_is_no_ranking():
    p, below = np.array([[0.9], [0.8]]), np.array([[True], [True]])
    got = report_of(np.zeros(1), p, p, below, np.zeros(2, int), np.ones(2))
    assert got.auc[0] == 0.5
    assert got.kappa[0, 0] == 0.0
