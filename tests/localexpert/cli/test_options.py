"""Options: every one is there; mistakes are one line, and nothing is half-written."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibration import PlattCalibrator, SoftmaxCalibrator
from calibration.storage import load, save
from localexpert.cli.main import main, make_parser
from localexpert.regressor.regressor import LocalExpertRegressor
from tests.localexpert.cli.conftest import QUICK

READING = "--delimiter --decimal --thousands --encoding --max-unpacked"
# What scripts may say, command by command: nothing of it may go.
OPTIONS = {
    "fit": """table --target --out --seed --jobs --max-train-rows --drop --weight
        --group --missing --categories --date-order --fast --thresholds-count
        --thresholds --frame --strategy --calibrator --folds --smoothing --recalibrate
        --bounds --monotone --time --event --effort --no-sketch""",
    "inspect": "model --json",
    "predict": """model table --out --quantiles --interval --exceed --keep --var --es
        --tail --total --digits""",
    "evaluate": "model table --target --json",
    "report": """model table --target --out --train --max-rows --title --unit --id
        --coverage --groups --var --pdf-friendly""",
    "monitor": """model table --state --target --alpha --tolerance --thresholds --score
        --label --positive --fitted-rows --picture --json""",
    "recalibrate": """model table --out --state --action --method --by --target --score
        --label --positive --seed""",
    "calibrate": """table --score --label --positive --classes --new --method --scale
        --out --save --report --folds --seed""",
    "apply": """calibrator table --score --label --positive --classes --interval
        --out""",
    "warm": "",
}


@pytest.fixture(scope="module")
def commands():
    """Return the parser of each command."""
    return make_parser()._subparsers._group_actions[0].choices


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_is_there(commands, name):
    actions = commands[name]._actions
    found = {text for one in actions for text in one.option_strings or [one.dest]}
    reading = "" if name in ("inspect", "warm") else READING
    words = f"-h --help --quiet {OPTIONS[name]} {reading}"
    assert found >= set(words.split())
    assert all(one.help for one in actions)


@pytest.mark.parametrize("name", OPTIONS)
def test_help_is_a_page_with_examples_that_can_be_read(commands, name, capsys):
    assert main([name, "--help"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 88
    lines = re.findall(
        r"^  (?:RUN )?localexpert (.*)$", page.replace("\\\n", " "), re.M
    )
    assert lines
    for line in lines:
        words = shlex.split(re.split(r" \|\|? | > | && ", line)[0])
        commands[words[0]].parse_args(words[1:])


def test_help_of_all_and_version_end_well(commands, capsys):
    assert set(commands) == set(OPTIONS)
    assert main(["--help"]) == 0
    page = capsys.readouterr().out
    assert all(f"\n    {name}" in page for name in OPTIONS)
    assert main(["--version"]) == 0


def test_lists_have_commas_and_quotes(commands):
    words = ["m", "t", "--keep", 'a, "b, c",d', "--keep", "e", "--exceed", "-1,2"]
    options = commands["predict"].parse_args(words)
    assert options.keep == ["a", "b, c", "d", "e"]
    assert options.exceed == [-1.0, 2.0]


# What is said unless a case says it itself.
USUAL = {
    "fit": "--target y --out m.zip",
    "report": "--out r.html",
    "recalibrate": "--out r.zip",
    "calibrate": "--score s --label y",
    "apply": "--score s",
    "monitor": "--state s.zip",
}
CASES = """
fit good.csv --target Y | good.csv has no target 'Y'; its columns are 'x', 'y'
fit good.csv --weight v | good.csv has no weight 'v'
fit good.csv --drop x,v | good.csv has no column to drop 'v'
fit good.csv --categories y | --categories must name columns to learn from, got 'y'
fit good.csv --drop x,kind,neg,zero,gap,some,once | has no column to learn 'y' from
fit good.csv --drop y | target 'y' cannot have another role as well
fit good.csv --weight neg | weight 'neg' must hold numbers from 0 on, got '-1' in line 2
fit good.csv --weight zero | weight 'zero' must not be 0 in every row
fit good.csv --weight gap | must hold numbers from 0 on, got '' in line 2 of good.csv
fit good.csv --group gap | group 'gap' has a gap in line 2 of good.csv
fit good.csv --group kind --missing B | group 'kind' has a gap in line 2 of good.csv
fit good.csv --time kind | --time must name dates or numbers, got words in 'kind'
fit good.csv --time each | --time must name dates or numbers, got words in 'each'
fit good.csv --time zero | --time must have two different times at least
fit good.csv --time x --weight once | --time must have two different times at least
fit good.csv --time some | --time must not have gaps, got '' in line 3
fit good.csv --time x --group kind | --group deals folds by groups and --time by order
fit good.csv --event v | good.csv has no event 'v'; its columns are
fit good.csv --event kind | event 'kind' must hold yes or no, true or false, or 1 or 0
fit good.csv --event y | event 'y' cannot have another role as well
fit good.csv --lower x | --lower and --upper go together, and without --target and --ev
fit good.csv --lower x --upper y | go together, and without --target and --event
fit good.csv --time y | target 'y' cannot be the time as well
fit good.csv --folds 31 --fast | `cv` must not be greater than the number of rows
fit good.csv --monotone rooms:+1 | `monotone` must name columns of `X`
fit good.csv --monotone x:+1 --monotone x:-1 | --monotone must name each column once, go
fit good.csv --out no/m.zip | cannot write --out 'no/m.zip': No such file or directory
fit good.csv --out good.csv | is the same file as 'good.csv'
fit good.csv --out - | --out must be a file
fit good.csv --max-train-rows 20 --time x | --time needs a fit in memory, got 1 file,
fit good.csv --max-train-rows 20 --event x | --event needs a fit in memory, got 1 file,
fit good.csv --max-train-rows 20 --recalibrate none | --recalibrate none needs a fit in
fit good.csv --max-train-rows 20 --recalibrate conformal | --recalibrate conformal needs
fit good.csv new.csv --drop id,dya | good.csv has no column to drop 'dya'
fit good.csv new.csv --drop id,dya --max-train-rows 20 | good.csv has no column to drop
fit - --max-train-rows 20 | --max-train-rows needs files, whose rows are counted first
predict - good.csv | a model must be a file: only tables are read from standard input
predict half.zip new.csv | half.zip is no sound model of `localexpert fit`
predict platt.zip new.csv | holds a PlattCalibrator, not a model of `localexpert fit`
predict model.zip new.csv --keep name | new.csv has no column to keep 'name'
predict model.zip new.csv --keep mean | --keep 'mean' has the name of a column of foreca
predict model.zip new.csv --total rows | --total 'rows' has the name of a column of fore
predict model.zip new.csv --total garden | column to sum by 'garden' has a gap in line
predict huts.zip new.csv --total kind | column to sum by 'kind' has a gap in line
predict model.zip new.csv --total kind --keep id | --keep copies columns of rows
predict grouped.zip tents.csv | cannot forecast tents.csv: `X` must hold groups of the
predict model.zip new.csv --out t.xls | --out must end in .csv, .tsv, .csv.gz, .tsv.gz,
evaluate model.zip unsold.csv | unsold.csv has no row with a target 'price'
evaluate grouped.zip tents.csv | cannot forecast tents.csv: `X` must hold groups of the
report grouped.zip tents.csv | cannot report on tents.csv: `X` must hold groups of the
report model.zip - --train - | standard input can be one table only: give a file after
calibrate scores.csv --label one | holds 'a' alone: say by --positive which class
calibrate scores.csv --positive 2 | --positive must be one of '0', '1', got '2'
calibrate scores.csv --method best | --method: must be one of abb, auto,
calibrate scores.csv --method matrix | --method matrix is of several classes: --score
calibrate scores.csv --classes 0,1 | --classes says nothing of one column of --score
calibrate scores.csv --out c.csv --report c.csv | 'c.csv' is the same file as
calibrate - --new - | standard input can be one table only: the other must be a file
calibrate few.csv | few.csv must hold two labels twice each to be calibrated out of fold
calibrate done.csv | has a column 'calibrated' already; rename it
calibrate scores.csv --score id | score 'id' must lie in [0, 1] (see --scale of cal
calibrate scores.csv --score s,t | scores 's', 't' must add up to 1 (see --scale
calibrate scores.csv --score s_0,s_2 | must name a column for each of '0', '1', whose na
calibrate scores.csv --score s_0,s_1 --classes 0,0 | --classes name the label of each
calibrate scores.csv --score s_0,s_0 | --score must name a column, or one for each class
calibrate scores.csv --score , | and each once, got none
calibrate scores.csv --score s_0,s_1 --positive 1 | --positive says nothing of several
calibrate scores.csv --score s_0,s_1 --scale real | --scale real is an order of two clas
calibrate scores.csv --score s_0,s_1 --report r.html | --report is a page on two classes
apply model.zip scores.csv | holds a TableModel, not a calibrator of scores
apply platt.zip scores.csv --interval | tells one, such as venn_abers, isotonic or
apply platt.zip scores.csv --positive 1 | --positive says which --label is meant
apply platt.zip scores.csv --score s_0,s_1 | --score must name one column for a calibrat
apply three.zip scores.csv | --score must name a column for each of 'a', 'b', 'c',
apply three.zip scores.csv --score s_0,s_1,s --classes a,b,d | or --classes name the lab
recalibrate model.zip new.csv --state model.zip | is no sound state of `localexpert mo
recalibrate model.zip train.csv | the model has learned from all of these rows: give new
recalibrate model.zip new.csv --state s.json | there is no alarm, so nothing is to be do
recalibrate huts.zip new.csv --state s.json | is that of another model than 'huts.zip'
recalibrate platt.zip scores.csv --score s --label y --by s | --by is of a model
recalibrate platt.zip scores.csv --score s --label y --action shift | --action is of a m
recalibrate platt.zip scores.csv --score s --label y --target y | --target is of a mo
monitor huts.zip new.csv --state s.json | is that of another model than 'huts.zip'
monitor model.zip unread.csv --state s.json | target 'price' must hold numbers
monitor model.zip new.csv --state s.json --alpha .1 | --alpha differs from that of --sta
monitor model.zip new.csv --state s.json --thresholds 5 | --thresholds differs from that
monitor grouped.zip tents.csv | cannot forecast tents.csv: `X` must hold groups of the
monitor model.zip new.csv --picture p.x | --picture must end in .png, .pdf, .svg, got
monitor model.zip new.csv --score s | --score is of a calibrator, not of a model, got
monitor model.zip new.csv --fitted-rows 5 | --fitted-rows is of a calibrator, not of a
monitor platt.zip scores.csv | --score must name a column: platt.zip is a calibrator
monitor platt.zip scores.csv --score s | --label must name a column: platt.zip is a
monitor platt.zip scores.csv --score s,t --label y | --score must name one column for
monitor platt.zip scores.csv --score s --label y --target y | --target is of a model, no
monitor platt.zip scores.csv --score s --label one | say by --positive which class is me
monitor platt.zip scores.csv --score s --label y --positive 0 --state p.json | differs
monitor platt.zip scores.csv --score s --label three --state p.json | got 3: '0', '1', '
monitor platt.zip scores.csv --score s --label gap | scores.csv has no row with a label
fit t --drop '"a' | --drop: must be a list such as A,B
fit t --folds 1 | --folds: must be a whole number from 2 on
fit t --seed x | --seed: must be a whole number from 0 on
fit t --jobs 0 | --jobs: must be a whole number other than 0
fit t --smoothing x | --smoothing: must be a number, auto,
fit t --effort 0 | --effort: must be quick, default, best, or
fit t --monotone x:2 | --monotone: must be columns with +1 or
fit t --delimiter :: | --delimiter: must be one character
fit t --thousands x | --thousands: must be one of comma, point
fit t --encoding x | --encoding: must be the name of an enco
fit t --max-unpacked 0 | --max-unpacked: must be a number above
predict m t --quantiles .5,2 | must lie between 0 and 1
predict m t --exceed inf | must be a number, got 'inf'
monitor m t --tolerance -1 | must be a number from 0 on
fit none --target y --out m --bounds -inf -1e3 | cannot read 'none': No such file
"""


@pytest.fixture(scope="module")
def place(houses, tmp_path_factory):
    """Return a folder with sound and unsound files of all kinds."""
    folder = tmp_path_factory.mktemp("mistakes")
    n = np.arange(30)
    good = pd.DataFrame({"x": n, "y": n * n % 17, "kind": np.where(n % 2, "a", "b")})
    good = good.assign(
        neg=-1, zero=0, gap="", once=1 * (n == 3), some=np.where(n == 1, "", n % 7)
    )
    good["each"] = [f"day {i}" for i in n]
    n = np.arange(40)
    s, y = n / 40, n * 3 % 7 % 2
    scores = pd.DataFrame({"id": n, "s": s, "s_0": 1 - s, "s_1": s, "s_2": s, "y": y})
    scores = scores.assign(one="a", gap="", t=0.5, three=n % 3)
    new = pd.read_csv(houses / "test.csv", dtype=str, keep_default_na=False)
    tables = {
        "good": good,
        "scores": scores,
        "few": scores[:2].assign(y=[0, 1]),
        "done": scores.assign(calibrated=1),
        "new": new,
        "unsold": new.assign(price=""),
        "unread": new.assign(price="dear"),
        "tents": new.assign(kind=["tent", "", *new["kind"][2:]]),
    }
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    for name in ("model.zip", "train.csv"):
        shutil.copy(houses / name, folder)
    model = load(folder / "model.zip")
    model.reader.missing = ["hut"]
    save(model, folder / "huts.zip")
    data = (folder / "model.zip").read_bytes()
    (folder / "half.zip").write_bytes(data[: len(data) // 2])
    PlattCalibrator().fit(s, y).save(folder / "platt.zip")
    p = np.eye(3)[n % 3] * 0.4 + 0.2
    labels = np.array(["a", "b", "c"])[n * 2 % 3]
    SoftmaxCalibrator(classes=["a", "b", "c"]).fit(p, labels).save(folder / "three.zip")
    for line in (
        "recalibrate model.zip new.csv --by kind --out grouped.zip",
        "monitor model.zip new.csv --state s.json",
        "monitor platt.zip scores.csv --score s --label y --tolerance 1 --state p.json",
    ):
        words = [folder / word if "." in word[1:] else word for word in line.split()]
        assert main([*map(str, words), "--quiet"]) == 0
    return folder


@pytest.mark.parametrize("case", CASES.strip().splitlines())
def test_mistakes_are_one_line_and_write_nothing(place, refused, monkeypatch, case):
    monkeypatch.chdir(place)
    line, message = case.split(" | ")
    words = shlex.split(line)
    usual = shlex.split(USUAL.get(words[0], ""))
    for option, value in zip(usual[::2], usual[1::2], strict=True):
        words += [] if option in words else [option, value]
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert message in refused(*words)
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def fail_with(error):
    def fail(*_, **__):
        raise error

    return fail


def test_what_the_system_does_is_one_line(place, refused, monkeypatch, tmp_path):
    monkeypatch.chdir(place)
    words = ["fit", "good.csv", "--target", "y", *QUICK, "--out", tmp_path / "m.zip"]
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_with(OSError(28, "No space left on device")))
        assert "No space left on device" in refused(*words)
    with monkeypatch.context() as patch:
        patch.setattr("localexpert.reading.files.join_tables", fail_with(MemoryError()))
        assert "not enough memory for this table" in refused(*words)
    assert os.listdir(tmp_path) == []


def test_interruption_is_quiet(place, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(place)
    monkeypatch.setattr(LocalExpertRegressor, "fit", fail_with(KeyboardInterrupt()))
    words = ["fit", "good.csv", "--target", "y", "--quiet"]
    assert main([*words, "--out", str(tmp_path / "m.zip")]) == 130
    assert capsys.readouterr() == ("", "")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="processes just end there")
def test_a_process_that_is_ended_leaves_nothing(place, tmp_path):
    words = ["predict", place / "model.zip", "-", "--out", tmp_path / "f.csv"]
    with subprocess.Popen(
        [sys.executable, "-m", "localexpert", *words], stdin=subprocess.PIPE
    ) as process:
        while process.poll() is None and not os.listdir(tmp_path):
            time.sleep(0.05)
        process.terminate()
        assert process.wait() == 143
    assert os.listdir(tmp_path) == []


def test_as_a_process(tmp_path):
    """No traceback, the code, and one line; also for a name that is no UTF-8."""
    done = subprocess.run(
        [sys.executable, "-m", "localexpert", "fit", b"no\xff.csv"]
        + ["--target", "y", "--out", str(tmp_path / "m.zip")],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"localexpert: error: cannot read ")
    assert done.stderr.count(b"\n") == 1
