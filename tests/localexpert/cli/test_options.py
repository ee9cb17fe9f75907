"""Pages of help: every option that was ever there, and an example that is a command."""

import re
import shlex

import pytest

from localexpert.cli.main import main, make_parser

READING = "--delimiter --decimal --thousands --encoding --max-unpacked"
# What scripts may say, command by command: nothing of it may go.
OPTIONS = {
    "fit": """table --target --out --seed --jobs --max-train-rows --drop --weight
        --group --missing --categories --date-order --fast --thresholds-count
        --thresholds --frame --strategy --calibrator --folds --smoothing --recalibrate
        --bounds --monotone --time --effort --no-sketch""",
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


def test_every_command_is_listed(commands):
    assert set(commands) == set(OPTIONS)


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


def test_help_of_all_and_version_end_well(capsys):
    assert main(["--help"]) == 0
    page = capsys.readouterr().out
    assert all(f"\n    {name}" in page for name in OPTIONS)
    assert main(["--version"]) == 0


def test_lists_have_commas_and_quotes(commands):
    words = ["m", "t", "--keep", 'a, "b, c",d', "--keep", "e", "--exceed", "-1,2"]
    options = commands["predict"].parse_args(words)
    assert options.keep == ["a", "b, c", "d", "e"]
    assert options.exceed == [-1.0, 2.0]
