"""Lists on the command line: with commas, with blanks, or both."""

from __future__ import annotations

import argparse
import csv
import shlex
from collections.abc import Callable
from typing import Any


class ListAction(argparse.Action):
    """Stores what stands in a list, from all places where its option is given.

    Parameters
    ----------
    read : callable
        Makes a value of each text; the text of a name with commas stands in quotes.
    finish : callable
        Makes of all values what is stored.
    """

    def __init__(
        self,
        *args: Any,
        read: Callable[[str], Any] = str,
        finish: Callable[[list[Any]], Any] = list,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.read, self.finish = read, finish

    def __call__(
        self,
        parser: Any,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Add the values of one place to those of the places before."""
        if len(values) > 1:
            parser.took = option_string, shlex.join(values)
        try:
            texts = [text for word in values for text in split_names(word)]
            new = [self.read(text) for text in texts]
        except argparse.ArgumentTypeError as error:
            raise argparse.ArgumentError(self, str(error)) from error
        old = getattr(namespace, self.dest)
        held = [] if old is self.default else list(old)
        setattr(namespace, self.dest, self.finish(held + new))


def split_names(word: str) -> list[str]:
    """Return the texts between commas, as CSV has them, without empty ones."""
    try:
        fields = next(csv.reader([word], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        message = f"must be a list such as A,B or '\"A, B\"',C, got {word!r}"
        raise argparse.ArgumentTypeError(message) from error
    return [field.strip() for field in fields if field.strip()]


def list_of(
    metavar: str,
    read: Callable[[str], Any] = str,
    finish: Callable[[list[Any]], Any] = list,
    default: Any = (),
) -> dict[str, Any]:
    """Return what argparse is to know of an option with a list."""
    return {
        "action": ListAction,
        "nargs": "+",
        "read": read,
        "finish": finish,
        "default": default,
        "metavar": metavar,
    }
