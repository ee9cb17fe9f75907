"""Labels of several classes as pictures read them: by number, while names are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibration._validation import check_class_names, check_columns, check_same_length
from calibration.typing import Int64Array


def read_names(classes: Sequence[Any] | None, k: int) -> list[Any]:
    """Return the names of k columns: those given, or their numbers."""
    return check_class_names(range(k) if classes is None else classes, k)


def read_columns(
    y: ArrayLike, names: Sequence[Any], n: int, name: str, table: str
) -> Int64Array:
    """Return the column of each of n labels, shape (n,).

    Numbers are column numbers where all names are texts: who names the flowers in a
    picture need not name them in the labels.
    """
    numbered = np.asarray(y).dtype.kind in "biuf"
    worded = all(isinstance(one, str) for one in names)
    by_number = (numbered and worded) or list(names) == list(range(len(names)))
    classes = None if by_number else names
    columns = check_columns(y, len(names), classes, name)
    check_same_length(n, table, len(columns), name)
    return columns
