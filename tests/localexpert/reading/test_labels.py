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


class TestLabels:
    @pytest.mark.parametrize(
        ("held", "positive", "names"),
        [
            (["0", "1"], None, ("0", "1")),
            (["10", "9"], None, ("9", "10")),
            (["no", "yes"], None, ("no", "yes")),
            (["no", "yes"], "no", ("yes", "no")),
            (["1"], None, ("0", "1")),
            (["false"], None, ("false", "true")),
            (["x"], "x", (None, "x")),
            (["x"], "y", ("x", "y")),
        ],
    )
    def test_of_two_classes(self, held, positive, names):
        assert labels.Labels.of_two(held, positive).names == names

    @pytest.mark.parametrize(
        ("held", "positive", "message"),
        [
            ("abc", None, "must hold two different values, got 3: 'a', 'b', 'c'"),
            ("a", None, "holds 'a' alone: say by --positive which class is meant"),
            ("ab", "c", "--positive must be one of 'a', 'b', got 'c'"),
        ],
    )
    def test_that_are_not_two(self, held, positive, message):
        with pytest.raises(TableError, match=message):
            labels.Labels.of_two(held, positive)

    def test_that_come_batch_by_batch(self):
        known = labels.Labels.of_two(["x"], "x").meet(["x", "y"])
        assert known.names == ("y", "x")
        texts = np.array(["x", "y", "z"], dtype=object)
        assert known.code(texts).tolist() == [1, 0, -1]
        with pytest.raises(TableError, match="must hold 'y', 'x' as before, got 'z'"):
            known.meet(["z"])

    @pytest.mark.parametrize(
        ("columns", "held", "classes", "names"),
        [
            (["a", "b", "c"], "ab", None, ("a", "b", "c")),
            (["p_a", "p_b", "p_c"], "abc", None, ("a", "b", "c")),
            (["p_a_x", "p_b_x"], "ab", None, ("a", "b")),
            (["first", "second"], "01", None, ("0", "1")),
            (["first", "second"], "ab", ["b", "a"], ("b", "a")),
        ],
    )
    def test_of_several_columns(self, columns, held, classes, names):
        assert labels.Labels.of_many(held, columns, classes).names == names

    @pytest.mark.parametrize(
        ("classes", "message"),
        [
            (None, "holds 'x', 'y', which do not tell the columns 'p', 'q' apart"),
            (["x"], "must name each of the 2 columns of --score once, got 'x'"),
            (["x", "x"], "--classes must name each of the 2 columns"),
        ],
    )
    def test_that_columns_do_not_tell(self, classes, message):
        with pytest.raises(TableError, match=message):
            labels.Labels.of_many("xy", ["p", "q"], classes)
