"""Checks of what is no array: numbers, choices, seeds, lists, paths."""

import numbers
import os
import reprlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def check_choice(value: Any, name: str, choices: Collection[str]) -> None:
    """Refuse a value that is not one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        msg = f"`{name}` must be one of {listed}, got {value!r}."
        raise ValueError(msg)


def is_auto(value: Any) -> bool:
    """Say whether a parameter is left to us; an array has no answer to ``==``."""
    return isinstance(value, str) and value == "auto"


def check_integer(value: Any, name: str, least: int) -> int:
    """Return an integer parameter that is at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        msg = f"`{name}` must be an integer, got {value!r}."
        raise TypeError(msg)
    if value < least:
        msg = f"`{name}` must be at least {least}, got {value}."
        raise ValueError(msg)
    return int(value)


def check_verbose(value: Any) -> int:
    """Return how much is to be told: True is 1 and False is 0, as in scikit-learn."""
    if isinstance(value, bool | np.bool_):
        return int(value)
    return check_integer(value, "verbose", 0)


def check_n_jobs(value: Any) -> None:
    """Refuse what is no number of jobs: None, or an integer that is not 0."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        msg = f"`n_jobs` must be an integer or None, got {value!r}."
        raise TypeError(msg)
    if value == 0:
        msg = "`n_jobs` must not be 0, got 0."
        raise ValueError(msg)


def check_optional_seed(value: Any, name: str = "random_state") -> None:
    """Refuse what is no seed: None, or an integer from 0 on."""
    if value is not None:
        check_integer(value, name, 0)


def make_rng(random_state: Any, name: str = "random_state") -> np.random.Generator:
    """Return the generator that a seed stands for."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        msg = (
            f"`{name}` must be None, an integer from 0 on, or a numpy Generator, "
            f"got {reprlib.repr(random_state)}."
        )
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(msg) from error


def check_callable(value: Any, name: str) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        msg = f"`{name}` must be a function, got {reprlib.repr(value)}."
        raise TypeError(msg)


def check_mapping(value: Any, name: str, held: str) -> None:
    """Refuse what has no names for what it holds."""
    if not isinstance(value, Mapping):
        msg = f"`{name}` must be a mapping of {held}, got {reprlib.repr(value)}."
        raise TypeError(msg)


def check_list(values: Any, name: str, held: str) -> list[Any]:
    """Return what is listed; a text is one thing, not a list of letters."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        msg = f"`{name}` must be a list of {held}, got {reprlib.repr(values)}."
        raise TypeError(msg)
    return list(values)


def check_path(path: Any, name: str = "path") -> Path:
    """Return the path that a text or a path-like names."""
    try:
        return Path(os.fsdecode(path))
    except TypeError as error:
        msg = f"`{name}` must be a path, got {reprlib.repr(path)}."
        raise TypeError(msg) from error


def check_ax(ax: Any, name: str = "ax") -> None:
    """Refuse what is neither None nor one of matplotlib's Axes."""
    if ax is not None and not hasattr(ax, "get_figure"):
        msg = f"`{name}` must be one of matplotlib's Axes, got {reprlib.repr(ax)}."
        raise TypeError(msg)


def check_flag(value: Any, name: str, wanted: str = "True or False") -> None:
    """Refuse a value that is no truth value."""
    if not isinstance(value, bool | np.bool_):
        msg = f"`{name}` must be {wanted}, got {value!r}."
        raise TypeError(msg)


def check_number(
    value: Any,
    name: str,
    low: float,
    high: float = np.inf,
    *,
    open_low: bool = False,
    open_high: bool | None = None,
) -> float:
    """Return a real parameter in [low, high], without the ends that are open.

    Few formulas are made for infinity: as an upper end it is open unless told.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        msg = f"`{name}` must be a real number, got {value!r}."
        raise TypeError(msg)
    number = float(value)
    open_high = high == np.inf if open_high is None else open_high
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (above and below):
        left = "(" if open_low else "["
        right = ")" if open_high else "]"
        msg = f"`{name}` must lie in {left}{low:g}, {high:g}{right}, got {value!r}."
        raise ValueError(msg)
    return number


def check_level(value: Any, name: str) -> float:
    """Return a probability level strictly between 0 and 1."""
    return check_number(value, name, 0.0, 1.0, open_low=True, open_high=True)
