"""`fit_large`: one model whatever the parts, corrected by what no model has seen."""

import contextlib
import functools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from sklearn.linear_model import LinearRegression, LogisticRegression

from localexpert import FrameRoad, LocalExpertRegressor, fit_large, load, report
from localexpert.large.passes import Runner
from localexpert.large.row_hash import hash_rows
from localexpert.large.scan import ScanPass
from localexpert.large.threshold_pass import ThresholdPass
from localexpert.reporting import pictures


def plain(**parameters: Any) -> LocalExpertRegressor:
    """Return a regressor that is fitted in half a second."""
    quick: dict[str, Any] = {
        "strategy": "independent",
        "expert": LogisticRegression(),
        "center": LinearRegression(),
        "frame": "center",
        "n_thresholds": 3,
        "smoothing": 0.4,
        "calibrator": "quadratic",
        "cv": 2,
        "random_state": 0,
    }
    return LocalExpertRegressor(**{**quick, **parameters})


def draw(n: int, seed: int = 0) -> pd.DataFrame:
    """Return rows with numbers, texts, weights, repeated rows, and a key."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n).astype(np.float32),
            "b": rng.normal(size=n).round(1),
            "w": rng.integers(0, 4, size=n),
            "key": rng.integers(0, n // 5, size=n),
        }
    )
    frame["y"] = frame["a"] + np.exp(0.5 * frame["b"]) * rng.standard_gamma(2.0, n)
    return pd.concat([frame, frame[: n // 10]], ignore_index=True)


@functools.cache
def table() -> pd.DataFrame:
    return draw(4000).drop(columns=["w", "key"])


def fit(source: Any, **given: Any) -> LocalExpertRegressor:
    given = {"max_train_rows": 800, "learning_curve": False, **given}
    return fit_large(given.pop("model", plain()), source, "y", **given)


@functools.cache
def in_one_table() -> LocalExpertRegressor:
    return fit(table())


def assert_same(one: LocalExpertRegressor, other: LocalExpertRegressor) -> None:
    """Compare what was learned bit for bit: sample, thresholds, calibrators, map."""
    for name in ("thresholds_", "oof_probabilities_", "fitted_rows_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    probe = np.linspace(0.0, 1.0, 101)
    calibrations = [m.forecaster_.experts.calibration for m in (one, other)]
    for own, its in zip(*(c.calibrators_ for c in calibrations), strict=True):
        np.testing.assert_array_equal(own.predict(probe), its.predict(probe))
    np.testing.assert_array_equal(
        one.recalibration_.map_.values, other.recalibration_.map_.values
    )
    stages = ("recalibration", "unseen calibration", "large")
    for stage in stages:
        assert one.report_.choices[stage] == other.report_.choices[stage]


def frames(frame: pd.DataFrame, seed: int) -> list[pd.DataFrame]:
    """Return the rows in another order, in parts of any size, some empty."""
    rng = np.random.default_rng(seed)
    mixed = frame.iloc[rng.permutation(len(frame))]
    cuts = np.sort(rng.integers(0, len(frame), 6))
    return [mixed.iloc[i:j] for i, j in zip([0, *cuts], [*cuts, None], strict=True)]


@pytest.mark.parametrize("seed", range(3))
def test_any_parts_in_any_order_give_one_model(seed: int) -> None:
    parts = frames(table(), seed)
    assert_same(fit(lambda: iter(parts)), in_one_table())


def test_files_give_the_model_of_the_frame(tmp_path: Path) -> None:
    for number, part in enumerate(frames(table(), 9)):
        # Precision, order of columns and index are of no account.
        turned = part.astype({"a": float})[["y", "b", "a"]]
        turned.to_parquet(tmp_path / f"{number}.parquet", row_group_size=100)
    model = fit(tmp_path, rows_per_part=300)
    assert model.report_.choices["large"] == in_one_table().report_.choices["large"]
    np.testing.assert_array_equal(
        model.predict(table()[["b", "a"]]), in_one_table().predict(table()[["a", "b"]])
    ) if list(model.feature_names_in_) == ["a", "b"] else None
    np.testing.assert_array_equal(
        model.recalibration_.oof_map_.knots, in_one_table().recalibration_.map_.knots
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_integer_weights_and_keys_do_not_depend_on_parts(weighted: bool) -> None:
    frame = draw(3000)
    roles = {"weight": "w"} if weighted else {"key": "key"}
    kept = frame.drop(columns="key" if weighted else "w")
    parts = frames(kept, 3)
    assert_same(fit(lambda: iter(parts), **roles), fit(kept, **roles))


def test_dask_gives_the_model_of_the_frame() -> None:
    whole = dd.from_pandas(table(), npartitions=4)
    hollow = whole[whole["a"] > 1e3]
    with Client(processes=False, dashboard_address=":0", n_workers=1) as client:
        assert_same(fit(dd.concat([hollow, whole]), client=client), in_one_table())
        parts = frames(table(), 5)
        assert_same(fit(lambda: iter(parts), client=client), in_one_table())


@pytest.mark.parametrize("by_client", [False, True])
def test_partitions_of_dask_must_come_out_the_same(by_client: bool) -> None:
    def draw_anew(n: int) -> pd.DataFrame:
        # Each time beyond all targets that a pass before has seen.
        frame = draw(600).sample(n, random_state=np.random.default_rng())
        return frame.assign(y=frame["y"] + 1e6 * time.monotonic())

    source = dd.from_map(draw_anew, [500, 400], meta=draw(600)[:0])
    with contextlib.ExitStack() as stack:
        client = None
        if by_client:
            client = stack.enter_context(
                Client(processes=False, dashboard_address=":0", n_workers=1)
            )
        with pytest.raises(ValueError, match=r"the same rows .* `persist` the Dask"):
            fit(source, client=client)


def test_repeated_rows_are_drawn_together() -> None:
    frame = pd.concat([table()] * 3, ignore_index=True)
    model = fit(frame, max_train_rows=2400)
    once = in_one_table()
    drawn = model.report_.choices["large"]["sample"]
    assert abs(drawn - once.report_.choices["large"]["sample"]) < 70
    assert model.oof_weights_.min() >= 3.0


def test_rows_of_a_key_are_learned_from_together() -> None:
    frame = draw(3000).drop(columns="w")
    seen: list[pd.DataFrame] = []

    class Spy(LocalExpertRegressor):
        def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None):
            seen.append(X.assign(y=y, group=groups))
            return super().fit(X, y, sample_weight, groups)

    fit(frame, key="key", model=Spy(**plain().get_params(deep=False)))
    (sample,) = seen
    held = frame.merge(sample.astype({"a": np.float32}), on=["a", "b", "y"])
    drawn = frame[frame["key"].isin(held["key"])]
    assert len(drawn.drop_duplicates()) == len(sample)
    assert (held.groupby("key")["group"].nunique() == 1).all()


def test_the_result_is_an_ordinary_regressor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = in_one_table()
    rows = table()[["a", "b"]][:50]
    assert model.get_params()["recalibrate"] is None
    model.save(tmp_path / "m.zip")
    again = load(tmp_path / "m.zip")
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    # Seconds of writing pictures, which are drawn all the same.
    monkeypatch.setattr(pictures, "_to_address", lambda _: "data:,")
    report(model, rows, table()["y"][:50], tmp_path / "page.html")
    assert "to calibrate by" in (tmp_path / "page.html").read_text("utf-8")
    assert "rows, the others to calibrate by" in str(model.report_)


@pytest.mark.slow
def test_unseen_rows_correct_what_a_small_sample_cannot() -> None:
    frame, new = draw(60_000).drop(columns=["w", "key"]), draw(20_000, seed=1)
    given, y = new[["a", "b"]], new["y"].to_numpy()
    # A road that cannot know of the scale, and a law that is far from normal.
    rough = plain(calibrator=None, smoothing=0.4, n_thresholds=2)
    large = fit_large(rough, frame, "y", max_train_rows=600, learning_curve=False)
    alone = rough.fit(*_sample_like(frame, 600))
    after, before = (m.predict_dist(given).logpdf(y).mean() for m in (large, alone))
    assert after > before
    assert large.report_.choices["recalibration"]["strength"] != "inf"


def _sample_like(frame: pd.DataFrame, n: int) -> tuple[pd.DataFrame, pd.Series]:
    part = frame.sample(n, random_state=0)
    return part[["a", "b"]], part["y"]


def test_the_curve_says_what_more_rows_would_gain() -> None:
    model = fit_large(plain(), draw(12_000)[["a", "b", "y"]], "y", max_train_rows=6000)
    curve = model.report_.choices["learning curve"]
    sizes = [int(n) for n in curve["losses"]]
    assert len(sizes) == 3
    assert 3.0 < sizes[1] / sizes[0] < 5.0
    assert "4 times the rows would gain" in curve["chosen"]


@pytest.mark.parametrize(
    "y",
    [
        lambda rng, n: rng.poisson(2.0, n),
        lambda rng, n: np.maximum(rng.normal(size=n), 0.0),
        lambda rng, n: np.exp(2.0 * rng.normal(size=n)),
        lambda rng, n: 1e9 + rng.normal(size=n),
    ],
    ids=["counts", "zeros", "skewed", "far"],
)
def test_targets_of_every_kind(y: Any) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=3000), "y": y(rng, 3000)})
    model = LocalExpertRegressor(
        roads="auto", n_thresholds=25, center=LinearRegression(), random_state=0
    )
    model.set_params(strategy="joint", n_thresholds=5)
    large = fit(frame, model=model)
    assert np.isfinite(large.predict(frame[["x"]][:20])).all()
    parts = frames(frame, 1)
    again = fit(lambda: iter(parts), model=model)
    np.testing.assert_array_equal(
        large.predict(frame[["x"]][:20]), again.predict(frame[["x"]][:20])
    )


def test_one_value_is_forecast_as_it_is() -> None:
    frame = pd.DataFrame({"x": np.arange(1000.0), "y": 3.0})
    with pytest.warns(UserWarning, match="`y` is 3 in every row"):
        model = fit(frame, max_train_rows=100)
    assert (model.predict(frame[["x"]][:3]) == 3.0).all()


def test_bounds_are_those_of_the_whole_table() -> None:
    rng = np.random.default_rng(0)
    y = rng.uniform(size=6000)
    frame = pd.DataFrame({"x": rng.normal(size=6000), "y": y * 2.0})
    assert fit(frame, max_train_rows=2000).bounds_ == (0.0, np.inf)
    frame.loc[17, "y"] = -1e-3
    model = fit(frame, max_train_rows=2000)
    assert model.bounds_[0] < 0.0
    assert model.bounds == "auto"
    with pytest.raises(ValueError, match=r"`bounds` must hold every y.* y = -0\.001"):
        fit(frame, model=plain(bounds=(0.0, None)))


def test_values_of_texts_that_the_sample_lacks_are_counted() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=5000), "y": rng.normal(size=5000)})
    frame["t"] = pd.Categorical(np.where(np.arange(5000) % 2 == 0, "even", "odd"))
    frame["rare"] = [f"v{i}" for i in range(500)] * 10
    model = fit(frame, max_train_rows=150, model=LocalExpertRegressor(
        strategy="joint", center=LinearRegression(), frame=None, n_thresholds=3,
        random_state=0,
    ))  # fmt: skip
    lacks = model.report_.choices["large"]["unseen categories"]
    assert 300 < lacks["rare"] < 500
    assert "t" not in lacks


def test_what_is_small_is_learned_from_whole() -> None:
    frame = table()[:300]
    model = fit(frame)
    assert model.report_.choices["large"]["chosen"] == "300 of 300 rows"
    assert model.recalibration_ is None


def test_a_checkpoint_goes_on_where_a_fit_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, whole = frames(table(), 2), in_one_table()
    asked: list[str] = []
    ask = ThresholdPass.__call__

    def fail(self: Any, part: Any, frame: Any = None) -> Any:
        asked.append(part.name)
        if len(asked) == 3:
            msg = "the lights went out"
            raise RuntimeError(msg)
        return ask(self, part, frame)

    monkeypatch.setattr(ThresholdPass, "__call__", fail)
    folder = tmp_path / "kept"

    def source() -> Iterator[pd.DataFrame]:
        return iter(parts)

    with pytest.raises(RuntimeError, match=r"failed at frame . in the pass 'threshol"):
        fit(source, checkpoint=folder)

    def never(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(LocalExpertRegressor, "fit", never)
    monkeypatch.setattr(ScanPass, "__call__", never)
    model = fit(source, checkpoint=folder)
    assert len(set(asked)) == len(asked) - 1
    assert_same(model, whole)
    for given, message in [
        ({"max_train_rows": 900}, "begun with another `max_train_rows`"),
        ({"model": plain(n_thresholds=4)}, "begun with another `model`"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit(source, checkpoint=folder, **given)
    other = frames(table(), 3)
    with pytest.raises(ValueError, match=r"the same `source`, got .*frame 0 was anoth"):
        fit(lambda: iter(other), checkpoint=folder)


def test_a_checkpoint_is_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(ValueError, match="`checkpoint` must be an empty folder"):
        fit(table(), checkpoint=tmp_path)


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    fit(table(), checkpoint=tmp_path)
    (tmp_path / "scan-0.npz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(ValueError, match=r"must hold whole files, got .*scan-0\.npz"):
        fit(table(), checkpoint=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.nan}, r"finite targets in 'y', got nan in row 3 of frame 1"),
        ({"y": np.inf}, r"finite targets in 'y', got inf in row 3 of frame 1"),
        ({"w": -1.0}, r"weights of at least 0 in 'w', got -1\.0 in row 3 of frame 1"),
    ],
)
def test_wrong_values_are_named_by_part_and_row(
    change: dict[str, float], message: str
) -> None:
    frame = draw(100).drop(columns="key").astype({"w": float})
    bad = frame.copy()
    for name, value in change.items():
        bad.loc[bad.index[3], [name, "w"][: 1 if name == "w" else 2]] = value
        bad.loc[bad.index[3], "w"] = value if name == "w" else 1.0
    with pytest.raises(ValueError, match=message):
        fit(lambda: iter([frame, bad]), weight="w")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weight": "z"}, "`weight` must be a column of the source, got 'z'; the fr"),
        ({"weight": "t"}, "`weight` must be a column of numbers, got 't', a column of"),
        ({"key": "y"}, "`weight` and `key` must not be used twice, got y, y"),
        ({"max_train_rows": 1}, "`max_train_rows` must be at least 10, got 1"),
        (
            {"model": plain(cv=[])},
            r"`model` must have cv=\"auto\" or a number of folds",
        ),
        ({"model": plain(recalibrate="conformal")}, "`model` must have recalibrate="),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], message: str) -> None:
    frame = table()[:50].assign(t="x")
    with pytest.raises(ValueError, match=message):
        fit(frame, **given)


def test_a_function_must_return_all_frames_at_each_call() -> None:
    once = iter(frames(draw(600), 0))
    with pytest.raises(ValueError, match=r"same rows at each pass, .* got 0 in"):
        fit(lambda: once)
    calls: list[int] = []

    def fewer() -> Iterator[pd.DataFrame]:
        calls.append(1)
        yield from frames(draw(600), 0)[: 3 if len(calls) < 3 else 2]

    with pytest.raises(ValueError, match=r"`source` must give the same rows .*got 2"):
        fit(fewer)


@pytest.mark.parametrize("name", ["scan", "sample", "thresholds"])
def test_a_function_must_return_the_same_frames(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, stream = frames(draw(600), 0), Runner.stream

    def turn(self: Any, job: Any, n_parts: int | None = None) -> Any:
        yield from stream(self, job, n_parts)
        if job.name == name:
            parts[-1] = parts[-1].sample(frac=1.0, random_state=0)

    monkeypatch.setattr(Runner, "stream", turn)
    with pytest.raises(ValueError, match=r"the same rows .* got another frame \d in"):
        fit(lambda: iter(parts), max_train_rows=200)


def test_times_are_no_features() -> None:
    frame = table()[:50].assign(day=pd.Timestamp("2020-01-01"))
    with pytest.raises(ValueError, match="got 'day', a column of times: give its"):
        fit(frame)


def test_rows_without_weight_are_absent() -> None:
    frame = table()[:50].assign(w=0)
    with pytest.raises(ValueError, match="two rows with weight, got the frame with 0"):
        fit(frame, weight="w")


def test_a_hash_is_of_the_content() -> None:
    frame = pd.DataFrame({"a": [1.5, -0.0, np.nan], "t": ["x", None, "y"]})
    kinds = {"a": "number", "t": "text"}
    own = hash_rows(dict(frame.items()), kinds)
    kept = frame.astype({"a": np.float32, "t": "category"})[["t", "a"]]
    kept.loc[1, "a"] = 0.0
    np.testing.assert_array_equal(hash_rows(dict(kept.items()), kinds), own)
    assert len(set(own.tolist())) == 3
    swapped = {"a": frame["a"].iloc[::-1], "t": frame["t"]}
    assert hash_rows(swapped, kinds)[0] != own[0]


def test_roads_that_transform_the_target_are_calibrated() -> None:
    from localexpert import Transformed

    frame = table().assign(y=np.exp(0.2 * table()["y"]))
    model = LocalExpertRegressor(
        roads=[
            Transformed(FrameRoad("center", strategy="joint", n_thresholds=4)),
            FrameRoad("center", strategy="joint", n_thresholds=4),
        ],
        center=LinearRegression(),
        random_state=0,
    )
    large = fit(frame, model=model)
    assert "unseen calibration" in large.report_.choices
