"""An engineer who calibrates a classifier: weights, comparison, pictures, shell."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from calibration import (
    CalibratedClassifier,
    CalibrationWarning,
    IsotonicCalibrator,
    PlattCalibrator,
    VennAbersCalibrator,
    compare_calibrators,
    load,
    log_loss,
    plot_reliability,
)
from localexpert.cli.main import main


@pytest.fixture(scope="module")
def forest():
    """Return a forest, and scores, labels and features of rows it has not seen."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=600) > 1.0).astype(int)
    fitted = RandomForestClassifier(30, random_state=0).fit(X[:200], y[:200])
    return fitted, fitted.predict_proba(X[200:])[:, 1], y[200:], X[200:]


def test_scores_are_compared_calibrated_and_drawn(forest):
    _, scores, y, _ = forest
    found = compare_calibrators(
        scores, y, [PlattCalibrator(), IsotonicCalibrator(), VennAbersCalibrator()]
    )
    assert len(found.names) == 4  # doing nothing comes first
    assert found.reference == "identity"
    assert all(name in str(found) for name in found.names)
    chosen = VennAbersCalibrator().fit(scores[:200], y[:200])
    p = chosen.predict(scores[200:])
    assert log_loss(y[200:], p) < log_loss(y[200:], np.full(200, y.mean()))
    ax = plot_reliability(y[200:], p)
    assert ax.get_xlabel() == "Forecast probability"


def test_weights_are_repetitions_and_shares_are_warned_of(forest):
    _, scores, y, _ = forest
    plain = PlattCalibrator().fit(scores, y).predict(scores)
    with pytest.warns(CalibrationWarning, match=r"400 rows add up to 1: .* by 400"):
        flat = PlattCalibrator().fit(scores, y, np.full(400, 1.0 / 400.0))
    # What the warning is about, and what its cure does.
    assert np.ptp(flat.predict(scores)) < 0.9 * np.ptp(plain)
    cured = PlattCalibrator().fit(scores, y, np.full(400, 1.0 / 400.0) * 400)
    np.testing.assert_allclose(cured.predict(scores), plain)


def test_a_calibrated_forest_is_saved_loaded_and_the_same(forest, tmp_path):
    _, _, y, X = forest
    model = CalibratedClassifier(RandomForestClassifier(10, random_state=0), cv=3)
    model.fit(X, y).save(tmp_path / "forest.zip")
    again = load(tmp_path / "forest.zip")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_saved_calibrator_is_applied_in_the_shell(forest, tmp_path, capsys):
    _, scores, y, _ = forest
    calibrator = VennAbersCalibrator().fit(scores[:200], y[:200])
    calibrator.save(tmp_path / "venn.zip")
    pd.DataFrame({"s": scores[200:], "y": y[200:]}).to_csv(
        tmp_path / "new.csv", index=False
    )
    arguments = "apply {0}/venn.zip {0}/new.csv --score s --label y --interval"
    out = f"--out {tmp_path}/out.csv"
    assert main(f"{arguments.format(tmp_path)} {out}".split()) == 0
    said = capsys.readouterr().err
    assert "Traceback" not in said
    written = pd.read_csv(tmp_path / "out.csv")
    low, high = calibrator.predict_interval(scores[200:]).T
    np.testing.assert_allclose(written["calibrated_low"], low, rtol=1e-6)
    np.testing.assert_allclose(written["calibrated_high"], high, rtol=1e-6)
    p = calibrator.predict(scores[200:])
    np.testing.assert_allclose(written["calibrated"], p, rtol=1e-6)


def test_the_mistakes_that_engineers_make_are_named(forest):
    _, scores, y, _ = forest
    fitted = PlattCalibrator().fit(scores, y)
    with pytest.raises(ValueError, match=r"\[0, 1\], got 1\.0000001"):
        fitted.predict(scores + 1.0000001 - scores)
    with pytest.raises(TypeError, match=r"got .0.5. at position 0; convert texts"):
        fitted.predict(pd.Series(["0.5", "0.7"]))
    with pytest.raises(TypeError, match="`calibrators` must be a"):
        compare_calibrators(scores, y, 3)
