"""`fit --checkpoint` and `--client`: fits of many rows, stopped and helped."""

import json

import pytest
from distributed import LocalCluster
from distributed.comm import CommClosedError

from localexpert import load
from localexpert.cli import cells, cluster
from localexpert.cli.console import UserError
from localexpert.large.passes import Runner
from tests.localexpert.cli.conftest import QUICK

LARGE = ["--max-train-rows", 100]
HERE = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}


@pytest.fixture(scope="module")
def address():
    """Return that of the scheduler of two workers."""
    with LocalCluster(n_workers=2, threads_per_worker=1, **HERE) as held:
        yield held.scheduler_address


@pytest.mark.parametrize("stage", ["sample", "recalibration"])
def test_a_fit_that_was_stopped_goes_on(
    fitted, run, sales, tmp_path, monkeypatch, stage
):
    paths, _ = sales(3)
    whole, _ = fitted(*paths, *LARGE)
    kept, out = tmp_path / "kept", tmp_path / "stopped.zip"
    words = ["--target", "y", *QUICK, *LARGE, "--checkpoint", kept]
    stream = Runner.stream

    def stop(self, job, n_parts=None):
        for number, result in enumerate(stream(self, job, n_parts)):
            if (job.name, number) == (stage, 1):
                raise KeyboardInterrupt
            yield result

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "stream", stop)
        code, _, lines = run("fit", *paths, *words, "--out", out)
    assert code == 130
    assert not out.exists()
    assert any("keeps what is finished, for the same call" in line for line in lines)
    done = sorted(path.name for path in kept.rglob("*.npz"))
    assert sum(name.startswith(stage) for name in done) == 2
    code, _, lines = run("fit", *paths, *words, "--out", out)
    assert code == 0
    models = "1 model" if stage == "recalibration" else "0 models"
    told = f"going on from --checkpoint {kept}: {len(done)} results of parts and"
    assert f"localexpert: {told} {models} there" in lines
    again = load(out)
    assert again.origin.scores == whole.origin.scores
    assert again.schema == whole.schema
    _, one, _ = run("predict", out, paths[0])
    _, other, _ = run("predict", tmp_path / "model0.zip", paths[0])
    assert one == other


def test_another_call_is_refused_by_name(refused, run, sales, tmp_path, monkeypatch):
    paths, _ = sales(3)
    kept, out = tmp_path / "kept", tmp_path / "m.zip"

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "run", stop)
        words = ["--target", "y", *LARGE, "--checkpoint", kept, "--out", out]
        assert run("fit", *paths, *words, "--bounds", "none", "inf")[0] == 130
    before = {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}

    def refuse(*more, tables=paths):
        return refused("fit", *tables, *words, *more)

    begun = f"--checkpoint {str(kept)!r} was begun with another "
    for more, name in {
        (): "--bounds",
        ("--bounds", "0", "none"): "--bounds",
        ("--seed", 1): "--seed",
        ("--group", "shop"): "--group",
        ("--fast",): "--fast",
        ("--thresholds-count", 4): "--thresholds-count",
        ("--monotone", "x:+1"): "--monotone",
        ("--max-train-rows", 90): "--max-train-rows",
        ("--drop", "many"): "--drop",
        ("--decimal", ","): "--decimal",
    }.items():
        same = ["--bounds", "none", "none"] if more and name != "--bounds" else []
        assert refuse(*same, *more).startswith(f"{begun}{name}: repeat the call")
    said = refuse("--bounds", "none", "none", tables=paths[:2])
    assert said.startswith(f"{begun}list of files")
    assert before == {path: path.read_bytes() for path in before}
    (kept / "call.json").write_text("{", encoding="utf-8")
    assert refuse().startswith(f"cannot read --checkpoint {str(kept)!r}: ")


def test_changed_rows_are_not_taken_for_the_same(refused, run, sales, tmp_path):
    paths, _ = sales(2)
    kept, out = tmp_path / "kept", tmp_path / "m.zip"
    words = ["--target", "y", *QUICK, *LARGE, "--checkpoint", kept, "--out", out]
    assert run("fit", *paths, *words)[0] == 0
    sales(2, change=lambda part, number: part.assign(x=part["x"] + number))
    said = refused("fit", *paths, *words)
    assert "`checkpoint` must be of the same `source`" in said
    assert "part1.csv, lines from 2 on was another one" in said


def test_a_folder_of_something_else_is_refused(refused, sales, tmp_path):
    paths, _ = sales(2, "parquet")
    words = ["--target", "y", "--out", tmp_path / "m.zip", *LARGE, "--checkpoint"]
    for other in (tmp_path / "parquet2", paths[0]):
        said = refused("fit", *paths, *words, other)
        assert said == (
            "--checkpoint must be a new or empty folder, or that of such a call, got "
            f"{str(other)!r}"
        )


def test_no_rows_are_no_matter_of_the_road(refused, sales, tmp_path):
    paths, _ = sales(2, change=lambda part, _: part.iloc[:0])
    words = ["--target", "y", "--out", tmp_path / "m.zip", *LARGE]
    said = refused("fit", *paths, *words, "--checkpoint", tmp_path / "kept")
    assert said.endswith("part0.csv has a header but no rows")


def test_bad_columns_leave_no_folder(refused, sales, tmp_path):
    paths, _ = sales(2)
    kept = tmp_path / "kept"
    words = ["--out", tmp_path / "m.zip", *LARGE, "--checkpoint", kept]
    assert "has no target 'z'" in refused("fit", *paths, "--target", "z", *words)
    assert not kept.exists()


@pytest.mark.parametrize("option", ["--checkpoint", "--client"])
def test_a_fit_in_memory_takes_neither(refused, sales, tmp_path, option):
    paths, _ = sales(2)
    words = ["--target", "y", "--out", tmp_path / "m.zip", option, tmp_path / "kept"]
    assert refused("fit", *paths, *words) == (
        f"{option} needs a fit part by part, got 2 files, about 240 rows, no more than "
        "--max-train-rows 250000; leave it out, or say a smaller --max-train-rows"
    )
    assert not (tmp_path / "kept").exists()


def test_a_cluster_helps_and_changes_nothing(fitted, run, sales, tmp_path, address):
    paths, _ = sales(3)
    alone, _ = fitted(*paths, *LARGE)
    helped, said = fitted(*paths, *LARGE, "--client", address)
    assert f"passes are made by 2 workers of --client {address!r}" in said
    assert helped.origin.scores == alone.origin.scores
    files = [tmp_path / f"model{number}.zip" for number in (0, 1)]
    one, other = (run("predict", file, paths[0])[1] for file in files)
    assert one == other


def test_a_cluster_without_workers_is_refused(refused, sales, tmp_path):
    words = ["--target", "y", *LARGE, "--out", tmp_path / "m.zip"]
    with LocalCluster(n_workers=0, **HERE) as held:
        said = refused("fit", *sales(2)[0], *words, "--client", held.scheduler_address)
    assert said.endswith("must have workers, got a scheduler without any")


def test_a_cluster_that_is_not_there_is_one_line(refused, sales, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE", 0.1)
    words = ["--target", "y", *LARGE, "--out", tmp_path / "m.zip", "--client"]
    said = refused("fit", *sales(2)[0], *words, "tcp://localhost:1")
    assert said.startswith("cannot reach --client 'tcp://localhost:1': ")
    said = refused("fit", *sales(2)[0], *words, "anywhere")
    assert said.startswith("cannot reach --client 'anywhere': ")


def test_a_cluster_that_goes_away_is_one_line(address):
    gone = CommClosedError("gone")
    with (
        pytest.raises(UserError, match=r"^lost --client 'tcp://.*': gone$"),
        cluster.connected(address),
    ):
        raise gone


def test_without_dask_the_extra_is_named(refused, sales, tmp_path, monkeypatch):
    real = cells.importlib.import_module

    def lacking(name):
        if name == "distributed":
            raise ModuleNotFoundError(name)
        return real(name)

    monkeypatch.setattr(cells.importlib, "import_module", lacking)
    words = ["--target", "y", *LARGE, "--out", tmp_path / "m.zip", "--client", "a:1"]
    assert refused("fit", *sales(2)[0], *words) == (
        '--client needs Dask: pip install "localexpert[dask]"'
    )


def test_what_is_kept_can_be_read(run, sales, tmp_path):
    kept = tmp_path / "kept"
    words = ["--target", "y", *QUICK, *LARGE, "--checkpoint", kept]
    assert run("fit", *sales(2)[0], *words, "--out", tmp_path / "m.zip")[0] == 0
    told = json.loads((kept / "call.json").read_text(encoding="utf-8"))
    assert told["--target"] == "y"
    assert told["--max-train-rows"] == 100
    assert told["list of files"] == ["part0.csv", "part1.csv"]
    assert not {"--out", "--jobs", "--quiet", "--checkpoint"} & set(told)
