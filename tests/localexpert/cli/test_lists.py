"""Lists on the command line: commas, blanks, quotes, and what stands behind them."""

import pytest

from localexpert.cli.main import make_parser

PREDICT = ["predict", "m.zip", "t.csv"]


def parse(*words):
    return make_parser().parse_args([*PREDICT, *words])


@pytest.mark.parametrize(
    "words", [["1,2", "3"], ["1", "2", "3"], ["1,2,3"], ["1, 2", ",3"]]
)
def test_commas_and_blanks_are_one(words):
    assert parse("--exceed", *words).exceed == [1.0, 2.0, 3.0]
    assert parse("--keep", *words).keep == ["1", "2", "3"]


def test_levels_are_in_order_and_once():
    assert parse("--quantiles", ".9", ".1,.5,.9").quantiles == [0.1, 0.5, 0.9]
    assert parse("--quantiles", ".9", "--quantiles", ".1").quantiles == [0.1, 0.9]
    assert parse().quantiles is None


def test_an_option_that_is_given_twice_adds_to_its_list():
    assert parse("--keep", "a", "--keep", "b,c").keep == ["a", "b", "c"]
    assert parse("--keep", "a").keep == ["a"]


def test_names_with_commas_stand_in_quotes():
    assert parse("--keep", '"size, m",b', '"a ""b"""').keep == [
        *("size, m", "b", 'a "b"')
    ]
    assert parse("--keep", "").keep == []


def test_negative_numbers_are_no_options():
    assert parse("--exceed", "-1", "-2.5").exceed == [-1.0, -2.5]
    assert parse("--exceed", "-1,-2").exceed == [-1.0, -2.0]


def test_a_list_ends_before_two_dashes():
    words = ["predict", "--keep", "a", "b", "--", "m.zip", "t.csv"]
    options = make_parser().parse_args(words)
    assert (options.keep, options.model) == (["a", "b"], "m.zip")
    assert options.table == ["t.csv"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["predict", "--keep", "id", "m.zip", "t.csv"],
            "required: model, table; --keep took id m.zip t.csv: write lists with "
            "commas, or -- after (see localexpert predict --help)",
        ),
        (
            ["predict", "--exceed", "1", "m.zip", "t.csv"],
            "argument --exceed: must be a number, got 'm.zip'; --exceed took 1 m.zip "
            "t.csv: write lists with commas, or -- after",
        ),
        (["fit", "--drop", "a", "t.csv"], "--drop took a t.csv"),
        ([*PREDICT, "--keep", '"a'], "argument --keep: must be a list such as A,B"),
        ([*PREDICT, "--quantiles", ".5,2"], "must lie between 0 and 1, got '2'"),
    ],
)
def test_words_that_a_list_must_not_take(refused, words, message):
    assert message in refused(*words)


def test_other_mistakes_are_not_the_lists(refused):
    message = refused(*PREDICT, "--keep", "a", "b", "--interval", "90")
    assert "took" not in message
