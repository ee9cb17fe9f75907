"""Figures of the first pages, of the method and of the benchmarks.

    python docs/figures.py docs/images

Writes shape_and_spread.png, guide_plots.png, method_frames.png, method_row.png,
method_tails.png, method_calibration.png, log_odds.png and, where Chromium is on the
path, notebook.png. `make pictures` runs it after the examples.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline
from scipy.special import logit, ndtr, ndtri
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.isotonic import isotonic_regression
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import scale
from sklearn.svm import LinearSVC

from calibration import (
    AsymmetricLaplaceCalibrator,
    PiecewiseLogisticCalibrator,
    PlattCalibrator,
)
from localexpert import (
    LocalExpertRegressor,
    ProbitSpline,
    place_thresholds,
    plot_coverage,
    plot_fan,
    plot_forecast,
    plot_pit,
    plot_threshold_reliability,
)
from localexpert.curves.base_cdf import BaseCDF

Array = NDArray[np.float64]
Curve = Callable[[Array], Array]

LINE, DOTS = "C1", {"color": "C0", "s": 9, "alpha": 0.45, "lw": 0}
DPI = 110


def draw_rows(n: int, seed: int) -> tuple[Array, Array]:
    """Return one feature and a target whose middle and spread both grow with it."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 10.0, size=n)
    noise = (rng.gamma(4.0, size=n) - 4.0) / 2.0
    return x, expected(x) + usual(x) * noise


def expected(x: Array) -> Array:
    """Return the mean of the target."""
    return 10.0 + 3.0 * x + 6.0 * np.sin(x)


def usual(x: Array) -> Array:
    """Return the standard deviation of the target."""
    return 1.0 + 0.8 * x


def draw_frames(path: Path) -> None:
    """Draw the same nine thresholds in the three frames, in units of y."""
    x, y = draw_rows(500, seed=0)
    grid = np.linspace(0.0, 10.0, 201)
    zero, one = np.zeros_like, np.ones_like
    frames: dict[str, tuple[Curve, Curve]] = {
        "None: on y itself": (zero, one),
        '"center": m(x) + v': (expected, one),
        '"standardize": m(x) + s(x) v': (expected, usual),
    }
    figure, panels = plt.subplots(
        1, 3, figsize=(9.6, 3.3), sharey=True, layout="constrained"
    )
    for axes, (name, (middle, spread)) in zip(panels, frames.items(), strict=True):
        thresholds = place_thresholds((y - middle(x)) / spread(x), 9)
        axes.scatter(x, y, **DOTS)
        for v in thresholds:
            axes.plot(grid, middle(grid) + spread(grid) * v, color=LINE, lw=1)
        axes.set(title=name, xlabel="x")
    panels[0].set_ylabel("y")
    save(figure, path)


def draw_row(path: Path) -> None:
    """Draw the road of one row from its experts' answers to its density."""
    x, y = draw_rows(400, seed=1)
    X = np.column_stack([x, np.random.default_rng(2).uniform(size=(400, 2))])
    forest = RandomForestClassifier(40, min_samples_leaf=10, random_state=0)
    model = LocalExpertRegressor(
        forest, n_thresholds=15, frame=None, calibrator=None, cv=3, random_state=0
    ).fit(X, y)
    v, base = model.thresholds_, BaseCDF.fit(y)
    row = int(np.abs(x - 7.0).argmin())
    p, law = model.oof_probabilities_[row], model.oof_distribution_[row]
    figure, panels = plt.subplots(1, 3, figsize=(9.8, 3.4), layout="constrained")
    draw_projection(panels[0], v, p)
    draw_probits(panels[1], base.t(v), p, len(y))
    low, high = law.quantiles([0.002, 0.998])[0]
    fine = np.linspace(low, high, 400)
    t, rate = base.t(fine), base.derivative(fine)
    marginal = rate * np.exp(-0.5 * t**2) / np.sqrt(2.0 * np.pi)
    panels[2].plot(fine, law.pdf(fine[:, None])[:, 0], color="C0", label="this row")
    panels[2].plot(fine, marginal, ":", color="0.4", label="all rows")
    panels[2].plot(y[row], 0.0, "^", color="C3", clip_on=False, label="what came")
    panels[2].set(title="3. Density", xlabel="y", ylim=(0.0, None))
    panels[2].legend(frameon=False, fontsize="small")
    save(figure, path)


def draw_projection(axes: Axes, v: Array, p: Array) -> None:
    """Draw probabilities and their projection on increasing ones."""
    axes.plot(v, p, "o", color=LINE, mfc="none", label="experts")
    axes.plot(v, isotonic_regression(p), ".-", color="C0", label="increasing")
    axes.set(title="1. Probabilities", xlabel="threshold v", ylabel="P(y ≤ v)")
    axes.legend(frameon=False)


def draw_probits(axes: Axes, t: Array, p: Array, n: int) -> None:
    """Draw the same in probit space, with splines of three steps."""
    fine = np.linspace(t[0], t[-1], 300)
    for smoothing, colour in ((0.0, "0.7"), (0.2, "C2"), (0.5, "C4")):
        curves = ProbitSpline(smoothing).build(p[None, :], t, n)
        label = f"spline, step {smoothing:g}"
        axes.plot(fine, follow(curves, fine), color=colour, lw=1.3, label=label)
    axes.plot(t, ndtri(isotonic_regression(p)), "o", color="C0", ms=4)
    axes.set(title="2. Probits", xlabel="t(v)", ylabel="z, the probit of p")
    axes.legend(frameon=False, fontsize="small")


def follow(curves: Any, t: Array) -> Array:
    """Return the first row's curve g at t: Hermite cubics, and lines beyond them."""
    knots, values, slopes = curves.knots, curves.values[0], curves.slopes[0]
    held = np.clip(t, knots[0], knots[-1])
    inside = CubicHermiteSpline(knots, values, slopes)(held)
    slope = np.where(t < knots[0], slopes[0], slopes[-1])
    out: Array = inside + slope * (t - held)
    return out


def draw_tails(path: Path) -> None:
    """Draw the tail of a marginal, and how three forecasts continue in it."""
    r = np.random.default_rng(3).standard_t(4.0, size=3000)
    base = BaseCDF.fit(r)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.6, 3.5), layout="constrained")
    ordered = np.sort(r)[::-1]
    shown = ordered > 0.5
    share = (np.arange(len(r)) + 0.5) / len(r)
    fine = np.geomspace(0.5, 30.0, 200)
    left.loglog(ordered[shown], share[shown], ".", color="C0", ms=4, label="data")
    left.loglog(fine, ndtr(-base.t(fine)), color=LINE, label="marginal with its tail")
    normal = ndtr(-(fine - r.mean()) / r.std())
    left.loglog(fine, normal, "--", color="0.5", label="normal of equal variance")
    left.set(ylim=(1e-6, 1.0), xlabel="r", ylabel="P(R > r)", title="The marginal")
    left.legend(frameon=False)
    draw_continued(right, base, len(r))
    save(figure, path)


def draw_continued(axes: Axes, base: BaseCDF, n: int) -> None:
    """Draw curves of rows that are sharper than the marginal, like it, and wider."""
    t = ndtri(np.arange(1, 26) / 26.0)
    fine = np.linspace(-4.0, 4.0, 400)
    least = base.least_slopes()
    for slope, colour in ((1.8, "C2"), (1.0, "0.5"), (0.5, "C3")):
        curves = ProbitSpline(0.2).build(ndtr(slope * t)[None, :], t, n, least)
        axes.plot(fine, follow(curves, fine), color=colour)
        axes.lines[-1].set_label(f"slope {slope:g} inside")
        axes.plot(fine, slope * fine, ":", color=colour, lw=1)
    axes.axvspan(float(t[0]), float(t[-1]), color="0.93", zorder=0, label="thresholds")
    axes.set(xlabel="t", ylabel="g(t)", title="Forecasts beyond the thresholds")
    axes.set(ylim=(-5.0, 5.0))
    axes.legend(frameon=False, fontsize="small", loc="upper left")


def draw_calibration(path: Path) -> None:
    """Draw thresholds of a naive Bayes expert, before and after calibration."""
    x, y = draw_rows(2000, seed=4)
    copies = x[:, None] + np.random.default_rng(5).normal(size=(len(x), 3))
    model = LocalExpertRegressor(
        GaussianNB(), n_thresholds=9, frame=None, random_state=0
    ).fit(copies, y)
    panels = plot_threshold_reliability(model, numbers=[1, 4, 7])
    save(panels[0].figure, path)


def draw_shape_and_spread(path: Path) -> None:
    """Draw data whose spread and shape change, intervals, and three whole forecasts."""
    rng = np.random.default_rng(6)
    x = rng.uniform(0.0, 10.0, size=3000)
    skewed = (1.0 + 0.7 * x) * (rng.gamma(2.0, size=len(x)) - 2.0)
    parted = rng.choice([-11.0, 11.0], size=len(x)) + 3.0 * rng.normal(size=len(x))
    second = rng.uniform(size=len(x)) < 1.0 / (1.0 + np.exp(7.0 - x) ** 2)
    y = 20.0 + 2.0 * x + np.where(second, parted, skewed)
    model = LocalExpertRegressor(random_state=0).fit(x[:, None], y)
    fine = np.linspace(0.05, 9.95, 199)
    fan = model.predict_dist(fine[:, None])
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9.8, 3.8), layout="constrained", width_ratios=[1.25, 1.0]
    )
    left.scatter(x, y, color="0.55", s=5, alpha=0.5, lw=0)
    for level in (0.5, 0.9):
        low, high = fan.interval(level).T
        name = f"{level:.0%} interval"
        left.fill_between(fine, low, high, color="C0", alpha=0.25, lw=0, label=name)
    left.set(xlabel="x", ylabel="y", title="Every row has its own spread")
    values = np.linspace(12.0, 65.0, 500)
    for k, place in enumerate((1.0, 5.0, 9.5)):
        one = model.predict_dist(np.array([[place]]))
        density = one.pdf(values)
        left.axvline(place, color=f"C{k + 1}", ls="--", lw=1)
        label = f"x = {place:g}"
        right.plot(values, density, color=f"C{k + 1}", label=label)
        right.fill_between(values, density, color=f"C{k + 1}", alpha=0.15, lw=0)
    right.set(xlabel="y", ylabel="density", title="and its own shape", ylim=(0.0, None))
    left.legend(frameon=False, loc="upper left")
    right.legend(frameon=False)
    save(figure, path)


def draw_plots(path: Path) -> None:
    """Draw four of the pictures that the start page names, of its model."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X_fit, X_new, y_fit, y_new = train_test_split(X, y, random_state=0)
    dist = LocalExpertRegressor(random_state=0).fit(X_fit, y_fit).predict_dist(X_new)
    figure, panels = plt.subplots(2, 2, figsize=(10.4, 7.4), layout="constrained")
    one, fan, pit, groups = panels.ravel()
    third = np.searchsorted(X["age"].quantile([1 / 3, 2 / 3]), X_new["age"])
    name = {"target_name": "Progression after a year"}
    plot_forecast(dist, 3, what="density", y=y_new.iloc[3], ax=one, **name)
    plot_fan(dist, X_new["bmi"], y=y_new, ax=fan, **name)
    fan.set_xlabel("body mass index, standardised")
    plot_pit(y_new, dist, bins=10, ax=pit)
    plot_coverage(y_new, dist, np.array(["young", "middle", "old"])[third], ax=groups)
    save(figure, path)


def show_notebook(path: Path) -> None:
    """Take a picture of what notebooks show of the start page's model and forecasts."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        print(f"No Chromium on the path: {path.name} stays as it is")
        return
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X_fit, X_new, y_fit, _ = train_test_split(X, y, random_state=0)
    model = LocalExpertRegressor(random_state=0).fit(X_fit, y_fit)
    outputs = [
        shown._repr_mimebundle_()["text/html"]
        if hasattr(shown, "_repr_mimebundle_")
        else shown._repr_html_()
        for shown in (model, model.predict_dist(X_new))
    ]
    look = "body { font: 13px sans-serif; zoom: 0.9 } td, th { padding: 2px 6px }"
    with TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        head = f"<!DOCTYPE html><meta charset='utf-8'><style>{look}</style>"
        page.write_text("\n".join([head, *outputs]), encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        flags += ["--disable-dev-shm-usage", "--window-size=760,560"]
        subprocess.run(
            [browser, *flags, f"--screenshot={path.resolve()}", page.as_uri()],
            check=True,
            capture_output=True,
            timeout=300,
        )
    print(f"Wrote {path.name}")


def draw_log_odds(path: Path) -> None:
    """Draw empirical log-odds and three fits to them, as Zhang & Yang's figure 2."""
    X, digits = load_digits(return_X_y=True)
    # Not the pixels at the margin, nearly all of them white.
    X, y = X[:, X.std(axis=0) > 4.0], (digits >= 5).astype(int)
    X, X_new, y, y_new = train_test_split(scale(X), y, test_size=0.5, random_state=0)
    classifiers = {
        "Linear support vector machine": LinearSVC(dual=False, random_state=0),
        "Naive Bayes": GaussianNB(),
        "Boosted trees": GradientBoostingClassifier(n_estimators=50, random_state=0),
    }
    figure, panels = plt.subplots(1, 3, figsize=(10.4, 3.7), layout="constrained")
    for axes, (name, model) in zip(panels, classifiers.items(), strict=True):
        held = ask(model, X, y)
        new = ask(model.fit(X, y), X_new)
        for scores, labels, look in (
            (held, y, {"color": "0.65", "marker": "s", "label": "training rows"}),
            (new, y_new, {"color": "0.1", "marker": "o", "label": "other rows"}),
        ):
            axes.plot(*empirical_log_odds(scores, labels), ls="", ms=4, **look)
        fine = np.linspace(*np.quantile(held, [0.005, 0.995]), 500)
        for fit, kind, color in (
            (PlattCalibrator(scale="real"), "logistic", "C0"),
            (AsymmetricLaplaceCalibrator(scale="real"), "asymmetric Laplace", "C2"),
            (PiecewiseLogisticCalibrator(scale="real"), "piecewise logistic", "C3"),
        ):
            forecast = fit.fit(held, y).predict(fine)
            axes.plot(fine, logit(forecast), color=color, label=kind)
        axes.set(title=name, xlabel="score", ylim=(-7.0, 7.0))
    panels[0].set_ylabel("log-odds")
    panels[0].legend(frameon=False, fontsize="small")
    save(figure, path)


def ask(model: Any, X: Array, y: NDArray[np.int_] | None = None) -> Array:
    """Return scores without bounds, of training rows (with `y`) out of five folds."""
    bounded = not hasattr(model, "decision_function")
    method = "predict_log_proba" if bounded else "decision_function"
    rows = getattr(model, method)(X) if y is None else None
    found: Array = (
        cross_val_predict(model, X, y, method=method) if rows is None else rows
    )
    return found[:, 1] - found[:, 0] if bounded else found


def empirical_log_odds(scores: Array, y: NDArray[np.int_]) -> tuple[Array, Array]:
    """Return mean score and log-odds of 15 groups, half a row added to each class."""
    groups = np.array_split(np.argsort(scores), 15)
    ones = np.array([y[group].sum() for group in groups])
    sizes = np.array([len(group) for group in groups])
    places = np.array([scores[group].mean() for group in groups])
    return places, np.log(ones + 0.5) - np.log(sizes - ones + 0.5)


def save(figure: Any, path: Path) -> None:
    """Write a figure and say so."""
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    print(f"Wrote {path.name}")


def main() -> None:
    """Draw all figures into the folder that is named."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    draw_shape_and_spread(folder / "shape_and_spread.png")
    draw_plots(folder / "guide_plots.png")
    draw_frames(folder / "method_frames.png")
    draw_row(folder / "method_row.png")
    draw_tails(folder / "method_tails.png")
    draw_calibration(folder / "method_calibration.png")
    draw_log_odds(folder / "log_odds.png")
    show_notebook(folder / "notebook.png")


if __name__ == "__main__":
    main()
