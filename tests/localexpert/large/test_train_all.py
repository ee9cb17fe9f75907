"""`fit_large(train="all")`: boosters that go on where the sample's have ended."""

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from distributed import Client
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from localexpert import (
    FrameRoad,
    GridRoad,
    LocalExpertRegressor,
    SharedBoosting,
    Transformed,
    fit_large,
    load,
)
from localexpert.coordinate.refinement import mean_score
from localexpert.data.dense_inputs import DenseInputs
from localexpert.explain import explain_boosting
from localexpert.large import fit_large as module
from localexpert.large.all_rows import AllRows, JudgeRows
from localexpert.large.frame_boosting import refine_frame
from localexpert.large.learn_pass import LearnPass, LearnRows
from localexpert.large.scratch import Scratch, ScratchRows
from localexpert.large.unseen_rows import UnseenRows


def plain(**parameters: Any) -> LocalExpertRegressor:
    """Return a regressor whose centre cannot know the target, quickly fitted."""
    quick: dict[str, Any] = {
        "strategy": SharedBoosting(draws=4, max_rounds=60, random_state=0),
        "center": LinearRegression(),
        "n_thresholds": 7,
        "smoothing": 0.4,
        "cv": 2,
        "random_state": 0,
    }
    return LocalExpertRegressor(**{**quick, **parameters})


def draw(n: int, seed: int = 0) -> pd.DataFrame:
    """Return rows of a curved centre and a scale that the second feature tells."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    noise = rng.standard_gamma(2.0, n) - 2.0
    frame["y"] = 2.0 * np.sin(2.0 * frame["a"]) + np.exp(0.5 * frame["b"]) * noise
    return frame


def fit(source: Any, **given: Any) -> LocalExpertRegressor:
    given = {"max_train_rows": 600, "learning_curve": False, "train": "all", **given}
    return fit_large(given.pop("model", plain()), source, "y", **given)


@functools.cache
def table() -> pd.DataFrame:
    return draw(12_000)


@functools.cache
def fitted() -> LocalExpertRegressor:
    return fit(table())


def crps(model: LocalExpertRegressor, new: pd.DataFrame) -> float:
    law = model.predict_dist(new[["a", "b"]])
    return float(law.crps(new["y"].to_numpy()).mean())


def test_all_rows_forecast_better_than_the_sample() -> None:
    new = draw(4000, seed=1)
    assert crps(fitted(), new) < 0.98 * crps(fit(table(), train="sample"), new)
    told = fitted().report_.choices["all rows"]
    assert told["chosen"].startswith("experts, of 7")
    assert told["losses"]["experts"] < 0.96 * told["losses"]["sample"]
    assert min(told["roads"][0].values()) > 0


def test_the_result_is_an_ordinary_regressor(tmp_path: Path) -> None:
    model, rows = fitted(), table()[["a", "b"]][:40]
    model.save(tmp_path / "m.zip")
    again = load(tmp_path / "m.zip")
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert repr(model) == repr(plain())
    told = explain_boosting(model, rows[:2], rows, threshold=0.0, random_state=0)
    assert np.isfinite(told.values).all()


def test_one_seed_one_answer() -> None:
    rows = table()[["a", "b"]][:40]
    again = fit(table(), model=plain(n_jobs=2))
    np.testing.assert_array_equal(again.predict(rows), fitted().predict(rows))


def test_what_the_sample_knows_is_left_as_it_is() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=9000), "b": rng.normal(size=9000)})
    frame["y"] = frame["a"] + rng.normal(size=9000)
    shared = plain(strategy="shared")
    both = [fit(frame, train=train, model=shared) for train in ("all", "sample")]
    told = both[0].report_.choices["all rows"]
    assert told["losses"][told["chosen"].partition(",")[0]] <= told["losses"]["sample"]
    assert crps(both[0], frame) < 1.002 * crps(both[1], frame)


def test_few_rows_leave_the_model_of_the_sample() -> None:
    own, alone = (fit(table()[:2400], train=train) for train in ("all", "sample"))
    assert "too few" in own.report_.choices["all rows"]["chosen"]
    rows = table()[["a", "b"]][:40]
    np.testing.assert_array_equal(own.predict(rows), alone.predict(rows))
    of = "unseen calibration"
    assert own.report_.choices[of] == alone.report_.choices[of]


@pytest.mark.parametrize(
    "y",
    [
        lambda mean, rng: rng.poisson(np.exp(0.3 * mean)),
        lambda mean, rng: np.maximum(mean + rng.normal(size=len(mean)), 0.0),
        pytest.param(
            lambda mean, rng: np.exp(mean + rng.normal(size=len(mean))),
            marks=pytest.mark.slow,
        ),
        lambda mean, rng: 1e9 + mean + rng.normal(size=len(mean)),
        pytest.param(
            lambda mean, rng: 1e-30 * (mean + rng.normal(size=len(mean))),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["counts", "zeros", "skewed", "far", "tiny"],
)
def test_targets_of_every_kind(y: Any) -> None:
    frame = table()[:6000].copy()
    frame["y"] = y(2.0 * np.sin(2.0 * frame["a"]), np.random.default_rng(0))
    frame["t"] = np.where(frame["a"] > 0.0, "up", "down")
    coded = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["t"]), remainder="passthrough"
    )
    center = make_pipeline(coded, LinearRegression())
    few = SharedBoosting(draws=2, max_rounds=12, random_state=0)
    model = plain(center=center, strategy=few)
    large = fit(frame, model=model)
    told = large.report_.choices["all rows"]
    assert told["losses"][told["chosen"].partition(",")[0]] == min(
        told["losses"].values()
    )
    assert np.isfinite(large.predict(frame[["a", "b", "t"]][:20])).all()


@pytest.mark.slow
def test_roads_in_other_coordinates_go_on() -> None:
    frame = table()[:8000].assign(y=np.exp(0.2 * table()["y"][:8000]))
    few = SharedBoosting(draws=2, max_rounds=12, random_state=0)
    roads = [
        Transformed(FrameRoad(strategy=few, n_thresholds=5)),
        FrameRoad("center", strategy=few, n_thresholds=5),
    ]
    model = LocalExpertRegressor(
        roads=roads, center=LinearRegression(), cv=2, random_state=0
    )
    told = fit(frame, model=model).report_.choices["all rows"]
    assert all(road["SharedBoosting"] > 0 for road in told["roads"])


def test_what_workers_read_is_learned_from() -> None:
    parts = [table()[start : start + 3000] for start in range(0, 12_000, 3000)]
    with Client(processes=False, dashboard_address=":0", n_workers=1) as client:
        model = fit(lambda: iter(parts), client=client)
    told, whole = (m.report_.choices["all rows"] for m in (model, fitted()))
    assert told["chosen"] == whole["chosen"]
    new = draw(4000, seed=1)
    assert crps(model, new) == pytest.approx(crps(fitted(), new), rel=0.005)


def test_a_checkpoint_keeps_what_was_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit(table(), checkpoint=tmp_path)

    def never(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(module, "train_all", never)
    model = fit(table(), checkpoint=tmp_path)
    rows = table()[["a", "b"]][:40]
    np.testing.assert_array_equal(model.predict(rows), fitted().predict(rows))
    with pytest.raises(ValueError, match="begun with another `train`"):
        fit(table(), checkpoint=tmp_path, train="sample")


def test_rows_that_judge_calibrate_and_teach_are_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: dict[str, list[Any]] = {}
    for name in ("lessons", "blocks"):
        seen[name] = []
        ask = getattr(UnseenRows, name)

        def spy(
            self: Any, *given: Any, name: str = name, ask: Any = ask, **more: Any
        ) -> Any:
            for block in ask(self, *given, **more):
                seen[name].append((block.hashes, LearnPass(self).place(block).half))
                yield block

        monkeypatch.setattr(UnseenRows, name, spy)
    frame = table().assign(key=np.arange(12_000) // 4)
    fit(frame, key="key")
    lessons, halves = map(np.concatenate, zip(*seen["lessons"], strict=True))
    held = np.concatenate([hashes for hashes, _ in seen["blocks"]])
    assert len(np.intersect1d(lessons, held)) == 0
    assert len(lessons) > 2 * len(held)
    # All rows of a key are in one half.
    half_of = dict(zip(lessons.tolist(), halves.tolist(), strict=True))
    assert all(half_of[h] == k for h, k in zip(lessons, halves, strict=True))
    assert 0.4 < halves.mean() < 0.6


def test_halves_are_placed_by_what_the_other_half_says(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    n, m = 6000, 2000

    def draw_rows(size: int, shift: float) -> LearnRows:
        codes = rng.normal(size=(size, 2))
        y = shift + np.where(codes[:, 0] > 0.0, 2.0, 0.0) + rng.normal(size=size)
        half = np.full(size, 0)
        zeros, ones = np.zeros((size, 1)), np.ones((size, 1))
        return LearnRows(codes, np.ones(size), half, y[:, None], zeros, ones)

    first, second, judges = draw_rows(n, 0.0), draw_rows(n, 6.0), draw_rows(m, 3.0)
    second.half[:] = 1
    centre = SimpleNamespace(dense_inputs_=None)
    frame = SimpleNamespace(kind_="center", centre_=centre)
    rows = AllRows.gather(
        [first, second],
        JudgeRows(None, judges.y[:, 0], judges.weight, judges),
        [],
        tmp_path,
    )
    told = refine_frame(frame, 0, rows, None, 0)
    # Of the boosters, that of the half with greater targets says more.
    levels = [mean_score([one], judges.codes).mean() for one in told.center]
    assert levels[1] > levels[0] + 1.0
    for k, (half, part) in enumerate(zip(rows.halves, (first, second), strict=True)):
        other = told.unit * mean_score([told.center[1 - k]], part.codes)
        np.testing.assert_allclose(half.center[:, 0], other, rtol=1e-12)
    both, _ = told.apply(judges.codes, np.zeros(m), np.ones(m))
    np.testing.assert_allclose(both, rows.judges.placed.center[:, 0], rtol=1e-12)
    # The step that both halves have.
    up = judges.codes[:, 0] > 0.0
    assert 1.4 < both[up].mean() - both[~up].mean() < 2.1


def test_nets_learn_anew_and_are_blended(tmp_path: Path, rng: Any) -> None:
    codes = rng.normal(size=(9000, 2))
    truth = np.sin(2.0 * codes[:, 0])
    y = (truth + 0.3 * rng.normal(size=9000))[:, None]
    zeros, ones = np.zeros((9000, 1)), np.ones((9000, 1))
    half = np.arange(9000) % 2
    whole = LearnRows(codes, ones[:, 0], half, y, zeros, ones)
    judged = np.arange(9000) >= 8000
    judges = whole.take(judged)
    rows = AllRows.gather(
        [whole.take(~judged)],
        JudgeRows(None, judges.y[:, 0], judges.weight, judges),
        [],
        tmp_path,
    )
    centre = SimpleNamespace(dense_inputs_=DenseInputs.learn(codes, []))
    frame = SimpleNamespace(kind_="center", centre_=centre)
    told = refine_frame(frame, 0, rows, None, 0)
    assert 0.9 < told.share <= 1.0
    assert [net.predict(codes[:1]).shape for net in told.nets] == [(1,)] * 2
    for number, part in enumerate(rows.halves):
        own = told.nets[1 - number].predict(centre.dense_inputs_.transform(codes))
        kept = (half == number) & ~judged
        left = part.center[:, 0] - told.share * own[kept]
        assert np.abs(left).mean() < 0.1
        assert np.abs(part.center[:, 0] - truth[kept]).mean() < 0.12


def test_scratch_rows_are_those_written(tmp_path: Path, rng: Any) -> None:
    rows = rng.normal(size=(101, 3))
    rows[5, 1] = np.nan
    scratch = Scratch(tmp_path / "rows", 3)
    for part in np.split(rows, [0, 40, 41]):
        scratch.append(part)
    np.testing.assert_array_equal(scratch.read(39, 101), rows[39:])
    batches = [codes for *_, codes in scratch.batches()]
    np.testing.assert_array_equal(np.concatenate(batches), rows)
    extra = rng.normal(size=303)
    repeated = np.column_stack([np.repeat(rows, 3, axis=0), extra])
    held = ScratchRows(scratch, 3, lambda i, j, codes: np.c_[codes, extra[i:j]])
    assert len(held) == 303
    for start, stop in [(0, 303), (1, 2), (4, 11), (299, 303), (6, 9)]:
        np.testing.assert_array_equal(held[start:stop], repeated[start:stop])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"train": "some"}, "`train` must be one of 'sample', 'all', got 'some'"),
        (
            {"model": plain(strategy="joint")},
            r"`train` must be \"sample\" where .* got 'joint' of LocalExpertRegressor",
        ),
        (
            {"model": plain(strategy="auto", expert=LogisticRegression())},
            "got LogisticRegression of LocalExpertRegressor",
        ),
        (
            {"model": LocalExpertRegressor(roads=[FrameRoad(), GridRoad()])},
            "got 'deep' of grid",
        ),
        (
            {
                "model": LocalExpertRegressor(
                    roads=Transformed(FrameRoad(strategy="independent"))
                )
            },
            "got 'independent' of transformed",
        ),
    ],
)
def test_what_cannot_learn_from_all_rows_is_refused(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fit(table()[:50], **given)
