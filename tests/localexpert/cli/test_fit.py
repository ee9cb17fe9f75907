"""fit: what it says and saves, of one file or many."""

import io
import os
import re

import numpy as np
import pandas as pd

from localexpert import load
from localexpert.cli.fit import folds_in_time
from localexpert.regressor.recalibrated import seen_rows
from tests.localexpert.cli.conftest import QUICK, draw_houses, write_parts


def test_says_what_it_did_with_columns(ok, houses, tmp_path):
    words = ["--target", "price", "--fast", "--out", tmp_path / "m.zip"]
    out, lines = ok("fit", houses / "train.csv", *words)
    assert out == ""
    told = "\n".join(lines)
    for name in ("'id'", "'empty'", "'const'"):
        assert re.search(rf"warning: dropped \(.*\): .*{name}", told)
    assert "say --time sold" in told
    assert "localexpert: fitting 200 rows, 4 features" in lines
    assert f"localexpert: saved {tmp_path / 'm.zip'}" in lines
    assert lines[lines.index("") + 1].split() == ["price", "target,", "numbers"]
    assert lines[-7] == "out of fold"
    check = load(tmp_path / "m.zip").model.check_
    assert lines[-6:] == str(check).splitlines()
    assert os.listdir(tmp_path) == ["m.zip"]


def test_quiet_says_nothing_and_one_command_makes_one_file(ok, houses, tmp_path):
    words = [houses / "train.csv", "--target", "price", "--fast", "--quiet"]
    paths = [tmp_path / f"{name}.zip" for name in "abc"]
    for path, more in zip(paths, ([], [], ["--seed", "1"]), strict=True):
        assert ok("fit", *words, *more, "--out", path) == ("", [])
    a, b, c = (path.read_bytes() for path in paths)
    assert a == b != c


def test_parameters_reach_the_regressor(ok, houses, tmp_path):
    words = """--target price --thresholds-count 5 --thresholds uniform --folds 2
        --frame none --strategy shared --calibrator none --smoothing 1.5 --seed 3
        --recalibrate pit --bounds 0 inf --jobs 1 --monotone area:+1,sold.days:-1
        --monotone garden:1 --effort default --quiet"""
    path = tmp_path / "m.zip"
    assert ok("fit", houses / "train.csv", *words.split(), "--out", path) == ("", [])
    want = {"n_thresholds": 5, "thresholds": "uniform", "frame": None, "cv": 2}
    want |= {"strategy": "shared", "calibrator": None, "smoothing": 1.5, "n_jobs": 1}
    want |= {"recalibrate": "pit", "bounds": (0.0, np.inf), "random_state": 3}
    want |= {"monotone": {"area": 1, "sold.days": -1, "garden": 1}}
    got = load(path).model.get_params(deep=False)
    assert {name: got[name] for name in want} == want


def test_rows_without_target_weights_groups_and_drops(ok, write, rng, tmp_path):
    x, i = rng.uniform(size=60), np.arange(60)
    y = np.where(np.isin(i, [4, 8]), np.nan, rng.exponential(size=60) ** 3)
    groups = [f"g{k % 9}" for k in i]
    path = write({"x": x, "junk": 3 * x, "w": i % 3, "g": groups, "y": y})
    out = tmp_path / "m.zip"
    words = ["--target", "y", "--weight", "w", "--group", "g", "--drop", "junk"]
    _, lines = ok("fit", path, *words, "--fast", "--out", out)
    assert "left out 2 rows without a target 'y'" in "\n".join(lines)
    assert "'y' is never below 0, and neither is a forecast" in "\n".join(lines)
    saved = load(out)
    assert saved.reader.feature_names_ == ["x"]
    kept = i[~np.isnan(y)]
    np.testing.assert_array_equal(saved.model.oof_weights_, kept % 3)
    parts = kept % 9
    for train, test in saved.model.forecaster_.tasks_.folds:
        assert not set(parts[train]) & set(parts[test])


def test_folds_in_time_learn_from_earlier_rows_alone(ok, houses, tmp_path):
    out = tmp_path / "m.zip"
    words = ["--target", "price", "--time", "sold", *QUICK, "--out", out]
    _, lines = ok("fit", houses / "train.csv", *words)
    assert not any("say --time" in line for line in lines)
    model = load(out).model
    sold = pd.read_csv(houses / "train.csv", parse_dates=["sold"])["sold"]
    judged = np.sort(np.concatenate([test for _, test in model.cv]))
    np.testing.assert_array_equal(model.fitted_rows_, judged)
    assert len(model.cv) == 2
    for train, test in model.cv:
        assert sold[train].max() < sold[test].min()
    ok("predict", out, houses / "test.csv")


def test_equal_times_stay_together():
    times = np.repeat([3.0, 1.0, 2.0, 5.0], [4, 4, 1, 3])
    folds = folds_in_time(times, 3)
    tested = np.concatenate([test for _, test in folds])
    assert len(tested) == len(set(tested))
    for train, test in folds:
        assert times[train].max() < times[test].min()
    assert set(times[tested]) == {2.0, 3.0, 5.0}


def test_rows_without_weight_cut_no_folds_in_time(fitted, rng, tmp_path):
    x, path = rng.uniform(0.0, 9.0, 240), tmp_path / "t.csv"
    table = pd.DataFrame({"x": x, "price": x + rng.normal(size=240), "w": 1})
    absent, times = table[:100].assign(x=5.0, price=5.0, w=0), np.arange(240) * 2
    medians = []
    for more in ([], times[:100] + 1000, times[:100] - 1000):
        whole = pd.concat([table, absent[: len(more)]])
        # An index without a name, which is no feature.
        whole.set_index(np.append(times, more).astype(int)).to_csv(path)
        model = fitted(path, "--time", "column 1", "--weight", "w")[0].model
        medians.append(model.predict_dist(table[["x"]]).median())
    np.testing.assert_array_equal(medians[1:], medians[:1] * 2)


def test_more_rows_are_read_part_by_part_with_one_answer(fitted, ok, tmp_path):
    words = ["--group", "shop", "--weight", "many", "--max-train-rows", 150]
    n = np.arange(240)
    frame = draw_houses(240, 3).assign(shop=n % 40, many=1 + n % 2)
    paths = write_parts(tmp_path / "csv", frame, 3)
    csv, said = fitted(*paths, *words, "--no-sketch")
    assert said[0] == (
        "3 files, about 240 rows, more than --max-train-rows 150: read part by part, "
        "and fitted to a sample"
    )
    assert "scores out of fold are of the sample" in said
    write_parts(tmp_path / "parquet", frame, 2, "parquet")
    parquet, said = fitted(tmp_path / "parquet", *words)
    assert said[0].startswith("2 files, about 240 rows, more than --max-train-rows 150")
    assert csv.origin["rows"] == 240
    for saved, knows in ((csv, False), (parquet, True)):
        seen = seen_rows(saved.model, saved.reader.transform(frame), frame["price"])
        assert (seen.n_checked > 0) == knows
    for saved in (csv, parquet):
        assert saved.learner.check_.crps < 200.0
    one, other = (
        ok("predict", model, *paths)[0] for model in sorted(tmp_path.glob("model*.zip"))
    )
    assert one == other
    median = pd.read_csv(io.StringIO(one))["q0.5"]
    assert np.corrcoef(median, frame["price"])[0, 1] > 0.7


def test_columns_to_drop_of_several_files(fitted, tmp_path):
    paths = write_parts(tmp_path / "csv", draw_houses(200, 0), 2)
    pd.read_csv(paths[0]).drop(columns="id").to_csv(paths[0], index=False)
    saved, _ = fitted(*paths, "--drop", "id,sold,garden", "--time", "sold")
    assert saved.reader.feature_names_ == ["area", "kind"]
    assert len(saved.model.cv) == 2  # folds in time
