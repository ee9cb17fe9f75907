"""Labels: which is positive, and which column of scores is of which."""

import pytest

from localexpert.cli import probabilities as labels
from localexpert.reading import TableError


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
