"""Saved models: one zip file of a description and arrays, checked as it is read.

Knows no calibrator: classes are found by where they are defined, and written attribute
by attribute.
"""

from calibration.storage.archive import (
    FORMAT_VERSION,
    StorageError,
    replacing_file,
    writable_file,
)
from calibration.storage.codec import Saved, load, save
from calibration.storage.values import TextTable, check_booster_text, read_trees

__all__ = [
    "FORMAT_VERSION",
    "Saved",
    "StorageError",
    "TextTable",
    "check_booster_text",
    "load",
    "read_trees",
    "replacing_file",
    "save",
    "writable_file",
]
