"""Public names keep their signatures: what worked yesterday works tomorrow.

`signatures.txt` lists them. Names may be added, and parameters that have defaults.
Whoever changes or removes one changes the list, too. `python tests/test_signatures.py`
writes the list, and so adds what is new: a release begins with it.
"""

import importlib
import inspect
import re
from pathlib import Path

import pytest

PACKAGES = ("calibration", "localexpert", "localexpert.risk", "localexpert.skpro")
LIST = Path(__file__).with_name("signatures.txt")


def signature_of(value):
    """Return the name and the parameters; `*` says where those by keyword begin."""
    try:
        found = inspect.signature(value).parameters.values()
    except ValueError:  # built in C, as of some bases
        return []
    out = []
    for one in found:
        if one.kind is one.KEYWORD_ONLY and not any(word[0] == "*" for word in out):
            out.append("*")
        text = str(one.replace(annotation=one.empty))
        out.append(re.sub(r"<function (\w+) at \w+>", r"\1", text))
    return out


def public_callables():
    """Return functions, classes, and the methods of classes, with their parameters."""
    for package in PACKAGES:
        root = importlib.import_module(package)
        for name in root.__all__:
            value = getattr(root, name)
            if not callable(value):
                continue
            yield f"{package}.{name}", signature_of(value)
            if not inspect.isclass(value):
                continue
            for word, member in inspect.getmembers(value, inspect.isroutine):
                home = (getattr(member, "__module__", None) or "").split(".")[0]
                ours = home in PACKAGES and callable(member)  # no cached property
                if ours and not word.startswith("_"):
                    yield f"{package}.{name}.{word}", signature_of(member)


def keeps(old, new):
    """Say whether calls by the old parameters still mean the same by the new ones."""
    cut, at = (side.index("*") if "*" in side else len(side) for side in (old, new))
    added = [word for word in new if word not in old and word != "*"]
    by_place = new[:cut] == old[:cut] and at >= cut
    by_name = all(word in new for word in old[cut:] if word != "*")
    return by_place and by_name and all("=" in word or "*" in word for word in added)


def test_public_callables_keep_their_signatures():
    now = dict(public_callables())
    lines = LIST.read_text(encoding="utf-8").splitlines()
    listed = [line.split(": ", 1) for line in lines]
    missing = [name for name, _ in listed if name not in now]
    assert not missing
    changed = {
        name: (old, now[name])
        for name, old in listed
        if not keeps([word for word in old.split("; ") if word], now[name])
    }
    assert not changed


@pytest.mark.parametrize(
    ("old", "new", "holds"),
    [
        ("x", "x; y=1", True),
        ("x; *; a=1", "x; *; b=2; a=1", True),
        ("x; *; a=1", "x; a=1", True),
        ("x; *; a=1", "x; y; *; a=1", False),  # without a default
        ("x; y=1", "y=1; x", False),
        ("x; y=1", "x; y=2", False),
        ("x; y=1", "x; *; y=1", False),
        ("x; *; a=1", "x", False),
    ],
)
def test_what_counts_as_kept(old, new, holds):
    assert keeps(old.split("; "), new.split("; ")) == holds


if __name__ == "__main__":
    text = "\n".join(f"{name}: {'; '.join(old)}" for name, old in public_callables())
    LIST.write_text(text + "\n", encoding="utf-8")
