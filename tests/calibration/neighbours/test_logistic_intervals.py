"""Intervals against numerical derivatives, refits, and the truth they should cover."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, log_expit
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression

from calibration import logistic_intervals

Z90 = 1.6448536269514722


@pytest.fixture
def rows(rng):
    X = rng.normal(size=(200, 3)) * [1.0, 5.0, 0.1] + [0.0, 2.0, 0.0]
    y = rng.uniform(size=200) < expit(X @ [1.0, -0.2, 3.0])
    return X, y.astype(int)


def exact(model, C=np.inf, **params):
    return model(C=C, tol=1e-10, max_iter=10_000, **params)


def numerical_hessian(function, at, step=1e-3):
    """Second derivatives by central differences, shape (k, k)."""
    moves = step * np.eye(len(at))

    def second(a, b):
        alike = function(at + a + b) + function(at - a - b)
        return alike - function(at + a - b) - function(at - a + b)

    return np.array([[second(a, b) for b in moves] for a in moves]) / (4 * step**2)


@pytest.mark.parametrize("C", [np.inf, 0.05])
def test_log_odds_have_the_standard_error_of_the_numerical_hessian(rows, rng, C):
    X, y = rows
    weight = rng.integers(1, 4, len(y)).astype(float)
    model = exact(LogisticRegression, C).fit(X, y, weight)
    design = np.column_stack([np.ones(len(X)), X])

    def loss(theta):
        return -(weight * log_expit((2 * y - 1) * (design @ theta))).sum()

    def whole(theta):
        return loss(theta) + (theta[1:] ** 2).sum() / (2 * C)

    theta = np.append(model.intercept_, model.coef_)
    inverse = np.linalg.inv(numerical_hessian(whole, theta))
    covariance = inverse @ numerical_hessian(loss, theta) @ inverse
    radius = Z90 * np.sqrt(np.diag(design @ covariance @ design.T))
    options = {"coverage": 0.9, "scale": "logit", "sample_weight": weight}
    got = logistic_intervals(model, X, X, **options)
    eta = model.decision_function(X)
    np.testing.assert_allclose(got, np.column_stack([eta - radius, eta + radius]), 1e-4)


def test_probabilities_follow_by_the_delta_method(rows):
    X, y = rows
    model = exact(LogisticRegression).fit(X, y)
    low, high = logistic_intervals(model, X, X, scale="logit").T
    p = model.predict_proba(X)[:, 1]
    radius = p * (1 - p) * (high - low) / 2
    expected = np.column_stack([np.maximum(p - radius, 0), np.minimum(p + radius, 1)])
    got = logistic_intervals(model, X, X)
    np.testing.assert_allclose(got, expected, atol=1e-12)
    assert ((got[:, 0] <= p) & (p <= got[:, 1])).all()


def test_units_and_repeated_columns_do_not_matter(rows):
    X, y = rows
    model = exact(LogisticRegression).fit(X, y)
    plain = logistic_intervals(model, X, X, scale="logit")
    coef, unit = model.coef_, np.array([1e-9, 1.0, 1e9])
    for table, moved in (
        (X * unit, coef / unit),
        (np.column_stack([X, X[:, 0]]), np.append(coef, [[0.0]], axis=1)),
    ):
        model.coef_ = moved
        same = logistic_intervals(model, table, table, scale="logit")
        np.testing.assert_allclose(same, plain, rtol=1e-6)


def test_liblinear_penalises_its_intercept(rows):
    """With a strong penalty on it, the intercept does not vary."""
    X, y = rows
    tight = LogisticRegression(solver="liblinear", intercept_scaling=1e-4).fit(X, y)
    zero = np.zeros((1, 3))
    low, high = logistic_intervals(tight, X, zero, scale="logit")[0]
    assert high - low < 1e-3
    free = LogisticRegression().fit(X, y)
    low, high = logistic_intervals(free, X, zero, scale="logit")[0]
    assert high - low > 0.3


def test_without_intercept(rows):
    X, y = rows
    model = exact(LogisticRegression, fit_intercept=False).fit(X, y)
    low, high = logistic_intervals(model, X, [[0.0, 0.0, 0.0]])[0]
    assert (low, high) == (0.5, 0.5)


def test_refused(rows):
    X, y = rows
    model = LogisticRegression().fit(X, y)
    with pytest.raises(TypeError, match=r"`model` must be a .*, got LinearRegression"):
        logistic_intervals(LinearRegression(), X, X)
    with pytest.raises(NotFittedError, match="not fitted"):
        logistic_intervals(LogisticRegression(), X, X)
    three = LogisticRegression().fit(X, np.arange(200) % 3)
    balanced = LogisticRegression(class_weight="balanced").fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lasso = LogisticRegression(l1_ratio=1.0, solver="saga").fit(X, y)
    for given, message in (
        ((three, X, X), "`model` must know two classes, got 3"),
        ((lasso, X, X), r"L2 penalty or none, got .*l1_ratio=1.0"),
        ((balanced, X, X), r"no `class_weight`, .* got 'balanced'"),
        ((model, X, X[:, :2]), r"`X` must have shape \(n, 3\) .* \(200, 2\)"),
        ((model, X * np.nan, X), "`X_train` must be finite, got nan in"),
    ):
        with pytest.raises(ValueError, match=message):
            logistic_intervals(*given)
    with pytest.raises(ValueError, match="`sample_weight` must be as long as the data"):
        logistic_intervals(model, X, X, sample_weight=[1.0])


def test_columns_have_the_names_of_the_fit(rng):
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    model = LogisticRegression().fit(frame, rng.integers(2, size=60))
    logistic_intervals(model, frame, frame)
    with pytest.raises(ValueError, match="feature names should match"):
        logistic_intervals(model, frame, frame[["b", "a"]])
