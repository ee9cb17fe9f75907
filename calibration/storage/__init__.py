"""Saved models: a zip file of a description and arrays, checked when it is read.

This room knows no calibrator. Classes are found in the modules that define them. They
are written attribute by attribute.
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
