"""Single columns: scores, labels, weights and groups."""

import numpy as np
import pandas as pd
import pytest

from localexpert.reading import TableError, labels


def table(**columns):
    frame = pd.DataFrame(columns)
    frame.index = pd.Index(np.arange(2, len(frame) + 2), name="line")
    frame.attrs["path"] = "t.csv"
    return frame


def test_numbers_and_words_of_a_column():
    frame = table(w=["1", "", "3.5"], g=[" a ", "b", "a"], i=[1.0, 2.0, 10.0])
    np.testing.assert_array_equal(labels.read_numbers(frame, "w"), [1, np.nan, 3.5])
    assert labels.find_gaps(frame, "w").tolist() == [False, True, False]
    assert labels.find_gaps(frame, "g", missing=["B"]).tolist() == [False, True, False]
    assert labels.read_words(frame, "g").tolist() == ["a", "b", "a"]
    assert labels.read_words(frame, "i").tolist() == ["1", "2", "10"]
    assert labels.read_numbers(table(w=["1,5", "2"]), "w").tolist() == [1.5, 2.0]
    assert labels.read_numbers(table(w=["1,500", "2"]), "w", decimal=",").tolist() == [
        1.5,
        2,
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("v", "t.csv has no weight 'v'; its columns are 'w', 'g'"),
        ("g", "weight 'g' must hold finite numbers, got 'a' in line 2 of t.csv"),
        ("few", "weight 'few' must hold finite numbers, got 'x' in line 41 of t.csv"),
    ],
)
def test_a_column_of_numbers_alone(name, message):
    few = [*map(str, range(39)), "x"]
    frame = table(w=["1"] * 40, g=["a"] * 40, few=few)
    with pytest.raises(TableError, match=message):
        labels.read_numbers(frame, name, "weight")


def test_what_breaks_a_rule_is_shown():
    frame = table(g=["a", "NA"], w=[-1.0, 2.0])
    with pytest.raises(TableError, match=r"group 'g' has a gap in line 3 of t\.csv"):
        labels.read_words(frame, "g", "group")
    with pytest.raises(
        TableError, match=r"must be 0, got '-1' in line 2 of t\.csv; so"
    ):
        labels.refuse_if(np.array([True, True]), frame, "w", "must be 0", "; so")
    labels.refuse_if(np.array([False, False]), frame, "w", "must be 0")


class TestScores:
    def test_of_one_and_of_several_columns(self):
        frame = table(a=["0.25", "1"], b=["0.7501", "0"])
        assert labels.read_scores(frame, ["a"]).tolist() == [0.25, 1.0]
        got = labels.read_scores(frame, ["a", "b"], probability=True)
        np.testing.assert_allclose(got.sum(axis=1), 1.0, rtol=1e-15)

    @pytest.mark.parametrize(
        ("cells", "message"),
        [
            (["0.5", ""], "score 'a' must not have gaps, got '' in line 3"),
            (["0.5", "1.5"], "score 'a' must lie in .0, 1. or logits, got '1.5'"),
            (["0.5", "0.4"], "scores 'a', 'b' must add up to 1 or logits, got 0.9"),
        ],
    )
    def test_that_are_none(self, cells, message):
        frame = table(a=cells, b=["0.5", "0.5"])
        with pytest.raises(TableError, match=message):
            labels.read_scores(frame, ["a", "b"], probability=True, hint="or logits")


@pytest.mark.parametrize(
    ("held", "positive", "known", "want"),
    [
        (["0", "1"], None, [], ("0", "1")),
        (["10", "9"], None, [], ("9", "10")),
        (["no", "yes"], None, [], ("no", "yes")),
        (["no", "yes"], "no", [], ("yes", "no")),
        (["x"], "x", [], (None, "x")),
        (["x"], "y", [], ("x", "y")),
        (["x"], "x", ["y"], ("y", "x")),
        ("abc", None, [], "must hold two different values, got 3: 'a', 'b', 'c'"),
        ("b", "a", ["a", "c"], "must hold two different values, got 3: 'a', 'b', 'c'"),
        ("a", None, [], "holds 'a' alone: say by --positive which class is meant"),
        ("ab", "c", [], "--positive must be one of 'a', 'b', got 'c'"),
    ],
)
def test_two_labels(held, positive, known, want):
    if isinstance(want, tuple):
        assert labels.find_two_labels(held, positive, known) == want
    else:
        with pytest.raises(TableError, match=want):
            labels.find_two_labels(held, positive, known)


@pytest.mark.parametrize(
    ("columns", "held", "classes", "found"),
    [
        (["b", "a"], "ab", [], "ba"),
        (["p_ab", "p_b"], ["b", "ab"], [], ["ab", "b"]),
        (["p", "q"], "ab", ["b", "a"], "ba"),
        (["p", "q"], "ab", [], None),
        (["p_a", "q_a"], "ab", [], None),
        (["p", "q"], "ab", ["a"], None),
        (["p", "q"], "ab", ["a", "c"], None),
        (["a"], "ab", [], None),
    ],
)
def test_columns_of_labels(columns, held, classes, found):
    if found is not None:
        got = labels.match_columns(columns, held, classes)
        assert got == dict(zip(columns, found, strict=True))
        return
    with pytest.raises(TableError, match="must name a column for each of 'a', 'b', wh"):
        labels.match_columns(columns, held, classes)
