"""Three people at work, each from the first command or line to the last."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import ensemble, linear_model, model_selection, pipeline
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.preprocessing import OneHotEncoder

import localexpert
from calibration import (
    CalibrationWarning,
    IsotonicCalibrator,
    PlattCalibrator,
    VennAbersCalibrator,
    compare_calibrators,
    log_loss,
    plot_reliability,
)
from localexpert.cli.main import main


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Return a function that runs a command to its end: its output and its lines."""
    monkeypatch.chdir(tmp_path)

    def run_main(words):
        capsys.readouterr()
        assert main(words.split()) == 0
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return out, err

    return run_main


def write_claims(path, n, seed):
    """Write a table as offices write them: marks, currencies, percent, dates, gaps."""
    rng = np.random.default_rng(seed)
    insured, branch = rng.uniform(800.0, 45_000.0, n), rng.choice(["n", "s"], n)
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    loss = insured * np.exp(0.3 * rng.normal(size=n) - 1.0)
    lines = ["id;insured;deductible;share;sold;branch;loss"] + [
        f"{i + 1};{insured[i]:,.0f};${100 * rng.integers(1, 9)};"
        f"{'' if rng.uniform() < 0.05 else f'{rng.integers(5, 95)}%'};"
        f"{days[i]:%d.%m.%y};{branch[i] if i or not seed else 'abroad'};{loss[i]:.2f}"
        for i in range(n)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_an_analyst_forecasts_claims_in_the_shell(run, tmp_path):
    write_claims(tmp_path / "train.csv", 150, 0)
    write_claims(tmp_path / "new.csv", 20, 1)
    _, said = run("fit train.csv --target loss --fast --seed 0 --out model.zip")
    for name, read in (
        ("insured", "thousands"),
        ("deductible", "$"),
        ("share", "percent"),
        ("sold", "two digits"),
        ("'id'", ""),  # it numbers the rows
        ("'loss' is never below 0, and neither is a forecast", ""),
    ):
        assert any(name in line and read in line for line in said.splitlines()), name
    words = "predict model.zip new.csv --quantiles 0.1,0.9 --exceed 10000 --out out"
    for kind in ("csv.gz", "parquet"):
        _, said = run(f"{words}.{kind}")
        # A value that training never saw is told, and its row is forecast.
        assert "in 'branch': 'abroad' (1 row, first " in said
    table = pd.read_parquet("out.parquet")
    assert len(table) == 20
    assert set(table.dtypes) == {np.dtype("float64")}
    assert_allclose(pd.read_csv("out.csv.gz", sep=";"), table, rtol=1e-4)
    assert "CRPS" in run("evaluate model.zip new.csv")[0]
    assert "insured" in run("inspect model.zip")[0]
    run("report model.zip new.csv --out page.html")
    assert "loss" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_a_competitor_stacks_forecasts_of_a_log_target(rng):
    kind, area = rng.choice(["1Fam", "Twnhs"], 210), rng.uniform(40, 300, 210).round()
    table = pd.DataFrame({
        "Area": np.where(rng.uniform(size=210) < 0.1, np.nan, area),
        "Kind": np.where(rng.uniform(size=210) < 0.1, None, kind),
        "Zone": pd.Categorical(rng.choice(["RL", "RM"], 210)),
        "Garage": rng.uniform(size=210) < 0.5,
    })  # fmt: skip
    y = 1000.0 * area * np.exp(0.2 * rng.normal(size=210) + 0.4 * (kind == "1Fam"))
    table.loc[150, "Kind"] = "Manor"
    X, new, (y, truth) = table[:150], table[150:], np.split(y, [150])
    quick = localexpert.LocalExpertRegressor(
        strategy="joint", frame=None, n_thresholds=7, cv=2, random_state=0
    )
    model = TransformedTargetRegressor(quick, func=np.log, inverse_func=np.exp)
    with pytest.warns(CalibrationWarning, match="'Manor'"):
        dist = localexpert.predict_dist(model.fit(X, y), new)
    assert (dist.cdf(0.0) == 0.0).all()
    inner = localexpert.predict_dist(model.regressor_, X)
    assert localexpert.crps_score(truth, dist) < 0.8 * np.abs(truth[:, None] - y).mean()
    assert_allclose(localexpert.predict_dist(model, X).median(), np.exp(inner.median()))
    ridge = pipeline.make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["Zone"])),
        linear_model.Ridge(),
    )
    folds = model_selection.KFold(3, shuffle=True, random_state=0)
    mine = quick.fit(X, np.log(y))
    said = model_selection.cross_val_predict(ridge, X, np.log(y), cv=folds)
    inputs = mine.oof_features().assign(ridge=said)
    meta = linear_model.Ridge().fit(inputs, np.log(y))
    with pytest.warns(CalibrationWarning, match="'Manor'"):
        more = mine.transform(new).assign(ridge=ridge.fit(X, np.log(y)).predict(new))
    assert list(more.columns) == list(inputs.columns)
    assert np.isfinite(meta.predict(more)).all()
    honest = localexpert.cross_val_predict_dist(model, X, y, cv=folds)
    by_hand = [
        localexpert.crps_score(
            y[b], localexpert.predict_dist(model.fit(X.iloc[a], y[a]), X.iloc[b])
        )
        for a, b in folds.split(X)
    ]
    assert localexpert.crps_score(y, honest) == pytest.approx(np.mean(by_hand))


def test_an_engineer_calibrates_a_classifier(run, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=600) > 1.0).astype(int)
    forest = ensemble.RandomForestClassifier(30, random_state=0).fit(X[:200], y[:200])
    scores, y = forest.predict_proba(X[200:])[:, 1], y[200:]
    kinds = [PlattCalibrator(), IsotonicCalibrator(), VennAbersCalibrator()]
    found = compare_calibrators(scores, y, kinds)
    assert found.reference == "identity"  # doing nothing comes first
    assert all(name in str(found) for name in found.names)
    with pytest.warns(CalibrationWarning, match=r"400 rows add up to 1: .* by 400"):
        PlattCalibrator().fit(scores, y, np.full(400, 1.0 / 400.0))
    chosen = VennAbersCalibrator().fit(scores[:200], y[:200])
    p, known = chosen.predict(scores[200:]), y[200:]
    assert log_loss(known, p) < log_loss(known, np.full(200, y.mean()))
    assert plot_reliability(known, p).get_xlabel() == "Forecast probability"
    chosen.save(tmp_path / "venn.zip")
    rows = pd.DataFrame({"s": scores[200:], "y": known})
    rows.to_csv(tmp_path / "new.csv", index=False)
    run("apply venn.zip new.csv --score s --label y --interval --out out.csv")
    written = pd.read_csv(tmp_path / "out.csv")
    ends = chosen.predict_interval(scores[200:])
    told = np.column_stack([p, ends])
    names = ["calibrated", "calibrated_low", "calibrated_high"]
    assert_allclose(written[names], told, rtol=1e-6)
    assert_array_equal(written["y"], known)
