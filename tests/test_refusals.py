"""Every public call names the wrong argument if it gets the wrong kind of thing.

A call may only give an answer, or a refusal that names the argument. It must not raise
an error of Python that speaks about our code and not about the caller's mistake.
"""

import inspect
import re
from functools import cache, partial
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import calibration
import localexpert
from calibration import IsotonicCalibrator, reliability_curve
from calibration.multiclass.base import MulticlassCalibrator
from localexpert import (
    DistributionAdapter,
    DistributionEnsemble,
    ForecastMonitor,
    IndependentExperts,
    JointForest,
    LocalExpertRegressor,
    PredictiveDistribution,
    SharedBoosting,
    risk,
)
from tests.fuzz.cases import answer_or_refusal

WRONG = {
    "None": None,
    "a text": "x",
    "an empty list": [],
    "a dict": {},
    "a negative number": -1,
    "nan": np.nan,
    "an object": object(),
    "texts": ["x", "y"],
    "objects": np.array([object(), None], dtype=object),
}
# Anything that prints may name a thing.
TEXTS = {("plot_importance", name) for name in ("label", "features", "columns")}
TEXTS |= {("plot_forecasts", "labels"), ("plot_explanation", "target_name")}
# These are right after all, or are not read without a splitter that asks for them.
RIGHT = {("n_jobs", "a negative number")}
UNREAD = {("make_folds", "y")}
# What takes lives as `y_true`; all that `calibration` has takes labels.
SURVIVAL = ["concordance_index", "d_calibration_test", "integrated_brier_score"]
SURVIVAL += ["survival_brier_score"]
QUICK = {"strategy": JointForest(n_estimators=5), "frame": None, "n_thresholds": 5}
QUICK |= {"cv": 2, "random_state": 0}
STAGES = (IndependentExperts, JointForest, SharedBoosting)
REGRESSORS = (LocalExpertRegressor, DistributionAdapter, DistributionEnsemble)
REGRESSORS += (ForecastMonitor, *STAGES)
CLASSES = [getattr(calibration, name) for name in calibration.__all__]
ESTIMATORS = [
    *(c for c in CLASSES if inspect.isclass(c) and issubclass(c, BaseEstimator)),
    *REGRESSORS,
]
ESTIMATORS = [c for c in ESTIMATORS if not inspect.isabstract(c)]


@cache
def things():
    """Return the tables, scores and forecasts that all calls share."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=60), "b": rng.normal(size=60)})
    y, scores = X["a"] + rng.normal(size=60), rng.uniform(size=60)
    ones = (rng.uniform(size=60) < scores).astype(int)
    model = make(LocalExpertRegressor).fit(X, y)
    dist, losses = model.predict_dist(X), rng.uniform(size=(12, 3))
    return SimpleNamespace(**{k: v for k, v in locals().items() if k != "rng"})


@cache
def arguments():
    """Return a right argument for every name of a parameter that must be given."""
    t = things()
    explained = localexpert.explain_forecast(t.model, t.X[:2], t.X, random_state=0)
    return {
        "X": t.X, "y": t.y, "x": t.X["a"], "groups": t.X["b"] > 0, "background": t.X,
        "X_train": t.X, "scores": t.scores, "y_true": t.y, "y_prob": t.scores,
        "dist": t.dist, "model": t.model, "report": t.model.expert_report_, "r": t.y,
        "n": 60, "n_rows": 20, "n_bins": 5, "delta": 0.1, "losses": t.losses,
        "level": 0.9, "dates": pd.Series(pd.date_range("2024-01-01", periods=60)),
        "q": 0.5, "levels": [0.1, 0.5], "coverage": 0.8, "threshold": 0.3,
        "low": -1.0, "high": 1.0, "a": -1.0, "b": 1.0, "grid": [0.0, 1.0],
        "weight": np.ones_like, "func": np.square, "loss": lambda y, a: (y - a) ** 2,
        "curve": reliability_curve(t.ones, t.scores),
        "calibrators": IsotonicCalibrator().fit(t.scores, t.ones),
        "actions": [0.0, 1.0], "action": 0.5, "costs": [[0, 1], [5, 0]],
        "decision": t.ones, "probabilities": np.c_[t.scores, 1.0 - t.scores],
        "underage": 1.0, "overage": 2.0, "probability": t.scores, "amount": t.y**2,
        "cost": 1.0, "received": t.y**2, "members": {"a": t.model}, "size": 2,
        "table": pd.DataFrame({"importance": [1.0, 2.0]}, index=["a", "b"]),
        "explanation": explained, "comparison": calibration.compare_methods(t.losses),
        "intervals": t.scores[:, None] + [-0.1, 0.1], "dists": [t.dist, t.dist],
        "values": [[1.0, 2.0]], "samples": [[1, 2, 2]], "frozen": norm(0.0, 1.0),
        "monitor": calibration.CalibrationMonitor().fit(t.scores, t.ones),
        "X_old": t.X, "X_new": t.X, "y_cal": t.y, "X_cal": t.X,
        "edges": [0.0, 1.0, 2.0], "inverse": np.log, "pairs": np.full((4, 3, 3), 0.5),
        "p": t.scores, "old": 0.5, "new": 0.1, "p_old": t.scores, "y_old": t.ones,
        "time": t.y, "event": t.ones, "limit": 1.0, "forecast": t.y,
        "times": [0.0, 1.0],
    }  # fmt: skip


@cache
def special():
    """Return arguments that differ from the usual ones, by the name of the call."""
    t = things()
    table = np.c_[1.0 - t.scores, 0.3 * t.scores, 0.7 * t.scores]
    three = calibration.SoftmaxCalibrator("temperature").fit(table, 2 * t.ones)
    parts = pd.DataFrame({"s": t.scores, "y": t.ones, "w": 1.0})
    plain, two = LocalExpertRegressor(**QUICK), np.c_[1.0 - t.scores, t.scores]
    lives = localexpert.censored(t.y, t.ones)
    made = {one.__name__: one for one in CLASSES if inspect.isfunction(one)}
    labelled = [k for k in made if "y_true" in inspect.signature(made[k]).parameters]
    found = {key: {"y_true": t.ones} for key in [*labelled, "realised_cost"]}
    found |= {key: {"y": lives} for key in ("kaplan_meier", "plot_survival")}
    return found | {key: {"y_true": lives} for key in SURVIVAL} | {
        "proper_score": {"y_true": t.ones, "weight": {0.5: 1.0}},
        "transform": {"func": np.exp},
        "from_arrays": {"atoms": [0.0, 1.0], "masses": [[0.2, 0.8]]},
        "from_bins": {"probabilities": [[0.2, 0.8]]},
        "logistic_intervals": {"model": LogisticRegression().fit(t.X, t.ones)},
        "plot_roc": {"y": t.ones},
        "plot_class_reliability": {"y_true": t.ones, "y_prob": two},
        "plot_simplex": {"calibrator": three, "scores": table},
        "plot_simplex_field": {"calibrator": three},
        "summarize": {"parts": parts, "score": "s", "label": "y"},
        "fit_large": {"model": plain, "parts": t.X.assign(y=t.y), "target": "y"},
        "predict_table": {"table": t.X},
        # Negative targets: no training rows.
        "adapt": {"y_cal": -t.y, "weights": lambda X: np.ones(len(X))},
        "recalibrate": {"y_cal": -t.y},
        "compare_pair": {"losses": t.losses[:, 0], "reference": t.losses[:, 1]},
        "make_calibrator": {"name": "bagged_isotonic"},
        "compare_calibrators": {"y": t.ones, "calibrators": None},
    }  # fmt: skip


def make(cls, **parameters):
    """Return an unfitted estimator that is quick."""
    if cls in STAGES:
        parameters = {"strategy": cls(**parameters)}
    if cls in (LocalExpertRegressor, *STAGES):
        return LocalExpertRegressor(**{**QUICK, **parameters})
    if cls is DistributionAdapter:
        parameters = {"estimator": make(LocalExpertRegressor), **parameters}
    if cls is DistributionEnsemble:
        parameters = {"members": [("a", make(LocalExpertRegressor))], **parameters}
    return cls(**parameters)


def rows_of(cls):
    """Return the rows that a class is fitted on, by the names of `fit`."""
    rows = {**arguments(), "y": things().y if cls in REGRESSORS else things().ones}
    if issubclass(cls, MulticlassCalibrator):
        rows["scores"] = np.c_[1.0 - things().scores, things().scores]
    asked = inspect.signature(LocalExpertRegressor.fit if cls in STAGES else cls.fit)
    return {
        name: rows[name]
        for name, one in asked.parameters.items()
        if name in rows and one.default is one.empty
    }


def set_and_fit(cls, **parameters):
    return make(cls, **parameters).fit(**rows_of(cls))


def fit(cls, **rows):
    return make(cls).fit(**{**rows_of(cls), **rows})


def call(name, function, /, **given):
    right = {
        key: arguments()[key]
        for key, one in inspect.signature(function).parameters.items()
        if one.default is one.empty and key in arguments()
    }
    return function(**{**right, **special().get(name, {}), **given})


def public_calls():
    """Return what can be called, and with which parameters, by its name."""
    found = {}
    for package in (calibration, localexpert, risk):
        for name in package.__all__:
            function = getattr(package, name)
            # Files have tests of their own.
            if inspect.isfunction(function) and name not in ("load", "report"):
                parameters = inspect.signature(function).parameters
                found[name] = partial(call, name, function), list(parameters.values())
    for cls, start in ((PredictiveDistribution, ""), (LocalExpertRegressor, "predict")):
        for name, function in inspect.getmembers(cls, callable):
            if name.startswith("_") or not name.startswith(start):
                continue
            parameters = list(inspect.signature(function).parameters.values())[1:]

            def ask(name=name, owner="model" if start else "dist", **given):
                return call(name, getattr(getattr(things(), owner), name), **given)

            found[f"{cls.__name__}.{name}"] = ask, parameters
    for cls in ESTIMATORS:
        parameters = inspect.signature(cls).parameters
        found[cls.__name__] = partial(set_and_fit, cls), list(parameters.values())
        rows = list(inspect.signature(cls.fit).parameters.values())[1:]
        if cls not in STAGES:
            found[f"{cls.__name__}.fit"] = partial(fit, cls), rows
    return found


CALLS = public_calls()


@pytest.mark.parametrize("name", CALLS)
def test_what_is_wrong_is_named(name):
    function, parameters = CALLS[name]
    function()
    complaints = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        for kind, value in WRONG.items():
            if value is parameter.default or (parameter.name, kind) in RIGHT:
                continue
            case = f"{name}({parameter.name}={kind})"
            try:
                answer = answer_or_refusal(partial(function, **{parameter.name: value}))
            except Exception as error:
                complaints.append(f"{case} let through {type(error).__name__}: {error}")
                continue
            finally:
                plt.close("all")
            if not isinstance(answer, Exception):
                taken = kind in ("an object", "objects")
                if taken and (name, parameter.name) not in TEXTS | UNREAD:
                    complaints.append(f"{case} was taken")
            elif not re.search(f"(`|as long as ){parameter.name}\\b", str(answer)):
                complaints.append(f"{case} blamed another: {answer}")
    assert not complaints, "\n".join(complaints)
