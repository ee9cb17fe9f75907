"""Refusals state the rule of a parameter, and kinds, limits and choices follow it."""

import re
from functools import partial

import numpy as np
import pytest

from tests.fuzz.cases import answer_or_refusal
from tests.test_refusals import CALLS

# Values of other kinds than a rule asks for.
KINDS = {
    "an integer": [True, None, 2.5, np.nan],
    "an integer or None": [True, 2.5],
    "a real number": [True, None],
    "True or False": [1, None],
    "a bool": [1, None],
}
# A seed that is not given is drawn; a flag says how much is told.
TAKEN = {("random_state", None), ("verbose", True), ("max_cells", None)}
# Arrays and lists are read cell by cell, so the message shows the value of a cell.
ARRAYS = ("ArrayLike", "Sequence", "Any")


def refusal(call, name, value):
    """Return the message against a parameter, or nothing if the value is accepted."""
    answer = answer_or_refusal(partial(call, **{name: value}))
    return str(answer) if isinstance(answer, Exception) else ""


def read_rule(message):
    """Return the stated rule, values that it accepts, and values that it refuses."""
    rule = message.rpartition(", got ")[0].partition(" must ")[2]
    if least := re.fullmatch(r"be at least (\d+)", rule):
        return rule, [int(least[1])], [int(least[1]) - 1, True]
    if within := re.fullmatch(r"lie in ([\[(])(\S+), (\S+)([\])])", rule):
        low, high = float(within[2]), float(within[3])
        kept = [low] * (within[1] == "[") + [high] * (within[4] == "]")
        ends = {float(np.nextafter(low, -np.inf)), low, high, 2.0 * high}
        return rule, kept, [*ends.difference(kept), True, None, np.nan]
    if rule.startswith("be one of "):
        return rule, re.findall(r"'([^']*)'", rule), []
    return rule, [], KINDS.get(rule.removeprefix("be "), [])


@pytest.mark.parametrize("called", [one for one in CALLS if not one.endswith(".fit")])
def test_rules_are_as_they_are_told(called):
    call, parameters = CALLS[called]
    complaints = []
    for parameter in parameters:
        name = parameter.name
        if any(kind in str(parameter.annotation) for kind in ARRAYS):
            continue
        for told in {refusal(call, name, "x"), refusal(call, name, -7)}:
            rule, kept, refused = read_rule(told)
            for value in kept:
                if rule in refusal(call, name, value):
                    complaints.append(f"{name}={value!r} refused, although {told}")
            for value in refused:
                said = refusal(call, name, value)
                taken = value is parameter.default or (name, value) in TAKEN
                named = f"`{name}` must " in said and said.endswith(f"got {value}.")
                if not named and not taken:
                    complaints.append(f"{name}={value!r}, although {told}: {said}")
    assert not complaints, "\n".join(complaints)
